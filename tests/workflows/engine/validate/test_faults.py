"""Every kind of fault, with its path, its line and what to write instead."""

from dataclasses import dataclass

import pytest

from tests.workflows.engine.validate.document_errors import faults_of, one_fault

HEAD = "souls:\n  s: {role: R}\nblocks:\n"
A = "  a: {type: llm, soul_ref: s}\n"
B = "  b: {type: llm, soul_ref: s, depends: a}\n"
GATE = "  g: {type: gate, eval_key: a, soul_ref: s, depends: a}\n"
CODE = "  c:\n    type: code\n    code: |\n      def main(data):\n          return 1\n"

# Text after HEAD (three lines), path, line, part of the message
BLOCKS = [
    ("  a: {}\n", "blocks.a.type", 4, "is missing"),
    ("  a: text\n", "blocks.a", 4, "must be a mapping with `type`, not the text 'text'"),
    ("  a: {type: lmm, soul_ref: s}\n", "blocks.a.type", 4, "unknown block type 'lmm'. Did you mean 'llm'?"),
    ("  a: {type: zebra}\n", "blocks.a.type", 4, "known are llm, code, gate, loop, workflow, dispatch"),
    ("  a: {type: 3}\n", "blocks.a.type", 4, "must be one of"),
    (
        "  a:\n    type: llm\n    soul_ref: s\n    promt: x\n",
        "blocks.a.promt",
        7,
        "unknown key 'promt'. Did you mean 'prompt'?",
    ),
    ("  a: {type: llm}\n", "blocks.a.soul_ref", 4, "is missing; the soul that answers"),
    ("  inputs: {type: llm, soul_ref: s}\n", "blocks.inputs", 4, "reserved"),
    ("  round: {type: llm, soul_ref: s}\n", "blocks.round", 4, "reserved"),
    ("  a b: {type: llm, soul_ref: s}\n", 'blocks["a b"]', 4, "not a name of letters"),
    ("  9a: {type: llm, soul_ref: s}\n", "blocks.9a", 4, "not a name of letters"),
    ("  a: {type: llm, soul_ref: 5}\n", "blocks.a.soul_ref", 4, "must be a text, not the number 5"),
    ("  a: {type: llm, soul_ref: yes}\n", "blocks.a.soul_ref", 4, "unquoted, yes is a word for true"),
    (
        "  a: {type: llm, soul_ref: s, timeout_seconds: 0}\n",
        "blocks.a.timeout_seconds",
        4,
        "is 0; it must be from 0.1 to 3,600",
    ),
    (
        "  a: {type: llm, soul_ref: s, timeout_seconds: true}\n",
        "blocks.a.timeout_seconds",
        4,
        "must be a number",
    ),
    (
        "  a: {type: llm, soul_ref: s, timeout_seconds: soon}\n",
        "blocks.a.timeout_seconds",
        4,
        "not the text 'soon'",
    ),
    (
        "  a: {type: llm, soul_ref: s, retry_config: {max_attempts: 99}}\n",
        "blocks.a.retry_config.max_attempts",
        4,
        "from 1 to 20",
    ),
    (
        "  a: {type: llm, soul_ref: s, retry_config: {max_attempts: 1.5}}\n",
        "blocks.a.retry_config.max_attempts",
        4,
        "whole number",
    ),
    (
        "  a: {type: llm, soul_ref: s, retry_config: {backoff: linear}}\n",
        "blocks.a.retry_config.backoff",
        4,
        "unknown value 'linear'",
    ),
    ("  a: {type: llm, soul_ref: s, limits: {token_cap: 0}}\n", "blocks.a.limits.token_cap", 4, "is 0"),
    (
        "  a: {type: llm, soul_ref: s, limits: {cost_cap: 1}}\n",
        "blocks.a.limits.cost_cap",
        4,
        "Did you mean 'cost_cap_usd'?",
    ),
    (
        "  a: {type: llm, soul_ref: s, assertions: {type: equals}}\n",
        "blocks.a.assertions",
        4,
        "must be a list, not a mapping",
    ),
    (
        "  a: {type: llm, soul_ref: s, assertions: [equals]}\n",
        "blocks.a.assertions[0]",
        4,
        "must be a mapping",
    ),
    (A + "  b: {type: llm, soul_ref: s, depends: [a, a]}\n", "blocks.b.depends[1]", 5, "listed twice"),
    (
        A + "  b: {type: llm, soul_ref: s, depends: aa}\n",
        "blocks.b.depends",
        5,
        "unknown block 'aa'. Did you mean 'a'?",
    ),
    (
        A + "  b:\n    type: llm\n    soul_ref: s\n    depends:\n      - a\n      - nobody\n",
        "blocks.b.depends[1]",
        10,
        "unknown block 'nobody'",
    ),
    (
        A + "  b: {type: llm, soul_ref: s, depends: a, error_route: oops}\n",
        "blocks.b.error_route",
        5,
        "unknown block 'oops'",
    ),
    ("  c: {type: code, code: 'x = 1'}\n", "blocks.c.code", 4, "main"),
    (
        "  c:\n    type: code\n    code: |\n      def main(data):\n          return (\n",
        "blocks.c.code",
        8,
        "Python",
    ),
    (
        "  c:\n    type: code\n    allowed_imports: [json]\n    code: |\n      import json\n      import os\n      def main(data):\n          return 1\n",
        "blocks.c.code",
        9,
        "os",
    ),
    (
        A + "  g: {type: gate, eval_key: a, soul_ref: s, depends: a, pass: a2}\n",
        None,
        None,
        "both `pass` and `fail`",
    ),
    (
        A + "  g: {type: gate, eval_key: ab, soul_ref: s, depends: a}\n",
        "blocks.g.eval_key",
        5,
        "'ab' is not the id of a block. Did you mean 'a'?",
    ),
    (
        A + "  g: {type: gate, eval_key: a, depends: a}\n",
        "blocks.g.eval_key",
        5,
        "no assertions to decide by",
    ),
    (
        A
        + GATE
        + "  b: {type: llm, soul_ref: s, depends: g}\n  h: {type: gate, eval_key: c, soul_ref: s, depends: a}\n  c: {type: llm, soul_ref: s, depends: h}\n",
        "blocks.h.eval_key",
        7,
        "block 'c' is not upstream of 'h'",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], max_rounds: 51}\n" + A,
        "blocks.l.max_rounds",
        4,
        "from 1 to 50",
    ),
    ("  l: {type: loop, inner_block_refs: []}\n" + A, "blocks.l.inner_block_refs", 4, "at least 1"),
    (
        "  l: {type: loop, inner_block_refs: [a, ghost]}\n" + A,
        "blocks.l.inner_block_refs[1]",
        4,
        "unknown block 'ghost'",
    ),
    (
        "  l: {type: loop, inner_block_refs: [l]}\n",
        "blocks.l.inner_block_refs[0]",
        4,
        "cannot contain itself",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a]}\n  m: {type: loop, inner_block_refs: [a], depends: l}\n"
        + A,
        "blocks.m.inner_block_refs[0]",
        5,
        "already runs inside the loop 'l'",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], break_on_exit: done}\n" + A,
        "blocks.l.break_on_exit",
        4,
        "no inner block has an exit 'done'",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], break_condition: {eval_key: output, operator: equal, value: 1}}\n"
        + A,
        "blocks.l.break_condition.operator",
        4,
        "Did you mean 'equals'?",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], break_condition: {eval_key: output, operator: gt, value: much}}\n"
        + A,
        "blocks.l.break_condition.value",
        4,
        "needs a number",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], break_condition: {combinator: xor, conditions: [{eval_key: output, operator: exists}]}}\n"
        + A,
        "blocks.l.break_condition.combinator",
        4,
        "unknown value 'xor'",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], carry_context: {inject_as: a}}\n" + A,
        "blocks.l.carry_context.inject_as",
        4,
        "is the id of a block",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], carry_context: {source_blocks: b}}\n"
        + A
        + "  b: {type: llm, soul_ref: s, depends: l}\n",
        "blocks.l.carry_context.source_blocks[0]",
        4,
        "not inside this loop",
    ),
    (
        "  l: {type: loop, inner_block_refs: [a], carry_context: {inject_as: run}}\n" + A,
        "blocks.l.carry_context.inject_as",
        4,
        "'run' is reserved",
    ),
    ("  w: {type: workflow, workflow_ref: x, max_depth: 11}\n", "blocks.w.max_depth", 4, "from 1 to 10"),
    ("  w: {type: workflow, workflow_ref: x, on_error: ignore}\n", "blocks.w.on_error", 4, "raise"),
    ("  d: {type: dispatch, exits: []}\n", "blocks.d.exits", 4, "at least 1"),
    ("  d: {type: dispatch, exits: [{id: x, soul_ref: s}]}\n", "blocks.d.exits[0].task", 4, "is missing"),
    (
        "  d:\n    type: dispatch\n    exits:\n      - {id: x, soul_ref: s, task: t}\n      - {id: x, soul_ref: s, task: t}\n",
        "blocks.d.exits[1].id",
        8,
        "already taken",
    ),
    (
        "  a: {type: llm, soul_ref: s, exit_conditions: [{exit: x}]}\n",
        "blocks.a.exit_conditions[0]",
        4,
        "needs `when`, or `default: true`",
    ),
    (
        "  a: {type: llm, soul_ref: s, exits: [x, y], exit_conditions: [{exit: z, default: true}]}\n",
        "blocks.a.exit_conditions[0]",
        4,
        "declared are x, y",
    ),
    (
        "  a: {type: llm, soul_ref: s, exit_conditions: [{exit: x, default: true}, {exit: y, default: true}]}\n",
        "blocks.a.exit_conditions[1].default",
        4,
        "only one",
    ),
    ("  a: {type: llm, soul_ref: s, exits: [default]}\n", "blocks.a.exits", 4, "'default' cannot be an exit"),
    (
        "  a: {type: llm, soul_ref: s, routes: [{exit: x, case: y, default: true}]}\n",
        "blocks.a.routes[0].case",
        4,
        "mean the same",
    ),
    (
        "  a: {type: llm, soul_ref: s, routes: [{exit: x, default: true, goto: nobody}]}\n",
        "blocks.a.routes[0].goto",
        4,
        "unknown block",
    ),
]


@pytest.mark.parametrize(("text", "path", "line", "message"), BLOCKS)
def test_faults_of_blocks(text: str, path: str | None, line: int | None, message: str) -> None:
    faults = faults_of(HEAD + text)
    found = [fault for fault in faults if message in fault.message]
    assert len(found) == 1, "\n".join(map(str, faults))
    assert path is None or (found[0].path, found[0].line) == (path, line)
    assert path is None or len(faults) == 1, "\n".join(map(str, faults))


PATHS = [
    # a prompt of block b, downstream of a; c is not upstream
    ("{{ inptus.x }}", "unknown name 'inptus'. Did you mean 'inputs'?"),
    ("{{ blocks.aa.output }}", "unknown block 'aa'. Did you mean 'a'?"),
    ("{{ blocks.c.output }}", "block 'c' is not upstream of 'b'; add it to `depends`"),
    ("{{ c.title }}", "block 'c' is not upstream of 'b'"),
    ("{{ b }}", "cannot read its own output"),
    ("{{ blocks.a.outputs }}", "a block has output, json, exit and error"),
    ("{{ run.secret }}", "run.id, run.number and run.version"),
    ("{{ round }}", "known only inside a loop"),
    ("{{ previous_round }}", "unknown name"),
    ("{{ inputs.x", "never closed"),
    ("{{ inputs.x | upper }}", "expressions are not supported"),
    ("{{ inputs.x + 1 }}", "expressions are not supported"),
    ("{{ }}", "is empty"),
    ("{{ inputs.topik }}", "unknown input 'topik'. Did you mean 'topic'?"),
]
INTERFACE = "interface: {inputs: [{name: topic}, {name: x}]}\n"


@pytest.mark.parametrize(("prompt", "message"), PATHS)
def test_faults_of_templates_point_at_their_line(prompt: str, message: str) -> None:
    text = (
        HEAD
        + A
        + "  c: {type: llm, soul_ref: s, depends: a}\n"
        + (
            "  b:\n    type: llm\n    soul_ref: s\n    depends: a\n    prompt: |\n      First line.\n      Then "
            + prompt
            + "\n"
        )
    )
    fault = one_fault(text + INTERFACE)
    assert (fault.path, fault.line) == ("blocks.b.prompt", 12)
    assert message in fault.message


def test_a_block_with_inputs_sees_those_alone() -> None:
    block = "  b: {type: llm, soul_ref: s, depends: a, inputs: {text: a.output}, prompt: '%s'}\n"
    assert faults_of(HEAD + A + block % "{{ text }} {{ text.more }} {{ inputs.text }}") == []
    fault = one_fault(HEAD + A + block % "{{ a }}")
    assert "'a' is not among what block 'b' sees; its `inputs` are text" in fault.message
    assert (
        "unknown block 'aa'"
        in one_fault(HEAD + A + (block % "{{ text }}").replace("a.output", "results.aa")).message
    )
    bad = one_fault(HEAD + A + (block % "{{ text }}").replace("a.output", "'a output'"))
    assert bad.path == "blocks.b.inputs.text"


SECTIONS = [
    ("version: 2\n", "version", 5, 'this format is version "1.0"'),
    ("versoin: '1.0'\n", "versoin", 5, "Did you mean 'version'?"),
    ("id: Not A Slug\n", "id", 5, "is not a slug"),
    ("id: validate\n", "id", 5, "reserved"),
    ("id: schema\n", "id", 5, "reserved"),
    ("kind: soul\n", "kind", 5, "unknown value 'soul'"),
    ("enabled: 'yes'\n", "enabled", 5, "must be true or false"),
    ("tools: [search]\n", "tools", 5, "not supported yet"),
    ("limits: {cost_cap_usd: -1}\n", "limits.cost_cap_usd", 5, "is -1"),
    ("limits: {on_exceed: stop}\n", "limits.on_exceed", 5, "fail"),
    ("evidence: {sensitivity: hi}\n", "evidence.sensitivity", 5, "unknown value 'hi'"),
    ("evidence: {ignore: [latencies]}\n", "evidence.ignore[0]", 5, "Did you mean 'latency'?"),
    ("evidence: {min_runs: 0}\n", "evidence.min_runs", 5, "is 0"),
    ("interface: {inputs: [{name: x}, {name: x}]}\n", "interface.inputs[1].name", 5, "already taken"),
    (
        "interface: {inputs: [{name: x, type: strng}]}\n",
        "interface.inputs[0].type",
        5,
        "Did you mean 'string'?",
    ),
    (
        "interface: {inputs: [{name: x, type: number, default: many}]}\n",
        "interface.inputs[0].default",
        5,
        "must be of type number",
    ),
    (
        "interface: {inputs: [{name: x, target: shared_memory.y}]}\n",
        "interface.inputs[0].target",
        5,
        "must be inputs.x",
    ),
    (
        "interface: {outputs: [{name: x, source: b.output}]}\n",
        "interface.outputs[0].source",
        5,
        "unknown name 'b'",
    ),
    ("interface: {outputs: [{name: x}]}\n", "interface.outputs[0].source", 5, "is missing"),
    ("workflow: {entry: b}\n", "workflow.entry", 5, "unknown block 'b'"),
    ("workflow: {transitions: [{from: a, to: b}]}\n", "workflow.transitions[0].to", 5, "unknown block 'b'"),
    ("workflow: {transitions: [{to: a}]}\n", "workflow.transitions[0].from", 5, "is missing"),
    (
        "workflow: {conditional_transitions: [{from: a, ok: b, default: a2}]}\n",
        None,
        None,
        "block 'a' has no exit 'ok'. Declare it",
    ),
    (
        "workflow: {conditional_transitions: [{from: a, default: c}]}\n",
        "workflow.conditional_transitions[0].default",
        5,
        "unknown block 'c'",
    ),
    ("eval: {threshold: 2}\n", "eval.threshold", 5, "from 0 to 1"),
    ("eval: {cases: [{inputs: {}}]}\n", "eval.cases[0].id", 5, "is missing"),
    ("eval:\n  cases:\n    - {id: x}\n    - {id: x}\n", "eval.cases[1].id", 8, "already taken"),
    ("eval: {cases: [{id: x, fixtures: {aa: text}}]}\n", "eval.cases[0].fixtures.aa", 5, "Did you mean 'a'?"),
    ("eval: {cases: [{id: x, expected: {b: []}}]}\n", "eval.cases[0].expected.b", 5, "unknown block 'b'"),
    ("eval: {cases: [{id: x, repeats: 2, min_pass: 3}]}\n", "eval.cases[0].min_pass", 5, "only 2 repeats"),
    ("eval: {cases: [{id: x, repeat: 2}]}\n", "eval.cases[0].repeat", 5, "Did you mean 'repeats'?"),
]


@pytest.mark.parametrize(("text", "path", "line", "message"), SECTIONS)
def test_faults_of_other_sections(text: str, path: str | None, line: int | None, message: str) -> None:
    faults = faults_of(HEAD + A + text)
    found = [fault for fault in faults if message in fault.message]
    assert len(found) == 1, "\n".join(map(str, faults))
    assert path is None or [(one.path, one.line) for one in faults] == [(path, line)]


def test_souls_are_checked_with_the_library() -> None:
    text = "blocks:\n" + A
    assert faults_of(text) == []
    assert faults_of(text, known_souls=["s"]) == []
    assert faults_of(HEAD + A, known_souls=[]) == []
    assert "unknown soul 's'" in one_fault(text, known_souls=["analyst"]).message
    fault = one_fault("souls: {analyst: {}}\nblocks: {a: {type: llm, soul_ref: analist}}\n", known_souls=[])
    assert (fault.path, fault.line) == ("blocks.a.soul_ref", 2)
    assert fault.message == "unknown soul 'analist'. Did you mean 'analyst'?"
    assert "not supported yet" in one_fault("souls: {s: {tools: [x]}}\nblocks:\n" + A).message
    assert "they must agree" in one_fault("souls: {s: {id: t}}\nblocks:\n" + A).message


def test_child_workflows_are_checked_with_the_library() -> None:
    text = "blocks: {w: {type: workflow, workflow_ref: triage}}\n"
    assert faults_of(text) == []
    assert "Did you mean 'triage-2'?" in one_fault(text, known_workflows=["triage-2"]).message


@dataclass
class Problem:
    path: str
    message: str


def test_bad_assertions_are_reported_where_they_stand() -> None:
    def check(configs: list[dict[str, object]]) -> list[Problem]:
        return [
            Problem(f"[{n}].value.min", "too small") for n, one in enumerate(configs) if one["type"] == "bad"
        ]

    text = HEAD + (
        "  a:\n    type: llm\n    soul_ref: s\n    assertions:\n      - {type: ok}\n"
        "      - type: bad\n        value:\n          min: 1\n"
        "eval:\n  cases:\n    - id: x\n      expected:\n        a:\n          - type: bad\n"
    )
    assert [str(fault) for fault in faults_of(text, check_assertions=check)] == [
        "blocks.a.assertions[1].value.min (line 11): too small",
        "eval.cases[0].expected.a[0].value.min (line 17): too small",
    ]


def test_all_faults_are_found_at_once_in_the_order_of_lines() -> None:
    text = (
        "version: '2.0'\n"
        "blocks:\n"
        "  a: {type: llm, soul_ref: s, depends: b, promt: x}\n"
        "  b: {type: llm, soul_ref: s, depends: a, prompt: '{{ nope }}'}\n"
        "  c: {type: llm, soul_ref: s, timeout_seconds: -1}\n"
        "  d: {type: llm, soul_ref: s, depends: bb}\n"
        "workflow: {entry: a}\n"
    )
    assert [(fault.line, fault.path) for fault in faults_of(text)] == [
        (1, "version"),
        (3, "blocks.a.depends"),
        (3, "blocks.a.promt"),
        (4, "blocks.b.prompt"),
        (5, "blocks.c"),
        (5, "blocks.c.timeout_seconds"),
        (6, "blocks.d.depends"),
    ]


def test_a_faulty_item_does_not_move_the_ones_after_it() -> None:
    text = (
        HEAD
        + A
        + (
            "eval:\n  cases:\n    - {description: no id}\n    - {id: x}\n    - {id: x}\n"
            "workflow:\n  conditional_transitions:\n    - {default: a}\n    - {from: a, nope: null}\n"
        )
    )
    assert [(fault.path, fault.line) for fault in faults_of(text)] == [
        ("eval.cases[0].id", 7),
        ("eval.cases[2].id", 9),
        ("workflow.conditional_transitions[0].from", 12),
        ("workflow.conditional_transitions[1].nope", 13),
    ]
