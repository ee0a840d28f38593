"""Secrets are taken out of texts, ordinary texts are left alone, and no text takes long."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows_app.engine.redaction import MARK, Redactor

KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 20
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
AKIA = "AKIA" + "IOSFODNN7EXAMPLE"
SLACK = "xoxb-" + "123456789012-abcdefGHIJKL"

SECRETS = [
    # text                                                           what is left of it
    ("key sk-proj-abcDEF1234567890abcdef!", f"key {MARK}!"),
    ("sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6", MARK),
    (r'{"a": "line\nsk-abcDEF1234567890abcdef"}', r'{"a": "line\n' + MARK + '"}'),
    ("Authorization: Bearer abc123DEF456ghi789", f"Authorization: Bearer {MARK}"),
    ("authorization: bearer abc123DEF456ghi789", f"authorization: bearer {MARK}"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", f"Authorization: Basic {MARK}"),
    ("Authorization: Token abc123DEF456ghi789", f"Authorization: Token {MARK}"),
    ("our rs_" + "aB3-" * 10 + "x_Y.", f"our {MARK}."),
    (f"id={AKIA} ok", f"id={MARK} ok"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", f"aws_secret_access_key = {MARK}"),
    ("ghp_" + "a1B2" * 9, MARK),
    ("github_pat_" + "a1B2" * 10, MARK),
    ("glpat-" + "a1B2c3D4e5F6g7H8i9J0", MARK),
    (f"slack {SLACK}.", f"slack {MARK}."),
    (
        "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "X" * 24,
        f"https://hooks.slack.com/services/{MARK}",
    ),
    ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", MARK),
    ("hf_" + "a1B2" * 9, MARK),
    ("sk_" + "live_" + "a1B2" * 6, MARK),
    (f"before {PEM} after", f"before {MARK} after"),
    (json.dumps(PEM), f'"{MARK}"'),
    (f"cut -----BEGIN PRIVATE KEY-----\n{KEY}", f"cut {MARK}\n"),
    (f"two {PEM}\n{PEM} keys", f"two {MARK}\n{MARK} keys"),
    (f"token {JWT}, thanks", f"token {MARK}, thanks"),
    ("postgres://app:s3cr%21t@db:5432/x", f"postgres://app:{MARK}@db:5432/x"),
    ("redis://:hunter2@localhost", f"redis://:{MARK}@localhost"),
    ("https://x.example/?a=1&password=hunter2&b=2", f"https://x.example/?a=1&password={MARK}&b=2"),
    ("https://x.example/?access_token=abc", f"https://x.example/?access_token={MARK}"),
]

ORDINARY = [
    "The risk-based approach of task-management-software-2024 is sk-ipped.",
    "sk-learn is a nickname of scikit-learn, see sk-learn-contrib-extensions",
    "Bearer of bad news: the Bearer authentication scheme is described in the standard.",
    "A bearer responsibilities-and-accountabilities document",
    "The Token ring; rs_index, rs_1 and vars_" + "a" * 43,
    "AKIAH is a name; AKIA alone is a prefix, and so is ASIA: ASIAN-PACIFIC REGION OVERVIEW 2026",
    "https://example.org:8080/path?key=value&page=2#token",
    "ratio 3:4@home, meet at 10:30 @ the office; mailto:someone@example.org",
    "def login(user, password=None): return check(user, password=password)",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "The header -----BEGIN PUBLIC KEY----- is harmless.",
    'eyJ is how base64 of {" begins; eyJhbGciOiJIUzI1NiJ9 alone is no token.',
    "d41d8cd98f00b204e9800998ecf8427e 1e82be5 550e8400-e29b-41d4-a716-446655440000",
    "git commit sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "xoxo-hugs-and-kisses",
    "データは安全です。Пароль не хранится.",
]


@pytest.mark.parametrize(("text", "left"), SECRETS)
def test_known_patterns_are_replaced(text: str, left: str) -> None:
    assert Redactor().redact(text) == left


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor(["stored-key-12345"]).redact(text) == text


def test_stored_secrets_are_replaced_however_they_are_written() -> None:
    redactor = Redactor(
        ['se"cret/ké y', "inner-secret", "the inner-secret longer", "test", "lm-studio", "", "redacted"]
    )
    assert redactor.redact('a se"cret/ké y b') == f"a {MARK} b"
    assert redactor.redact(json.dumps({"k": 'se"cret/ké y'})) == '{"k": "' + MARK + '"}'
    assert redactor.redact("x=se%22cret%2Fk%C3%A9%20y") == f"x={MARK}"
    assert redactor.redact("the inner-secret longer") == MARK
    ordinary = "a test with lm-studio, nothing redacted"
    assert redactor.redact(ordinary) == ordinary


def test_json_is_redacted_at_any_depth_without_touching_the_original() -> None:
    value = {"a": ["x stored-key-12345", {"stored-key-12345": 1}], "b": (True, None, 1.5), "c": SLACK}
    assert Redactor(["stored-key-12345"]).redact_json(value) == {
        "a": [f"x {MARK}", {MARK: 1}],
        "b": [True, None, 1.5],
        "c": MARK,
    }
    assert value["a"][0] == "x stored-key-12345"
    deep: list = ["stored-key-12345"]
    for _ in range(50_000):
        deep = [deep]
    redacted = Redactor(["stored-key-12345"]).redact_json(deep)
    while isinstance(redacted, list):
        redacted = redacted[0]
    assert redacted == MARK


PIECES = (
    [text for text, _ in SECRETS]
    + ORDINARY
    + ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "sk-", "eyJ", "://", "@", " ", "\\n"]
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=8).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor(["stored-key-12345"])
    once = redactor.redact(text)
    assert redactor.redact(once) == once


@pytest.mark.parametrize(
    "unit",
    ["sk-", "eyJ", "eyJa.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A ", "://a:", "://", "?password=", "Bearer ", "Bearer a1", "xoxb-", "ghp_", "a", "hf_a",
     "word and word. ", "\\n", "Authorization: Basic ", "-----END PRIVATE KEY-----", "sk-a1b2c3d4e5f6g7h8i9 "],
)  # fmt: skip
def test_ten_megabytes_of_anything_take_seconds_at_most(unit: str) -> None:
    redactor = Redactor(["stored-key-12345", "another-key-67890"])
    times = []
    for size in (1_000_000, 4_000_000):
        text = (unit * (size // len(unit) + 1))[:size]
        started = time.process_time()
        redactor.redact(text)
        times.append(time.process_time() - started)
    assert times[1] < 3
    assert times[1] < 12 * times[0] + 0.1
