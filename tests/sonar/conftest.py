"""What tests of the measuring half share: the hour, the grid, and how long a failure is watched."""

import pytest
from django.utils import timezone

from sonar.models import Endpoint
from sonar.movers import measure
from sonar.records.admission import Admission
from tests.sonar.world import NOW, three_endpoints


@pytest.fixture(autouse=True)
def brief_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for what a server may still do after a failure: the fake does nothing."""
    monkeypatch.setattr(measure, "LOOK_AGAIN_SECONDS", (0.01,))


@pytest.fixture
def at_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process live at four in the morning of its world."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)


@pytest.fixture
def grid(db: None) -> tuple[Endpoint, Endpoint, Endpoint]:
    """Return three endpoints that are registered."""
    return three_endpoints()


@pytest.fixture
def known(grid: tuple[Endpoint, Endpoint, Endpoint]) -> Admission:
    """Return what records may name at four."""
    return Admission.at(NOW)
