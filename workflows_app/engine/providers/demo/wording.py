"""What a prompt's wording asks for: its form, its keys, its length; and how likely the answer slips."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_MAX_WORDS = re.compile(
    r"\b(?:at most|under|up to|max(?:imum)?(?: of)?|no more than|fewer than|below)\s+(\d{1,4})\s+words\b",
    re.I,
)
_BULLETS = re.compile(
    r"\b(\d|two|three|four|five|six|seven)\s+(?:short |clear |key |concise )*(?:bullets?|points)\b", re.I
)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_NOT_KEYS = frozenset(
    {
        "and",
        "or",
        "the",
        "with",
        "a",
        "an",
        "only",
        "these",
        "each",
        "json",
        "optional",
        "string",
        "number",
        "list",
        "of",
    }
)


@dataclass(frozen=True)
class Wording:
    """The directives found in the system prompt and the prompt."""

    wants_json: bool
    json_only: bool
    explains_first: bool
    keys: tuple[str, ...]
    max_words: int | None
    bullets: int | None

    def slip_chance(self, model: str, temperature: float | None, drift: float) -> float:
        """How likely an answer leaves the form asked for: an explicit "JSON only" holds, "explain first" breaks it."""
        if self.explains_first:
            chance = 0.28 if self.json_only else 0.42
        else:
            chance = 0.02 if self.json_only else 0.10
        if model == "demo-large":
            chance *= 0.6
        if temperature is not None and temperature > 0.8:
            chance += 0.05
        return min(0.95, chance + 0.6 * drift)


def read_wording(instructions: str) -> Wording:
    """The directives in a text of instructions."""
    words = _MAX_WORDS.search(instructions)
    bullets = _BULLETS.search(instructions)
    return Wording(
        wants_json=bool(_JSON.search(instructions)),
        json_only=bool(_JSON_ONLY.search(instructions)),
        explains_first=bool(_EXPLAIN.search(_NOT_EXPLAIN.sub("", instructions))),
        keys=_asked_keys(instructions),
        max_words=int(words[1]) if words else None,
        bullets=_number(bullets[1]) if bullets else None,
    )


def _number(text: str) -> int:
    return _NUMBERS.get(text.lower()) or int(text)


def _asked_keys(text: str) -> tuple[str, ...]:
    """Keys from a JSON skeleton in the prompt, or from a list after "keys" or "fields"."""
    quoted = _QUOTED_KEY.findall(text)
    if quoted:
        return tuple(dict.fromkeys(quoted))
    listed = _KEYS.search(text)
    if not listed:
        return ()
    # What stands in brackets explains a key ("priority (low, normal)") and is none itself.
    plain = re.sub(r"\([^)]{0,200}\)", "", listed[1])
    names = []
    for part in re.split(r",|\band\b|;", plain):
        match = _KEY.search(part.strip(" \"'`"))
        if match and match[0].lower() not in _NOT_KEYS:
            names.append(match[0])
    return tuple(dict.fromkeys(names))
