"""The list of workflows, one workflow, its versions."""

import re
from html import unescape

import pytest
from django.db.models import F

from evals_app.block_assertions import assertion_key
from evals_app.models import Observation, Regression
from evals_app.monitoring import effects
from tests.callers import queries_of
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import ONE_CODE_BLOCK, make_workflow
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import Run, Workflow

pytestmark = pytest.mark.django_db
SECOND = ONE_CODE_BLOCK.replace("HELLO", "HELL")
RIGHT_TO_LEFT = "استخراج الفواتير"


# The list


def test_an_empty_list_teaches_one_action():
    page = html(visitor("editor"), "/workflows/")
    assert "No workflows yet" in page and page.count('href="/start/"') == 1
    assert 'href="/start/"' not in html(visitor("viewer"), "/workflows/")


def test_a_row_shows_how_the_last_runs_went():
    workflow = make_workflow()
    run = add_history(workflow, [1.0] * 15 + [0.5] * 5)[-1]
    add_regression(run)
    page = html(visitor(), "/workflows/")
    assert "75%" in page
    assert "$0.0020" in page
    assert "Regressed</span>" in page
    assert f'href="/runs/{run.pk}/">#20</a>' in page


def test_a_workflow_whose_last_run_did_not_pass_is_not_called_fine():
    workflow = make_workflow()
    add_history(workflow, [1.0, 0.5])
    page = html(visitor(), "/workflows/")
    assert "Last run did not pass" in page
    assert "Fine" not in page
    add_history(workflow, [1.0])
    assert "Fine" in html(visitor(), "/workflows/")


def test_a_regression_that_somebody_acknowledged_is_not_over():
    workflow = make_workflow()
    run = add_history(workflow, [1.0] * 15 + [0.5] * 5)[-1]
    add_regression(run)
    add_regression(run, kind="cost_spike")
    Regression.objects.update(state="acknowledged")
    for path in ("/workflows/", "/workflows/?state=regressed"):
        page = html(visitor(), path)
        assert "Regressed, acknowledged" in page and ">2</span>" in page
        assert "Fine" not in page and "did not pass" not in page
    Regression.objects.filter(kind="cost_spike").update(state="open")
    page = html(visitor(), "/workflows/")
    assert "Regressed</span>" in page and "acknowledged" not in page and ">2</span>" in page
    Regression.objects.update(state="resolved")
    assert "Last run did not pass" in html(visitor(), "/workflows/")


def test_a_workflow_that_nothing_evaluated_is_not_called_fine():
    add_history(make_workflow(), [1.0])
    Run.objects.update(eval_passed=None)
    page = html(visitor(), "/workflows/")
    assert "Not evaluated" in page and "Fine" not in page


def test_search_and_state_find_workflows():
    make_workflow()
    services.set_enabled(make_workflow(slug="quiet"), False)
    assert "/workflows/quiet/" not in html(visitor(), "/workflows/?q=SHO")
    assert "/workflows/quiet/" in html(visitor(), "/workflows/?state=disabled")
    assert "No workflow matches" in html(visitor(), "/workflows/?q=nothing%00")
    assert "No workflow matches" in html(visitor(), "/workflows/?state=regressed")


def test_a_list_of_many_has_pages_that_leave_nothing_out():
    make_workflow()
    Workflow.objects.bulk_create(Workflow(slug=f"w-{n:03}", name=f"W {n}") for n in range(120))
    path, seen = "/workflows/", set()
    for _ in range(3):
        response = visitor().get(path)
        seen |= {row.workflow.slug for row in response.context["rows"]}
        path = "/workflows/" + response.context["next_url"]
    assert len(seen) == 121
    assert response.context["next_url"] == ""


def test_the_queries_of_the_list_do_not_grow():
    add_history(make_workflow(), [1.0])
    few = queries_of(visitor(), "/workflows/")
    for number in range(9):
        add_history(make_workflow(slug=f"more-{number}"), [1.0, 0.5] * 6)
    assert queries_of(visitor(), "/workflows/") == few


def test_long_and_right_to_left_names_are_kept_in_bounds():
    workflow = make_workflow()
    Workflow.objects.filter(pk=workflow.pk).update(name=RIGHT_TO_LEFT)
    make_workflow(slug="a" * 200)
    page = html(visitor(), "/workflows/")
    assert f"<bdi>{RIGHT_TO_LEFT}</bdi>" in page
    assert f"/workflows/{'a' * 200}/" in page


# One workflow


def test_a_version_suspected_of_something_does_not_link_to_itself():
    add_regression(add_history(make_workflow(), [1.0] * 5)[-1])
    assert "What version 1 changed" in html(visitor(), "/workflows/shout/")
    page = html(visitor(), "/workflows/shout/versions/1/")
    assert "/acknowledge/" in page and "What version 1 changed" not in page
    assert 'name="next" value="/workflows/shout/versions/1/"' in page  # handled here, one stays here


def test_what_became_worse_is_the_first_thing_on_the_page():
    workflow = make_workflow()
    runs = add_history(workflow, [1.0] * 5)
    assert 'class="alarm"' not in html(visitor(), "/workflows/shout/")
    add_regression(runs[-1])
    page = html(visitor(), "/workflows/shout/")
    assert page.index('class="alarm"') < page.index('id="graph"')
    assert "Run it now" in page
    assert "Run it now" not in html(visitor("viewer"), "/workflows/shout/")


def test_every_block_has_its_state_and_its_assertions_with_their_history():
    add_history(make_workflow(), [1.0] * 6 + [0.0])
    page = html(visitor(), "/workflows/shout/")
    assert "Too few runs (7 of 20)" in page
    assert "<code>contains</code>" in page
    assert "86%" in page
    assert "<title>6 of 7 passed</title>" in page


def test_a_workflow_never_run_says_what_to_do():
    make_workflow()
    page = html(visitor(), "/workflows/shout/")
    assert "No runs yet" in page
    assert "No completed run yet." in page


def test_the_chart_comes_later_unless_the_address_asks_for_it():
    runs = add_history(make_workflow(), [1.0, 0.5, 1.0])
    page = html(visitor(), "/workflows/shout/")
    assert 'data-load="/workflows/shout/trend/"' in page
    assert "chart__plot" not in page
    asked = html(visitor(), "/workflows/shout/?block=shout&metric=cost&range=50")
    assert "Cost per run of <code>shout</code>" in asked
    assert f'href="runs/{runs[0].number}/"' in asked
    assert 'href="?block=shout&amp;metric=score&amp;range=50#trend"' in asked


def test_the_legend_of_a_chart_explains_only_what_is_drawn():
    workflow = make_workflow(ONE_CODE_BLOCK.replace("value: HELLO", "value: HELLO, metric: tone"))
    add_history(workflow, [1.0, 0.5] * 15)
    Observation.objects.update(named_scores={"tone": 0.25})
    for query, typical in (
        ("block=shout", "0.75"),
        ("block=shout&metric=pass_rate", "50%"),
        ("block=shout&metric=tone", "0.25"),
        ("metric=pass_rate", "50%"),
        ("block=shout&metric=tokens", ""),
    ):
        page = html(visitor(), f"/workflows/shout/trend/?{query}").replace("&nbsp;", " ")
        legend, chart = page.split('class="legend"')[1].split("</div>", 1)
        assert (f"typical {typical}" in legend) if typical else ("typical" not in legend), query
        for mark in ("chart__band", "chart__typical"):
            assert (mark in legend) == (mark in chart), (query, mark)


def test_a_chart_is_named_for_what_it_draws():
    add_history(make_workflow(), [1.0, 0.5])
    Observation.objects.update(named_scores={"structure": 1.0})
    page = html(visitor(), "/workflows/shout/trend/?block=shout&metric=pass_rate")
    assert "Pass rate of the last 20 runs of <code>shout</code>" in page
    page = html(visitor(), "/workflows/shout/trend/?block=shout&metric=structure")
    assert "Structure per run of <code>shout</code>" in page


def test_a_page_that_is_open_asks_for_what_is_new_with_the_chart_in_it():
    workflow = make_workflow()
    add_history(workflow, [1.0, 0.5])
    page = html(visitor("admin"), "/workflows/shout/?versions=1&part=1")
    assert 'class="chart__plot"' in page and 'data-load="/workflows' not in page
    assert "part=1" not in page and '"part"' not in page and "versions=1" in page
    assert "data-settling" not in page
    Run.objects.filter(number=2).update(observed_at=None)
    assert "data-settling" in html(visitor(), "/workflows/shout/?part=1")
    assert "data-settling" in html(visitor(), "/?part=1")


def test_links_that_change_one_thing_of_the_address_keep_the_rest():
    large_workflow(55, 1, versions=22)
    kept = "graph=all&blocks=2&versions=2&regressions=2"
    page = unescape(html(visitor("admin"), f"/workflows/large/?{kept}"))
    assert f'data-load="/workflows/large/trend/?{kept}"' in page
    assert f'href="?{kept}&range=200#trend"' in page  # without scripts
    assert f'href="?{kept}&block=step_number_22#trend"' in page
    assert 'href="?graph=all&blocks=3&versions=2&regressions=2#blocks"' in page
    assert 'href="?graph=all&blocks=2&versions=1&regressions=2#versions"' in page
    other = "graph=all&versions=2&regressions=2&block=step_number_3"  # on another page of blocks
    assert f'href="?{other}#block-step_number_3"' in page
    undrawn = html(visitor(), "/workflows/large/?blocks=2&metric=cost")
    assert 'href="?blocks=2&amp;metric=cost&amp;graph=all#graph"' in undrawn


def test_what_is_picked_of_the_trend_is_added_to_the_address():
    add_history(make_workflow(), [1.0, 0.5])
    part = visitor().get("/workflows/shout/trend/?graph=all&versions=2")
    assert 'href="?graph=all&amp;versions=2&amp;metric=cost#trend"' in squeezed(part)
    assert '<input type="hidden" name="versions" value="2">' in squeezed(part)


@pytest.mark.parametrize("query", ["range=", "metric=%00", "block=", "range=30d&metric=tokens"])
def test_an_odd_address_still_draws(query):
    add_history(make_workflow(), [1.0, 0.5])
    assert "chart" in html(visitor(), f"/workflows/shout/trend/?{query}")


def test_an_unknown_block_is_not_found():
    make_workflow()
    assert visitor().get("/workflows/shout/trend/?block=nobody").status_code == 404
    assert visitor().get("/workflows/nobody/").status_code == 404


def test_a_block_no_longer_in_the_document_keeps_its_trend():
    add_history(make_workflow(), [1.0, 0.5])
    services.save_version("shout", ONE_CODE_BLOCK.replace("shout:", "whisper:"))
    assert "chart__plot" in html(visitor(), "/workflows/shout/trend/?block=shout")


def test_a_version_shows_its_effect():
    workflow = make_workflow()
    add_history(workflow, [1.0] * 39 + [0.9])
    version = services.save_version("shout", SECOND, message="Less is more")
    add_history(Workflow.objects.get(), [0.6, 0.8] * 20, version=version)
    page = html(visitor(), "/workflows/shout/")
    assert "since version 2: score 0.99 → 0.70, 40 runs each, evidence strong" in page
    assert "Less is more" in page
    detail = html(visitor(), "/workflows/shout/versions/2/")
    assert "<del>HELLO</del>" in detail or "<del>" in detail
    assert "Worse, strong" in detail
    assert "no evidence of change" in detail  # its cost
    assert "The first version" in html(visitor(), "/workflows/shout/versions/1/")
    assert visitor().get("/workflows/shout/versions/3/").status_code == 404


def test_an_effect_that_is_a_regression_has_its_evidence():
    workflow = make_workflow()
    add_history(workflow, [1.0] * 40)
    version = services.save_version("shout", SECOND)
    run = add_history(Workflow.objects.get(), [0.6, 0.8] * 20, version=version)[-1]
    Regression.objects.all().delete()
    row = add_regression(run, kind="quality_drop", evidence=7.0, state="acknowledged")
    page = html(visitor(), "/workflows/shout/").split('id="versions"')[1]
    assert "score 1.00 → 0.70, 40 runs each, evidence fair" in page
    assert "Worse, fair" in html(visitor(), "/workflows/shout/versions/2/")
    for elsewhere in (
        {"node_id": "other"},
        {"kind": "latency_spike"},
        {"suspected": {"workflow_version": 1}},
    ):
        Regression.objects.filter(pk=row.pk).update(
            **{"node_id": "shout", "kind": "quality_drop", "suspected": {"workflow_version": 2}} | elsewhere
        )
        page = html(visitor(), "/workflows/shout/").split('id="versions"')[1]
        assert "40 runs each, evidence strong" in page


def test_of_many_regressions_that_a_version_is_suspected_of_the_newest_are_read(
    monkeypatch, django_assert_num_queries
):
    workflow = make_workflow()
    run = add_history(workflow, [1.0])[0]
    for kind in ("latency_spike", "quality_drop"):
        for evidence in (7.0, 8.0):
            add_regression(run, kind=kind, evidence=evidence, state="resolved")
    with django_assert_num_queries(1):
        assert effects.known_evidence(workflow, [1]) == {
            (1, "shout", "latency"): 8.0,
            (1, "shout", "score"): 8.0,
        }
    monkeypatch.setattr(effects, "MOST_KNOWN", 2)
    assert effects.known_evidence(workflow, [1]) == {(1, "shout", "score"): 8.0}


def test_a_pinned_version_is_marked_and_can_be_unpinned_where_it_stands():
    workflow = make_workflow()
    add_history(workflow, [1.0] * 4)
    services.save_version("shout", SECOND)
    client = visitor("editor")
    page = html(client, "/workflows/shout/")
    assert "Pinned</span>" not in page and page.count(">Pin as baseline<") == 2
    client.post("/workflows/shout/baseline/", {"version": "1"})
    page = html(client, "/workflows/shout/").split('id="versions"')[1]
    newest, pinned = page.split("<tr data-row>")[1:]
    assert "Pinned</span>" not in newest and ">Pin as baseline<" in newest
    assert "Pinned</span>" in pinned and ">Unpin<" in pinned and ">Pin as baseline<" not in pinned
    assert "Pinned</span>" in html(visitor("viewer"), "/workflows/shout/")
    page = html(client, "/workflows/shout/versions/1/")
    assert "Pinned</span>" in page and ">Unpin<" in page and ">Pin as baseline<" not in page
    assert "Pinned</span>" not in html(client, "/workflows/shout/versions/2/")
    client.post("/workflows/shout/baseline/", {"": ""})  # the button has no name
    assert "Pinned</span>" not in html(client, "/workflows/shout/")


def test_the_queries_of_a_workflow_do_not_grow():
    workflow = make_workflow()
    add_regression(add_history(workflow, [1.0, 0.5])[-1])
    paths = (
        "/workflows/shout/",
        "/workflows/shout/trend/",
        "/workflows/shout/trend/?small=1&block=shout",
        "/workflows/shout/versions/1/",
    )
    few = [queries_of(visitor(), path) for path in paths]
    for number in range(8):
        services.save_version("shout", SECOND + f"# {number}\n")
        add_history(Workflow.objects.select_related("current_version").get(), [1.0, 0.5] * 10)
    run = workflow.runs.order_by("-number").first()
    for kind in ("quality_drop", "cost_spike", "latency_spike"):
        add_regression(run, kind=kind)
    many = [queries_of(visitor(), path) for path in paths]
    assert many[:3] == few[:3]
    assert many[3] <= few[3] + 1  # the second version has something to be compared with


def test_a_version_that_can_no_longer_be_read_is_reported_and_breaks_nothing():
    workflow = make_workflow()
    add_history(workflow, [1.0])
    Workflow.objects.filter(pk=workflow.pk).update(
        current_version=workflow.versions.create(number=2, yaml="blocks: [old rules]")
    )
    assert "Version 2 can no longer be read." in html(visitor(), "/workflows/shout/")
    assert visitor().post("/workflows/shout/run/").status_code == 302
    for path in ("/", "/workflows/", "/workflows/shout/trend/", "/workflows/shout/versions/2/"):
        html(visitor(), path)


def test_a_trend_reads_only_the_newest_runs():
    from evals_app.monitoring.trends import trend

    workflow = make_workflow()
    add_history(workflow, [1.0] * 60)
    for block in ("shout", ""):
        assert len(trend(workflow, block, range="all", most_runs=25).points) == 25
        assert len(trend(workflow, block, range="50", most_runs=25).points) == 25
        assert len(trend(workflow, block, range="all").points) == Observation.objects.count() == 60


def large_workflow(blocks: int, assertions: int, versions: int = 12) -> Workflow:
    """One with many blocks, assertions and named metrics, two hundred runs, versions, regressions."""
    names = [f"step_number_{n}" for n in range(blocks)]
    checks = "".join(
        f"      - {{type: contains, value: 'what step {n} must say', metric: quality_{n}}}\n"
        for n in range(assertions)
    )
    text = 'version: "1.0"\nblocks:\n' + "".join(
        f"  {name}:\n    type: code\n    code: |\n      def main(data):\n          return 'ok'\n"
        + (f"    depends: {names[n - 1 if n % 3 else n - 3]}\n" if n else "")
        + f"    assertions:\n{checks}"
        for n, name in enumerate(names)
    )
    for number in range(versions):
        services.save_version(
            "large", f"{text}# {number}\n", message="What was changed and why, in a sentence"
        )
    workflow = Workflow.objects.select_related("current_version").get(slug="large")
    runs = add_history(workflow, [1.0, 1.0, 0.5, 1.0] * 50, block=names[0], also=names[1:4])
    Observation.objects.update(workflow_version=F("run_number") / 17 + 1)
    for name in names[:12]:
        add_regression(runs[-1], node_id=name)
    return workflow


def test_what_is_too_much_for_one_page_has_pages_that_leave_nothing_out():
    large_workflow(25, 1)
    client, found = visitor("admin"), {"block": set(), "version": set(), "regression": set()}
    for page in (1, 2, 3, 4):
        shown = html(client, f"/workflows/large/?blocks={page}&versions={page}&regressions={page}")
        found["block"] |= set(re.findall(r'id="block-(step_number_\d+)"', shown))
        found["version"] |= set(re.findall(r'href="/workflows/large/versions/(\d+)/" data-row-link', shown))
        found["regression"] |= set(re.findall(r"/regressions/([\w-]+)/acknowledge/", shown))
    assert {name: len(values) for name, values in found.items()} == {
        "block": 25,
        "version": 12,
        "regression": 12,
    }
    for odd in (
        "blocks=0",
        "blocks=99",
        "blocks=x",
        "versions=-1",
        "regressions=%00",
        "blocks=9999999999999",
    ):
        html(client, f"/workflows/large/?{odd}")


def test_the_effects_of_a_version_on_many_blocks_have_pages_too():
    workflow = large_workflow(25, 1)
    names = [f"step_number_{n}" for n in range(25)]
    for number in (11, 12):
        version = workflow.versions.get(number=number)
        add_history(Workflow.objects.get(), [1.0, 0.5] * 5, block=names[0], also=names[1:], version=version)
    pages = [html(visitor(), f"/workflows/large/versions/12/?against=11&blocks={n}") for n in (1, 2)]
    shown = [re.findall(r"\?block=(step_number_\d+)#trend", page) for page in pages]
    assert sorted(name for page in shown for name in page) == sorted(names)
    assert 'href="?against=11&amp;blocks=2#blocks"' in pages[0]


def test_a_large_graph_is_drawn_when_asked_for():
    large_workflow(55, 1)
    page = html(visitor(), "/workflows/large/")
    assert "Draw all 55 blocks" in page and "graph__node" not in page
    asked = html(visitor(), "/workflows/large/?graph=all")
    assert asked.count("graph__node") == 55
    assert 'href="#block-step_number_3"' in asked
    assert 'href="?graph=all&amp;block=step_number_20#block-step_number_20"' in asked


def test_every_block_of_a_page_comes_with_its_assertions():
    large_workflow(25, 2)
    page = html(visitor(), "/workflows/large/")
    assert page.count("check-row__type") == 2 * 20 and "<title>22 of 30 passed</title>" in page
    asked = html(visitor(), "/workflows/large/?block=step_number_20")
    assert 'id="block-step_number_20"' in asked and asked.count("check-row__type") == 2 * 5
    assert 'class="chart__plot"' in html(visitor(), "/workflows/large/trend/?small=1&block=step_number_3")
    assert visitor().get("/workflows/large/trend/?small=1&block=nobody").status_code == 404


def test_many_assertions_of_a_block_have_pages_those_first_that_pass_least():
    text = (
        'version: "1.0"\nblocks:\n  one:\n    type: code\n    code: "def main(data): return 1"\n    assertions:\n'
        + "".join(f"      - {{type: contains, value: v{n}}}\n" for n in range(120))
    )
    workflow = make_workflow(text, "asked-much")
    add_history(workflow, [1.0] * 3, block="one")
    row = workflow.block_statistics.get()
    key = assertion_key({"type": "contains", "value": "v17"})
    row.slices["assertion"][key]["passed"] = 1
    row.save()
    pages = [html(visitor(), f"/workflows/asked-much/?block=one&assertions={n}") for n in (1, 2, 3)]
    asked = [re.findall(r'check-row__asks small faint" title="(v\d+)"', page) for page in pages]
    assert asked[0][:3] == ["v17", "v0", "v1"] and [len(found) for found in asked] == [50, 50, 20]
    assert "1 to 50 of 120 assertions" in pages[0] and "assertions=2#block-one" in pages[0]


def test_a_run_is_found_by_its_number():
    run = add_history(make_workflow(), [1.0, 0.5])[0]
    assert visitor().get("/workflows/shout/runs/1/")["Location"] == f"/runs/{run.pk}/"
    for number in ("3", "0", "9" * 30):
        assert visitor().get(f"/workflows/shout/runs/{number}/").status_code == 404
