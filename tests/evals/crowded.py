"""A site where every name and text is as long as it may be, and there are many rows of each."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun, Observation, RegressionKind
from tests.evals.histories import add_history, add_regression
from workflows_app import services
from workflows_app.models import (
    Run,
    RunEvent,
    RunNode,
    RunStatus,
    Soul,
    SoulVersion,
    Workflow,
    WorkflowVersion,
)

QUOTED = '"it\'s" <b>bold</b> & «日本語» '
LONG_NAME = (QUOTED * 10)[:200]
LEFTWARD = ("שלום_עולם_مرحبا_" * 13)[:200]  # written from the right, and nowhere to break
MANY = 60
SOUL = "soul-".ljust(200, "x")


def slug_of(number: int) -> str:
    return f"workflow-{number:03}-".ljust(200, "x")


def block_id(number: int) -> str:
    return f"block_{number:03}_".ljust(80, "x")


def soul_version(number: int) -> str:
    return f"v{number:011}"


def case_id(number: int) -> str:
    return f"case {number} ".ljust(100, "x")


def document(blocks: int, *, soul: str, note: str) -> str:
    """A document near the size that is accepted; its first block has the most and the longest assertions."""
    many = [
        {"type": "contains", "value": QUOTED * 50, "metric": f"metric {n} {QUOTED}"[:60]} for n in range(MANY)
    ]
    few = [{"type": "contains", "value": "ok"}, {"type": "word-count", "value": {"min": 1}}]
    found: dict[str, Any] = {
        block_id(n): {
            "type": "llm",
            "soul_ref": soul,
            "prompt": f"{QUOTED} {note} " + "{{ inputs.text }}",
            "assertions": few if n else many,
            **({"depends": block_id(n - 1)} if n else {}),
        }
        for n in range(blocks)
    }
    inputs = [
        {
            "name": f"input_{n}",
            "type": "string",
            "required": False,
            "default": QUOTED * 4,
            "description": QUOTED,
        }
        for n in range(20)
    ]
    cases = [
        {
            "id": case_id(n),
            "description": QUOTED * 4,
            "fixtures": {block_id(0): QUOTED * 5},
            "expected": {block_id(0): [{"type": "contains", "value": QUOTED * 8}]},
        }
        for n in range(2 * MANY)
    ]
    return json.dumps(
        {
            "version": "1.0",
            "blocks": found,
            "interface": {"inputs": [{"name": "text", "type": "string", "default": QUOTED}, *inputs]},
            "workflow": {"name": LONG_NAME},
            "eval": {"cases": cases},
        },
        indent=1,
        ensure_ascii=False,
    )


def results(count: int, *, passed: bool) -> dict[str, Any]:
    found = [
        {"type": "not-contains", "passed": passed, "score": float(passed), "reason": QUOTED * 20, "weight": 1.0,
         "metric": LONG_NAME[:60], "error": False, "measured": 1234.5678, "index": n, "value": QUOTED * 50,
         "transform": f"json_path:$.{'x' * 300}"}
        for n in range(count)
    ]  # fmt: skip
    return {"assertions": found, "named_scores": {}, "error": None}


def text(seed: int, size: int = 300_000) -> str:
    """Lines that differ from those of another seed in a few words."""
    line = f"{QUOTED * 3}{seed} {QUOTED * 3}\n"
    return (line * (size // len(line) + 1))[:size]


def add_run(version: WorkflowVersion, number: int, blocks: int, *, passed: bool, **fields: Any) -> Run:
    """A run with a node for each block, all outputs long; the first block ran in a loop."""
    now = timezone.now()
    run = Run.objects.create(
        workflow=version.workflow, version=version, number=number, status=RunStatus.COMPLETED, created_at=now,
        started_at=now, finished_at=now, observed_at=now, duration_ms=900.0, cost_usd=0.002, eval_score=0.5,
        eval_passed=passed, assertions_failed=MANY, inputs={f"input {number}": text(number)},
        outputs={"out": text(number)}, last_seq=4 * MANY, **fields,
    )  # fmt: skip
    common = {
        "block_type": "llm", "status": "completed", "cost_usd": 0.001, "latency_ms": 812.5, "started_at": now,
        "finished_at": now, "evaluated_at": now, "tokens": {"prompt": 1000, "completion": 1000, "total": 2000},
        "soul_id": SOUL, "soul_version": soul_version(1), "prompt_hash": "f" * 64, "eval_passed": passed,
        "eval_score": float(passed), "details": {"stdout": text(0, 60_000), "model": "m" * 200, "warnings": [QUOTED * 30]},
        "delta": {"score_delta": -0.5, "cost_pct": 12.5, "latency_pct": 12.5, "tokens_pct": 12.5, "baseline_score": 1.0,
                  "baseline_run_count": 40, "low": 0.9, "high": 1.0},
    }  # fmt: skip
    nodes = [
        RunNode(
            run=run,
            node_id=block_id(n),
            output=text(number, 300_000 if n < 12 else 4_000),
            prompt=text(n, 20_000),
            eval_results=results(MANY, passed=passed) if not n else results(2, passed=passed),
            **common,
        )
        for n in range(blocks)
    ]
    rounds = [
        RunNode(
            run=run,
            node_id=block_id(0),
            iteration=n,
            output=text(number, 5_000),
            eval_results=results(MANY, passed=passed),
            **common,
        )
        for n in range(2, MANY)
    ]
    rounds[-1].output = text(number)  # fmt: skip
    RunNode.objects.bulk_create([*nodes, *rounds])
    RunEvent.objects.bulk_create(
        RunEvent(
            run=run,
            seq=n + 1,
            event="node_failed",
            at=now,
            data={"node_id": block_id(n % blocks), "error": {"type": "X", "message": QUOTED * 30}},
        )
        for n in range(4 * MANY)
    )
    return run


def add_suite_run(version: WorkflowVersion, *, passed: bool) -> EvalSuiteRun:
    now = timezone.now()
    status = EvalStatus.PASSED if passed else EvalStatus.FAILED
    one = EvalSuiteRun.objects.create(
        workflow=version.workflow, version=version, status=status, score=0.5, reason=QUOTED * 60,
        cases_total=2 * MANY, cases_done=2 * MANY, started_at=now, begun_at=now, finished_at=now,
    )  # fmt: skip
    block = {"block": block_id(0), "score": 0.0, "passed": passed, "frozen": True, "output": text(1, 20_000),
             "error": QUOTED * 30, **results(12, passed=passed)}  # fmt: skip
    attempt = {"status": str(status), "error": QUOTED * 50, "blocks": [block] * 12}
    details = {"attempts": [attempt], "reason": QUOTED * 49, "description": QUOTED * 30}
    EvalCaseResult.objects.bulk_create(
        EvalCaseResult(
            suite_run=one,
            case_id=case_id(n),
            position=n,
            status=status,
            score=0.5,
            cost_usd=0.01,
            details=details if n < 8 else {},
        )
        for n in range(2 * MANY)
    )
    return one


def add_unbroken(author: User, other: Run) -> list[str]:
    """A workflow whose names are as long as they may be and have no place to break; it became worse."""
    block, code = block_id(0), "def main(data):\n    return 1\n"
    text = json.dumps(
        {
            "version": "1.0",
            "workflow": {"name": LEFTWARD},
            "blocks": {
                block: {"type": "code", "code": code, "assertions": [{"type": "is-json"}]},
                "n" * 80: {"type": "code", "depends": block, "code": code},
            },
            "interface": {"inputs": [{"name": f"input_{kind}_".ljust(80, "x"), "type": kind, "description": "d" * 300, "default": default}
                                     for kind, default in (("string", "v" * 300), ("boolean", True), ("object", {"k" * 80: "v" * 80}))]},
            "eval": {"cases": [{"id": LEFTWARD[:100], "description": LEFTWARD, "fixtures": {block: 1}, "expected": {block: [{"type": "is-json"}]}}]},
        }
    )  # fmt: skip
    slug = slug_of(MANY)
    for n in (1, 2):
        services.save_version(slug, text + "\n" * n, message=LEFTWARD, author=author)
    workflow = Workflow.objects.select_related("current_version").get(slug=slug)
    assert workflow.current_version
    add_history(workflow, [1.0, 0.5] * 20, block=block)
    run = add_run(workflow.current_version, 1001, 2, passed=False)
    add_regression(run, block, acknowledged_by=author, state="acknowledged", evidence=99.0)
    compare = f"/runs/{run.pk}/compare/{other.pk}/"
    return [
        workflow.get_absolute_url(), *(f"{workflow.get_absolute_url()}{part}/" for part in ("run", "edit", "versions/2")),
        f"/runs/{run.pk}/", compare, f"{compare}?only={block}", f"{compare}?only=workflow", f"/evals/{slug}/",
    ]  # fmt: skip


def crowded_site(blocks: int) -> list[str]:
    """Fill the tables, and name the address of every page that has no editor."""
    soul = Soul.objects.create(
        slug=SOUL,
        name=LONG_NAME,
        role=LONG_NAME,
        system_prompt=text(3),
        model_name="m" * 200,
    )
    for n in range(MANY):
        Soul.objects.create(slug=f"soul-{n:03}-".ljust(200, "y"), name=LONG_NAME, role=LONG_NAME)
        SoulVersion.objects.create(
            soul=soul,
            version=soul_version(n),
            definition={
                "role": LONG_NAME,
                "model_name": "m" * 200,
                "system_prompt": text(n) if n < 2 else "",
            },
        )
    editor = User.objects.create(username="e" * 150)
    for n in range(MANY):
        small = (
            f'version: "1.0"\nblocks:\n  {block_id(0)}: {{type: llm, soul_ref: {soul.slug}, prompt: hi}}\n'
        )
        services.save_version(slug_of(n), small, author=editor)
    for n in (1, 2):
        services.save_version(
            "crowded", document(blocks, soul=soul.slug, note=str(n)), message=LONG_NAME[:300], author=editor
        )
    workflow = Workflow.objects.select_related("current_version").get(slug="crowded")
    first, second = workflow.versions.order_by("number")
    suspected = {"workflow_version": 2, "soul_version": soul_version(1)}
    add_history(workflow, [1.0, 0.5] * 100, block=block_id(0), also=[block_id(n) for n in range(1, 12)])
    Observation.objects.filter(node_id=block_id(0)).update(
        named_scores={f"metric {n} {QUOTED}": 1.0 for n in range(MANY)}
    )
    old = add_run(first, 1001, blocks, passed=True)
    new = add_run(second, 1002, blocks, passed=False, error={"type": "X", "message": QUOTED * 100})
    for n in range(min(MANY, blocks * len(RegressionKind.values))):
        add_regression(new, block_id(n % blocks), kind=RegressionKind.values[n // blocks], assertion=f"contains#{n}",
                       suspected=suspected)  # fmt: skip
    for n, other in enumerate(Workflow.objects.exclude(pk=workflow.pk)):
        status = RunStatus.RUNNING if n % 2 else RunStatus.FAILED
        run = Run.objects.create(workflow=other, version=other.current_version, number=1, status=status,
                                 started_at=timezone.now(), error={"type": "X", "message": QUOTED * 100})  # fmt: skip
        RunNode.objects.create(run=run, node_id=block_id(0), block_type="llm", soul_id=SOUL)
        add_regression(run, block_id(0), suspected=suspected, evidence=90.0, state="open" if n < 8 else "acknowledged",
                       acknowledged_by=editor)  # fmt: skip
    before, after = add_suite_run(second, passed=True), add_suite_run(second, passed=False)
    for _ in range(MANY):
        EvalSuiteRun.objects.create(
            workflow=workflow, version=second, status=EvalStatus.PASSED, finished_at=timezone.now()
        )
    node = new.nodes.get(node_id=block_id(0), iteration=1)
    case = EvalCaseResult.objects.filter(suite_run=after).first()
    assert case
    compare = f"/runs/{new.pk}/compare/{old.pk}/"
    return [
        "/", "/?range=30d", "/workflows/", "/workflows/?q=workflow", "/workflows/crowded/", f"/workflows/crowded/?block={block_id(0)}",
        "/workflows/crowded/?regressions=2&blocks=2", "/workflows/crowded/run/", "/workflows/crowded/versions/1/",
        "/workflows/crowded/versions/2/", "/workflows/crowded/versions/2/?lines=2", "/runs/", "/runs/?workflow=crowded",
        "/runs/?status=failed", f"/runs/{new.pk}/", f"/runs/{new.pk}/?blocks=2", f"/runs/{old.pk}/",
        f"/runs/{new.pk}/nodes/{node.pk}/", f"/runs/{new.pk}/nodes/{node.pk}/?assertions=2", compare, f"{compare}?changed=1&blocks=2",
        f"{compare}?only={block_id(0)}", f"{compare}?only={block_id(0)}&lines=3&verdicts=2", f"{compare}?only=workflow",
        f"{compare}?only=inputs", "/souls/", f"/souls/{SOUL}/", f"/souls/{SOUL}/versions/{soul_version(1)}/",
        f"/souls/{SOUL}/versions/{soul_version(1)}/?lines=2", "/assertions/", "/assertions/?workflow=crowded", "/evals/", "/evals/crowded/",
        "/evals/crowded/?cases=2&evaluations=2", f"/evals/runs/{after.pk}/", f"/evals/runs/{after.pk}/?case={case.case_id}",
        f"/evals/runs/{after.pk}/compare/{before.pk}/", f"/runs/{new.pk}/nodes/{node.pk}/case/?freeze=1", "/start/", "/styleguide/",
        *add_unbroken(editor, new),
    ]  # fmt: skip
