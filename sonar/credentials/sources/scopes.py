"""Whether what was given allows more than was asked for: by scopes, paths and who may take it.

Scopes are those of WLCG's profile 1.3 (2.2.1) and of SciTokens. A token that cannot be read allows
what its issuer says of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from sonar.credentials.kinds import OF_STORAGE
from sonar.credentials.sources.base import CredentialError
from sonar.credentials.sources.unverified import claims_of
from sonar.movers.messages import one_line
from sonar.notation.addresses import segments

SCITOKENS = {"read": "storage.read", "write": "storage.modify"}
"""Names of the same scopes in SciTokens."""
INCLUDED = {("storage.modify", "storage.create")}
"""The first scope of each pair includes the second."""
CLAIMS = ("scope", "scp")
GROUPS = "wlcg.groups"
"""The claim, and the scope by which it is asked for."""
MOST_WORDS = 5


class Scope(NamedTuple):
    """A right and the path for which it is given; all paths if that is empty."""

    name: str
    path: str

    @classmethod
    def of(cls, word: str) -> Scope:
        name, _, path = word.partition(":")
        return cls(SCITOKENS.get(name, name), path)

    def covers(self, other: Scope) -> bool:
        """Say whether who has this right has the other one, too."""
        includes = self.name == other.name or (self.name, other.name) in INCLUDED
        return includes and is_within(other.path, self.path)

    def serves(self, needed: Scope) -> bool:
        """Say whether this right is the one that is needed, if only for a part of its path."""
        return self.name == needed.name and needed.covers(self)


def is_within(path: str, directory: str) -> bool:
    """Say whether a path is a directory or below it, however the two are written."""
    inner, outer = segments(path), segments(directory)
    return inner[: len(outer)] == outer and not {".", ".."} & set(inner)


def require_scope(token: str, granted: object, requested: str) -> None:
    """Raise CredentialError for a token that allows anything else than was requested.

    ``granted`` is the scope that came with it: without one it means the requested one.
    """
    claims, request = claims_of(token) or {}, requested.split()
    claimed = [(name, claims.get(name)) for name in CLAIMS]
    for name, value in [("scope", granted or None), *claimed]:
        if value is not None:
            _compare(_words(name, value), request, token)
    if (groups := claims.get(GROUPS)) and not any(word.startswith(GROUPS) for word in request):
        raise _too_wide(request, ["the rights of", *_words(GROUPS, groups)], token)


def _words(name: str, value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    texts = [each for each in values if isinstance(each, str)]
    if len(texts) < len(values):
        why = f"the token is not used, because its claim {name} cannot be read"
        raise CredentialError(why)
    return " ".join(texts).split()


def _compare(words: Collection[str], request: Collection[str], token: str) -> None:
    rights, needed = [Scope.of(word) for word in words], [Scope.of(word) for word in request]
    extra = [
        word
        for word, right in zip(words, rights, strict=True)
        if right.name.startswith(OF_STORAGE)
        and word not in request
        and not any(each.covers(right) for each in needed)
    ]
    if extra:
        raise _too_wide(request, extra, token)
    missing = [
        word
        for word, each in zip(request, needed, strict=True)
        if not any(right.serves(each) for right in rights)
    ]
    if missing:
        raise CredentialError(f"the issuer does not grant {' '.join(sorted(missing))}")


def _too_wide(request: Collection[str], extra: list[str], token: str) -> CredentialError:
    """Say what was asked and what was given: the issuer's words, be they few or many."""
    words = one_line(" ".join(extra[:MOST_WORDS]), token)
    asked_for = " ".join(request)
    return CredentialError(
        f"the token is not used: {asked_for} was requested, but the issuer granted {words}"
    )


ANYBODY = {"https://wlcg.cern.ch/jwt/v1/any", "ANY"}
"""Names of an audience for all in the WLCG profile and in SciTokens."""
ORIGIN = re.compile(r"\w+://[^/]+/*")


def audience_of(base_url: str) -> str:
    """Return the origin of an endpoint as tokens name it: https, and no port that goes unsaid."""
    scheme, _, rest = base_url.partition("://")
    host = rest.partition("/")[0].lower()
    web = {"davs": "https", "dav": "http"}.get(scheme, scheme)
    return f"{web}://{host.removesuffix(':443') if web == 'https' else host}"


def require_audience(token: str, requested: str) -> None:
    """Raise CredentialError for a token that others than it was requested for would take, too.

    What cannot be read is for whom its issuer was asked.
    """
    claims = claims_of(token)
    if claims is None or requested in ANYBODY:
        return
    audiences = _named(claims.get("aud"))
    others = [name for name in audiences if _plain(name) != _plain(requested)]
    if others or not audiences:
        names = one_line(" ".join(others[:MOST_WORDS]), token) or "anybody"
        raise CredentialError(
            f"the token is not used: it was requested for {requested}, but is for {names}"
        )


def _named(audience: object) -> list[str]:
    """Return whom a claim names; nobody if that cannot be read."""
    each = audience if isinstance(audience, list) else [audience]
    names = [name for name in each if isinstance(name, str)]
    return names if len(names) == len(each) else []


def _plain(audience: str) -> str:
    return audience_of(audience) if ORIGIN.fullmatch(audience) else audience
