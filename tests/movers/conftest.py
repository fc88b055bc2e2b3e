"""What tests of movers share."""

import pytest

from sonar.movers import measure


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not look again after a failure: these servers do nothing more."""
    monkeypatch.setattr(measure, "LOOK_AGAIN_SECONDS", ())
