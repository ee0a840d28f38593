"""How numbers, money and times read."""

import datetime as dt
from decimal import Decimal

import pytest
from django.template import Context, Template

from workflows_app.display import formats

NOW = dt.datetime(2026, 11, 16, 12, 0, tzinfo=dt.UTC)

CASES = [
    (
        formats.failure,
        {"type": "ValueError", "message": "ValueError: boom (line 2)"},
        "ValueError: boom (line 2)",
    ),
    (formats.failure, {"type": "timeout", "message": "It took too long."}, "timeout: It took too long."),
    (formats.failure, {"type": "error", "message": None}, "error"),
    (formats.duration, 0, "0 ms"),
    (formats.duration, 0.42, "0.4 ms"),
    (formats.duration, 3.0, "3 ms"),
    (formats.duration, 812, "812 ms"),
    (formats.duration, 999.7, "1.0 s"),
    (formats.duration, 3400, "3.4 s"),
    (formats.duration, 59_960, "1 min"),
    (formats.duration, 125_000, "2 min 5 s"),
    (formats.duration, 3_780_000, "1h 3 min"),
    (formats.duration, 187_200_000, "2d 4h"),
    (formats.duration, -20, "−20 ms"),
    (formats.duration, None, "–"),
    (formats.duration, float("nan"), "–"),
    (formats.cost, None, "–"),
    (formats.cost, 0, "$0"),
    (formats.cost, 0.0000012, "<$0.00001"),
    (formats.cost, 0.0000123, "$0.000012"),
    (formats.cost, 0.000275, "$0.00028"),  # 13% above $0.00024, and it must show
    (formats.cost, 0.0027, "$0.0027"),
    (formats.cost, Decimal("0.0123"), "$0.0123"),
    (formats.cost, 0.99999, "$1.00"),
    (formats.cost, 12.345, "$12.35"),
    (formats.cost, 1234.5, "$1,234"),
    (formats.score, 0.8634, "0.86"),
    (formats.score, 1, "1.00"),
    (formats.score, 0.999, "0.99"),
    (formats.score, 0.001, "0.01"),
    (formats.score, None, "–"),
    (formats.percent, 0.98, "98%"),
    (formats.percent, 0.99999, "99.9%"),
    (formats.percent, 0.0004, "0.1%"),
    (formats.percent, 1, "100%"),
    (formats.percent, 0, "0%"),
    (formats.count, 1234567, "1,234,567"),
    (formats.count, None, "–"),
]


@pytest.mark.parametrize(("function", "value", "text"), CASES)
def test_a_number_reads_with_its_unit(function, value, text):
    assert function(value) == text


@pytest.mark.parametrize(
    ("value", "name", "text", "verdict"),
    [
        (-0.09, "score", "−0.09", "worse"),
        (0.04, "score", "+0.04", "better"),
        (0.001, "score", "±0.00", "same"),
        (-0.000006, "cost", "−$0.0000060", "better"),
        (1e-10, "cost", "<$0.00001", "same"),
        (12.5, "cost_pct", "+12.5%", "worse"),
        (-30, "latency_pct", "−30.0%", "better"),
        (0.0, "tokens_pct", "±0.0%", "same"),
        (-0.032, "pass_rate", "−3.2 pts", "worse"),
        (88, "runs", "+88", "neutral"),
        (0.05, "politeness", "+0.05", "better"),
        (None, "score", "–", "same"),
    ],
)
def test_a_change_knows_which_way_is_better(value, name, text, verdict):
    assert (formats.change(value, name).text, formats.change(value, name).verdict) == (text, verdict)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (42, "42 s ago"),
        (200, "3 min ago"),
        (7300, "2h ago"),
        (400_000, "4d ago"),
        (40 * 86400, "7 Oct 2026"),
        (-90, "in 1 min"),
    ],
)
def test_a_time_reads_relative_until_it_is_a_month_old(seconds, text):
    assert formats.relative_time(NOW - dt.timedelta(seconds=seconds), NOW) == text


def render(source: str, **values: object) -> str:
    return Template("{% load runsight %}" + source).render(Context(values))


def test_a_status_badge_has_an_icon_and_a_word():
    badge = render("{% status word %}", word="running")
    assert "#running" in badge and "Running" in badge and "badge--busy" in badge and "icon--spin" in badge


@pytest.mark.parametrize(
    ("value", "word"),
    [(True, "Passed"), (False, "Failed"), (None, "Not evaluated"), ("error", "Error"), ("passed", "Passed")],
)
def test_a_verdict_is_reported_by_word(value, word):
    assert word in render("{% verdict value %}", value=value)


def test_an_unknown_status_is_shown_escaped_instead_of_breaking_the_page():
    badge = render("{% status word %}", word="<b>odd")
    assert "&lt;b&gt;odd" in badge and "<b>" not in badge


def test_a_worse_change_says_so_to_a_screen_reader():
    html = render('{{ value|delta:"cost_pct" }}', value=12.5)
    assert "delta--worse" in html and "+12.5%" in html and "worse</span>" in html


def test_a_relative_time_carries_the_exact_one():
    html = render("{{ moment|ago }}", moment=NOW.astimezone(dt.timezone(dt.timedelta(hours=5))))
    assert 'datetime="2026-11-16T12:00:00.000Z"' in html and 'title="2026-11-16 12:00:00 UTC"' in html


def test_a_labelled_icon_is_an_image_and_an_unlabelled_one_is_hidden():
    assert 'role="img" aria-label="Copy"' in render('{% icon "copy" label="Copy" %}')
    assert 'aria-hidden="true"' in render('{% icon "copy" %}')
