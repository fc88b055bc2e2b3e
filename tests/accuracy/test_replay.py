"""A simulated year through the real code: each fault is called once, by its right name."""

import os
from datetime import timedelta

import pytest

from matrix.answers.incidents import evaluate
from tests.accuracy import replay
from tests.accuracy.grids import Grid
from tests.accuracy.year import Year


@pytest.mark.django_db(transaction=True)
def test_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    year = Year(
        Grid(int(os.environ.get("N", "30")), missing=0.3, hard=True),
        days=int(os.environ.get("DAYS", "90")),
        seed=int(os.environ.get("SEED", "1")),
    )
    monkeypatch.setattr(evaluate, "AWAY", timedelta(days=2))
    import time

    t = time.time()
    ids = replay.fill(year)
    print("fill", time.time() - t)
    t = time.time()
    replay.play(year, year.round / 2)
    print("play", time.time() - t)
    s = replay.score(year, ids, year.round / 2)
    print(s.faults, s.right)
    print("MISSED", *s.missed, sep="\n  ")
    print("FALSE", *s.false, sep="\n  ")
    print("EXTRA", *s.extra, sep="\n  ")
    print(replay.incumbents(year))
