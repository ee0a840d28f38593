"""Two runs side by side: the sentence, flips first, differences, what is left out."""

import itertools
import re
import time

import pytest

from evals_app.pages.compare.comparison import MOST_CHARACTERS, OPEN_ENDS, Comparison
from tests.callers import queries_of, user_in
from tests.evals.pages.test_run import CHECKED
from tests.factories import make_workflow, run_now
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import Run, RunNode, Workflow, WorkflowVersion


@pytest.fixture
def viewer(client, transactional_db):
    client.force_login(user_in("viewer"))
    return client


def two_runs(old: dict, new: dict, yaml: str = CHECKED) -> tuple[Run, Run]:
    """Runs with one node each, `new` after `old`; the fields are the node's."""
    workflow = Workflow.objects.create(slug="bare", name="Bare")
    version = WorkflowVersion.objects.create(workflow=workflow, number=1, yaml=yaml)
    made = []
    for number, fields in ((1, old), (2, new)):
        run = Run.objects.create(workflow=workflow, version=version, number=number, status="completed")
        RunNode.objects.create(
            run=run, **{"node_id": "extract", "block_type": "code", "status": "completed", **fields}
        )
        made.append(run)
    return made[1], made[0]


def graded(*passed: bool) -> dict:
    results = [
        {"type": "equals", "passed": ok, "score": float(ok), "reason": f"It is {ok}.", "weight": 1.0, "metric": None,
         "error": False, "measured": None, "index": index}
        for index, ok in enumerate(passed)
    ]  # fmt: skip
    score = sum(passed) / len(passed)
    return {
        "eval_passed": all(passed),
        "eval_score": score,
        "eval_results": {"assertions": results, "error": None},
    }


SENTENCES = [
    # verdicts before, after, the beginning
    ((True, True), (True, False), "#2 is worse than #1."),
    ((True, False), (True, True), "#2 is better than #1."),
    ((True, False), (False, True), "#2 is worse in some and better in other respects than #1."),
    ((True, False), (True, False), "#2 repeats #1 exactly."),
]


@pytest.mark.parametrize(("before", "after", "headline"), SENTENCES)
def test_the_headline_says_which_way_it_went(db, before, after, headline):
    assert Comparison(*two_runs(graded(*before), graded(*after))).headline == headline


def test_with_other_outputs_but_the_same_verdicts_it_says_so(db):
    comparison = Comparison(*two_runs(graded(True) | {"output": "one"}, graded(True) | {"output": "two"}))
    assert comparison.headline == "#2 and #1 have the same verdicts."
    assert comparison.details == "1 of 1 output differs."


def test_verdicts_that_come_from_other_blocks_are_not_called_the_same(db):
    new, old = two_runs(graded(True), {"node_id": "other", **graded(False)})
    new.eval_passed, old.eval_passed, old.assertions_failed = False, True, 0
    new.assertions_failed = 1
    assert Comparison(new, old).headline == (
        "#2 failed and #1 passed, but every assertion that both have agrees."
    )


def test_the_page_puts_flips_first_and_marks_what_differs(viewer):
    workflow = make_workflow(CHECKED, "checked")
    old, new = run_now(workflow), run_now(workflow, {"total": 7})
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert "#2 is worse than #1." in html
    assert "1 assertion passed before and no longer does (extract)" in html
    assert "the inputs were not the same" in html
    assert html.index("extract</bdi></h2>") < html.index("tell</bdi></h2>")
    assert "<del>5</del>" in html and "<ins>7</ins>" in html
    assert "The same output." in html


def test_changed_only_leaves_out_what_is_the_same_and_says_how_much(viewer):
    workflow = make_workflow(CHECKED, "checked")
    old, new = run_now(workflow), run_now(workflow, {"total": 7})
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/?changed=1"))
    assert "tell</bdi></h2>" not in html and "1 unchanged block not shown" in html
    same = run_now(workflow, {"total": 7})
    html = squeezed(viewer.get(f"/runs/{same.pk}/compare/{new.pk}/?changed=1"))
    assert "Nothing changed" in html and "#3 repeats #2 exactly." in html


def test_assertions_are_followed_from_one_version_to_the_next(viewer):
    workflow = make_workflow(CHECKED, "checked")
    old = run_now(workflow)
    # Another weight and another place: still the same assertion.
    moved = CHECKED.replace(
        '      - {type: equals, value: 5, transform: "json_path:$.total", weight: 2, metric: sums}\n', ""
    ).replace("  tell:\n", '      - {type: equals, value: 5, transform: "json_path:$.total"}\n  tell:\n')
    services.save_version("checked", moved)
    new = run_now(Workflow.objects.get(pk=workflow.pk), {"total": 7})
    comparison = Comparison(new, old)
    (flip,) = comparison.blocks[0].flips
    assert (flip.type, flip.was, flip.now, flip.direction) == ("equals", "passed", "failed", "worse")
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert "What changed in the workflow, v1 to v2" in html and "version 1 became 2" in html


def test_a_block_that_only_one_run_has_is_shown(viewer):
    new, old = two_runs({"node_id": "gone", "output": "x"}, {"node_id": "extract", "output": "y"})
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert "gone</bdi></h2>" in html and "not run" in html


def test_runs_of_two_workflows_are_reported_apart_by_name(viewer):
    new, old = two_runs({"output": "x"}, {"output": "y"})
    other = Workflow.objects.create(slug="other", name="Other")
    old.workflow, old.version = (
        other,
        WorkflowVersion.objects.create(workflow=other, number=1, yaml="# other"),
    )
    old.save()
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert "bare #2 and other #1 have no assertion in common." in html and "<bdi>other #1</bdi></a>, " in html
    assert "How the workflows differ" in html and "version 1 became 1" not in html


def test_the_words_about_what_is_the_same(db):
    new, old = two_runs({"output": "x", "latency_ms": 7.5}, {"output": "x", "latency_ms": 7.515})
    found = Comparison(new, old)
    assert found.headline == "#2 repeats #1 exactly." and found.details == "No output differs."
    (latency,) = [figure for figure in found.blocks[0].figures if figure.metric == "latency"]
    assert latency.change == 0.0  # both read 7.5 ms
    old.workflow = Workflow.objects.create(slug="other", name="Other")
    assert Comparison(new, old).headline == "bare #2 and other #1 have the same outputs and verdicts."


def test_a_block_without_an_output_is_not_said_to_have_the_same(viewer):
    new, old = two_runs({"status": "failed", "output": ""}, {"status": "cancelled", "output": ""})
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert "Neither run has an output" in html and "The same output" not in html


def test_the_number_of_queries_does_not_grow_with_the_blocks(viewer):
    new, old = two_runs({"output": "x"}, {"output": "y"})

    path = f"/runs/{new.pk}/compare/{old.pk}/"
    one = queries_of(viewer, path)
    for run in (new, old):
        RunNode.objects.bulk_create(
            RunNode(run=run, node_id=f"b{i}", block_type="code", output=str(run.number)) for i in range(9)
        )
    assert queries_of(viewer, path) == one <= 8


def test_huge_outputs_are_compared_in_bounded_time_and_the_page_says_so(viewer):
    texts = [
        "\n".join(f"{word} {i * step % 997}" for i in range(60_000)) for word, step in (("a", 7), ("b", 11))
    ]
    new, old = two_runs({"output": texts[0]}, {"output": texts[1]})
    assert len(texts[0]) > MOST_CHARACTERS
    began = time.monotonic()
    html = squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))
    assert time.monotonic() - began < 10
    assert "Only the beginning of each output is compared" in html


def test_an_unknown_run_is_not_found(viewer):
    new, _ = two_runs({}, {})
    assert viewer.get(f"/runs/{new.pk}/compare/00000000-0000-0000-0000-000000000000/").status_code == 404


def many_blocks(count: int, lines: int = 20) -> tuple[Run, Run]:
    """Two runs of as many blocks, all outputs different; the last block became worse."""
    new, old = two_runs({"output": "a"}, {"output": "b"})
    for run in (old, new):
        rows = [
            {"node_id": f"block_{n}", "output": f"{'word ' * 50}{run.number}\n" * lines, "block_type": "code",
             "status": "failed" if run is new and n == count - 1 else "completed"}
            for n in range(count)
        ]  # fmt: skip
        RunNode.objects.bulk_create(RunNode(run=run, **fields) for fields in rows)
    return new, old


def test_many_blocks_have_pages_what_became_worse_first(viewer):
    new, old = many_blocks(45)
    path = f"/runs/{new.pk}/compare/{old.pk}/"
    pages = [squeezed(viewer.get(f"{path}?blocks={n}")) for n in (1, 2, 3)]
    found = [re.findall(r'<h2 id="compared-(\w+)"', page) for page in pages]
    assert found[0][0] == "block_44"
    assert sorted(itertools.chain(*found)) == sorted(["extract", *(f"block_{n}" for n in range(45))])
    assert 'href="?changed=1&amp;blocks=2#blocks"' in squeezed(viewer.get(f"{path}?changed=1"))


def test_a_long_difference_begins_on_the_page_and_is_whole_on_its_own(viewer):
    new, old = many_blocks(8, lines=120)
    path = f"/runs/{new.pk}/compare/{old.pk}/"
    html = squeezed(viewer.get(f"{path}?changed=1"))
    assert "Show the rest of the difference" in html and 'href="?changed=1&amp;only=block_3"' in html
    alone = squeezed(viewer.get(f"{path}?changed=1&only=block_3"))
    assert alone.count('class="diff__no del"') == 120 and " lines<" not in alone
    assert 'href="?changed=1"' in alone and "block_3</bdi> in <bdi>#1</bdi> and <bdi>#2</bdi>" in alone
    for only in ("inputs", "workflow"):
        assert "No difference." in squeezed(viewer.get(f"{path}?only={only}"))
    assert viewer.get(f"{path}?only=nobody").status_code == 404


def test_many_flips_are_counted_and_shown_with_their_block(viewer):
    yaml = CHECKED.replace(
        "    assertions:\n", "    assertions:\n" + "".join(f"      - {{type: contains, value: v{n}}}\n" for n in range(70)), 1
    )  # fmt: skip
    new, old = two_runs(graded(*[True] * 70), graded(*[False] * 70), yaml)
    path = f"/runs/{new.pk}/compare/{old.pk}/"
    html = squeezed(viewer.get(path))
    assert html.count('class="flip flip--worse"') == 10 and "All 70 assertions that flipped" in html
    assert squeezed(viewer.get(f"{path}?only=extract")).count('class="flip flip--worse"') == 50
    assert squeezed(viewer.get(f"{path}?only=extract&verdicts=2")).count('class="flip flip--') == 20


def test_json_that_was_only_written_differently_is_reported(viewer):
    new, old = two_runs({"output": '{"a": 1}'}, {"output": '{"a":1}'})
    assert "The same JSON, written differently." in squeezed(viewer.get(f"/runs/{new.pk}/compare/{old.pk}/"))


@pytest.mark.parametrize("status", ["failed", "cancelled", "running"])
def test_a_run_that_did_not_come_to_its_end_is_not_said_to_have_the_same_verdicts(transactional_db, status):
    workflow = make_workflow(CHECKED, "checked")
    old, new = run_now(workflow), run_now(workflow)
    Run.objects.filter(pk=new.pk).update(status=status)
    new.refresh_from_db()
    new.nodes.filter(node_id="tell").delete()
    found = Comparison(new, old)
    assert "same verdicts" not in found.headline
    assert f"#2 {OPEN_ENDS[status]}" in found.details and "#1" not in found.details
