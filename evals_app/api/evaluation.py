"""Evaluations of runs, runs from elsewhere, and trying assertions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evals_app.api.serializers.evaluation import (
    AssertionTypeSerializer,
    BacktestRequestSerializer,
    BacktestSerializer,
    EvaluateSerializer,
    EvaluationSerializer,
    IngestedRunSerializer,
    IngestSerializer,
    RunEvalSerializer,
)
from evals_app.assertion_yaml import read_assertions
from evals_app.assertions import AssertionContext, assertion_types, run_assertions_sync, validate_assertions
from evals_app.monitoring.backtest import backtest
from evals_app.services.ingest import Ingested, Report
from evals_app.services.report_checks import further_faults
from workflows_app.api.base.errors import Invalid, faults_in
from workflows_app.api.base.idempotency import once
from workflows_app.api.base.views import ApiView, in_one_piece, whole_list
from workflows_app.api.runs import IDEMPOTENCY, answer, find_run
from workflows_app.api.serializers import ErrorSerializer
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.engine.schema.json_schema import document_schema
from workflows_app.engine.values.outputs import storable
from workflows_app.engine.values.paths import did_you_mean
from workflows_app.models import Run, RunNode, Workflow
from workflows_app.security import access

EXAMPLE_INGEST = {
    "workflow": "analysis",
    "external_id": "job-8412",
    "status": "completed",
    "started_at": "2026-01-31T12:00:00Z",
    "finished_at": "2026-01-31T12:00:02Z",
    "nodes": [
        {
            "node_id": "analyze",
            "output": "An analysis of rain in five short sentences …",
            "cost_usd": 0.0021,
            "latency_ms": 1830,
            "tokens": {"prompt": 120, "completion": 310},
            "soul_version": "prompt-v7",
        }
    ],
}
EXAMPLE_EVALUATE = {
    "output": '{"total": 12.5}',
    "assertions": [{"type": "is-json"}, {"type": "cost", "threshold": 0.01}],
    "context": {"cost_usd": 0.002},
}
EXAMPLE_BACKTEST = {
    "workflow": "analysis",
    "block": "analyze",
    "assertions": [{"type": "word-count", "value": {"max": 200}}],
    "limit": 1000,
}


def node_evals(nodes: Iterable[RunNode]) -> list[dict[str, Any]]:
    """The evaluations of nodes as every answer shows them."""
    return [
        {
            "node_id": node.node_id,
            "iteration": node.iteration,
            "eval_score": node.eval_score,
            "passed": node.eval_passed,
            "assertions": (node.eval_results or {}).get("assertions", []),
            "delta": node.delta,
            "error": (node.eval_results or {}).get("error"),
        }
        for node in nodes
    ]


def _evaluated(run: Run) -> list[dict[str, Any]]:
    rows = run.nodes.filter(evaluated_at__isnull=False).defer("output", "prompt", "details")
    return node_evals(rows.order_by("pk"))


class RunEval(ApiView):
    """The evaluation of a run."""

    permissions = {"GET": access.SEE}
    serializer_class = RunEvalSerializer

    @extend_schema(operation_id="runs_eval")
    def get(self, request: Request, pk: UUID) -> Response:
        """Every evaluated node with its assertions and its distance from the baseline."""
        run = find_run(pk)
        return Response(
            {
                "run_id": str(run.pk),
                "aggregate_score": run.eval_score,
                "passed": run.eval_passed,
                "nodes": _evaluated(run),
            }
        )


class Ingest(ApiView):
    """Runs that were executed elsewhere."""

    permissions = {"POST": access.START_RUN}
    max_body_bytes = 32 * 1024 * 1024
    keeps_any_text = True

    @extend_schema(
        operation_id="runs_ingest",
        request=IngestSerializer,
        parameters=[IDEMPOTENCY],
        responses={200: IngestedRunSerializer, 201: IngestedRunSerializer, 422: ErrorSerializer},
        examples=[OpenApiExample("A run with one node", EXAMPLE_INGEST, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Evaluate and keep a run that was executed elsewhere; all or nothing, up to 1,000 nodes.

        The same `external_id` again returns the same run with 200.
        """
        body = storable(request.data)
        checked = IngestSerializer(data=body)
        if not checked.is_valid():
            raise InvalidDocument(faults_in(checked.errors) + further_faults(body))
        sent = checked.validated_data
        reports: list[Report] = []
        made: list[Ingested] = []

        def make() -> Run:
            made.append(reports[0].store())
            return made[0].run

        run, is_first_call = once(request, make, prepare=lambda: reports.append(Report(sent, self.caller)))
        is_new = is_first_call and made[0].is_new
        nodes = node_evals(n for n in made[0].nodes if n.evaluated_at) if is_new else _evaluated(run)
        # A call repeated by its key gets its first answer.
        response = answer(run, 200 if is_first_call and not is_new else 201, is_new=is_new)
        response.data["nodes"] = nodes
        return response


class Evaluate(ApiView):
    """Trying assertions on a text."""

    permissions = {"POST": access.SEE_WORKFLOWS}

    @extend_schema(
        operation_id="evaluate",
        request=EvaluateSerializer,
        responses=EvaluationSerializer,
        examples=[OpenApiExample("Two assertions", EXAMPLE_EVALUATE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Grade a text by assertions; nothing is stored. A bad assertion is an error in its own result.

        The assertions may also be the YAML text of the list; `faults` then give the line of everything that is wrong,
        and a text that is no list has no results.
        """
        body: Any = request.data
        faults: list[Fault] = []
        if isinstance(body, dict) and isinstance(body.get("assertions"), str):
            found, faults = read_assertions(body["assertions"])
            body = {**body, "assertions": found}
        sent = self.read(EvaluateSerializer, body)
        context = AssertionContext(sent["output"], **sent.get("context", {}))
        result = run_assertions_sync(sent["assertions"], context).to_dict()
        return Response(
            {
                "score": result["aggregate_score"],
                "passed": result["passed"] and not faults,
                "assertions": result["assertions"],
                "named_scores": result["named_scores"],
                "faults": [fault.to_dict() for fault in faults],
            }
        )


class Backtest(ApiView):
    """Trying assertions on history."""

    permissions = {"POST": access.SEE_WORKFLOWS}

    @extend_schema(
        operation_id="evaluate_backtest",
        request=BacktestRequestSerializer,
        responses=BacktestSerializer,
        examples=[OpenApiExample("Stricter length", EXAMPLE_BACKTEST, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Grade the last outputs of a block by other assertions: which verdicts would flip? Nothing is stored."""
        sent = self.read(BacktestRequestSerializer)
        workflow = Workflow.objects.select_related("current_version").filter(slug=sent["workflow"]).first()
        if workflow is None:
            raise Invalid.at("workflow", f"There is no workflow {sent['workflow']!r}.")
        if problems := validate_assertions(sent["assertions"]):
            raise InvalidDocument([Fault(f"assertions{one.path}", None, one.message) for one in problems])
        found = backtest(workflow, sent["block"], sent["assertions"], sent["limit"])
        version = workflow.current_version
        known = version.definition.blocks if version else {}
        # A block that was removed since still has its outputs.
        if not found.count and sent["block"].partition(".")[0] not in known:
            hint = did_you_mean(sent["block"], known) or f"; there are {', '.join(sorted(known))}."
            raise Invalid.at("block", f"The workflow has no block {sent['block']!r}{hint}")
        return Response(BacktestSerializer(found).data)


class AssertionTypes(ApiView):
    """The assertion types."""

    permissions = {"GET": access.SEE_WORKFLOWS}

    @extend_schema(operation_id="assertion_types", responses=whole_list(AssertionTypeSerializer))
    def get(self, request: Request) -> Response:
        """Every type with its fields, defaults and an example."""
        return in_one_piece(assertion_types())


class DocumentSchema(ApiView):
    """The JSON Schema of a workflow document."""

    permissions = {"GET": access.SEE_WORKFLOWS}

    @extend_schema(
        operation_id="workflows_schema", responses={200: {"type": "object", "additionalProperties": {}}}
    )
    def get(self, request: Request) -> Response:
        """For editors: completion and a first check while typing."""
        return Response(document_schema(assertion_types()))
