"""Trends, regressions, baselines, soul histories and the dashboard."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from evals_app.api.serializers.monitoring import (
    AttentionSerializer,
    BaselineSerializer,
    DashboardSerializer,
    PinSerializer,
    RegressionSerializer,
    SoulVersionSerializer,
    TrendSerializer,
)
from evals_app.block_metrics import COLUMNS
from evals_app.models import BlockStatistics, Regression, RegressionKind, RegressionState
from evals_app.monitoring.dashboard import BUCKETS, MOST_ATTENTION, attention, dashboard
from evals_app.monitoring.ranges import RANGES
from evals_app.monitoring.souls import history
from evals_app.monitoring.trends import trend
from evals_app.services import actions
from workflows_app.api.base.views import ApiView, ListView, in_one_piece, limit_of, list_schema, whole_list
from workflows_app.api.serializers import ErrorSerializer
from workflows_app.api.workflows import find_workflow
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Run, Soul, Workflow
from workflows_app.security import access

SEE_REGRESSIONS = "evals_app.view_regression"
SEE_OBSERVATIONS = "evals_app.view_observation"


class Trends(ApiView):
    """A block's history as a line."""

    permissions = {"GET": SEE_OBSERVATIONS}
    serializer_class = TrendSerializer

    @extend_schema(
        operation_id="workflows_trends",
        parameters=[
            OpenApiParameter(
                "block", str, description="A block's id; without it the whole workflow, run by run."
            ),
            OpenApiParameter(
                "metric",
                str,
                default="score",
                description=f"{', '.join(COLUMNS)}, or a metric named in an assertion.",
            ),
            OpenApiParameter(
                "range",
                {"type": "string", "pattern": f"^({'|'.join(RANGES)}|[1-9][0-9]{{0,4}})$"},
                default="30d",
                description="24h, 7d, 30d, 90d, all, or a number of runs such as 200.",
            ),
        ],
    )
    def get(self, request: Request, slug: str) -> Response:
        """At most 500 points, each a real run; what is normal; where versions and regressions began."""
        workflow = find_workflow(slug)
        block = _text(request, "block", "")
        metric = _text(request, "metric", "score") or "score"
        found = trend(workflow, block, metric, _text(request, "range", "30d"))
        return Response(TrendSerializer(found).data)


def _text(request: Request, name: str, default: str) -> str:
    value = request.query_params.get(name, default)
    if "\0" in value or len(value) > 200:
        message = "must be a text of at most 200 characters, without NUL."
        raise InvalidDocument([Fault(name, None, message)])
    return value


# Regressions


class RegressionFilter(filters.FilterSet):
    """Which regressions."""

    workflow = filters.CharFilter(field_name="workflow__slug")
    node_id = filters.CharFilter()
    kind = filters.MultipleChoiceFilter(choices=RegressionKind.choices)
    state = filters.MultipleChoiceFilter(choices=RegressionState.choices)


@list_schema("regressions_list")
class RegressionList(ListView):
    """Every regression."""

    permissions = {"GET": SEE_REGRESSIONS}
    serializer_class = RegressionSerializer
    filterset_class = RegressionFilter
    orderings = {
        "-found_at": ("-found_at", "-id"),
        "found_at": ("found_at", "id"),
        "-evidence": ("-evidence", "-found_at", "-id"),
    }
    default_ordering = "-found_at"

    def get_queryset(self) -> QuerySet[Regression]:
        rows = Regression.objects.select_related("workflow")
        if "slug" in self.kwargs:
            rows = rows.filter(workflow=find_workflow(self.kwargs["slug"]))
        if "pk" in self.kwargs:
            rows = rows.filter(found_run=get_object_or_404(Run.objects.only("pk"), pk=self.kwargs["pk"]))
        return rows


@extend_schema_view(get=extend_schema(operation_id="workflows_regressions"))
class WorkflowRegressions(RegressionList):
    """The regressions of one workflow."""


@extend_schema_view(get=extend_schema(operation_id="runs_regressions"))
class RunRegressions(RegressionList):
    """The regressions that were found in a run."""


class RegressionDetail(ApiView):
    """One regression."""

    permissions = {"GET": SEE_REGRESSIONS}
    queryset = Regression.objects.select_related("workflow")
    serializer_class = RegressionSerializer

    @extend_schema(operation_id="regressions_read")
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(RegressionSerializer(self.get_object()).data)


class Acknowledge(ApiView):
    """Take a regression on."""

    permissions = {"POST": "evals_app.handle_regression"}
    queryset = Regression.objects.select_related("workflow")

    @extend_schema(
        operation_id="regressions_acknowledge",
        request=None,
        responses={200: RegressionSerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Say that somebody works on it. Repeating it changes nothing; 409 once it is resolved."""
        found = actions.acknowledge_regression(self.get_object(), self.caller)
        return Response(RegressionSerializer(found).data)


class Resolve(ApiView):
    """Close a regression."""

    permissions = {"POST": "evals_app.handle_regression"}
    queryset = Regression.objects.select_related("workflow")

    @extend_schema(operation_id="regressions_resolve", request=None, responses={200: RegressionSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Say that it is over. Repeating it changes nothing."""
        found = actions.resolve_regression(self.get_object(), self.caller)
        return Response(RegressionSerializer(found).data)


# Baselines


class Baseline(ApiView):
    """What is normal for the blocks of a workflow."""

    permissions = {
        "GET": SEE_OBSERVATIONS,
        "PUT": "workflows_app.pin_baseline",
        "DELETE": "workflows_app.pin_baseline",
    }
    serializer_class = BaselineSerializer

    @extend_schema(operation_id="workflows_baseline")
    def get(self, request: Request, slug: str) -> Response:
        """Count, mean and interval of every metric of every block, and what is pinned."""
        return _baseline(slug)

    @extend_schema(operation_id="workflows_pin_baseline", request=PinSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Compare with one run or one version from now on."""
        workflow = find_workflow(slug)
        sent = self.read(PinSerializer)
        ((name, wanted),) = sent.items()  # the serializer takes either
        run = workflow.runs.filter(pk=wanted).first() if name == "run" else None
        version = workflow.versions.filter(number=wanted).first() if name == "version" else None
        if run is None and version is None:
            raise InvalidDocument([Fault(name, None, f"{slug} has no {name} {wanted}.")])
        if problem := actions.pin_problem(workflow, run, version):
            raise InvalidDocument([Fault(name, None, problem)])
        actions.pin_baseline(workflow, run=run, version=version, user=self.caller)
        return _baseline(slug)

    @extend_schema(operation_id="workflows_unpin_baseline", responses={200: BaselineSerializer})
    def delete(self, request: Request, slug: str) -> Response:
        """Go back to the last hundred runs."""
        workflow = find_workflow(slug)
        actions.pin_baseline(workflow, user=self.caller)
        return _baseline(slug)


def _baseline(slug: str) -> Response:
    blocks = BlockStatistics.objects.order_by("node_id").defer("state", "slices")
    workflows = Workflow.objects.select_related("pinned_baseline__version", "pinned_baseline__pinned_by")
    workflow = get_object_or_404(workflows.prefetch_related(Prefetch("block_statistics", blocks)), slug=slug)
    return Response(BaselineSerializer(workflow).data)


# Souls


class SoulHistory(ApiView):
    """The versions of a soul."""

    permissions = {"GET": "workflows_app.view_soulversion"}

    @extend_schema(operation_id="souls_history", responses=whole_list(SoulVersionSerializer))
    def get(self, request: Request, slug: str) -> Response:
        """Its versions, newest first, each with the scores of the blocks that used it."""
        return in_one_piece(history(get_object_or_404(Soul, slug=slug)))


# Dashboard


RANGE = OpenApiParameter("range", str, enum=list(BUCKETS), default="24h")


class Dashboard(ApiView):
    """The figures."""

    permissions = {"GET": access.SEE}
    serializer_class = DashboardSerializer

    @extend_schema(operation_id="dashboard", parameters=[RANGE])
    def get(self, request: Request) -> Response:
        """Pass rate, mean score, cost and runs, each with the range before and its values over time."""
        return Response(dashboard(_text(request, "range", "24h")))


class Attention(ApiView):
    """What needs attention."""

    permissions = {"GET": SEE_REGRESSIONS}

    @extend_schema(
        operation_id="dashboard_attention",
        responses=whole_list(AttentionSerializer),
        parameters=[OpenApiParameter("limit", {"type": "integer", "minimum": 1})],
    )
    def get(self, request: Request) -> Response:
        """Open regressions by evidence, runs that failed today, then regressions somebody acknowledged."""
        limit = limit_of(request) if "limit" in request.query_params else MOST_ATTENTION
        return in_one_piece(attention(limit))
