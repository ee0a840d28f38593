"""Run one block's `main(data)` and write the result to the channel."""

from __future__ import annotations

import gc
import io
import json
import linecache
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
import types
from typing import Any, NoReturn

from . import confine, filesystem, wire

FILENAME = "<code>"
_LONGEST_MESSAGE = 4000


class BoundedOutput(io.TextIOBase):
    """A sys.stdout that sends text as it is printed, and drops what exceeds the limit."""

    def __init__(self, channel: socket.socket, most: int) -> None:
        self._channel = channel
        self._left = most
        self._held: list[str] = []
        self._sent_at = 0.0
        self._prompt_lines = 100

    def writable(self) -> bool:
        """Say yes, as print() asks."""
        return True

    def write(self, text: str) -> int:
        """Send whole lines at once while there are few, in batches when there are many."""
        if self._left > 0:
            self._held.append(text[: self._left])
            self._left -= len(text)
            if "\n" in text and (self._prompt_lines > 0 or time.monotonic() - self._sent_at > 0.02):
                self._prompt_lines -= 1
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            body = "".join(self._held).encode("utf-8", "replace")
            self._held.clear()
            self._channel.sendall(wire.pack(wire.STDOUT, body))
            self._sent_at = time.monotonic()


class BadOutput(Exception):
    """What main returned cannot be the block's output."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def warm_up() -> None:
    """Bring the interpreter into the state code expects, and load what every block needs, before any fork.

    After it each object first touched is a page copied, so a block does as little of this as can be.
    """
    os.environ.clear()
    sys.argv = [FILENAME]
    sys.stdin = io.StringIO()
    tempfile.tempdir = filesystem.OWN_FOLDER
    limits = {"output_bytes": 1000}
    _outcome({"code": "def main(data):\n    return data['x']", "data": {"x": [1.5, "é"]}, "limits": limits})
    del sys.modules["code_block"], linecache.cache[FILENAME]


def serve(cell: confine.Cell, channel: socket.socket, zygote_pid: int) -> NoReturn:
    """Take the job, give everything up, run it, answer, end."""
    job = wire.read_job(channel)
    if job is None:
        os._exit(0)
    channel = socket.socket(fileno=confine.close_all_but(channel.detach()))
    try:
        confine.confine(cell, job["limits"])
    except BaseException as error:  # noqa: BLE001 - weaker than planned is not run at all, and says why
        channel.sendall(wire.pack(wire.REFUSED, f"{type(error).__name__}: {error}".encode()))
        os._exit(1)
    if not cell.isolation.namespaces and os.getppid() != zygote_pid:
        os._exit(0)  # it died before the death signal was set
    if cell.folder is not None:
        tempfile.tempdir = cell.folder
    signal.set_wakeup_fd(-1)
    gc.enable()
    output = BoundedOutput(channel, job["limits"]["stdout_bytes"])
    sys.stdout = sys.stderr = output
    frame = _outcome(job)
    try:
        output.flush()
        channel.sendall(frame)
    finally:
        os._exit(0)


def _outcome(job: dict[str, Any]) -> bytes:
    try:
        value = _call_main(job["code"], job["data"])
        return wire.pack(wire.RESULT, _as_json(value, job["limits"]["output_bytes"]))
    except MemoryError as error:
        confine.use_memory_slack()
        return _failure("MemoryError", "The code ran out of memory.", _line(error))
    except BadOutput as error:
        return _failure(error.kind, str(error), None)
    except SystemExit as error:
        message = f"The code called sys.exit({error.code!r}); return a value from main instead."
        return _failure("SystemExit", message, _line(error))
    except SyntaxError as error:
        line = error.lineno if error.filename == FILENAME else _line(error)
        return _failure(type(error).__name__, error.msg or "invalid syntax", line)
    except BaseException as error:  # noqa: BLE001 - whatever user code raises is the block's error
        return _failure(type(error).__name__, _text(error), _line(error))


def _call_main(code: str, data: Any) -> Any:
    module = types.ModuleType("code_block")
    sys.modules["code_block"] = module
    linecache.cache[FILENAME] = (len(code), None, code.splitlines(keepends=True), FILENAME)
    exec(compile(code, FILENAME, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the purpose
    main = getattr(module, "main", None)
    if not callable(main):
        raise BadOutput("NoMain", "The code defines no function main(data).")
    return main(data)


def _as_json(value: Any, most: int) -> bytes:
    not_json = "a value that is not JSON"
    try:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        what = "text with half a surrogate pair, not valid Unicode"
    except ValueError as error:
        is_number = "JSON compliant" in str(error)
        what = "NaN or an infinity, which JSON cannot hold" if is_number else f"{not_json}: {error}"
    except RecursionError:
        what = "a value that is nested too deeply for JSON"
    except TypeError as error:
        what = f"{not_json}: {error}. Return dict, list, text, numbers"
    else:
        if len(body) <= most:
            return body
        message = f"main returned {len(body):,} bytes of JSON; at most {most:,} are kept."
        raise BadOutput("OutputTooLarge", message)
    raise BadOutput("NotJSON", f"main returned {what}.")


def _line(error: BaseException) -> int | None:
    """Find the deepest line of the user's own code in the traceback."""
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == FILENAME:
            line = number
    return line


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST_MESSAGE]
    except BaseException:  # noqa: BLE001 - user code may define a __str__ that raises
        return "(its message could not be made into text)"


def _failure(kind: str, message: str, line: int | None) -> bytes:
    text = linecache.getline(FILENAME, line).strip()[:200] if line else ""
    body = {"type": kind[:200], "message": message, "line": line, "source": text}
    return wire.pack(wire.FAILURE, json.dumps(body).encode())
