"""What a text is about, found by simple means: its topic, its telling words, its best sentences."""

from __future__ import annotations

import re
from collections import Counter

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


def topic_of(text: str) -> str:
    """The topic a prompt names, else its most telling words."""
    match = _NAMED.search(text) or _TOPIC.search(text)
    if match:
        return " ".join(match[1].split()[:9]).strip(" ,'-")
    return " and ".join(topic_words(text)[:2]) or "the question at hand"


def topic_words(text: str, count: int = 4) -> list[str]:
    """The words that occur most often and mean something, the longer first among equals."""
    found = Counter(word for word in _WORD.findall(text[:4000].lower()) if word not in _STOP)
    return sorted(found, key=lambda word: (-found[word], -len(word), word))[:count]


def best_sentences(text: str, count: int) -> list[str]:
    """The sentences that carry most of the text's telling words, in their order."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if len(part.split()) > 3][:80]
    telling = set(topic_words(text, 12))
    ranked = sorted(
        range(len(sentences)), key=lambda i: (-len(telling & set(_WORD.findall(sentences[i].lower()))), i)
    )
    return [sentences[i] for i in sorted(ranked[:count])]
