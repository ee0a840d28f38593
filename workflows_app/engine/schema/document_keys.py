"""Every key a document may have outside its blocks: its kind, its bounds and what it is for.

The validator, the JSON Schema and the tables in docs/workflows.md all read these tables and those of `block_keys`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from workflows_app.engine.parse import KeyPath, describe
from workflows_app.engine.schema.kinds import (
    ANYTHING,
    ASSERTIONS,
    BLOCK,
    BOOLEAN,
    FREE_ID,
    ID,
    LONG_TEXT,
    MAPPING,
    PATH,
    SHORT_TEXT,
    Checker,
    Choice,
    Kind,
    Number,
    OrNull,
    Text,
    Typed,
    UnsupportedKey,
)
from workflows_app.engine.schema.shapes import LIMITS, Key, ListOf, MapOf, Shape
from workflows_app.engine.slugs import SLUG, SOUL_ID


@dataclass(frozen=True)
class Version(Kind):
    """The format's version, as text or as the number YAML makes of it."""

    name: str = '`"1.0"`'

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if value == "1.0" or (isinstance(value, float) and value == 1.0):
            return "1.0"
        return to.report(at, f'is {describe(value)}; this format is version "1.0"')

    def schema(self) -> dict[str, Any]:
        return {"enum": ["1.0", 1.0]}


SOUL_SHAPE = Shape(
    "soul",
    {
        "id": Key(SOUL_ID, "The same as its key."),
        "kind": Key(Choice(("soul",)), "Always `soul`."),
        "name": Key(SHORT_TEXT, "What a person reads."),
        "role": Key(SHORT_TEXT, "What it is."),
        "system_prompt": Key(LONG_TEXT, "Instructions that precede every task."),
        "provider": Key(SHORT_TEXT, "Who answers: `demo`, `openai`, or a configured one."),
        "model_name": Key(SHORT_TEXT, "The provider's model."),
        "temperature": Key(Number(0, 2), "How free the answers are."),
        "max_tokens": Key(Number(1, 1_000_000, is_integer=True), "How long an answer may be."),
        "avatar_color": Key(SHORT_TEXT, "Accepted, not used."),
        "modified_at": Key(SHORT_TEXT, "Accepted, not used."),
        "tools": Key(UnsupportedKey(), "Not supported yet."),
        "required_tool_calls": Key(UnsupportedKey(), "Not supported yet."),
        "max_tool_iterations": Key(UnsupportedKey(), "Not supported yet."),
    },
)
VALUE_TYPE = Choice(
    ("any", "string", "number", "integer", "boolean", "array", "object"),
    {
        "text": "string",
        "str": "string",
        "float": "number",
        "int": "integer",
        "bool": "boolean",
        "list": "array",
        "json": "any",
    },
    noun="type",
)
INTERFACE_INPUT = Shape(
    "interface input",
    {
        "name": Key(ID, "The input's name.", is_required=True),
        "type": Key(VALUE_TYPE, "What it must be."),
        "required": Key(BOOLEAN, "Whether a run cannot start without it."),
        "default": Key(ANYTHING, "Its value when a run is started without it."),
        "description": Key(LONG_TEXT, "What a person reads."),
        "target": Key(Text(max_length=200), "Accepted; must be `inputs.<name>`."),
    },
)
INTERFACE_OUTPUT = Shape(
    "interface output",
    {
        "name": Key(ID, "The output's name.", is_required=True),
        "source": Key(PATH, "The path its value comes from.", is_required=True),
        "type": Key(VALUE_TYPE, "What it is."),
        "description": Key(LONG_TEXT, "What a person reads."),
    },
)
INTERFACE = Shape(
    "interface",
    {
        "inputs": Key(ListOf(INTERFACE_INPUT), "What a run takes; without `interface`, any JSON object."),
        "outputs": Key(
            ListOf(INTERFACE_OUTPUT), "What a run gives; without it, the text of each last block by id."
        ),
    },
)
TRANSITION = Shape(
    "transition",
    {
        "from": Key(BLOCK, "The block that comes first.", is_required=True),
        "to": Key(BLOCK, "The block that follows; null ends this branch."),
    },
)
CONDITIONAL_TRANSITION = Shape(
    "conditional transition",
    {
        "from": Key(BLOCK, "The block whose exit decides.", is_required=True),
        "default": Key(OrNull(BLOCK), "The block that follows any other exit."),
    },
    extra=OrNull(BLOCK),
)
WORKFLOW = Shape(
    "workflow",
    {
        "name": Key(Text(max_length=200, min_length=1), "What a person reads; the slug without it."),
        "entry": Key(BLOCK, "The block that starts; without it, every block that waits for none."),
        "transitions": Key(ListOf(TRANSITION), "Plain edges `{from, to}`."),
        "conditional_transitions": Key(
            ListOf(CONDITIONAL_TRANSITION), "Edges by exit: `{from, <exit>: block, default: block}`."
        ),
    },
    shorthand="name",
)
EVAL_CASE = Shape(
    "eval case",
    {
        "id": Key(
            Text(
                100,
                1,
                re.compile(r"\w[\w .:/-]*"),
                must_be="a name of letters, digits, spaces and . : / _ -",
                name="name",
            ),
            "The case's name, unique in the document.",
            is_required=True,
        ),
        "description": Key(LONG_TEXT, "What a person reads."),
        "inputs": Key(MAPPING, "The run's inputs."),
        "fixtures": Key(MapOf(ANYTHING, BLOCK), "Outputs by block; those blocks are not executed."),
        "expected": Key(MapOf(ASSERTIONS, BLOCK), "Assertions by block."),
        "include_block_assertions": Key(BOOLEAN, "Whether the blocks' own assertions count, too."),
        "repeats": Key(Number(1, 100, is_integer=True), "How often it is run."),
        "min_pass": Key(
            Number(1, 100, is_integer=True), "How many of the repeats must pass; all without it."
        ),
    },
)
EVAL = Shape(
    "eval",
    {
        "threshold": Key(Number(0, 1), "The mean score at which the suite passes."),
        "cases": Key(ListOf(EVAL_CASE), "The cases."),
    },
)
EVIDENCE = Shape(
    "evidence",
    {
        "sensitivity": Key(Choice(("low", "normal", "high")), "How readily a change is called a regression."),
        "min_runs": Key(Number(2, 1000, is_integer=True), "How many runs before anything is."),
        "ignore": Key(
            ListOf(
                Choice(
                    ("assertions", "score", "cost", "latency", "tokens"),
                    {
                        "assertion_regression": "assertions",
                        "quality_drop": "score",
                        "quality": "score",
                        "cost_spike": "cost",
                        "latency_spike": "latency",
                    },
                    noun="measure",
                ),
                or_one=True,
            ),
            "What is not watched for regressions.",
        ),
    },
)


# The validator reads them one by one.
BLOCKS = Typed(
    dict,
    "a mapping of id to block",
    {
        "type": "object",
        "minProperties": 1,
        "propertyNames": FREE_ID.schema(),
        "additionalProperties": {"$ref": "#/$defs/block"},
    },
    "mapping of id to block",
)
DOCUMENT = Shape(
    "document",
    {
        "version": Key(Version(), "The format's version."),
        "id": Key(SLUG, "The workflow's slug."),
        "kind": Key(Choice(("workflow",)), "Always `workflow`."),
        "enabled": Key(BOOLEAN, "Whether it may be run."),
        "config": Key(MAPPING, "Free for your own notes."),
        "interface": Key(INTERFACE, "The inputs a run takes and the outputs it gives."),
        "souls": Key(
            MapOf(SOUL_SHAPE, SOUL_ID), "Souls of this workflow alone; others come from the library."
        ),
        "blocks": Key(BLOCKS, "The steps.", is_required=True),
        "workflow": Key(WORKFLOW, "Name, entry and transitions."),
        "limits": Key(LIMITS, "Caps for a whole run."),
        "eval": Key(EVAL, "Offline cases."),
        "evidence": Key(EVIDENCE, "How regressions are found."),
        "tools": Key(UnsupportedKey(), "Not supported yet."),
    },
)
