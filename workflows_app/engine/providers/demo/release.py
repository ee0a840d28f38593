"""Release notes: commits sorted into sections and told in the users' words."""

from __future__ import annotations

import re

from workflows_app.engine.providers.demo.task import Ask, Task, answer_json, clip_words, select_keys

_RELEASE = re.compile(r"\b(?:release notes?|changelog|commits?)\b", re.I)
_LINE = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?(?:[0-9a-f]{7,40}[ \t]+)?(?=\S)(.{6,160})$", re.M)
_CONVENTIONAL = re.compile(
    r"(feat|fix|perf|docs|refactor|test|chore|build|ci|style|revert)(?:\(([^)]{1,30})\))?(!)?:[ \t]*(.+)",
    re.I,
)
_HASHED = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?[0-9a-f]{7,40}[ \t]+\S", re.M)
_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\b")
_SECTIONS = {"feat": "Added", "fix": "Fixed", "perf": "Faster", "revert": "Fixed"}
_VERBS = (("fix", "Fixed"), ("repair", "Fixed"), ("correct", "Fixed"), ("add", "Added"), ("support", "Added"), ("allow", "Added"), ("introduce", "Added"),
          ("speed", "Faster"), ("cache", "Faster"), ("faster", "Faster"), ("remove", "Removed"), ("drop", "Removed"))  # fmt: skip
_SYNONYMS = {
    "features": "added",
    "new": "added",
    "fixes": "fixed",
    "bugfixes": "fixed",
    "bugs": "fixed",
    "performance": "faster",
    "breaking_changes": "breaking",
    "other": "changed",
    "title": "version",
    "overview": "summary",
}
Sections = dict[str, list[str]]


class ReleaseNotes(Task):
    """Release notes, or a summary, of a list of commits."""

    order = 50

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return bool(_RELEASE.search(ask.both)) and bool(commit_lines(ask.material))

    @staticmethod
    def answer(ask: Ask) -> str:
        sections = sort_commits(commit_lines(ask.material))
        if ask.wording.wants_json:
            facts = {
                name.lower(): sections.get(name, [])
                for name in ("Added", "Fixed", "Faster", "Changed", "Removed", "Breaking")
            }
            return answer_json(
                ask,
                select_keys(
                    ask, {**facts, "summary": _summary(sections), "version": _version(ask)}, _SYNONYMS
                ),
                [_summary(sections)],
            )
        if (
            re.search(r"\bsummar\w+|\bparagraph\b|\bone sentence\b", ask.instructions, re.I)
            and "release notes" not in ask.prompt.lower()
        ):
            return clip_words(_summary(sections), ask.wording.max_words)
        version = _version(ask)
        parts = [
            f"## {'Version ' + version if version else 'Release notes'}",
            clip_words(_summary(sections), ask.wording.max_words),
        ]
        for name, lines in sections.items():
            parts.append(f"### {name}\n" + "\n".join(f"- {line}" for line in lines))
        return "\n\n".join(parts)


def commit_lines(text: str) -> list[str]:
    """The subjects in a list of commits: lines with a hash or a conventional prefix; else the bullets."""
    lines = [match[1].strip() for match in _LINE.finditer(text[:20_000])]
    conventional = [line for line in lines if _CONVENTIONAL.match(line)]
    if conventional:
        return conventional[:60]
    if _HASHED.search(text):
        return [match[1].strip() for match in _LINE.finditer(text) if _HASHED.match(match[0])][:60]
    return [match[1].strip() for match in _LINE.finditer(text) if re.match(r"[ \t]*[-*•] ", match[0])][:60]


def sort_commits(lines: list[str]) -> Sections:
    """The subjects by section; what users don't notice (docs, tests, builds) is left out unless nothing else is there."""
    sections: Sections = {}
    quiet: list[str] = []
    for line in lines:
        match = _CONVENTIONAL.match(line)
        if not match:
            sections.setdefault(_section_by_verb(line), []).append(_sentence(line))
            continue
        kind, scope, breaking, subject = match.groups()
        text = _sentence(f"{scope}: {subject}" if scope else subject)
        if breaking:
            sections.setdefault("Breaking", []).append(text)
        elif kind.lower() in _SECTIONS:
            sections.setdefault(_SECTIONS[kind.lower()], []).append(text)
        else:
            quiet.append(text)
    if not sections and quiet:
        sections["Changed"] = quiet
    return sections


def _section_by_verb(line: str) -> str:
    lower = line.lower()
    return next((section for verb, section in _VERBS if verb in lower), "Changed")


def _sentence(text: str) -> str:
    plain = re.sub(r"\s*\(?#\d+\)?", "", text).strip().rstrip(".")
    return f"{plain[:1].upper()}{plain[1:]}."


def _summary(sections: Sections) -> str:
    if not sections:
        return "No change that users would notice."
    counts = ", ".join(f"{len(lines)} {name.lower()}" for name, lines in sections.items())
    first = next(iter(sections.values()))[0]
    return (
        f"This release brings {sum(map(len, sections.values()))} changes ({counts}). Most noticeable: {first}"
    )


def _version(ask: Ask) -> str | None:
    match = _VERSION.search(ask.prompt)
    return match[1] if match else None
