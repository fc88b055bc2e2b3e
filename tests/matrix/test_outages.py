"""Outages of links and of endpoints, in histories made by hand and in any others."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matrix.statistics.levels import outages
from matrix.statistics.levels.before_since import DAY, HOUR
from matrix.statistics.levels.outages import LinkTests, OutageRow
from matrix.statistics.samples.newest import NewestTests
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import DAY_MS, NEVER, Run
from tests.matrix.samples import Sample
from tests.properties import examples

# Tests start at whole multiples of this many ms from here on: some days hold several, some none.
STEP = 5 * HOUR
START = 20_000 * DAY
RATE = 1e6


def sample(source: int, destination: int, step: int, ok: bool) -> Sample:
    return Sample(source, destination, RATE if ok else None, start=START + step * STEP)


def history(source: int, destination: int, outcomes: str, first: int = 0) -> list[Sample]:
    """Return a test at each step: `.` for a success, `x` for a failure, a blank for none."""
    return [
        sample(source, destination, first + step, letter == ".")
        for step, letter in enumerate(outcomes)
        if letter != " "
    ]


def runs_of(samples: Iterable[Sample]) -> list[Run]:
    """Return a run with offsets for each day."""
    ordered = sorted(samples, key=lambda one: (one.start // DAY_MS, one.key))
    runs = []
    for day, of_day in groupby(ordered, key=lambda one: one.start // DAY_MS):
        every = list(of_day)
        keys = np.array([one.key for one in every], dtype=np.uint64)
        offsets = np.array([one.start - day * DAY_MS for one in every], dtype=np.uint32)
        links = np.unique((keys >> np.uint64(32)).astype(np.uint32))
        nothing = np.empty(0, np.int64)
        runs.append(Run(keys, links, nothing, offsets=offsets, start=day * DAY_MS))
    return runs


def links_of(samples: Iterable[Sample]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.unique(np.array([one.key >> 32 for one in samples], dtype=np.uint32))


def of_links(samples: Sequence[Sample]) -> list[OutageRow]:
    """Return the outages of links, with the link as keys have it in the place of its number."""
    runs = runs_of(samples)
    tests = LinkTests.of(runs, outages.out_of(runs, links_of(samples)))
    rows = outages.of_links(tests).rows()
    return [row._replace(owner=int(tests.links[row.owner])) for row in rows]


def of_ends(samples: Sequence[Sample], shift: int) -> list[OutageRow]:
    """Return the outages of sources (shift 16) or of destinations (shift 0)."""
    runs, links = runs_of(samples), links_of(samples)
    tests = LinkTests.of(runs, outages.out_of(runs, links))
    single = outages.of_links(tests)
    ends = (tests.links >> shift & 0xFFFF).astype(np.int64)
    tested = np.bincount(links >> shift & 0xFFFF)
    return [outage.row for outage in outages.of_ends(single, tests, ends, tested)]


def in_steps(row: OutageRow) -> dict[str, int | None]:
    """Return a row with its times in steps; None for a time that there is not."""
    names = ("last_ok", "began", "newest", "ended")
    times = {name: getattr(row, name) for name in names}
    steps = {
        name: None if value in (0, NEVER) else (value - START) // STEP
        for name, value in times.items()
    }
    return row._asdict() | steps


def test_three_failures_in_a_row_are_an_outage_until_the_next_success():
    (row,) = of_links(history(3, 4, "..xxx x."))
    assert in_steps(row) == {
        "owner": 3 << 16 | 4,
        "last_ok": 1,
        "began": 2,
        "newest": 6,
        "ended": 7,
        "tests": 4,
        "links": 1,
    }


def test_two_failures_and_scattered_ones_are_none():
    assert of_links(history(3, 4, "..xx.x.x.x.xx.xx")) == []
    # Nor are those of two links, one behind the other.
    assert of_links(history(3, 4, "...xx") + history(3, 5, "xx...")) == []


def test_one_that_lasts_has_no_end_and_one_before_any_success_no_last_success():
    (row,) = of_links(history(3, 4, "xxx"))
    assert (row.last_ok, row.ended) == (0, NEVER)
    first, second = of_links(history(3, 4, "xxxx..xxx"))
    assert (first.last_ok, in_steps(first)["ended"]) == (0, 4)
    assert (in_steps(second)["last_ok"], second.ended) == (5, NEVER)


def test_a_failure_that_starts_with_a_success_does_not_count():
    both = [sample(3, 4, 2, ok=False), sample(3, 4, 2, ok=True)]
    assert of_links([*history(3, 4, "xx"), *both]) == []
    assert of_links([*both, *history(3, 4, "xx", first=3)]) == []
    (row,) = of_links([*history(3, 4, "xxx"), sample(3, 4, 3, ok=False), sample(3, 4, 3, ok=True)])
    assert (row.tests, in_steps(row)["newest"], in_steps(row)["ended"]) == (3, 2, 3)


def into(destination: int, *outcomes: str) -> list[Sample]:
    """Return histories of the links from sources 1, 2, 3... to a destination."""
    return [
        one
        for source, text in enumerate(outcomes, start=1)
        for one in history(source, destination, text)
    ]


def test_a_destination_is_out_while_half_of_its_links_are():
    samples = into(9, "...xxxx...", "..xxxxxx..", "...xxxxxx.", "..........", "..........")
    (row,) = of_ends(samples, 0)
    # From when none of the three succeeds any more, until the success that leaves fewer.
    assert in_steps(row) == {
        "owner": 9,
        "last_ok": 2,
        "began": 3,
        "newest": 6,
        "ended": 7,
        "tests": 12,
        "links": 3,
    }
    # Of seven links, three are not half.
    assert of_ends([*samples, *history(6, 9, "..."), *history(7, 9, "...")], 0) == []
    assert len(of_ends([*samples, *history(6, 9, "...")], 0)) == 1
    # Nobody's sending fails.
    assert of_ends(samples, 16) == []


def test_two_links_are_no_endpoint():
    assert of_ends(into(9, "..xxxx", "..xxxx"), 0) == []
    assert len(of_ends(into(9, "..xxxx", "..xxxx", "..xxxx"), 0)) == 1


def test_a_link_that_was_dead_before_does_not_date_an_outage():
    samples = into(9, ".xxxxxxxxxxx", ".....xxxxxxx", "......xxxxx.", "....... xxxx")
    (row,) = of_ends(samples, 0)
    steps = in_steps(row)
    # The last success of the three that are out first, and what failed first after it.
    assert (steps["last_ok"], steps["began"], steps["ended"]) == (5, 6, None)
    assert row.links == 4


def test_an_outage_begins_after_the_one_before_it_ended():
    # The first recovers at 6: two are left, until a fourth joins them, whose last success is old.
    samples = into(9, "..xxxx....", "..xxxxxxxx", "..xxxxxxxx", ".      xxx")
    first, second = (in_steps(row) for row in of_ends(samples, 0))
    assert (first["began"], first["ended"]) == (2, 6)
    assert (second["last_ok"], second["began"], second["ended"]) == (6, 7, None)


def test_a_source_and_its_destinations_may_both_be_out():
    pairs = [(source, destination) for source in (1, 2, 3) for destination in (7, 8, 9)]
    samples = [one for pair in pairs for one in history(*pair, "..xxx")]
    assert {row.owner for row in of_ends(samples, 16)} == {1, 2, 3}
    assert {row.owner for row in of_ends(samples, 0)} == {7, 8, 9}


SAMPLES = st.lists(
    st.builds(
        sample,
        st.integers(1, 5),
        st.integers(6, 9),
        st.integers(0, 12),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=150,
)


def plainly(samples: Iterable[Sample]) -> list[OutageRow]:
    """Go through the tests of each link one by one."""
    rows = []
    for link, of_link in groupby(sorted(samples, key=by_link), key=lambda one: one.key >> 32):
        last_ok, failures = 0, []
        for start, at_once in groupby(of_link, key=lambda one: one.start):
            rates = [one.rate for one in at_once]
            if any(rates):
                rows.append(OutageRow(link, last_ok, *ends_of(failures), start, len(failures), 1))
                last_ok, failures = start, []
            else:
                failures += [start] * len(rates)
        rows.append(OutageRow(link, last_ok, *ends_of(failures), NEVER, len(failures), 1))
    return [row for row in rows if row.tests >= 3]


def by_link(one: Sample) -> tuple[int, int]:
    return one.key >> 32, one.start


def ends_of(failures: list[int]) -> tuple[int, int]:
    return (failures[0], failures[-1]) if failures else (0, 0)


@given(SAMPLES)
def test_any_history_has_the_outages_that_going_through_it_finds(samples: list[Sample]):
    assert of_links(samples) == plainly(samples)


@given(SAMPLES)
def test_what_lasts_is_what_is_failing(samples: list[Sample]):
    numbering = Numbering(np.arange(1, 10))
    newest = NewestTests.of(reversed(runs_of(samples)), numbering)
    links = links_of(samples)
    number = numbering.numbers(links)
    streak, since = newest.streak[number].tolist(), newest.since[number].tolist()
    failing = {
        link: (count, began)
        for link, count, began in zip(links.tolist(), streak, since, strict=True)
        if count >= 3
    }
    rows = of_links(samples)
    assert {row.owner: (row.tests, row.began) for row in rows if row.ended == NEVER} == failing


def plainly_of_end(samples: list[Sample], shift: int) -> list[dict[str, Any]]:
    """Look at each endpoint at each step, for as long as there are tests."""
    rows = []
    for end in range(1, 10):
        links = {one.key >> 32 for one in samples if one.key >> 32 + shift & 0xFFFF == end}
        own = [row for row in plainly(samples) if row.owner in links]
        before = 0
        stretch: list[int] = []
        for time in range(START, START + 14 * STEP, STEP):
            out = [row for row in own if row.began <= time < row.ended]
            if len(out) >= 3 and 2 * len(out) >= len(links):
                stretch.append(time)
            elif stretch:
                rows.append(plain_row(end, own, samples, stretch, (before, time)))
                before, stretch = time, []
        if stretch:
            rows.append(plain_row(end, own, samples, stretch, (before, NEVER)))
    return rows


def plain_row(
    end: int,
    own: list[OutageRow],
    samples: list[Sample],
    stretch: list[int],
    between: tuple[int, int],
) -> dict[str, Any]:
    before, ended = between
    out = [row for row in own if row.began <= stretch[0] < row.ended]
    last_ok = max(before, *(row.last_ok for row in out))
    began = min(row.began for row in out if row.began > last_ok)
    failures = [
        one.start
        for row in own
        for one in samples
        if one.key >> 32 == row.owner
        and one.rate is None
        and max(row.began, began) <= one.start < min(row.ended, ended)
    ]
    at_once = [sum(row.began <= time < row.ended for row in own) for time in stretch]
    return {
        "owner": end,
        "last_ok": last_ok,
        "began": began,
        "newest": max(failures),
        "ended": ended,
        "tests": len(failures),
        "links": max(at_once),
    }


@examples(300)
@given(SAMPLES, st.sampled_from([0, 16]))
def test_any_endpoint_is_out_when_looking_at_each_moment_says_so(samples: list[Sample], shift: int):
    rows = of_ends(samples, shift)
    assert [row._asdict() for row in rows] == plainly_of_end(samples, shift)
    for row in rows:
        assert row.last_ok < row.began <= row.newest < row.ended
