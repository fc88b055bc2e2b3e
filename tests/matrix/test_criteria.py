"""When links pass and lose criteria, against a computation that looks at one hour after another."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matrix.statistics.levels.criteria import HOUR_MS, HourSums, JudgedHours, LinkCriteria
from matrix.statistics.samples.run import Run
from sonar.results import segments
from tests.properties import examples

START = 20_000 * 24 * HOUR_MS
HOURS = 40


@dataclass(frozen=True)
class Sample:
    hour: int
    rate: float | None
    size: int = 100


@dataclass
class OneByOne:
    """The same rules as docs/commissioning.md has them, in plain Python for one link."""

    tests: list[Sample]
    down: set[int]
    criteria: LinkCriteria
    low: list[int] = field(default_factory=list)

    def passages(self) -> list[tuple[int, int | None]]:
        found: list[tuple[int, int | None]] = []
        period = self.criteria.period
        for hour in range(period - 1, HOURS):
            window = [
                test
                for test in self.tests
                if hour - period < test.hour <= hour and test.hour not in self.down
            ]
            lasts = bool(found) and found[-1][1] is None
            if len(window) < self.criteria.tests:
                continue
            if self.reached(window):
                self.low = []
                moved = sum(test.size for test in window if test.rate)
                if not lasts and moved >= self.criteria.volume:
                    found.append((hour, None))
            elif hour not in self.down:
                self.low.append(hour)
                counted = [each for each in self.low if each > hour - 2 * period]
                if lasts and len(counted) >= period:
                    found[-1] = found[-1][0], hour
        return found

    def reached(self, window: list[Sample]) -> bool:
        done = [test for test in window if test.rate]
        seconds = sum(round(test.size / test.rate * 1e6) for test in done if test.rate)
        is_fast = bool(seconds) and sum(test.size for test in done) * 1e6 >= (
            self.criteria.rate * seconds
        )
        enough = len(done) * 100.0 >= self.criteria.success * len(window)
        return enough and (is_fast or not self.criteria.rate)


def run_of(links: dict[int, list[Sample]]) -> Run:
    """Return the results of links as a run with offsets and sizes."""
    rows = [(link, test) for link, tests in links.items() for test in tests]
    rates = np.array([test.rate or -1 for _, test in rows], dtype=np.float32)
    keys = np.array([link for link, _ in rows], dtype=np.uint64) << np.uint64(32)
    keys |= rates.view(np.uint32)
    offsets = np.array([test.hour * HOUR_MS + 1 for _, test in rows], dtype=np.uint32)
    sizes = np.array([test.size for _, test in rows], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    keys, offsets = keys[order], offsets[order]
    newest, lasts = segments.newest(keys, offsets)
    return Run(
        keys,
        newest,
        lasts.astype(np.int64) + START,
        sizes=sizes[order],
        offsets=offsets,
        start=START,
    )


# Two slow hours, further apart than two periods of two hours.
APART = [Sample(0, 16.0), Sample(1, 16.0), Sample(6, 1.0), Sample(11, 1.0)]
tests_of = st.lists(
    st.builds(Sample, st.integers(0, HOURS - 1), st.sampled_from([None, 1.0, 4.0, 16.0])),
    min_size=8,
    max_size=120,
)
criteria_of = st.builds(
    LinkCriteria,
    period=st.integers(1, 8),
    tests=st.integers(1, 4),
    rate=st.sampled_from([0.0, 3.0, 8.0]),
    success=st.sampled_from([0.0, 50.0, 90.0]),
    volume=st.sampled_from([0, 600]),
)
hours_down = st.sets(st.integers(0, HOURS - 1), max_size=10)


@pytest.mark.long
@given(st.lists(st.tuples(tests_of, hours_down), min_size=1, max_size=3), criteria_of)
@example([(APART, {7, 12})], LinkCriteria(2, 1, 3.0, 0.0, 0))
@examples(200)
def test_links_pass_and_lose_it_at_the_hours_that_one_look_after_another_finds(links, criteria):
    keys = np.arange(1, len(links) + 1, dtype=np.uint32) << np.uint32(16)
    results = run_of({int(key): tests for key, (tests, _) in zip(keys, links, strict=True)})
    down = np.zeros((len(links), HOURS), dtype=bool)
    for place, (_, hours) in enumerate(links):
        down[place, list(hours)] = True
    judged = JudgedHours.of(HourSums.of([results], keys, START, HOURS), down, criteria)
    found = sorted(judged.passages(np.zeros(len(links), dtype=bool), 0))
    assert found == [
        (place, *passage)
        for place, (tests, hours) in enumerate(links)
        for passage in OneByOne(tests, hours, criteria).passages()
    ]
    # What is found from a later hour on goes on with what had passed by then.
    first = HOURS // 2
    passed = [
        any(
            link == place and start < first and (end is None or end >= first)
            for link, start, end in found
        )
        for place in range(len(links))
    ]
    assert sorted(
        (link, start, end)
        for link, start, end in judged.passages(np.array(passed), first)
        if start is not None
    ) == [each for each in found if each[1] >= first]
