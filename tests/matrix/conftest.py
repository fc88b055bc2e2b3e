from __future__ import annotations

import pytest

from tests.matrix import world


@pytest.fixture
def small_world(db: None) -> world.World:
    return world.make()
