"""Tokens and secrets are in no text that is kept or logged, whoever wrote it."""

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from sonar.credentials import cache
from sonar.credentials.sources.unverified import LONGEST_TOKEN
from sonar.redaction.disguises import without


def without_tokens(text: str) -> str:
    """Return a foreign text without the token or secret of any endpoint, or the disguise of one.

    A server was given those of the other ends of its copies, and may tell them at any time.
    """
    return without(text, _tokens()) if text else text


def learn(secrets: Iterable[str]) -> None:
    """Take out of texts from now on what was uploaded, as this process cannot see it in a file."""
    _uploaded.update(secrets)


# Former ones too: a server that was shown one may tell it at any time.
_uploaded = set[str]()


def _tokens() -> list[str]:
    return [*_secrets(), *_uploaded, *cache.endings_in(settings.SONAR_TOKEN_CACHE_DIR)]


def _secrets() -> list[str]:
    try:
        files = sorted(settings.SONAR_CREDENTIALS_DIR.iterdir())
    except OSError:  # a process that uses none: of the web, say
        return []
    return [token for file in files if (token := _token(file))]


def _token(file: Path) -> str:
    """Read a token anew each time, as movers do: it is renewed in place."""
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST_TOKEN).decode("utf-8", "replace").strip()
    except OSError:  # a directory, or none of ours
        return ""
