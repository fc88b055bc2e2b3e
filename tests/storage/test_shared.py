"""The shared XRootD servers: one that crashes in the middle of a test fails no test."""

from __future__ import annotations

import pytest

from tests.storage.conftest import Pair, have_crashed

TRIES: list[Pair] = []


@pytest.mark.filterwarnings("ignore:.*had crashed; started again")
def test_a_test_is_tried_again_if_its_server_crashed_meanwhile(plain: Pair) -> None:
    TRIES.append(plain)
    if len(TRIES) == 1:
        plain.source.kill()
        assert have_crashed()
        pytest.fail("the server crashed")
    assert len(TRIES) == 2
    assert not have_crashed()
