"""Workflows and their versions, souls, providers, and the rows a run leaves behind."""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from workflows_app.display import formats
from workflows_app.engine.definition import InvalidDocument, SoulDef, WorkflowDefinition
from workflows_app.engine.slugs import slug_error
from workflows_app.engine.validate import compile_document

if TYPE_CHECKING:
    from django.contrib.auth.models import User


# What stored texts compile to, so that a process compiles each once; the one used longest ago goes first.
_definitions: OrderedDict[str, WorkflowDefinition] = OrderedDict()
MOST_DEFINITIONS = 512


def person_field() -> models.ForeignKey[User | None, User | None]:
    """Who did something; what they did stays when they are deleted."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )


class WorkflowQuerySet(models.QuerySet["Workflow"]):
    """Reads of workflows."""

    def for_list(self) -> Self:
        """With what every list prints."""
        return self.select_related("current_version").order_by("slug")

    def called(self, text: str) -> Self:
        """Those whose name or slug holds a text."""
        return self.filter(Q(slug__icontains=text) | Q(name__icontains=text))


class Workflow(models.Model):
    """A named document; every saved change is a version."""

    slug = models.SlugField(max_length=200, unique=True)
    name = models.CharField(max_length=200)
    enabled = models.BooleanField(default=True)
    is_demo = models.BooleanField(default=False, help_text="Made by the demo; pages say so.")
    current_version = models.ForeignKey(
        "WorkflowVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    last_run_number = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = WorkflowQuerySet.as_manager()

    class Meta:
        ordering = ("slug",)
        permissions = (
            ("save_code", "Can save workflows with code blocks"),
            ("pin_baseline", "Can pin baselines"),
        )

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return f"/workflows/{self.slug}/"

    @property
    def readable_definition(self) -> WorkflowDefinition | None:
        """The current version's document; None where there is none, or none that today's rules accept."""
        return self.current_version.readable_definition if self.current_version else None


class WorkflowVersion(models.Model):
    """One immutable text of a workflow."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    yaml = models.TextField()
    sha256 = models.CharField(max_length=64)
    author = person_field()
    message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("workflow", "number"), name="version_number_once"),)

    def __str__(self) -> str:
        return f"{self.workflow.slug} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("A workflow version never changes; save a new one.")
        self.sha256 = hashlib.sha256(self.yaml.encode()).hexdigest()
        super().save(*args, **kwargs)

    @property
    def definition(self) -> WorkflowDefinition:
        """The parsed document; who has parsed the text already sets it."""
        try:
            _definitions.move_to_end(self.yaml)
        except KeyError:
            self.definition = compile_document(self.yaml)
        return _definitions[self.yaml]

    @definition.setter
    def definition(self, compiled: WorkflowDefinition) -> None:
        _definitions[self.yaml] = compiled
        if len(_definitions) > MOST_DEFINITIONS:
            _definitions.popitem(last=False)

    @property
    def readable_definition(self) -> WorkflowDefinition | None:
        """The parsed document; None where today's rules refuse an old text, whose runs must still be shown."""
        try:
            return self.definition
        except InvalidDocument:
            return None


class Soul(models.Model):
    """An agent's identity in the library."""

    slug = models.SlugField(max_length=200, unique=True)
    name = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    provider = models.CharField(max_length=100, default="demo")
    model_name = models.CharField(max_length=200, default="demo-small")
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    avatar_color = models.CharField(max_length=20, blank=True)
    version = models.CharField(max_length=12, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return f"/souls/{self.slug}/"

    def clean(self) -> None:
        if self._state.adding and (problem := slug_error(self.slug)):
            raise ValidationError({"slug": problem})

    @property
    def fingerprint(self) -> str:
        """Changes with every edit, also of what is no part of the identity."""
        return hashlib.sha256(f"{self.version}\0{self.name}\0{self.avatar_color}".encode()).hexdigest()[:16]

    @property
    def definition(self) -> SoulDef:
        return SoulDef(
            id=self.slug,
            role=self.role,
            name=self.name,
            system_prompt=self.system_prompt,
            provider=self.provider,
            model_name=self.model_name,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
        )


class SoulVersion(models.Model):
    """What a soul was at one time."""

    PARTS: ClassVar[dict[str, str]] = {
        "role": "Role",
        "provider": "Provider",
        "model_name": "Model",
        "temperature": "Temperature",
        "max_tokens": "Longest answer",
    }

    soul = models.ForeignKey(Soul, on_delete=models.CASCADE, related_name="versions")
    version = models.CharField(max_length=12)
    definition = models.JSONField()
    author = person_field()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-created_at",)
        constraints = (models.UniqueConstraint(fields=("soul", "version"), name="soul_version_once"),)

    def __str__(self) -> str:
        return f"{self.soul.slug} {self.version}"

    @property
    def text(self) -> str:
        """Its definition as a text that can be compared line by line."""
        values = {label: self.definition.get(name) for name, label in self.PARTS.items()}
        lines = [f"{label}: {'–' if value in (None, '') else value}" for label, value in values.items()]
        return "\n".join([*lines, "", str(self.definition.get("system_prompt") or "No system prompt.")])


class Provider(models.Model):
    """A server that answers prompts; its key is encrypted and never shown again."""

    name = models.SlugField(max_length=100, unique=True)
    kind = models.CharField(max_length=50, default="openai")
    base_url = models.URLField(blank=True)
    encrypted_key = models.TextField(blank=True, editable=False)
    enabled = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class PriceOverride(models.Model):
    """What a model costs here, where the price table does not know it or is wrong."""

    model_name = models.CharField(max_length=200, unique=True)
    input_per_million_usd = models.DecimalField(max_digits=12, decimal_places=6)
    output_per_million_usd = models.DecimalField(max_digits=12, decimal_places=6)

    class Meta:
        ordering = ("model_name",)

    def __str__(self) -> str:
        return self.model_name


class RunStatus(models.TextChoices):
    """States of a run: pending, running, then one of the three it ends in; only what is not over can be cancelled."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (RunStatus.PENDING, RunStatus.RUNNING)
BROKEN_OFF = (RunStatus.FAILED, RunStatus.CANCELLED)
TERMINAL = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


class NodeStatus(models.TextChoices):
    """States of a run node."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class Source(models.TextChoices):
    """What started a run."""

    MANUAL = "manual"
    API = "api"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    INGEST = "ingest"
    EVAL = "eval"


class Environment(models.TextChoices):
    """Whether a run counts for what is normal."""

    PRODUCTION = "production"
    SIMULATION = "simulation"


class RunQuerySet(models.QuerySet["Run"]):
    """Reads of runs."""

    # A rate counts a run that failed as not passed, whatever it had passed until then, and no cancelled one.
    RATED = Q(status=RunStatus.FAILED) | Q(status=RunStatus.COMPLETED, eval_passed__isnull=False)
    PASSED = Q(status=RunStatus.COMPLETED, eval_passed=True)

    def for_list(self) -> Self:
        """With what every list prints, and without what only one run's page does."""
        return self.select_related("workflow", "version").defer("outputs", "resolved", "version__yaml")

    def active(self) -> Self:
        return self.filter(status__in=ACTIVE)

    def counted(self) -> Self:
        """Those in the dashboard's figures: production, no evals, no child runs (their parents include them)."""
        # By depth and not by parent: SQLite would use the index on the parent, which is null in nearly every run.
        return self.filter(environment=Environment.PRODUCTION, depth=0).exclude(source=Source.EVAL)

    def with_verdict(self, word: str, *, by_index: bool = True) -> Self:
        """Those that are over and whose `Run.verdict` is this; in another order than by time, not by its index.

        Unfinished ones are found by their status: no index leads to those among them that had passed.
        """
        if word == "none":
            # Not by the states that are over: that index would be taken and leave every run to be sorted.
            return self.filter(eval_passed=None).exclude(status__in=ACTIVE)
        # A list of one: for `NOT eval_passed` SQLite uses no index, and with it would sort all that it leads to.
        is_passed = word == "passed"
        found = self.filter(eval_passed__in=[is_passed]) if by_index else self.filter(eval_passed=is_passed)
        if is_passed:
            return found.exclude(status__in=BROKEN_OFF)
        return found.filter(Q(assertions_failed__gt=0) if word == "failed" else Q(assertions_failed=0))

    def with_error_text(self, text: str) -> Self:
        """Failed runs whose error contains a text."""
        has_text = Q(error__message__icontains=text) | Q(error__type__icontains=text)
        return self.filter(has_text, status=RunStatus.FAILED)

    def before(self, run: Run) -> Self:
        """Earlier completed runs of the same workflow, latest first."""
        earlier = self.filter(workflow=run.workflow_id, number__lt=run.number, status=RunStatus.COMPLETED)
        return earlier.order_by("-number")

    def unannounced(self) -> Self:
        """Finished runs that were not observed yet."""
        return self.filter(status__in=TERMINAL, observed_at=None)


class Run(models.Model):
    """One execution of one version with its inputs."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Here and below db_index=False: a longer index begins with it, and one less is one less to write.
    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="runs", db_index=False)
    version = models.ForeignKey(
        WorkflowVersion, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=RunStatus, default=RunStatus.PENDING)
    source = models.CharField(max_length=10, choices=Source, default=Source.MANUAL)
    environment = models.CharField(max_length=10, choices=Environment, default=Environment.PRODUCTION)
    inputs = models.JSONField(default=dict)
    outputs = models.JSONField(null=True)
    error = models.JSONField(null=True)
    external_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - unique where given
    started_by = person_field()
    parent_run = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    rerun_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="reruns"
    )
    depth = models.PositiveSmallIntegerField(default=0)
    resolved = models.JSONField(
        default=dict, help_text="Souls and child versions as they were when the run started."
    )

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(null=True)

    # Totals, kept so that lists never add them up.
    cost_usd = models.FloatField(null=True)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    nodes_done = models.PositiveIntegerField(default=0)
    eval_score = models.FloatField(null=True)
    eval_passed = models.BooleanField(null=True)
    assertions_passed = models.PositiveIntegerField(default=0)
    assertions_failed = models.PositiveIntegerField(default=0)
    assertions_error = models.PositiveIntegerField(default=0)
    regression_count = models.PositiveIntegerField(default=0)

    # Who executes it: the lease decides, not a message from a broker.
    owner = models.CharField(max_length=200, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    takeovers = models.PositiveSmallIntegerField(default=0, help_text="Since the last finished block.")
    last_seq = models.PositiveIntegerField(default=0)
    observed_at = models.DateTimeField(null=True, help_text="When the end of this run was acted on.")

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("workflow", "number"), name="run_number_once"),
            models.UniqueConstraint(fields=("workflow", "external_id"), name="run_external_id_once"),
        )
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="run_newest"),
            models.Index(fields=("workflow", "-created_at"), name="run_of_workflow"),
            models.Index(fields=("status", "-created_at"), name="run_by_status"),
            models.Index(fields=("eval_passed", "-created_at"), name="run_by_verdict"),
            models.Index(fields=("source", "-created_at"), name="run_by_source"),
            models.Index(fields=("version", "-created_at"), name="run_by_version"),
            # Lists sorted by a figure: of finished runs only, so that a run under way moves in no index.
            *(
                models.Index(fields=(figure, "id"), name=name, condition=Q(duration_ms__isnull=False))
                for figure, name in (
                    ("eval_score", "run_by_score"),
                    ("cost_usd", "run_by_cost"),
                    ("duration_ms", "run_by_duration"),
                )
            ),
            models.Index(
                fields=("created_at",), name="run_active", condition=Q(status__in=["pending", "running"])
            ),
            models.Index(
                fields=("finished_at",),
                name="run_unannounced",
                condition=Q(observed_at=None, status__in=["completed", "failed", "cancelled"]),
            ),
        )
        permissions = (("start_run", "Can start, rerun and ingest runs"), ("cancel_run", "Can cancel runs"))

    def __str__(self) -> str:
        return f"{self.workflow.slug} #{self.number}"

    def get_absolute_url(self) -> str:
        return f"/runs/{self.id}/"

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_settling(self) -> bool:
        """Whether it is over but not observed yet."""
        return self.is_terminal and self.observed_at is None

    @property
    def is_counted(self) -> bool:
        """Whether `RunQuerySet.counted` finds it."""
        return self.environment == Environment.PRODUCTION and self.depth == 0 and self.source != Source.EVAL

    @property
    def tokens(self) -> dict[str, int]:
        return {
            "prompt": self.prompt_tokens,
            "completion": self.completion_tokens,
            "total": self.total_tokens,
        }

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def verdict(self) -> str:
        """What `RunQuerySet.with_verdict` finds it by; nothing has passed that was not finished."""
        if self.eval_passed and self.status in BROKEN_OFF:
            return "unfinished"
        return formats.verdict_of(self.eval_passed, has_failed=self.assertions_failed > 0)

    @property
    def has_passed(self) -> bool | None:
        """What it counts as in a pass rate, see `RunQuerySet.RATED`."""
        if self.status == RunStatus.FAILED:
            return False
        return self.eval_passed if self.status == RunStatus.COMPLETED else None

    @property
    def eval_counts(self) -> dict[str, int]:
        return {
            "passed": self.assertions_passed,
            "failed": self.assertions_failed,
            "error": self.assertions_error,
        }


class RunTotals(models.Model):
    """What the counted runs created in one hour add up to, so that figures need not read them."""

    slot = models.IntegerField(primary_key=True, help_text="Hours since 1970.")
    runs = models.PositiveIntegerField(default=0)
    passed = models.PositiveIntegerField(default=0)
    rated = models.PositiveIntegerField(default=0, db_column="judged")
    scored = models.PositiveIntegerField(default=0)
    score = models.FloatField(default=0.0)
    priced = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(default=0.0)
    is_stale = models.BooleanField(default=False, help_text="A run of it changed since it was added up.")
    mark = models.UUIDField(null=True, help_text="Of the last such change.")

    class Meta:
        verbose_name_plural = "run totals"
        indexes = (models.Index(fields=("slot",), name="totals_stale", condition=Q(is_stale=True)),)

    def __str__(self) -> str:
        return str(self.slot)


class RunNodeQuerySet(models.QuerySet["RunNode"]):
    """Reads of run nodes."""

    def unevaluated(self) -> Self:
        """Finished, but the process died before its evaluation was written."""
        return self.filter(status=NodeStatus.COMPLETED, evaluated_at=None)


class RunNode(models.Model):
    """One execution of one block in a run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="nodes", db_index=False)
    node_id = models.CharField(max_length=200)
    block_type = models.CharField(max_length=20)
    iteration = models.PositiveIntegerField(default=1)
    attempt = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=NodeStatus, default=NodeStatus.PENDING)
    output = models.TextField(blank=True)
    cost_usd = models.FloatField(null=True)
    tokens = models.JSONField(null=True)
    latency_ms = models.FloatField(null=True)
    soul_id = models.CharField(max_length=200, blank=True)
    soul_version = models.CharField(max_length=100, blank=True)
    prompt = models.TextField(blank=True)
    prompt_hash = models.CharField(max_length=64, blank=True)
    exit_handle = models.CharField(max_length=200, null=True)  # noqa: DJ001 - none taken is not the empty one
    child_run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="parent_nodes")
    error = models.JSONField(null=True)
    details = models.JSONField(
        default=dict, help_text="Model, token classes, price table, what code printed."
    )
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    eval_score = models.FloatField(null=True)
    eval_passed = models.BooleanField(null=True)
    eval_results = models.JSONField(null=True)
    delta = models.JSONField(null=True)
    evaluated_at = models.DateTimeField(null=True)

    objects = RunNodeQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "node_id", "iteration", "attempt"), name="node_execution_once"
            ),
        )
        indexes = (
            models.Index(
                fields=("run",), name="node_unevaluated", condition=Q(status="completed", evaluated_at=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.node_id} ({self.iteration}.{self.attempt})"

    @property
    def total_tokens(self) -> int | None:
        return self.tokens["total"] if self.tokens else None

    @property
    def assertion_words(self) -> tuple[str, ...]:
        """passed, failed or error, one for each assertion in the order written."""
        found = (self.eval_results or {}).get("assertions", ())
        return tuple(formats.result_word(passed=one["passed"], error=one["error"]) for one in found)

    @property
    def warnings(self) -> list[str]:
        """The messages of caps that only warn."""
        messages: list[str] = (self.details or {}).get("warnings", [])
        return messages

    @property
    def verdict(self) -> str:
        return formats.verdict_of(self.eval_passed, has_failed="failed" in self.assertion_words)


class EventName(models.TextChoices):
    """The kinds of entries in a run's history."""

    RUN_STARTED = "run_started"
    NODE_STARTED = "node_started"
    NODE_COMPLETED = "node_completed"
    NODE_FAILED = "node_failed"
    NODE_EVAL_COMPLETE = "node_eval_complete"
    REGRESSION_FOUND = "regression_found"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"


class RunEvent(models.Model):
    """One numbered entry in a run's history: the page and the socket both read these rows."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    event = models.CharField(max_length=30, choices=EventName)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("seq",)
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="event_seq_once"),)

    def __str__(self) -> str:
        return f"{self.seq} {self.event}"


class IdempotencyKey(models.Model):
    """A repeated call acts once: what the first one made."""

    KEPT_FOR: ClassVar[timedelta] = timedelta(hours=24)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_sha256 = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "path", "key"), name="idempotency_key_once"),)

    def __str__(self) -> str:
        return f"{self.path} {self.key}"


class AuditEntry(models.Model):
    """Who did what, kept as a row."""

    at = models.DateTimeField(default=timezone.now, db_index=True)
    user = person_field()
    action = models.CharField(max_length=50)
    target = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit log"

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class ApiToken(models.Model):
    """A named key of one user: only its hash is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=12, editable=False)
    role = models.CharField(
        max_length=20, blank=True, help_text="Limits the token to this role; empty: the user's own."
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API token"
        ordering = ("user", "name")
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="token_name_once"),)

    def __str__(self) -> str:
        return f"{self.user} {self.name}"
