"""The package itself: light to import, safe in threads and event loops, open to new types."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from evals_app.assertions import (
    Assertion,
    AssertionContext,
    Verdict,
    assertion_types,
    base,
    compile_assertions,
    option,
    run_assertion,
    run_assertions,
    run_assertions_sync,
    runner,
    validate_assertions,
)
from evals_app.assertions.options import Text

ROOT = Path(__file__).resolve().parents[3]
HEAVY = (
    "django",
    "nltk",
    "rouge_score",
    "jsonschema",
    "jsonpath_ng",
    "regex",
    "rapidfuzz",
    "numpy",
    "workflows_app",
    "asyncio",
)
EVERY_TYPE = [entry["example"] for entry in assertion_types()]


def in_new_interpreter(script):
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_nothing_heavy():
    script = f"import sys, evals_app.assertions; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert in_new_interpreter(script).strip() == "[]"


def test_plain_assertions_run_without_django_or_heavy_libraries():
    script = f"""
import sys
from evals_app.assertions import *
configs = [{{"type": "contains", "value": "x"}}, {{"type": "is-json"}}, {{"type": "cost", "threshold": 1}},
           {{"type": "is-json", "value": ""}}]
assert not validate_assertions(configs)
run_assertions_sync(configs, AssertionContext(output='{{"a": ["x"]}}', cost_usd=0.1))
assertion_types()
print([m for m in {HEAVY!r} if m in sys.modules])
"""
    assert in_new_interpreter(script).strip() == "[]"


def test_every_type_works_without_django():
    script = """
import sys
from evals_app.assertions import *
configs = [entry["example"] for entry in assertion_types()]
result = run_assertions_sync(configs, AssertionContext(output="x", cost_usd=0.1, latency_ms=1))
print([one.type for one in result.results if one.error], "django" in sys.modules)
"""
    assert in_new_interpreter(script).strip() == "[] False"


async def test_async_and_sync_agree():
    context = AssertionContext(output='{"title": "x"}', cost_usd=0.01, latency_ms=5)
    configs = [
        *EVERY_TYPE,
        {"type": "regex", "value": "("},
        5,
        {**EVERY_TYPE[0], "transform": "json_path:$.title"},
    ]
    assert (await run_assertions(configs, context)).to_dict() == run_assertions_sync(
        configs, context
    ).to_dict()
    assert (await compile_assertions(configs).run_async(context)).to_dict() == compile_assertions(
        configs
    ).run(context).to_dict()
    assert [run_assertion(config, context).to_dict() for config in configs] == [
        one.to_dict() for one in run_assertions_sync(configs, context).results
    ]


async def test_event_loop_goes_on_while_a_pattern_backtracks():
    compile_assertions([{"type": "regex", "value": "(a|aa)+$"}]).run(
        AssertionContext("a")
    )  # load what is loaded once
    task = asyncio.create_task(
        run_assertions([{"type": "regex", "value": "(a|aa)+$"}] * 3, AssertionContext("a" * 5_000 + "!"))
    )
    turns = 0
    while not task.done():
        await asyncio.sleep(0.002)
        turns += 1
    assert all("stopped" in one.reason for one in task.result().results)
    assert turns > 10  # a loop that each pattern holds up turns three times


async def test_one_that_breaks_stops_no_other(monkeypatch):
    from evals_app.assertions.types.text import Contains

    def crash(self, output):
        raise RuntimeError("boom")

    monkeypatch.setattr(Contains, "check", crash)
    configs = [{"type": "contains", "value": "x"}, {"type": "starts-with", "value": "x"}]
    for result in (
        await run_assertions(configs, AssertionContext("x")),
        run_assertions_sync(configs, AssertionContext("x")),
    ):
        broken, fine = result.results
        assert (broken.error, broken.passed, broken.score) == (True, False, 0.0)
        assert "boom" in broken.reason
        assert fine.passed


def test_one_plan_serves_many_threads(monkeypatch):
    # On a busy machine a thread may wait longer for its turn than a pattern may search.
    monkeypatch.setattr("evals_app.assertions.limits.PATTERN_SECONDS", 60)
    plan = compile_assertions(
        [
            *EVERY_TYPE,
            {"type": "equals", "value": "7", "transform": "json_path:$.items[?(@.id == 7)].id"},
            {"type": "contains-json", "value": {"properties": {"a": {"pattern": "^x"}}, "uniqueItems": True}},
        ]
    )
    outputs = [
        json.dumps({"title": "x" * i, "items": [{"id": j} for j in range(i)], "a": "x"}) for i in range(24)
    ]
    contexts = [
        AssertionContext(output=output, cost_usd=0.01 * i, latency_ms=i) for i, output in enumerate(outputs)
    ]
    expected = [plan.run(context).to_dict() for context in contexts]
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return [plan.run(context).to_dict() for context in contexts]

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            assert found == expected


def test_many_threads_compile_and_loop_at_once():
    configs = [
        {"type": "contains", "value": "x", "transform": "json_path:$.a[?(@.b != 'n')].c"},
        {"type": "regex", "value": "[[x]--y]|x"},
        {"type": "is-json", "value": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}},
    ]
    context = AssertionContext(output='{"a": [{"b": "y", "c": "x"}]}')

    def work(_):
        assert validate_assertions(configs) == []
        return asyncio.run(run_assertions(configs, context)).passed()

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(24)))


def test_config_is_left_as_it_was():
    configs = [
        {"type": "is-json", "value": {"type": "object"}, "weight": "2"},
        {"type": "contains-all", "value": ["a"]},
    ]
    before = json.dumps(configs)
    plan = compile_assertions(configs)
    plan.run(AssertionContext("{}"))
    assert json.dumps(configs) == before
    configs[0]["value"]["type"] = "array"  # and what is changed later changes no plan
    assert plan.run(AssertionContext("{}")).results[0].passed


def test_the_catalogue_is_json_and_belongs_to_its_caller():
    types = assertion_types()
    assert json.loads(json.dumps(types)) == types
    types[0]["example"]["value"] = "changed"
    types[0]["fields"].clear()
    assert assertion_types() != types
    for entry in assertion_types():
        assert yaml.safe_load(entry["example_yaml"]) == [entry["example"]]
        assert entry["description"].endswith(".")
        names = [one["name"] for one in entry["fields"]]
        assert names[-3:] == ["weight", "metric", "transform"]
    by_type = {entry["type"]: {one["name"]: one for one in entry["fields"]} for entry in assertion_types()}
    assert by_type["levenshtein"]["threshold"]["default"] == 5
    assert by_type["bleu"]["threshold"]["default"] == 0.5
    assert by_type["rouge-n"]["threshold"]["default"] == 0.75
    assert by_type["cost"]["threshold"]["required"]
    assert not by_type["is-json"]["value"]["required"]
    assert "threshold" not in by_type["contains"]


@pytest.fixture
def ends_with():
    @dataclass(frozen=True)
    class EndsWith(Assertion):
        """The output ends with the value."""

        type = "ends-with"
        example = {"value": "Bye"}
        value: str = field(metadata=option(Text(), "The text to end with."))

        def check(self, output):
            return Verdict(output.text.endswith(self.value), "It was looked at.")

    yield EndsWith
    del base.registry["ends-with"]
    runner.named_type.cache_clear()


def test_a_new_type_is_one_class(ends_with):
    assert (
        validate_assertions([{"type": "ends-with", "value": "x"}, {"type": "not-ends-with", "value": "x"}])
        == []
    )
    assert run_assertion({"type": "ends-with", "value": "x"}, AssertionContext("ax")).passed
    assert not run_assertion({"type": "not-ends-with", "value": "x"}, AssertionContext("ax")).passed
    assert [entry["type"] for entry in assertion_types()][-1] == "ends-with"


def test_a_second_type_of_one_name_is_refused(ends_with):
    with pytest.raises(TypeError, match="Two assertion types"):
        type("Again", (Assertion,), {"type": "ends-with"})
    with pytest.raises(TypeError, match="negation"):
        type("Wrong", (Assertion,), {"type": "not-this"})
