"""Anything else: JSON with the keys asked for, a summary of the text given, or a short analysis."""

from __future__ import annotations

import re
from typing import Any

from workflows_app.engine.providers.demo.task import Ask, Task, answer_json, clip_words
from workflows_app.engine.providers.demo.topics import best_sentences, topic_of, topic_words

_SUMMARY = re.compile(r"\b(?:summari[sz]e|summary|tl;dr|shorten|condense)\b", re.I)


class AnyJson(Task):
    """JSON with the keys the prompt asks for, filled from the topic."""

    order = 70

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return ask.wording.wants_json

    @staticmethod
    def answer(ask: Ask) -> str:
        keys = ask.wording.keys or ("title", "summary", "keywords")
        data = {key: _value(ask, key.lower()) for key in keys}
        return answer_json(
            ask, data, [f"The text is about {topic_of(ask.prompt)}.", "I chose the values that fit it best."]
        )


class Summary(Task):
    """The text's own best sentences."""

    order = 80

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return bool(_SUMMARY.search(ask.instructions)) and len(ask.material.split()) > 30

    @staticmethod
    def answer(ask: Ask) -> str:
        sentences = best_sentences(ask.material, ask.wording.bullets or 3)
        if ask.wording.bullets:
            return "\n".join(f"- {sentence}" for sentence in sentences)
        return clip_words(" ".join(sentences), ask.wording.max_words)


class Analysis(Task):
    """A short, structured analysis of the topic."""

    order = 1000

    @staticmethod
    def recognises(ask: Ask) -> bool:
        return True

    @staticmethod
    def answer(ask: Ask) -> str:
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
            [
                f"Analysis of {topic}",
                f"{topic[:1].upper()}{topic[1:]}: an analysis",
                f"A short analysis: {topic}",
            ]
        )
        bullets = "\n".join(f"{i}. {point}" for i, point in enumerate(points[: ask.wording.bullets or 3], 1))
        close = ask.pick(
            [
                "On balance the case is sound; a small trial would settle the rest.",
                "In sum: worth doing, in small steps.",
                "The next step is a trial with a clear measure.",
            ]
        )
        return clip_words(f"{lead}\n\n{bullets}\n\n{close}", ask.wording.max_words)


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
        topic = topic_of(ask.prompt)
        return f"{topic[:1].upper()}{topic[1:]}"
    return " ".join(best_sentences(ask.material, 1)) or f"A short look at {topic_of(ask.prompt)}."
