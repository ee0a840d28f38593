"""Workflows: list, save, versions, validation, the document's schema."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app import services
from workflows_app.api.base.errors import PreconditionRequired
from workflows_app.api.base.etags import IF_MATCH, check_if_match, is_named
from workflows_app.api.base.views import ApiView, ListView, TruthFilter, fields_parameter, list_schema
from workflows_app.api.serializers import (
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
from workflows_app.documents.compile import check_document
from workflows_app.models import Workflow, WorkflowVersion
from workflows_app.security import access

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


def find_workflow(slug: str) -> Workflow:
    """The workflow of a path, with its current version and that one's author."""
    rows = Workflow.objects.select_related("current_version__author")
    return get_object_or_404(rows, slug=slug)


def answer(workflow: Workflow, status: int = 200) -> Response:
    """A workflow as an answer, with its ETag."""
    return Response(WorkflowSerializer(workflow).data, status=status, headers={"ETag": etag_of(workflow)})


def etag_of(workflow: Workflow) -> str:
    """Changes with every version and every switch of `enabled`."""
    version = workflow.current_version
    text = f"{version.number}-{version.sha256[:16]}" if version else "0"
    return f'"{text}-{"on" if workflow.enabled else "off"}"'


def check_state(request: Request, workflow: Workflow) -> None:
    """428 without `If-Match`, 412 if it names another state than the present one."""
    if "If-Match" not in request.headers:
        raise PreconditionRequired(
            "Send If-Match with the ETag of the workflow you started from, so that nobody's edit is lost."
        )
    number = workflow.current_version.number if workflow.current_version else 0
    check_if_match(request, etag_of(workflow), f"{workflow.slug} has changed: it is at version {number}")


class WorkflowFilter(filters.FilterSet):
    """Which workflows."""

    enabled = TruthFilter()
    is_demo = TruthFilter()


@list_schema("workflows_list", fields_parameter(WorkflowSummarySerializer))
class WorkflowList(ListView):
    """Every workflow."""

    permissions = {"GET": access.SEE_WORKFLOWS, "POST": "workflows_app.add_workflow"}
    serializer_class = WorkflowSummarySerializer
    filterset_class = WorkflowFilter
    orderings = {"slug": ("slug",), "-slug": ("-slug",), "-updated_at": ("-updated_at", "-pk")}
    default_ordering = "slug"

    queryset = Workflow.objects.select_related("current_version__author").defer("current_version__yaml")

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
        taken = services.Refused(
            "conflict", f"There is a workflow {slug!r} already; change it with PUT workflows/{slug}/."
        )
        if Workflow.objects.filter(slug=slug).exists():
            raise taken
        try:
            services.save_as(
                self.caller,
                slug,
                sent["yaml"],
                token=self.token,
                message=sent.get("message", ""),
                enabled=sent.get("enabled"),
                based_on=0,
            )
        except (services.Stale, IntegrityError):
            raise taken from None  # somebody else made it just now
        return answer(find_workflow(slug), 201)


class WorkflowDetail(ApiView):
    """One workflow. It is never deleted, for its runs are evidence; `enabled: false` takes it out of use."""

    permissions = {
        "GET": access.SEE_WORKFLOWS,
        "PUT": "workflows_app.change_workflow",
        "PATCH": "workflows_app.change_workflow",
    }
    serializer_class = WorkflowSerializer

    @extend_schema(operation_id="workflows_read", responses={200: WorkflowSerializer, 304: None})
    def get(self, request: Request, slug: str) -> Response:
        workflow = find_workflow(slug)
        if is_named(etag_of(workflow), request.headers.get("If-None-Match", "")):
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
        sent = self.read(WorkflowChangeSerializer, partial=partial)
        with transaction.atomic():
            workflow = get_object_or_404(
                Workflow.objects.select_for_update(of=("self",)).select_related("current_version"), slug=slug
            )
            check_state(self.request, workflow)
            if "yaml" in sent:
                message = sent.get("message", "")
                services.save_as(self.caller, slug, sent["yaml"], token=self.token, message=message)
                workflow.refresh_from_db()
            if "enabled" in sent:
                services.set_enabled(workflow, sent["enabled"], author=self.caller)
        return answer(find_workflow(slug))


@list_schema("workflows_versions")
class VersionList(ListView):
    """The versions of a workflow, newest first."""

    permissions = {"GET": access.SEE_WORKFLOWS}
    queryset = WorkflowVersion.objects.all()
    serializer_class = VersionSerializer
    orderings = {"-number": ("-number",), "number": ("number",)}
    default_ordering = "-number"

    def get_queryset(self) -> QuerySet[WorkflowVersion]:
        return find_workflow(self.kwargs["slug"]).versions.select_related("author").defer("yaml")


class VersionDetail(ApiView):
    """One version with its text."""

    permissions = {"GET": access.SEE_WORKFLOWS}
    serializer_class = VersionTextSerializer

    @extend_schema(operation_id="workflows_version")
    def get(self, request: Request, slug: str, number: int) -> Response:
        rows = WorkflowVersion.objects.select_related("author")
        version = get_object_or_404(rows, workflow__slug=slug, number=number)
        return Response(VersionTextSerializer(version).data)


class Validate(ApiView):
    """Whether a document may be saved."""

    permissions = {"POST": access.SEE_WORKFLOWS}
    serializer_class = DocumentSerializer

    @extend_schema(
        operation_id="workflows_validate",
        responses=ValidationSerializer,
        examples=[
            OpenApiExample("A document", {"yaml": EXAMPLE_YAML}, request_only=True),
            OpenApiExample(
                "An error",
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
    def post(self, request: Request, slug: str = "") -> Response:
        """Find every error of a document; nothing is saved."""
        if slug:
            find_workflow(slug)
        _, faults = check_document(self.read(DocumentSerializer)["yaml"], slug)
        return Response({"valid": not faults, "faults": [fault.to_dict() for fault in faults]})


@extend_schema_view(
    post=extend_schema(
        operation_id="workflows_validate_for",
        description="Find every error of a document that is meant for this workflow; nothing is saved.",
    )
)
class ValidateFor(Validate):
    """Whether a document may be saved as this workflow."""
