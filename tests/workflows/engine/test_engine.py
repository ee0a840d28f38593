"""Documents from text to outputs, without a database: what an author writes is what runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.workflows.souls import ScriptedProvider, run_to_end, tools_for
from workflows_app.engine.blocks.base import ChildResult
from workflows_app.engine.providers import ChatRequest, make_provider
from workflows_app.engine.sandbox.client import Sandbox
from workflows_app.engine.validate import compile_document

REVIEW = """
souls:
  writer: {role: Writer, system_prompt: "You write reports with figures.", provider: demo, model_name: demo-small}
  judge:
    role: Judge
    system_prompt: "Answer PASS or FAIL, then why. A report needs figures, risks and a recommendation."
    provider: demo
    model_name: demo-large
blocks:
  refine:
    type: loop
    inner_block_refs: [draft, review]
    max_rounds: 4
    break_on_exit: pass
    carry_context: {mode: last, inject_as: feedback}
  draft:
    type: llm
    soul_ref: writer
    prompt: |
      Write a report on {{ inputs.topic }}. This is round {{ round }}.
      A reviewer said of the last one: {{ feedback.review }}
  review: {type: gate, eval_key: draft, soul_ref: judge}
  count:
    type: code
    code: |
      def main(data):
          return {"words": len(data["draft"].split()), "verdict": data["blocks"]["review"]["exit"]}
    depends: refine
interface:
  inputs: [{name: topic, type: string, required: true}]
  outputs: [{name: words, source: count.words}, {name: verdict, source: blocks.count.json.verdict}]
"""

TRIAGE = """
blocks:
  sort:
    type: llm
    soul_ref: analyst
    prompt: "{{ inputs.message }}"
    exit_conditions:
      - {exit: urgent, when: {eval_key: output, operator: contains, value: URGENT}}
      - {exit: normal, default: true}
  ask:
    type: dispatch
    exits:
      - {id: law, soul_ref: analyst, task: "Law on {{ sort }}"}
      - {id: tax, soul_ref: analyst, task: "Tax on {{ sort }}"}
  risky:
    type: code
    code: |
      def main(data):
          raise RuntimeError("down")
    error_route: rescue
    depends: ask
  rescue:
    type: llm
    soul_ref: analyst
    prompt: "It said {{ risky.error }}"
  reply: {type: llm, soul_ref: analyst, prompt: "Reply", depends: [rescue, sort]}
workflow:
  conditional_transitions:
    - {from: sort, urgent: ask, normal: null}
"""

CHILD = """
blocks:
  sub:
    type: workflow
    workflow_ref: notes
    inputs: {topic: inputs.subject}
    outputs: {shared_memory.summary: text, count: n}
  use:
    type: llm
    soul_ref: analyst
    prompt: "{{ inputs.summary }} / {{ shared_memory.summary }} / {{ sub.count }} / {{ inputs.subject }}"
    depends: sub
interface:
  inputs: [{name: subject, type: string}]
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


async def test_a_review_loop_on_the_built_in_provider(sandbox: Sandbox) -> None:
    definition = compile_document(REVIEW)
    tools = tools_for(definition, make_provider("demo"), souls=definition.souls, sandbox=sandbox)
    plan, _ = await run_to_end(definition, tools, inputs={"topic": "heat pumps"})
    assert plan.failure is None
    outputs = plan.context.outputs()
    assert outputs["words"] > 20
    assert outputs["verdict"] in ("pass", "fail")


async def test_urgent_messages_take_the_long_way(sandbox: Sandbox) -> None:
    definition = compile_document(TRIAGE)
    provider = ScriptedProvider(lambda request: f"[{request.prompt}]")
    tools = tools_for(definition, provider, sandbox=sandbox)
    plan, results = await run_to_end(definition, tools, inputs={"message": "URGENT leak"})
    assert list(results) == ["sort", "ask.law", "ask.tax", "ask", "risky", "rescue", "reply"]
    assert results["rescue"].prompt.startswith("It said RuntimeError: down")  # type: ignore[union-attr]
    assert json.loads(plan.context.records["ask"].output)[0] == {
        "exit_id": "law",
        "output": "[Law on [URGENT leak]]",
    }
    assert plan.context.outputs() == {"reply": "[Reply]"}


async def test_other_messages_end_where_their_exit_does(sandbox: Sandbox) -> None:
    definition = compile_document(TRIAGE)
    plan, results = await run_to_end(definition, tools_for(definition), inputs={"message": "hello"})
    assert list(results) == ["sort", "reply"]
    assert sorted(plan.skipped()) == ["ask", "rescue", "risky"]


async def test_what_a_child_gives_is_read_under_its_new_names() -> None:
    definition = compile_document(CHILD)
    asked: list[str] = []

    def answer(request: ChatRequest) -> str:
        asked.append(request.prompt)
        return "ok"

    async def run_child(workflow_ref: str, inputs: Mapping[str, Any], max_depth: int) -> ChildResult:
        return ChildResult(run_id="c", status="completed", outputs={"text": f"on {inputs['topic']}", "n": 3})

    tools = tools_for(definition, ScriptedProvider(answer), run_child=run_child)
    await run_to_end(definition, tools, inputs={"subject": "tea"})
    assert asked == ["on tea / on tea / 3 / tea"]
