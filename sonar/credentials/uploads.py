"""What people upload as the secret of a credential: looked at before it is kept.

The sentences say what is wrong and what is allowed; nothing of the secret is in them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import Certificate

from sonar.credentials import kinds
from sonar.credentials.sources.unverified import LONGEST_TOKEN, is_token, lifetime_of
from sonar.notation.windows import format_minute

MOST_BYTES = 64_000
"""A proxy certificate with its chain and the attributes of an organisation has some 15 kB."""
PEM = "-----BEGIN "
KEY_BEGINS = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----")
LONGEST_CLIENT_SECRET = 1000


class UploadError(Exception):
    """What cannot be the secret of such a credential; the sentence says why, and what can."""


@dataclass(frozen=True)
class Upload:
    """A secret that was looked at, and until when it is valid; None where it does not say."""

    text: str = field(repr=False)
    expires_at: datetime | None


def read(kind: str, content: bytes, now: datetime) -> Upload:
    """Look at what was uploaded for a credential of a kind; UploadError if it cannot be used."""
    if len(content) > MOST_BYTES:
        raise UploadError(
            f"A secret must not be larger than {MOST_BYTES // 1000} kB: choose another file."
        )
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise UploadError(f"This is not text. {ALLOWED[kind]}") from None
    if not text:
        raise UploadError(f"The secret is empty. {ALLOWED[kind]}")
    upload = READERS[kind](text)
    if upload.expires_at and upload.expires_at <= now:
        ended = format_minute(upload.expires_at)
        raise UploadError(f"This secret expired on {ended}: upload one that is still valid.")
    return upload


def _token(text: str) -> Upload:
    if PEM in text:
        sentence = "This is a certificate or a key (PEM), not a token."
        raise UploadError(f"{sentence} Choose a kind of credential that uses certificates.")
    if text.startswith("{"):
        raise UploadError(
            "This is the JSON response from an issuer: upload only the value of “access_token”."
        )
    if not is_token(text) or " " in text:
        raise UploadError(f"This is not a token. {ALLOWED[kinds.FILE]}")
    expires_at = lifetime_of(text).expires_at
    return Upload(text, datetime.fromtimestamp(expires_at, UTC) if expires_at else None)


def _client_secret(text: str) -> Upload:
    if PEM in text or not text.isprintable() or len(text) > LONGEST_CLIENT_SECRET:
        raise UploadError(f"This is not a client secret. {ALLOWED['client_credentials']}")
    return Upload(text, None)


def _token_or_certificate(text: str) -> Upload:
    return _certificate_with_key(text) if PEM in text else _token(text)


def _certificate_with_key(text: str) -> Upload:
    """Want a certificate whose key comes with it, and is not encrypted."""
    if PEM not in text:
        raise UploadError(f"This is not a certificate. {ALLOWED[kinds.X509]}")
    begin = KEY_BEGINS.search(text)
    key = text[begin.start() :] if begin else ""
    block, end, _ = key.partition(f"-----END {begin[1]}-----" if begin else "-")
    if not end:
        raise UploadError(f"The file contains no private key. {ALLOWED[kinds.X509]}")
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise UploadError(f"The file contains no certificate. {ALLOWED[kinds.X509]}") from None
    if _public_key_of(block + end) != _bytes_of(certificates[0].public_key()):
        raise UploadError(
            "The private key does not belong to the first certificate. Upload a certificate with "
            "its own key; the certificates of its issuers come last."
        )
    return Upload(text, _end_of(certificates))


def _public_key_of(block: str) -> bytes:
    try:
        key = load_pem_private_key(block.encode(), password=None)
    except TypeError:
        sentence = "The private key has a passphrase, which Sonar cannot enter"
        raise UploadError(f"{sentence}: upload the key without a passphrase.") from None
    except ValueError:
        raise UploadError(f"The private key cannot be read. {ALLOWED[kinds.X509]}") from None
    return _bytes_of(key.public_key())


def _bytes_of(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _end_of(certificates: list[Certificate]) -> datetime:
    return min(each.not_valid_after_utc for each in certificates)


ALLOWED = {
    kinds.FILE: (
        f"A token has at most {LONGEST_TOKEN} ASCII letters, digits and punctuation characters, "
        "without spaces or line breaks."
    ),
    "client_credentials": (
        f"A client secret is one line of at most {LONGEST_CLIENT_SECRET} characters."
    ),
    "macaroon": (
        "Upload a token that the endpoint accepts, or a certificate that it accepts, followed by "
        "its private key (PEM)."
    ),
    kinds.X509: "Upload a certificate followed by its private key (PEM), in one file.",
}
READERS: dict[str, Callable[[str], Upload]] = {
    kinds.FILE: _token,
    "client_credentials": _client_secret,
    "macaroon": _token_or_certificate,
    kinds.X509: _certificate_with_key,
}
