"""Runs: start, list, read, cancel, repeat; their nodes and history."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from workflows_app import services
from workflows_app.api.base.errors import Invalid
from workflows_app.api.base.fields import chosen
from workflows_app.api.base.idempotency import HEADER, once
from workflows_app.api.base.views import (
    ApiView,
    ListView,
    TruthFilter,
    fields_parameter,
    limit_of,
    list_schema,
    whole_number,
)
from workflows_app.api.serializers import (
    ErrorSerializer,
    EventPageSerializer,
    NodeSerializer,
    RunSerializer,
    StartRunSerializer,
)
from workflows_app.api.workflows import find_workflow
from workflows_app.live.frames import as_message
from workflows_app.models import Environment, Run, RunNode, RunStatus, Source
from workflows_app.security import access

LONGEST_WAIT_SECONDS = 60
IDEMPOTENCY = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="A repeat with the same key and body returns the first run; with another body: 422. Kept 24h.",
)
WAIT = OpenApiParameter(
    "wait",
    {"type": "number", "minimum": 0},
    description="Answer when the run has ended, or after so many seconds; at most 60.",
)
AFTER = OpenApiParameter(
    "after",
    {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
    description="Only what came after this `seq`.",
)
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1}, description="50 without it, 200 at most."
)
EXAMPLE_RUN = {
    "id": "0b9f7c4e-6a0b-4c1e-9a52-3f0e5a1d2c3b",
    "number": 42,
    "workflow": "analysis",
    "version": 3,
    "status": "completed",
    "source": "api",
    "environment": "production",
    "inputs": {"topic": "rain"},
    "outputs": {"analyze": "An analysis of rain …"},
    "created_at": "2026-01-31T12:00:00Z",
    "started_at": "2026-01-31T12:00:00.020Z",
    "finished_at": "2026-01-31T12:00:01.250Z",
    "duration_ms": 1230.0,
    "cost_usd": 0.0021,
    "tokens": {"prompt": 120, "completion": 310, "total": 430},
    "nodes_done": 1,
    "eval_score": 1.0,
    "eval_passed": True,
    "eval_counts": {"passed": 2, "failed": 0, "error": 0},
    "regression_count": 0,
    "error": None,
    "parent_run": None,
    "rerun_of": None,
    "external_id": None,
}


class RunFilter(filters.FilterSet):
    """Which runs."""

    workflow = filters.CharFilter(field_name="workflow__slug")
    version = filters.NumberFilter(field_name="version__number", min_value=1, max_value=2_147_483_647)
    status = filters.MultipleChoiceFilter(choices=RunStatus.choices)
    source = filters.MultipleChoiceFilter(choices=Source.choices)
    environment = filters.ChoiceFilter(choices=Environment.choices)
    eval_passed = TruthFilter()
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")
    external_id = filters.CharFilter()
    parent_run = filters.UUIDFilter(field_name="parent_run_id")


@list_schema("runs_list", fields_parameter(RunSerializer))
class RunList(ListView):
    """Every run, newest first."""

    permissions = {"GET": access.SEE}
    queryset = Run.objects.select_related("workflow", "version")
    serializer_class = RunSerializer
    filterset_class = RunFilter
    orderings = {"-created_at": ("-created_at", "-id"), "created_at": ("created_at", "id")}
    default_ordering = "-created_at"

    def get_queryset(self) -> QuerySet[Run]:
        kept = chosen(RunSerializer.Meta.fields, self.request.query_params.get("fields"))
        heavy = [name for name in ("inputs", "outputs") if name not in kept]
        return super().get_queryset().defer("resolved", "version__yaml", *heavy)


@list_schema("workflows_runs", fields_parameter(RunSerializer))
class WorkflowRuns(RunList):
    """The runs of one workflow."""

    permissions = {"GET": access.SEE, "POST": access.START_RUN}

    def get_queryset(self) -> QuerySet[Run]:
        return super().get_queryset().filter(workflow=find_workflow(self.kwargs["slug"]))

    @extend_schema(
        operation_id="workflows_start",
        request=StartRunSerializer,
        parameters=[WAIT, IDEMPOTENCY],
        filters=False,
        responses={201: RunSerializer, 409: ErrorSerializer, 422: ErrorSerializer},
        examples=[
            OpenApiExample("Inputs", {"inputs": {"topic": "rain"}}, request_only=True),
            OpenApiExample(
                "The finished run, with ?wait=30", EXAMPLE_RUN, response_only=True, status_codes=["201"]
            ),
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Start a run; with `?wait=30` the answer is the finished run."""
        wait_seconds(request._request)
        workflow = find_workflow(slug)
        sent = self.read(StartRunSerializer)

        def start() -> Run:
            version = None
            if number := sent.get("version"):
                version = workflow.versions.filter(number=number).first()
                if version is None:
                    current = workflow.current_version.number if workflow.current_version else 0
                    message = f"{slug} has no version {number}; the current one is {current}."
                    raise Invalid.at("version", message)
            return services.start_run(
                workflow,
                sent.get("inputs"),
                version=version,
                source=Source.API,
                environment=sent.get("environment", Environment.PRODUCTION),
                user=self.caller,
            )

        run, is_new = once(request, start)
        return answer(run, 201, is_new=is_new)


def wait_seconds(request: HttpRequest) -> float:
    """How long the caller wants to wait for the end of the run."""
    text = request.GET.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise Invalid(f"wait: {text[:30]!r} is not valid; use seconds from 0 to {LONGEST_WAIT_SECONDS}.")
    return min(seconds, LONGEST_WAIT_SECONDS)


def answer(run: Run, status: int = 200, *, is_new: bool = True) -> Response:
    """A run as an answer; a repeated call says that it is one."""
    headers = {"Location": f"/api/runs/{run.pk}/"} if status == 201 else {}
    if not is_new:
        headers["Idempotent-Replayed"] = "true"
    return Response(RunSerializer(run).data, status=status, headers=headers)


def find_run(pk: UUID) -> Run:
    """The run of a path."""
    return get_object_or_404(Run.objects.select_related("workflow", "version"), pk=pk)


class RunDetail(ApiView):
    """One run."""

    permissions = {"GET": access.SEE}
    serializer_class = RunSerializer

    @extend_schema(
        operation_id="runs_read",
        parameters=[fields_parameter(RunSerializer)],
        examples=[OpenApiExample("A finished run", EXAMPLE_RUN, response_only=True)],
    )
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(self.get_serializer(find_run(pk)).data)


@list_schema("runs_nodes", fields_parameter(NodeSerializer))
class RunNodes(ListView):
    """The nodes of a run in the order they began."""

    permissions = {"GET": "workflows_app.view_runnode"}
    queryset = RunNode.objects.all()
    serializer_class = NodeSerializer
    orderings = {"id": ("pk",)}
    default_ordering = "id"

    def get_queryset(self) -> QuerySet[RunNode]:
        kept = chosen(NodeSerializer.Meta.fields, self.request.query_params.get("fields"))
        heavy = [name for name in ("output", "eval_results") if name not in kept]
        run = get_object_or_404(Run.objects.only("pk"), pk=self.kwargs["pk"])
        return super().get_queryset().filter(run=run).defer("prompt", "details", *heavy)


class RunEvents(ApiView):
    """A run's history."""

    permissions = {"GET": "workflows_app.view_runevent"}
    serializer_class = EventPageSerializer

    @extend_schema(operation_id="runs_events", parameters=[AFTER, LIMIT])
    def get(self, request: Request, pk: UUID) -> Response:
        """The messages of the websocket, from `after` on."""
        run = get_object_or_404(Run.objects.select_related("workflow").only("workflow__slug"), pk=pk)
        limit = limit_of(request)
        rows = run.events.filter(seq__gt=whole_number(request, "after")).order_by("seq")
        found = list(rows[: limit + 1])
        link = None
        if len(found) > limit:
            link = replace_query_param(request.build_absolute_uri(), "after", found[limit - 1].seq)
        results = [as_message(row, run.workflow.slug) for row in found[:limit]]
        return Response({"next": link, "previous": None, "results": results})


class CancelRun(ApiView):
    """Stop a run."""

    permissions = {"POST": "workflows_app.cancel_run"}

    @extend_schema(
        operation_id="runs_cancel", request=None, responses={200: RunSerializer, 409: ErrorSerializer}
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Stop a run and its children; 409 when it has ended."""
        return answer(services.cancel_as(self.caller, find_run(pk)))


class Rerun(ApiView):
    """Repeat a run."""

    permissions = {"POST": access.START_RUN}

    @extend_schema(
        operation_id="runs_rerun",
        request=None,
        parameters=[IDEMPOTENCY],
        responses={201: RunSerializer, 409: ErrorSerializer, 422: ErrorSerializer},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Start the same version with the same inputs again."""
        original = find_run(pk)
        run, is_new = once(request, lambda: services.rerun(original, self.caller, source=Source.API))
        return answer(run, 201, is_new=is_new)
