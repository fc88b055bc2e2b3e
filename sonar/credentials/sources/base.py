"""What a source of tokens is: one verb, a value in, a value out, and one way to fail.

A source says with ``CredentialError`` that the credential does not work, which says nothing of a
link. That an endpoint which is to give a token does not answer is a MoverError of its end.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sonar.movers.base import Where


class CredentialError(Exception):
    """A credential of which no token can be had.

    ``str(error)`` is one line for operators and never holds a secret.
    """


class Right(StrEnum):
    """What a token allows."""

    OWN = "own"
    LENT_TO_READ = "delegated for reading"
    LENT_TO_WRITE = "delegated for writing"
    LENT_TO_SERVICE = "delegated to a service"
    """To a service that looks at a destination before and after the copy, and deletes half a file:
    for XRootD a token that may only create shows nothing."""
    SERVICE = "service"
    """To be known by a service, which has no files."""


# Below the base URL of an endpoint, for each right there: nothing above or beside it is asked for.
DIRECTORIES = {
    Right.OWN: "sonar",
    Right.LENT_TO_READ: "sonar/source",
    Right.LENT_TO_WRITE: "sonar/incoming",
    Right.LENT_TO_SERVICE: "sonar/incoming",
}


class Secret(Protocol):
    """The secret of a credential, wherever it is kept."""

    where: str
    """For sentences: `the secret in the credential file`."""

    def read(self) -> str:
        """Return its text, or raise CredentialError."""

    def file(self) -> Path:
        """Return a file that holds it, for what takes no text; CredentialError if none can be."""


class SecretFile:
    """A secret in a file of its name, which somebody else renews in place."""

    where = "the secret in the credential file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> str:
        return read_secret(self._path)

    def file(self) -> Path:
        return self._path


@dataclass(frozen=True)
class Purpose:
    """A token for one endpoint or service: of which credential, and what it must allow there."""

    name: str
    """Of the credential."""
    kind: str
    secret: Secret
    """Anew each time it is read: it is renewed where it is."""
    where: Where
    base_url: str
    """Of the endpoint or service, which ends without a slash."""
    right: Right
    issuer: str = ""
    client_id: str = ""
    audience: str = ""
    """Empty for the origin of the endpoint or service."""
    path_prefix: str = ""
    """Part of the endpoint's path that the issuer's paths leave out."""
    scope: str = ""
    """Scope that a service requires of its tokens."""
    ca_bundle: str = ""

    @property
    def directory(self) -> str:
        """Return the URL of the directory that the token is for, and for nothing outside."""
        return f"{self.base_url}/{DIRECTORIES[self.right]}"


@dataclass(frozen=True)
class StorageToken:
    """What a storage server is shown. Moments are seconds since 1970, by this machine's clock."""

    text: str = field(repr=False)
    began_at: float
    expires_at: float | None = None
    """None if it is not known."""

    def left(self, now: float) -> float:
        """Return for how many seconds it still counts; endless if it does not say."""
        return float("inf") if self.expires_at is None else self.expires_at - now

    def life(self) -> float:
        """Return how many seconds it counts in all; endless if it does not say."""
        return float("inf") if self.expires_at is None else self.expires_at - self.began_at


class TokenSource(Protocol):
    """One kind of credential."""

    def obtain(self, purpose: Purpose) -> StorageToken:
        """Return a token, or raise CredentialError; MoverError where its endpoint failed."""


def read_secret(path: Path) -> str:
    """Read the file of a credential; CredentialError says why it cannot be used.

    Anyone may be told that: its path and what is in it are in no sentence.
    """
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise CredentialError(error.strerror) from None
    except UnicodeDecodeError:  # its own words quote what is in the file
        raise CredentialError("the secret is not text") from None
    if not text:
        raise CredentialError("the secret is empty")
    return text
