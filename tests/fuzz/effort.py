"""How much is tried: the same few examples in every test run, new and many ones when asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, settings

ASKED_FOR = int(os.environ.get("RUNSIGHT_FUZZ_EXAMPLES") or 0)
SLOWEST_S = 10.0  # for one example on a busy machine; a hang takes longer


def effort(few: int, *, cost: int = 1) -> Any:
    """Settings for a fuzz test: `few` examples, or as many as were asked for; `cost` says how dear one is."""
    return settings(
        max_examples=max(ASKED_FOR // cost, 1) if ASKED_FOR else few,
        derandomize=not ASKED_FOR,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def in_time(seconds: float = SLOWEST_S) -> Iterator[None]:
    """What takes longer has hung."""
    began = time.perf_counter()
    yield
    took = time.perf_counter() - began
    assert took < seconds, f"took {took:.1f} s"
