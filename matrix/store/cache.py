"""What a process keeps of what is dear: each answer is built once for all who ask for it."""

from collections.abc import Callable, Hashable
from operator import attrgetter
from threading import Condition
from typing import Any, Generic, TypeVar

from cachetools import Cache, LRUCache, TTLCache, cached
from django.conf import settings

T = TypeVar("T")
# The version of an answer has the minute in it: after some of them nobody asks for it again.
SECONDS_KEPT = 300


class Kept(Generic[T]):
    """Answers by key, as many and for as long as the cache that holds them. Safe for threads.

    One thread builds an answer. Those that want the same meanwhile wait for it, and those that
    want another one do not. What is kept is shared: nobody may change it.
    """

    def __init__(self, cache: Cache[Hashable, T]) -> None:
        self._cache = cache
        self._condition = Condition()

        @cached(cache, key=lambda key, build: key, condition=self._condition)
        def get(key: Hashable, build: Callable[[], T]) -> T:
            """Return the answer for a key, built now unless it is kept."""
            return build()

        self.get = get

    def __contains__(self, key: Hashable) -> bool:
        with self._condition:
            return key in self._cache

    def forget(self) -> None:
        with self._condition:
            self._cache.clear()


def answers_up_to(megabytes: int) -> Kept[Any]:
    """Return a place for answers of several kinds, whose keys begin with the kind.

    An answer says in ``nbytes`` how much memory it takes. What was used longest ago goes first;
    what is larger than all of it is not kept.
    """
    return Kept(TTLCache(megabytes * 2**20, SECONDS_KEPT, getsizeof=attrgetter("nbytes")))


ANSWERS = answers_up_to(settings.SONAR_RESPONSE_CACHE_MB)
# What is made of whole days holds for a day: nothing of it goes for its age.
STANDINGS: Kept[Any] = Kept(
    LRUCache(settings.SONAR_BASELINE_CACHE_MB * 2**20, getsizeof=attrgetter("nbytes"))
)
