"""Code blocks in the real sandbox: what they get, give, and how they are stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.timing import PROMPTLY
from tests.workflows.engine.plans import define, loop
from tests.workflows.souls import run_one, run_to_end, tools_for
from workflows_app.engine.definition import CarryContext, CodeBlockDef, Limits
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.sandbox.client import Sandbox, SandboxUnavailable


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def block(block_id: str, body: str, **keys: object) -> CodeBlockDef:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return CodeBlockDef(id=block_id, code=f"def main(data):\n{lines}\n", **keys)  # type: ignore[arg-type]


async def test_code_reads_what_is_upstream_and_gives_json(sandbox: Sandbox) -> None:
    definition = define(
        block("a", "return {'n': data['inputs']['n'] + 1, 'exit_handle': 'big'}"),
        block("b", "print('hello')\nreturn data['blocks']['a']['json']['n'] * 2"),
    )
    plan, results = await run_to_end(definition, tools_for(definition, sandbox=sandbox), inputs={"n": 4})
    a, b = results["a"], results["b"]
    assert isinstance(a, BlockResult) and isinstance(b, BlockResult)
    assert (a.output, a.exit_handle) == ('{"n": 5, "exit_handle": "big"}', "big")
    assert plan.context.outputs() == {"b": "10"}
    assert b.details["stdout"] == "hello\n"
    assert b.cost_usd == 0


async def test_a_loop_of_code_carries_its_count(sandbox: Sandbox) -> None:
    definition = define(
        loop("count", "add", max_rounds=3, carry_context=CarryContext(inject_as="before")),
        block("add", "return int(data['before']['add'] or 0) + data['round']"),
    )
    plan, _ = await run_to_end(definition, tools_for(definition, sandbox=sandbox))
    assert plan.context.outputs() == {"count": "6"}


async def test_an_exception_fails_the_block_with_its_type_and_line(sandbox: Sandbox) -> None:
    definition = define(block("a", "print('so far')\nreturn 1 / 0"))
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools_for(definition, sandbox=sandbox))
    assert caught.value.kind == "ZeroDivisionError"
    assert "line 3" in caught.value.message
    assert caught.value.is_retryable
    assert caught.value.details["stdout"] == "so far\n"


async def test_an_inner_failure_is_reported_by_the_loop(sandbox: Sandbox) -> None:
    definition = define(loop("again", "a"), block("a", "raise ValueError('odd')"))
    plan, _ = await run_to_end(definition, tools_for(definition, sandbox=sandbox))
    assert plan.failure is not None
    assert plan.failure.node_id == "again"
    assert plan.failure.message.startswith(
        "Block 'again' failed: Inner block 'a' failed (execution 1): ValueError: odd"
    )


async def test_code_is_stopped_when_its_time_is_up(sandbox: Sandbox) -> None:
    definition = define(block("a", "while True: pass", timeout_seconds=0.3))
    started = time.monotonic()
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools_for(definition, sandbox=sandbox))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < PROMPTLY


async def test_a_cap_on_duration_stops_code_and_says_so(sandbox: Sandbox) -> None:
    limits = Limits(max_duration_seconds=0.3)
    definition = define(block("a", "while True: pass", limits=limits))
    with pytest.raises(BlockFailure, match="Limit of block 'a': the time it may take ran out") as caught:
        await run_one(definition, tools_for(definition, sandbox=sandbox))
    assert (caught.value.kind, caught.value.is_retryable) == ("limit", False)


def running_with(mark: str) -> int:
    """How many processes bear a name."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += mark in (folder / "comm").read_text()
        except OSError:
            continue
    return found


async def test_cancelling_kills_the_process_before_it_returns(sandbox: Sandbox) -> None:
    mark = "cancelmark"
    body = f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\ntime.sleep(60)"
    definition = define(block("a", body))
    task = asyncio.create_task(run_one(definition, tools_for(definition, sandbox=sandbox)))
    while running_with(mark) == 0:
        assert not task.done()
        await asyncio.sleep(0.05)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < PROMPTLY
    assert running_with(mark) == 0


async def test_a_cancelled_run_stops_its_code(sandbox: Sandbox) -> None:
    definition = define(block("a", "import time\ntime.sleep(60)"))
    started = time.monotonic()
    tools = tools_for(definition, sandbox=sandbox, is_cancelled=lambda: time.monotonic() > started + 0.2)
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools)
    assert (caught.value.kind, caught.value.is_retryable) == ("Cancelled", False)
    assert time.monotonic() - started < PROMPTLY


async def test_blocks_run_at_the_same_time(sandbox: Sandbox) -> None:
    definition = define(block("a", "import time\ntime.sleep(1)\nreturn 1"))
    tools = tools_for(definition, sandbox=sandbox)
    await run_one(define(block("a", "return 1")), tools)  # the zygote is up
    started = time.monotonic()
    await asyncio.gather(*[run_one(definition, tools) for _ in range(4)])
    assert time.monotonic() - started < 3.5  # one after the other they take four


async def test_too_much_output_fails_the_block(sandbox: Sandbox) -> None:
    definition = define(block("a", "return 'x' * 2_000_000"))
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools_for(definition, sandbox=sandbox))
    assert not caught.value.is_retryable


async def test_nan_fails_the_block(sandbox: Sandbox) -> None:
    definition = define(block("a", "return float('nan')"))
    with pytest.raises(BlockFailure):
        await run_one(definition, tools_for(definition, sandbox=sandbox))


async def test_code_that_waits_for_a_thread_is_never_started_once_cancelled(sandbox: Sandbox) -> None:
    definition = define(block("a", "import time\ntime.sleep(0.5)\nreturn 1"))
    with ThreadPoolExecutor(max_workers=1) as threads:
        tools = tools_for(definition, sandbox=sandbox, threads=threads)
        first = asyncio.create_task(run_one(definition, tools))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(run_one(definition, tools))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert not first.done()
        assert (await first).output == "1"


async def test_what_no_database_takes_is_replaced(sandbox: Sandbox) -> None:
    definition = define(block("a", "print('p\\0q')\nreturn 'x\\0y'"))
    result = await run_one(definition, tools_for(definition, sandbox=sandbox))
    assert result.output == "x\ufffdy"
    assert result.details["stdout"] == "p\ufffdq\n"


async def test_a_sandbox_that_does_not_start_may_be_tried_again() -> None:
    class Broken:
        def run(self, *args: object, **keys: object) -> None:
            raise SandboxUnavailable("no zygote")

    definition = define(block("a", "return 1"))
    with pytest.raises(BlockFailure, match="no zygote") as caught:
        await run_one(definition, tools_for(definition, sandbox=Broken()))
    assert (caught.value.kind, caught.value.is_retryable) == ("sandbox_unavailable", True)


async def test_an_exit_too_long_to_keep_fails_the_block(sandbox: Sandbox) -> None:
    definition = define(block("a", "return {'exit_handle': 'x' * 201}"))
    with pytest.raises(BlockFailure, match="has 201 characters; at most 200"):
        await run_one(definition, tools_for(definition, sandbox=sandbox))
