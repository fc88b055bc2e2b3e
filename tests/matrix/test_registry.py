"""Registry and schedule are read once for each version of them, and never out of date."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from cachetools import LRUCache
from django.db import connection, transaction
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.store import registry
from matrix.store.cache import Kept
from sonar.models import Endpoint, Mesh, Site, Transfer
from sonar.results import sealing
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = pytest.mark.django_db


def places() -> tuple[EndpointInfo, ...]:
    return registry.read_places(registry.read_versions())


def promises(text: str = "") -> Any:
    versions = registry.read_versions()
    links = LinkIndex(registry.read_places(versions))
    return registry.read_promises(MatrixQuery.from_params(QueryDict(text)), links, versions)


def statements(do: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        do()
    return len(captured)


def test_places_are_read_again_only_after_a_change_of_the_registry(small_world):
    first = places()
    assert statements(places) == 1
    assert places() is first
    small_world.ral.label = "TAPE"
    small_world.ral.save()
    assert [place.label for place in places()] == ["TAPE", "DATADISK", "DATADISK", "SCRATCHDISK"]


def test_promises_are_remembered_by_what_was_asked(small_world):
    everything = promises()
    assert not everything.flags.writeable
    assert np.isfinite(everything).sum() == 12
    # The form, the versions.
    assert statements(promises) == 2
    assert promises("stat=max&source_site=RAL") is everything
    assert not np.isfinite(promises("size=small")).any()
    assert not np.isfinite(promises("streams=4")).any()
    assert not np.isfinite(promises("origin=production")).any()
    assert not np.isfinite(promises("mode=push")).any()
    assert (
        np.isfinite(promises("mode=pull")).sum() == np.isfinite(promises("mode=!push")).sum() == 12
    )
    assert not np.isfinite(promises("concurrent=some")).any()
    assert promises() is everything


def test_promises_follow_the_schedule_as_the_scheduler_does(small_world):
    promises()
    often = Mesh.objects.create(name="often")
    world.schedule(often, (small_world.ral, small_world.desy), every=600)
    assert promises().min() == 600


def test_what_was_rolled_back_is_not_remembered(real_commits):
    world.make()
    before = places()
    with transaction.atomic():
        Endpoint.objects.update(label="NEVER")
        assert {place.label for place in places()} == {"NEVER"}
        transaction.set_rollback(True)
    assert places() == before
    # The counter is again where it was before the rollback.
    Endpoint.objects.update(label="NOW")
    assert {place.label for place in places()} == {"NOW"}


def test_versions_change_with_the_registry_and_nothing_else(small_world):
    before = registry.read_versions()
    world.transfer(small_world.ral, small_world.glasgow, 5.0)
    assert registry.read_versions() == before
    Site.objects.create(name="CERN")
    assert registry.read_versions() != before


def test_a_bounded_number_of_answers_is_remembered():
    asked: list[int] = []
    memory: Kept[int] = Kept(LRUCache(2))

    def square(number: int) -> int:
        def read() -> int:
            asked.append(number)
            return number**2

        return memory.get(number, read)

    assert [square(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 4, 1, 9, 1, 4]
    assert asked == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("text", "lets_pass"),
    [
        ("", True),
        ("origin=test", True),
        ("origin=!test", False),
        ("origin=production", False),
        ("origin=production&origin=test", True),
        ("origin=!production", True),
        ("origin=all", True),
        ("concurrent=none", True),
        ("concurrent=some&concurrent=none", True),
        ("concurrent=!unknown", True),
        ("concurrent=some", False),
        ("concurrent=unknown", False),
        ("concurrent=!none", False),
    ],
)
def test_filters_on_the_origin_and_on_concurrent_tests_let_tests_pass_or_not(
    db, text: str, lets_pass: bool
):
    query = MatrixQuery.from_params(QueryDict(text))
    assert registry.asks_for_tests(query.filters) is lets_pass


def test_the_last_result_is_found_whether_its_hour_is_sealed_dirty_or_was_emptied(small_world):
    assert registry.read_last("large") is None
    old = transfer(small_world.ral, small_world.desy, 1.0, ago=50 * HOUR)
    sealing.seal(NOW)
    assert registry.read_last("large") == old.started_at
    new = transfer(small_world.ral, small_world.desy, 1.0)
    transfer(small_world.ral, small_world.desy, None, state="lost", ago=timedelta(0))
    assert registry.read_last("large") == new.started_at
    Transfer.objects.filter(id=new.id).delete()
    assert registry.read_last("large") == old.started_at
    assert registry.read_last("small") is None
