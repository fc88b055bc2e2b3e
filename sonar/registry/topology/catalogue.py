"""The sources that there are, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from sonar.credentials.sources.base import CredentialError, read_secret
from sonar.movers.base import Limits
from sonar.notation.addresses import is_url
from sonar.registry.topology.model import Topology
from sonar.registry.topology.reading import MOST_BYTES, TopologyError, decoded, shown
from sonar.registry.topology.sources import cric_atlas, cric_wlcg, rucio, srr

LIMITS = Limits(connect=10, answer=60, total=300)
NO_ADDRESS = "a URL must have the form https://host/path, without a user name or password"
NOT_ASKED = (
    "Rucio requires a token for its export. Set SONAR_RUCIO_CREDENTIAL to the name of a token "
    "file, or download the export and specify that file (docs/topology.md)"
)
REFUSED = (
    "The token of SONAR_RUCIO_CREDENTIAL was sent. It may have expired, or its account may lack "
    "the right to export"
)

Parser = Callable[[Mapping[str, dict[str, Any]]], Topology]

_MODULES = (cric_atlas, rucio, cric_wlcg, srr)
SOURCES: dict[str, Parser] = {module.NAME: module.parse for module in _MODULES}
ANSWERS: dict[str, str] = {module.NAME: module.ANSWERS for module in _MODULES}
"""Description of the documents of each source."""


def read(source: str, places: Iterable[str], ca_file: str = "") -> Topology:
    """Return what a source says in these files or at these URLs; raise TopologyError.

    ``ca_file`` has the certificates to trust, empty for the usual ones.
    """
    places = list(places)
    headers = _token(places) if source == rucio.NAME else {}
    contents = {shown(place): _content(source, place, ca_file, headers) for place in places}
    return read_contents(source, contents)


def _token(places: Iterable[str]) -> dict[str, str]:
    """Return the header that lets Sonar ask Rucio; none without a file of a token, or a URL."""
    name = settings.SONAR_RUCIO_CREDENTIAL
    servers = {urlsplit(place).netloc for place in places if is_url(place)}
    if not name or not servers:
        return {}
    if len(servers) > 1:
        sentence = "SONAR_RUCIO_CREDENTIAL is for one server, but the URLs name several servers"
        raise TopologyError([sentence])
    try:
        token = read_secret(settings.SONAR_CREDENTIALS_DIR / name)
    except CredentialError as error:
        raise TopologyError([f"SONAR_RUCIO_CREDENTIAL: cannot use the file: {error}"]) from None
    if not (token.isascii() and token.isprintable()):
        sentence = "the file must contain a token: one line of ASCII characters"
        raise TopologyError([f"SONAR_RUCIO_CREDENTIAL: {sentence}"])
    return {"X-Rucio-Auth-Token": token}


def _content(source: str, place: str, ca_file: str, headers: Mapping[str, str]) -> bytes:
    # Loaded when used: pages, which are given documents, ask nobody.
    from sonar.registry import documents

    try:
        if not is_url(place):
            return documents.of_file(place, MOST_BYTES)
        parts = urlsplit(place)
        if parts.scheme != "https" or parts.username or parts.password:
            raise TopologyError([f"{shown(place)}: {NO_ADDRESS}"])
        questions = documents.Questions(LIMITS, MOST_BYTES, "application/json", ca_file, headers)
        return questions.ask(place)
    except documents.NoDocument as error:
        sentences = [str(error)]
        # Rucio refuses a request without a token with 400, and one without a right with 500.
        denied = error.status in (401, 403) or "AccessDenied" in str(error)
        if source == rucio.NAME and (denied or (error.status == 400 and not headers)):
            sentences.append(REFUSED if headers else NOT_ASKED)
        raise TopologyError([". ".join(sentences)]) from None


def read_contents(source: str, contents: Mapping[str, bytes]) -> Topology:
    """Return what a source says in documents, by their names; raise TopologyError."""
    parse = SOURCES[source]
    if source == rucio.NAME:
        parse = partial(rucio.parse, site_attribute=settings.SONAR_RUCIO_SITE_ATTRIBUTE)
    return parse({name: decoded(each, name) for name, each in contents.items()})
