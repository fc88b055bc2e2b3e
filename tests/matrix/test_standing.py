"""How links stand now: numbers as plain SQL and plain loops say them, the rest as conditions do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.table import link_table
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from matrix.store.conditions import MARKS
from sonar.results import sealing
from sonar.results import store as results
from tests.conditions import stored_condition
from tests.matrix import moderated
from tests.matrix.world import HOUR, NOW, World, downtime, transfer, transfers
from tests.properties import examples
from tests.sonar.history import Store

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# What is needed to say it link by link, written without looking at the code: how many tests failed
# since the last success, its newest three successes up to the moment, and those of the 28 whole
# days before the time range, by day.
SQL = """
WITH tests AS (
    SELECT t.source_id, t.destination_id, date_trunc('milliseconds', t.started_at) AS started_at,
        t.state = 'done' AS ok, (t.bytes / t.seconds)::real AS rate
    FROM sonar_transfer t JOIN sonar_profile p ON p.id = t.profile_id
    WHERE t.state <> 'lost' AND t.started_at < %(end)s AND p.purpose <> 'sweep' AND {where}
        AND p.origin = 'test'
        AND t.started_at >= date_trunc('day', %(last)s, 'UTC') - interval '28 days'
), usual AS (
    SELECT t.source_id, t.destination_id,
        array_agg((t.bytes / t.seconds)::real ORDER BY t.started_at) AS usual,
        array_agg(date_trunc('day', t.started_at, 'UTC') ORDER BY t.started_at) AS days
    FROM sonar_transfer t JOIN sonar_profile p ON p.id = t.profile_id
    WHERE t.state = 'done' AND p.purpose <> 'sweep' AND p.origin = 'test' AND {where}
        AND t.started_at >= date_trunc('day', %(start)s, 'UTC') - interval '28 days'
        AND t.started_at < date_trunc('day', %(start)s, 'UTC')
    GROUP BY 1, 2
), latest AS (
    SELECT source_id, destination_id, array_agg(rate ORDER BY started_at, rate) AS rates,
        max(started_at) AS newest
    FROM tests WHERE ok GROUP BY 1, 2
), streaks AS (
    SELECT tests.source_id, tests.destination_id, count(*) AS streak
    FROM tests LEFT JOIN latest USING (source_id, destination_id)
    WHERE NOT ok AND (newest IS NULL OR started_at > newest) GROUP BY 1, 2
)
SELECT s.name, d.name, coalesce(streak, 0), coalesce(rates, '{{}}'), coalesce(usual, '{{}}'),
    coalesce(days, '{{}}')
FROM latest FULL JOIN streaks USING (source_id, destination_id)
    FULL JOIN usual USING (source_id, destination_id)
    JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_endpoint d ON d.id = destination_id
"""
FILTERS = {"": "true", "streams=4": "p.streams = 4", "mover=!xrootd": "p.mover <> 'xrootd'"}
# What tests of a link have of the rate that it had before, on average; None fails.
FACTORS = st.sampled_from([1.0, 0.3, 0.3, 0.62, 0.7, 1.45, 1.6, 4.0, None])
HISTORIES = st.lists(
    st.tuples(
        st.integers(0, 11),  # the link
        st.sampled_from([0, 4, 5, 6, 30]),  # so many tests from 36 to 8 days ago
        st.lists(st.tuples(FACTORS, st.integers(1, 4)), max_size=4),  # and then, every three hours
        st.sampled_from([0.02, 0.2]),  # how they scatter
        st.integers(0, 2**16),
    ),
    min_size=1,
    max_size=10,
)
# A type, the places of source and destination (none: all), whether it is confirmed, and its end.
CONDITIONS = st.tuples(
    st.sampled_from(["failing", "silent", "slow", "fast"]),
    *[st.none() | st.integers(0, 3)] * 2,
    st.booleans(),
    st.sampled_from([None, None, 20 * HOUR]),
)
WINDOWS = st.sampled_from(
    ["window=1h", "window=24h", "window=7d", "from=2026-11-12T00:00:00Z&to=2026-11-18T09:30:00Z"]
)


def fill(store: Store, histories: list[tuple[Any, ...]]) -> None:
    """Store tests; a factor of None is a failure."""
    tests = []
    for link, number, stretches, scatter, seed in histories:
        random = np.random.default_rng(seed)
        factors = [factor for factor, count in stretches for _ in range(count)]
        ages = [*random.uniform(7.9, 36.1, number), *(np.arange(len(factors), 0, -1) * 0.125)]
        for age, factor in zip(ages, [1.0] * number + factors, strict=True):
            moment = NOW - timedelta(milliseconds=int(age * 86_400_000))
            made = store.result(moment, "done" if factor else "failed", link)
            seconds = 100 / (factor or 1) * float(random.lognormal(0, scatter))
            tests.append(replace(made, seconds=seconds))
    results.make_months([test.started_at for test in tests])
    results.store(tests)


@dataclass
class Stands:
    """What SQL says of a link."""

    streak: int = 0
    rates: Sequence[float] = ()
    usual_rates: Sequence[float] = ()
    days: Sequence[datetime] = ()

    @property
    def now(self) -> float:
        return float(np.median(self.rates[-3:])) if len(self.rates) >= 3 else np.nan

    @property
    def usual(self) -> float:
        return float(np.median(self.usual_rates)) if len(self.usual_rates) >= 5 else np.nan

    def scatter(self) -> tuple[float, float]:
        return moderated.in_a_row(self.usual_rates, self.days)

    def bounds(self, known: moderated.Prior) -> tuple[float, float]:
        tests = 3, len(self.usual_rates)
        expected = moderated.of_scatter(self.now / self.usual, tests, *self.scatter(), known)
        return expected.low, expected.high


def in_sql(query: MatrixQuery, where: str) -> dict[tuple[str, str], Stands]:
    window = query.window_at(NOW)
    end = min(window.end, NOW.replace(second=0) + timedelta(minutes=1))
    times = {"start": window.start, "end": end, "last": end - timedelta(milliseconds=1)}
    with connection.cursor() as cursor:
        cursor.execute(SQL.format(where=where), times)
        return {row[:2]: Stands(*row[2:]) for row in cursor.fetchall()}


def of_cells(answer: Grid) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    cells = answer.cells
    for at in np.argwhere(cells.state != STATES.index("not_applicable")).tolist():
        row, column = at
        names = "state", "level", "now", "usual", "streak", "since", "ok", "failed", "partly"
        names = (*names, "ratio_low", "ratio_high", "unconfirmed", "condition")
        values = {name: getattr(cells, name)[row, column] for name in names}
        yield (answer.sources[row].name, answer.destinations[column].name), values


def same(rate: float, bytes_per_second: float) -> bool:
    return rate * 1e6 == pytest.approx(bytes_per_second, rel=3e-7, nan_ok=True)


@pytest.mark.long
@examples(50)
@given(histories=HISTORIES, text=st.tuples(WINDOWS, st.sampled_from(list(FILTERS))))
def test_any_history_has_the_numbers_that_sql_finds(small_world, histories, text):
    with transaction.atomic():
        fill(Store(small_world.endpoints, sweeps=True), histories)
        sealing.seal(NOW)
        window, filters = text
        query = MatrixQuery.from_params(QueryDict(f"{window}&{filters}".strip("&")))
        expected = in_sql(query, FILTERS[filters])
        known = moderated.prior_of(
            [link.scatter() for link in expected.values() if not np.isnan(link.usual)]
        )
        for link, cell in of_cells(grid.build(query, NOW)):
            true = expected.get(link, Stands())
            has_both = not np.isnan(true.now / true.usual)
            has_tests = cell["ok"] + cell["failed"] > 0
            is_usual = has_both and has_tests and true.streak < 3
            assert LEVELS[cell["level"]] == ("usual" if is_usual else "unknown"), (link, true)
            assert np.isnan(cell["now"]) == np.isnan(cell["usual"]) == (not has_both & has_tests)
            if has_both and has_tests:
                assert same(cell["now"], true.now)
                assert same(cell["usual"], true.usual)
                bounds = cell["ratio_low"], cell["ratio_high"]
                assert bounds == pytest.approx(true.bounds(known), rel=1e-4)
            tests = cell["ok"] + cell["failed"]
            part = cell["ok"] > 0 and cell["failed"] > 0 and cell["failed"] >= 0.1 * tests
            assert cell["partly"] == part
            assert (cell["streak"], cell["condition"], cell["unconfirmed"]) == (0, 0, 0)
        transaction.set_rollback(True)


@examples(40)
@given(histories=HISTORIES, window=WINDOWS, stored=st.lists(CONDITIONS, max_size=4, unique_by=str))
def test_matrix_and_table_of_links_judge_alike(small_world, histories, window, stored):
    with transaction.atomic():
        fill(Store(small_world.endpoints, sweeps=True), histories)
        for type_, source, destination, confirmed, ended in stored:
            ends = [
                None if end is None else small_world.endpoints[end] for end in (source, destination)
            ]
            stored_condition(
                type_, source=ends[0], destination=ends[1], since=30 * HOUR,
                ended=ended, confirmed=confirmed,
            )  # fmt: skip
        query = MatrixQuery.from_params(QueryDict(window))
        table = link_table.build(query, NOW)
        columns = table.of_class("large")
        links = zip(table.column("source"), table.column("destination"), strict=True)
        at = {link: row for row, link in enumerate(links)}
        for link, cell in of_cells(grid.build(query, NOW)):
            row = at[link]
            for name in ("state", "level", "streak", "unconfirmed", "condition"):
                assert columns[name][row] == cell[name], (link, name)
            assert columns["since"][row] == pytest.approx(cell["since"], nan_ok=True)
        transaction.set_rollback(True)


def hourly(world_: World, *, rates: list[float | None], until: timedelta = HOUR) -> None:
    """Store one test an hour, the last of them ``until`` ago."""
    with transfers() as some:
        for back, rate in enumerate(reversed(rates)):
            some.add(world_.ral, world_.glasgow, rate, ago=until + back * HOUR)


def cell_of(query: str = "") -> dict[str, Any]:
    answer = grid.build(MatrixQuery.from_params(QueryDict(query)), NOW)
    return dict(of_cells(answer))["RAL_DATADISK", "Glasgow_DATADISK"]


def before_the_window(small_world: World) -> None:
    with transfers() as some:
        for day in range(8, 20):
            some.add(small_world.ral, small_world.glasgow, 10.0 + day % 3, ago=day * DAY)


def marks_of(cell: dict[str, Any]) -> tuple[str, str, str, float, int]:
    since = cell["since"] if np.isnan(cell["since"]) else (NOW.timestamp() - cell["since"]) / 3600
    words = STATES[cell["state"]], LEVELS[cell["level"]], MARKS[cell["unconfirmed"]]
    return *words, pytest.approx(since, nan_ok=True), int(cell["condition"])


@pytest.mark.parametrize(
    ("type_", "confirmed", "expected"),
    [
        ("failing", True, ("failing", "unknown", "", 30.0)),
        ("silent", True, ("measured", "silent", "", 30.0)),
        ("slow", True, ("measured", "slower", "", 30.0)),
        ("fast", True, ("measured", "faster", "", 30.0)),
        # What is not confirmed makes no state and no level, but the link is not as usual either.
        ("failing", False, ("measured", "unknown", "failing", np.nan)),
        ("slow", False, ("measured", "unknown", "slow", np.nan)),
    ],
)
@pytest.mark.parametrize("window", ["window=24h", "window=7d", "window=7d&streams=!2"])
def test_a_member_of_a_condition_is_what_that_says(small_world, type_, confirmed, expected, window):
    before_the_window(small_world)
    hourly(small_world, rates=[9.0] * 5)
    kind = stored_condition(type_, source=small_world.ral, since=30 * HOUR, confirmed=confirmed)
    assert marks_of(cell_of(window)) == (*expected, kind.id)
    earlier = "from=2026-11-12T00:00:00Z&to=2026-11-19T00:00:00Z"
    assert marks_of(cell_of(earlier))[-1] == 0


def test_without_a_test_in_the_window_a_link_is_what_its_condition_says_but_not_as_usual(
    small_world,
):
    before_the_window(small_world)
    hourly(small_world, rates=[9.0] * 5, until=2 * HOUR)
    assert marks_of(cell_of("window=1h"))[:2] == ("untested", "unknown")
    slow = stored_condition("slow", source=small_world.ral)
    assert marks_of(cell_of("window=1h")) == ("untested", "slower", "", 6.0, slow.id)


def test_a_failing_link_has_as_many_failures_as_came_since_its_last_success(small_world):
    stored_condition(source=small_world.ral, since=50 * HOUR)
    hourly(small_world, rates=[5.0, 5.0, *[None] * 40])
    assert cell_of("window=6h")["streak"] == 40
    assert cell_of("window=6h")["since"] == (NOW - 50 * HOUR).timestamp()


def test_the_usual_rate_of_a_member_is_that_before_its_condition(small_world):
    before_the_window(small_world)
    hourly(small_world, rates=[4.4] * 5)
    before = cell_of()
    assert (before["usual"], before["now"]) == (pytest.approx(11.0), pytest.approx(4.4))
    stored_condition("slow", source=small_world.ral, since=500 * HOUR, baseline=44e6)
    cell = cell_of()
    assert (cell["usual"], cell["now"]) == (44.0, pytest.approx(4.4))
    for bound in ("ratio_low", "ratio_high"):
        assert cell[bound] == pytest.approx(before[bound] / 4, rel=1e-6)
    # It is of all tests, and so says nothing of some of them.
    assert cell_of("streams=!2")["usual"] == pytest.approx(11.0)


def test_a_range_that_ended_a_minute_ago_is_as_of_now(small_world):
    hourly(small_world, rates=[9.0] * 5)
    stored_condition("slow", source=small_world.ral, since=timedelta(seconds=20))
    texts = [
        f"from=2026-11-19T00:00:00Z&to=2026-11-20T{end}Z"
        for end in ("12:00:30", "12:00:29", "11:59:30", "11:58:00")
    ]
    assert [LEVELS[cell_of(text)["level"]] for text in texts] == ["slower"] * 3 + ["unknown"]


def test_too_few_earlier_tests_say_nothing_of_what_is_usual(small_world):
    for day in range(8, 12):
        transfer(small_world.ral, small_world.glasgow, 10.0, ago=day * DAY)
    hourly(small_world, rates=[9.0] * 5)
    assert LEVELS[cell_of()["level"]] == "unknown"
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=12 * DAY)
    assert LEVELS[cell_of()["level"]] == "usual"


def test_a_link_whose_newest_three_tests_failed_is_not_as_usual(small_world):
    before_the_window(small_world)
    hourly(small_world, rates=[9.0, 9.0, 9.0, None, None], until=2 * HOUR)
    assert LEVELS[cell_of()["level"]] == "usual"
    hourly(small_world, rates=[None])
    assert marks_of(cell_of())[:2] == ("measured", "unknown")


def test_late_results_of_earlier_weeks_change_what_is_usual(small_world):
    before_the_window(small_world)
    sealing.seal(NOW)
    hourly(small_world, rates=[4.0] * 5)
    assert cell_of()["usual"] == pytest.approx(11.0)
    with transfers() as some:
        for hours in range(60):
            some.add(small_world.ral, small_world.glasgow, 4.0, ago=10 * DAY + hours * HOUR)
    assert cell_of()["usual"] == pytest.approx(4.0)


def test_a_cell_of_several_links_fails_when_all_of_them_do(small_world):
    for hours in (1, 2, 3):
        transfer(small_world.desy, small_world.ral, None, ago=hours * HOUR)
        transfer(small_world.scratch, small_world.ral, 5.0, ago=hours * HOUR)
    one = stored_condition(source=small_world.desy, destination=small_world.ral, since=9 * HOUR)
    answer = grid.build(MatrixQuery(rows="site", columns="site"), NOW)
    cell = dict(of_cells(answer))["DESY", "RAL"]
    assert marks_of(cell) == ("measured", "unknown", "", 9.0, one.id)
    assert cell["partly"]
    assert answer.links() == {"failing": 1, "slower": 0, "faster": 0, "usual": 0, "silent": 0}
    stored_condition(source=small_world.scratch, destination=small_world.ral, since=5 * HOUR)
    cell = dict(of_cells(grid.build(MatrixQuery(rows="site", columns="site"), NOW)))["DESY", "RAL"]
    # Two conditions: neither is that of the cell.
    assert marks_of(cell) == ("failing", "unknown", "", 9.0, 0)
    assert cell["streak"] == 3


def test_a_cell_of_several_links_is_silent_when_all_of_them_are(small_world):
    for source in (small_world.desy, small_world.scratch):
        transfer(source, small_world.ral, 5.0, ago=9 * HOUR)
    both = [(source, small_world.ral) for source in (small_world.desy, small_world.scratch)]
    site = MatrixQuery(rows="site", columns="site")
    stored_condition("silent", source=small_world.desy, destination=small_world.ral)
    answer = grid.build(site, NOW)
    assert marks_of(dict(of_cells(answer))["DESY", "RAL"])[1] == "unknown"
    assert int(answer.cells.silent_links.sum()) == int(answer.cells.of_look("silent").sum()) == 1
    stored_condition("silent", site=small_world.desy.site, links=both, since=8 * HOUR)
    cell = dict(of_cells(grid.build(site, NOW)))["DESY", "RAL"]
    assert marks_of(cell) == ("stale", "silent", "", 8.0, 0)


def test_a_declared_downtime_is_no_failure(small_world):
    hourly(small_world, rates=[None] * 5)
    stored_condition(source=small_world.ral)
    downtime(site=small_world.ral.site)
    answer = grid.build(MatrixQuery(), NOW)
    assert STATES[dict(of_cells(answer))["RAL_DATADISK", "Glasgow_DATADISK"]["state"]] == "down"
    assert answer.links()["failing"] == 0
