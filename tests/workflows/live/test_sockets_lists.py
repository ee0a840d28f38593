"""Watching many runs: a snapshot, then what changes, one frame a second, and the end of every run."""

import json
import threading
import time

import pytest
from django.db import connection
from django.db.models import F

from tests.factories import finish, make_workflow
from tests.workflows.live.sockets import finished_run, happen, viewing
from workflows_app import services
from workflows_app.live import consumers
from workflows_app.live.frames import run_summary
from workflows_app.models import Run


def test_dashboard_begins_with_the_newest_runs(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, "dashboard/") as viewer:
        first = viewer.next()
    run.refresh_from_db()
    assert first == {"event": "snapshot", "data": {"runs": [json.loads(json.dumps(run_summary(run)))]}}


def test_every_list_sees_a_run_begin_and_end(live_site: str) -> None:
    workflow = make_workflow()
    with viewing(live_site, "dashboard/") as dashboard, viewing(live_site, "workflows/shout/") as page:
        for viewer in (dashboard, page):
            assert viewer.next() == {"event": "snapshot", "data": {"runs": []}}
        run = finish(services.start_run(workflow))
        for viewer in (dashboard, page):
            while viewer.until("run_updated")["data"]["status"] != "completed":
                pass
            assert viewer.frames[-1]["data"]["id"] == str(run.pk)


def test_workflow_page_sees_only_its_own_runs(live_site: str) -> None:
    other = make_workflow(slug="other")
    mine = make_workflow(slug="mine")
    with viewing(live_site, "workflows/mine/") as viewer:
        viewer.next()
        finish(services.start_run(other))
        run = finish(services.start_run(mine))
        while viewer.until("run_updated")["data"]["status"] != "completed":
            pass
        assert viewer.is_quiet(1.5)
    assert {frame["data"]["id"] for frame in viewer.frames[1:]} == {str(run.pk)}


def test_frames_are_a_second_apart_with_the_newest_state_of_each_run(live_site: str) -> None:
    runs = [finished_run(), finished_run()]
    with viewing(live_site, "dashboard/") as viewer:
        viewer.next()
        moments = []

        def change_often() -> None:
            for _ in range(12):
                for run in runs:
                    Run.objects.filter(pk=run.pk).update(nodes_done=F("nodes_done") + 1)
                    happen(run)
                time.sleep(0.1)
            connection.close()

        newest = {str(run.pk): run.nodes_done + 12 for run in runs}
        seen: dict[str, int] = {}
        threading.Thread(target=change_often).start()
        while seen != newest:
            frame = viewer.until("run_updated")
            moments.append(time.monotonic())
            seen[frame["data"]["id"]] = frame["data"]["nodes_done"]
        assert viewer.is_quiet(1.5)  # nothing comes twice
    # Over all of them: a frame that came late must not make the next one look early.
    assert len(moments) <= moments[-1] - moments[0] + 2


def test_more_changes_than_frames_are_shown_as_a_list(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LONGEST_LIST_QUEUE", 3)
    runs = [finished_run() for _ in range(6)]
    with viewing(live_site, "workflows/shout/") as viewer:
        viewer.next()
        for run in runs:
            Run.objects.filter(pk=run.pk).update(nodes_done=77)
            happen(run)
        seen: set[str] = set()
        while len(seen) < 6:
            frame = viewer.next()
            summaries = frame["data"]["runs"] if frame["event"] == "snapshot" else [frame["data"]]
            seen |= {one["id"] for one in summaries if one["nodes_done"] == 77}
    assert "snapshot" in {frame["event"] for frame in viewer.frames[1:]}
