"""Scenes that are only read, made once for all tests of a module."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from tests.matrix.world import NOW

Scene = TypeVar("Scene")


@contextmanager
def standing(
    blocker: DjangoDbBlocker, make: Callable[[], Scene], now: datetime | None = NOW
) -> Iterator[Scene]:
    """Make a scene at noon in a transaction that is never committed, as setUpTestData does.

    Without ``now`` it is made as long as it takes, by the clock.

    For a fixture of a module that also takes ``django_db_setup``. The transaction of each test is
    a savepoint inside: what a test writes is taken back as ever, and sequences go on, so that no
    version is seen twice. All tests share the objects: whoever changes one reads it anew first.
    Nobody else sees the scene: a module that stands on one has no test with ``real_commits``.
    """
    block = transaction.atomic()
    block._from_testcase = True  # else what insists on the outermost transaction would refuse
    with blocker.unblock():
        block.__enter__()
    try:
        with blocker.unblock(), pytest.MonkeyPatch.context() as patch:
            if now:
                patch.setattr(timezone, "now", lambda: now)
            scene = make()
        yield scene
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            block.__exit__(None, None, None)
