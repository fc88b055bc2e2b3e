"""What tests with the fake mover share."""

from __future__ import annotations

import pytest

from sonar.movers import measure


@pytest.fixture(autouse=True)
def brief_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for what a server may still do after a failure: the fake does nothing."""
    monkeypatch.setattr(measure, "LOOK_AGAIN_SECONDS", (0.01,))
