"""Every key a block may have: its kind, its bounds and what it is for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from workflows_app.engine.definition import BLOCK_DEFS, Condition, ConditionGroup
from workflows_app.engine.parse import KeyPath
from workflows_app.engine.schema.kinds import (
    ANYTHING,
    ASSERTIONS,
    BLOCK,
    BOOLEAN,
    FREE_ID,
    ID,
    INVALID,
    PATH,
    SHORT_TEXT,
    SOUL,
    Checker,
    Choice,
    Kind,
    Number,
    Template,
    Text,
)
from workflows_app.engine.schema.shapes import LIMITS, Key, ListOf, MapOf, Shape
from workflows_app.engine.values.conditions import OPERATOR_NAMES, OPERATORS, value_problem

CONDITION = Shape(
    "condition",
    {
        "eval_key": Key(PATH, "The path whose value is compared.", is_required=True),
        "operator": Key(
            Choice(tuple(OPERATORS), {s: n for s, n in OPERATOR_NAMES.items() if s != n}, noun="operator"),
            "How it is compared.",
            is_required=True,
        ),
        "value": Key(ANYTHING, "What it is compared with."),
    },
)


@dataclass(frozen=True)
class ConditionKind(Kind):
    """One comparison, or several joined by `and` or `or`."""

    name: str = "condition or group of conditions"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if isinstance(value, dict) and ("conditions" in value or "combinator" in value):
            found = CONDITION_GROUP.check(value, at, to)
            return INVALID if found is INVALID else ConditionGroup(**found)
        found = CONDITION.check(value, at, to)
        if found is INVALID:
            return INVALID
        problem = value_problem(OPERATORS[found["operator"]], value.get("value"), has_value="value" in value)
        if problem:
            return to.report((*at, "value"), problem)
        return Condition(**found)

    def schema(self) -> dict[str, Any]:
        return {"$ref": "#/$defs/condition"}


CONDITION_GROUP = Shape(
    "condition group",
    {
        "combinator": Key(Choice(("and", "or")), "Whether all must hold or one is enough."),
        "conditions": Key(ListOf(ConditionKind(), min_items=1), "What is joined.", is_required=True),
    },
)

RETRY = Shape(
    "retry_config",
    {
        "max_attempts": Key(Number(1, 20, is_integer=True), "How often the block is tried in all."),
        "backoff": Key(Choice(("fixed", "exponential")), "Whether the pause stays the same or doubles."),
        "backoff_base_seconds": Key(Number(0, 60), "The first pause."),
        "non_retryable_errors": Key(
            ListOf(SHORT_TEXT, or_one=True), "Kinds of error after which trying again is pointless."
        ),
    },
)
INPUT_SOURCE = Shape(
    "input", {"from": Key(PATH, "The path the value comes from.", is_required=True)}, shorthand="from"
)
EXIT = Shape(
    "exit",
    {
        "id": Key(ID, "The exit's name.", is_required=True),
        "label": Key(SHORT_TEXT, "What a person reads."),
    },
    shorthand="id",
)
WHEN_ALIASES: Final = ("condition", "condition_group")
EXIT_CASE = Shape(
    "exit condition",
    {
        "exit": Key(ID, "The exit that is taken.", is_required=True, aliases=("case_id", "case")),
        "when": Key(ConditionKind(), "When it is taken.", aliases=WHEN_ALIASES),
        "default": Key(BOOLEAN, "Taken when no other is."),
    },
)
ROUTE = Shape(
    "route",
    {**EXIT_CASE.keys, "goto": Key(BLOCK, "The block that follows; without one this branch ends.")},
)
BRANCH = Shape(
    "branch",
    {
        "id": Key(ID, "The branch's name; its node is `<block>.<id>`.", is_required=True),
        "label": Key(SHORT_TEXT, "What a person reads."),
        "soul_ref": Key(SOUL, "The soul that answers.", is_required=True),
        "task": Key(Template(min_length=1), "What it is asked.", is_required=True),
    },
)
CARRY = Shape(
    "carry_context",
    {
        "enabled": Key(BOOLEAN, "Whether anything is carried."),
        "mode": Key(Choice(("last", "all")), "The last round only, or all so far."),
        "source_blocks": Key(
            ListOf(BLOCK, or_one=True),
            "Whose outputs are carried, by block id; all inner blocks' without it.",
        ),
        "inject_as": Key(FREE_ID, "The name under which the next round sees it."),
    },
)
WORKFLOW_SLUG = replace(BLOCK, name="workflow slug", refers_to="workflow")
BLOCK_TYPE = Choice(
    tuple(dict.fromkeys(definition.type for definition in BLOCK_DEFS.values())),
    {alias: definition.type for alias, definition in BLOCK_DEFS.items() if alias != definition.type},
    noun="block type",
)
COMMON_KEYS: Final[dict[str, Key]] = {
    "type": Key(BLOCK_TYPE, "Which kind of block this is.", is_required=True),
    "assertions": Key(ASSERTIONS, "Checks of the block's output."),
    "depends": Key(ListOf(BLOCK, or_one=True, is_unique=True), "Blocks that must be done before it starts."),
    "inputs": Key(
        MapOf(INPUT_SOURCE, ID), "What the block sees, by local name; without it, everything upstream."
    ),
    "outputs": Key(
        MapOf(SHORT_TEXT, Text(max_length=200, min_length=1)),
        "For `workflow`: the names this run gives to outputs of the child. Elsewhere: a note of the output's fields.",
    ),
    "error_route": Key(BLOCK, "The block that runs if this one fails."),
    "retry_config": Key(RETRY, "How often and when to try again."),
    "timeout_seconds": Key(Number(0.1, 3600), "How long one attempt may take."),
    "limits": Key(LIMITS, "Caps for this block."),
    "exits": Key(ListOf(EXIT), "The named exits it may leave by."),
    "exit_conditions": Key(ListOf(EXIT_CASE), "Choose the exit from the block's own output, first match."),
    "routes": Key(ListOf(ROUTE), "Choose the exit and the block that follows in one place."),
}

BLOCK_KEYS: Final[dict[str, dict[str, Key]]] = {
    "llm": {
        "soul_ref": Key(SOUL, "The soul that answers.", is_required=True),
        "prompt": Key(
            Template(),
            "What it is asked; without one, the `instruction` input and the outputs it depends on.",
        ),
    },
    "code": {
        "code": Key(Text(min_length=1), "Python with `def main(data)`.", is_required=True),
        "allowed_imports": Key(
            ListOf(SHORT_TEXT, or_one=True),
            "The modules it may import; without it, any. A lint, not a boundary.",
        ),
    },
    "gate": {
        "eval_key": Key(PATH, "The block whose output is checked.", is_required=True),
        "pass": Key(BLOCK, "The block that follows a pass.", attribute="pass_target"),
        "fail": Key(BLOCK, "The block that follows a fail.", attribute="fail_target"),
        "soul_ref": Key(SOUL, "The soul that decides; without one, the checked block's assertions decide."),
        "extract_field": Key(SHORT_TEXT, "The field of the checked JSON output that the soul sees."),
        "threshold": Key(Number(0, 1), "The lowest score that passes when assertions decide."),
    },
    "loop": {
        "inner_block_refs": Key(
            ListOf(BLOCK, min_items=1, is_unique=True),
            "The blocks of a round, in order; they run only here.",
            is_required=True,
        ),
        "max_rounds": Key(Number(1, 50, is_integer=True), "How many rounds at most."),
        "break_condition": Key(ConditionKind(), "Ends the loop after a round in which it holds."),
        "break_on_exit": Key(ID, "Ends the loop when an inner block leaves by this exit."),
        "retry_on_exit": Key(ID, "Begins the next round when an inner block leaves by this exit."),
        "carry_context": Key(CARRY, "What one round passes on to the next."),
    },
    "workflow": {
        "workflow_ref": Key(WORKFLOW_SLUG, "The child workflow.", is_required=True),
        "max_depth": Key(Number(1, 10, is_integer=True), "How deep children may nest."),
        "on_error": Key(
            Choice(("raise", "catch")), "Whether a failed child fails this block or is noted as its error."
        ),
    },
    "dispatch": {
        "exits": Key(
            ListOf(BRANCH, min_items=1),
            "The branches, all at the same time.",
            is_required=True,
            attribute="branches",
        ),
    },
}
BLOCK_SHAPES: Final[dict[str, Shape]] = {
    kind: Shape(f"{kind} block", {**COMMON_KEYS, **keys}) for kind, keys in BLOCK_KEYS.items()
}
