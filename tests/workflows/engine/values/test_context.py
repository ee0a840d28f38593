"""What a block sees under which name, and what a run takes in and gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workflows.engine.plans import code, define, done, drive, failed, loop, outcomes
from workflows_app.engine.definition import CarryContext, InputField, OutputField, WorkflowDefinition
from workflows_app.engine.records import NodeRecord, Step
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.schedule import Plan
from workflows_app.engine.values.context import BlockContext, UnknownPath
from workflows_app.engine.values.inputs import check_inputs
from workflows_app.engine.values.outputs import code_output, output_text

RUN = {"id": "r-1", "number": 7, "version": 3}


def seen_by_end(output: str = "", exit_handle: str | None = None, **keys: Any) -> BlockContext:
    """The context of block `end`, after block `a` gave an output."""
    record = NodeRecord(node_id="a", output=output, exit_handle=exit_handle)
    definition = define("a", code("end", **keys), "later")
    plan = Plan(definition, [record], inputs={"topic": "tea", "deep": {"list": [1, {"x": "y"}]}}, run=RUN)
    return plan.context.at(plan.ready()[0])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("About {{ inputs.topic }}.", "About tea."),
        ("{{workflow.topic}} {{ shared_memory.topic }}", "tea tea"),
        ("{{ inputs.deep.list.1.x }}", "y"),
        ("{{ inputs.deep }}", '{"list": [1, {"x": "y"}]}'),
        ("{{ blocks.a.output }}|{{ a }}|{{ results.a }}", '{"t": "ü"}|{"t": "ü"}|{"t": "ü"}'),
        ("{{ blocks.a.json.t }}{{ a.t }}{{ results.a.t }}", "üüü"),
        ("{{ blocks.a.json }}", '{"t": "ü"}'),
        ("{{ a.exit }} {{ blocks.a.error }}", "left "),
        ("{{ run.id }} {{ run.number }} {{ run.version }}", "r-1 7 3"),
        ("no paths, {one brace}", "no paths, {one brace}"),
    ],
)
def test_paths_render_as_the_text_of_their_value(template: str, text: str) -> None:
    assert seen_by_end('{"t": "ü"}', "left").render(template) == text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("inputs.tpoic", "'inputs.tpoic' is unknown: inputs has no 'tpoic' (it has deep, topic)."),
        ("inputs.deep.list.9", "is a list of 2 and has no item '9'"),
        ("inputs.topic.x", "inputs.topic is a str and has no fields"),
        ("blocks.a.json.x", "the output of 'a' is not JSON"),
        ("blocks.later.output", "block 'later' is not upstream of this block"),
        ("blocks.end.output", "block 'end' is not upstream of this block"),
        ("nobody.knows", "unknown name 'nobody'"),
        ("round", "known only inside a loop"),
    ],
)
def test_an_unknown_path_fails_the_block_by_name(path: str, reason: str) -> None:
    with pytest.raises(BlockFailure) as caught:
        seen_by_end("plain").render(f"{{{{ {path} }}}}")
    assert caught.value.kind == "unknown_path"
    assert not caught.value.is_retryable
    assert path in caught.value.message
    assert reason in caught.value.message


def test_values_of_inputs_are_never_rendered_again() -> None:
    assert seen_by_end("{{ run.id }}").render("{{ a }}") == "{{ run.id }}"


def test_a_block_with_inputs_sees_only_those_by_local_name() -> None:
    context = seen_by_end('{"t": 5}', inputs={"subject": "inputs.topic", "whole": "blocks.a.json"})
    assert context.render("{{ subject }} {{ whole.t }} {{ inputs.subject }}") == "tea 5 tea"
    assert context.data() == {"subject": "tea", "whole": {"t": 5}}
    with pytest.raises(BlockFailure, match=r"'inputs.topic' is not among the inputs of block 'end'"):
        context.render("{{ inputs.topic }}")
    with pytest.raises(BlockFailure, match="'a' is not among"):
        context.render("{{ a }}")


def test_code_data_has_every_name() -> None:
    data = seen_by_end('{"t": 5}', "left").data()
    assert data["a"] == data["results"]["a"] == data["blocks"]["a"]["output"] == '{"t": 5}'
    assert data["blocks"]["a"] == {"output": '{"t": 5}', "json": {"t": 5}, "exit": "left", "error": None}
    assert data["inputs"]["topic"] == data["workflow"]["topic"] == data["shared_memory"]["topic"] == "tea"
    assert data["run"] == RUN
    assert set(data["blocks"]) == {"a"}
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize("output", ["", "plain", "{broken", "NaN", "[" * 100_000])
def test_output_that_is_not_json_has_no_json(output: str) -> None:
    assert seen_by_end(output).data()["blocks"]["a"]["json"] is None


def test_json_is_parsed_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = json.loads
    monkeypatch.setattr(
        "workflows_app.engine.json_text.json.loads",
        lambda text, **keys: parsed.append(text) or real(text, **keys),
    )
    context = seen_by_end('{"t": 1}')
    context.render("{{ a }} {{ inputs.topic }}")
    assert parsed == []
    context.render("{{ a.t }} {{ a.t }}")
    assert parsed == ['{"t": 1}']


def test_a_rescuer_reads_the_error_of_what_failed() -> None:
    plan = Plan(define("a", "rescue", edges=["a ! rescue"]))
    plan.record(failed(plan.ready()[0], "disk full"))
    assert plan.context.at(plan.ready()[0]).render("It said: {{ a.error }}") == "It said: disk full"


def rendered_rounds(carry: CarryContext, template: str, *inner: str) -> list[str]:
    """What the first inner block renders in each of three rounds."""
    texts: list[str] = []
    plan = Plan(define(loop("refine", *inner, max_rounds=3, carry_context=carry), *inner))

    def outcome(step: Step) -> NodeRecord:
        if step.node_id == inner[0]:
            texts.append(plan.context.at(step).render(template))
        return done(step)

    drive(plan, outcome)
    return texts


def test_a_round_is_reported_what_the_one_before_said() -> None:
    rendered = rendered_rounds(
        CarryContext(inject_as="before"), "{{ round }}: {{ before.check }}", "write", "check"
    )
    assert rendered == ["1: ", "2: check 1", "3: check 2"]


def test_the_first_round_is_reported_nothing() -> None:
    rendered = rendered_rounds(CarryContext(inject_as="before"), "<{{ before }}>", "write", "check")
    assert rendered[:2] == ["<>", '<{"write": "write 1", "check": "check 1"}>']


def test_a_round_may_be_given_the_outputs_of_chosen_blocks() -> None:
    carry = CarryContext(source_blocks=("write",), inject_as="before")
    assert rendered_rounds(carry, "{{ before.write }}", "write", "check") == ["", "write 1", "write 2"]


def test_a_round_may_be_given_all_rounds_before() -> None:
    rendered = rendered_rounds(CarryContext(mode="all", inject_as="past"), "{{ past }}", "write")
    assert rendered == ["", '[{"write": "write 1"}]', '[{"write": "write 1"}, {"write": "write 2"}]']


def test_code_in_a_loop_finds_the_carried_context_in_its_data() -> None:
    carry = CarryContext(source_blocks=("write",), inject_as="before")
    plan = Plan(define(loop("refine", "write", carry_context=carry), "write"))
    assert plan.context.at(plan.ready()[0]).data()["before"] == {"write": ""}
    plan.record(done(plan.ready()[0], "first"))
    data = plan.context.at(plan.ready()[0]).data()
    assert (data["before"], data["round"]) == ({"write": "first"}, 2)


def test_the_carried_context_is_unknown_outside_its_loop() -> None:
    plan = Plan(define(loop("refine", "write", max_rounds=1, carry_context=CarryContext()), "write", "end"))
    for _ in range(2):
        plan.record(done(plan.ready()[0]))
    with pytest.raises(UnknownPath, match="only inside the loop"):
        plan.context.at(plan.ready()[0]).lookup("previous_round")


def test_a_block_after_a_loop_reads_its_inner_blocks() -> None:
    plan = Plan(define(loop("refine", "write", max_rounds=2), "write", "end"))
    for _ in range(3):
        plan.record(done(plan.ready()[0]))
    assert plan.context.at(plan.ready()[0]).render("{{ write }} {{ refine }}") == "write 2 write 2"


def test_blocks_side_by_side_do_not_see_each_other() -> None:
    plan = Plan(define("a", "b", "c", edges=["a > b", "a > c"]))
    plan.record(done(plan.ready()[0]))
    b, c = plan.ready()
    plan.record(done(b))
    assert set(plan.context.at(c).data()["blocks"]) == {"a"}


def test_outputs_are_the_texts_of_the_last_blocks_that_ran() -> None:
    plan = Plan(define("a", "b", "c", "rescue", edges=["a > b : x", "a > c : y", "b ! rescue"]))
    drive(plan, outcomes(a="x"))
    assert plan.context.outputs() == {"b": "b 1"}


def test_declared_outputs_come_from_their_sources() -> None:
    fields = (
        OutputField(name="title", source="blocks.a.json.title"),
        OutputField(name="topic", source="inputs.topic"),
        OutputField(name="nothing", source="blocks.b.output"),
    )
    plan = Plan(
        define("a", "b", edges=["a > b : x", "a > : y"], outputs=fields),
        [NodeRecord(node_id="a", output='{"title": 3}', exit_handle="y")],
        inputs={"topic": "tea"},
    )
    assert plan.is_finished
    assert plan.context.outputs() == {"title": 3, "topic": "tea", "nothing": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [("as is", "as is"), (None, ""), (0, "0"), (True, "true"), ({"ü": [1]}, '{"ü": [1]}'), ("", "")],
)
def test_outputs_become_text(value: Any, text: str) -> None:
    assert output_text(value) == text


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (float("nan"), "bad_output"),
        ({"x": [float("inf")]}, "bad_output"),
        ({1, 2}, "bad_output"),
        ("ü" * 600_000, "output_too_large"),
        ("x" * 1_048_577, "output_too_large"),
        ("\ud800", "bad_output"),
    ],
)
def test_code_output_that_is_no_json_or_too_large_fails(value: Any, kind: str) -> None:
    with pytest.raises(BlockFailure) as caught:
        code_output(value)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("value", "exit_handle"),
    [({"exit_handle": "go"}, "go"), ({"exit_handle": 3}, None), ({"exit_handle": ""}, None), ("go", None)],
)
def test_a_text_under_exit_handle_is_the_exit(value: Any, exit_handle: str | None) -> None:
    assert code_output(value)[1] == exit_handle


def with_inputs(*fields: InputField) -> WorkflowDefinition:
    return define("a", inputs=fields)


def test_a_workflow_without_an_interface_takes_any_object() -> None:
    assert check_inputs(define("a"), {"x": [1]}) == ({"x": [1]}, [])
    assert check_inputs(define("a"), None) == ({}, [])


def test_defaults_are_filled_in_and_optional_inputs_are_known() -> None:
    definition = with_inputs(
        InputField(name="tone", default="dry", has_default=True), InputField(name="note", type="string")
    )
    assert check_inputs(definition, {}) == ({"tone": "dry", "note": None}, [])
    assert check_inputs(definition, {"tone": "warm"})[0]["tone"] == "warm"


@pytest.mark.parametrize(
    ("field", "inputs", "path", "message"),
    [
        (InputField(name="x", required=True), {}, "inputs.x", "is required"),
        (
            InputField(name="x", type="string", required=True),
            {"x": None},
            "inputs.x",
            "is required (type string)",
        ),
        (
            InputField(name="x", type="number"),
            {"x": "5"},
            "inputs.x",
            "must be of type number, not the text '5'",
        ),
        (InputField(name="x", type="number"), {"x": True}, "inputs.x", "must be of type number, not true"),
        (
            InputField(name="x", type="integer"),
            {"x": 1.5},
            "inputs.x",
            "must be of type integer, not the number 1.5",
        ),
        (
            InputField(name="x", type="string"),
            {"x": 1},
            "inputs.x",
            "must be of type string, not the number 1",
        ),
        (
            InputField(name="x", type="boolean"),
            {"x": 1},
            "inputs.x",
            "must be of type boolean, not the number 1",
        ),
        (InputField(name="x", type="array"), {"x": {}}, "inputs.x", "must be of type array, not a mapping"),
        (InputField(name="x", type="object"), {"x": []}, "inputs.x", "must be of type object, not a list"),
        (
            InputField(name="topic"),
            {"topci": 1},
            "inputs.topci",
            "unknown input 'topci'. Did you mean 'topic'?",
        ),
        (InputField(name="x"), [1], "inputs", "must be an object, not a list"),
    ],
)
def test_wrong_inputs_are_named(field: InputField, inputs: Any, path: str, message: str) -> None:
    _, faults = check_inputs(with_inputs(field), inputs)
    assert [(fault.path, fault.message) for fault in faults] == [(path, message)]


def test_every_wrong_input_is_reported_at_once() -> None:
    definition = with_inputs(InputField(name="x", required=True), InputField(name="y", type="string"))
    assert len(check_inputs(definition, {"y": 1, "z": 2})[1]) == 3


def test_right_types_are_accepted() -> None:
    types = {
        "string": "a",
        "number": 1,
        "integer": 2.0,
        "boolean": False,
        "array": [],
        "object": {},
        "any": None,
    }
    definition = with_inputs(*[InputField(name=name, type=name) for name in types])
    assert check_inputs(definition, types) == (types, [])
