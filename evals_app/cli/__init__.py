"""Commands that need no server, no database and no Django: `validate` and `evaluate`, for shells and CI."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module

PASSED, FAILED, COULD_NOT_RUN = 0, 1, 2
COMMANDS = {"validate": "evals_app.cli.validate", "evaluate": "evals_app.cli.evaluate"}


class CannotRun(Exception):
    """The command cannot run; the message says why and what would help."""


def run(command: str, arguments: list[str]) -> int:
    """Run a command as a program of its own, ended by a CI server's SIGTERM as by Ctrl-C."""
    # SIGINT, too: in a shell's background it is ignored.
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in stopping]
    try:
        return guarded(command, lambda: _parse_and_run(command, arguments))
    finally:
        for number, handler in zip(stopping, before, strict=True):
            signal.signal(number, handler)


def _parse_and_run(command: str, arguments: list[str]) -> int:
    module = import_module(COMMANDS[command])
    parser = argparse.ArgumentParser(f"runsight {command}", description=module.DESCRIPTION)
    module.add_arguments(parser)
    code: int = module.main(parser.parse_args(arguments))
    return code


def guarded(command: str, work: Callable[[], int]) -> int:
    """The exit code of a command: 0 passed, 1 failed, 2 could not run, and never another."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except CannotRun as reason:
        return _give_up(f"runsight {command}: {reason}")
    except KeyboardInterrupt:
        return _give_up(f"runsight {command}: interrupted before it was finished.")
    except BrokenPipeError:
        # The reader has gone; what is still buffered must not change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return COULD_NOT_RUN
    except Exception as error:  # noqa: BLE001 - shown to the user
        if os.environ.get("RUNSIGHT_DEBUG"):
            import traceback

            traceback.print_exc()
        return _give_up(f"runsight {command}: could not run: {type(error).__name__}: {error}")


def _give_up(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return COULD_NOT_RUN
