"""What a demo answer is made from, the family of tasks the demo model recognises, and how JSON answers slip."""

from __future__ import annotations

import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from workflows_app.engine.providers.demo.wording import Wording

_MARKER = re.compile(
    r"^[ \t]*(?:-{3,}|={3,}|```\w*|<\w+>|(?:the )?(?:draft|output|text|message|ticket|email|invoice|document|commits?|customer(?:'s)? message"
    r"|report|answer|article|input)(?: text| to (?:judge|review))?[ \t]*:)[ \t]*",
    re.I | re.M,
)


_CLOSING = re.compile(r"\bjson\b|\b(?:answer|reply|respond|return|write)\b|\bwords\b", re.I)


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


@dataclass(frozen=True)
class Ask:
    """One request as the demo model sees it; `rng` is seeded by everything that was asked."""

    system: str
    prompt: str
    instructions: str  # the system prompt, and the part of the prompt that instructs
    material: str  # the part of the prompt to work on
    wording: Wording
    rng: random.Random
    slip: float
    drift: float

    @property
    def both(self) -> str:
        return f"{self.system}\n{self.prompt}"

    def slips(self) -> bool:
        return self.rng.random() < self.slip

    def pick(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)


class Task(ABC):
    """A kind of request the demo model knows; the first that recognises an ask answers it."""

    order: ClassVar[int]
    known: ClassVar[list[type[Task]]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Task.known.append(cls)
        Task.known.sort(key=lambda task: task.order)

    @staticmethod
    @abstractmethod
    def recognises(ask: Ask) -> bool:
        """Whether this is that kind of request."""

    @staticmethod
    @abstractmethod
    def answer(ask: Ask) -> str:
        """The answer, in the form the wording asks for."""


def answer_json(ask: Ask, data: Mapping[str, Any], reasons: Sequence[str]) -> str:
    """The data as JSON; a slip wraps it in prose or leaves a field out, as models do that are asked to explain."""
    fields = dict(data)
    if not ask.slips():
        return json.dumps(fields, ensure_ascii=False, indent=2 if ask.rng.random() < 0.3 else None)
    if len(fields) > 2 and ask.rng.random() < 0.25:
        fields.pop(ask.pick(list(fields)))
        if not ask.wording.explains_first:
            return json.dumps(fields, ensure_ascii=False)
    text = json.dumps(fields, ensure_ascii=False, indent=2)
    if not ask.wording.explains_first:
        lead = ask.pick(["Here is the JSON you asked for:", "Sure! The result:", "Extracted data:"])
        return f"{lead}\n\n```json\n{text}\n```"
    lead = ask.pick(
        ["Let me think this through.", "First, my reasoning.", "I read the text from top to bottom."]
    )
    told = " ".join(reasons)
    return f"{lead} {told}\n\nSo the result is:\n\n```json\n{text}\n```\n\nLet me know if a field needs another look."


def select_keys(ask: Ask, facts: Mapping[str, Any], synonyms: Mapping[str, str]) -> dict[str, Any]:
    """The facts under the keys the prompt asks for; without any, all of them under their own."""
    if not ask.wording.keys:
        return dict(facts)
    chosen: dict[str, Any] = {}
    for key in ask.wording.keys:
        plain = key.lower()
        canonical = plain if plain in facts else synonyms.get(plain, "")
        chosen[key] = facts.get(canonical)
    return chosen


def clip_words(text: str, limit: int | None) -> str:
    """The text, cut after the last sentence that fits into the word limit."""
    if limit is None or len(text.split()) <= limit:
        return text
    kept: list[str] = []
    count = 0
    for sentence in re.split(r"(?<=[.!?])(?=\s)", text):
        count += len(sentence.split())
        if count > limit and kept:
            break
        kept.append(sentence)
    return "".join(kept).strip()
