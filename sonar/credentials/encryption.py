"""Secrets as the database keeps them: encrypted, and of no use without the key of Sonar.

Who keeps none loads no cryptography, which is 6 MB of each process.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_BYTES = 32
# Sets it apart from all others that are made of the same text.
MEANT_FOR = b"sonar: uploaded secrets of credentials, 1"


class OtherKeyError(Exception):
    """What was encrypted with another key, or for another credential."""


def key() -> str:
    """Return what all processes that keep or read uploaded secrets must have in common."""
    return settings.SONAR_CREDENTIALS_KEY or settings.SECRET_KEY


def encrypted(name: str, text: str) -> bytes:
    """Return the secret of the credential of this name as it may be kept."""
    return _box(key()).encrypt(f"{name}\n{text}".encode())


def decrypted(name: str, content: bytes | memoryview) -> str:
    """Return the secret of the credential of this name; OtherKeyError if it cannot be had."""
    from cryptography.fernet import InvalidToken

    try:
        plain = _box(key()).decrypt(bytes(content)).decode()
    except InvalidToken:
        raise OtherKeyError from None
    owner, _, text = plain.partition("\n")
    if owner != name:
        raise OtherKeyError
    return text


@lru_cache(maxsize=4)
def _box(text: str) -> Fernet:
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), KEY_BYTES, salt=None, info=MEANT_FOR).derive(text.encode())
    return Fernet(urlsafe_b64encode(derived))
