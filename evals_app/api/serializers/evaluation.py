"""Evaluations, trials of assertions and ingested runs in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evals_app.assertion_yaml import MOST_ASSERTIONS, read_assertions
from evals_app.monitoring.backtest import DEFAULT_OUTPUTS, MOST_OUTPUTS
from evals_app.services.report_checks import MOST_NODES
from workflows_app.api.base.fields import (
    MomentField,
    NumberField,
    StrictSerializer,
    TextField,
    WholeNumberField,
)
from workflows_app.api.serializers import LARGEST_NUMBER, AnyObject, FaultSerializer, RunSerializer
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Environment, RunStatus

LARGEST_COUNT = 2**53


class AssertionResultSerializer(serializers.Serializer[Any]):
    """The result of one assertion."""

    type = serializers.CharField(allow_blank=True)
    passed = serializers.BooleanField()
    score = serializers.FloatField()
    reason = serializers.CharField()
    weight = serializers.FloatField()
    metric = serializers.CharField(allow_null=True)
    error = serializers.BooleanField()
    measured = serializers.FloatField(allow_null=True)
    index = serializers.IntegerField()


class NodeEvalSerializer(serializers.Serializer[Any]):
    """The evaluation of one node."""

    node_id = serializers.CharField()
    iteration = serializers.IntegerField()
    eval_score = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)
    assertions = AssertionResultSerializer(many=True)
    delta = AnyObject()
    error = serializers.CharField(allow_null=True, help_text="Set when the evaluator itself broke.")


class RunEvalSerializer(serializers.Serializer[Any]):
    """The evaluation of a run."""

    run_id = serializers.UUIDField()
    aggregate_score = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)
    nodes = NodeEvalSerializer(many=True)


# Ingesting


class IngestTokensSerializer(StrictSerializer):
    """Tokens a node spent; the total defaults to the sum."""

    prompt = WholeNumberField(required=False, min_value=0, max_value=LARGEST_COUNT)
    completion = WholeNumberField(required=False, min_value=0, max_value=LARGEST_COUNT)
    total = WholeNumberField(required=False, min_value=0, max_value=LARGEST_COUNT)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"type": {"type": "string", "maxLength": 100}, "message": {"type": "string"}},
                "required": ["message"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    }
)
class ReportedErrorField(serializers.Field[Any, Any, Any, Any]):
    """Why a block failed: a sentence, or a type and a message."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            return data
        if not isinstance(data, dict) or data.keys() - {"type", "message"}:
            raise serializers.ValidationError("Must be a text, or an object with `type` and `message`.")
        kind, message = data.get("type", "external"), data.get("message")
        if not isinstance(message, str) or not isinstance(kind, str) or len(kind) > 100:
            raise serializers.ValidationError(
                "`message` must be a text, and `type` one of at most 100 characters."
            )
        return {"type": kind, "message": message}


@extend_schema_field({})
class AnyJsonField(serializers.JSONField):
    """Any JSON value."""


class IngestNodeSerializer(StrictSerializer):
    """What one block did: a text as its output, or any JSON, which is kept as its JSON text."""

    node_id = TextField(max_length=200)
    output = AnyJsonField(required=False, allow_null=True)
    cost_usd = NumberField(required=False, allow_null=True, min_value=0, max_value=1e9)
    latency_ms = NumberField(required=False, allow_null=True, min_value=0, max_value=1e12)
    tokens = IngestTokensSerializer(required=False, allow_null=True)
    soul_id = TextField(required=False, max_length=200, allow_blank=True)
    soul_version = TextField(required=False, max_length=100, allow_blank=True)
    iteration = WholeNumberField(
        required=False,
        min_value=1,
        max_value=LARGEST_NUMBER,
        help_text="Counted in the order sent without it.",
    )
    error = ReportedErrorField(required=False, allow_null=True)
    started_at = MomentField(required=False, allow_null=True)
    finished_at = MomentField(required=False, allow_null=True)


class IngestSerializer(StrictSerializer):
    """A run that was executed elsewhere."""

    workflow = TextField(max_length=200)
    external_id = TextField(max_length=200)
    status = serializers.ChoiceField(
        choices=[RunStatus.COMPLETED.value, RunStatus.FAILED.value, RunStatus.CANCELLED.value]
    )
    version = WholeNumberField(required=False, min_value=1, max_value=LARGEST_NUMBER)
    environment = serializers.ChoiceField(choices=Environment.choices, required=False)
    inputs = serializers.DictField(required=False)
    started_at = MomentField(required=False, allow_null=True)
    finished_at = MomentField(required=False, allow_null=True)
    nodes = IngestNodeSerializer(many=True, max_length=MOST_NODES)  # type: ignore[call-arg]  # the list's


class IngestedRunSerializer(RunSerializer):
    """A run with its nodes' results."""

    nodes = NodeEvalSerializer(many=True, read_only=True)

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "nodes")  # type: ignore[assignment]  # one more
        read_only_fields = fields  # type: ignore[assignment]


# Trying assertions


# Only "an object": a bad assertion is not refused, its result is an error.
ASSERTION_CONFIG = {
    "type": "object",
    "additionalProperties": {},
    "examples": [{"type": "contains", "value": "x"}],
}


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": ASSERTION_CONFIG, "maxItems": MOST_ASSERTIONS},
            {"type": "string", "description": "The list as YAML, as it stands in a workflow document."},
        ]
    }
)
class AssertionsField(serializers.ListField):
    """Assertions as in a workflow document, or the YAML text of them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=serializers.DictField(), max_length=MOST_ASSERTIONS, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            data, faults = read_assertions(data)
            if faults:
                raise InvalidDocument(
                    [Fault(f"assertions{one.path}", one.line, one.message) for one in faults]
                )
        return super().to_internal_value(data)


class EvaluateContextSerializer(StrictSerializer):
    """What assertions may check besides the output."""

    prompt = TextField(required=False, allow_blank=True, allow_null=True)
    cost_usd = NumberField(required=False, allow_null=True, min_value=0)
    latency_ms = NumberField(required=False, allow_null=True, min_value=0)
    total_tokens = WholeNumberField(required=False, allow_null=True, min_value=0, max_value=LARGEST_COUNT)
    soul_id = TextField(required=False, allow_blank=True, allow_null=True)
    soul_version = TextField(required=False, allow_blank=True, allow_null=True)
    block_id = TextField(required=False, allow_blank=True, allow_null=True)
    block_type = TextField(required=False, allow_blank=True, allow_null=True)
    variables = serializers.DictField(required=False)


class EvaluateSerializer(StrictSerializer):
    """An output and the assertions to try on it."""

    output = AnyJsonField(allow_null=True)
    assertions = AssertionsField()
    context = EvaluateContextSerializer(required=False)  # type: ignore[assignment]  # the call's word


class EvaluationSerializer(serializers.Serializer[Any]):
    """The results of the assertions; nothing was stored."""

    score = serializers.FloatField()
    passed = serializers.BooleanField()
    assertions = AssertionResultSerializer(many=True)
    named_scores = serializers.DictField(child=serializers.FloatField())
    faults = FaultSerializer(many=True, help_text="Of assertions sent as YAML, each with its line.")


class BacktestRequestSerializer(StrictSerializer):
    """A block, and the assertions to check its outputs with."""

    workflow = TextField(max_length=200)
    block = TextField(max_length=200)
    assertions = AssertionsField()
    limit = WholeNumberField(required=False, min_value=1, max_value=MOST_OUTPUTS, default=DEFAULT_OUTPUTS)


class BacktestSideSerializer(serializers.Serializer[Any]):
    """Verdicts before, or after."""

    passed = serializers.IntegerField()
    mean_score = serializers.FloatField(allow_null=True)


class FlipSerializer(serializers.Serializer[Any]):
    """An output whose verdict would have been another."""

    run = serializers.UUIDField()
    node = serializers.IntegerField()
    was = serializers.BooleanField()
    now = serializers.BooleanField()
    reason = serializers.CharField()


class MeasuredSerializer(serializers.Serializer[Any]):
    """The measured values of one assertion."""

    type = serializers.CharField(allow_blank=True)
    values = serializers.ListField(child=serializers.FloatField())


class BacktestSerializer(serializers.Serializer[Any]):
    """The results that edited assertions would have had; at most 500 of the flips are listed."""

    count = serializers.IntegerField()
    before = BacktestSideSerializer()
    after = BacktestSideSerializer()
    flipped = FlipSerializer(many=True)
    flipped_count = serializers.IntegerField(source="flips")
    stopped = serializers.BooleanField(help_text="It took too long; `count` outputs were checked.")
    measured = MeasuredSerializer(many=True)


class AssertionFieldSerializer(serializers.Serializer[Any]):
    """One field of an assertion type."""

    name = serializers.CharField()
    kind = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # the catalogue's word
    default = AnyJsonField()
    description = serializers.CharField(allow_blank=True)


class AssertionTypeSerializer(serializers.Serializer[Any]):
    """One assertion type."""

    type = serializers.CharField()
    family = serializers.CharField()
    description = serializers.CharField()
    fields = AssertionFieldSerializer(many=True)  # type: ignore[assignment]  # the catalogue's word
    example = serializers.DictField()
    example_yaml = serializers.CharField()
