"""Trends, regressions, baselines, soul histories and the dashboard in the API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evals_app.models import Regression, RegressionKind, RegressionState
from evals_app.monitoring.dashboard import BUCKETS
from evals_app.monitoring.regressions import regression_summary
from workflows_app.api.base.fields import StrictSerializer, WholeNumberField
from workflows_app.api.serializers import LARGEST_NUMBER


class LevelSerializer(serializers.Serializer[Any]):
    """The mean of a number of runs."""

    count = serializers.IntegerField(required=False)
    mean = serializers.FloatField(required=False)
    unit = serializers.CharField(
        required=False, help_text="`tokens` where they stand in for an unknown cost."
    )


class SuspectedSerializer(serializers.Serializer[Any]):
    """The versions that changed where a regression began."""

    workflow_version = serializers.IntegerField(allow_null=True)
    soul_version = serializers.CharField(allow_null=True)
    from_run = serializers.IntegerField(
        required=False, allow_null=True, help_text="The first run of what is suspected."
    )


class RegressionSerializer(serializers.Serializer[Any]):
    """A lasting change for the worse; the run fields are run numbers."""

    id = serializers.UUIDField()
    workflow = serializers.CharField()
    node_id = serializers.CharField()
    kind = serializers.ChoiceField(choices=RegressionKind.choices)
    assertion = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(choices=RegressionState.choices)
    since_run = serializers.IntegerField(allow_null=True)
    found_run = serializers.IntegerField(allow_null=True)
    suspected = SuspectedSerializer(allow_null=True)
    before = LevelSerializer()
    after = LevelSerializer()
    evidence = serializers.FloatField()
    found_at = serializers.DateTimeField()

    def to_representation(self, instance: Regression) -> Any:
        return regression_summary(instance)


# Trends


class PointSerializer(serializers.Serializer[Any]):
    """One run on the line; `run` is null once it was pruned."""

    run = serializers.UUIDField(allow_null=True)
    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    version = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)


class NormalSerializer(serializers.Serializer[Any]):
    """What is normal; the interval is null below 20 runs."""

    count = serializers.IntegerField()
    mean = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class VersionMarkSerializer(serializers.Serializer[Any]):
    """Where a version came into use."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()


class TrendSerializer(serializers.Serializer[Any]):
    """A block's history as a line."""

    block = serializers.CharField(allow_null=True)
    metric = serializers.CharField()
    points = PointSerializer(many=True)
    baseline = NormalSerializer(allow_null=True)
    versions = VersionMarkSerializer(many=True)
    regressions = RegressionSerializer(many=True)


# Baselines


class PinSerializer(StrictSerializer):
    """The run, or the version, that is to be normal from now on."""

    run = serializers.UUIDField(required=False)
    version = WholeNumberField(required=False, min_value=1, max_value=LARGEST_NUMBER)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("Give either `run` (its id) or `version` (its number).")
        return attrs


class PinnedSerializer(serializers.Serializer[Any]):
    """What was pinned, by whom and when."""

    run = serializers.UUIDField(source="run_id", allow_null=True)
    version = serializers.IntegerField(source="version.number", allow_null=True, default=None)
    by = serializers.CharField(source="pinned_by.get_username", allow_null=True, default=None)
    at = serializers.DateTimeField(source="pinned_at")


class VerdictSerializer(serializers.Serializer[Any]):
    """Where the evidence stands for one metric."""

    state = serializers.CharField()
    count = serializers.IntegerField()
    needed = serializers.IntegerField()


class BlockBaselineSerializer(serializers.Serializer[Any]):
    """What is normal for one block, by metric: what its next node is compared with."""

    block = serializers.CharField(source="node_id")
    count = serializers.IntegerField()
    metrics = serializers.DictField(source="compared_with", child=NormalSerializer())
    verdicts = serializers.DictField(child=VerdictSerializer())


class BaselineSerializer(serializers.Serializer[Any]):
    """The baselines of a workflow; `pinned` is null while they follow the last hundred runs."""

    workflow = serializers.CharField(source="slug")
    pinned = PinnedSerializer(source="pinned_baseline", allow_null=True, default=None)
    blocks = BlockBaselineSerializer(source="block_statistics", many=True)


# Souls


class SoulVersionSerializer(serializers.Serializer[Any]):
    """One version of a soul, and the results of the blocks that used it."""

    version = serializers.CharField()
    created_at = serializers.DateTimeField()
    author = serializers.CharField(allow_null=True)
    definition = serializers.DictField()
    runs = serializers.IntegerField()
    mean_score = serializers.FloatField(allow_null=True)
    pass_rate = serializers.FloatField(allow_null=True)
    mean_cost_usd = serializers.FloatField(allow_null=True)
    mean_latency_ms = serializers.FloatField(allow_null=True)


# Dashboard


class FigureSerializer(serializers.Serializer[Any]):
    """A figure, the same for the range before, and its values over time."""

    value = serializers.FloatField(allow_null=True)
    previous = serializers.FloatField(allow_null=True)
    series = serializers.ListField(child=serializers.FloatField(allow_null=True))


class AttentionSerializer(serializers.Serializer[Any]):
    """A regression or a failed run that needs attention."""

    type = serializers.ChoiceField(choices=["regression", "failed_run"])
    sentence = serializers.CharField()
    at = serializers.DateTimeField()
    workflow = serializers.CharField()
    node_id = serializers.CharField(allow_null=True)
    run = serializers.UUIDField(allow_null=True)
    run_number = serializers.IntegerField(allow_null=True)
    suspected_version = serializers.IntegerField(allow_null=True)
    regression = RegressionSerializer(allow_null=True)
    times = serializers.IntegerField(allow_null=True, help_text="Runs that failed alike in the last day.")


class DashboardSerializer(serializers.Serializer[Any]):
    """The figures of a range, how many runs are in progress, and what needs attention."""

    range = serializers.ChoiceField(choices=list(BUCKETS))
    pass_rate = FigureSerializer()
    mean_score = FigureSerializer()
    cost_usd = FigureSerializer()
    runs = FigureSerializer()
    running = serializers.IntegerField()
    attention = AttentionSerializer(many=True)
