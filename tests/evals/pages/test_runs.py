"""The list of runs: filters, order, pages, export, selection."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import AsyncClient

from evals_app.pages.runs import listing as run_list
from evals_app.pages.runs.export import harmless
from tests.callers import queries_of, user_in
from tests.html import squeezed
from workflows_app.models import Run, Workflow, WorkflowVersion

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def viewer(client, db):
    client.force_login(user_in("viewer"))
    return client


def make_version(slug: str = "triage", number: int = 1) -> WorkflowVersion:
    workflow, _ = Workflow.objects.get_or_create(slug=slug, defaults={"name": slug})
    return WorkflowVersion.objects.create(workflow=workflow, number=number, yaml=f"# {number}")


def make_runs(version: WorkflowVersion, count: int, **fields) -> list[Run]:
    """Finished runs, a minute apart, the first the oldest."""
    first = version.workflow.last_run_number
    Workflow.objects.filter(pk=version.workflow_id).update(last_run_number=first + count)
    version.workflow.last_run_number += count
    values = {
        "created_at": lambda place: START + timedelta(minutes=place),
        "status": "completed",
        "duration_ms": 100.0,
        "eval_passed": True,
        "eval_score": 1.0,
        **fields,
    }
    return Run.objects.bulk_create(
        Run(
            workflow=version.workflow,
            version=version,
            number=first + place + 1,
            **{name: value(place) if callable(value) else value for name, value in values.items()},
        )
        for place in range(count)
    )


def numbers(response) -> list[int]:
    return [run.number for run in response.context["page"].runs]


def test_a_run_under_way_has_no_verdict_yet_but_shows_what_failed(viewer):
    make_runs(make_version(), 1, status="running", eval_passed=None, eval_score=None, assertions_failed=1)
    page = squeezed(viewer.get("/runs/"))
    row = page.split("<tbody>")[1]
    assert "Not yet" in row and "1 failed" in row and "Not evaluated" not in row


def test_a_filter_that_cannot_be_read_is_not_called_one_that_nothing_matches(viewer):
    make_runs(make_version(), 1)
    page = squeezed(viewer.get("/runs/?number=first"))
    assert "Nothing was searched for" in page and "No run matches" not in page


def test_before_the_first_run_there_is_one_thing_to_do_and_nothing_to_filter(viewer):
    page = squeezed(viewer.get("/runs/"))
    assert "No runs yet" in page
    assert "data-filters" not in page and "download" not in page
    page = squeezed(viewer.get("/runs/?sort=-score"))
    assert "No run matches" in page and "data-filters" in page


def test_the_number_of_queries_does_not_grow_with_the_rows(viewer):
    version = make_version()
    counts = []
    for more in (1, 9, 30):
        make_runs(version, more)
        counts.append(queries_of(viewer, "/runs/"))
    assert len(set(counts)) == 1 and counts[0] <= 8


def test_an_empty_list_teaches_one_action_and_a_filtered_one_says_why(viewer):
    assert "See the workflows" in squeezed(viewer.get("/runs/"))
    viewer.force_login(user_in("operator"))
    assert "Choose a workflow to run" in squeezed(viewer.get("/runs/"))
    assert "No run matches" in squeezed(viewer.get("/runs/?status=failed"))


def test_without_a_workflow_there_is_none_to_choose_so_one_starts_with_a_file(viewer):
    viewer.force_login(user_in("editor"))
    page = squeezed(viewer.get("/runs/"))
    assert 'href="/start/"' in page and "Choose a workflow to run" not in page
    make_version()
    page = squeezed(viewer.get("/runs/"))
    assert 'href="/start/"' not in page and "Choose a workflow to run" in page


FILTERS = [
    # address                        numbers found
    ("workflow=triage", [3, 2, 1]),
    ("workflow=no-such-workflow", []),
    ("status=failed", [2]),
    ("verdict=failed", [2]),
    ("verdict=error", [1]),
    ("verdict=passed", [3]),
    ("verdict=none", [1]),
    ("source=api", [3]),
    ("version=2", [1]),
    ("version=2&workflow=triage", []),
    ("version=2&workflow=invoices", [1]),
    ("number=%2332", []),
    ("number=%232&workflow=triage", [2]),
    ("number=1", [1, 1]),
    ("since=2026-03-01&until=2026-03-01", [3, 2, 1]),
    ("since=2026-03-03", [1]),
    ("error=out+of+tea", [2]),
    ("error=TEA", [2]),
    ("error=coffee", []),
    ("status=nonsense", []),
    ("number=twelve", []),
]  # fmt: skip


@pytest.mark.parametrize(("address", "expected"), FILTERS)
@pytest.mark.storage
def test_each_filter_leaves_what_it_says(viewer, address, expected):
    triage, invoices = make_version(), make_version("invoices", 2)
    make_runs(triage, 1, eval_passed=False, assertions_error=2)
    make_runs(triage, 1, eval_passed=False, assertions_failed=1, status="failed",
              error={"type": "provider", "message": "We are out of tea."}, created_at=START + timedelta(hours=1))  # fmt: skip
    make_runs(triage, 1, source="api", created_at=START + timedelta(hours=2))
    make_runs(invoices, 1, eval_passed=None, eval_score=None, created_at=START + timedelta(days=3))
    assert numbers(viewer.get(f"/runs/?{address}")) == expected


@pytest.mark.parametrize("few", [run_list.FEW, 1])
@pytest.mark.storage
def test_a_workflow_is_found_by_a_part_of_its_name(viewer, monkeypatch, few):
    monkeypatch.setattr(run_list, "FEW", few)  # as with a million runs
    make_runs(make_version("invoice"), 1)
    make_runs(make_version("invoice-extraction", 2), 2, created_at=lambda i: START + timedelta(hours=i + 1))
    make_runs(make_version("triage"), 3)
    Workflow.objects.filter(slug="invoice-extraction").update(name="Invoice extraction")

    def found(text: str) -> list[tuple[str, int]]:
        runs = viewer.get(f"/runs/?workflow={text}").context["page"].runs
        return [(run.workflow.slug, run.number) for run in runs]

    assert found("invoice") == [("invoice", 1)]  # exactly that one
    assert found("Invoice+Extraction") == [("invoice-extraction", 2), ("invoice-extraction", 1)]
    assert found("invoic") == [("invoice-extraction", 2), ("invoice-extraction", 1), ("invoice", 1)]
    assert found("invoic&version=2") == [("invoice-extraction", 2), ("invoice-extraction", 1)]
    html = squeezed(viewer.get("/runs/?workflow=invoces"))
    assert "No workflow is called “invoces”." in html


@pytest.mark.storage
def test_the_filter_of_verdicts_finds_what_the_column_says(viewer):
    version = make_version()
    for failed in (0, 2):
        for error in (0, 2):
            make_runs(version, 1, eval_passed=False, assertions_failed=failed, assertions_error=error)
    make_runs(version, 1)
    make_runs(version, 1, eval_passed=None)
    make_runs(version, 1, eval_passed=None, status="running")
    for status in ("failed", "cancelled"):
        make_runs(version, 1, status=status)
    found = {word: sorted(numbers(viewer.get(f"/runs/?verdict={word}"))) for word in run_list.VERDICTS}
    assert found == {"passed": [5], "failed": [3, 4], "error": [1, 2], "none": [6]}
    for run in Run.objects.filter(status="completed"):
        assert run.number in found[run.verdict]
    for status, number in (("failed", 8), ("cancelled", 9)):
        assert numbers(viewer.get(f"/runs/?status={status}")) == [number]
        assert Run.objects.get(number=number).verdict == "unfinished"
    assert "unfinished is not one of" in squeezed(viewer.get("/runs/?verdict=unfinished"))


@pytest.mark.storage
def test_a_version_that_many_workflows_have_finds_the_same_runs(viewer, monkeypatch):
    for slug in ("a", "b"):
        make_runs(make_version(slug), 2)
        make_runs(make_version(slug, 2), 1)
    few = numbers(viewer.get("/runs/?version=1"))
    monkeypatch.setattr(run_list, "FEW", 3)
    assert len(few) == 4 and numbers(viewer.get("/runs/?version=1")) == few


def test_a_filter_that_is_not_understood_is_explained(viewer):
    html = squeezed(viewer.get("/runs/?number=twelve"))
    assert "“twelve” is not the number of a run" in html and 'aria-invalid="true"' in html


def test_an_error_names_a_filter_as_its_field_is_labelled(viewer):
    html = squeezed(viewer.get("/runs/?since=soon&until=later"))
    assert "<strong>From:</strong> Enter a valid date." in html and "<strong>To:</strong>" in html


ORDERS = ["-started", "started", "-score", "score", "-cost", "cost", "-duration", "duration"]


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.storage
def test_paging_shows_every_run_once_in_order_whatever_comes_meanwhile(viewer, monkeypatch, sort):
    monkeypatch.setattr(run_list, "PAGE_SIZE", 4)
    version = make_version()
    make_runs(
        version,
        18,
        eval_score=lambda i: (i * 7 % 5) / 5,
        cost_usd=lambda i: i % 3 / 7,
        duration_ms=lambda i: i % 4 / 3,
    )
    seen, address = [], f"?sort={sort}"
    while address:
        response = viewer.get(f"/runs/{address}")
        seen += response.context["page"].runs
        address = response.context["later_url"]
        if len(seen) == 8:
            make_runs(make_version("later"), 1, created_at=START + timedelta(days=1), eval_score=0.99)
    column = run_list.Order.of(sort).column
    values = [getattr(run, column) for run in seen if run.workflow.slug == "triage"]
    assert sorted(run.number for run in seen if run.workflow.slug == "triage") == list(range(1, 19))
    assert values == sorted(values, reverse=sort.startswith("-"))
    while address := response.context["earlier_url"]:
        response = viewer.get(f"/runs/{address}")
    assert response.context["page"].earlier == ""


@pytest.mark.storage
def test_going_back_shows_the_page_before(viewer, monkeypatch):
    monkeypatch.setattr(run_list, "PAGE_SIZE", 3)
    make_runs(make_version(), 9)
    first = viewer.get("/runs/")
    second = viewer.get(f"/runs/{first.context['later_url']}")
    back = viewer.get(f"/runs/{second.context['earlier_url']}")
    assert (numbers(first), numbers(second)) == ([9, 8, 7], [6, 5, 4])
    assert numbers(back) == numbers(first) and back.context["earlier_url"] == ""


@pytest.mark.parametrize("cursor", ["x", "1~2", "2026-01-01~" + "0" * 32, "nan~" + "0" * 32])
def test_a_cursor_nobody_gave_out_is_harmless(viewer, cursor):
    make_runs(make_version(), 2)
    for sort in ("-started", "-score"):
        assert viewer.get("/runs/", {"after": cursor, "sort": sort}).status_code == 200


@pytest.mark.storage
def test_runs_without_the_figure_have_no_place_in_its_order_and_the_page_says_so(viewer):
    make_runs(make_version(), 1, eval_score=None)
    make_runs(make_version("other"), 1, eval_score=0.5)
    response = viewer.get("/runs/?sort=-score")
    assert [run.eval_score for run in response.context["page"].runs] == [0.5]
    assert "runs without a score are left out" in squeezed(response)


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.storage
def test_every_order_is_read_from_an_index(db, sort):
    make_runs(make_version(), 3, cost_usd=0.5)
    order = run_list.Order.of(sort)
    beyond = order.beyond(order.cursor(Run.objects.first()), backward=False)
    plan = order.rows(Run.objects.all()).filter(beyond)[:51].explain()
    if connection.vendor == "sqlite":
        assert "USING INDEX run_" in plan and "TEMP B-TREE" not in plan


@pytest.mark.parametrize("verdict", ["passed", "failed", "error", "none"])
@pytest.mark.storage
def test_every_verdict_is_read_from_its_index(db, verdict):
    make_runs(make_version(), 3)
    plan = run_list.Order.of("").rows(Run.objects.with_verdict(verdict))[:51].explain()
    if connection.vendor == "sqlite":
        assert "USING INDEX run_by_verdict (eval_passed=?)" in plan


@pytest.mark.parametrize("verdict", ["passed", "failed", "error"])
@pytest.mark.storage
def test_a_verdict_in_the_order_of_a_figure_walks_along_that_order(db, verdict):
    make_runs(make_version(), 3)
    order = run_list.Order.of("-score")
    form = run_list.RunFilter({"verdict": verdict})
    plan = order.rows(form.apply(Run.objects.all(), order))[:51].explain()
    if connection.vendor == "sqlite":
        assert "USING INDEX run_by_score" in plan and "TEMP B-TREE" not in plan


@pytest.mark.parametrize("wanted", [{"workflow": "triage"}, {"status": "completed"}, {"source": "manual"}])
@pytest.mark.parametrize("few", [0, 2000])
@pytest.mark.storage
def test_of_many_runs_those_wanted_are_found_along_the_order_of_a_figure(db, monkeypatch, wanted, few):
    make_runs(make_version(), 3)
    monkeypatch.setattr(run_list, "FEW", few)
    order = run_list.Order.of("-score")
    rows = order.rows(run_list.RunFilter(wanted).apply(Run.objects.all(), order))
    assert rows.count() == 3
    if connection.vendor == "sqlite" and not few:
        plan = rows[:51].explain()
        assert "USING INDEX run_by_score" in plan and "TEMP B-TREE" not in plan


CELLS = [
    ("=1+1", "'=1+1"),
    ("+49 30", "'+49 30"),
    ("-2", "'-2"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "'\t=1"),
    ("\r=1", "'\r=1"),
    ("  =1", "'  =1"),
    ("plain", "plain"),
    ("a=1", "a=1"),
    (-2.5, -2.5),
    (None, None),
]


@pytest.mark.parametrize(("value", "cell"), CELLS)
def test_cells_that_a_spreadsheet_would_run_are_made_harmless(value, cell):
    assert harmless(value) == cell


def test_csv_has_the_filtered_rows_in_the_order_shown(viewer, monkeypatch):
    monkeypatch.setattr(run_list, "CHUNK", 2)
    version = make_version()
    make_runs(version, 5, error={"type": "x", "message": "=HYPERLINK(1)"}, cost_usd=lambda i: i / 10)
    make_runs(make_version("other"), 1)
    response = viewer.get("/runs/export.csv?workflow=triage&sort=cost")
    assert response["Content-Disposition"] == 'attachment; filename="runs.csv"'
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert [row["number"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert {row["error"] for row in rows} == {"'=HYPERLINK(1)"}
    assert rows[0]["workflow"] == "triage" and rows[0]["eval_passed"] == "True"


@pytest.mark.django_db(transaction=True)
async def test_json_lines_are_streamed_in_pieces_by_an_asgi_server(monkeypatch):
    from asgiref.sync import sync_to_async

    monkeypatch.setattr(run_list, "CHUNK", 2)
    await sync_to_async(lambda: make_runs(make_version(), 5))()
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(user_in)("viewer"))
    response = await client.get("/runs/export.jsonl")
    pieces = [piece.decode() async for piece in response.streaming_content]
    assert [len(piece.splitlines()) for piece in pieces] == [2, 2, 1]
    exported = [json.loads(line) for line in "".join(pieces).splitlines()]
    assert [run["number"] for run in exported] == [5, 4, 3, 2, 1] and exported[0]["workflow"] == "triage"


def test_two_ticked_runs_are_compared_the_newer_with_the_older(viewer):
    old, new, third = make_runs(make_version(), 3)
    for chosen in ([old, new], [new, old]):
        response = viewer.get("/runs/compare/", {"run": [str(run.pk) for run in chosen]})
        assert response["Location"] == f"/runs/{new.pk}/compare/{old.pk}/"
    too_many = viewer.get("/runs/compare/", {"run": [str(run.pk) for run in (old, new, third)]})
    assert too_many["Location"] == "/runs/"
    assert viewer.get("/runs/compare/?run=nonsense").status_code == 404


def test_rows_that_are_shown_come_alone_and_newer_runs_are_counted(viewer):
    old, *new = make_runs(make_version(), 4)
    first = viewer.get("/runs/?workflow=triage").context["rows_url"]
    assert "newer=" in first and "workflow=triage" in first
    make_runs(make_version("other"), 1, created_at=START + timedelta(days=1))
    cursor = run_list.Order.of("").cursor(old)
    page = viewer.get("/runs/rows/", {"workflow": "triage", "newer": cursor, "run": [str(old.pk)]})
    text = squeezed(page)
    assert text.count("<tr") == 1 and str(old.pk) in text
    assert "3 new runs · show" in text and 'href="?workflow=triage"' in text
    assert "4 new runs" in squeezed(viewer.get("/runs/rows/", {"newer": cursor}))
    assert "5 new runs" in squeezed(viewer.get("/runs/rows/", {"newer": ""}))
    assert "new run" not in squeezed(viewer.get("/runs/rows/", {"run": str(new[0].pk)}))


def test_more_new_runs_than_can_be_counted_are_many(viewer, monkeypatch):
    monkeypatch.setattr("evals_app.pages.runs.views.MOST_NEWER", 2)
    make_runs(make_version(), 4)
    assert "More than 2 new runs · show" in squeezed(viewer.get("/runs/rows/?newer="))


@pytest.mark.parametrize("address", ["?sort=-cost", "?sort=started", "?after=x"])
def test_a_list_that_does_not_begin_with_the_newest_asks_for_none(viewer, address):
    make_runs(make_version(), 1)
    context = viewer.get(f"/runs/{address}").context
    assert not context["shows_newest"] and "newer" not in context["rows_url"]


def test_rows_are_asked_for_by_the_ids_of_runs(viewer):
    assert viewer.get("/runs/rows/?run=first").status_code == 404
    assert viewer.get("/runs/rows/?newer=nonsense").status_code == 200


@pytest.mark.parametrize(
    ("query", "words"),
    [("status=bogus", "bogus is not one of"), ("number=abc", "number"), ("since=x", "date")],
)
def test_an_export_says_what_it_does_not_understand(viewer, query, words):
    make_runs(make_version(), 1)
    for kind in ("csv", "jsonl"):
        answer = viewer.get(f"/runs/export.{kind}?{query}")
        assert answer.status_code == 400 and words in squeezed(answer)
    assert "/runs/export.csv" not in squeezed(viewer.get(f"/runs/?{query}"))


def test_a_cursor_of_nobodys_leads_to_the_first_page(viewer, monkeypatch):
    monkeypatch.setattr(run_list, "PAGE_SIZE", 2)
    make_runs(make_version(), 5)
    for name in ("after", "before"):
        assert numbers(viewer.get(f"/runs/?{name}=1~2")) == [5, 4]
