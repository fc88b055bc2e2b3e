"""The sources of tokens, each loaded when used first; `sonar.credentials.kinds` has all kinds."""

from functools import cache
from pkgutil import resolve_name

from sonar.credentials import kinds
from sonar.credentials.sources.base import TokenSource


@cache
def get(kind: str) -> TokenSource:
    """Return the process's one source of this kind; ValueError names those there are."""
    source: TokenSource = resolve_name(kinds.describe(kind).path)()
    return source
