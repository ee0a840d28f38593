"""The assertion lab as it comes from the server: without a script, and line by line for one."""

import asyncio
import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from evals_app.assertions import AssertionPlan, assertion_types
from evals_app.block_assertions import context_for_node
from evals_app.monitoring import backtest as backtests
from tests.callers import queries_of, user_in
from tests.factories import make_workflow, run_now
from tests.html import squeezed
from workflows_app.models import RunNode

FORM = {"output": "hello world", "cost_usd": "0.5", "latency_ms": "", "limit": "1000"}


@pytest.fixture
def viewer(client, db):
    client.force_login(user_in("viewer"))
    return client


@pytest.fixture
def shouted(transactional_db):
    """A workflow with three runs whose block passed twice and failed once."""
    workflow = make_workflow()
    for text in ("hello", "hello there", "bye now"):
        run_now(workflow, {"text": text})
    return workflow


def post(client, **form):
    return client.post("/assertions/", {**FORM, **form})


def test_every_type_is_shown_with_its_documentation(viewer):
    html = squeezed(viewer.get("/assertions/"))
    for one in assertion_types():
        assert f'id="type-{one["type"]}"' in html
    assert "The number of words, split at white space, equals the value or lies in its range." in html


def test_a_text_is_checked_without_a_script(viewer):
    yaml = "- {type: contains, value: hello}\n- {type: cost, threshold: 0.1}\n- {type: latency, threshold: 5}"
    html = squeezed(post(viewer, assertions=yaml))
    words = [part.split('"')[0] for part in html.split('<div class="assertion assertion--')[1:]][:3]
    assert words == ["passed", "failed", "error"]
    assert "Cost is $0.5, above $0.1." in html
    assert "score 0.33" in html


@pytest.mark.parametrize(
    ("assertions", "verdict"),
    [
        ("- {type: contains, value: hello}", "Passed"),
        ("- {type: contains, value: bye}\n- {type: latency, threshold: 5}", "Failed"),
        ("- {type: contains, value: hello}\n- {type: latency, threshold: 5}", "Error"),
        ("- {type: contains, value: hello}\n- {type: contians, value: hello}", "Error"),
    ],
)
def test_the_lab_gives_the_verdict_that_a_run_would_have(viewer, assertions, verdict):
    html = squeezed(post(viewer, assertions=assertions))
    assert verdict in html.split('id="lab-summary"')[1].split("</p>")[0]


def test_what_was_typed_comes_back_as_it_was(viewer):
    typed = "\n<script>alert(1)</script>\n"
    html = squeezed(post(viewer, output=typed, assertions="- {type: is-json}  # <b>", cost_usd="a <lot>"))
    assert "&lt;script&gt;alert(1)" in html and "<script>alert(1)" not in html
    assert "- {type: is-json}  # &lt;b&gt;" in html
    assert "“a &lt;lot&gt;” is not a number of 0 or more." in html


def test_faults_in_the_yaml_are_reported_with_their_lines(viewer):
    html = squeezed(post(viewer, assertions="- {type: is-json}\n- {type: contians, value: x}"))
    assert 'data-line="2"' in html
    assert "unknown assertion type &#x27;contians&#x27;. Did you mean &#x27;contains&#x27;?" in html
    broken = squeezed(post(viewer, assertions="- {type: ["))
    assert "not valid YAML" in broken and "Nothing to say yet" in broken


def test_a_script_gets_what_changes_with_the_typing_and_half_typed_yaml_takes_no_results_away(viewer):
    def parts(**form):
        return viewer.post("/assertions/?part=1", FORM | form).content.decode()

    checked = parts(output="one", assertions="- {type: contains, value: one}", cost_usd="cheap")
    assert re.findall(r'id="(lab-[\w-]+)"', checked) == [
        "lab-faults", "lab-cost_usd-error", "lab-latency_ms-error", "lab-summary", "lab-rows", "lab-none"
    ]  # fmt: skip
    assert "score 1.00" in checked and "“cheap” is not a number of 0 or more." in checked
    half = parts(assertions="- {type: [", shown="3")
    assert "Results are from before." in half and "lab-rows" not in half
    assert "Results are from before." not in parts(assertions="- {type: [", shown="0")
    assert queries_of(viewer, "/assertions/?part=1", FORM) <= 4  # who asks


def test_a_backtest_shows_flips_runs_and_the_spread(viewer, shouted):
    form = {"workflow": "shout", "block": "shout", "assertions": "- {type: word-count, value: {max: 1}}"}
    html = squeezed(post(viewer, action="backtest", **form))
    assert "Of 3 outputs, 1 verdict would flip: 1 from passed to failed." in html
    flipped = shouted.runs.get(number=2)
    assert f"/runs/{flipped.pk}/" in html and "#2</a>" in html
    assert "3 values from 1 to 2; 1 on the passing side of 1" in html


def test_a_backtest_checks_against_what_the_run_was_checked_against(monkeypatch, shouted):
    node = RunNode.objects.select_related("run__workflow").get(run__number=2, node_id="shout")
    RunNode.objects.filter(pk=node.pk).update(prompt="Shout.", prompt_hash="abc")
    node.refresh_from_db()
    seen = []
    check = AssertionPlan.run
    monkeypatch.setattr(AssertionPlan, "run", lambda plan, one: seen.append(one) or check(plan, one))
    backtests.backtest(shouted, "shout", [{"type": "contains", "value": "HELLO"}])
    assert len(seen) == 3
    assert seen[1] == context_for_node(node)
    assert (seen[1].prompt_hash, seen[1].variables) == ("abc", {"text": "hello there"})


def test_a_backtest_tells_two_assertions_of_a_type_apart(viewer, shouted):
    both = "- {type: contains, value: HELLO}\n- {type: contains, value: BYE}"
    form = {"workflow": "shout", "block": "shout", "assertions": both}
    html = squeezed(post(viewer, action="backtest", **form)).partition("Each assertion")[2]
    assert ">HELLO</div>" in html and ">BYE</div>" in html


def test_without_workflows_there_is_nothing_to_look_back_at(viewer):
    assert "no workflow yet whose outputs" in squeezed(viewer.get("/assertions/"))


def test_a_backtest_without_what_it_needs_says_what_is_missing(viewer, shouted):
    html = squeezed(post(viewer, action="backtest", assertions=""))
    for words in ("Choose a workflow.", "Choose a block.", "Write at least one assertion."):
        assert words in html
    empty = post(viewer, action="backtest", workflow="shout", block="gone", assertions="- {type: is-json}")
    assert "No earlier outputs" in squeezed(empty)


def test_the_lab_starts_from_a_block_or_a_node(viewer, shouted):
    by_block = squeezed(viewer.get("/assertions/?workflow=shout&block=shout"))
    assert "BYE NOW" in by_block and "value: HELLO" in by_block
    node = shouted.runs.get(number=1).nodes.get()
    by_node = squeezed(viewer.get(f"/assertions/?node={node.pk}"))
    assert "&#10;HELLO</textarea>" in by_node
    loaded = squeezed(post(viewer, action="load", workflow="shout", block="shout", assertions="x"))
    assert "BYE NOW" in loaded and "value: HELLO" in loaded
    assert viewer.get("/assertions/?node=999999").status_code == 404
    assert viewer.get("/assertions/?workflow=none").status_code == 404


def test_without_a_block_to_start_from_nothing_typed_is_lost(viewer, shouted):
    sent = {
        "action": "load",
        "workflow": "shout",
        "block": "",
        "output": "mine",
        "assertions": "- {type: is-json}",
    }
    trial = viewer.post("/assertions/", sent).context["trial"]
    assert (trial.output, trial.assertions) == ("mine", "- {type: is-json}")


def test_blocks_of_a_workflow_are_offered(viewer, shouted):
    html = squeezed(viewer.get("/assertions/blocks/?workflow=shout"))
    assert '<option value="shout" selected>shout (1 assertion)</option>' in html
    assert viewer.get("/assertions/blocks/?workflow=none").status_code == 404


def test_the_lab_is_for_those_who_may_see_runs(client, db):
    for method, path in (
        ("get", "/assertions/"),
        ("get", "/assertions/blocks/"),
        ("post", "/assertions/backtest/"),
    ):
        assert getattr(client, method)(path)["Location"].startswith("/login/")
    client.force_login(User.objects.create_user("nobody"))
    assert client.get("/assertions/").status_code == 403
    assert client.post("/assertions/backtest/").status_code == 403


def stream(user, form):
    """What a script hears of a backtest: the status and every line."""

    async def ask():
        client = AsyncClient()
        await client.aforce_login(user)
        response = await client.post("/assertions/backtest/", form)
        text = "".join([part.decode() async for part in response.streaming_content])
        return response.status_code, [json.loads(line)["html"] for line in text.splitlines()]

    return asyncio.run(ask())


def test_a_script_hears_how_far_the_backtest_is(monkeypatch, shouted):
    monkeypatch.setattr(backtests, "PROGRESS_EVERY", 1)
    form = {**FORM, "workflow": "shout", "block": "shout", "assertions": "- {type: contains, value: BYE}"}
    status, lines = stream(user_in("viewer"), form)
    assert status == 200
    found = [re.search(r"Checked (\d) of about 3 outputs", line) for line in lines[:-1]]
    assert [match and match[1] for match in found] == ["0", "1", "2", "3", "3"]
    assert "3 verdicts would flip: 2 from passed to failed and 1 from failed to passed." in lines[-1]
    assert re.search(r'id="lab-progress"[^>]* hidden', lines[-1])


def test_a_script_hears_why_there_is_no_backtest(shouted):
    form = {**FORM, "workflow": "shout", "block": "shout", "assertions": "- {type: contians}"}
    status, [answer] = stream(user_in("viewer"), form)
    assert status == 200
    assert "Line 1:" in answer and 'id="lab-report"' in answer


def test_a_backtest_that_takes_too_long_is_stopped_and_says_so(monkeypatch, viewer, shouted):
    monkeypatch.setattr(backtests, "MOST_SECONDS", -1.0)
    form = {"workflow": "shout", "block": "shout", "assertions": "- {type: is-json}"}
    assert "older outputs were not checked" in squeezed(post(viewer, action="backtest", **form))


def test_queries_do_not_grow_with_runs_or_flips(viewer, shouted):
    form = {"action": "backtest", "workflow": "shout", "block": "shout", "assertions": "- {type: is-json}"}
    few = queries_of(viewer, "/assertions/", form)
    for _ in range(7):
        run_now(shouted, {"text": "hello again"})
        make_workflow(slug=f"other-{_}")
    assert queries_of(viewer, "/assertions/", form) == few <= 12
