"""Research and review: drafts that grow better from round to round, and a judge who looks at what a draft has."""

from __future__ import annotations

import re

from workflows_app.engine.providers.demo.task import Ask, Task, clip_words
from workflows_app.engine.providers.demo.topics import topic_of, topic_words

_VERDICT = re.compile(r"\bPASS\b.{0,200}\bFAIL\b|\bFAIL\b.{0,200}\bPASS\b", re.S)
_WRITE = re.compile(r"\b(?:draft|write|revise|improve|rewrite|report|essay|article|briefing|memo)\b", re.I)
_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|lorem ipsum|placeholder|xxx)\b", re.I)
_FEEDBACK = re.compile(r"\b(?:FAIL\b|missing|lacks?|add|needs?|without|no )", re.I)
# What a good draft has: how it is seen in a draft, and what an instruction or a reviewer calls it.
_PARTS = {
    "figures": (re.compile(r"\d+(?:[.,]\d+)? ?(?:%|percent|million|billion)", re.I), re.compile(r"\b(?:figures?|numbers?|data|evidence|quantif\w+)\b", re.I)),
    "sources": (re.compile(r"^Sources?:|\[\d\]|\baccording to\b", re.I | re.M), re.compile(r"\b(?:sources?|cite|citations?|references?)\b", re.I)),
    "risks": (re.compile(r"\bRisks?:|\bthe main risk\b", re.I), re.compile(r"\b(?:risks?|downsides?|caveats?|counter-?arguments?)\b", re.I)),
    "recommendation": (re.compile(r"\bRecommendation:|\bwe recommend\b", re.I), re.compile(r"\b(?:recommend\w*|conclusion|next steps?)\b", re.I)),
}  # fmt: skip
_MISSING = {
    "figures": "it makes claims without figures",
    "sources": "no sources are cited",
    "risks": "the risks are missing",
    "recommendation": "there is no recommendation",
}


class Judge(Task):
    """A verdict that begins with PASS or FAIL, with the reason taken from the text judged."""

    order = 10

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return bool(_VERDICT.search(ask.system) or _VERDICT.search(ask.prompt[:2000]))

    @staticmethod
    def answer(ask: Ask) -> str:
        draft = ask.material
        asked = [name for name, (_, called) in _PARTS.items() if called.search(ask.system)] or [
            "figures",
            "recommendation",
        ]
        missing = [_MISSING[name] for name in asked if not _PARTS[name][0].search(draft)]
        words = len(draft.split())
        if words < 25:
            missing.append(f"{words} words are too few to judge")
        if _PLACEHOLDER.search(draft):
            missing.append("a placeholder is left in the text")
        if not missing and ask.rng.random() < 0.03 + 0.4 * ask.drift:
            missing.append("the argument jumps between points and needs a clearer thread")
        verdict = f"FAIL: {'; '.join(missing)}." if missing else f"PASS: {_praise(ask, asked)}"
        if ask.wording.explains_first and ask.slips():
            return f"I read the draft twice and weighed what it says against what was asked. {verdict}"
        return verdict


class Draft(Task):
    """A report on a topic; what a reviewer missed in the draft before is in the next one."""

    order = 60

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return bool(_WRITE.search(ask.instructions))

    @staticmethod
    def answer(ask: Ask) -> str:
        topic = topic_of(ask.prompt)
        paragraphs = [f"# {topic[:1].upper()}{topic[1:]}", _opening(ask, topic), _findings(ask, topic)]
        has = _parts_of(ask)
        if "figures" in has:
            paragraphs.append(_figures(ask))
        if "risks" in has:
            paragraphs.append(_risks(ask, topic))
        if "recommendation" in has:
            paragraphs.append(_recommendation(ask, topic))
        text = clip_words("\n\n".join(paragraphs), ask.wording.max_words)
        if "sources" in has:
            text += "\n\n" + _sources(ask, topic)
        return text


def _parts_of(ask: Ask) -> set[str]:
    """The parts this draft has: what the last one had, what feedback asked for, and some of what was asked first."""
    feedback = bool(_FEEDBACK.search(ask.prompt))
    parts = set()
    for name, (seen, called) in _PARTS.items():
        complaint = _MISSING[name] in ask.prompt or (feedback and bool(called.search(ask.prompt)))
        chance = 0.96 if complaint or seen.search(ask.prompt) else 0.7 if called.search(ask.both) else 0.35
        if ask.rng.random() < chance - 0.5 * ask.drift:
            parts.add(name)
    return parts


def _praise(ask: Ask, asked: list[str]) -> str:
    return ask.pick(
        [
            f"the draft is clear and complete; {', '.join(asked)} are all there.",
            f"well argued, with {' and '.join(asked)} in place.",
            f"it answers the question and covers {', '.join(asked)}.",
        ]
    )


def _opening(ask: Ask, topic: str) -> str:
    return ask.pick(
        [
            f"Interest in {topic} has grown steadily, and the picture is now clear enough for a first analysis.",
            f"This analysis looks at {topic}: what has changed, who is affected, and what follows from it.",
            f"{topic[:1].upper()}{topic[1:]} is no longer a side question. The analysis below sums up what is known.",
        ]
    )


def _findings(ask: Ask, topic: str) -> str:
    words = topic_words(topic) or ["adoption"]
    points = [
        f"Demand for {words[0]} is led by teams that already measure their results.",
        f"The cost of {words[-1]} falls as more suppliers offer comparable quality.",
        f"Teams that started early with {topic} report fewer surprises later.",
        f"Training matters more for {words[len(words) // 2]} than tooling.",
    ]
    ask.rng.shuffle(points)
    count = min(ask.wording.bullets or 3, len(points))
    return "Findings:\n" + "\n".join(f"- {point}" for point in points[:count])


def _figures(ask: Ask) -> str:
    share, growth, saved = ask.rng.randint(18, 64), ask.rng.randint(4, 31), ask.rng.randint(3, 22)
    return f"In the surveys at hand {share}% of teams use it today, {growth}% more than a year ago; they put the saving at {saved}%."


def _risks(ask: Ask, topic: str) -> str:
    risk = ask.pick(
        [
            "depending on one supplier",
            "costs that grow with use",
            "quality that slips unnoticed",
            "rules that are still being written",
        ]
    )
    return f"Risks: the main risk of {topic} is {risk}; a small trial with a clear end keeps it in check."


def _recommendation(ask: Ask, topic: str) -> str:
    step = ask.pick(
        [
            "a six-week pilot with one team",
            "a trial on last quarter's data",
            "a side-by-side comparison with today's way",
        ]
    )
    return f"Recommendation: we recommend {step} before deciding on {topic} as a whole."


def _sources(ask: Ask, topic: str) -> str:
    year = ask.rng.randint(2023, 2026)
    return f"Sources:\n[1] Industry survey on {topic}, {year}\n[2] Interviews with {ask.rng.randint(6, 19)} practitioners, {year}"
