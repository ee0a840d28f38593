"""Trends, regressions, baselines, soul histories and the dashboard."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evals_app import actions
from evals_app.dashboard import BUCKETS, MOST_ATTENTION, attention, dashboard
from evals_app.models import PinnedBaseline, Regression, RegressionKind, RegressionState
from evals_app.ranges import RANGES, UnknownRange
from evals_app.serializers.monitoring import (
    AttentionSerializer,
    BaselineSerializer,
    DashboardSerializer,
    PinSerializer,
    RegressionSerializer,
    SoulVersionSerializer,
    TrendSerializer,
)
from evals_app.souls import history
from evals_app.trends import trend
from workflows_app import access
from workflows_app.api.workflows import find_workflow
from workflows_app.engine.definition import Fault
from workflows_app.models import Run, Soul, Workflow
from workflows_app.rest.faults import Invalid
from workflows_app.rest.paging import limit_of
from workflows_app.rest.views import ApiView, ListView, in_one_piece, whole_list
from workflows_app.serializers import ErrorSerializer

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
                description="score, pass_rate, cost, latency, tokens, or a metric named in an assertion.",
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
        try:
            return Response(trend(workflow, block, metric, _text(request, "range", "30d")))
        except UnknownRange as error:
            raise _bad("range", str(error)) from None


def _text(request: Request, name: str, default: str) -> str:
    value = request.query_params.get(name, default)
    if "\0" in value or len(value) > 200:
        raise _bad(name, "must be a text of at most 200 characters, without NUL.")
    return value


def _bad(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", details=[Fault(path, None, message)])


# Regressions


class RegressionFilter(filters.FilterSet):
    """Which regressions."""

    workflow = filters.CharFilter(field_name="workflow__slug")
    node_id = filters.CharFilter()
    kind = filters.MultipleChoiceFilter(choices=RegressionKind.choices)
    state = filters.MultipleChoiceFilter(choices=RegressionState.choices)

    class Meta:
        model = Regression
        fields: tuple[str, ...] = ()


class RegressionListView(ListView):
    """What the lists of regressions share."""

    permissions = {"GET": SEE_REGRESSIONS}
    serializer_class = RegressionSerializer
    filter_backends = (filters.DjangoFilterBackend,)
    filterset_class = RegressionFilter
    orderings = {
        "-found_at": ("-found_at", "-id"),
        "found_at": ("found_at", "id"),
        "-evidence": ("-evidence", "-found_at", "-id"),
    }
    default_ordering = "-found_at"

    def get_queryset(self) -> QuerySet[Regression]:
        return Regression.objects.select_related("workflow")


REGRESSION_ORDERING = OpenApiParameter(
    "ordering", str, enum=list(RegressionListView.orderings), default=RegressionListView.default_ordering
)


class RegressionList(RegressionListView):
    """Every regression."""

    @extend_schema(
        operation_id="regressions_list",
        parameters=[REGRESSION_ORDERING],
        responses=RegressionSerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class WorkflowRegressions(RegressionListView):
    """The regressions of one workflow."""

    def get_queryset(self) -> QuerySet[Regression]:
        if getattr(self, "swagger_fake_view", False):
            return Regression.objects.none()
        return super().get_queryset().filter(workflow=find_workflow(self.kwargs["slug"]))

    @extend_schema(
        operation_id="workflows_regressions",
        parameters=[REGRESSION_ORDERING],
        responses=RegressionSerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class RunRegressions(RegressionListView):
    """The regressions that a run brought to light."""

    def get_queryset(self) -> QuerySet[Regression]:
        if getattr(self, "swagger_fake_view", False):
            return Regression.objects.none()
        run = get_object_or_404(Run.objects.only("pk"), pk=self.kwargs["pk"])
        return super().get_queryset().filter(found_run=run)

    @extend_schema(
        operation_id="runs_regressions",
        parameters=[REGRESSION_ORDERING],
        responses=RegressionSerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class RegressionDetail(ApiView):
    """One regression."""

    permissions = {"GET": SEE_REGRESSIONS}
    serializer_class = RegressionSerializer

    @extend_schema(operation_id="regressions_read")
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(RegressionSerializer(find_regression(pk)).data)


def find_regression(pk: UUID) -> Regression:
    """The regression of a path."""
    return get_object_or_404(Regression.objects.select_related("workflow"), pk=pk)


class Acknowledge(ApiView):
    """Somebody has seen it."""

    permissions = {"POST": "evals_app.handle_regression"}

    @extend_schema(
        operation_id="regressions_acknowledge",
        request=None,
        responses={200: RegressionSerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Say that somebody looks after it; again changes nothing, 409 once it is resolved."""
        found = actions.acknowledge_regression(find_regression(pk), self.caller)
        return Response(RegressionSerializer(found).data)


class Resolve(ApiView):
    """Somebody says it is over."""

    permissions = {"POST": "evals_app.handle_regression"}

    @extend_schema(operation_id="regressions_resolve", request=None, responses={200: RegressionSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Say that it is over; again changes nothing."""
        found = actions.resolve_regression(find_regression(pk), self.caller)
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
        return Response(_baseline(find_workflow(slug)))

    @extend_schema(operation_id="workflows_pin_baseline", request=PinSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Compare with one run or one version from now on."""
        workflow = find_workflow(slug)
        sent = self.read(PinSerializer)
        run = version = None
        if "run" in sent:
            run = workflow.runs.filter(pk=sent["run"]).first()
            if run is None:
                raise _bad("run", f"{slug} has no run {sent['run']}.")
        else:
            version = workflow.versions.filter(number=sent["version"]).first()
            if version is None:
                raise _bad("version", f"{slug} has no version {sent['version']}.")
        if problem := actions.pin_problem(workflow, run, version):
            raise _bad("run" if run else "version", problem)
        actions.pin_baseline(workflow, run=run, version=version, user=self.caller)
        return Response(_baseline(workflow))

    @extend_schema(operation_id="workflows_unpin_baseline", responses={200: BaselineSerializer})
    def delete(self, request: Request, slug: str) -> Response:
        """Go back to the last hundred runs."""
        workflow = find_workflow(slug)
        actions.pin_baseline(workflow, user=self.caller)
        return Response(_baseline(workflow))


def _baseline(workflow: Workflow) -> dict[str, Any]:
    pinned = PinnedBaseline.objects.select_related("version", "pinned_by").filter(workflow=workflow).first()
    rows = workflow.block_statistics.order_by("node_id").values(
        "node_id", "count", "baseline", "pinned", "verdicts"
    )
    return {
        "workflow": workflow.slug,
        "pinned": pinned
        and {
            "run": str(pinned.run_id) if pinned.run_id else None,
            "version": pinned.version.number if pinned.version else None,
            "by": pinned.pinned_by.get_username() if pinned.pinned_by else None,
            "at": pinned.pinned_at,
        },
        "blocks": [
            {
                "block": row["node_id"],
                "count": row["count"],
                "metrics": row["pinned"] or row["baseline"],
                "verdicts": row["verdicts"],
            }
            for row in rows
        ],
    }


# Souls


class SoulHistory(ApiView):
    """What a soul was, and how it did."""

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
        """Pass rate, mean score, cost and runs, each with the range before and its course."""
        try:
            return Response(dashboard(_text(request, "range", "24h")))
        except UnknownRange as error:
            raise _bad("range", str(error)) from None


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
