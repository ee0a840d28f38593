"""The real `up` server with one finished run, whose history grows by a line on stdin. For tests and benchmarks.

Usage: socket_lab.py, with RUNSIGHT_HOME pointing to an empty folder. Prints one line of JSON when it listens:
{"url", "key", "run"}. Each line `COUNT BYTES` commits events; the answer is `SEQ TIME` of the last commit, on the
clock that all processes of the machine share. The line `viewers` is answered with how many sockets are open. STALL_SECONDS in the environment makes it less patient.
"""

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "runsight_site.settings")

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from runsight_site.serving import server  # noqa: E402
from workflows_app import events, executors, services  # noqa: E402
from workflows_app.live import consumers  # noqa: E402
from workflows_app.models import Run  # noqa: E402

DOCUMENT = """\
version: "1.0"
blocks:
  shout: {type: code, code: "def main(data):\\n    return 'HELLO'"}
"""


def main() -> None:
    call_command("migrate", verbosity=0)
    consumers.STALL_SECONDS = float(os.environ.get("STALL_SECONDS", consumers.STALL_SECONDS))
    key, run = prepare()
    port = server.usable_port("127.0.0.1", 0)

    def listening() -> None:
        facts = {"url": f"http://127.0.0.1:{port}", "key": key, "run": str(run.pk)}
        print(json.dumps(facts), flush=True)
        threading.Thread(target=obey, args=(run,), daemon=True).start()

    server.serve("127.0.0.1", port, listening)


def prepare() -> tuple[str, Run]:
    admin = User.objects.create_superuser("admin")
    _, key = services.make_token(admin, "lab")
    workflow = services.save_version("shout", DOCUMENT).workflow
    run = services.start_run(workflow)
    executors.service().execute(run.pk)
    return key, run


def obey(run: Run) -> None:
    for line in sys.stdin:
        if line == "viewers\n":
            sockets = (one for one in gc.get_objects() if isinstance(one, consumers.LiveConsumer))
            print(sum(not one.is_over for one in sockets), flush=True)
            continue
        count, size = map(int, line.split())
        seq, committed = happen(run, count, size)
        print(seq, committed, flush=True)
    connection.close()


def happen(run: Run, count: int, size: int) -> tuple[int, float]:
    """Commit events of a size; the last number and when it was committed."""
    committed: list[float] = []
    with transaction.atomic():
        # First of all callbacks, so that nothing but the commit itself lies before it.
        transaction.on_commit(lambda: committed.append(time.monotonic()))
        first = events.advance(run, count=count)
        for seq in range(first, first + count):
            events.append(run, seq, "node_started", node_id="shout", block_type="code", preview="x" * size)
    return first + count - 1, committed[0]


if __name__ == "__main__":
    main()
