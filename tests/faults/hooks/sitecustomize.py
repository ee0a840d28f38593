"""Python imports this by itself when this folder is on PYTHONPATH: the clock of a process that a scenario may move.

`FAULT_CLOCK` names a file that holds the seconds, as a C double, by which this process's clock is wrong.
"""

import mmap
import os
import struct
import time
from datetime import datetime, timedelta
from pathlib import Path


def _take_clock_from(path: Path) -> None:
    from django.utils import timezone

    with path.open("rb") as file:
        shown = mmap.mmap(file.fileno(), struct.calcsize("d"), prot=mmap.PROT_READ)
    real_time, real_now = time.time, timezone.now

    def wrong_by() -> float:
        seconds: float = struct.unpack("d", shown)[0]
        return seconds

    def now() -> datetime:
        return real_now() + timedelta(seconds=wrong_by())

    time.time = lambda: real_time() + wrong_by()
    time.time_ns = lambda: int(time.time() * 1e9)
    timezone.now = now


if "FAULT_CLOCK" in os.environ:
    _take_clock_from(Path(os.environ["FAULT_CLOCK"]))
