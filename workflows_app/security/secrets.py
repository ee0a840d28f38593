"""Texts encrypted at rest, with keys derived from the secret key and its fallbacks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_PURPOSE = b"runsight stored secrets v1"  # part of every derived key: changing it loses every stored secret


class SecretUnreadableError(ValueError):
    """None of the keys decrypts the text: it was altered, or its secret key is no longer set."""


def encrypt(text: str, keys: Sequence[str]) -> str:
    """The text, encrypted with the first key."""
    return _fernet(tuple(keys)).encrypt(text.encode()).decode("ascii")


def decrypt(token: str, keys: Sequence[str]) -> str:
    """The text in the token, opened with whichever key made it."""
    from cryptography.fernet import InvalidToken

    try:
        return _fernet(tuple(keys)).decrypt(token.encode()).decode()
    except InvalidToken:
        raise SecretUnreadableError(
            "A stored secret cannot be read with the configured secret keys. "
            "Configure the secret key it was stored with as a fallback, or enter the secret again."
        ) from None


@lru_cache(maxsize=8)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    from cryptography.fernet import Fernet, MultiFernet
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if not keys or not all(keys):
        raise ValueError("Encrypting needs at least one secret key, and none of them empty.")
    derived = (HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(key.encode()) for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])
