"""Which runs a list shows, in which order, and how to page through a million of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Concat
from django.utils import timezone

from workflows_app.display import formats
from workflows_app.display.querystring import PAGE_SIZE
from workflows_app.models import Run, RunQuerySet, RunStatus, Source, Workflow, WorkflowVersion

CHUNK = 1000
MOST_MATCHES = 50  # workflows that one text finds
MOST_NEWER = 99  # runs that are counted
FEW = 2000  # rows that are sorted in no time
VERDICTS = ("passed", "failed", "error", "none")  # what did not finish is found by its status

# The name in the address, and the column: each has an index that ends in the id.
SORTS = {"score": "eval_score", "cost": "cost_usd", "duration": "duration_ms", "started": "created_at"}
NEWEST_FIRST = "-started"


def _choices(nothing: str, words: list[str]) -> list[tuple[str, str]]:
    return [("", nothing), *((word, word.capitalize()) for word in words)]


def _input(placeholder: str, **attributes: Any) -> forms.TextInput:
    return forms.TextInput({"class": "input", "placeholder": placeholder, **attributes})


_SELECT = forms.Select({"class": "select"})


class RunFilter(forms.Form):
    """The filters of a list of runs, from the address."""

    workflow = forms.CharField(
        required=False,
        max_length=200,
        widget=_input(
            "Any workflow",
            list="workflow-names",
            autocomplete="off",
            **{"data-search": True, "data-wide": True},
        ),
    )
    error = forms.CharField(
        required=False,
        max_length=200,
        label="Error says",
        widget=_input("timeout, 429, …", type="search", **{"data-wide": True}),
    )
    status = forms.ChoiceField(
        required=False, choices=_choices("Any status", list(RunStatus.values)), widget=_SELECT
    )
    verdict = forms.ChoiceField(
        required=False,
        choices=[("", "Any verdict"), *((word, formats.VERDICTS[word][0]) for word in VERDICTS)],
        widget=_SELECT,
    )
    source = forms.ChoiceField(
        required=False, choices=_choices("Any source", list(Source.values)), widget=_SELECT
    )
    version = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, widget=_input("Any", inputmode="numeric")
    )
    number = forms.CharField(required=False, max_length=12, widget=_input("#42", inputmode="numeric"))
    since = forms.DateField(required=False, label="From", widget=_input("", type="date"))
    until = forms.DateField(required=False, label="To", widget=_input("", type="date"))

    def clean_workflow(self) -> list[int]:
        """The workflow of exactly this slug, else those that are called something like it; none if nothing is given."""
        text = self.cleaned_data["workflow"].strip()
        if not text:
            return []
        # Looked up first: with numbers instead of a subquery the index also gives the order.
        found = list(Workflow.objects.filter(slug=text).values_list("pk", flat=True)) or list(
            Workflow.objects.called(text).order_by("slug").values_list("pk", flat=True)[:MOST_MATCHES]
        )
        if not found:
            raise forms.ValidationError(f"No workflow is called “{text}”.")
        return found

    def clean_number(self) -> int | None:
        """`42` and `#42` are the same run."""
        text = self.cleaned_data["number"].strip().lstrip("#")
        if not text:
            return None
        if not text.isdecimal() or int(text) > 2**31 - 1:
            raise forms.ValidationError(f"“{text}” is not the number of a run; give one such as 42.")
        return int(text)

    @property
    def is_active(self) -> bool:
        """Whether anything is left out."""
        return any(self.data.get(name) for name in self.fields)

    def apply(self, runs: RunQuerySet, order: Order | None = None) -> RunQuerySet:
        """The runs that pass, to be shown in an order; what was not understood leaves nothing, and the form says why."""
        if not self.is_valid():
            return runs.none()
        wanted = self.cleaned_data
        is_by_time = order is None or order.key == "started"
        if wanted["workflow"]:
            runs = _of_workflows(runs, wanted["workflow"], is_by_time=is_by_time)
        for name in ("status", "source"):
            if wanted[name]:
                is_indexed = is_by_time or _are_few(Q(**{name: wanted[name]}))
                runs = runs.filter(**{name: wanted[name]}) if is_indexed else _along(runs, name, wanted[name])
        if wanted["verdict"]:
            runs = runs.with_verdict(wanted["verdict"], by_index=is_by_time)
        if wanted["version"]:
            runs = _of_version(runs, wanted["version"], wanted["workflow"])
        if wanted["number"] is not None:
            # Through the workflows, because numbers are indexed per workflow.
            runs = runs.filter(number=wanted["number"], workflow__in=Workflow.objects.values("pk"))
        if wanted["error"]:
            runs = runs.with_error_text(wanted["error"])
        return _between(runs, wanted["since"], wanted["until"])


def _are_few(wanted: Q) -> bool:
    """Whether so few runs are wanted that they are sorted in no time."""
    return Run.objects.filter(wanted).order_by().values("pk")[:FEW].count() < FEW


def _along(runs: RunQuerySet, name: str, value: str) -> RunQuerySet:
    """Those with a value, found by walking along the order: by the mere column a database takes its index and sorts all."""
    return runs.alias(**{f"its_{name}": Concat(F(name), Value(""))}).filter(**{f"its_{name}": value})


def _of_workflows(runs: RunQuerySet, workflows: list[int], *, is_by_time: bool) -> RunQuerySet:
    if len(workflows) == 1 and is_by_time:
        return runs.filter(workflow=workflows[0])
    if _are_few(Q(workflow__in=workflows)):
        return runs.filter(workflow__in=workflows)
    # As above, and so for a list of them in the order of time, too: together they have many.
    return runs.alias(its_workflow=F("workflow_id") + 0).filter(its_workflow__in=workflows)


def _of_version(runs: RunQuerySet, number: int, workflows: list[int]) -> RunQuerySet:
    versions = WorkflowVersion.objects.filter(number=number)
    if workflows:
        versions = versions.filter(workflow__in=workflows)
    if len(workflows) == 1:
        found = versions.values_list("pk", flat=True).first()
        return runs.filter(version=found) if found else runs.none()
    if _are_few(Q(version__in=versions.values("pk"))):
        return runs.filter(version__in=versions.values("pk"))
    # Many workflows have such a version: walk along the order and look at each, instead of sorting them all.
    # A scalar, because a database may turn anything else into the join that has to be sorted.
    its_number = WorkflowVersion.objects.filter(pk=OuterRef("version")).values("number")
    return runs.alias(its_number=Subquery(its_number)).filter(its_number=number)


def _between(runs: RunQuerySet, since: dt.date | None, until: dt.date | None) -> RunQuerySet:
    if since:
        runs = runs.filter(created_at__gte=_midnight(since))
    if until and until < dt.date.max:  # nothing comes after the last day there is
        runs = runs.filter(created_at__lt=_midnight(until + dt.timedelta(days=1)))
    return runs


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), tzinfo=timezone.get_default_timezone())


def _moment(text: str) -> dt.datetime:
    """A time with its offset, in UTC: one near the ends of the calendar may have no place there."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return moment.astimezone(dt.UTC)


@dataclass(frozen=True)
class Order:
    """A sort: the column, its direction, and the word for it in the address."""

    name: str

    @classmethod
    def of(cls, text: str) -> Order:
        """The order an address asks for; the newest first if it asks for none that there is."""
        return cls(text if text.removeprefix("-") in SORTS else NEWEST_FIRST)

    @property
    def key(self) -> str:
        return self.name.removeprefix("-")

    @property
    def column(self) -> str:
        return SORTS[self.key]

    @property
    def is_descending(self) -> bool:
        return self.name.startswith("-")

    def rows(self, runs: RunQuerySet, *, backward: bool = False) -> RunQuerySet:
        """The runs in this order. By a figure only those that are finished and have it: the others have no place."""
        sign = "-" if self.is_descending != backward else ""
        if self.column != "created_at":
            runs = runs.filter(**dict.fromkeys((f"{self.column}__isnull", "duration_ms__isnull"), False))
        return runs.order_by(f"{sign}{self.column}", f"{sign}id")

    def beyond(self, cursor: str, *, backward: bool) -> Q | None:
        """What lies beyond a row, in a shape that an index can follow; None for a cursor nobody gave out."""
        text, _, row = cursor.rpartition("~")
        try:
            key = UUID(row)
            value: Any = float(text) if self.column != "created_at" else _moment(text)
        except (ValueError, OverflowError):
            return None
        way = "lt" if self.is_descending != backward else "gt"
        further = Q(**{f"{self.column}__{way}": value}) | Q(**{f"id__{way}": key})
        return Q(**{f"{self.column}__{way}e": value}) & further

    def cursor(self, run: Run) -> str:
        """Where a row stands; rows that come or go meanwhile do not move it."""
        value = getattr(run, self.column)
        return f"{value.isoformat() if isinstance(value, dt.datetime) else repr(value)}~{run.pk.hex}"


@dataclass(frozen=True)
class Page:
    """Some rows, and the cursors that lead on and back."""

    runs: list[Run]
    earlier: str = ""  # cursor for `before`: towards the first page
    later: str = ""  # cursor for `after`
    first: str = ""  # cursor of the first row


def page_of(runs: RunQuerySet, order: Order, *, after: str = "", before: str = "") -> Page:
    """One page beyond a cursor; costs the same on the first page and the ten-thousandth."""
    condition = order.beyond(before or after, backward=bool(before)) if before or after else None
    backward = bool(before) and condition is not None  # an unknown cursor leads to the first page
    rows = order.rows(runs, backward=backward)
    found = list((rows.filter(condition) if condition is not None else rows)[: PAGE_SIZE + 1])
    has_more = len(found) > PAGE_SIZE
    found = found[:PAGE_SIZE]
    if backward:
        found.reverse()
    if not found:
        return Page([])
    has_earlier = has_more if backward else condition is not None
    has_later = True if backward else has_more
    return Page(
        found,
        earlier=order.cursor(found[0]) if has_earlier else "",
        later=order.cursor(found[-1]) if has_later else "",
        first=order.cursor(found[0]),
    )


def count_before(runs: RunQuerySet, order: Order, cursor: str, most: int) -> int:
    """How many rows stand before one in this order, all where there is none; counts to one more than the most."""
    rows = order.rows(runs)
    condition = order.beyond(cursor, backward=True) if cursor else Q()
    return rows.filter(condition)[: most + 1].count() if condition is not None else 0


def chunks_of(runs: RunQuerySet, order: Order) -> Iterator[list[Run]]:
    """All rows in order, some at a time: each its own query, so that a slow reader holds nothing open."""
    rows = order.rows(runs)
    found = list(rows[:CHUNK])
    while found:
        yield found
        if len(found) < CHUNK:
            return
        beyond = order.beyond(order.cursor(found[-1]), backward=False)
        found = list(rows.filter(beyond)[:CHUNK]) if beyond is not None else []
