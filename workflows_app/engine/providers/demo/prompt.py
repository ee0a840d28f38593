"""What a prompt asks for: its parts, the form and length of the answer, and how likely the answer slips."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from workflows_app.engine.providers import ChatRequest

_READ_AT_MOST = 20_000  # characters: a huge prompt is sampled, so that no demo answer takes long
_MARKER = re.compile(
    r"^[ \t]*(?:-{3,}|={3,}|```\w*|<\w+>|(?:the )?(?:draft|output|text|message|ticket|email|invoice|document|commits?|customer(?:'s)? message"
    r"|report|answer|article|input)(?: text| to (?:judge|review))?[ \t]*:)[ \t]*",
    re.I | re.M,
)
_CLOSING = re.compile(r"\bjson\b|\b(?:answer|reply|respond|return|write)\b|\bwords\b", re.I)
_JSON = re.compile(r"\bjson\b", re.I)
_JSON_ONLY = re.compile(
    r"\bjson(?: object| array)?[ ,]{1,3}(?:only|and nothing else)\b|\bonly (?:a |an |the |one )?(?:valid |single |raw |strict )*json\b"
    r"|\bnothing but (?:the |valid )?json\b|\bno (?:prose|other text|commentary|explanation|markdown)\b",
    re.I,
)
_EXPLAIN = re.compile(
    r"\bexplain (?:your|the|how|why|each|briefly)\b|\bthink (?:it through|step by step|aloud|out loud)\b|\bstep by step\b"
    r"|\bshow your (?:work|reasoning)\b|\breasoning first\b|\bwalk (?:me|us) through\b|\bdescribe how you\b|\bbe conversational\b",
    re.I,
)
_NOT_EXPLAIN = re.compile(
    r"\b(?:do not|don't|never|without|no) (?:\w+ ){0,2}(?:explain|explanation|explaining)", re.I
)
_KEYS = re.compile(
    r"\b(?:keys|fields|properties)\b(?: (?:are|named|called|exactly|of|in))*[ :]{1,3}([^.\n]{3,300})", re.I
)
_QUOTED_KEY = re.compile(r"[\"'`]([A-Za-z_][A-Za-z0-9_]{0,40})[\"'`]\s*:")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{1,40}")
_NOT_KEY = re.compile(r"and|or|the|with|an?|only|these|each|json|optional|string|number|list|of", re.I)
_MAX_WORDS = re.compile(
    r"\b(?:at most|under|up to|max(?:imum)?(?: of)?|no more than|fewer than|below)\s+(\d{1,4})\s+words\b",
    re.I,
)
_BULLETS = re.compile(
    r"\b(\d|two|three|four|five|six|seven)\s+(?:short |clear |key |concise )*(?:bullets?|points)\b", re.I
)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


class Ask:
    """One request as the demo model reads it; `rng` is seeded by everything that was asked."""

    def __init__(self, request: ChatRequest, rng: random.Random, drift: float) -> None:
        self.system = request.system_prompt[:_READ_AT_MOST]
        self.prompt = request.prompt[:_READ_AT_MOST]
        self.both = f"{self.system}\n{self.prompt}"
        self.rng = rng
        self.drift = drift
        instructions, self.material = split_prompt(self.prompt)
        self.instructions = f"{self.system}\n{instructions}"
        self.wants_json = bool(_JSON.search(self.instructions))
        self.explains_first = bool(_EXPLAIN.search(_NOT_EXPLAIN.sub("", self.instructions)))
        self.keys = _asked_keys(self.instructions)
        words, bullets = _MAX_WORDS.search(self.instructions), _BULLETS.search(self.instructions)
        self.max_words = int(words[1]) if words else None
        self.bullets = (_NUMBERS.get(bullets[1].lower()) or int(bullets[1])) if bullets else None
        self.slip = self._slip_chance(request)

    def _slip_chance(self, request: ChatRequest) -> float:
        """How likely an answer leaves the form asked for: an explicit "JSON only" holds, "explain first" breaks it."""
        chance, strict_chance = (0.42, 0.28) if self.explains_first else (0.10, 0.02)
        if _JSON_ONLY.search(self.instructions):
            chance = strict_chance
        if request.model == "demo-large":
            chance *= 0.6
        if request.temperature is not None and request.temperature > 0.8:
            chance += 0.05
        return min(0.95, chance + 0.6 * self.drift)

    def slips(self) -> bool:
        return self.rng.random() < self.slip

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def clip(self, text: str) -> str:
        """The text, cut after the last sentence that fits into the word limit."""
        if self.max_words is None or len(text.split()) <= self.max_words:
            return text
        kept: list[str] = []
        count = 0
        for sentence in re.split(r"(?<=[.!?])(?=\s)", text):
            count += len(sentence.split())
            if count > self.max_words and kept:
                break
            kept.append(sentence)
        return "".join(kept).strip()

    def as_json(self, facts: Mapping[str, Any], reasons: Sequence[str]) -> str:
        """The facts under the keys asked for, or all; a slip wraps them in prose or leaves a field out."""
        fields = {key: facts.get(key.lower()) for key in self.keys} or dict(facts)
        if not self.slips():
            return json.dumps(fields, ensure_ascii=False, indent=2 if self.rng.random() < 0.3 else None)
        if len(fields) > 2 and self.rng.random() < 0.25:
            fields.pop(self.pick(*fields))
            if not self.explains_first:
                return json.dumps(fields, ensure_ascii=False)
        text = json.dumps(fields, ensure_ascii=False, indent=2)
        if not self.explains_first:
            lead = self.pick("Here is the JSON you asked for:", "Sure! The result:", "Extracted data:")
            return f"{lead}\n\n```json\n{text}\n```"
        lead = self.pick(
            "Let me think this through.", "First, my reasoning.", "I read the text from top to bottom."
        )
        return f"{lead} {' '.join(reasons)}\n\nSo the result is:\n\n```json\n{text}\n```\n\nLet me know if a field needs another look."


def split_prompt(prompt: str) -> tuple[str, str]:
    """A prompt's instructions, and the text to work on: what follows a marker ("Draft:", "---"), else all of it."""
    marker = _MARKER.search(prompt)
    material = prompt[marker.end() :].strip(" \n\t`") if marker else ""
    if not marker or not material:
        return prompt, prompt
    instructions = prompt[: marker.start()]
    body, gap, closing = material.rpartition("\n\n")
    if gap and len(closing) < 400 and _CLOSING.search(closing):
        return f"{instructions}\n{closing}", body
    return instructions, material


def _asked_keys(text: str) -> tuple[str, ...]:
    """Keys from a JSON skeleton in the prompt, or from a list after "keys" or "fields"."""
    names = _QUOTED_KEY.findall(text)
    listed = None if names else _KEYS.search(text)
    if listed:
        # What stands in brackets explains a key ("priority (low, normal)") and is none itself.
        plain = re.sub(r"\([^)]{0,200}\)", "", listed[1])
        found = (_KEY.search(part.strip(" \"'`")) for part in re.split(r",|\band\b|;", plain))
        names = [match[0] for match in found if match and not _NOT_KEY.fullmatch(match[0])]
    return tuple(dict.fromkeys(names))
