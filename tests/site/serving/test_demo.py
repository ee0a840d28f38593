"""The demo loads behind the server, and pages can say how far it is."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from runsight_site.serving import demo


class FakeDemo:
    """Stands for `evals_app.demo`: what is tested is when and how it is called."""

    def __init__(self) -> None:
        self.may_finish = threading.Event()
        self.fault: Exception | None = None
        self.due = True

    def is_needed(self) -> bool:
        return self.due

    def load_demo(self) -> None:
        self.may_finish.wait(10)
        if self.fault:
            raise self.fault

    def landing_path(self) -> str:
        return "/workflows/demo/"


@pytest.fixture
def fake_demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDemo]:
    fake = FakeDemo()
    monkeypatch.setattr(demo, "content", fake)
    yield fake
    fake.due = False
    demo.start_loading()


def shown_state() -> str:
    return demo.state()


def test_pages_see_the_demo_loading_then_ready(fake_demo: FakeDemo) -> None:
    assert shown_state() == "not needed"
    thread = demo.start_loading()
    assert thread is not None
    assert shown_state() == "loading"
    assert demo.landing_path() == "/"
    fake_demo.may_finish.set()
    thread.join(10)
    assert shown_state() == "ready"
    assert demo.landing_path() == "/workflows/demo/"


def test_failed_demo_says_why(fake_demo: FakeDemo) -> None:
    fake_demo.fault = ValueError("line 3 is odd")
    fake_demo.may_finish.set()
    thread = demo.start_loading()
    assert thread is not None
    thread.join(10)
    assert shown_state() == "failed: ValueError: line 3 is odd"


def test_demo_that_is_there_already_is_not_loaded_again(fake_demo: FakeDemo) -> None:
    fake_demo.due = False
    assert demo.start_loading() is None
    assert shown_state() == "not needed"


def test_demo_can_be_turned_off(fake_demo: FakeDemo, settings: Any) -> None:
    settings.RUNSIGHT_DEMO = False
    assert demo.start_loading() is None
