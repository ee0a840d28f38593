"""What it costs to check 10,000 stored outputs of 2 KB again, by each assertion type.

python benchmarks/backtest.py            # builds its data in a folder of its own; DATABASE_URL is honoured
python benchmarks/backtest.py --check    # exit 1 if one takes longer than it may
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("RUNSIGHT_HOME", tempfile.mkdtemp(prefix="runsight-bench-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from evals_app.assertions import assertion_types  # noqa: E402
from evals_app.monitoring.backtest import MOST_OUTPUTS, backtest  # noqa: E402
from workflows_app import services  # noqa: E402
from workflows_app.models import Run, RunNode, Workflow  # noqa: E402

SIZE = 2_000
MAY_TAKE = {"similarity": 8.0}
ELSE_MAY_TAKE = 2.0
WORDS = [
    "the",
    "invoice",
    "names",
    "supplier",
    "total",
    "date",
    "order",
    "delivery",
    "payment",
    "of",
    "and",
    "to",
    "within",
    "thirty",
    "days",
    "net",
    "amount",
    "reference",
    "customer",
    "account",
    "bank",
    "transfer",
    "due",
    "please",
    "find",
    "enclosed",
    "our",
    "regards",
]
YAML = 'version: "1.0"\nblocks:\n  b:\n    type: code\n    code: |\n      def main(data):\n          return "ok"\n'


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--check", action="store_true", help="exit 1 if one takes longer than it may")
    wanted = options.parse_args()
    call_command("migrate", verbosity=0)
    workflow = stored(random.Random(7))
    reference = " ".join(random.Random(1).choices(WORDS, k=SIZE // 6))
    print(f"{MOST_OUTPUTS:,} outputs of {SIZE:,} characters; processor time, time on the clock")
    slow = []
    for kind in assertion_types():
        assertion = dict(kind["example"])
        if kind["family"] == "similarity":
            assertion["value"] = reference
            assertion["threshold"] = 1_500 if kind["type"] == "levenshtein" else 0.3
        if kind["family"] == "structure":
            assertion["value"] = {
                "type": "object",
                "required": ["total"],
                "properties": {"total": {"type": "number"}},
            }
        seconds, waited = min(took(workflow, [assertion]) for _ in range(2))
        limit = MAY_TAKE.get(kind["family"], ELSE_MAY_TAKE)
        print(f"{kind['type']:16}{seconds:8.2f} s {waited:8.2f} s   may take {limit:.0f} s")
        slow += [kind["type"]] if seconds > limit else []
    if wanted.check and slow:
        sys.exit(f"Too slow: {', '.join(slow)}.")


def took(workflow: Workflow, assertions: list[dict[str, object]]) -> tuple[float, float]:
    """Processor time of one backtest, which a busy machine does not change, and time on the clock; in seconds."""
    begun, clock = time.process_time(), time.perf_counter()
    found = backtest(workflow, "b", assertions, MOST_OUTPUTS)
    assert found.count == MOST_OUTPUTS and not found.stopped
    return time.process_time() - begun, time.perf_counter() - clock


def stored(rng: random.Random) -> Workflow:
    """A workflow with enough runs, half of whose outputs are JSON and half prose."""
    workflow = services.save_version("backtested", YAML).workflow
    have = Run.objects.filter(workflow=workflow).count()
    now = timezone.now()
    runs = [
        Run(workflow=workflow, version=workflow.current_version, number=n, status="completed", eval_passed=True, eval_score=1.0,
            created_at=now - timedelta(minutes=MOST_OUTPUTS - n), observed_at=now)
        for n in range(have + 1, MOST_OUTPUTS + 1)
    ]  # fmt: skip
    Run.objects.bulk_create(runs, batch_size=500)
    RunNode.objects.bulk_create(
        (
            RunNode(run=run, node_id="b", block_type="llm", status="completed", output=text(rng, run.number), prompt="p" * SIZE,
                    cost_usd=rng.random() / 10, latency_ms=rng.random() * 4000, tokens={"prompt": 500, "completion": 400, "total": 900},
                    eval_passed=rng.random() < 0.9, eval_score=1.0, evaluated_at=now)
            for run in runs
        ),
        batch_size=500,
    )  # fmt: skip
    return workflow


def text(rng: random.Random, number: int) -> str:
    """About as long as wanted: a document with lines, or sentences."""
    if number % 2:
        return " ".join(rng.choices(WORDS, k=SIZE // 6)).ljust(SIZE, ".")
    lines = [
        {"article": rng.choice(WORDS), "count": rng.randrange(99), "price": rng.random()} for _ in range(32)
    ]
    return json.dumps({"total": rng.random() * 1000, "lines": lines})


if __name__ == "__main__":
    main()
