"""Support triage: classify a customer's message by its words, and write the reply."""

from __future__ import annotations

import re
from typing import Any

from workflows_app.engine.providers.demo.prompt import Ask

_CATEGORIES = {
    "billing": ("invoice", "refund", "charge", "charged", "payment", "billing", "subscription", "card", "price", "receipt", "money"),
    "bug": ("error", "crash", "crashes", "broken", "bug", "fails", "failed", "exception", "freeze", "freezes", "blank", "500", "stuck", "wrong"),
    "account": ("password", "login", "log in", "sign in", "account", "2fa", "locked", "email address", "reset", "permission"),
    "shipping": ("delivery", "shipping", "package", "parcel", "tracking", "courier", "arrived", "shipment", "order"),
    "feature_request": ("feature", "would be great", "wish", "suggestion", "could you add", "please add", "support for", "roadmap"),
}  # fmt: skip
_URGENT = re.compile(
    r"\b(urgent|urgently|asap|immediately|outage|down|critical|deadline|production|all users|right now|lawyer)\b",
    re.I,
)
_ANGRY = re.compile(
    r"\b(angry|unacceptable|terrible|worst|furious|disappointed|ridiculous|frustrat\w+|third time|again and again|fed up)\b",
    re.I,
)
_HAPPY = re.compile(r"\b(thanks|thank you|great|love|appreciate|awesome|helpful|happy)\b", re.I)
_REPLY = re.compile(
    r"\b(?:reply|respond to|answer the customer|response to the customer|write back|write (?:an? )?(?:\w+ )?e?mail)\b",
    re.I,
)
_TRIAGE = re.compile(r"\b(?:triage|classify|categori[sz]e|route|label)\b", re.I)
_SUPPORT = re.compile(r"\b(?:support|customer|ticket|helpdesk|message)\b", re.I)
_NAME = re.compile(
    r"\b(?i:my name is|i am|i'm|regards,|cheers,|thanks,|best,)\s+([A-Z][a-z]{2,15})\b|^-?\s*([A-Z][a-z]{2,15})\s*\Z",
    re.M,
)
_NOT_NAMES = frozenset({"Still", "Very", "Not", "Trying", "Using", "The", "Getting", "Unable", "Really"})
_REFERENCE = re.compile(r"(?<!\w)(?:#|order |ticket |invoice )#?([A-Z]{0,4}-?\d{3,10})\b", re.I)
_STEPS = {
    "billing": ["I have opened the billing record and will check the charge against your plan", "If it was taken twice, the refund reaches your account within five working days"],
    "bug": ["I could follow the steps you describe and have passed them to our engineers", "Until the fix is out, signing out and clearing the cache usually brings the page back"],
    "account": ["I have sent a new link to the address on the account; it is valid for one hour", "If it does not arrive, please check the spam folder or tell us another address"],
    "shipping": ["I have asked the carrier for the current place of your parcel", "If it has not moved by tomorrow evening, we send a replacement free of charge"],
    "feature_request": ["I have added your wish to our list, with your example", "We look through the list each month and write to everyone who asked"],
    "other": ["I have passed your message to the colleague who knows this best", "You will hear from us within one working day"],
}  # fmt: skip


def triage(ask: Ask) -> str | None:
    """A classification of a customer's message."""
    is_asked = _TRIAGE.search(ask.instructions) or (ask.wants_json and "category" in ask.keys)
    if not is_asked or not _SUPPORT.search(ask.both):
        return None
    facts = classify(ask.material, ask)
    if not ask.wants_json:
        return str(facts["category"])
    reasons = [
        f"The customer writes about {facts['category'].replace('_', ' ')}, which I take from the words used.",
        f"The tone reads {facts['sentiment']}, and the wording makes this a {facts['priority']} priority.",
        "Other teams might see it differently, so I weighed the alternatives before I decided.",
    ]
    return ask.as_json(facts, reasons)


def reply(ask: Ask) -> str | None:
    """An answer to a customer, with greeting, next steps and signature."""
    if not (_REPLY.search(ask.instructions) and _SUPPORT.search(ask.both)):
        return None
    facts = classify(ask.material, ask)
    named = _NAME.search(ask.material)
    name = (named[1] or named[2]) if named else ""
    greeting = f"Hello {name}" if name and name not in _NOT_NAMES else "Hello"
    reference = f" about {facts['reference']}" if facts["reference"] else ""
    opening = ask.pick(
        "Thank you for writing to us", "Thanks for getting in touch", "Thank you for your message"
    )
    is_sorry = facts["sentiment"] == "negative" or facts["category"] == "bug"
    sorry = " I am sorry for the trouble this has caused." if is_sorry else ""
    first, second = _STEPS[facts["category"]]
    promise = ask.pick(
        "I will write again as soon as there is news.",
        "I stay with this until it is solved.",
        "I will follow up tomorrow.",
    )
    closing = ask.pick("Kind regards", "Best regards", "With kind regards")
    text = f"{greeting},\n\n{opening}{reference}.{sorry}\n\n{first}. {second}. {promise}"
    if ask.slip > 0.3 and ask.slips():
        return ask.clip(text.replace(sorry, ""))  # a careless answer: no apology, no signature
    return ask.clip(text) + f"\n\n{closing}\nSupport team"


def classify(message: str, ask: Ask) -> dict[str, Any]:
    """Category, priority and mood of a message, from the words in it."""
    lower = message.lower()
    hits = {name: sum(lower.count(word) for word in words) for name, words in _CATEGORIES.items()}
    category = max(hits, key=lambda name: hits[name]) if any(hits.values()) else "other"
    negative = bool(_ANGRY.search(message))
    urgent = bool(_URGENT.search(message))
    sentiment = "negative" if negative else "positive" if _HAPPY.search(message) else "neutral"
    priority = (
        "high" if urgent else "normal" if negative or category in {"bug", "billing", "account"} else "low"
    )
    reference = _REFERENCE.search(message)
    share = hits.get(category, 0) / (sum(hits.values()) or 1)
    return {
        "category": category,
        "priority": priority,
        "sentiment": sentiment,
        "summary": _summary(message),
        "needs_human": urgent or negative,
        "reference": reference[1] if reference else None,
        "confidence": round(min(0.98, 0.55 + 0.4 * share + ask.rng.uniform(-0.03, 0.03)), 2),
        "language": "en",
    }


def _summary(message: str) -> str:
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", message) if len(part.split()) > 3]
    text = sentences[0] if sentences else message.strip()
    words = text.split()
    return " ".join(words[:18]) + ("…" if len(words) > 18 else "")
