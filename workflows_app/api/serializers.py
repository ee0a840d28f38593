"""How workflows, runs, nodes, events and souls look in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from workflows_app.api.base.fields import (
    ChosenFieldsMixin,
    NumberField,
    StrictBooleanField,
    StrictSerializer,
    TextField,
    WholeNumberField,
)
from workflows_app.engine.slugs import SLUG, slug_error
from workflows_app.models import Environment, EventName, Run, RunNode, Soul, Workflow, WorkflowVersion
from workflows_app.security.credentials import shown_inputs

LARGEST_NUMBER = 2_147_483_647


# Errors


class FaultSerializer(serializers.Serializer[Any]):
    """One thing wrong, and where."""

    path = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(allow_null=True)
    message = serializers.CharField()


class ErrorBodySerializer(serializers.Serializer[Any]):
    """What is wrong: a word for programs, a sentence for people, each error with its place."""

    code = serializers.CharField()
    message = serializers.CharField()
    details = FaultSerializer(many=True)


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every refusal."""

    error = ErrorBodySerializer()


# Workflows


class VersionSerializer(serializers.ModelSerializer[WorkflowVersion]):
    """A version without its text."""

    author = serializers.CharField(source="author.username", allow_null=True, default=None, read_only=True)

    class Meta:
        model = WorkflowVersion
        fields = ("number", "sha256", "created_at", "author", "message")


class VersionTextSerializer(VersionSerializer):
    """A version with its text."""

    class Meta(VersionSerializer.Meta):
        fields = (*VersionSerializer.Meta.fields, "yaml")  # type: ignore[assignment]  # one more


class WorkflowSummarySerializer(ChosenFieldsMixin, serializers.ModelSerializer[Workflow]):
    """A workflow in a list."""

    version = VersionSerializer(source="current_version", allow_null=True, read_only=True)

    class Meta:
        model = Workflow
        fields = ("slug", "name", "enabled", "is_demo", "updated_at", "version")


class WorkflowSerializer(serializers.ModelSerializer[Workflow]):
    """A workflow with its current text."""

    yaml = serializers.CharField(source="current_version.yaml", default="", read_only=True)
    version = VersionSerializer(source="current_version", allow_null=True, read_only=True)

    class Meta:
        model = Workflow
        fields = ("slug", "name", "enabled", "yaml", "version")


class WorkflowChangeSerializer(StrictSerializer):
    """A new text, a message for it, and whether the workflow may run."""

    yaml = TextField()
    message = TextField(required=False, max_length=500, allow_blank=True)
    enabled = StrictBooleanField(required=False)


@extend_schema_field({**SLUG.schema(), "maxLength": SLUG.max_length})
class NewSlugField(TextField):
    """The slug of what is to be made; what exists keeps its own."""

    def to_internal_value(self, data: Any) -> str:
        slug: str = super().to_internal_value(data)
        if self.parent.instance is None and (problem := slug_error(slug)):
            raise serializers.ValidationError(problem)
        return slug


class WorkflowCreateSerializer(WorkflowChangeSerializer):
    """A new workflow."""

    slug = NewSlugField()


class DocumentSerializer(StrictSerializer):
    """A text to validate."""

    yaml = TextField(allow_blank=True)


class ValidationSerializer(serializers.Serializer[Any]):
    """Whether a text may be saved, and every error if not."""

    valid = serializers.BooleanField()
    faults = FaultSerializer(many=True)


# Runs


class TokensSerializer(serializers.Serializer[Any]):
    """Tokens spent."""

    prompt = serializers.IntegerField()
    completion = serializers.IntegerField()
    total = serializers.IntegerField()


class EvalCountsSerializer(serializers.Serializer[Any]):
    """Assertions by verdict."""

    passed = serializers.IntegerField()
    failed = serializers.IntegerField()
    error = serializers.IntegerField()


@extend_schema_field({"type": ["object", "null"], "additionalProperties": {}})
class AnyObject(serializers.JSONField):
    """A JSON object, or null."""


class ShownInputs(AnyObject):
    """The inputs of a run, without secrets."""

    def get_attribute(self, instance: Run) -> Any:
        return shown_inputs(instance)


@extend_schema_field(
    {
        "type": ["object", "null"],
        "required": ["type", "message"],
        "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
        "additionalProperties": {},
    }
)
class FailureField(serializers.JSONField):
    """Why something failed."""


class RunSerializer(ChosenFieldsMixin, serializers.ModelSerializer[Run]):
    """A run."""

    workflow = serializers.CharField(source="workflow.slug", read_only=True)
    version = serializers.IntegerField(source="version.number", read_only=True)
    inputs = ShownInputs(read_only=True)
    outputs = AnyObject(read_only=True)
    tokens = TokensSerializer(read_only=True)
    eval_counts = EvalCountsSerializer(read_only=True)
    error = FailureField(read_only=True)
    parent_run = serializers.UUIDField(source="parent_run_id", allow_null=True, read_only=True)
    rerun_of = serializers.UUIDField(source="rerun_of_id", allow_null=True, read_only=True)

    class Meta:
        model = Run
        fields = (
            "id",
            "number",
            "workflow",
            "version",
            "status",
            "source",
            "environment",
            "inputs",
            "outputs",
            "created_at",
            "started_at",
            "finished_at",
            "duration_ms",
            "cost_usd",
            "tokens",
            "nodes_done",
            "eval_score",
            "eval_passed",
            "eval_counts",
            "regression_count",
            "error",
            "parent_run",
            "rerun_of",
            "external_id",
        )
        read_only_fields = fields


class StartRunSerializer(StrictSerializer):
    """What to run: nothing at all is the current version without inputs."""

    inputs = serializers.DictField(required=False)
    version = WholeNumberField(
        required=False,
        min_value=1,
        max_value=LARGEST_NUMBER,
        help_text="Version number; the current one without.",
    )
    environment = serializers.ChoiceField(choices=Environment.choices, required=False)


class NodeSerializer(ChosenFieldsMixin, serializers.ModelSerializer[RunNode]):
    """One execution of one block."""

    run = serializers.UUIDField(source="run_id", read_only=True)
    child_run = serializers.UUIDField(source="child_run_id", allow_null=True, read_only=True)
    tokens = TokensSerializer(allow_null=True, read_only=True)
    error = FailureField(read_only=True)
    eval_results = AnyObject(read_only=True)
    delta = AnyObject(read_only=True)

    class Meta:
        model = RunNode
        fields = (
            "id",
            "run",
            "node_id",
            "block_type",
            "iteration",
            "attempt",
            "status",
            "output",
            "cost_usd",
            "tokens",
            "latency_ms",
            "soul_id",
            "soul_version",
            "prompt_hash",
            "exit_handle",
            "child_run",
            "error",
            "started_at",
            "finished_at",
            "eval_score",
            "eval_passed",
            "eval_results",
            "delta",
        )
        read_only_fields = fields


class EventSerializer(serializers.Serializer[Any]):
    """One entry of a run's history, as the websocket sends it."""

    seq = serializers.IntegerField()
    event = serializers.ChoiceField(choices=EventName.choices)
    run_id = serializers.UUIDField()
    workflow = serializers.CharField()
    at = serializers.DateTimeField()
    data = serializers.DictField()  # type: ignore[assignment]  # the message's word


class EventPageSerializer(serializers.Serializer[Any]):
    """A stretch of a run's history."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = EventSerializer(many=True)


# Souls


class SoulSerializer(StrictSerializer, serializers.ModelSerializer[Soul]):
    """An agent's identity."""

    slug = NewSlugField()  # that it is free is not for a serializer to say
    name = TextField(required=False, allow_blank=True, max_length=200)
    role = TextField(required=False, allow_blank=True, max_length=200)
    system_prompt = TextField(required=False, allow_blank=True)
    temperature = NumberField(required=False, allow_null=True, min_value=0, max_value=2)
    max_tokens = WholeNumberField(required=False, allow_null=True, min_value=1, max_value=LARGEST_NUMBER)

    class Meta:
        model = Soul
        fields = (
            "slug",
            "name",
            "role",
            "system_prompt",
            "provider",
            "model_name",
            "temperature",
            "max_tokens",
            "avatar_color",
            "version",
            "updated_at",
        )
        read_only_fields = ("version", "updated_at")
