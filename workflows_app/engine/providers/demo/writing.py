"""Texts about a topic: drafts that improve from round to round, their review, summaries, and short analyses."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from workflows_app.engine.providers.demo.prompt import Ask

_VERDICT = re.compile(r"\bPASS\b.{0,200}\bFAIL\b|\bFAIL\b.{0,200}\bPASS\b", re.S)
_WRITE = re.compile(r"\b(?:draft|write|revise|improve|rewrite|report|essay|article|briefing|memo)\b", re.I)
_SUMMARY = re.compile(r"\b(?:summari[sz]e|summary|tl;dr|shorten|condense)\b", re.I)
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
_REST = r"[\"'“]?([^\n.\"”?:;]{3,80})"
_NAMED = re.compile(r"\b(?:topic|subject|question)[ \t]*(?::|is\b|of\b)[ \t]*" + _REST, re.I)
_TOPIC = re.compile(
    r"\b(?:about|analy[sz]e|research|investigate|(?:report|briefing|article|memo|notes) on)[ \t]+" + _REST,
    re.I,
)
_WORD = re.compile(r"[^\W\d_]{4,24}")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "about after again against also analyse analysis analyze answer because been before being below between both could does doing down "
        "draft during each ever every figures first following from further give have having here into itself just keep least less like make "
        "more most must need only other over please point points prompt report round same short should some sources such text than that their "
        "them then there these they this those through topic under until very want were what when where which while with words write would "
        "your improve revise review feedback reviewer previous recommendation risks missing using",
    )
)


def review(ask: Ask) -> str | None:
    """A verdict that begins with PASS or FAIL, with the reason taken from the text."""
    if not (_VERDICT.search(ask.system) or _VERDICT.search(ask.prompt[:2000])):
        return None
    asked = [name for name, (_, called) in _PARTS.items() if called.search(ask.system)]
    asked = asked or ["figures", "recommendation"]
    missing = [_MISSING[name] for name in asked if not _PARTS[name][0].search(ask.material)]
    words = len(ask.material.split())
    if words < 25:
        missing.append(f"{words} words are too few to judge")
    if _PLACEHOLDER.search(ask.material):
        missing.append("a placeholder is left in the text")
    if not missing and ask.rng.random() < 0.03 + 0.4 * ask.drift:
        missing.append("the argument jumps between points and needs a clearer thread")
    if missing:
        verdict = f"FAIL: {'; '.join(missing)}."
    else:
        verdict = "PASS: " + ask.pick(
            f"the draft is clear and complete; {', '.join(asked)} are all there.",
            f"well argued, with {' and '.join(asked)} in place.",
            f"it answers the question and covers {', '.join(asked)}.",
        )
    if ask.explains_first and ask.slips():
        return f"I read the draft twice and weighed what it says against what was asked. {verdict}"
    return verdict


def draft(ask: Ask) -> str | None:
    """A report on a topic; what a reviewer missed in the draft before is in the next one."""
    if not _WRITE.search(ask.instructions):
        return None
    topic = topic_of(ask.prompt)
    opening = ask.pick(
        f"Interest in {topic} has grown steadily, and the picture is now clear enough for a first analysis.",
        f"This analysis looks at {topic}: what has changed, who is affected, and what follows from it.",
        f"{_capitalized(topic)} is no longer a side question. The analysis below sums up what is known.",
    )
    words = topic_words(topic) or ["adoption"]
    points = [
        f"Demand for {words[0]} is led by teams that already measure their results.",
        f"The cost of {words[-1]} falls as more suppliers offer comparable quality.",
        f"Teams that started early with {topic} report fewer surprises later.",
        f"Training matters more for {words[len(words) // 2]} than tooling.",
    ]
    ask.rng.shuffle(points)
    findings = "\n".join(f"- {point}" for point in points[: ask.bullets or 3])
    paragraphs = [f"# {_capitalized(topic)}", opening, f"Findings:\n{findings}"]
    parts = _parts_of(ask)
    if "figures" in parts:
        share, growth, saved = ask.rng.randint(18, 64), ask.rng.randint(4, 31), ask.rng.randint(3, 22)
        paragraphs.append(
            f"In the surveys at hand {share}% of teams use it today, {growth}% more than a year ago; they put the saving at {saved}%."
        )
    if "risks" in parts:
        risk = ask.pick(
            "depending on one supplier",
            "costs that grow with use",
            "quality that slips unnoticed",
            "rules that are still being written",
        )
        paragraphs.append(
            f"Risks: the main risk of {topic} is {risk}; a small trial with a clear end keeps it in check."
        )
    if "recommendation" in parts:
        step = ask.pick(
            "a six-week pilot with one team",
            "a trial on last quarter's data",
            "a side-by-side comparison with today's way",
        )
        paragraphs.append(f"Recommendation: we recommend {step} before deciding on {topic} as a whole.")
    text = ask.clip("\n\n".join(paragraphs))
    if "sources" in parts:
        year = ask.rng.randint(2023, 2026)
        text += f"\n\nSources:\n[1] Industry survey on {topic}, {year}\n[2] Interviews with {ask.rng.randint(6, 19)} practitioners, {year}"
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


def any_json(ask: Ask) -> str | None:
    """JSON with the keys the prompt asks for, filled from the topic."""
    if not ask.wants_json:
        return None
    names = [key.lower() for key in ask.keys or ("title", "summary", "keywords")]
    reasons = [f"The text is about {topic_of(ask.prompt)}.", "I chose the values that fit it best."]
    return ask.as_json({name: _value(ask, name) for name in names}, reasons)


def summary(ask: Ask) -> str | None:
    """The text's own best sentences."""
    if not _SUMMARY.search(ask.instructions) or len(ask.material.split()) <= 30:
        return None
    sentences = best_sentences(ask.material, ask.bullets or 3)
    if ask.bullets:
        return "\n".join(f"- {sentence}" for sentence in sentences)
    return ask.clip(" ".join(sentences))


def analysis(ask: Ask) -> str:
    """A short, structured analysis of the topic."""
    topic = topic_of(ask.prompt)
    words = topic_words(topic) or ["practice"]
    points = [
        f"The need behind {topic} is real and growing, led by those who feel {words[0]} every day.",
        f"What holds {topic} back is rarely {words[-1]} itself, but the effort to change habits.",
        f"Early results around {words[0]} are promising in {ask.rng.randint(55, 90)}% of the cases looked at.",
        f"A clear owner for {words[len(words) // 2]} makes the difference between a trial and a habit.",
    ]
    ask.rng.shuffle(points)
    lead = ask.pick(
        f"Analysis of {topic}", f"{_capitalized(topic)}: an analysis", f"A short analysis: {topic}"
    )
    bullets = "\n".join(f"{i}. {point}" for i, point in enumerate(points[: ask.bullets or 3], 1))
    close = ask.pick(
        "On balance the case is sound; a small trial would settle the rest.",
        "In sum: worth doing, in small steps.",
        "The next step is a trial with a clear measure.",
    )
    return ask.clip(f"{lead}\n\n{bullets}\n\n{close}")


def _value(ask: Ask, key: str) -> Any:
    """A plausible value for a key, by its name."""
    if re.search(r"score|confidence|probability|rating", key):
        return round(ask.rng.uniform(0.62, 0.96), 2)
    if re.search(r"^(?:is|has|needs|should)_|approved|valid$", key):
        return ask.rng.random() < 0.8
    if re.search(r"count|number|total|amount", key):
        return len(ask.material.split())
    if re.search(r"keywords|tags|topics|points|items|list|risks|findings|actions", key):
        return topic_words(ask.material, 3) or [topic_of(ask.prompt)]
    if re.search(r"title|name|topic|subject", key):
        return _capitalized(topic_of(ask.prompt))
    return " ".join(best_sentences(ask.material, 1)) or f"A short look at {topic_of(ask.prompt)}."


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def topic_of(text: str) -> str:
    """The topic a prompt names, else its most frequent words."""
    match = _NAMED.search(text) or _TOPIC.search(text)
    if match:
        return " ".join(match[1].split()[:9]).strip(" ,'-")
    return " and ".join(topic_words(text)[:2]) or "the question at hand"


def topic_words(text: str, count: int = 4) -> list[str]:
    """The words that occur most often and mean something, the longer first among equals."""
    found = Counter(word for word in _WORD.findall(text[:4000].lower()) if word not in _STOP)
    return sorted(found, key=lambda word: (-found[word], -len(word), word))[:count]


def best_sentences(text: str, count: int) -> list[str]:
    """The sentences with most of the text's frequent words, in their order."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if len(part.split()) > 3][:80]
    frequent = set(topic_words(text, 12))
    ranked = sorted(
        range(len(sentences)), key=lambda i: (-len(frequent & set(_WORD.findall(sentences[i].lower()))), i)
    )
    return [sentences[i] for i in sorted(ranked[:count])]
