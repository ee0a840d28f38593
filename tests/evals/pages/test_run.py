"""One run's page, its inspector, and what is fetched again while it runs."""

import itertools
import json
import re

import pytest
import yaml

from evals_app.models import Regression
from evals_app.pages.run.blocks import RunBlocks, blocks_in_order
from evals_app.pages.run.inspector import Inspector
from evals_app.pages.run.log import announcement, log_lines
from tests.callers import queries_of, user_in
from tests.factories import make_workflow, run_now
from tests.html import squeezed
from workflows_app.engine.validate import compile_document
from workflows_app.models import (
    AuditEntry,
    NodeStatus,
    Run,
    RunEvent,
    RunNode,
    Soul,
    SoulVersion,
    Workflow,
    WorkflowVersion,
)

CHECKED = """\
version: "1.0"
blocks:
  extract:
    type: code
    code: |
      def main(data):
          return {"total": data["inputs"]["total"], "note": "<script>alert(1)</script>"}
    assertions:
      - {type: equals, value: 5, transform: "json_path:$.total", weight: 2, metric: sums}
      - {type: is-json}
      - {type: cost, threshold: 0.01}
      - {type: equals, value: 1, transform: "json_path:$.missing"}
  tell:
    type: code
    depends: extract
    code: |
      def main(data):
          return "# Done\\n\\nIt is **done**."
interface:
  inputs:
    - {name: total, type: number, default: 5}
"""


@pytest.fixture
def operator(client, db):
    client.force_login(user_in("operator"))
    return client


@pytest.fixture
def checked(transactional_db) -> Workflow:
    return make_workflow(CHECKED, "checked")


@pytest.fixture
def viewer(client, transactional_db):
    client.force_login(user_in("viewer"))
    return client


def bare_run(yaml_text: str = CHECKED, **fields) -> Run:
    workflow = Workflow.objects.create(slug="bare", name="Bare", last_run_number=1)
    version = WorkflowVersion.objects.create(workflow=workflow, number=1, yaml=yaml_text)
    return Run.objects.create(workflow=workflow, version=version, number=1, **{"status": "running", **fields})


def make_node(run: Run, node_id: str = "extract", **fields) -> RunNode:
    values = {"block_type": "code", "status": "completed", "output": "fine", **fields}
    return RunNode.objects.create(run=run, node_id=node_id, **values)


def html_of(client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return squeezed(response)


def test_the_page_shows_what_failed_and_why_first(viewer, checked):
    for _ in range(3):
        run_now(checked)
    run = run_now(checked, {"total": 7})
    html = html_of(viewer, f"/runs/{run.pk}/")
    assert 'data-inspected-block="extract"' in html
    assert "Failed" in html and "passed in <b>3 of the last 3</b>" in html
    assert "<strong>Could not be checked.</strong>" in html
    assert "mean before it" in html and "with 3 earlier runs" in html
    assert '<mark id="looked-at"><span class="n">7</span></mark>' in html
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html
    assert f"/runs/{run.pk}/compare/" in html and "Compare with #3" in html
    assert "Exact YAML that ran" in html and "json_path:$.total" in html


def test_markdown_is_rendered_and_the_source_is_there(viewer, checked):
    run = run_now(checked)
    node = run.nodes.get(node_id="tell")
    html = html_of(viewer, f"/runs/{run.pk}/nodes/{node.pk}/?part=1")
    assert "<h4>Done</h4>" in html and "<strong>done</strong>" in html and "# Done" in html
    assert "<html" not in html
    assert "<html" in html_of(viewer, f"/runs/{run.pk}/nodes/{node.pk}/")


def test_attempts_are_counted_by_rounds_only_where_there_are_some(viewer, transactional_db):
    run = bare_run()
    first = make_node(run, status="failed", attempt=1)
    make_node(run, attempt=2)
    address = f"/runs/{run.pk}/nodes/{first.pk}/"
    assert "Attempt 2" in html_of(viewer, address) and "Round 1" not in html_of(viewer, address)
    make_node(run, iteration=2)
    assert "Round 1, attempt 2" in html_of(viewer, address)


def test_a_graded_block_bears_its_verdict_alone(viewer, checked):
    """Completed and Failed side by side read as a contradiction."""
    node = run_now(checked, {"total": 7}).nodes.get(node_id="extract")
    head = html_of(viewer, f"/runs/{node.run_id}/nodes/{node.pk}/?part=1").partition("</header>")[0]
    assert "Failed" in head and "Completed" not in head


def test_the_number_of_queries_grows_neither_with_blocks_nor_with_rounds_nor_with_history(viewer, checked):
    addresses = (
        "/runs/{run}/",
        "/runs/{run}/live/?part=all",
        "/runs/{run}/live/?seq=1&block=extract",
        "/runs/{run}/nodes/{node}/",
    )

    def counts(run: Run) -> list[int]:
        found = []
        for address in addresses:
            node = run.nodes.exclude(eval_results=None).last()
            found.append(queries_of(viewer, address.format(run=run.pk, node=node.pk)))
        return found

    few = run_now(checked)
    before = counts(few)
    for _ in range(5):
        many = run_now(checked)
    results = many.nodes.get(node_id="extract").eval_results
    for attempt in range(2, 9):  # not passed either, so that the same block is looked at
        make_node(many, attempt=attempt, iteration=2, eval_passed=False, eval_results=results)
    assert counts(many) == before
    assert max(before) <= 14


def test_blocks_stand_in_the_order_they_run_with_a_loops_inside_after_it():
    definition = compile_document(
        """
version: "1.0"
souls: {s: {role: R, system_prompt: P, provider: demo, model_name: demo-small}}
blocks:
  last: {type: code, depends: ask, code: "def main(data): return 1"}
  draft: {type: llm, soul_ref: s, prompt: Go}
  ask:
    type: dispatch
    depends: refine
    exits: [{id: one, soul_ref: s, task: Go}, {id: two, soul_ref: s, task: Go}]
  refine: {type: loop, inner_block_refs: [draft]}
"""
    )
    assert [(name, depth) for name, _, depth in blocks_in_order(definition)] == [
        ("refine", 0), ("draft", 1), ("ask", 0), ("ask.one", 1), ("ask.two", 1), ("last", 0),
    ]  # fmt: skip


def test_a_pending_run_shows_its_blocks_before_any_has_begun(operator):
    run = bare_run(status="pending")
    html = html_of(operator, f"/runs/{run.pk}/")
    assert html.count('data-block="') == 2 and "Nothing has finished yet" in html
    assert 'data-live="yes"' in html and "Cancel run" in html


def test_room_for_a_score_is_kept_only_where_one_will_come(db):
    rows = {row.block_id: row.has_assertions for row in RunBlocks(bare_run(status="pending")).rows}
    assert rows == {"extract": True, "tell": False}


@pytest.mark.parametrize(
    ("status", "why"), [("completed", "a route did not include this block"), ("failed", "the run ended")]
)
def test_a_skipped_block_says_why_nothing_is_there(operator, status, why):
    run = bare_run(status=status)
    node = make_node(run, "tell", status="skipped", output="")
    assert why in html_of(operator, f"/runs/{run.pk}/nodes/{node.pk}/")


def test_a_loop_is_under_way_as_soon_as_something_inside_it_is(db):
    text = CHECKED.replace("  tell:\n", "  again: {type: loop, inner_block_refs: [tell]}\n  tell:\n")
    run = bare_run(text.replace("    depends: extract\n", ""))
    make_node(run, "tell", status="running")
    rows = {row.block_id: row.status for row in RunBlocks(run).rows}
    assert rows == {"extract": "pending", "again": NodeStatus.RUNNING, "tell": "running"}


def test_a_failed_attempt_an_evaluation_that_broke_and_a_failed_assertion_are_reported_apart(operator):
    run = bare_run()
    failed = make_node(run, status="failed", output="", error={"type": "timeout", "message": "Took 30 s."})
    broke = make_node(
        run,
        attempt=2,
        eval_passed=False,
        eval_results={"assertions": [], "named_scores": {}, "error": "The evaluation broke: KeyError"},
    )
    first = html_of(operator, f"/runs/{run.pk}/nodes/{failed.pk}/")
    assert "This attempt failed: timeout" in first and "Took 30 s." in first and "Attempt 2" in first
    second = html_of(operator, f"/runs/{run.pk}/nodes/{broke.pk}/")
    assert "The evaluation itself broke" in second and "KeyError" in second
    assert broke.verdict == "error"


def test_the_log_says_why_an_attempt_failed_and_that_another_follows(db):
    run = bare_run()
    data = {"node_id": "extract", "error": {"message": "The process stopped."}, "will_retry": True}
    (line,) = log_lines(run, [RunEvent(run=run, seq=1, event="node_failed", data=data, at=run.created_at)])
    assert line.text == "extract failed: The process stopped; will be tried again"


def test_the_log_names_a_regression_in_words(db):
    run = bare_run()
    data = {"node_id": "extract", "kind": "quality_drop"}
    (line,) = log_lines(
        run, [RunEvent(run=run, seq=1, event="regression_found", data=data, at=run.created_at)]
    )
    assert line.text == "regression found: quality drop of extract"


def test_what_was_usual_before_a_run_is_reported_as_that(operator):
    run = bare_run()
    delta = {"score_delta": -0.02, "baseline_score": 0.92, "baseline_run_count": 40, "low": 0.43, "high": 1.0,
             "latency_pct": 0.2}  # fmt: skip
    node = make_node(run, eval_score=0.9, eval_passed=False, latency_ms=7.5, delta=delta)
    page = html_of(operator, f"/runs/{run.pk}/nodes/{node.pk}/")
    assert "mean before it: 0.92, mostly 0.43 to 1.00" in page
    assert "mean before it: 7.5 ms" in page and "+0.2%" not in page  # nobody sees that change


def test_a_cap_that_only_warned_is_reported(operator):
    run = bare_run()
    node = make_node(run, details={"warnings": ["Limit of the run: 113 of the 20 tokens are used."]})
    assert "113 of the 20 tokens" in html_of(operator, f"/runs/{run.pk}/nodes/{node.pk}/")


def test_a_huge_output_is_folded_and_loads_on_demand(operator):
    run = bare_run()
    node = make_node(run, output="word " * 200_000)
    html = html_of(operator, f"/runs/{run.pk}/")
    assert "The first 20,000 of 1,000,000 characters" in html
    whole = operator.get(f"/runs/{run.pk}/nodes/{node.pk}/output.txt")
    assert whole["Content-Type"] == "text/plain; charset=utf-8" and len(whole.content) == 1_000_000


def test_other_long_texts_have_addresses_of_their_own(operator):
    run = bare_run()
    Run.objects.filter(pk=run.pk).update(inputs={"text": "in " * 9000}, outputs={"text": "out " * 9000})
    node = make_node(run, prompt="ask " * 9000, details={"stdout": "said " * 9000})
    html = html_of(operator, f"/runs/{run.pk}/")
    for name, size in (("inputs.json", 27000), ("outputs.json", 36000),
                       (f"nodes/{node.pk}/prompt.txt", 36000), (f"nodes/{node.pk}/printed.txt", 45000)):  # fmt: skip
        path = f"/runs/{run.pk}/{name}"
        assert f'href="{path}"' in html and len(operator.get(path).content) >= size
    assert operator.get(f"/runs/{run.pk}/nodes/{node.pk}/secrets.txt").status_code == 404


def test_many_assertions_and_rounds_have_pages(operator):
    run = bare_run()
    results = [
        {"type": "contains", "passed": n != 239, "score": 1.0, "reason": f"Reason {n}.", "weight": 1.0, "metric": None,
         "error": False, "measured": None, "index": n}
        for n in range(240)
    ]  # fmt: skip
    fields = {"eval_results": {"assertions": results, "error": None}, "eval_passed": False}
    nodes = [make_node(run, iteration=n, **fields) for n in range(1, 121)]
    path = f"/runs/{run.pk}/nodes/{nodes[60].pk}/"
    beside = html_of(operator, f"{path}?part=1")
    assert (
        "Reason 239." in beside
        and "All 240 assertions" in beside
        and beside.count("assertion__reason") == 100
    )
    pages = [html_of(operator, f"{path}?assertions={n}") for n in (1, 2, 3)]
    reasons = [re.findall(r"Reason (\d+)\.", page) for page in pages]
    assert sorted(map(int, itertools.chain(*reasons))) == list(range(240))
    assert "Round 61" in pages[0] and "Round 101" not in pages[0]
    assert f'data-node="{nodes[49].pk}">' in pages[0] and "Earlier" in pages[0] and "Later" in pages[0]


def test_awkward_names_and_texts_do_not_break_the_page(operator):
    run = bare_run()
    Workflow.objects.update(name="<b>" + "x" * 190)
    make_node(run, "extract", output="مرحبا " * 10, prompt="<img src=x onerror=alert(1)>")
    html = html_of(operator, f"/runs/{run.pk}/")
    assert "<img src=x" not in html and "&lt;b&gt;xxx" in html and 'dir="auto"' in html


def test_a_run_of_a_document_that_is_no_longer_valid_is_still_shown(operator):
    run = bare_run('version: "1.0"\nblocks:\n  a: {type: gate, eval_key: a}\n', status="completed")
    node = make_node(run, "a", eval_passed=True, eval_score=1.0,
                     eval_results={"assertions": [{"type": "equals", "passed": True, "score": 1.0, "reason": "Same.",
                     "weight": 1.0, "metric": None, "error": False, "measured": None, "index": 0}], "error": None})  # fmt: skip
    assert "no longer valid" in html_of(operator, f"/runs/{run.pk}/")
    assert "Same." in html_of(operator, f"/runs/{run.pk}/nodes/{node.pk}/")


def test_a_child_run_and_its_parent_link_to_each_other(operator):
    parent = bare_run()
    child = Run.objects.create(workflow=parent.workflow, version=parent.version, number=2, parent_run=parent)
    node = make_node(parent, child_run=child, block_type="workflow")
    assert f'href="/runs/{child.pk}/"' in html_of(operator, f"/runs/{parent.pk}/nodes/{node.pk}/")
    assert f'href="/runs/{parent.pk}/"' in html_of(operator, f"/runs/{child.pk}/")


def test_what_is_fetched_again_has_the_new_events_and_the_rest_only_when_asked(viewer, checked):
    run = run_now(checked)
    Run.objects.filter(pk=run.pk).update(status="running")
    start = run.events.get(event="node_started", data__node_id="tell")
    html = html_of(viewer, f"/runs/{run.pk}/live/?seq={start.seq - 1}&block=tell&chosen=1")
    assert html.count("data-seq=") == run.last_seq - start.seq + 1 and 'id="run-head"' in html
    assert re.findall(r'data-block="(\w+)"', html) == re.findall(r'data-node-id="(\w+)"', html) == ["tell"]
    assert 'data-inspected-block="tell"' in html and 'id="run-graph"' not in html
    unchanged = html_of(viewer, f"/runs/{run.pk}/live/?seq={run.last_seq}&block=tell&chosen=1")
    assert "data-block" not in unchanged and "data-inspected" not in unchanged
    everything = html_of(viewer, f"/runs/{run.pk}/live/?part=all&seq=nonsense")
    assert everything.count("data-seq=") == run.last_seq and 'id="run-graph"' in everything


def test_the_inspector_of_an_open_page_moves_to_a_block_that_failed_unless_one_was_chosen(operator):
    run = bare_run(status="running")
    for block, passed in (("extract", True), ("tell", False)):
        make_node(run, block, eval_passed=passed)
    blocks = RunBlocks(run)
    assert blocks.to_inspect("extract", is_chosen=False).block_id == "tell"
    assert blocks.to_inspect("extract", is_chosen=True).block_id == "extract"
    assert blocks.to_inspect("", is_chosen=False).block_id == "tell"


@pytest.mark.parametrize(
    ("event", "data", "sentence"),
    [
        ("node_failed", {"node_id": "a", "will_retry": False}, "a failed."),
        ("node_failed", {"node_id": "a", "will_retry": True}, ""),
        (
            "node_eval_complete",
            {"node_id": "a", "passed": False, "assertions": [{"passed": True}, {"passed": False}]},
            "a: 1 of 2 assertions did not pass.",
        ),
        (
            "run_completed",
            {"status": "completed", "eval_passed": True},
            "Run #1 completed, all assertions passed.",
        ),
        ("run_failed", {"status": "failed", "eval_passed": None}, "Run #1 failed."),
        ("node_started", {"node_id": "a"}, ""),
    ],
)
def test_a_screen_reader_says_what_matters(event, data, sentence):
    assert announcement(Run(number=1), [RunEvent(event=event, data=data)]) == sentence


def test_a_run_becomes_an_eval_case_that_is_valid_in_its_own_document(viewer, checked):
    run = run_now(checked, {"total": 7})
    text = squeezed(viewer.get(f"/runs/{run.pk}/case.yaml"))
    (case,) = yaml.safe_load(text)
    assert case["inputs"] == {"total": 7}
    assert json.loads(case["fixtures"]["extract"])["total"] == 7
    assert case["fixtures"]["tell"] == "# Done\n\nIt is **done**."
    document = CHECKED + "eval:\n  cases:\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert compile_document(document).eval.cases[0].id == f"run-{run.number}"


def test_cancelling_and_running_again_need_their_permissions_and_say_what_happened(client, transactional_db):
    run = bare_run()
    client.force_login(user_in("viewer"))
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 403
    assert client.post(f"/runs/{run.pk}/rerun/").status_code == 403
    assert "Run again" not in html_of(client, f"/runs/{run.pk}/")
    client.force_login(user_in("operator"))
    page = squeezed(client.post(f"/runs/{run.pk}/cancel/", follow=True))
    assert "Run #1 is cancelled." in page and "Cancel run" not in page and ">0 of" in page
    page = squeezed(client.post(f"/runs/{run.pk}/cancel/", follow=True))
    assert "already cancelled" in page
    entry = AuditEntry.objects.get(action="run.cancel")
    assert (entry.user.username, entry.target) == (user_in("operator").username, str(run))
    response = client.post(f"/runs/{run.pk}/rerun/", follow=True)
    again = Run.objects.latest("number")
    assert response.redirect_chain[-1][0] == f"/runs/{again.pk}/" and again.rerun_of_id == run.pk
    Workflow.objects.update(enabled=False)
    assert "is disabled" in squeezed(client.post(f"/runs/{run.pk}/rerun/", follow=True))


def test_a_node_is_found_in_its_own_run_only(operator):
    run = bare_run()
    other = Run.objects.create(workflow=run.workflow, version=run.version, number=2)
    node = make_node(other)
    assert operator.get(f"/runs/{run.pk}/nodes/{node.pk}/").status_code == 404
    assert operator.get(f"/runs/{run.pk}/nodes/{node.pk}/output.txt").status_code == 404


EXPECTED = [
    ({"type": "cost", "threshold": 0.01}, "at most $0.0100"),
    ({"type": "latency", "threshold": 9000}, "at most 9.0 s"),
    ({"type": "bleu", "value": "x", "threshold": 0.5}, "at least 0.50"),
    ({"type": "word-count", "value": {"min": 3, "max": 60}}, "3 to 60 words"),
    ({"type": "word-count", "value": {"max": 60}}, "at most 60 words"),
    ({"type": "word-count", "value": {"min": 1}}, "at least 1 word"),
    ({"type": "is-json", "value": {"type": "object"}}, "JSON that fits the schema"),
    ({"type": "is-json"}, ""),
    ({"type": "contains", "value": "x" * 300}, "x" * 160 + "…"),
    ({"type": "equals", "value": True}, "true"),
]


@pytest.mark.parametrize(("config", "words"), EXPECTED)
def test_what_was_expected_is_said_in_words(db, config, words):
    run = bare_run(f"version: '1.0'\nblocks:\n  extract:\n    type: code\n    code: 'def main(data): return 1'\n    assertions: [{json.dumps(config)}]\n")  # fmt: skip
    result = {"type": config["type"], "passed": True, "score": 1.0, "reason": "Yes.", "weight": 1.0, "metric": None,
              "error": False, "measured": None, "index": 0}  # fmt: skip
    node = make_node(run, eval_passed=True, eval_results={"assertions": [result], "error": None})
    assert [one["expected"] for one in Inspector(run, node).assertions] == [words]


def test_a_regression_found_with_the_run_is_reported_and_can_be_acknowledged_there(operator):
    run = bare_run(status="completed")
    level = {"count": 20, "mean": 0.9}
    found = Regression.objects.create(
        workflow=run.workflow, node_id="extract", kind="quality_drop", since_number=1, found_run=run,
        found_run_number=1, before=level, after={"count": 20, "mean": 0.4},
    )  # fmt: skip
    html = html_of(operator, f"/runs/{run.pk}/")
    assert "score was 0.90, now 0.40" in html and f'name="next" value="/runs/{run.pk}/"' in html
    back = operator.post(f"/regressions/{found.pk}/acknowledge/", {"next": f"/runs/{run.pk}/"}, follow=True)
    assert back.redirect_chain[-1][0] == f"/runs/{run.pk}/" and "Acknowledged" in squeezed(back)


def test_every_page_about_a_demo_run_says_that_it_is_a_demo(operator, checked):
    node = run_now(checked).nodes.first()
    run, other = node.run, run_now(checked)
    pages = ["/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/nodes/{node.pk}/",
             f"/runs/{run.pk}/compare/{other.pk}/", "/workflows/checked/run/"]  # fmt: skip
    for is_demo in (True, False):
        Workflow.objects.update(is_demo=is_demo)
        for page in pages:
            assert ("Demo data." in squeezed(operator.get(page))) == is_demo, page


def test_a_soul_is_linked_only_if_it_has_a_page(operator, checked):
    node = run_now(checked).nodes.first()
    RunNode.objects.filter(pk=node.pk).update(soul_id="clerk", soul_version="abc")
    page = f"/runs/{node.run_id}/nodes/{node.pk}/"
    assert 'href="/souls/clerk/"' not in squeezed(operator.get(page))
    SoulVersion.objects.create(soul=Soul.objects.create(slug="clerk"), version="abc", definition={})
    assert 'href="/souls/clerk/"' in squeezed(operator.get(page))


def test_the_page_of_a_block_does_not_link_to_itself(operator, checked):
    node = run_now(checked).nodes.first()
    assert "Open block" in squeezed(operator.get(f"/runs/{node.run_id}/"))
    assert "Open block" not in squeezed(operator.get(f"/runs/{node.run_id}/nodes/{node.pk}/"))


def many_blocks(count: int) -> Run:
    """A run of as many blocks in a row, of which the last fails."""
    text = 'version: "1.0"\nblocks:\n' + "".join(
        f"  step_number_{n}:\n    type: code\n    code: |\n      def main(data):\n          return 'ok'\n"
        + (f"    depends: step_number_{n - 1}\n" if n else "")
        + "    assertions:\n"
        + "".join("      - {type: contains, value: ok}\n" for _ in range(4))
        + f"      - {{type: contains, value: {'ok' if n < count - 1 else 'missing'}}}\n"
        for n in range(count)
    )
    return run_now(make_workflow(text, "many"))


def test_many_blocks_have_pages_the_bad_ones_on_the_first(client, transactional_db):
    run = many_blocks(110)
    client.force_login(user_in("operator"))
    pages = [html_of(client, f"/runs/{run.pk}/?blocks={n}") for n in (1, 2, 3)]
    listed = [re.findall(r'data-block="(\w+)"', page) for page in pages]
    assert [len(found) for found in listed] == [50, 50, 10] and "step_number_109" in listed[0]
    assert len(set(itertools.chain(*listed))) == 110 and "110 of 110 done" in pages[0]
    assert "graph__node" not in pages[0] and "Draw all 110 blocks" in pages[0]
    part = html_of(client, f"/runs/{run.pk}/live/?blocks=2&graph=1&seq=3&part=all")
    assert part.count('class="node-row"') == 50 and part.count('"graph__node"') == 110
    assert 'href="?blocks=3&amp;graph=1#blocks"' in part  # how the script asked is not what the page says


def test_the_block_that_is_looked_at_is_among_those_listed(client, transactional_db):
    run = many_blocks(60)
    RunNode.objects.filter(run=run).update(eval_passed=True)
    blocks = RunBlocks(run)
    assert blocks.first_to_look_at in list(blocks.listed)
    assert RunBlocks(run, page=2).first_to_look_at.block_id == "step_number_59"


def test_a_block_that_was_passed_by_is_reported_while_the_run_goes_on(operator):
    run = bare_run(status="running")
    make_node(run, "extract", status="skipped")
    part = html_of(operator, f"/runs/{run.pk}/live/?seq=0")
    assert re.findall(r'data-block="(\w+)"', part) == ["extract"] and "Skipped" in part


def test_the_inspector_shows_what_a_block_was_given(operator, checked):
    run = run_now(checked)
    extract, tell = run.nodes.get(node_id="extract"), run.nodes.get(node_id="tell")
    first = html_of(operator, f"/runs/{run.pk}/nodes/{extract.pk}/")
    assert "<summary>Inputs</summary>" in first and '<span class="k">"total"</span>' in first
    second = html_of(operator, f"/runs/{run.pk}/nodes/{tell.pk}/")
    assert "<code>extract</code>" in second


def test_the_runs_inputs_are_shown_by_name_with_their_lines(operator):
    run = bare_run()
    Run.objects.filter(pk=run.pk).update(inputs={"letter": "Dear Ada,\nhello", "facts": {"n": 1}, "none": ""})
    html = html_of(operator, f"/runs/{run.pk}/")
    assert "<code>letter</code>" in html and "Dear Ada,\nhello</pre>" in html
    assert '<span class="k">"n"</span>' in html and "empty</span>" in html


def test_of_many_dots_the_bad_ones_are_drawn_and_the_rest_counted(operator):
    run = bare_run()
    results = [
        {"type": "contains", "passed": n != 59, "score": 1.0, "reason": "", "weight": 1.0, "metric": None,
         "error": False, "measured": None, "index": n}
        for n in range(60)
    ]  # fmt: skip
    make_node(run, eval_results={"assertions": results, "error": None}, eval_passed=False)
    html = html_of(operator, f"/runs/{run.pk}/")
    assert html.count('class="dot dot--failed"') == 1 and html.count('class="dot dot--passed"') == 7
    assert "<small>+52</small>" in html and "59 of 60 assertions passed" in html


def test_every_block_of_the_graph_leads_somewhere_though_its_row_is_on_another_page(client, transactional_db):
    run = many_blocks(52)
    client.force_login(user_in("viewer"))
    page = html_of(client, f"/runs/{run.pk}/?graph=1")
    ways = re.findall(
        r'<a [^>]*class="graph__node"[^>]*href="([^"]+)"|<a href="([^"]+)"[^>]*class="graph__node"', page
    )
    found = [one or other for one, other in ways]
    assert len(found) == 52
    elsewhere = [way for way in found if not way.startswith("#")]
    assert len(elsewhere) == 2 and all(client.get(way).status_code == 200 for way in elsewhere)
    assert all(f'id="{way[1:]}"' in page for way in found if way.startswith("#"))
