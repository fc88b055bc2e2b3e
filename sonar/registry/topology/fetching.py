"""The documents of a source: files, or answers of https servers that are asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request, Web
from sonar.registry.topology.reading import MOST_BYTES, TopologyError, decoded, shown

LIMITS = Limits(connect=10, answer=60, total=300)


def documents(places: Iterable[str], ca_file: str = "") -> dict[str, dict[str, Any]]:
    """Return what files or URLs hold, by how they are called; raise TopologyError with the place.

    A URL is https, is asked without credentials, leads to no other server, and never to an address
    at which none can be. ``ca_file`` has the certificates to trust, empty for the usual ones.
    """
    return {shown(place): decoded(_content(place, ca_file), shown(place)) for place in places}


def _content(place: str, ca_file: str) -> bytes:
    if "://" in place:
        return _answer(place, ca_file)
    try:
        with Path(place).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TopologyError([f"{place}: it cannot be read: {error.strerror}"]) from None


def _answer(url: str, ca_file: str) -> bytes:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.username or parts.password:
        sentence = "a URL is https://host/path, without user or password"
        raise TopologyError([f"{shown(url)}: {sentence}"])
    end = End(Where.CONTROL, url, url)
    order = Order(end, end, bytes=1, ca_bundle=ca_file, limits=LIMITS)
    request = Request("GET", end, {"Accept": "application/json"})
    try:
        with Web().open(request, order, Wait(LIMITS.answer, LIMITS.total)) as response:
            content = response.read(MOST_BYTES + 1, decode_content=False)
    except MoverError as error:
        raise TopologyError([f"{shown(url)}: {error}"]) from None
    if response.status != 200:
        raise TopologyError([f"{shown(url)}: it answers {response.status}"])
    return bytes(content)
