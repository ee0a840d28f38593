"""Edges, loops, cycles and reach, and the definition that comes of a valid document."""

import pytest

from tests.workflows.engine.validate.document_errors import faults_of, one_fault
from workflows_app.engine.definition import (
    CarryContext,
    CodeBlockDef,
    Condition,
    ConditionGroup,
    DispatchBlockDef,
    Edge,
    ExitCase,
    GateBlockDef,
    LlmBlockDef,
    LoopBlockDef,
    WorkflowBlockDef,
    WorkflowDefinition,
)
from workflows_app.engine.graph import Graph
from workflows_app.engine.validate import compile_document


def blocks(**extra: str) -> str:
    """One llm block a name, with more keys in YAML flow style."""
    rows = [
        f"  {name}: {{type: llm, soul_ref: s{', ' if more else ''}{more}}}\n" for name, more in extra.items()
    ]
    return "blocks:\n" + "".join(rows)


def edges_of(text: str) -> set[tuple[str, str, str | None, bool]]:
    return {(edge.source, edge.target, edge.exit, edge.is_error) for edge in compile_document(text).edges}


def test_without_edges_the_order_written_decides() -> None:
    assert edges_of(blocks(a="", b="", c="")) == {("a", "b", None, False), ("b", "c", None, False)}


def test_edges_are_bounded() -> None:
    def text(depends: int) -> str:
        named = {n: ", ".join(f"b{m}" for m in range(max(0, n - depends), n)) for n in range(600)}
        return blocks(**{f"b{n}": f"depends: [{names}]" if names else "" for n, names in named.items()})

    assert len(compile_document(text(10)).edges) == 5945
    assert "more than 6000 edges" in one_fault(text(11)).message


def test_an_error_route_alone_does_not_change_the_order() -> None:
    text = blocks(a="error_route: mend", b="", mend="")
    assert edges_of(text) == {("a", "b", None, False), ("a", "mend", None, True)}


def test_edges_come_from_depends_and_transitions() -> None:
    text = (
        blocks(a="", b="depends: a", c="depends: [a, b]", d="")
        + "workflow: {transitions: [{from: c, to: d}, {from: d, to: null}]}\n"
    )
    assert edges_of(text) == {
        ("a", "b", None, False),
        ("a", "c", None, False),
        ("b", "c", None, False),
        ("c", "d", None, False),
    }


def test_conditional_transitions_lead_by_exit_and_null_ends_the_branch() -> None:
    text = (
        blocks(a="exits: [ok, bad, odd]", b="", c="")
        + "workflow: {conditional_transitions: [{from: a, ok: b, odd: null, default: c}]}\n"
    )
    assert edges_of(text) == {
        ("a", "b", "ok", False),
        ("a", "", "odd", False),
        ("a", "c", "default", False),
    }


def test_a_route_is_narrower_than_depends() -> None:
    text = (
        blocks(a="", yes="depends: [g, a]", no="")
        + "  g: {type: gate, eval_key: a, soul_ref: s, depends: a, pass: yes_, fail: no_}\n"
    )
    text = text.replace("  yes:", "  yes_:").replace("  no:", "  no_:")
    assert edges_of(text) == {
        ("a", "g", None, False),
        ("a", "yes_", None, False),
        ("g", "yes_", "pass", False),
        ("g", "no_", "fail", False),
    }


def test_routes_choose_exit_and_target() -> None:
    text = blocks(
        a="routes: [{case: high, when: {eval_key: score, operator: gte, value: 0.8}, goto: b}, {case: low, default: true, goto: c}]",
        b="",
        c="",
    )
    definition = compile_document(text)
    assert definition.edges == (
        Edge(source="a", target="b", exit="high"),
        Edge(source="a", target="c", exit="low"),
    )
    high = Condition(eval_key="blocks.a.json.score", operator="gte", value=0.8)
    assert definition.blocks["a"].routes == (
        ExitCase(exit="high", when=high, goto="b"),
        ExitCase(exit="low", default=True, goto="c"),
    )


CYCLES = [
    (
        blocks(a="depends: b", b="depends: a"),
        "blocks.a.depends",
        2,
        "a → b → a is a cycle; put both into a `loop`",
    ),
    (
        blocks(a="depends: c", b="depends: a", c="depends: b"),
        "blocks.a.depends",
        2,
        "a → b → c → a is a cycle; put them into a `loop`",
    ),
    (blocks(a="depends: a"), "blocks.a.depends", 2, "waits for itself"),
    (
        blocks(a="", b="depends: a")
        + "  g: {type: gate, eval_key: b, soul_ref: s, depends: b, pass: c, fail: b}\n  c: {type: llm, soul_ref: s}\n",
        "blocks.g.fail",
        4,
        "b → g → b is a cycle; put both into a `loop`",
    ),
    (
        blocks(a="error_route: b", b="") + "workflow: {transitions: [{from: b, to: a}]}\n",
        "workflow.transitions[0]",
        4,
        "is a cycle",
    ),
]


@pytest.mark.parametrize(("text", "path", "line", "message"), CYCLES)
def test_cycles_outside_loops_are_faults(text: str, path: str, line: int, message: str) -> None:
    fault = one_fault(text)
    assert message in fault.message
    assert (fault.path, fault.line) == (path, line)


def test_each_of_several_cycles_is_named_once() -> None:
    text = blocks(a="depends: b", b="depends: a", c="depends: d", d="depends: c", e="depends: [b, d]")
    assert [fault.message.split(" is a")[0] for fault in faults_of(text)] == ["a → b → a", "c → d → c"]


def test_blocks_the_entry_does_not_reach_are_faults() -> None:
    text = blocks(a="", b="depends: a", c="", d="depends: c") + "workflow: {entry: a}\n"
    assert [(fault.path, fault.line) for fault in faults_of(text)] == [("blocks.c", 4), ("blocks.d", 5)]


def test_a_misspelt_target_does_not_make_its_block_unreachable_too() -> None:
    text = blocks(start="", tidy="") + "workflow: {entry: start, transitions: [{from: start, to: tiddy}]}\n"
    assert one_fault(text).path == "workflow.transitions[0].to"


LOOP = """\
blocks:
  plan: {type: llm, soul_ref: s}
  refine:
    type: loop
    depends: plan
    inner_block_refs: [draft, check]
    max_rounds: 3
    break_on_exit: pass
    break_condition:
      combinator: or
      conditions:
        - {eval_key: check.exit, operator: equals, value: pass}
        - {eval_key: score, operator: ">=", value: 0.9}
    carry_context: {mode: last, source_blocks: [draft], inject_as: before}
  draft: {type: llm, soul_ref: s, prompt: "{{ plan }} {{ before.draft }} {{ round }}"}
  check: {type: gate, eval_key: draft, soul_ref: s}
  publish: {type: llm, soul_ref: s, depends: refine, prompt: "{{ draft }} {{ refine }} {{ check.exit }}"}
"""


def test_a_loop_keeps_its_inner_blocks_to_itself() -> None:
    definition = compile_document(LOOP)
    assert edges_of(LOOP) == {("plan", "refine", None, False), ("refine", "publish", None, False)}
    assert definition.inner_blocks == {"draft": "refine", "check": "refine"}
    loop = definition.blocks["refine"]
    assert isinstance(loop, LoopBlockDef)
    assert loop.carry_context == CarryContext(source_blocks=("draft",), inject_as="before")
    assert loop.break_condition == ConditionGroup(
        combinator="or",
        conditions=(
            Condition(eval_key="blocks.check.exit", operator="equals", value="pass"),
            Condition(eval_key="blocks.check.json.score", operator="gte", value=0.9),
        ),
    )


LOOP_FAULTS = [
    ("{{ plan }}", "{{ check }}", "block 'check' comes after 'draft' in the loop"),
    ("before.draft", "before.check", "'before' does not carry 'check'; it has draft"),
    ("depends: refine,", "depends: plan,", "block 'draft' is not upstream of 'publish'"),
    ("{{ refine }}", "{{ round }}", "'round' is known only inside a loop"),
    (
        'type: llm, soul_ref: s, prompt: "{{ plan }}',
        'type: llm, soul_ref: s, depends: check, prompt: "{{ plan }}',
        "comes before 'check' in the loop",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), LOOP_FAULTS)
def test_faults_around_loops(old: str, new: str, message: str) -> None:
    assert old in LOOP
    assert any(message in fault.message for fault in faults_of(LOOP.replace(old, new, 1)))


EVERYTHING = """\
version: 1.0
id: everything
kind: workflow
enabled: false
config: {team: docs, since: 2024-01-31}
interface:
  inputs:
    - {name: topic, type: string, required: true, description: What about}
    - {name: tone, type: text, default: dry, target: shared_memory.tone}
  outputs:
    - {name: text, source: results.write, type: string}
souls:
  s: {id: s, kind: soul, name: S, role: R, system_prompt: P, provider: demo, model_name: demo-small, temperature: 0, max_tokens: 10, avatar_color: red, modified_at: 2024-01-01, tools: []}
blocks:
  research:
    type: dispatch
    exits:
      - {id: web, label: Web, soul_ref: s, task: "Search {{ inputs.topic }}"}
      - {id: books, soul_ref: s, task: "Read about {{ workflow.topic }}"}
  write:
    type: linear
    soul_ref: s
    depends: research
    inputs: {found: {from: research.0.output}, tone: inputs.tone}
    prompt: "{{ found }} in {{ tone }}"
    retry_config: {max_attempts: 2, backoff: exponential, backoff_base_seconds: 2, non_retryable_errors: [auth]}
    timeout_seconds: 12
    limits: {token_cap: 100, on_exceed: warn}
    error_route: sorry
    assertions: [{type: contains, value: x}]
  judge: {type: gate, eval_key: results.write, threshold: 0.5, depends: write, pass: count, fail: sorry}
  count:
    type: code
    allowed_imports: [json]
    exits: [{id: many, label: Many}, few]
    exit_conditions:
      - {case_id: many, condition_group: {conditions: [{eval_key: words, operator: gt, value: 10}]}}
      - {case_id: few, default: true}
    code: |
      import json
      def main(data):
          return {"words": 1}
  child:
    type: workflow
    workflow_ref: other
    inputs: {text: write}
    outputs: {shared_memory.summary: summary}
    max_depth: 2
    on_error: catch
    depends: count
  sorry: {type: llm, soul_ref: s, prompt: "{{ write.error }} {{ inputs.topic }}"}
  last: {type: llm, soul_ref: s, depends: child, prompt: "{{ shared_memory.summary }} {{ run.number }}"}
workflow:
  name: Everything
  conditional_transitions:
    - {from: count, many: child, few: child}
limits: {cost_cap_usd: 1, token_cap: 50000, max_duration_seconds: 300, on_exceed: fail}
eval:
  threshold: 0.8
  cases:
    - id: plain
      description: Words
      inputs: {topic: bees}
      fixtures: {research: [{exit_id: web, output: x}], write: text}
      expected: {write: [{type: contains, value: t}]}
      include_block_assertions: true
      repeats: 3
      min_pass: 2
evidence: {sensitivity: high, min_runs: 30, ignore: [latency, quality_drop]}
tools: []
"""


@pytest.fixture(scope="module")
def everything() -> WorkflowDefinition:
    return compile_document(EVERYTHING)


def test_a_definition_keeps_everything_that_was_written(everything: WorkflowDefinition) -> None:
    assert (everything.name, everything.slug, everything.enabled) == ("Everything", "everything", False)
    assert everything.config == {"team": "docs", "since": "2024-01-31"}
    assert everything.inputs is not None
    topic, tone = everything.inputs
    assert (topic.required, topic.has_default, topic.type) == (True, False, "string")
    assert (tone.default, tone.has_default, tone.type) == ("dry", True, "string")
    assert everything.outputs[0].source == "blocks.write.output"
    assert everything.souls["s"].max_tokens == 10
    assert everything.limits is not None
    assert everything.limits.token_cap == 50_000
    assert everything.eval is not None
    case = everything.eval.cases[0]
    assert (case.id, case.repeats, case.min_pass, case.include_block_assertions) == ("plain", 3, 2, True)
    assert case.line == EVERYTHING.splitlines().index("    - id: plain") + 1
    assert everything.evidence.ignore == ("latency", "score")
    assert everything.soul_refs == {"s"}
    assert everything.has_code


def test_each_kind_of_block_becomes_its_definition(everything: WorkflowDefinition) -> None:
    found = everything.blocks
    write = found["write"]
    assert isinstance(write, LlmBlockDef)
    assert write.inputs == {"found": "blocks.research.json.0.output", "tone": "inputs.tone"}
    assert write.retry_config is not None
    assert write.retry_config.delay_seconds(2) == 4.0
    assert (write.timeout_seconds, write.error_route, write.depends) == (12.0, "sorry", ("research",))
    assert write.limits is not None
    assert write.limits.on_exceed == "warn"
    judge = found["judge"]
    assert isinstance(judge, GateBlockDef)
    assert (judge.eval_key, judge.pass_target, judge.fail_target) == ("write", "count", "sorry")
    count = found["count"]
    assert isinstance(count, CodeBlockDef)
    assert (count.timeout_seconds, count.exits) == (30.0, ("many", "few"))
    many = Condition(eval_key="blocks.count.json.words", operator="gt", value=10)
    assert count.exit_conditions[0].when == ConditionGroup(conditions=(many,))
    child = found["child"]
    assert isinstance(child, WorkflowBlockDef)
    assert (child.max_depth, child.on_error, child.inputs) == (2, "catch", {"text": "blocks.write.output"})
    research = found["research"]
    assert isinstance(research, DispatchBlockDef)
    assert [branch.id for branch in research.branches] == ["web", "books"]
    assert found["last"].assertions is None


@pytest.mark.parametrize("text", [EVERYTHING, LOOP])
def test_the_validator_promises_no_more_than_the_engine_shows(text: str) -> None:
    """What a valid document refers to lies upstream by the engine's own graph."""
    definition = compile_document(text)
    graph = Graph(definition)
    for block in definition.blocks.values():
        for path in (block.inputs or {}).values():
            parts = path.split(".")
            assert parts[0] != "blocks" or parts[1] in graph.upstream(block.id)
    assert set(graph.top) == set(definition.blocks) - set(definition.inner_blocks)


def test_what_a_child_puts_beside_the_inputs_is_known_downstream_only() -> None:
    assert faults_of(EVERYTHING) == []
    early = EVERYTHING.replace(
        'prompt: "{{ write.error }} {{ inputs.topic }}"', 'prompt: "{{ shared_memory.summary }}"'
    )
    assert "block 'child' is not upstream of 'sorry'" in one_fault(early).message


def test_a_child_workflow_leaves_by_completed_or_error() -> None:
    text = (
        "blocks:\n  w: {type: workflow, workflow_ref: x, on_error: catch}\n  a: {type: llm, soul_ref: s}\n"
        "workflow: {conditional_transitions: [{from: w, error: a, default: null}]}\n"
    )
    assert edges_of(text) == {("w", "a", "error", False), ("w", "", "default", False)}
    assert (
        "has no exit 'eror'. Did you mean 'error'?" in one_fault(text.replace("error: a", "eror: a")).message
    )
