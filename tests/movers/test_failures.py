"""Whose failure it is: what servers and programs say, by the movers that hear it.

``said.txt`` has the texts, each with what it means and where it was seen.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sonar.movers.base import End, FileInfo, MoverError, Order, Where
from sonar.movers.failures import judge
from sonar.movers.fts3.poll import Progress, failure_of
from sonar.movers.http import tpc
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.programs import copying, gfal2, gridftp, iperf3, xrootd
from sonar.movers.programs.iperf3 import Report
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.watch import Watch
from tests.movers.orders import ORDER, order_between
from tests.movers.scripted import scripted, status

SAID = Path(__file__).parent / "said.txt"


@dataclass(frozen=True)
class Said:
    by: str
    mode: str
    where: str
    phase: str
    lasts: str
    kind: str
    seen: str
    text: str

    @property
    def meaning(self) -> tuple[str, str, str, str]:
        return self.where, self.phase, self.lasts, self.kind


def read(lines: list[str]) -> list[Said]:
    rows = [line for line in lines if line and not line.startswith("#")]
    return [Said(*(cell.strip() for cell in f"{row} ".split(" | ", 7))) for row in rows]


ALL = read(SAID.read_text().splitlines())


def order(scheme: str, mode: str) -> Order:
    return order_between(f"{scheme}://glasgow.example", f"{scheme}://ral.example", mode=mode)


def ended(text: str) -> Ended:
    return Ended(1, 1.0, text)


def by_copy(mode: str, text: str) -> MoverError:
    status, _, words = text.partition(" ")
    return tpc.refusal(order("https", mode), int(status), words)


HEARD: dict[str, Callable[[str, str], MoverError]] = {
    "copy": by_copy,
    "http-tpc": lambda mode, text: tpc.failed(order("https", mode), text),
    "gfal2": lambda mode, text: gfal2.failed(
        order("root" if "XrdCl" in text else "https", mode), ended(text)
    ),
    "xrootd": lambda mode, text: xrootd.failed(order("root", mode), ended(text)),
    "gridftp": lambda mode, text: gridftp.failed(order("ftp", mode), ended(text)),
    "fts3": lambda state, text: failure_of(Progress(state, text)),
    "iperf3": lambda mode, text: iperf3.failed(
        order("iperf3", mode), ended(""), Report(error=text)
    ),
}


def heard(said: Said) -> tuple[str, str, str, str]:
    error = HEARD[said.by](said.mode, said.text)
    return error.where, error.phase, "yes" if error.permanent else "no", error.kind


@pytest.mark.parametrize("said", ALL, ids=lambda said: f"{said.by} {said.mode} {said.text[:60]}")
def test_words_mean_the_same_whoever_carries_them(said: Said):
    assert heard(said) == said.meaning


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("by", ["http-tpc", "gfal2", "fts3"])
def test_one_verdict_is_of_one_end_in_each_mode(by: str, mode: str):
    """FTS and gfal2 state the mode, and quote what the server that was sent COPY has said."""
    words = "Remote side failed with status code 403"
    quoted = f"TRANSFER ERROR: Copy failed (3rd {mode}). Last attempt: Transfer failure: {words}"
    text = {"gfal2": f"gfal-copy error: 5 (EIO) - {quoted}", "fts3": f"TRANSFER [5] {quoted}"}
    error = HEARD[by]("FAILED" if by == "fts3" else mode, text.get(by, words))
    where = {"pull": Where.SOURCE, "push": Where.DESTINATION}[mode]
    assert (error.where, error.permanent) == (where, True)


def test_words_in_a_path_mean_nothing():
    path = "/base/timeout/(source)/overload/quota-not-exceeded/2000"
    said = judge(f"Unable to read {path}; odd", ORDER)
    assert (said.where, said.kind) == ("transfer", "unknown")


def test_the_reason_at_the_end_of_a_long_verdict_is_read():
    path = "/a" * 150
    text = f"Internal transfer failure, local={path}, remote=https://glasgow.example{path}"
    error = tpc.failed(ORDER, f"{text}, HTTP library failure=Couldn't connect to server")
    assert error.where is Where.SOURCE
    assert len(str(error)) <= 300


@pytest.mark.parametrize("found", ["404 Not Found", "403 Forbidden"])
def test_what_the_destination_says_of_its_source_makes_no_directory(found: str):
    def play(connection: socket.socket) -> None:
        asked.append(server.requests[-1].split()[0])
        missing = status("404 Not Found")
        words = f"failure: error: remote host returned '{found}' while fetching file size"
        (status(found, words) if asked[-1] == "COPY" else missing)(connection)

    asked: list[str] = []
    with scripted(play) as server, pytest.raises(MoverError) as caught:
        HttpTpc().move(order_between("http://127.0.0.1:9", server.url), Watch())
    assert (caught.value.where, caught.value.permanent) == (Where.SOURCE, True)
    assert found in str(caught.value)
    assert asked == ["HEAD", "COPY"]


class Ends:
    """Files of two ends: the destination's is missing, and of the source what is told."""

    def __init__(self, info: FileInfo | None) -> None:
        self._source = info

    def make_directories(self, end: End, order: Order) -> None: ...

    def stat(self, end: End, order: Order) -> FileInfo | None:
        return self._source if end is order.source else None


@pytest.mark.parametrize(
    ("info", "where"), [(None, Where.SOURCE), (FileInfo(2_000), Where.TRANSFER)]
)
def test_a_lasting_failure_that_names_no_end_is_looked_into(info: FileInfo | None, where: Where):
    def failure(order: Order, ended: Ended) -> MoverError:
        return xrootd.failed(order, replace(ended, text="[ERROR] [3011] No such file"))

    with pytest.raises(MoverError) as caught:
        copying.copy(
            Ends(info),  # type: ignore[arg-type]
            Command(("false",)),
            replace(ORDER, overwrite=True),
            Watch(),
            read=lambda _: None,
            failure=failure,
        )
    assert (caught.value.where, caught.value.permanent) == (where, True)
