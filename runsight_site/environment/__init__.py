"""Every environment variable Runsight reads: its default, its meaning, and what a bad value should have been.

`docs/settings.md` and `.env.example` are generated from `VARIABLES` (a test compares them).
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

PROJECT_DIR = Path(__file__).resolve().parents[2]
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})


def is_loopback(host: str) -> bool:
    """Whether the name or address means this machine only."""
    bare = host.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def web_address(host: str, port: int) -> str:
    """The http address of a host and port, with an IPv6 address in brackets."""
    return (
        f"http://[{host}]:{port}" if ":" in host.strip("[]") and "[" not in host else f"http://{host}:{port}"
    )


class BadSetting(Exception):
    """A variable whose value cannot be used; the message says which and what to use instead."""


@dataclass(frozen=True)
class VariableKind:
    """How a value is read, and what it should look like."""

    parse: Callable[[str], Any]
    wants: str


@dataclass(frozen=True)
class Variable:
    """One environment variable: how to read it and how to explain it."""

    name: str
    default: str
    kind: VariableKind
    help: str
    example: str = ""

    def read(self, environ: Mapping[str, str]) -> Any:
        raw = environ.get(self.name, "").strip() or self.default
        try:
            return self.kind.parse(raw)
        except ValueError as error:
            is_secret = "KEY" in self.name or "PASSWORD" in self.name or "@" in raw
            shown = "the value" if is_secret else repr(raw)
            detail = f" ({error})" if str(error) else ""
            raise BadSetting(f"{self.name}: {shown} is not valid{detail}; use {self.kind.wants}.") from None


def _one_of(*allowed: str) -> VariableKind:
    def parse(raw: str) -> str:
        if raw not in allowed:
            raise ValueError
        return raw

    return VariableKind(parse, " or ".join(allowed))


def _number(low: int, high: int) -> VariableKind:
    def parse(raw: str) -> int:
        if not raw.isdecimal() or not low <= int(raw) <= high:
            raise ValueError
        return int(raw)

    return VariableKind(parse, f"a number from {low} to {high}")


def _switch(raw: str) -> bool:
    is_on = raw.lower() in ("1", "true", "yes", "on")
    if not is_on and raw.lower() not in ("0", "false", "no", "off"):
        raise ValueError
    return is_on


def _name(raw: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}", raw, re.ASCII):
        raise ValueError
    return raw


def _list(raw: str) -> list[str]:
    return [part.strip() for part in raw.split(",") if part.strip()]


def _split(raw: str) -> SplitResult:
    """The parts of an address whose port is a number; the library's own message may repeat a password."""
    try:
        url = urlsplit(raw)
        _ = url.port
    except ValueError:
        raise ValueError from None
    return url


def _url(*schemes: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw and (_split(raw).scheme not in schemes or not _split(raw).hostname):
            raise ValueError
        return raw.rstrip("/")

    return parse


def _web_url(raw: str) -> str:
    if raw and _split(raw).path not in ("", "/"):
        raise ValueError("it has a path")
    return _url("http", "https")(raw)


def _home(raw: str) -> Path:
    if raw:
        return Path(raw).expanduser().resolve()
    if (PROJECT_DIR / "manage.py").exists():
        return PROJECT_DIR / "var"
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return (Path(data) / "runsight").expanduser()


def _secret(raw: str) -> str:
    if raw and len(raw) < 32:
        raise ValueError("it is shorter than 32 characters")
    return raw


# What PostgreSQL's own library takes beside the address.
DATABASE_OPTIONS = frozenset(
    [
        "application_name",
        "channel_binding",
        "connect_timeout",
        "gssencmode",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "options",
        "require_auth",
        "sslcert",
        "sslcertmode",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "sslsni",
        "ssl_min_protocol_version",
        "target_session_attrs",
        "tcp_user_timeout",
    ]
)


def _database_options(query: str, known: frozenset[str]) -> dict[str, str]:
    """The options after the question mark; one that would change nothing is refused."""
    given = parse_qsl(query, keep_blank_values=True)
    options = dict(given)
    if unknown := sorted(options.keys() - known):
        raise ValueError(f"unknown option {', '.join(unknown)}")
    if len(options) < len(given) or not all(options.values()):
        raise ValueError("an option is empty or given twice")
    return options


def _database(raw: str) -> dict[str, Any]:
    if not raw:
        return {}
    url = _split(raw)
    options = _database_options(
        url.query, DATABASE_OPTIONS if url.scheme.startswith("postgres") else frozenset()
    )
    if url.scheme == "sqlite":
        if url.netloc or not url.path.startswith("//") or not url.path.strip("/"):
            raise ValueError  # three slashes would be a path relative to wherever one happens to start it
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": unquote(url.path[1:])}
    if url.scheme not in ("postgres", "postgresql") or not url.path.strip("/"):
        raise ValueError
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "OPTIONS": options,
    }


SWITCH = VariableKind(_switch, "1 or 0")
DATABASE = VariableKind(
    _database, "postgres://user:password@host:port/name or sqlite:////absolute/path.sqlite3"
)
WEB_URL = VariableKind(_web_url, "http://host[:port] or https://host, without a path")
BROKER = VariableKind(
    _url("redis", "rediss", "amqp", "amqps"), "redis://host:port/0 or amqp://user:password@host:port/vhost"
)

VARIABLES = (
    Variable(
        "RUNSIGHT_HOME",
        "",
        VariableKind(_home, "a folder you can write to"),
        "The data folder: database, secret key, logs. `./var` in a clone, otherwise the user's data folder.",
        "/var/lib/runsight",
    ),
    Variable(
        "RUNSIGHT_SECRET_KEY",
        "",
        VariableKind(_secret, "at least 32 random characters"),
        "Signs sessions and encrypts provider keys. Made on first start and kept in the data folder.",
        "a-long-random-text-of-your-own-making",
    ),
    Variable(
        "RUNSIGHT_SECRET_KEY_FALLBACKS",
        "",
        VariableKind(_list, "former keys separated by commas"),
        "Former secret keys, separated by commas, so that rotating the key loses nothing.",
    ),
    Variable("RUNSIGHT_DEBUG", "0", SWITCH, "Django's debug pages. Never on a machine that others reach."),
    Variable(
        "RUNSIGHT_ALLOWED_HOSTS",
        "",
        VariableKind(_list, "host names separated by commas"),
        "Host names the server answers to, separated by commas, besides the one in `RUNSIGHT_URL` and loopback.",
        "runsight.example.com",
    ),
    Variable(
        "HOST", "127.0.0.1", VariableKind(str, "an address of this machine"), "The address the server binds."
    ),
    Variable("PORT", "8000", _number(0, 65535), "The port the server binds."),
    Variable(
        "RUNSIGHT_URL",
        "",
        WEB_URL,
        "Where people reach this server; `http://HOST:PORT` if empty. With https: secure cookies, HSTS, redirect and trusted origins.",
        "https://runsight.example.com",
    ),
    Variable(
        "RUNSIGHT_TRUSTED_PROXIES",
        "0",
        _number(0, 9),
        "How many proxies stand before this server; that many of the addresses in `X-Forwarded-For` are believed.",
    ),
    Variable(
        "RUNSIGHT_INSECURE_HTTP", "0", SWITCH, "Allows binding an address other than loopback without https."
    ),
    Variable(
        "DATABASE_URL",
        "",
        DATABASE,
        "The database; SQLite in the data folder if empty. PostgreSQL's own options may follow, such as `?sslmode=require`.",
        "postgres://runsight:secret@db:5432/runsight",
    ),
    Variable(
        "RUNSIGHT_SQLITE_SYNCHRONOUS",
        "normal",
        _one_of("normal", "full"),
        "`normal` survives a killed process, `full` also a power cut, at the price of slower writes.",
    ),
    Variable(
        "REDIS_URL",
        "",
        VariableKind(_url("redis", "rediss"), "redis://host:port/0"),
        "Channel layer and cache for several processes; in memory if empty.",
        "redis://redis:6379/0",
    ),
    Variable(
        "RUNSIGHT_EXECUTOR",
        "local",
        _one_of("local", "celery"),
        "Who executes runs: `local` inside the server, `celery` in workers.",
    ),
    Variable(
        "RUNSIGHT_CONCURRENCY", "8", _number(1, 256), "How many runs one process executes at the same time."
    ),
    Variable(
        "RUNSIGHT_LEASE_SECONDS",
        "30",
        _number(2, 3600),
        "How long a run stays with a process that gives no sign of life, before another takes it over.",
    ),
    Variable(
        "CELERY_BROKER_URL",
        "",
        BROKER,
        "The broker of the `celery` executor; `REDIS_URL` if empty.",
        "amqp://guest:guest@rabbitmq:5672//",
    ),
    Variable(
        "RUNSIGHT_QUEUE",
        "runsight",
        VariableKind(_name, "letters, digits, dots, dashes and underscores"),
        "The broker's queue; installations that share a broker need one each.",
    ),
    Variable("RUNSIGHT_DEMO", "1", SWITCH, "Loads the demo on the first start of an empty database."),
    Variable(
        "RUNSIGHT_ADMIN_PASSWORD",
        "",
        VariableKind(str, "a password"),
        "The first administrator's password; generated and shown once if empty.",
    ),
    Variable(
        "OPENAI_API_KEY",
        "",
        VariableKind(str, "a key"),
        "The key of the `openai` provider, unless one is stored in the admin.",
    ),
    Variable(
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        VariableKind(_url("http", "https"), "http(s)://host[:port]/path"),
        "A server that speaks the OpenAI chat API.",
    ),
    Variable(
        "RUNSIGHT_ALLOW_PRIVATE_PROVIDERS",
        "0",
        SWITCH,
        "Lets provider addresses point at link-local and metadata addresses.",
    ),
)


@dataclass(frozen=True)
class SiteEnvironment:
    """What the variables said, after parsing."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def url(self) -> str:
        return self["RUNSIGHT_URL"] or web_address(self["HOST"], self["PORT"])

    @property
    def is_https(self) -> bool:
        return self.url.startswith("https://")


def read_environment(environ: Mapping[str, str] = os.environ) -> SiteEnvironment:
    """Read and check every variable; all errors are reported at once."""
    values: dict[str, Any] = {}
    errors = []
    for variable in VARIABLES:
        try:
            values[variable.name] = variable.read(environ)
        except BadSetting as error:
            errors.append(str(error))
    if errors:
        raise BadSetting("\n".join(errors))
    environment = SiteEnvironment(values)
    if not environment.is_https and not is_loopback(values["HOST"]) and not values["RUNSIGHT_INSECURE_HTTP"]:
        raise BadSetting(
            f"HOST: {values['HOST']!r} is reached by other machines, and RUNSIGHT_URL is not https, so passwords would "
            "travel in the clear; use 127.0.0.1, an https RUNSIGHT_URL, or RUNSIGHT_INSECURE_HTTP=1 if you mean it."
        )
    if values["RUNSIGHT_EXECUTOR"] == "celery" and not (values["CELERY_BROKER_URL"] or values["REDIS_URL"]):
        raise BadSetting("RUNSIGHT_EXECUTOR: 'celery' needs a broker; set CELERY_BROKER_URL or REDIS_URL.")
    return environment


def prepared_folder(path: Path) -> Path:
    """The folder, made if it is missing, readable by its owner only, and certainly writable."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadSetting(
            f"RUNSIGHT_HOME: the folder {str(path)!r} cannot be made ({error.strerror}); use a folder you can write to."
        ) from None
    if (mode := path.stat().st_mode) & 0o007:
        try:
            path.chmod(mode & ~0o007)
        except OSError:
            raise BadSetting(
                f"RUNSIGHT_HOME: others on this machine can read {str(path)!r}, which holds the database and the secret "
                "key, and it belongs to somebody else; use a folder of your own."
            ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadSetting(f"RUNSIGHT_HOME: {str(path)!r} cannot be written to; use a folder you can write to.")
    return path


def kept_secret_key(home: Path) -> str:
    """The secret key of this data folder, made on first use and readable by its owner only."""
    path = home / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(50))
        try:  # link() refuses an existing name, so of two first starts one key wins and both use it
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        return path.read_text().strip()
