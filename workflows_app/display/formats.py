"""How numbers, money and times read, the same on pages, in charts and in graphs."""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import wraps
from math import floor, isfinite, log10
from typing import Any, NamedTuple

Number = int | float | Decimal
MISSING = "–"
MINUS = "−"
NOISE = 1e-9  # of a cost, as assertions have it


def signed(read: Callable[[float], str]) -> Callable[[Number | None], str]:
    """Let a format of absolute values take any value: with its sign, and a dash for what is unknown."""

    @wraps(read)
    def whole(value: Number | None) -> str:
        if value is None or not isfinite(value):
            return MISSING
        return (MINUS if value < 0 else "") + read(abs(float(value)))

    return whole


@signed
def duration(value: float) -> str:
    """Milliseconds as `812 ms`, `3.4 s`, `2 min 5 s`, `1h 3 min`, `2d 4h`."""
    if 0 < value < 9.95:
        return f"{value:.1f} ms".replace(".0 ", " ")
    if value < 999.5:
        return f"{value:.0f} ms"
    if value < 59_950:
        return f"{value / 1000:.1f} s"
    seconds = round(value / 1000)
    for unit, size, below, below_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, " min", 60),
        (" min", 60, " s", 1),
    ):
        if seconds >= size:
            rest = seconds % size // below_size
            return f"{seconds // size:,}{unit}" + (f" {rest}{below}" if rest else "")
    return f"{seconds} s"


@signed
def cost(value: float) -> str:
    """Dollars with as many digits as matter; an unknown cost is a dash, never zero."""
    if value == 0:
        return "$0"
    if value < 0.00001:
        return "<$0.00001"
    if value < 0.00095:
        return f"${value:.{1 - floor(log10(value))}f}"
    if value < 0.99995:
        return f"${value:.4f}"
    return f"${value:,.2f}" if value < 999.995 else f"${value:,.0f}"


@signed
def score(value: float) -> str:
    """A score with two digits; only a perfect one reads 1.00 and only nothing reads 0.00."""
    if 0.99 < value < 1:
        return "0.99"
    if 0 < value < 0.01:
        return "0.01"
    return f"{value:.2f}"


@signed
def percent(fraction: float) -> str:
    """A fraction of one as percent; only all reads 100% and only none reads 0%."""
    value = fraction * 100
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f}%"
    if 0 < value < 0.95:
        return f"{max(value, 0.1):.1f}%"
    return f"{value:.0f}%"


@signed
def count(value: float) -> str:
    """A whole number with thousands separators."""
    return f"{value:,.0f}"


def short_hash(text: str) -> str:
    """As many letters as distinguish one version from another."""
    return text[:7]


_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|(?<=##)(?=\[)")


def for_terminal(text: str) -> str:
    """A text for a terminal or a CI log, without what either would obey: control characters and `##[`."""
    return _UNPRINTABLE.sub(lambda found: "\ufffd" if found[0] else " ", text)


def kind_not_in_message(error: Mapping[str, Any]) -> str:
    """The type of an error, unless its message names it already."""
    kind = str(error.get("type") or "")
    return "" if kind in str(error.get("message") or "") else kind


def failure(error: Mapping[str, Any]) -> str:
    """An error on one line, with its type once."""
    return ": ".join(part for part in (kind_not_in_message(error), str(error.get("message") or "")) if part)


class Metric(NamedTuple):
    """What people call a metric, how its values are written, and which way is better."""

    label: str
    write: Callable[[Number | None], str]
    better: str  # higher, lower, neither
    # Where two values would read alike: what surrounds the digits, the fewest of them, and what the value is multiplied by.
    unit: str
    fewest_digits: int
    factor: float = 1


METRICS = {
    "score": Metric("Score", score, "higher", "{}", 3),
    "pass_rate": Metric("Pass rate", percent, "higher", "{}%", 1, 100),
    "cost": Metric("Cost", cost, "lower", "${}", 2),
    "latency": Metric("Latency", duration, "lower", "{} ms", 1),
    "tokens": Metric("Tokens", count, "lower", "{}", 1),
    "runs": Metric("Runs", count, "neither", "{}", 1),
}
# Under these names a metric's changes are in percent.
IN_PERCENT = {f"{name}_pct": name for name, known in METRICS.items() if known.better == "lower"}
MOST_DIGITS = 12


def metric_named(name: str) -> Metric:
    """One of the metrics; one named in a workflow is a score."""
    return METRICS.get(name) or METRICS["score"]._replace(label=name[:1].upper() + name[1:])


def metric(value: Number | None, name: str) -> str:
    """A value of the named metric with its unit."""
    return metric_named(name).write(value)


def reads_alike(one: Number | None, other: Number | None, name: str) -> bool:
    """Whether two values of a metric look the same."""
    return metric(one, name) == metric(other, name)


def distinguish(one: Number | None, other: Number | None, name: str) -> tuple[str, str]:
    """Two values as `metric` writes them, with as many digits as it takes where they would read alike."""
    short = metric(one, name), metric(other, name)
    if not reads_alike(one, other, name) or one is None or other is None or one == other:
        return short
    known = metric_named(name)
    if name == "latency" and min(one, other) >= 1000:
        known = known._replace(factor=0.001, unit="{} s")
    for digits in range(known.fewest_digits, MOST_DIGITS):
        texts = [f"{float(value) * known.factor:,.{digits}f}" for value in (one, other)]
        if texts[0] != texts[1]:
            first, second = (known.unit.format(text).replace("-", MINUS) for text in texts)
            return first, second
    return short


@dataclass(frozen=True)
class Change:
    """A difference in words: its signed text, where it points and whether that is good."""

    text: str
    direction: str  # up, down, same
    verdict: str  # better, worse, same, neutral


def change(value: Number | None, name: str = "score") -> Change:
    """What a difference means for the metric: more score is better, more cost is worse."""
    if value is None or not isfinite(value):
        return Change(MISSING, "same", "same")
    number = float(value)
    size = f"{abs(number):.1f}%" if name in IN_PERCENT else _size(abs(number), name)
    if size.startswith("<") or not any(digit in size for digit in "123456789"):
        return Change(size if size.startswith("<") else f"±{size}", "same", "same")
    sign, direction = ("+", "up") if number > 0 else (MINUS, "down")
    better = metric_named(IN_PERCENT.get(name, name)).better
    if better == "neither":
        verdict = "neutral"
    else:
        verdict = "better" if (number > 0) == (better == "higher") else "worse"
    return Change(f"{sign}{size}", direction, verdict)


def _size(number: float, name: str) -> str:
    if name == "pass_rate":
        return f"{number * 100:.1f} pts"
    if name == "cost" and NOISE < number < 0.00001:
        return f"${number:.{1 - floor(log10(number))}f}"
    # A small difference of scores is small: `score` would round it up to 0.01.
    return metric(number, name) if name in METRICS and name != "score" else f"{number:.2f}"


STEPS = ((60, 1, " s"), (3600, 60, " min"), (86400, 3600, "h"), (30 * 86400, 86400, "d"))


def relative_time(moment: dt.datetime, now: dt.datetime) -> str:
    """`just now`, `42 s ago`, `3 min ago`, `in 2h`; beyond a month the date. static/js/time.js says the same."""
    seconds = int((now - moment).total_seconds())
    if abs(seconds) < 5:
        return "just now"
    for limit, size, unit in STEPS:
        if abs(seconds) < limit:
            amount = f"{abs(seconds) // size}{unit}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return f"{moment.day} {moment:%b %Y}"


STATUSES = {
    # word: (label, icon, tone)
    "pending": ("Pending", "pending", "idle"),
    "running": ("Running", "running", "busy"),
    "completed": ("Completed", "completed", "good"),
    "failed": ("Failed", "failed", "bad"),
    "skipped": ("Skipped", "skipped", "idle"),
    "cancelled": ("Cancelled", "cancelled", "warn"),
}
VERDICTS = {
    "passed": ("Passed", "passed", "good"),
    "failed": ("Failed", "failed", "bad"),
    "error": ("Error", "error", "warn"),
    "unfinished": ("Unfinished", "none", "idle"),
    "none": ("Not evaluated", "none", "idle"),
}


def verdict_of(passed: bool | None, *, has_failed: bool) -> str:
    """failed if anything failed, error if nothing did but something could not be checked; none without a verdict."""
    if passed is None:
        return "none"
    return "passed" if passed else "failed" if has_failed else "error"


def result_word(*, passed: bool, error: bool) -> str:
    """The verdict on one assertion."""
    return "error" if error else "passed" if passed else "failed"


def verdict_word(value: object) -> str:
    """The verdict named by a boolean, a word, or nothing."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "passed" if value else "failed"
    return str(value)


def iso(moment: dt.datetime | None) -> str | None:
    """A time as every answer writes it: ISO 8601 in UTC."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
