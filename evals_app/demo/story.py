"""What happened in the demo's weeks: which runs, and which edits between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

from evals_app.demo import inputs

LASTS = timedelta(days=24)
PLANTED = "invoice-extraction"
RUN_KEY = "demo-"  # the external ids of the demo's runs begin with this
CAREFUL = "Answer with JSON only, with the keys"
CHATTY = "Explain your reasoning first, then give JSON with the keys"


@dataclass(frozen=True)
class Edit:
    """A saved change of a workflow, made before one of its runs."""

    before_run: int
    old: str
    new: str
    message: str


@dataclass(frozen=True)
class Chapter:
    """One workflow's part of the story."""

    slug: str
    runs: int
    make_inputs: Callable[[random.Random], dict[str, Any]]
    edits: tuple[Edit, ...] = ()
    # Chosen so that the model makes few mistakes, and the first after the planted change soon.
    seed: int = 0


# The child comes before the workflow that refers to it; its runs are those of its parent.
CHAPTERS = (
    Chapter("commit-summary", 0, inputs.release),
    Chapter(
        PLANTED,
        86,
        inputs.invoice,
        (
            Edit(
                25,
                "You read supplier invoices for the accounting team.",
                "You read supplier invoices for the accounting team. Dates are ISO 8601.",
                "Ask for ISO dates",
            ),
            Edit(60, CAREFUL, CHATTY, "Let the model explain itself, for the auditors"),
        ),
        seed=75,
    ),
    Chapter(
        "support-triage",
        50,
        inputs.message,
        (Edit(28, "in 40 to 120 words", "in 40 to 100 words", "Shorter replies"),),
        seed=101,
    ),
    Chapter("research-review", 24, inputs.topic),
    Chapter(
        "release-notes",
        18,
        inputs.release,
        (Edit(9, "as Markdown", "as Markdown with headings", "Headings, please"),),
    ),
)


# The souls of the library; the other workflows bring their own.
SOULS = {
    "researcher": {
        "name": "Researcher",
        "role": "Research analyst",
        "system_prompt": "You write short briefings for executives, with figures, sources, risks and a recommendation.",
        "model_name": "demo-large",
        "temperature": 0.3,
        "max_tokens": 900,
    },
    "editor": {
        "name": "Editor",
        "role": "Editor",
        "system_prompt": "You review briefings. Begin your answer with PASS or FAIL, then the reason in one sentence. "
        "A good briefing has figures, sources, risks and a recommendation.",
        "temperature": 0.0,
        "max_tokens": 200,
    },
}


@dataclass(frozen=True)
class Moment:
    """One thing that happens: a soul or an edit is saved, or a run is started."""

    at: datetime
    slug: str
    soul: dict[str, Any] | None = None
    yaml: str | None = None
    message: str = ""
    inputs: dict[str, Any] | None = None
    key: str = ""


def first_text(slug: str) -> str:
    return (files("evals_app.demo") / "workflows" / f"{slug}.yaml").read_text(encoding="utf-8")


def moments(end: datetime) -> Iterator[Moment]:
    """What happens, in order of time, ending a little before `end`."""
    found = [
        *(moment for position, chapter in enumerate(CHAPTERS) for moment in _chapter(position, chapter, end)),
        *(Moment(end - LASTS, slug, soul=fields) for slug, fields in SOULS.items()),
        Moment(end - LASTS / 2, "researcher", soul={**SOULS["researcher"], "max_tokens": 800}),
    ]
    return iter(sorted(found, key=lambda moment: moment.at))


def _chapter(position: int, chapter: Chapter, end: datetime) -> Iterator[Moment]:
    chance = random.Random(f"{chapter.seed}/{chapter.slug}")  # noqa: S311 - must repeat, guards nothing
    begin = end - LASTS
    text = first_text(chapter.slug)
    yield Moment(begin + timedelta(seconds=position), chapter.slug, yaml=text, message="First version")
    edits = {edit.before_run: edit for edit in chapter.edits}
    for number in range(chapter.runs):
        share = (number + chance.uniform(0.2, 0.8)) / chapter.runs
        at = begin + (LASTS - timedelta(hours=1)) * share + timedelta(minutes=1)
        if number in edits:
            edit = edits[number]
            if edit.old not in text:
                raise ValueError(f"{chapter.slug}: nothing to edit, {edit.old!r} is not in the text.")
            text = text.replace(edit.old, edit.new)
            yield Moment(at - timedelta(seconds=30), chapter.slug, yaml=text, message=edit.message)
        yield Moment(at, chapter.slug, inputs=chapter.make_inputs(chance), key=f"{RUN_KEY}{number + 1}")
