"""How many requests a test costs its servers: those that only XRootD needs go to nobody else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from sonar.movers.base import MoverError, Order
from sonar.movers.content import adler32
from sonar.movers.http import webdav
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.movers.orders import SIZE_BYTES, order_between
from tests.storage.serving import serving

pytestmark = pytest.mark.usefixtures("no_looks")

XROOTD, DCACHE, UNKNOWN = "XrootD/v5.5.3", "dCache/9.2.22", ""
LOOK, CHECKSUM, COPY, DELETE = "HEAD", "HEAD adler32", "COPY", "DELETE"
IN_FULL = {
    "pull": [LOOK, LOOK, COPY, LOOK, CHECKSUM, DELETE],
    "push": [LOOK, LOOK, LOOK, COPY, LOOK, CHECKSUM, DELETE],
}
SPARED = {
    "pull": [LOOK, COPY, CHECKSUM, DELETE],
    "push": [LOOK, LOOK, COPY, CHECKSUM, DELETE],
}
DIGEST = adler32(SIZE_BYTES)


class Storage(BaseHTTPRequestHandler):
    """Has the source file and the base, and the file of each COPY until it is deleted."""

    protocol_version = "HTTP/1.1"
    software, digest = UNKNOWN, DIGEST
    asked: list[str]
    files: set[str]

    def do_HEAD(self) -> None:
        wanted = self.headers.get("Want-Digest")
        self.asked.append(f"HEAD {wanted}" if wanted else "HEAD")
        is_there = "/incoming/" not in self.path or self.path in self.files
        self.answer(200 if is_there else 404, SIZE_BYTES, digest=bool(wanted))

    def do_COPY(self) -> None:
        self.asked.append("COPY")
        source, target = self.headers.get("Source"), self.headers.get("Destination", self.path)
        self.files.add(self.path if source else "/" + target.split("/", 3)[3])
        self.answer(201, len(b"success: Created"))
        self.wfile.write(b"success: Created")

    def do_DELETE(self) -> None:
        self.asked.append("DELETE")
        self.files.discard(self.path)
        self.answer(204, 0)

    def answer(self, status: int, length: int, *, digest: bool = False) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(length))
        if self.software:
            self.send_header("Server", self.software)
        if digest and self.digest:
            self.send_header("Digest", f"adler32={self.digest}")
        self.end_headers()


@contextmanager
def storing(kind: type[Storage]) -> Iterator[Callable[[str], tuple[list[str], Outcome]]]:
    """Give what carries out a test in a mode, and returns what its server was asked for it."""
    mover, numbers = HttpTpc(), iter(range(100))
    with serving(kind) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"

        def carry_out(mode: str) -> tuple[list[str], Outcome]:
            kind.asked = []
            outcome = measure(mover, order(url, mode, next(numbers)), Watch())
            return kind.asked, outcome

        yield carry_out


def order(url: str, mode: str, number: int) -> Order:
    """Order a test between two files of one server, with a name of its own."""
    whole = order_between(url, url, mode=mode)
    name = f"{whole.destination.url}{number}"
    return replace(whole, destination=replace(whole.destination, url=name))


def storage(software: str, digest: str = DIGEST) -> type[Storage]:
    names = {"software": software, "digest": digest, "asked": [], "files": set()}
    return type("Storage", (Storage,), names)


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("software", [XROOTD, UNKNOWN])
def test_xrootd_and_who_is_not_known_are_asked_one_thing_at_a_time(software: str, mode: str):
    with storing(storage(software)) as carry_out:
        for _ in range(2):
            asked, outcome = carry_out(mode)
            assert (asked, outcome.verified) == (IN_FULL[mode], True)


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_dcache_is_spared_what_only_xrootd_needs_once_it_is_known(mode: str):
    with storing(storage(DCACHE)) as carry_out:
        carry_out(mode)
        asked, outcome = carry_out(mode)
    assert (asked, outcome.verified) == (SPARED[mode], True)
    assert outcome.seen.checksum_seconds
    assert not outcome.leftover


def test_a_checksum_that_does_not_come_with_the_length_is_asked_for():
    with storing(storage(DCACHE, digest="")) as carry_out:
        carry_out("pull")
        asked, outcome = carry_out("pull")
    assert asked[:4] == [LOOK, COPY, CHECKSUM, CHECKSUM]
    assert outcome.verified is False
    assert outcome.verified_note == "the server returned no adler32 checksum"


def test_a_wrong_checksum_that_comes_with_the_length_fails_the_test():
    with storing(storage(DCACHE, digest="00c0ffee")) as carry_out:
        carry_out("pull")
        _, outcome = carry_out("pull")
    assert isinstance(outcome.error, MoverError)
    assert outcome.verified is False
    assert not outcome.leftover


def test_a_server_that_becomes_another_one_is_asked_in_full_again():
    kind = storage(DCACHE)
    with storing(kind) as carry_out:
        carry_out("pull")
        kind.software = XROOTD
        asked, outcome = carry_out("pull")
    assert (asked, outcome.verified) == (IN_FULL["pull"], True)


def test_only_who_is_known_to_bear_it_gets_the_next_request_at_once(monkeypatch):
    waited: list[float] = []
    monkeypatch.setattr("sonar.movers.http.exchange.time.sleep", waited.append)
    for software, hold in ((XROOTD, webdav.AFTER_CHECKSUM_SECONDS), (DCACHE, 0.0)):
        waited.clear()
        with storing(storage(software)) as carry_out:
            carry_out("pull")
        assert max(waited) == hold
