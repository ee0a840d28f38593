"""What holds for every fuzz test: memory stays bounded; and a small site to knock at."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_GROWTH_MB = 400
PAGE_MB = resource.getpagesize() / 1024 / 1024


def resident_mb() -> float:
    return int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1]) * PAGE_MB


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """No test leaves the process much larger than it was."""
    if not Path("/proc/self/statm").exists():
        yield
        return
    before = resident_mb()
    yield
    gc.collect()
    assert resident_mb() - before < MOST_GROWTH_MB


@pytest.fixture
def site(db: None) -> dict[str, Any]:
    """Two workflows, two runs, a soul, and both ways in."""
    from tests.evals.api.test_ingest import YAML, report
    from tests.factories import ONE_CODE_BLOCK, make_workflow
    from tests.fuzz.doors import api_client, browser_client
    from workflows_app.models import Run, RunNode

    make_workflow(ONE_CODE_BLOCK, "shout")
    make_workflow(YAML, "invoices")
    api = api_client()
    for name in ("j1", "j2"):
        assert api.post("/api/runs/ingest/", report(external_id=name)).status_code == 201
    assert api.post("/api/souls/", {"slug": "invoices", "role": "Clerk"}).status_code == 201
    run = Run.objects.first()
    assert run is not None
    node = RunNode.objects.filter(run=run).first()
    assert node is not None
    return {"api": api, "pages": browser_client(), "run": str(run.pk), "node": str(node.pk)}
