"""Settings: bad values explained in a sentence, the documents in step, safe with https."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runsight_site.checks import find_odd_combinations
from runsight_site.environment import (
    VARIABLES,
    BadSetting,
    is_loopback,
    kept_secret_key,
    prepared_folder,
    read_environment,
    web_address,
)
from runsight_site.environment import docs as environment_docs

ROOT = Path(__file__).resolve().parents[2]

BAD = [
    # variable, value, what the sentence says
    ("PORT", "eighty", "use a number from 0 to 65535"),
    ("PORT", "70000", "use a number from 0 to 65535"),
    ("PORT", "-1", "use a number from 0 to 65535"),
    ("PORT", "²", "use a number from 0 to 65535"),
    ("RUNSIGHT_DEBUG", "maybe", "use 1 or 0"),
    ("RUNSIGHT_DEMO", "2", "use 1 or 0"),
    ("RUNSIGHT_SECRET_KEY", "short", "at least 32 random characters"),
    ("RUNSIGHT_URL", "runsight.example.com", "use http://host[:port] or https://host"),
    ("RUNSIGHT_URL", "https://example.com/app", "it has a path"),
    ("RUNSIGHT_URL", "http://[::1", "use http://host[:port] or https://host"),
    ("RUNSIGHT_URL", "https://example.com:port", "use http://host[:port] or https://host"),
    ("DATABASE_URL", "mysql://db/x", "use postgres://"),
    ("DATABASE_URL", "postgres://db:5432", "use postgres://"),
    ("DATABASE_URL", "postgres://db:nan/x", "use postgres://"),
    ("DATABASE_URL", "postgres://db/x?sslmod=require", "unknown option sslmod"),
    ("DATABASE_URL", "postgres://db/x?sslmode=require&password=y", "unknown option password"),
    ("DATABASE_URL", "postgres://db/x?sslmode=", "an option is empty or given twice"),
    ("DATABASE_URL", "postgres://db/x?sslmode=require&sslmode=disable", "an option is empty or given twice"),
    ("DATABASE_URL", "sqlite:////srv/r.sqlite3?mode=ro", "unknown option mode"),
    ("DATABASE_URL", "sqlite://", "use postgres://"),
    ("DATABASE_URL", "sqlite:///relative.sqlite3", "use postgres://"),
    ("REDIS_URL", "http://redis", "use redis://host:port/0"),
    ("REDIS_URL", "redis:///0", "use redis://host:port/0"),
    ("RUNSIGHT_EXECUTOR", "thread", "use local or celery"),
    ("RUNSIGHT_EXECUTOR", "celery", "needs a broker"),
    ("RUNSIGHT_CONCURRENCY", "0", "use a number from 1 to 256"),
    ("RUNSIGHT_CONCURRENCY", "many", "use a number from 1 to 256"),
    ("CELERY_BROKER_URL", "kafka://x", "use redis://host:port/0 or amqp://"),
    ("RUNSIGHT_SQLITE_SYNCHRONOUS", "off", "use normal or full"),
    ("OPENAI_BASE_URL", "api.openai.com", "use http(s)://host"),
    ("HOST", "0.0.0.0", "RUNSIGHT_INSECURE_HTTP=1"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_bad_value_is_reported_by_name_with_what_would_do(name: str, value: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as fault:
        read_environment({name: value})
    assert str(fault.value).startswith(f"{name}: ")
    assert sentence in str(fault.value)


def test_all_faults_are_reported_at_once_and_secrets_are_not_repeated() -> None:
    with pytest.raises(BadSetting) as fault:
        read_environment(
            {"PORT": "x", "RUNSIGHT_SECRET_KEY": "hunter2", "DATABASE_URL": "postgres://u:hunter2@h"}
        )
    assert str(fault.value).count("\n") == 2
    assert "hunter2" not in str(fault.value)


GOOD = [
    ("RUNSIGHT_DEBUG", "Yes", True),
    ("RUNSIGHT_URL", "https://example.com/", "https://example.com"),
    ("RUNSIGHT_ALLOWED_HOSTS", "a.example, b.example,", ["a.example", "b.example"]),
    ("PORT", "", 8000),
]


@pytest.mark.parametrize(("name", "value", "meaning"), GOOD)
def test_good_value_is_understood(name: str, value: str, meaning: object) -> None:
    assert read_environment({name: value})[name] == meaning


def test_sqlite_url_has_an_absolute_path() -> None:
    database = read_environment({"DATABASE_URL": "sqlite:////srv/my%20data/r.sqlite3"})["DATABASE_URL"]
    assert database["NAME"] == "/srv/my data/r.sqlite3"


def test_database_url_keeps_odd_characters_of_passwords() -> None:
    database = read_environment({"DATABASE_URL": "postgres://us%40er:p%2Fw@db:5433/na%20me"})["DATABASE_URL"]
    assert (database["USER"], database["PASSWORD"], database["NAME"]) == ("us@er", "p/w", "na me")
    assert (database["HOST"], database["PORT"]) == ("db", "5433")


def test_options_of_the_database_url_reach_the_connection(clean_environment: dict[str, str]) -> None:
    script = (
        "import django; django.setup(); from django.db import connection; "
        "given = connection.get_connection_params(); print(given['sslmode'], given['sslrootcert'])"
    )
    environment = {
        **clean_environment,
        "DATABASE_URL": "postgres://u:p@db/x?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
        "DJANGO_SETTINGS_MODULE": "runsight_site.settings",
        "PYTHONPATH": str(Path(environment_docs.__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["verify-full", "/etc/ca.pem"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "LocalHost"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.com", "", "::"])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_ipv6_address_stands_in_brackets() -> None:
    assert web_address("::1", 8000) == "http://[::1]:8000"
    assert web_address("127.0.0.1", 8000) == "http://127.0.0.1:8000"


def test_a_data_folder_that_others_could_read_is_closed_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for before, after in ((0o755, 0o750), (0o750, 0o750), (0o777, 0o770), (0o700, 0o700)):
        tmp_path.chmod(before)
        prepared_folder(tmp_path)
        assert tmp_path.stat().st_mode & 0o777 == after
    tmp_path.chmod(0o755)

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(BadSetting, match="others on this machine can read"):
        prepared_folder(tmp_path)


def test_secret_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    home = prepared_folder(tmp_path / "home")
    key = kept_secret_key(home)
    assert len(key) >= 50
    assert kept_secret_key(home) == key
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == ["secret_key"]


ODD = [
    ({"RUNSIGHT_DEBUG": "1", "RUNSIGHT_URL": "https://x.example"}, ["runsight.W001"]),
    ({"HOST": "0.0.0.0", "RUNSIGHT_INSECURE_HTTP": "1"}, ["runsight.W002"]),
    ({"RUNSIGHT_ALLOWED_HOSTS": "*"}, ["runsight.W003"]),
    ({"RUNSIGHT_EXECUTOR": "celery", "CELERY_BROKER_URL": "amqp://h//"}, ["runsight.W004"]),
    ({"CELERY_BROKER_URL": "amqp://h//"}, ["runsight.W005"]),
    ({}, []),
    ({"RUNSIGHT_DEBUG": "1"}, []),
]


@pytest.mark.parametrize(("environ", "ids"), ODD)
def test_odd_combination_is_warned_of_with_a_hint(environ: dict[str, str], ids: list[str]) -> None:
    found = find_odd_combinations(read_environment(environ))
    assert [warning.id for warning in found] == ids
    assert all(warning.hint for warning in found)


def test_deployment_check_is_clean_with_https(clean_environment: dict[str, str]) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "check", "--deploy", "--fail-level", "WARNING"]
    environment = {**clean_environment, "RUNSIGHT_URL": "https://runsight.example.com"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


def test_bandit_finds_nothing_in_the_code() -> None:
    packages = ["runsight_site", "workflows_app", "evals_app"]
    command = ["-m", "bandit", "--quiet", "--recursive", "--configfile", "pyproject.toml", *packages]
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("path", environment_docs.pages())
def test_settings_documents_are_current(path: str) -> None:
    hint = "run `python -m runsight_site.environment.docs`"
    assert (ROOT / path).read_text() == environment_docs.pages()[path], hint


def test_every_variable_is_explained() -> None:
    for variable in VARIABLES:
        assert variable.help.endswith("."), variable.name
        variable.read({})  # the default is good
