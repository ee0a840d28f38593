"""Release notes: commits sorted into sections, in the users' words."""

from __future__ import annotations

import re

from workflows_app.engine.providers.demo.prompt import Ask

_RELEASE = re.compile(r"\b(?:release notes?|changelog|commits?)\b", re.I)
_LINE = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?(?:[0-9a-f]{7,40}[ \t]+)?(?=\S)(.{6,160})$", re.M)
_CONVENTIONAL = re.compile(
    r"(feat|fix|perf|docs|refactor|test|chore|build|ci|style|revert)(?:\(([^)]{1,30})\))?(!)?:[ \t]*(.+)",
    re.I,
)
_HASHED = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?[0-9a-f]{7,40}[ \t]+\S")
_BULLET = re.compile(r"[ \t]*[-*•] ")
_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\b")
_SUMMARY = re.compile(r"\bsummar\w+|\bparagraph\b|\bone sentence\b", re.I)
_SECTIONS = {"feat": "Added", "fix": "Fixed", "perf": "Faster", "revert": "Fixed"}
_VERBS = (("fix", "Fixed"), ("repair", "Fixed"), ("correct", "Fixed"), ("add", "Added"), ("support", "Added"), ("allow", "Added"), ("introduce", "Added"),
          ("speed", "Faster"), ("cache", "Faster"), ("faster", "Faster"), ("remove", "Removed"), ("drop", "Removed"))  # fmt: skip
Sections = dict[str, list[str]]


def release_notes(ask: Ask) -> str | None:
    """Release notes, or a summary, of a list of commits."""
    commits = commit_lines(ask.material) if _RELEASE.search(ask.both) else []
    if not commits:
        return None
    sections = sort_commits(commits)
    summary = _summary(sections)
    named = _VERSION.search(ask.prompt)
    version = named[1] if named else None
    if ask.wants_json:
        names = ("Added", "Fixed", "Faster", "Changed", "Removed", "Breaking")
        facts = {name.lower(): sections.get(name, []) for name in names}
        return ask.as_json({**facts, "summary": summary, "version": version}, [summary])
    if _SUMMARY.search(ask.instructions) and "release notes" not in ask.prompt.lower():
        return ask.clip(summary)
    parts = [f"## {'Version ' + version if version else 'Release notes'}", ask.clip(summary)]
    parts += [f"### {name}\n" + "\n".join(f"- {line}" for line in lines) for name, lines in sections.items()]
    return "\n\n".join(parts)


def commit_lines(text: str) -> list[str]:
    """The subjects in a list of commits: lines with a hash or a conventional prefix; else the bullets."""
    found = [(match[0], match[1].strip()) for match in _LINE.finditer(text)]
    lines = (
        [line for _, line in found if _CONVENTIONAL.match(line)]
        or [line for whole, line in found if _HASHED.match(whole)]
        or [line for whole, line in found if _BULLET.match(whole)]
    )
    return lines[:60]


def sort_commits(lines: list[str]) -> Sections:
    """The subjects by section; what users don't notice (docs, tests, builds) is left out unless nothing else is there."""
    sections: Sections = {}
    for line in lines:
        match = _CONVENTIONAL.match(line)
        if match:
            kind, scope, breaking, subject = match.groups()
            section = "Breaking" if breaking else _SECTIONS.get(kind.lower(), "")
            text = _sentence(f"{scope}: {subject}" if scope else subject)
        else:
            section = next((section for verb, section in _VERBS if verb in line.lower()), "Changed")
            text = _sentence(line)
        sections.setdefault(section, []).append(text)
    unnoticed = sections.pop("", [])
    return sections or {"Changed": unnoticed}


def _sentence(text: str) -> str:
    plain = re.sub(r"\s*\(?#\d+\)?", "", text).strip().rstrip(".")
    return f"{plain[:1].upper()}{plain[1:]}."


def _summary(sections: Sections) -> str:
    counts = ", ".join(f"{len(lines)} {name.lower()}" for name, lines in sections.items())
    first = next(iter(sections.values()))[0]
    return (
        f"This release brings {sum(map(len, sections.values()))} changes ({counts}). Most noticeable: {first}"
    )
