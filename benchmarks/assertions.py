"""How fast the assertion engine is, beside the same primitives written by hand in the same run."""

from __future__ import annotations

import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions, validate_assertions  # noqa: E402

Work = Callable[[], object]
COST = 0.01


@dataclass
class Row:
    """One line of the table."""

    workload: str
    bound: str
    measured: str
    ok: bool


def p50(work: Work, seconds: float = 0.25) -> float:
    """Return the median time of one call, in seconds, over batches that a clock can resolve."""
    work()
    started = time.perf_counter()
    work()
    batch = max(1, int(0.0005 / max(time.perf_counter() - started, 1e-7)))
    samples = []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(samples) < 7:
        started = time.perf_counter()
        for _ in range(batch):
            work()
        samples.append((time.perf_counter() - started) / batch)
    return statistics.median(samples)


def against(ours: Work, theirs: Work, rounds: int = 7) -> tuple[float, float, float]:
    """Time two things in turn; of several rounds the quietest counts, since noise only ever adds."""
    pairs = [(p50(ours, 0.1), p50(theirs, 0.1)) for _ in range(rounds)]
    mine, other = min(mine for mine, _ in pairs), min(other for _, other in pairs)
    return mine, other, mine / other


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


def times(workload: str, bound: float, ours: Work, theirs: Work) -> Row:
    mine, other, ratio = against(ours, theirs)
    return Row(
        workload,
        f"≤ {bound:g}x",
        f"{ratio:.2f}x ({microseconds(mine)} / {microseconds(other)})",
        ratio <= bound,
    )


def runner(plan: AssertionPlan, output: str, **measures: Any) -> Work:
    context = AssertionContext(output=output, **measures)
    return lambda: plan.run(context)


def words(count: int, seed: int) -> list[str]:
    chooser = random.Random(seed)
    vocabulary = [
        "".join(chooser.choices("abcdefghijklmnopqrstuvwxyz", k=chooser.randint(2, 9))) for _ in range(400)
    ]
    return chooser.choices(vocabulary, k=count)


def prose(size: int, seed: int = 1) -> str:
    return " ".join(words(size // 4, seed))[:size]


def five_assertions() -> list[Row]:
    pattern = re.compile(r"\b[A-Z]\w+ed\b")
    rows = []
    for name, output in (
        ("prose", prose(1000) + " Finished ok"),
        ("JSON", json.dumps({"text": prose(900), "state": "Finished ok"})),
    ):
        plan = compile_assertions(
            [
                {"type": "contains", "value": "ok"},
                {"type": "regex", "value": pattern.pattern},
                {"type": "word-count", "value": {"min": 10, "max": 500}},
                {"type": "is-json"},
                {"type": "cost", "threshold": 0.05},
            ]
        )

        def by_hand(output: str = output) -> object:
            found = "ok" in output
            matched = pattern.search(output) is not None
            counted = 10 <= len(output.split()) <= 500
            try:
                json.loads(output)
                parsed = True
            except ValueError:
                parsed = False
            return found, matched, counted, parsed, COST <= 0.05

        rows.append(
            times(f"five assertions, 1 KB of {name}", 4, runner(plan, output, cost_usd=COST), by_hand)
        )
    return rows


def json_in_prose() -> list[Row]:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title", "tags"]}
    plan = compile_assertions([{"type": "contains-json", "value": schema}])
    found = json.dumps({"title": "x", "tags": ["a", "b"]})
    chooser = random.Random(3)

    def text(size: int, stray: str = "") -> str:
        body = list(prose(size))
        for place in sorted(chooser.sample(range(size), 400 if stray else 0), reverse=True):
            body.insert(place, chooser.choice(stray))
        return "".join(body) + " " + found

    plain = text(20_000)
    rows = [
        times(f"contains-json, 400 stray {stray}", 2, runner(plan, text(20_000, stray)), runner(plan, plain))
        for stray in ("{", "{}", "[", '{["')
    ]
    # Doubling is shown where the search has something to do as well as where it has not.
    rows += [
        times(f"contains-json, 40 KB / 20 KB, {name}", 2.3, runner(plan, big), runner(plan, small))
        for name, small, big in (
            ("plain", plain, text(40_000)),
            ("stray {", text(20_000, "{"), text(40_000, "{")),
            ("only [", "[" * 20_000 + found, "[" * 40_000 + found),
            ('only {"', '{"' * 10_000 + found, '{"' * 20_000 + found),
        )
    ]
    return rows


def ten_paths() -> list[Row]:
    items = [{"id": i, "name": f"item {i}", "tags": words(3, i), "price": i * 1.25} for i in range(600)]
    output = json.dumps({"items": items, "total": 600, "meta": {"page": {"next": "abc"}}})[:]
    mixed = [
        "$..id",
        "$.items[*].name",
        "$.items[5:].name",
        "$['meta']['page'].next",
        "$.items[?(@.id > 20)].name",
    ]
    return [
        times(
            f"{title}, {len(output) // 1000} KB",
            bound,
            runner(_paths_plan(paths, output), output),
            lambda: json.loads(output),
        )
        for title, bound, paths in (
            (
                "ten json_path",
                3,
                ["$.total", "$.meta.page.next", *(f"$.items[{i * 50}].name" for i in range(8))],
            ),
            ("ten json_path with .. * : ?()", 3, mixed * 2),
            ("one json_path, .. through everything", 5, ["$..next"]),  # a bound of our own
        )
    ]


def _paths_plan(paths: list[str], output: str) -> AssertionPlan:
    plan = compile_assertions(
        [{"type": "not-equals", "value": "?", "transform": f"json_path:{p}"} for p in paths]
    )
    assert plan.run(AssertionContext(output=output)).passed()
    return plan


def distance() -> Row:
    chooser = random.Random(5)
    one, other = ("".join(chooser.choices("abcdefghij ", k=10_000)) for _ in range(2))
    plan = compile_assertions([{"type": "levenshtein", "value": one, "threshold": 5}])
    taken = p50(runner(plan, other))
    return Row("levenshtein, two 10 KB texts, threshold 5", "< 50 µs", microseconds(taken), taken < 50e-6)


def bleu_by_hand(reference: list[Counter[Any]], size: int, text: str) -> float:
    tokens = text.lower().split()
    logs = []
    for order, wanted in enumerate(reference, 1):
        counts = Counter(zip(*(tokens[i:] for i in range(order)), strict=False))
        matches = sum(min(count, wanted[gram]) for gram, count in counts.items())
        total = max(1, len(tokens) - order + 1)
        logs.append(math.log(matches / total) if order == 1 else math.log((matches + 1) / (total + 1)))
    penalty = 1.0 if len(tokens) > size else math.exp(1 - size / len(tokens))
    return penalty * math.exp(sum(logs) / 4)


def rouge_by_hand(reference: Counter[str], size: int, text: str) -> float:
    tokens = re.findall(r"[a-z0-9]+", text.lower())
    counts = Counter(tokens)
    matches = sum(min(count, reference[word]) for word, count in counts.items())
    precision, recall = matches / len(tokens), matches / size
    return 2 * precision * recall / (precision + recall)


def similarity() -> list[Row]:
    rows = []
    for size in (1_000, 10_000):
        reference, output = prose(size, 1), prose(size, 1)[: size // 2] + prose(size, 2)[size // 2 :]
        tokens = reference.split()
        grams = [Counter(zip(*(tokens[i:] for i in range(order)), strict=False)) for order in range(1, 5)]
        plan = compile_assertions([{"type": "bleu", "value": reference}])
        rows.append(
            times(
                f"bleu, {size // 1000} KB",
                1.5,
                runner(plan, output),
                lambda grams=grams, tokens=tokens, output=output: bleu_by_hand(grams, len(tokens), output),
            )
        )
        plan = compile_assertions([{"type": "rouge-n", "value": reference}])
        rows.append(
            times(
                f"rouge-n, {size // 1000} KB",
                1.5,
                runner(plan, output),
                lambda grams=Counter(tokens), tokens=tokens, output=output: rouge_by_hand(
                    grams, len(tokens), output
                ),
            )
        )
    return rows


def thousand() -> Row:
    config = {"type": "contains", "value": "ok"}
    output = prose(1000)
    one, many = compile_assertions([config]), compile_assertions([config] * 1000)
    mine, single, ratio = against(runner(many, output), runner(one, output))
    per = ratio / 1000
    measured = f"{per:.2f}x ({microseconds(mine)} / 1,000 x {microseconds(single)})"
    return Row("1,000 assertions on one block", "≤ 1.2x", measured, per <= 1.2)


def importing() -> Row:
    script = (
        "import time; t = time.perf_counter(); import evals_app.assertions; print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:  # with bytecode, as installed; the first round writes it
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = cache
        taken = min(in_new_interpreter(script, env) for _ in range(9))
    return Row("import evals_app.assertions", "< 100 ms", f"{taken * 1000:.0f} ms", taken < 0.1)


def in_new_interpreter(script: str, env: dict[str, str] | None = None) -> float:
    command = [sys.executable, "-c", script]
    return float(subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True).stdout)


def validating() -> list[Row]:
    """Bounds of our own: a document with everything heavy in it, cold, and many plain assertions."""
    script = """
import time, evals_app.assertions as a, regex, jsonpath_ng.ext.parser, jsonschema
configs = [{"type": "is-json", "value": {"type": "object", "properties": {f"p{i}": {"type": "string"}}}} for i in range(40)]
configs += [{"type": "contains", "value": "x", "transform": f"json_path:$.a[?(@.b > {i})].c"} for i in range(40)]
configs += [{"type": "regex", "value": rf"^(foo{i}|bar)\\\\s+[0-9]{{1,3}}[a-z_]+$"} for i in range(200)]
t = time.perf_counter(); assert not a.validate_assertions(configs); print(time.perf_counter() - t)
"""
    command = [sys.executable, "-c", script]
    taken = [
        float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout) for _ in range(3)
    ]
    cold = statistics.median(taken)
    plain = [{"type": "contains", "value": "x"}, {"type": "cost", "threshold": 0.05}] * 300
    each = p50(lambda: validate_assertions(plain)) / len(plain)
    return [
        Row("validate 40 schemas, 40 paths, 200 patterns", "< 150 ms", f"{cold * 1000:.0f} ms", cold < 0.15),
        Row("validate a plain assertion", "< 2 µs", microseconds(each), each < 2e-6),
    ]


def main() -> int:
    """Print the table; the exit code says whether every bound was met."""
    rows = [
        *five_assertions(),
        *json_in_prose(),
        *ten_paths(),
        distance(),
        *similarity(),
        thousand(),
        importing(),
        *validating(),
    ]
    width = max(len(row.workload) for row in rows)
    for row in rows:
        print(f"{row.workload:<{width}}  {row.bound:>8}  {'ok  ' if row.ok else 'OVER'}  {row.measured}")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
