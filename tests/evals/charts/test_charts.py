"""Charts are well-formed, harmless and readable for no run, one run and very many."""

import datetime as dt
import itertools
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from evals_app.assertions import PassingRange
from evals_app.charts import (
    BaselineBand,
    RegressionMark,
    TrendPoint,
    VersionMark,
    histogram,
    sparkline,
    strip,
    trend_chart,
)
from evals_app.charts.scale import round_step, tick_label, value_axis

HOSTILE = "</title><script>alert(1)</script>\" onload='x' \x00\ud800&"
GRAPHICS = Path(__file__).resolve().parents[3] / "static/css/graphics.css"
NOON = dt.datetime(2026, 11, 16, 12, 0, tzinfo=dt.UTC)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def marks(svg: str) -> list[ET.Element]:
    return [e for e in parsed(svg).iter() if e.get("class", "").startswith("mark ")]


def points(*values: float | None, verdict: object = "passed") -> list[TrendPoint]:
    return [TrendPoint(v, verdict, f"#{i + 1}", f"/runs/{i + 1}/", NOON, "v7") for i, v in enumerate(values)]


def test_no_run_is_said_in_words():
    assert "No completed runs to draw." in "".join(parsed(trend_chart([])).itertext())


def test_a_long_label_in_the_middle_gives_way_at_a_phones_width():
    named = [TrendPoint(1.0, "passed", f"outline #{n}", None, NOON, "v1") for n in range(1, 8)]
    assert trend_chart(named).count("chart__tick--wide") == 1
    assert "chart__tick--wide" not in trend_chart(points(*[1.0] * 7))


def test_one_run_stands_in_the_middle_and_links_to_its_page():
    (mark,) = marks(trend_chart(points(0.8)))
    assert mark.get("href") == "/runs/1/"
    assert mark.find("circle").get("cx") == "50%"
    assert mark.find("title").text == "#1 · 0.80 · passed · v7 · 16 Nov 2026 12:00"


def test_a_verdict_has_a_shape_of_its_own():
    shapes = {}
    for verdict in (True, False, "error", None):
        (mark,) = marks(trend_chart([TrendPoint(0.5, verdict)]))
        shape = mark[-1] if mark[-1].tag != "svg" else mark[-1][0]
        shapes[verdict] = (shape.tag, shape.get("d"), mark.get("class"))
    assert len(set(shapes.values())) == 4
    assert len({shapes[v][:2] for v in (True, False, "error")}) == 3


def test_ten_thousand_runs_become_a_bounded_number_of_marks_that_lose_no_run():
    many = points(*[0.9] * 9_999, 0.1)
    drawn = marks(trend_chart(many, width=960))
    assert 80 <= len(drawn) <= 110
    assert sum(int(m.find("title").text.split(" · ")[-1].split()[0]) for m in drawn) == 10_000
    assert len(trend_chart(many)) < 60_000


def test_a_group_links_to_its_first_bad_run_and_counts_them():
    many = points(*[0.9] * 1000)
    many[3] = TrendPoint(0.2, False, "#4", "/runs/bad/")
    first = marks(trend_chart(many, width=700))[0]
    assert first.get("href") == "/runs/bad/"
    assert "1 of 13 not passed" in first.find("title").text
    assert "mark--passed" in first.get("class")


def test_a_missing_value_breaks_the_line_and_keeps_its_mark():
    svg = trend_chart(points(0.9, 0.8, None, 0.7, math.nan, 0.6))
    (line,) = [e for e in parsed(svg).iter() if e.get("class") == "chart__line"]
    assert line.get("d").count("M") == 3 and line.get("d").count("L") == 1
    assert len(marks(svg)) == 6


def test_only_missing_values_still_draw():
    assert len(marks(trend_chart(points(None, math.inf, verdict="error")))) == 2


def test_runs_without_any_value_are_not_drawn_as_zero():
    svg = trend_chart(points(None, None, verdict=None))
    assert "No score to draw: these runs have none." in svg and not marks(svg)
    assert "No pass rate to draw" in trend_chart(points(None, verdict=None), metric="pass_rate")


def test_the_baseline_has_a_dashed_line_an_interval_and_its_number():
    svg = trend_chart(points(0.8, 0.9), baseline=BaselineBand(0.85, 0.7, 0.95))
    classes = [e.get("class") for e in parsed(svg).iter()]
    assert classes.count("chart__typical") == classes.count("chart__band") == 1
    assert "typically 0.85" in svg
    assert "chart__band" not in trend_chart(points(0.8), baseline=BaselineBand(0.85))


def test_versions_are_marked_with_a_link_and_labels_do_not_collide():
    versions = [VersionMark(i, f"v{i}", f"/versions/{i}/") for i in range(200)]
    svg = parsed(trend_chart(points(*[0.5] * 200), versions=versions, width=960))
    linked = [e for e in svg.iter() if e.get("class") == "chart__change" and e.find("line") is not None]
    (crowded,) = [e for e in svg.iter() if e.get("class") == "chart__crowd"]
    assert 15 <= len(linked) <= 25 and len(linked) + crowded.get("d").count("M") == 200
    labels = [float(e.get("x")[:-1]) for e in svg.iter() if e.get("class") == "chart__version-label"]
    assert labels and min(b - a for a, b in itertools.pairwise(labels)) * 9.6 >= 45
    few = parsed(trend_chart(points(*[0.5] * 200), versions=versions[:40], width=960))
    assert [e.get("href") for e in few.iter() if e.get("class") == "chart__change"][7] == "/versions/7/"


def test_a_regression_shades_from_where_it_began():
    svg = parsed(trend_chart(points(*[0.5] * 10), regressions=[RegressionMark(5, "worse", "/r/", until=8)]))
    (region,) = [e for e in svg.iter() if e.get("class") == "chart__worse"]
    assert (region.get("x"), region.get("width")) == ("50%", "30%")


def test_hostile_names_stay_text():
    point = TrendPoint(0.5, False, HOSTILE, HOSTILE, NOON, HOSTILE)
    svg = trend_chart(
        [point] * 2,
        versions=[VersionMark(1, HOSTILE, HOSTILE)],
        regressions=[RegressionMark(1, HOSTILE)],
        metric=HOSTILE,
        title=HOSTILE,
    )
    root = parsed(svg)
    assert not [e for e in root.iter() if e.tag == "script" or e.get("onload")]
    assert "</title><script>" in "".join(root.itertext())
    parsed(sparkline([1.0], title=HOSTILE))
    parsed(strip([True], title=HOSTILE))
    parsed(histogram([1.0], metric=HOSTILE))


@pytest.mark.parametrize(
    ("span", "parts", "step"), [(1.0, 4, 0.25), (0.2, 4, 0.05), (7.3, 4, 2), (1000, 4, 250), (0, 4, 1e-12)]
)
def test_steps_are_round(span, parts, step):
    assert round_step(span, parts) == pytest.approx(step)


@pytest.mark.parametrize(
    ("values", "metric", "low", "high"),
    [
        ([0.9, 1.0], "score", 0.8, 1.0),
        ([0.1, 1.0], "score", 0.0, 1.0),
        ([], "score", 0.0, 1.0),
        ([120.0, 870.0], "latency", 0.0, 1000.0),
        ([0.0], "cost", 0.0, 1.0),
        ([0.0123], "cost", 0.0, 0.015),
    ],
)
def test_an_axis_shows_small_changes_of_scores_and_amounts_from_zero(values, metric, low, high):
    axis = value_axis(values, metric)
    assert (axis.low, axis.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("value", "step", "metric", "label"),
    [
        (0.005, 0.005, "cost", "$0.005"),
        (0.0, 0.005, "cost", "$0"),
        (0.00002, 0.00001, "cost", "$0.00002"),
        (0.25, 0.25, "score", "0.25"),
        (0.5, 0.5, "score", "0.5"),
        (1500, 500, "latency", "1.5 s"),
        (0.75, 0.25, "pass_rate", "75%"),
        (12000, 4000, "tokens", "12,000"),
    ],
)
def test_ticks_have_units_and_enough_digits(value, step, metric, label):
    assert tick_label(value, step, metric) == label


@pytest.mark.parametrize(
    "values", [[], [None], [0.5], [0.5, 0.5], [1, None, 3], [math.nan, 1.0], [float(i) for i in range(500)]]
)
def test_a_sparkline_draws_whatever_there_is(values):
    assert parsed(sparkline(values)).get("role") == "img"


def test_a_sparkline_goes_straight_across_what_is_missing():
    path = parsed(sparkline([0.5, None, None, 1.0, None])).find("path[@class='sparkline__line']")
    assert path.get("d").count("M") == 1 and path.get("d").count("L") == 1


@pytest.mark.parametrize("values, dashed", [([], 1), ([0.5], 1), ([None, 0.5], 1), ([0.5, 0.6], 0)])
def test_a_sparkline_without_a_shape_is_dashed(values, dashed):
    assert sparkline(values).count("sparkline__none") == dashed


def test_a_sparkline_says_where_it_went():
    assert parsed(sparkline([0.9, 0.7], metric="pass_rate")).find("title").text == "from 90% to 70%"


def test_a_strip_shows_failures_by_height_and_never_hides_one():
    paths = {path.get("class"): path.get("d") for path in parsed(strip([True, True, False, "error"]))}
    assert paths.pop(None, None) is None  # the title
    assert paths == {
        "mark mark--passed": "M0 14h12",
        "mark mark--failed": "M14 10h5",
        "mark mark--error": "M21 4.25h5M21 15.75h5",
    }
    thickness = dict(re.findall(r"\.strip \.(mark[\w-]*) \{.*?stroke-width: ([\d.]+)", GRAPHICS.read_text()))
    assert float(thickness["mark--failed"]) > float(thickness["mark"])
    many = strip([True] * 4999 + [False])
    assert many.count("M") <= 160 and many.count("mark--failed") == 1
    assert "4,999 of 5,000 passed" in many
    assert "No cases yet" in strip([])


def test_a_histogram_splits_at_the_threshold():
    svg = histogram([i / 100 for i in range(100)], PassingRange(0.6, None, "score"))
    bars = [e for e in parsed(svg).iter() if e.tag == "rect"]
    failed = [b for b in bars if "mark--failed" in b.get("class")]
    assert 0 < len(failed) < len(bars)
    assert "40 on the passing side" in svg and "threshold 0.6" in svg
    below = histogram([i / 100 for i in range(100)], PassingRange(None, 0.6, "score"))
    assert "61 on the passing side" in below


def test_a_histogram_of_nothing_or_of_one_value_draws():
    assert "No measured values yet." in histogram([])
    assert (
        parsed(histogram([5.0] * 10, PassingRange(5.0, None, "latency"), metric="latency")).find("svg")
        is not None
    )


def test_a_histogram_with_two_thresholds_passes_between_or_outside_them():
    values = [float(i) for i in range(100)]
    inside = histogram(values, PassingRange(20, 59, "tokens"), metric="tokens")
    assert "40 on the passing side of 20 and 59" in inside
    assert inside.count("chart__threshold") == 2
    outside = histogram(values, PassingRange(20, 59, "tokens", negated=True), metric="tokens")
    assert "60 on the passing side" in outside
    exact = histogram([1.0, 2.0, 3.0], PassingRange(2, 2, "tokens"), metric="tokens")
    assert exact.count("mark--passed") == 1 and exact.count("chart__threshold") == 1


@pytest.mark.parametrize(
    ("values", "y"), [([1.0, 1.0], 4), ([0.95, 1.0], 4), ([1.0, 0.9], 16), ([0.2, 0.0], 28)]
)
def test_a_sparkline_of_scores_has_what_is_perfect_on_top(values, y):
    drawn = parsed(sparkline(values, height=32))
    assert float(drawn.find("circle").get("cy")) == y


@pytest.mark.parametrize("metric", ["cost", "latency", "tokens", "score"])
@pytest.mark.parametrize("values", [[5e-324], [1e-320, 2e-320], [1.7e308], [-1e308, 1e308], [1e16], [-5.0]])
def test_values_that_no_axis_can_tell_apart_are_drawn_all_the_same(metric, values):
    parsed(sparkline(values, metric=metric))
    parsed(trend_chart(points(*values), metric=metric))
