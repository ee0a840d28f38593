"""Eval cases without a database: what decides them, and what is executed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evals_app.assertions import AssertionContext, AssertionPlan
from evals_app.cases.compare import CaseVerdict, compare
from evals_app.cases.document import read_document
from evals_app.cases.environment import CaseEnvironment, provider_from_environment, workflows_beside
from evals_app.cases.results import CaseResult, SuiteResult
from evals_app.cases.suite import Evaluation
from tests.evals.suites.documents import FIXED, MIXED
from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.providers import ChatRequest, ChatResponse, Provider, ProviderError

HEAD = """\
version: "1.0"
souls: {a: {role: A, provider: counting, model_name: demo-small, max_tokens: 100}}
blocks:
  draft:
    type: llm
    soul_ref: a
    prompt: "Draft {{ inputs.topic }}"
    assertions:
      - {type: contains, value: draft}
      - {type: cost, threshold: 1}
  judge: {type: gate, eval_key: draft, pass: publish, fail: repair}
  publish: {type: llm, soul_ref: a, prompt: "Publish {{ draft }}"}
  repair: {type: llm, soul_ref: a, prompt: "Repair {{ draft }}"}
workflow: {entry: draft, transitions: [{from: draft, to: judge}]}
eval:
  cases:
"""


class Answering(Provider):
    """Answers with its prompt, or with the next answer, and remembers its prompts."""

    def __init__(self, *answers: str | ProviderError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    @classmethod
    def from_settings(cls, settings: Any) -> Answering:
        return cls()

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.asked.append(request.prompt)
        answer = self.answers.pop(0) if self.answers else request.prompt.lower()
        if isinstance(answer, ProviderError):
            raise answer
        return ChatResponse(answer, 10, 10, cost_usd=Decimal("0.01"))


def evaluate(text: str, provider: Provider | None = None, **options: Any) -> SuiteResult:
    environment = CaseEnvironment(make_provider=lambda name: provider) if provider else None  # type: ignore[arg-type, return-value]
    return Evaluation(**options).run(read_document(text), environment)


def only(result: SuiteResult) -> CaseResult:
    (case,) = result.cases
    return case


def test_block_is_weighted_mean_case_mean_of_blocks_and_suite_mean_of_cases() -> None:
    text = FIXED.replace(
        "        greet:\n          - {type: contains, value: Bob}",
        "        shout: [{type: contains, value: X}]\n        greet:\n          - {type: contains, value: Bob}",
    )
    text = text.replace("fixtures: {greet: Hello Bob}", "fixtures: {greet: Hello Bob, shout: X}")
    result = evaluate(text)
    assert [case.score for case in result.cases] == [1.0, pytest.approx((1.0 + 0.25) / 2)]
    assert result.score == pytest.approx((1.0 + 0.625) / 2)
    assert (result.status, [case.status for case in result.cases]) == ("passed", ["passed", "failed"])


@pytest.mark.parametrize(("threshold", "status"), [("0.625", "passed"), ("0.626", "failed"), ("1", "failed")])
def test_suite_passes_at_its_threshold(threshold: str, status: str) -> None:
    assert evaluate(FIXED.replace("threshold: 0.5", f"threshold: {threshold}")).status == status


def test_threshold_is_one_unless_said() -> None:
    result = evaluate(FIXED.replace("  threshold: 0.5\n", ""))
    assert (result.threshold, result.status) == (1.0, "failed")


def test_frozen_cases_load_nothing_that_executes() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from evals_app.cases.document import read_document;"
        "from evals_app.cases.suite import Evaluation; from tests.evals.suites.documents import FIXED;"
        "Evaluation().run(read_document(FIXED));"
        "heavy = {'django', 'asyncio', 'nltk', 'jsonschema', 'httpx2', 'sqlite3'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_assertions_of_an_executed_case_see_all_that_is_known_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[AssertionContext] = []
    check = AssertionPlan.run
    monkeypatch.setattr(AssertionPlan, "run", lambda plan, one: seen.append(one) or check(plan, one))
    text = HEAD + "    - {id: a, inputs: {topic: tea}, expected: {draft: [{type: contains, value: tea}]}}\n"
    evaluate(text, Answering())
    context = seen[-1]
    assert context.prompt is not None and "Draft tea" in context.prompt
    assert context.prompt_hash
    assert (context.block_id, context.block_type, context.variables) == ("draft", "llm", {"topic": "tea"})
    assert (context.cost_usd, context.total_tokens) == (0.01, 20)


def test_assertions_see_the_same_workflow_whether_a_case_is_frozen_or_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[AssertionContext] = []
    check = AssertionPlan.run
    monkeypatch.setattr(AssertionPlan, "run", lambda plan, one: seen.append(one) or check(plan, one))
    Evaluation().run(read_document(MIXED.replace("id: greeter\n", ""), name="named-by-its-file"))
    assert {context.workflow_id for context in seen} == {"named-by-its-file"}


def test_case_without_assertions_fails_and_so_does_the_suite() -> None:
    text = FIXED.split("  cases:")[0] + "  cases:\n    - {id: empty, fixtures: {greet: x}}\n"
    result = evaluate(text.replace("threshold: 0.5", "threshold: 0"))
    assert (result.status, only(result).status) == ("failed", "failed")
    assert "no assertion was executed" in result.reason


def test_document_without_cases_fails() -> None:
    assert evaluate(FIXED.split("eval:")[0]).status == "failed"


def test_block_assertions_join_only_when_asked_and_measurements_only_where_measured() -> None:
    text = FIXED.split("    - id: bad")[0].replace("fixtures: {greet: Hello Ada}", "fixtures: {greet: Ada}")
    assert only(evaluate(text)).passed
    included = only(evaluate(text + "      include_block_assertions: true\n"))
    (block,) = included.attempts[0].blocks
    assert [(check.is_own, check.result.passed) for check in block.checks] == [(False, True), (True, False)]
    executed = (
        text.replace("fixtures: {greet: Ada}", "inputs: {name: Ada}")
        + "      include_block_assertions: true\n"
    )
    (block,) = only(evaluate(executed)).attempts[0].blocks
    assert [check.config["type"] for check in block.checks] == ["contains", "contains", "latency"]
    assert block.passed


def test_some_blocks_frozen_and_the_rest_executed() -> None:
    result = evaluate(MIXED)
    assert {case.id: (case.status, case.is_executed) for case in result.cases} == {
        "good": ("passed", False),
        "bad": ("failed", False),
        "real": ("passed", True),
        "half": ("passed", True),
    }
    half = result.cases[3].attempts[0]
    assert [(node.node_id, node.output, node.is_frozen) for node in half.nodes] == [
        ("greet", "hi", True),
        ("shout", "HI!", False),
    ]


def test_only_what_the_expected_blocks_need_is_executed_and_paid() -> None:
    provider = Answering()
    text = HEAD + "    - {id: a, inputs: {topic: x}, expected: {draft: [{type: contains, value: draft}]}}\n"
    result = evaluate(text, provider)
    assert result.passed
    assert provider.asked == ["Draft x"]
    assert result.cost_usd == pytest.approx(0.01)


@pytest.mark.parametrize(("frozen", "taken"), [("a draft", "publish"), ("nonsense", "repair")])
def test_gate_checks_a_frozen_block_by_its_assertions(frozen: str, taken: str) -> None:
    expected = f"{{{taken}: [{{type: contains, value: '{frozen}'}}]}}"
    text = (
        HEAD + f"    - {{id: a, inputs: {{topic: x}}, fixtures: {{draft: {frozen}}}, expected: {expected}}}\n"
    )
    assert evaluate(text, Answering()).passed


def test_block_that_no_route_led_to_fails_its_case_with_that_reason() -> None:
    text = (
        HEAD
        + "    - {id: a, inputs: {topic: x}, fixtures: {draft: a draft}, expected: {repair: [{type: contains, value: x}]}}\n"
    )
    case = only(evaluate(text, Answering()))
    ((block, check),) = case.failing()
    assert (case.status, check) == ("failed", None)
    assert "no route led to it" in str(block.error)


@pytest.mark.parametrize(
    ("answers", "min_pass", "status", "score"),
    [
        (["draft", "no", "draft"], 2, "passed", 1.0),
        (["draft", "no", "draft"], 3, "failed", 2 / 3),
        (["no", "no", "draft"], 2, "failed", 0.5),
        (["draft", "draft", "draft"], None, "passed", 1.0),
        (["draft", "draft", "no"], None, "failed", 2 / 3),
    ],
)
def test_repeats_need_as_many_passes_as_min_pass(
    answers: list[str], min_pass: int | None, status: str, score: float
) -> None:
    wanted = f", min_pass: {min_pass}" if min_pass else ""
    text = HEAD + (
        f"    - {{id: a, repeats: 3{wanted}, inputs: {{topic: x}}, expected: {{draft: [{{type: equals, value: draft}}]}}}}\n"
    )
    case = only(evaluate(text, Answering(*answers)))
    assert (case.status, case.score, len(case.attempts)) == (status, pytest.approx(score), 3)


ONE_EACH = "".join(
    f"    - {{id: c{at}, inputs: {{topic: t{at}}}, expected: {{draft: [{{type: contains, value: draft}}]}}}}\n"
    for at in range(5)
)


def test_max_cost_stops_before_the_call_that_might_exceed_it() -> None:
    provider = Answering()
    result = evaluate(HEAD + ONE_EACH, provider, max_cost_usd=Decimal("0.025"), cases_at_once=1)
    assert len(provider.asked) == 3  # demo-small's own price is far below what this provider charges
    assert result.status == "error"
    assert [case.status for case in result.cases] == ["passed"] * 3 + ["skipped"] * 2
    assert "--max-cost" in result.reason


def test_max_cost_below_one_call_starts_none() -> None:
    provider = Answering()
    result = evaluate(HEAD + ONE_EACH, provider, max_cost_usd=Decimal("0.0000001"))
    assert provider.asked == []
    assert {case.status for case in result.cases} == {"error"}


def test_fail_fast_starts_no_further_case() -> None:
    provider = Answering("nothing of the kind")
    result = evaluate(HEAD + ONE_EACH, provider, fail_fast=True, cases_at_once=1)
    assert len(provider.asked) == 1
    assert [case.status for case in result.cases] == ["failed"] + ["skipped"] * 4
    assert result.status == "failed"


def test_provider_that_is_away_is_an_error_and_not_a_failure() -> None:
    away = ProviderError("Nobody answers.", kind="unreachable")
    case = only(evaluate(HEAD + ONE_EACH.splitlines()[0], Answering(away)))
    assert case.status == "error"
    assert "Nobody answers." in case.reason


def test_answer_that_the_workflow_cannot_use_is_a_failure() -> None:
    bad = ProviderError("The model refused.", kind="refused")
    assert only(evaluate(HEAD + ONE_EACH.splitlines()[0], Answering(bad))).status == "failed"


def test_openai_without_key_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(LookupError, match="OPENAI_API_KEY is not set"):
        provider_from_environment("openai")


def test_missing_input_fails_the_case_by_name() -> None:
    text = HEAD.replace("eval:", "interface: {inputs: [{name: topic, required: true}]}\neval:")
    case = only(
        evaluate(text + "    - {id: a, expected: {draft: [{type: contains, value: x}]}}\n", Answering())
    )
    assert (case.status, "inputs.topic" in case.reason) == ("failed", True)


PARENT = """\
version: "1.0"
blocks:
  child: {type: workflow, workflow_ref: helper, inputs: {name: inputs.who}}
eval:
  cases:
    - {id: a, inputs: {who: Ada}, expected: {child: [{type: contains, value: Hello Ada}]}}
"""


def test_child_workflow_is_found_as_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "helper.yaml").write_text(FIXED.replace("id: greeter", "id: helper").split("  shout:")[0])
    environment = CaseEnvironment(find_workflow=workflows_beside(tmp_path / "parent.yaml"))
    assert only(Evaluation().run(read_document(PARENT), environment)).passed
    (tmp_path / "helper.yaml").unlink()
    missing = only(Evaluation().run(read_document(PARENT), environment))
    assert (missing.status, "give the block a fixture" in missing.reason) == ("error", True)


@pytest.mark.parametrize(
    ("broken", "place", "sentence"),
    [
        ("id: bad", "id: good", "already taken"),
        ("fixtures: {greet: Hello Bob}", "fixtures: {great: x}", "great"),
        ("value: Bob}", "value: Bob, vlaue: x}", "vlaue"),
        ("id: bad", "id: bad\n      min_pass: 2", "only 1 repeats"),
    ],
)
def test_faults_of_cases_name_their_line(broken: str, place: str, sentence: str) -> None:
    with pytest.raises(InvalidDocument) as invalid:
        read_document(FIXED.replace(broken, place))
    (fault,) = invalid.value.faults
    assert sentence in fault.message
    assert fault.path.startswith("eval.cases[1]")
    assert fault.line and fault.line > 24


def test_comparison_puts_flips_first() -> None:
    before = [
        CaseVerdict(name, passed, 1.0)
        for name, passed in (("a", True), ("b", True), ("c", False), ("d", True))
    ]
    after = [
        CaseVerdict(name, passed, 1.0)
        for name, passed in (("a", True), ("b", False), ("c", True), ("e", True))
    ]
    changes = [(change.id, change.kind) for change in compare(before, after)]
    assert changes == [("b", "worse"), ("c", "better"), ("d", "removed"), ("e", "added"), ("a", "same")]
