"""A simulated year through the real code: each fault is called once, by its right name."""

from datetime import timedelta
from os import environ

import pytest
from pytest_django import Settings

from tests.accuracy import replay
from tests.accuracy.grids import Grid
from tests.accuracy.replay import Score
from tests.accuracy.year import Year

# In the suite, and the year of `make replay`.
BRIEF = Year(Grid(24, missing=0.3, hard=True), days=75, seed=2)
WHOLE = Year(Grid(100, missing=0.3, hard=True), days=365, seed=int(environ.get("SEED", "1")))


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_faults_are_called_once_by_their_right_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SONAR_URL, settings.EMAIL_HOST = "https://sonar.example.org", "localhost"
    settings.DEFAULT_FROM_EMAIL = "Sonar <sonar@example.org>"
    year = WHOLE if environ.get("REPLAY") else BRIEF
    score = replayed(year, monkeypatch)
    print(score.words(), *replay.beside(year), sep="\n")
    assert score.right >= 0.95 * score.faults > 0
    assert len(score.false) <= year.days / 30
    assert score.in_downtimes == []
    assert 1 <= max(score.messages) <= 3


def replayed(year: Year, monkeypatch: pytest.MonkeyPatch) -> Score:
    """Replay a year, looking twice in each round of tests."""
    step = year.round / 2
    monkeypatch.setattr("matrix.assessment.silence.AWAY", timedelta(days=1))
    ids = replay.fill(year)
    replay.play(year, step)
    return replay.score(year, ids, step)
