"""Whose failure it is: what servers and programs say, by the movers that hear it.

``said.txt`` has the texts, each with what it means and where it was seen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sonar.movers.base import MoverError, Order
from sonar.movers.fts3.poll import Progress, failure_of
from sonar.movers.http import tpc
from sonar.movers.programs import gfal2, gridftp, iperf3, xrootd
from sonar.movers.programs.iperf3 import Report
from sonar.movers.programs.tool import Ended
from tests.movers.orders import order_between

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
