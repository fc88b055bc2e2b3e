"""Rows, columns and cells laid out around links, against going through the links one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.query.catalogue import EXTRAS
from matrix.statistics.cells.axes import Axis, LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame
from matrix.statistics.cells.standing import Standings
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    UNTESTED,
)
from matrix.statistics.samples import reduce
from tests.matrix.grids import endpoint_info
from tests.matrix.samples import Sample, run_of

# Not in the order of their names, and with gaps between the ids.
PLACES = tuple(
    endpoint_info(number, name, site=site, cloud=cloud, tier=tier, country="GB", label="DATADISK")
    for number, name, site, cloud, tier in [
        (3, "ral_disk", "RAL", "UK", 1),
        (4, "Glasgow_disk", "Glasgow", "UK", 2),
        (9, "DESY_disk", "DESY", "DE", 2),
        (700, "desy_scratch", "DESY", "DE", 2),
        (65_535, "Zeuthen_disk", "Zeuthen", "", 2),
    ]
)
LINKS = LinkIndex(PLACES)
COUNT = len(PLACES)
SQUARE = (COUNT, COUNT)
MOMENT = 1_000_000.0
HOUR = 3600

grouping = st.sampled_from(["endpoint", "site", "cloud", "tier"])
flags = st.lists(st.booleans(), min_size=COUNT**2, max_size=COUNT**2)
# No test goes from an endpoint to itself.
link = st.sampled_from([one for one in range(COUNT**2) if one // COUNT != one % COUNT])
# Tests in hours before the moment, and whether they were ok; intervals promised, in seconds.
tests = st.dictionaries(
    link, st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1), max_size=12
)
promises = st.dictionaries(link, st.sampled_from([600, HOUR, 4 * HOUR]))


def square(values: object) -> np.ndarray:
    return np.array(values).reshape(SQUARE)


def laid_out(
    tests: dict[int, list[tuple[int, bool]]],
    promises: dict[int, int],
    down: list[bool],
    groupings: tuple[str, str],
    stat: str = "mean",
) -> tuple[Frame, CellArrays]:
    samples = [
        Sample(
            PLACES[link // COUNT].id,
            PLACES[link % COUNT].id,
            hours * 1e6 if ok else None,
            start=int(MOMENT - hours * HOUR) * 1000,
        )
        for link, some in tests.items()
        for hours, ok in some
    ]
    promise = np.full(COUNT**2, np.inf)
    promise[list(promises)] = list(promises.values())
    runs = [run_of(samples)]
    frame = Frame.around(LINKS, LINKS.numbering.newest(runs), square(promise), groupings)
    extras = [stat] if stat in EXTRAS else []
    reduced = reduce.reduce(runs, frame.pooling, extras)
    return frame, frame.cells(
        reduced, square(down), stat, MOMENT, standings=Standings.blank(SQUARE)
    )


def judged(tests: list[tuple[int, bool]], shortest: float, up: bool, applicable: bool) -> int:
    if not applicable:
        return NOT_APPLICABLE
    if not up:
        return DOWN
    if any(ok for _, ok in tests):
        newest = min(hours for hours, _ in tests)
        return STALE if newest * HOUR > 2 * shortest else MEASURED
    return FAILED if tests else UNTESTED


@given(tests=tests, promises=promises, down=flags, groupings=st.tuples(grouping, grouping))
def test_a_cell_is_what_all_its_links_are_together(
    tests: dict[int, list[tuple[int, bool]]],
    promises: dict[int, int],
    down: list[bool],
    groupings: tuple[str, str],
) -> None:
    frame, cells = laid_out(tests, promises, down, groupings)
    applicable = tests.keys() | promises.keys()
    rows = {PLACES[link // COUNT].group_name(groupings[0]) for link in applicable}
    columns = {PLACES[link % COUNT].group_name(groupings[1]) for link in applicable}
    assert [group.name for group in frame.rows.groups] == sorted(rows, key=str.casefold)
    assert [group.name for group in frame.columns.groups] == sorted(columns, key=str.casefold)
    for (row, source), (column, destination) in product(
        enumerate(frame.rows.groups), enumerate(frame.columns.groups)
    ):
        links = [
            link
            for link in applicable
            if PLACES[link // COUNT].group_name(groupings[0]) == source.name
            and PLACES[link % COUNT].group_name(groupings[1]) == destination.name
        ]
        here = [one for link in links for one in tests.get(link, [])]
        shortest = min((promises.get(link, np.inf) for link in links), default=np.inf)
        up = any(not down[link] for link in links)
        ok = [hours for hours, was_ok in here if was_ok]
        assert cells.state[row, column] == judged(here, shortest, up, bool(links))
        assert (cells.ok[row, column], cells.failed[row, column]) == (len(ok), len(here) - len(ok))
        last = max((MOMENT - hours * HOUR for hours, _ in here), default=np.nan)
        assert cells.last[row, column] == pytest.approx(last, nan_ok=True)
        mean = np.mean(ok) if ok else np.nan
        assert cells.mean[row, column] == pytest.approx(mean, nan_ok=True)


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        ("mean", 3),
        ("median", 3),
        ("std", 2**0.5),
        ("min", 2),
        ("max", 4),
        ("p95", 3.9),
        ("p99", 3.98),
        ("count", 3),
        ("success", 200 / 3),
        ("last", HOUR),
    ],
)
def test_each_statistic_has_the_unit_of_its_grid(stat: str, expected: float) -> None:
    tests = {1: [(2, True), (4, True), (1, False)]}
    _, cells = laid_out(tests, {}, [False] * COUNT**2, ("endpoint", "endpoint"), stat)
    assert cells.value[0, 0] == pytest.approx(expected)


def test_a_cell_without_a_test_has_no_value_for_any_statistic() -> None:
    nothing_down = [False] * COUNT**2
    for stat in ("count", "success", "last", "mean", "p05"):
        _, cells = laid_out({1: [(2, True)]}, {2: 600}, nothing_down, ("site", "site"), stat)
        assert np.isnan(cells.value[0, 0])
        assert not np.isnan(cells.value[0, 1])


def test_when_a_result_started_is_kept_to_the_millisecond() -> None:
    newest = np.zeros(SQUARE, dtype=np.int64)
    newest[0, 1] = 1_795_000_000_123
    frame = Frame.around(LINKS, newest, np.full(SQUARE, np.inf), ("endpoint", "endpoint"))
    reduced = reduce.reduce([], frame.pooling)
    cells = frame.cells(
        reduced, np.zeros(SQUARE, dtype=bool), "mean", 1.9e9, standings=Standings.blank(SQUARE)
    )
    assert cells.last.tolist() == [[1_795_000_000.123]]


def test_a_group_has_what_its_shown_endpoints_share() -> None:
    shown = np.array([False, False, True, True, True])
    desy, zeuthen = Axis.along(PLACES, shown, "site").groups
    assert (desy.site, desy.cloud, desy.tier, desy.label) == ("DESY", "DE", 2, "DATADISK")
    assert (zeuthen.site, zeuthen.cloud) == ("Zeuthen", "")
    (tier,) = Axis.along(PLACES, shown, "tier").groups
    assert (tier.name, tier.tier, tier.site, tier.cloud) == ("Tier 2", 2, None, None)


def test_a_record_of_an_endpoint_that_is_not_known_yet_goes_where_nothing_is_shown() -> None:
    rows = np.array(
        [(3, 9), (700, 4), (5, 3), (3, 5), (9, 9999)],
        dtype=[("source_id", "i8"), ("destination_id", "i8")],
    )
    assert LINKS.numbers(rows).tolist() == [2, 16, 0, 0, 0]
    assert not LINKS.matching(())[0]
