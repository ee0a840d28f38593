"""How long fixture cases take from the shell prompt and back, by the program itself: 500 cases of 3 assertions, 2 s."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = 500
MAX_SECONDS = 2.0
TRIES = 5


def document(cases: int = CASES) -> str:
    """A workflow with one block and many frozen answers to check."""
    lines = [
        'version: "1.0"',
        "souls: {writer: {role: Writer, provider: demo, model_name: demo-small}}",
        "blocks:",
        '  answer: {type: llm, soul_ref: writer, prompt: "Answer {{ inputs.question }}"}',
        "eval:",
        "  cases:",
    ]
    for index in range(cases):
        lines += [
            f"    - id: case-{index}",
            f"      inputs: {{question: What about {index}}}",
            "      fixtures:",
            "        answer: |",
            f"          This is answer number {index}, long enough to look like one.",
            f"          Its second line says {index}.",
            "      expected:",
            "        answer:",
            f'          - {{type: contains, value: "number {index}"}}',
            f'          - {{type: regex, value: "second line says {index}"}}',
            "          - {type: word-count, value: {min: 5, max: 50}}",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the best and the worst of a few tries; fail if the best is over the limit."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "suite.yaml"
        file.write_text(document())
        times = []
        for _ in range(TRIES):
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, str(ROOT / "manage.py"), "evaluate", str(file)], capture_output=True
            )
            times.append(time.perf_counter() - started)
            assert done.returncode == 0, done.stderr
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (spent.ru_utime + spent.ru_stime) / TRIES
    print(
        f"{CASES} fixture cases of 3 assertions: {min(times):.2f} s at best, {max(times):.2f} s at worst, {cpu:.2f} s of CPU"
    )
    if min(times) > MAX_SECONDS:
        sys.exit(f"over the limit of {MAX_SECONDS:g} s")


if __name__ == "__main__":
    main()
