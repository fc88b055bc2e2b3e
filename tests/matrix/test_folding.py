"""What the judge of a day is given: links by their keys, and tests of the past from a file."""

import gc
import tempfile
import weakref
from typing import Any

import numpy as np
import pytest

from matrix.assessment import folding
from matrix.assessment.folding import DayInputs
from matrix.assessment.inputs import DayTests, Numbered, Registry

DAY_MS = 86_400_000
KEYS = np.array([1 << 16 | 2, 1 << 16 | 3, 2 << 16 | 1, 3 << 16 | 2])
REGISTRY = Registry({1: 7, 2: 7, 3: 9, 4: 9}, {}, [])


def day_of(rng: np.random.Generator, day: int) -> DayTests:
    """Return 40 tests of a day; several start at the same moment, and a quarter fails."""
    link = rng.choice(KEYS, 40).astype(np.uint32)
    started = np.sort(day * DAY_MS + rng.integers(0, 15, 40))
    failed = rng.random(40) < 0.25
    order = np.lexsort((link, started))
    rate = np.where(failed, -1, rng.uniform(1e6, 1e8, 40)).astype(np.float32)
    blamed = np.where(failed, rng.integers(0, 3, 40), 0).astype(np.uint8)
    return DayTests(link[order], started, rate, blamed)


def test_tests_from_a_file_are_those_in_memory(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(4)
    days = [day_of(rng, day) for day in range(28)]
    numbered = Numbered.of_links(KEYS, REGISTRY)
    in_memory, count = folding.stored(numbered, days)
    monkeypatch.setattr(folding, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(folding, "SPOOLED_AT_ONCE", 150)
    from_file, none = folding.stored(numbered, days)
    assert (count, none) == (28 * 40, 0)
    for links in ([0, 1, 2, 3], [1], [0, 3], []):
        chosen = np.isin(np.arange(4), links)
        pairs = zip(from_file(chosen).columns, in_memory(chosen).columns, strict=True)
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def test_a_file_takes_little_memory_for_each_link():
    """Where its tests are, whatever the number of days."""
    numbered = Numbered.of_links(KEYS, REGISTRY)
    with tempfile.TemporaryFile() as written:
        for day in range(28):
            tests = day_of(np.random.default_rng(day), day)
            written.write(folding.spooled(numbered, tests).tobytes())
        spool = folding.Spool.of(written, len(KEYS))
    assert sum(each.nbytes for each in spool.stretches) == 16 * len(KEYS)


def test_what_is_kept_of_a_day_is_freed_with_it(monkeypatch: pytest.MonkeyPatch):
    """Of a million links that is half a gigabyte, which the next day needs."""
    of_days = []
    make = folding.KnownDay.of

    def noted(*inputs: Any) -> folding.KnownDay:
        known_day = make(*inputs)
        of_days.append(weakref.ref(known_day))
        return known_day

    monkeypatch.setattr(folding.KnownDay, "of", noted)
    days = [day_of(np.random.default_rng(day), day) for day in range(29)]
    begin = 28 * DAY_MS
    gc.disable()
    try:
        links = KEYS.astype(np.int64)
        day = DayInputs(lambda: iter(days[:28]), links, days[28], begin, begin + DAY_MS, REGISTRY)
        folding.judge_day(day, [])
        assert [each() for each in of_days] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([5, 9], [2, 5, 9]),
        ([], [2, 5, 9]),
        ([7, 1, 7, 12, 2], [1, 2, 5, 7, 9, 12]),
    ],
)
def test_links_with_more_are_in_order_and_each_once(more: list[int], expected: list[int]):
    assert folding.with_more(np.array([2, 5, 9]), np.array(more, np.int64)).tolist() == expected
    nothing = np.empty(0, np.int64)
    assert folding.with_more(nothing, np.array(more, np.int64)).tolist() == sorted({*more})


def test_links_without_news_are_not_sorted_again():
    keys = np.array([2, 5, 9])
    assert folding.with_more(keys, np.array([9, 9, 2])) is keys


def test_places_of_links_are_found_by_their_keys():
    numbered = Numbered.of_links(KEYS, REGISTRY)
    keys = [3 << 16 | 2, 1 << 16 | 4, 1 << 16 | 2, 9 << 16 | 9]
    assert numbered.places(keys) == [3, -1, 0, -1]
    assert numbered.places([]) == []
    nothing = Numbered.of_links(np.empty(0, np.int64), REGISTRY)
    assert nothing.places(keys) == [-1, -1, -1, -1]
