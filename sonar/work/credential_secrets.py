"""Where workers find the secret of a credential: in a file of its name, or as it was uploaded."""

from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from django.conf import settings

from sonar.credentials.redacted import learn
from sonar.credentials.sources.base import CredentialError, Secret, SecretFile
from sonar.database.retry import DATABASE_AWAY, release_connection
from sonar.models import Credential
from sonar.notation import whole_files
from sonar.registry import secrets
from sonar.registry.secrets import NoSecretError

DIRECTORY = "uploaded"
PRIVATE = 0o700


def secret_of(credential: Credential) -> Secret:
    """Return where the secret is: one that was uploaded is never looked for in a file."""
    if credential.is_uploaded:
        return UploadedSecret(credential)
    return SecretFile(settings.SONAR_CREDENTIALS_DIR / credential.name)


class UploadedSecret:
    """A secret in the database, read anew each time; its file is made for programs alone."""

    where = "the uploaded secret"

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    def __str__(self) -> str:
        """Tell it from the one before: tokens got with that are not used any more."""
        return f"uploaded {self._credential.uploaded_at}"

    def read(self) -> str:
        try:
            text = secrets.secret_of(self._credential)
        except NoSecretError as error:
            raise CredentialError(str(error)) from None
        except DATABASE_AWAY:
            raise CredentialError(
                "the database, which holds the secret, is not responding"
            ) from None
        finally:
            release_connection()  # who gives tokens for it may take a while to answer
        learn([text])
        return text

    def file(self) -> Path:
        """Write it where only Sonar's user can read it, under another name if it has changed."""
        text = self.read()
        path = directory() / f"{self._credential.name}-{sha256(text.encode()).hexdigest()[:16]}"
        try:
            path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            if not path.exists():
                with whole_files.written(path) as fresh:
                    fresh.write(text.encode())
        except OSError as error:
            why = f"the secret cannot be written to SONAR_TOKEN_CACHE_DIR: {error.strerror}"
            raise CredentialError(why) from None
        return path


def directory() -> Path:
    return settings.SONAR_TOKEN_CACHE_DIR / DIRECTORY


def forget(credentials: Collection[Credential]) -> None:
    """Delete the files of secrets that were replaced or removed. One query for each that has one.

    A program that is shown one at this moment has read it, or fails and is tried again.
    """
    with suppress(OSError):
        whole_files.forget(directory())
        files = {path for path in directory().iterdir() if not path.name.startswith(".")}
        with_files = {path.name.rpartition("-")[0] for path in files}
        current = set[Path]()
        for credential in credentials:
            if credential.is_uploaded and credential.name in with_files:
                with suppress(CredentialError):
                    current.add(UploadedSecret(credential).file())
        for path in files - current:
            path.unlink(missing_ok=True)
