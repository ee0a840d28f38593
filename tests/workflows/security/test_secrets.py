"""Stored secrets: unreadable without their key, and none lost when the key is changed."""

import pytest

from workflows_app.security.secrets import SecretUnreadableError, decrypt, encrypt


@pytest.mark.parametrize("text", ["sk-abc", "", "käse \U0001f9c0", "x" * 100_000])
def test_a_secret_comes_back_and_is_not_in_the_token(text: str) -> None:
    token = encrypt(text, ["one"])
    assert decrypt(token, ["one"]) == text
    assert not text or text not in token
    assert encrypt(text, ["one"]) != token


def test_rotating_the_secret_key_loses_nothing() -> None:
    old = encrypt("sk-abc", ["one"])
    assert decrypt(old, ["two", "one"]) == "sk-abc"
    fresh = encrypt(decrypt(old, ["two", "one"]), ["two", "one"])
    assert decrypt(fresh, ["two"]) == "sk-abc"
    with pytest.raises(SecretUnreadableError):
        decrypt(fresh, ["one"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t[:-4] + "AAA=",
        lambda t: "",
        lambda t: "plain text",
        lambda t: t[: len(t) // 2],
        lambda t: "ü",
    ],
)
def test_a_damaged_token_is_an_error_that_says_what_to_do(damage) -> None:
    with pytest.raises(SecretUnreadableError, match="enter the secret again"):
        decrypt(damage(encrypt("sk-abc", ["one"])), ["one"])


@pytest.mark.parametrize("keys", [[], [""], ["one", ""]])
def test_no_key_is_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one secret key"):
        encrypt("sk-abc", keys)


def test_two_similar_keys_are_different_keys() -> None:
    with pytest.raises(SecretUnreadableError):
        decrypt(encrypt("sk-abc", ["one"]), ["one "])
