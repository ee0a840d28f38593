"""The fixtures others stand on do what they say."""

import os
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from django.conf import settings
from django.contrib.auth.models import User


def test_the_shell_reaches_neither_settings_nor_data_folder() -> None:
    assert settings.RUNSIGHT_HOME.is_relative_to(Path(os.environ["RUNSIGHT_TEST_HOME"]))
    assert settings.OPENAI_API_KEY == settings.REDIS_URL == ""


def test_live_site_answers_and_sees_the_rows_of_the_test(live_site: str) -> None:
    User.objects.create_user("alice")
    with urlopen(f"{live_site}/readyz") as response:
        assert response.status == 200
    assert User.objects.count() == 1


def test_postgres_url_is_an_empty_database(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert row == (0,)


def test_redis_url_is_empty(redis_url: str) -> None:
    import redis

    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left", "over")


def test_rabbitmq_url_takes_a_message(rabbitmq_url: str) -> None:
    import kombu

    with (
        kombu.Connection(rabbitmq_url) as connection,
        connection.SimpleBuffer("runsight-test-fixture") as queue,
    ):
        queue.put({"hello": 1})
        assert queue.get(timeout=5).payload == {"hello": 1}


@pytest.mark.django_db
def test_rows_are_on_the_database_that_was_asked_for() -> None:
    from django.db import connection

    assert connection.vendor == (
        "postgresql" if os.environ.get("RUNSIGHT_TEST_DATABASE") == "postgres" else "sqlite"
    )


def test_page_notes_console_errors_and_refused_scripts(
    page: Any, page_faults: list[str], live_site: str
) -> None:
    page.goto(f"{live_site}/healthz")
    page.evaluate("console.error('broken')")
    page.evaluate(
        "document.body.appendChild(Object.assign(document.createElement('script'), {textContent: '1'}))"
    )
    page.evaluate("new Promise(resolve => setTimeout(resolve, 50))")
    assert "broken" in page_faults[0]
    assert "Content Security Policy" in page_faults[1]
    page_faults.clear()


def test_signed_in_page_is_that_users(page: Any, live_site: str, sign_in: Any, admin_user: User) -> None:
    sign_in(page, admin_user)
    page.goto(f"{live_site}/admin/password_change/")
    assert "/login/" not in page.url


async def test_async_tests_run_after_browser_tests() -> None:
    """A browser left open would leave its loop running here."""
