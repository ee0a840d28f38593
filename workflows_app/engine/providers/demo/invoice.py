"""Invoices to JSON: the demo model really reads vendor, number, dates, items and totals from the text."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from workflows_app.engine.providers.demo.prompt import Ask

_NUMBER = re.compile(
    r"\b(?:invoice|rechnung|bill)[ \t]*(?:number|no\.?|nr\.?|id|#)?[ \t]*[:#]?[ \t]*#?([A-Z]{0,6}[-/]?\d[\w/-]{1,20})",
    re.I,
)
_DATE_TEXT = r"(\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{1,2}\.? [A-Za-z]{3,9},? \d{4}|[A-Za-z]{3,9} \d{1,2},? \d{4})"
_DUE = re.compile(r"\b(?:due(?: date| by| on)?|payable by|pay by)[ \t]*:?[ \t]*" + _DATE_TEXT, re.I)
_DATED = re.compile(r"\b(?:invoice date|issued(?: on)?|dated?)[ \t]*:?[ \t]*" + _DATE_TEXT, re.I)
_ANY_DATE = re.compile(_DATE_TEXT)
_VENDOR = re.compile(
    r"^[ \t]*(?:vendor|from|seller|supplier|issued by)[ \t]*:[ \t]*(.{2,80}?)[ \t]*$", re.I | re.M
)
_COMPANY = re.compile(
    r"^[ \t]*(.{2,60}?\b(?:GmbH|Ltd\.?|Inc\.?|LLC|AG|S\.A\.|SAS|BV|B\.V\.|Co\.|Oy|AB|plc))\b", re.M
)
_MONEY = r"(?:[A-Z]{3}[ \t]*|[€$£][ \t]*)?(\d[\d.,']{0,14}\d|\d)(?:[ \t]*(?:[A-Z]{3}\b|[€$£]))?"
_SUBTOTAL = re.compile(r"\b(?:sub-?total|net(?: amount)?)[ \t]*:?[ \t]*" + _MONEY, re.I)
_TAX = re.compile(r"\b(?:vat|tax|gst|mwst)\b[^\n:]{0,20}?:[ \t]*" + _MONEY, re.I)
_TOTAL = re.compile(
    r"(?<![\w-])(?:grand total|total due|amount due|total|balance)[ \t]*:?[ \t]*" + _MONEY, re.I
)
_CODE = re.compile(r"\b(EUR|USD|GBP|CHF|SEK|NOK|DKK|JPY|PLN|CAD|AUD)\b")
_SYMBOLS = {"€": "EUR", "$": "USD", "£": "GBP"}
_TIMES = re.compile(r"^[ \t*•-]*(\d{1,4})[ \t]*[x×][ \t]+(.{2,60}?)[ \t]*(?:@|at|à|,)[ \t]*" + _MONEY, re.M)
_COLUMNS = re.compile(
    r"^[ \t*•|-]*([A-Za-z][^\n\t|]{1,50}?)(?:[ \t]{2,}|[ \t]*\|[ \t]*)(\d{1,4})(?:[ \t]{2,}|[ \t]*\|[ \t]*)"
    + _MONEY,
    re.M,
)
_DATE_FORMS = ("%Y-%m-%d", "%d-%m-%Y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y")


def invoice(ask: Ask) -> str | None:
    """JSON from the text of an invoice."""
    if not ask.wants_json or "invoice" not in ask.both.lower():
        return None
    facts = read_invoice(ask.material)
    items = len(facts["line_items"])
    reasons = [
        f"The letterhead names {facts['vendor'] or 'no vendor'}, and the number given is {facts['invoice_number'] or 'missing'}.",
        f"I count {items} line item{'' if items == 1 else 's'} and compared their sum with the subtotal.",
        f"The subtotal is {facts['subtotal']} and the tax {facts['tax']}.",
        f"That agrees with a total of {facts['total']} {facts['currency'] or ''}".rstrip() + ".",
    ]
    return ask.as_json(facts, reasons)


def read_invoice(text: str) -> dict[str, Any]:
    """The facts an invoice states; None for what it does not."""
    items = _line_items(text)
    subtotal = _amount(_SUBTOTAL.search(text))
    if subtotal is None and items:
        subtotal = round(sum(item["amount"] for item in items), 2)
    tax = _amount(_TAX.search(text))
    total = _amount(_TOTAL.search(text))
    if total is None and subtotal is not None:
        total = round(subtotal + (tax or 0.0), 2)
    number = _NUMBER.search(text)
    due = _DUE.search(text)
    dated = _DATED.search(text) or _ANY_DATE.search(text)
    vendor = _VENDOR.search(text) or _COMPANY.search(text)
    currency = _CODE.search(text)
    return {
        "vendor": vendor[1].strip() if vendor else text.strip().partition("\n")[0].strip()[:60] or None,
        "invoice_number": number[1] if number else None,
        "date": _iso(dated[1]) if dated else None,
        "due_date": _iso(due[1]) if due else None,
        "currency": currency[1] if currency else next((c for s, c in _SYMBOLS.items() if s in text), None),
        "line_items": items,
        "subtotal": subtotal,
        "tax": tax,
        "total": total,
    }


def _line_items(text: str) -> list[dict[str, Any]]:
    found = [(name, quantity, price) for quantity, name, price in _TIMES.findall(text)] or _COLUMNS.findall(
        text
    )
    return [
        {
            "description": name.strip(),
            "quantity": int(quantity),
            "unit_price": unit_price,
            "amount": round(int(quantity) * unit_price, 2),
        }
        for name, quantity, price in found[:50]
        if (unit_price := parse_amount(price)) is not None
    ]


def _amount(match: re.Match[str] | None) -> float | None:
    return parse_amount(match[1]) if match else None


def parse_amount(text: str) -> float | None:
    """A number as invoices write it: 1,234.50 or 1.234,50 or 1'234.50."""
    digits = re.sub(r"[ ']", "", text)
    mark = max(digits.rfind("."), digits.rfind(","))
    if mark >= 0 and len(digits) - mark - 1 != 3:
        digits = re.sub(r"[.,]", "", digits[:mark]) + "." + digits[mark + 1 :]
    else:
        digits = re.sub(r"[.,]", "", digits)
    try:
        return float(digits)
    except ValueError:
        return None


def _iso(text: str) -> str:
    """The date in ISO form; what cannot be a date stays as it was written."""
    plain = re.sub(r"(?<=\d)[./](?=\d)", "-", text).replace(",", "").replace(".", "")
    for form in _DATE_FORMS:
        with suppress(ValueError):
            return datetime.strptime(plain, form).date().isoformat()
    return text
