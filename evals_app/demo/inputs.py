"""Made-up inputs for the demo's runs: the same seed gives the same ones."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

VENDORS = (
    "Nordlicht Papier GmbH", "Harbour Street Coffee Ltd", "Blue Fern Hosting Inc", "Atelier Moreau SAS", "Kestrel Logistics Ltd",
    "Sundström Möbler AB", "Quarry Lane Printing Ltd", "Ostrava Tools Inc", "Pine & Fielding LLC", "Verdi Catering GmbH",
)  # fmt: skip
ITEMS = (
    ("Copy paper A4, box", 21.5), ("Toner cartridge", 64.0), ("Espresso beans, 1 kg", 18.9), ("Virtual server, month", 42.0),
    ("Office chair", 189.0), ("Pallet delivery", 75.0), ("Business cards, 500", 39.0), ("Torx set", 27.4),
    ("Consulting, hour", 120.0), ("Lunch buffet, person", 14.5), ("Standing desk", 412.0), ("Domain, year", 12.0),
)  # fmt: skip
CURRENCIES = ("EUR", "EUR", "GBP", "USD", "SEK")
MESSAGES = (
    "I was charged twice for my subscription in {month}. Order #{ref}. Please refund one of them. {name}",
    "The app shows an error 500 when I open the report page, since {month}. It crashes every time. {name}",
    "I cannot log in any more, the password reset mail for ticket #{ref} never arrives. Regards, {name}",
    "My parcel #{ref} has not moved for a week, the tracking says it is still at the depot. {name}",
    "It would be great if you could add a dark theme to the mobile app. Thanks, {name}",
    "This is the third time I write: our production dashboard is down and all users are affected, urgent! Ticket #{ref}. {name}",
    "Thank you for the quick help with invoice #{ref}, you are awesome. {name}",
    "Where can I download the receipt of order #{ref}? My accountant asks for {month}. {name}",
)
NAMES = ("Maya", "Oskar", "Priya", "Tomás", "Ines", "Yusuf", "Hanna", "Kofi", "Elena", "Jun")
MONTHS = ("August", "September", "October", "November")
TOPICS = (
    "heat pumps for small offices", "the market for refurbished laptops", "four-day weeks in customer support", "rail freight to Portugal",
    "passkeys instead of passwords", "vertical farming near cities", "open banking in Scandinavia", "the price of lithium",
    "remote audits", "e-bikes as company vehicles", "city tree planting", "second-hand furniture leasing", "water reuse in laundries",
)  # fmt: skip
COMMITS = (
    "feat(export): write CSV with the user's separator", "fix(login): keep the session after a password change",
    "perf(search): cache the last query's facets", "docs: explain the retention setting", "feat(api): page runs by cursor",
    "fix(mail): escape names with quotes", "chore: bump dependencies", "refactor(billing): one rule for rounding",
    "feat(ui): dark theme for charts", "fix(sync): do not send an empty batch", "perf(db): index events by run",
    "feat(roles): an operator may cancel runs", "fix(import): accept CRLF files", "test: cover the leap day",
)  # fmt: skip


def invoice(chance: random.Random) -> dict[str, Any]:
    day = date(2026, 8, 1) + timedelta(days=chance.randrange(100))
    currency = chance.choice(CURRENCIES)
    lines, subtotal = [], 0.0
    for name, price in chance.sample(ITEMS, chance.randint(1, 4)):
        count = chance.randint(1, 12)
        subtotal += count * price
        lines.append(f"{count} x {name} @ {price:.2f}")
    tax = round(subtotal * 0.19, 2)
    text = "\n".join(
        (
            chance.choice(VENDORS),
            f"Invoice number: INV-{chance.randint(1000, 99999)}",
            f"Invoice date: {day.isoformat()}",
            f"Due date: {(day + timedelta(days=30)).isoformat()}",
            *lines,
            f"Subtotal: {subtotal:.2f} {currency}",
            f"VAT 19 %: {tax:.2f} {currency}",
            f"Total: {subtotal + tax:.2f} {currency}",
        )
    )
    return {"invoice_text": text}


def message(chance: random.Random) -> dict[str, Any]:
    text = chance.choice(MESSAGES)
    return {
        "message": text.format(
            month=chance.choice(MONTHS), ref=chance.randint(10000, 99999), name=chance.choice(NAMES)
        )
    }


def topic(chance: random.Random) -> dict[str, Any]:
    return {"topic": chance.choice(TOPICS)}


def release(chance: random.Random) -> dict[str, Any]:
    return {
        "release": f"{chance.randint(1, 4)}.{chance.randint(0, 12)}.{chance.randint(0, 9)}",
        "commits": "\n".join(chance.sample(COMMITS, chance.randint(4, 8))),
    }
