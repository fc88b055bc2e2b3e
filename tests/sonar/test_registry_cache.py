"""What is made of the registry is made once for a version, by one thread at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sonar.registry import cache as registry_cache
from sonar.registry.cache import RegistryCache
from tests.sonar.world import three_endpoints


@pytest.mark.django_db
def test_it_is_made_again_when_the_registry_has_moved_and_not_before():
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    cache = RegistryCache(make)
    assert cache.last() is None
    assert [cache.read(), cache.read(), cache.last()] == [0, 0, 0]
    three_endpoints()
    assert cache.last() == 0
    assert [cache.read(), cache.read(), cache.last()] == [1, 1, 1]


def test_threads_that_want_it_at_once_wait_for_the_one_that_makes_it(monkeypatch):
    monkeypatch.setattr(registry_cache, "registry_version", lambda: "7.1")
    together, made = threading.Barrier(8), list[int]()

    def make() -> int:
        made.append(1)
        return len(made)

    cache = RegistryCache(make)

    def read(_: int) -> int:
        together.wait(60)
        return cache.read()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(8))) == [1] * 8
    assert made == [1]
