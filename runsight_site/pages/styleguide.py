"""Sample data for the style guide: every state, and the awkward cases too."""

import datetime as dt
import re
from math import cos, sin
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from evals_app import charts
from evals_app.assertions import PassingRange
from workflows_app.display import formats
from workflows_app.display.diff import side_by_side
from workflows_app.graph.draw import graph_svg
from workflows_app.graph.layout import GraphEdge, GraphNode, layout

LONG_NAME = "quarterly-supplier-invoice-extraction-with-a-name-nobody-would-type-twice-" * 3
RIGHT_TO_LEFT = "استخراج الفواتير"
_BEFORE = "\n".join(f"  step_{i}: {{type: code}}" for i in range(12))
SAMPLE_VERSIONS = (
    f'{_BEFORE}\n  analyze:\n    prompt: "Analyse carefully the topic"\n    type: llm',
    f'{_BEFORE}\n  analyze:\n    prompt: "Analyse briefly the topic"\n    timeout_seconds: 30\n    type: llm',
)
TONES = ("", "good", "bad", "warn", "busy", "accent", "outline")


def icon_names() -> list[str]:
    """Every drawing in the sprite."""
    sprite: Path = settings.ASSET_DIR / "static" / "img" / "icons.svg"
    return re.findall(r'<symbol id="([^"]+)"', sprite.read_text())


def context() -> dict[str, Any]:
    """What the style guide's template prints."""
    now = timezone.now()
    return {
        "statuses": formats.STATUSES,
        "verdicts": formats.VERDICTS,
        "tones": TONES,
        "icons": icon_names(),
        "times": [now - dt.timedelta(seconds=s) for s in (1, 42, 200, 7300, 400_000, 9_000_000)],
        "now": now,
        "runs": sample_runs(now),
        "durations": [0.4, 812, 3400, 125_000, 3_780_000, None],
        "costs": [0, 0.0000123, 0.0123, 3.5, 1234.5, None],
        "deltas": [
            (-0.09, "score"),
            (0.04, "score"),
            (0, "score"),
            (12.5, "cost_pct"),
            (-30, "latency_pct"),
            (None, "score"),
        ],
        "diff": side_by_side(*SAMPLE_VERSIONS),
        "sparklines": sample_sparklines(),
        "trends": sample_trends(now),
        "graphs": sample_graphs(),
        "strips": [
            charts.strip([i % 9 != 4 for i in range(42)]),
            charts.strip(["passed", "failed", "error", None]),
            charts.strip([]),
        ],
        "histograms": [
            charts.histogram([wave(i) for i in range(1000)], PassingRange(0.8, None, "score")),
            charts.histogram(
                [900 + 700 * wave(i) ** 3 for i in range(1000)],
                PassingRange(None, 1500, "latency"),
                metric="latency",
            ),
            charts.histogram([]),
        ],
        "long_name": LONG_NAME,
        "rtl_name": RIGHT_TO_LEFT,
        "long_text": "The quick brown fox jumps over the lazy dog.\n" * 24,
    }


def sample_runs(now: dt.datetime) -> list[dict[str, Any]]:
    """Runs of every state, one with an overlong name and one right-to-left."""
    runs = (
        ("invoice-extraction", "completed", True, 0.02),
        ("support-triage", "running", None, None),
        (LONG_NAME, "completed", False, -0.18),
        (RIGHT_TO_LEFT, "failed", "error", -0.3),
        ("release-notes", "pending", None, None),
        ("contract-review", "cancelled", None, None),
    )
    return [
        {
            "number": 412 - index,
            "workflow": name,
            "status": status,
            "verdict": verdict,
            "score": None if verdict is None else 0.93 - index / 9,
            "delta": delta,
            "cost": None if status == "pending" else 0.0123 * (index + 1),
            "duration": None if status == "pending" else 812.0 * 5**index,
            "at": now - dt.timedelta(minutes=7 ** (index + 1) // 10),
        }
        for index, (name, status, verdict, delta) in enumerate(runs)
    ]


def wave(index: int) -> float:
    """A number between 0.6 and 1 that looks measured and is always the same."""
    return 0.86 + 0.09 * sin(index * 1.7) * cos(index * 0.37) + 0.05 * sin(index * 0.11)


def sample_sparklines() -> list[Any]:
    """A fall, a rise, one with a gap, and none."""
    fall = [0.97 - (0.015 * i if i > 8 else 0) + wave(i) / 40 for i in range(14)]
    return [
        charts.sparkline(fall, metric="pass_rate", tone="bad"),
        charts.sparkline([wave(i) for i in range(14)]),
        charts.sparkline([1.0, 1.2, None, 1.4, 1.3, 1.9], metric="cost"),
        charts.sparkline([]),
    ]


def sample_points(count: int, now: dt.datetime, worse_from: int) -> list[charts.TrendPoint]:
    """Runs that get worse from one of them on, with a failed evaluation and a missing value."""
    points = []
    for index in range(count):
        value: float | None = min(wave(index) + 0.04, 1.0) - (0.16 if index >= worse_from else 0)
        verdict = "passed" if value and value > 0.79 else "failed"
        if index % 37 == 20:
            value, verdict = None, "error"
        version = "v7" if index >= worse_from else "v6"
        at = now - dt.timedelta(hours=5 * (count - index))
        points.append(charts.TrendPoint(value, verdict, f"#{index + 1}", "#sg-charts", at, version))
    return points


def sample_trends(now: dt.datetime) -> list[tuple[str, Any]]:
    """No run, one, many, and ten thousand."""
    band = charts.BaselineBand(0.9, 0.8, 0.97)
    marks = [
        charts.VersionMark(0, "v5"),
        charts.VersionMark(34, "v6", "#sg-charts"),
        charts.VersionMark(70, "v7", "#sg-charts"),
    ]
    worse = charts.RegressionMark(70, "quality_drop since #71", "#sg-charts")
    many = sample_points(100, now, 70)
    costs = [
        charts.TrendPoint((p.value or 1) / 70, p.verdict, p.label, p.href, p.at, p.version) for p in many[80:]
    ]
    thousands = sample_points(10_000, now, 7000)
    return [
        ("100 runs", charts.trend_chart(many, baseline=band, versions=marks, regressions=[worse])),
        ("Cost", charts.trend_chart(costs, baseline=charts.BaselineBand(0.0128), metric="cost", height=180)),
        ("10,000 runs", charts.trend_chart(thousands, baseline=band, width=360, height=180)),
        ("One run", charts.trend_chart(many[:1], height=140)),
        ("No run", charts.trend_chart([], height=140)),
    ]


def sample_graphs() -> list[tuple[str, Any]]:
    """A chain with a gate, a loop around two blocks, an error route, awkward names."""

    def node(name: str, kind: str, status: str, **fields: Any) -> GraphNode:
        return GraphNode(name, kind, status=status, href="#sg-graphs", **fields)

    nodes = [
        node("fetch", "code", "completed", score=1.0, dots=("passed",)),
        node("extract", "llm", "completed", score=0.62, dots=("passed", "failed", "passed", "error")),
        node("is_complete", "gate", "completed"),
        node("refine", "loop", "running"),
        node("draft", "llm", "completed", score=0.91, dots=("passed",) * 12, parent="refine"),
        node("critique", "llm", "running", parent="refine"),
        node("publish", "workflow", "pending"),
        node(LONG_NAME, "dispatch", "skipped"),
        node("apologise", "llm", "failed", label=RIGHT_TO_LEFT),
    ]
    edges = [
        GraphEdge("fetch", "extract"),
        GraphEdge("extract", "is_complete"),
        GraphEdge("is_complete", "refine", "pass", "route"),
        GraphEdge("is_complete", LONG_NAME, "fail", "route"),
        GraphEdge("extract", "apologise", "on error", "error"),
        GraphEdge("draft", "critique"),
        GraphEdge("refine", "publish"),
        GraphEdge(LONG_NAME, "publish"),
        GraphEdge("fetch", "publish"),
    ]
    definition = [GraphNode(name, "llm") for name in ("analyze", "tidy", "summarise")]
    chain = [GraphEdge("analyze", "tidy"), GraphEdge("tidy", "summarise")]
    return [
        ("A run", graph_svg(layout(nodes, edges))),
        ("A definition", graph_svg(layout(definition, chain))),
    ]
