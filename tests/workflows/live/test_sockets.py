"""Watching one run through a real websocket: everything, once, in order, whoever comes when."""

import socket
import threading
import time
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from websockets.exceptions import InvalidStatus

from tests.callers import user_in
from tests.factories import finish, make_workflow
from tests.timing import PROMPTLY, wait_until
from tests.workflows.live.sockets import finished_run, happen, session_of, token_of, viewing
from workflows_app import events, services
from workflows_app.live import consumers, feeds, outbox
from workflows_app.live import poller as row_watch
from workflows_app.live.frames import as_message
from workflows_app.models import ApiToken, RunEvent


def test_two_viewers_see_a_whole_run_while_it_happens(live_site: str) -> None:
    workflow = make_workflow()
    run = services.start_run(workflow)
    with viewing(live_site, f"runs/{run.pk}/") as early, viewing(live_site, f"runs/{run.pk}/") as other:
        last = early.until("run_completed")
        other.until("run_completed")
    finish(run)
    assert early.frames == other.frames
    assert early.seqs == list(range(1, last["seq"] + 1))
    assert [frame["event"] for frame in early.frames] == [
        "run_started", "node_started", "node_completed", "node_eval_complete", "run_completed"
    ]  # fmt: skip
    assert last["run_id"] == str(run.pk)
    assert last["workflow"] == "shout"
    assert last["at"].endswith("Z")


def test_socket_says_what_the_rows_say(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        viewer.until_seq(run.last_seq)
    assert viewer.frames == [as_message(row, "shout") for row in run.events.all()]


def test_late_viewer_sees_the_history_and_what_follows(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        viewer.until_seq(run.last_seq)
        last = happen(run, 3)
        assert viewer.until_seq(last) == list(range(1, last + 1))
        assert viewer.is_quiet()


def test_viewer_resumes_where_it_was(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        seen = viewer.next()["seq"]
    last = happen(run, 4)
    with viewing(live_site, f"runs/{run.pk}/?after={seen}") as viewer:
        assert viewer.until_seq(last) == list(range(seen + 1, last + 1))
    with viewing(live_site, f"runs/{run.pk}/?after={last}") as viewer:
        assert viewer.is_quiet(0.3)
        assert viewer.until_seq(happen(run)) == [last + 1]


def test_joining_amid_a_burst_neither_loses_nor_doubles(live_site: str) -> None:
    run = finished_run()

    def write() -> None:
        happen(run, 40)
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = []
    for after in (0, 3, 0):
        with viewing(live_site, f"runs/{run.pk}/?after={after}") as viewer:
            viewer.until_seq(run.last_seq + 120)
            seen.append((after, viewer.seqs))
    for thread in threads:
        thread.join()
    assert all(seqs == list(range(after + 1, run.last_seq + 121)) for after, seqs in seen)


def test_longer_history_than_viewers_share_is_read_from_the_rows(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MOST_FRAMES", 10)
    run = finished_run()
    last = happen(run, 1200)
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        assert viewer.until_seq(last) == list(range(1, last + 1))
        last = happen(run, 30)
        assert viewer.until_seq(last) == list(range(1, last + 1))


def test_large_event_travels_as_its_number_and_arrives_whole(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/?after={run.last_seq}") as viewer:
        assert viewer.is_quiet(0.3)
        happen(run, preview="é" * 200_000)
        last = happen(run)
        assert viewer.until_seq(last) == [last - 1, last]
    assert viewer.frames[0]["data"]["preview"] == "é" * 200_000


def test_lost_messages_are_noticed_and_read_from_the_rows(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished_run()
    real = outbox.send_batch

    async def lossy(taken: list[tuple[str, int, int, str | None]]) -> None:
        await real([entry for entry in taken if entry[2] % 3 == 0])

    monkeypatch.setattr(outbox, "send_batch", lossy)
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        for _ in range(30):
            last = happen(run)
        assert viewer.until_seq(last) == list(range(1, last + 1))


def test_broken_layer_never_reaches_the_writer_and_is_reported_once(
    live_site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(taken: object) -> None:
        raise ConnectionError("no layer today")

    monkeypatch.setattr(outbox, "send_batch", broken)
    monkeypatch.setattr(outbox.outbox, "throttle", outbox.LogThrottle())
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        for _ in range(5):
            last = happen(run)
            time.sleep(0.02)
        assert viewer.until_seq(last) == list(range(1, last + 1))  # the watch of the rows found them
    assert capsys.readouterr().err.count("no layer today") <= 1


# Who is let in


def test_nobody_is_reported_to_log_in(live_site: str) -> None:
    run = finished_run()
    for path in (f"runs/{run.pk}/", "workflows/shout/", "dashboard/", "nowhere/"):
        with viewing(live_site, path, {}) as viewer:
            assert viewer.end() == (4401, "not logged in")
    for headers in ({"Cookie": "sessionid=made-up"}, {"Authorization": "Token rs_made-up"},
                    {"Authorization": "Bearer x"}):  # fmt: skip
        with viewing(live_site, f"runs/{run.pk}/", headers) as viewer:
            assert viewer.end()[0] == 4401


def test_those_without_the_permission_are_refused(live_site: str) -> None:
    run = finished_run()
    stranger = User.objects.create_user("stranger")
    for headers in (session_of(stranger), token_of(stranger)):
        with viewing(live_site, f"runs/{run.pk}/", headers) as viewer:
            code, reason = viewer.end()
            assert (code, "workflows_app.view_run" in reason) == (4403, True)


def test_a_name_that_is_not_ours_gets_no_socket(live_site: str) -> None:
    here = urlsplit(live_site)
    with (
        pytest.raises(InvalidStatus) as refused,
        socket.create_connection((here.hostname, here.port)) as wire,
        viewing("http://rebound.example", "dashboard/", token_of(user_in("viewer")), sock=wire),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_token_needs_no_origin_and_no_cookie(live_site: str) -> None:
    run = finished_run()
    for headers in (
        token_of(user_in("viewer")),
        {**token_of(user_in("editor"), role="viewer"), "Origin": "http://x"},
    ):
        with viewing(live_site, f"runs/{run.pk}/", headers) as viewer:
            assert viewer.until_seq(run.last_seq)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
def test_other_sites_may_not_use_the_cookie(live_site: str, origin: str) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        viewing(live_site, "dashboard/", {**session_of(user_in("viewer")), "Origin": origin}),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_our_own_pages_may_use_the_cookie(live_site: str) -> None:
    with viewing(live_site, "dashboard/", {**session_of(user_in("viewer")), "Origin": live_site}) as viewer:
        assert viewer.next()["event"] == "snapshot"


@pytest.mark.parametrize("path", ["runs/{missing}/", "runs/not-an-id/", "workflows/none/", "nowhere/", ""])
def test_what_does_not_exist_is_said(live_site: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with viewing(live_site, path.format(missing=uuid4())) as viewer:
        assert viewer.end() == (4404, "there is no such thing")
    assert "Traceback" not in capsys.readouterr().err


def test_cursor_is_compared_with_the_rows_not_with_what_viewers_have_heard(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_watch, "SQLITE_SECONDS", 30.0)
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as other:
        other.until_seq(run.last_seq)
        with transaction.atomic():  # by a process that sends no message
            seq = events.advance(run)
            RunEvent.objects.create(run=run, seq=seq, event="node_started", data={"node_id": "b"})
        with viewing(live_site, f"runs/{run.pk}/?after={seq}") as viewer:
            assert viewer.until_seq(happen(run)) == [seq + 1]


def test_watching_writes_nothing(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/", token_of(user_in("viewer"))) as viewer:
        viewer.until_seq(run.last_seq)
    assert ApiToken.objects.get().last_used_at is None


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", "9" * 13, "²", "999"])
def test_cursor_that_cannot_be_is_refused(live_site: str, after: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/?after={after}") as viewer:
        code, reason = viewer.end()
        assert (code, "after=" in reason) == (4400, True)
        assert not viewer.frames


@pytest.mark.parametrize(
    "frame", ["hello", "", "[]", '{"event": "start_run"}', b"\x00\xff", "[" * 100_000, "null"]
)
def test_garbage_ends_the_socket(live_site: str, frame: str | bytes) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        viewer.next()
        viewer.connection.send(frame)
        assert viewer.end()[0] == 4400


def test_pong_is_welcome(live_site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "PING_SECONDS", 0.1)
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/?after={run.last_seq}") as viewer:
        for _ in range(3):
            assert viewer.next() == {"event": "ping"}
            viewer.connection.send('{"event": "pong"}')
        assert viewer.until_seq(happen(run)) == [run.last_seq + 1]


# Who is sent away


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "PING_SECONDS", 0.1)
    monkeypatch.setattr(consumers, "ACCESS_SECONDS", 0.1)


def test_access_that_is_lost_ends_the_socket(live_site: str, impatient: None) -> None:
    run, viewer_user = finished_run(), user_in("viewer")
    endings = []
    for lose, code in (
        (lambda: ApiToken.objects.update(revoked_at="2026-01-01T00:00Z"), 4401),
        (lambda: viewer_user.groups.clear(), 4403),
    ):
        with viewing(live_site, f"runs/{run.pk}/", token_of(viewer_user)) as viewer:
            viewer.until("ping")
            lose()
            endings.append((viewer.end()[0], code))
    assert [got for got, _ in endings] == [wanted for _, wanted in endings]


@pytest.mark.parametrize("how", ["logged out", "password changed", "switched off"])
def test_session_that_ends_ends_the_socket(live_site: str, impatient: None, how: str) -> None:
    user = user_in("viewer")
    headers = session_of(user)
    with viewing(live_site, "dashboard/", headers) as viewer:
        viewer.until("ping")
        if how == "logged out":
            client = Client()
            client.cookies["sessionid"] = headers["Cookie"].partition("=")[2]
            client.logout()
        elif how == "password changed":
            user.set_password("another")
            user.save()
        else:
            user.is_active = False
            user.save()
        assert viewer.end()[0] == 4401


def test_viewer_who_does_not_read_is_let_go_and_may_resume(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "STALL_SECONDS", 0.5)
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/", max_queue=1, compression=None) as viewer:
        viewer.until_seq(run.last_seq)
        for _ in range(60):
            last = happen(run, preview="x" * 400_000)
        # It reads nothing, and the hub rests once nobody is left.
        wait_until(lambda: "row-watch" not in thread_names(), "the end of the viewer")
        code, _ = viewer.end()
        assert code == 4408
    seen = viewer.seqs
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < last
    with viewing(live_site, f"runs/{run.pk}/?after={seen[-1]}") as viewer:
        assert viewer.until_seq(last) == list(range(seen[-1] + 1, last + 1))


def test_hub_rests_when_the_last_viewer_has_gone(live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer, viewing(live_site, "dashboard/"):
        viewer.next()
        assert "row-watch" in thread_names()
    wait_until(lambda: "row-watch" not in thread_names(), "the end of the watch", PROMPTLY)
    with viewing(live_site, f"runs/{run.pk}/?after={run.last_seq}") as viewer:
        assert viewer.until_seq(happen(run))


def thread_names() -> set[str]:
    return {thread.name for thread in threading.enumerate()}
