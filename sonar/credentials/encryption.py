"""Secrets as the database keeps them: encrypted, and of no use without SONAR_SECRET_KEY."""

from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

KEY_BYTES = 32
# Sets these keys apart from all others that are made of SONAR_SECRET_KEY.
MEANT_FOR = b"sonar: uploaded secrets of credentials, 1"


class OtherKeyError(Exception):
    """What was encrypted with another SONAR_SECRET_KEY, or for another credential."""


def encrypted(name: str, text: str) -> bytes:
    """Return the secret of the credential of this name as it may be kept."""
    return _box(settings.SECRET_KEY).encrypt(f"{name}\n{text}".encode())


def decrypted(name: str, content: bytes | memoryview) -> str:
    """Return the secret of the credential of this name; OtherKeyError if it cannot be had."""
    try:
        plain = _box(settings.SECRET_KEY).decrypt(bytes(content)).decode()
    except InvalidToken:
        raise OtherKeyError from None
    owner, _, text = plain.partition("\n")
    if owner != name:
        raise OtherKeyError
    return text


@lru_cache(maxsize=4)
def _box(secret_key: str) -> Fernet:
    key = HKDF(SHA256(), KEY_BYTES, salt=None, info=MEANT_FOR).derive(secret_key.encode())
    return Fernet(urlsafe_b64encode(key))
