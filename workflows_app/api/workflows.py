"""Workflows: list, save, versions, validation, the document's schema."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app import access, services
from workflows_app.documents import check_document, check_document_for
from workflows_app.models import Workflow, WorkflowVersion
from workflows_app.rest.faults import Conflict
from workflows_app.rest.filters import TruthFilter
from workflows_app.rest.preconditions import check_if_match, etag_of, is_unchanged
from workflows_app.rest.views import ApiView, ListView, fields_parameter
from workflows_app.serializers import (
    DocumentSerializer,
    ErrorSerializer,
    ValidationSerializer,
    VersionSerializer,
    VersionTextSerializer,
    WorkflowChangeSerializer,
    WorkflowCreateSerializer,
    WorkflowSerializer,
    WorkflowSummarySerializer,
)

SEE_WORKFLOWS = "workflows_app.view_workflow"
EXAMPLE_YAML = """\
version: "1.0"
souls:
  analyst: {role: Analyst, system_prompt: "You analyse.", provider: demo, model_name: demo-small}
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: "Analyse {{ inputs.topic }}"
    assertions:
      - {type: word-count, value: {min: 5}}
interface:
  inputs:
    - {name: topic, type: string, required: true}
"""
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` the change is based on, or `*`. Without it: 428; if somebody else was first: 412.",
)


def find_workflow(slug: str) -> Workflow:
    """The workflow of a path, with its current version and that one's author."""
    rows = Workflow.objects.select_related("current_version__author")
    return get_object_or_404(rows, slug=slug)


def answer(workflow: Workflow, status: int = 200) -> Response:
    """A workflow as an answer, with its ETag."""
    return Response(WorkflowSerializer(workflow).data, status=status, headers={"ETag": etag_of(workflow)})


class WorkflowFilter(filters.FilterSet):
    """Which workflows."""

    enabled = TruthFilter()
    is_demo = TruthFilter()

    class Meta:
        model = Workflow
        fields: tuple[str, ...] = ()


class WorkflowList(ListView):
    """Every workflow."""

    permissions = {"GET": SEE_WORKFLOWS, "POST": "workflows_app.add_workflow"}
    serializer_class = WorkflowSummarySerializer
    filter_backends = (filters.DjangoFilterBackend,)
    filterset_class = WorkflowFilter
    orderings = {"slug": ("slug",), "-slug": ("-slug",), "-updated_at": ("-updated_at", "-pk")}
    default_ordering = "slug"

    def get_queryset(self) -> QuerySet[Workflow]:
        return Workflow.objects.select_related("current_version__author").defer("current_version__yaml")

    @extend_schema(
        operation_id="workflows_list",
        responses=WorkflowSummarySerializer(many=True),
        parameters=[
            fields_parameter(WorkflowSummarySerializer),
            OpenApiParameter("ordering", str, enum=list(orderings), default=default_ordering),
        ],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="workflows_create",
        request=WorkflowCreateSerializer,
        responses={201: WorkflowSerializer, 409: ErrorSerializer},
        examples=[
            OpenApiExample(
                "A workflow with one block",
                {"slug": "analysis", "yaml": EXAMPLE_YAML, "message": "First version"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Save the first version of a new workflow."""
        sent = self.read(WorkflowCreateSerializer)
        slug = sent["slug"]
        if Workflow.objects.filter(slug=slug).exists():
            raise Conflict(f"There is a workflow {slug!r} already; change it with PUT workflows/{slug}/.")
        definition, _ = check_document(sent["yaml"])
        access.check_save(request.user, definition, self.token)
        try:
            services.save_version(
                slug,
                sent["yaml"],
                author=self.caller,
                message=sent.get("message", ""),
                enabled=sent.get("enabled", definition.enabled if definition else None),
                based_on=0,
            )
        except (services.Stale, IntegrityError):
            raise Conflict(f"There is a workflow {slug!r} already: somebody else made it just now.") from None
        return answer(find_workflow(slug), 201)


class WorkflowDetail(ApiView):
    """One workflow. It is never deleted, for its runs are evidence; `enabled: false` takes it out of use."""

    permissions = {
        "GET": SEE_WORKFLOWS,
        "PUT": "workflows_app.change_workflow",
        "PATCH": "workflows_app.change_workflow",
    }
    serializer_class = WorkflowSerializer

    @extend_schema(operation_id="workflows_read", responses={200: WorkflowSerializer, 304: None})
    def get(self, request: Request, slug: str) -> Response:
        workflow = find_workflow(slug)
        if is_unchanged(request, etag_of(workflow)):
            return Response(status=304, headers={"ETag": etag_of(workflow)})
        return answer(workflow)

    _changed = {200: WorkflowSerializer, 412: ErrorSerializer, 428: ErrorSerializer}

    @extend_schema(
        operation_id="workflows_replace",
        request=WorkflowChangeSerializer,
        parameters=[IF_MATCH],
        responses=_changed,
    )
    def put(self, request: Request, slug: str) -> Response:
        """Save a new version."""
        return self._change(slug, partial=False)

    @extend_schema(
        operation_id="workflows_change",
        request=WorkflowChangeSerializer(partial=True),
        parameters=[IF_MATCH],
        responses=_changed,
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Save a new version, enable or disable; what is not sent stays."""
        return self._change(slug, partial=True)

    def _change(self, slug: str, *, partial: bool) -> Response:
        find_workflow(slug)
        serializer = WorkflowChangeSerializer(data=self.request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        sent = serializer.validated_data
        definition = check_document(sent["yaml"])[0] if "yaml" in sent else None
        access.check_save(self.request.user, definition, self.token)
        with transaction.atomic():
            workflow = get_object_or_404(
                Workflow.objects.select_for_update(of=("self",)).select_related("current_version"), slug=slug
            )
            check_if_match(self.request, workflow)
            self._save(workflow, sent)
        return answer(find_workflow(slug))

    def _save(self, workflow: Workflow, sent: dict[str, Any]) -> None:
        if "yaml" in sent:
            services.save_version(
                workflow.slug,
                sent["yaml"],
                author=self.caller,
                message=sent.get("message", ""),
                based_on=workflow.current_version.number if workflow.current_version else 0,
            )
            workflow.refresh_from_db()
        if "enabled" in sent:
            services.set_enabled(workflow, sent["enabled"], author=self.caller)


class VersionList(ListView):
    """The versions of a workflow, newest first."""

    permissions = {"GET": SEE_WORKFLOWS}
    serializer_class = VersionSerializer
    orderings = {"-number": ("-number",), "number": ("number",)}
    default_ordering = "-number"

    def get_queryset(self) -> QuerySet[WorkflowVersion]:
        if getattr(self, "swagger_fake_view", False):
            return WorkflowVersion.objects.none()
        return find_workflow(self.kwargs["slug"]).versions.select_related("author").defer("yaml")

    @extend_schema(
        operation_id="workflows_versions",
        responses=VersionSerializer(many=True),
        parameters=[OpenApiParameter("ordering", str, enum=list(orderings), default=default_ordering)],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class VersionDetail(ApiView):
    """One version with its text."""

    permissions = {"GET": SEE_WORKFLOWS}
    serializer_class = VersionTextSerializer

    @extend_schema(operation_id="workflows_version")
    def get(self, request: Request, slug: str, number: int) -> Response:
        rows = WorkflowVersion.objects.select_related("author")
        return Response(
            VersionTextSerializer(get_object_or_404(rows, workflow__slug=slug, number=number)).data
        )


class Validate(ApiView):
    """Whether a document may be saved."""

    permissions = {"POST": SEE_WORKFLOWS}
    serializer_class = DocumentSerializer

    @extend_schema(
        operation_id="workflows_validate",
        responses=ValidationSerializer,
        examples=[
            OpenApiExample("A document", {"yaml": EXAMPLE_YAML}, request_only=True),
            OpenApiExample(
                "A fault",
                {
                    "valid": False,
                    "faults": [
                        {
                            "path": "blocks.analyze.assertions[1].type",
                            "line": 12,
                            "message": "unknown assertion type 'contians'. Did you mean 'contains'?",
                        }
                    ],
                },
                response_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Find every fault of a document; nothing is saved."""
        _, faults = check_document(self.read(DocumentSerializer)["yaml"])
        return Response({"valid": not faults, "faults": [fault.to_dict() for fault in faults]})


class ValidateFor(ApiView):
    """Whether a document may be saved as this workflow."""

    permissions = {"POST": SEE_WORKFLOWS}
    serializer_class = DocumentSerializer

    @extend_schema(operation_id="workflows_validate_for", responses=ValidationSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Find every fault of a document that is meant for this workflow; nothing is saved."""
        find_workflow(slug)
        _, faults = check_document_for(slug, self.read(DocumentSerializer)["yaml"])
        return Response({"valid": not faults, "faults": [fault.to_dict() for fault in faults]})
