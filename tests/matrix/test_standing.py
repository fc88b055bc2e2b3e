"""How links stand now: failing, slower, faster, as usual, as plain SQL and plain loops say it."""

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
from scipy import stats

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.table import link_table
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from sonar.models import Transfer
from sonar.results import sealing
from sonar.results import store as results
from tests.matrix import moderated
from tests.matrix.world import HOUR, NOW, World, downtime, transfer, transfers
from tests.properties import examples
from tests.sonar.history import Store

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# What is needed to say it link by link, written without looking at the code: how many tests failed
# since the last success, its successes up to the moment, and those of the 28 whole days before the
# window, by day.
SQL = """
WITH tests AS (
    SELECT t.source_id, t.destination_id, date_trunc('milliseconds', t.started_at) AS started_at,
        t.state = 'done' AS ok, (t.bytes / t.seconds)::real AS rate
    FROM sonar_transfer t JOIN sonar_profile p ON p.id = t.profile_id
    WHERE t.state <> 'lost' AND t.started_at < %(end)s AND p.purpose <> 'experiment' AND {where}
        AND p.origin = 'test'
        AND t.started_at >= date_trunc('day', %(last)s, 'UTC') - interval '28 days'
), usual AS (
    SELECT t.source_id, t.destination_id,
        array_agg((t.bytes / t.seconds)::real ORDER BY t.started_at) AS usual,
        array_agg(date_trunc('day', t.started_at, 'UTC') ORDER BY t.started_at) AS days
    FROM sonar_transfer t JOIN sonar_profile p ON p.id = t.profile_id
    WHERE t.state = 'done' AND p.purpose <> 'experiment' AND p.origin = 'test' AND {where}
        AND t.started_at >= date_trunc('day', %(start)s, 'UTC') - interval '28 days'
        AND t.started_at < date_trunc('day', %(start)s, 'UTC')
    GROUP BY 1, 2
), latest AS (
    SELECT source_id, destination_id, array_agg(rate ORDER BY started_at, rate) AS rates,
        array_agg(started_at ORDER BY started_at, rate) AS times, max(started_at) AS newest
    FROM tests WHERE ok GROUP BY 1, 2
), streaks AS (
    SELECT tests.source_id, tests.destination_id, count(*) AS streak, min(started_at) AS since
    FROM tests LEFT JOIN latest USING (source_id, destination_id)
    WHERE NOT ok AND (newest IS NULL OR started_at > newest) GROUP BY 1, 2
)
SELECT s.name, d.name, coalesce(streak, 0), since, coalesce(rates, '{{}}'), coalesce(times, '{{}}'),
    coalesce(usual, '{{}}'), coalesce(days, '{{}}')
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
    """What SQL says of a link, and how it stands by that."""

    streak: int = 0
    since: datetime | None = None
    rates: Sequence[float] = ()
    times: Sequence[datetime] = ()
    usual_rates: Sequence[float] = ()
    days: Sequence[datetime] = ()
    level: str = "unknown"
    expected: moderated.Expected | None = None

    @property
    def failing(self) -> bool:
        return self.streak >= 3

    @property
    def now(self) -> float:
        return float(np.median(self.rates[-3:])) if len(self.rates) >= 3 else np.nan

    @property
    def usual(self) -> float:
        return float(np.median(self.usual_rates)) if len(self.usual_rates) >= 5 else np.nan

    def scatter(self) -> tuple[float, float]:
        return moderated.in_a_row(self.usual_rates, self.days)

    def is_level(self, p: float) -> str:
        """Say what it is if p is that of its ratio, adjusted to all links."""
        ratio = self.now / self.usual
        if p > 0.03 or 1 / 1.5 < ratio < 1.5:
            return "usual"
        # Each of the three is away from usual by a third of what their median is.
        if min(np.log(np.divide(self.rates[-3:], self.usual)) / np.log(ratio)) < 1 / 3:
            return "usual"
        return "slower" if ratio < 1 else "faster"

    def began(self) -> tuple[float, int]:
        """Return since when it is slower or faster, and for how many tests."""
        bound = np.sqrt(self.now * self.usual)
        is_beyond = [(rate < bound) == (self.now < bound) for rate in self.rates]
        first = len(self.rates) - 1
        # Back to the last two in a row that are not.
        for at in range(len(self.rates) - 1, -1, -1):
            if is_beyond[at]:
                first = at
            elif at and not is_beyond[at - 1]:
                break
        return self.times[first].timestamp(), len(self.rates) - first


def in_sql(query: MatrixQuery, where: str) -> dict[tuple[str, str], Stands]:
    window = query.window_at(NOW)
    end = min(window.end, NOW.replace(second=0) + timedelta(minutes=1))
    times = {"start": window.start, "end": end, "last": end - timedelta(milliseconds=1)}
    with connection.cursor() as cursor:
        cursor.execute(SQL.format(where=where), times)
        links = {row[:2]: Stands(*row[2:]) for row in cursor.fetchall()}
    judge([*links.values()])
    return links


def judge(links: Sequence[Stands]) -> None:
    """Judge all links together: by scipy, one at a time."""
    known = moderated.prior_of([link.scatter() for link in links if not np.isnan(link.usual)])
    compared = [link for link in links if not (link.failing or np.isnan(link.now / link.usual))]
    for link in compared:
        link.expected = moderated.of_scatter(
            link.now / link.usual, (3, len(link.usual_rates)), *link.scatter(), known
        )
    chances = [link.expected.p for link in compared]
    adjusted = stats.false_discovery_control(chances) if chances else []
    for link, p in zip(compared, adjusted, strict=True):
        link.level = link.is_level(p)


def of_cells(answer: Grid) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    cells = answer.cells
    for at in np.argwhere(cells.state != STATES.index("not_applicable")).tolist():
        row, column = at
        names = "state", "level", "now", "usual", "streak", "since", "ok", "failed", "partly"
        names = (*names, "ratio_low", "ratio_high")
        values = {name: getattr(cells, name)[row, column] for name in names}
        yield (answer.sources[row].name, answer.destinations[column].name), values


def same(rate: float, bytes_per_second: float) -> bool:
    return rate * 1e6 == pytest.approx(bytes_per_second, rel=3e-7, nan_ok=True)


@pytest.mark.long
@examples(50)
@given(histories=HISTORIES, text=st.tuples(WINDOWS, st.sampled_from(list(FILTERS))))
def test_any_history_is_judged_as_sql_judges_it(small_world, histories, text):
    with transaction.atomic():
        fill(Store(small_world.endpoints, experiments=True), histories)
        sealing.seal(NOW)
        window, filters = text
        query = MatrixQuery.from_params(QueryDict(f"{window}&{filters}".strip("&")))
        expected = in_sql(query, FILTERS[filters])
        for link, cell in of_cells(grid.build(query, NOW)):
            true = expected.get(link, Stands())
            assert (STATES[cell["state"]] == "failing") == true.failing, link
            level = true.level if cell["ok"] + cell["failed"] else "unknown"
            assert LEVELS[cell["level"]] == level, (link, true)
            if true.failing:
                assert cell["streak"] == true.streak
                assert cell["since"] == pytest.approx(true.since.timestamp(), abs=1e-3)
            if level != "unknown":
                assert same(cell["now"], true.now)
                assert same(cell["usual"], true.usual)
                assert cell["ratio_low"] == pytest.approx(true.expected.low, rel=1e-4)
                assert cell["ratio_high"] == pytest.approx(true.expected.high, rel=1e-4)
            if level in ("slower", "faster"):
                began, count = true.began()
                assert cell["since"] == pytest.approx(began, abs=1e-3)
                assert cell["streak"] == count
            tests = cell["ok"] + cell["failed"]
            part = cell["ok"] > 0 and cell["failed"] > 0 and cell["failed"] >= 0.1 * tests
            assert cell["partly"] == (part and not true.failing)
        transaction.set_rollback(True)


@examples(40)
@given(histories=HISTORIES, window=WINDOWS)
def test_matrix_and_table_of_links_judge_alike(small_world, histories, window):
    with transaction.atomic():
        fill(Store(small_world.endpoints, experiments=True), histories)
        query = MatrixQuery.from_params(QueryDict(window))
        table = link_table.build(query, NOW)
        columns = table.of_class("large")
        links = zip(table.column("source"), table.column("destination"), strict=True)
        at = {link: row for row, link in enumerate(links)}
        for link, cell in of_cells(grid.build(query, NOW)):
            row = at[link]
            for name in ("state", "level", "streak"):
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


FAILURES = [
    # Since its first failure after its last success; its mean is that of the window, as ever.
    ("", [5.0, 5.0, *[None] * 16], {"state": "failing", "streak": 16, "ok": 2}),
    # It is followed to its first beyond the window.
    ("window=6h", [5.0, *[None] * 40], {"state": "failing", "streak": 40}),
    # Two are not failing yet.
    ("", [5.0, 5.0, None, None], {"state": "measured", "partly": True}),
]


@pytest.mark.parametrize(("text", "rates", "expected"), FAILURES)
def test_a_link_fails_after_three_failures_in_a_row(small_world, text, rates, expected):
    hourly(small_world, rates=rates)
    cell = cell_of(text)
    cell |= {"state": STATES[cell["state"]]}
    assert cell.items() >= expected.items()
    if "streak" in expected:
        assert cell["since"] == (NOW - expected["streak"] * HOUR).timestamp()


@pytest.mark.parametrize(
    ("before", "since", "level", "now"),
    [
        # A single good test in between does not end it.
        ([11.0, 10.0, 12.0], [3.5, 3.4, 3.6, 10.5, 3.5, 3.4, 3.6, 3.5], "slower", 3.5),
        ([11.0, 10.0], [2150.0] * 19, "faster", 2150.0),
    ],
)
def test_a_link_is_slower_or_faster_since_it_began(small_world, before, since, level, now):
    before_the_window(small_world)
    hourly(small_world, rates=[*before, *since])
    cell = cell_of()
    assert (STATES[cell["state"]], LEVELS[cell["level"]]) == ("measured", level)
    assert (cell["streak"], cell["since"]) == (len(since), (NOW - len(since) * HOUR).timestamp())
    assert (cell["usual"], cell["now"]) == (pytest.approx(11.0), pytest.approx(now))


def test_within_a_factor_of_one_and_a_half_a_link_is_as_usual_however_sure_the_difference_is(
    small_world,
):
    before_the_window(small_world)
    for rate, level in ((7.5, "usual"), (7.2, "slower"), (16.3, "usual"), (16.7, "faster")):
        hourly(small_world, rates=[rate] * 3, until=timedelta(minutes=1))
        cell = cell_of()
        assert LEVELS[cell["level"]] == level, rate
        assert not cell["ratio_low"] < 1 < cell["ratio_high"], rate
        Transfer.objects.filter(started_at__gt=NOW - DAY).delete()


def test_a_lone_bad_test_or_two_among_three_are_no_change(small_world):
    before_the_window(small_world)
    hourly(small_world, rates=[3.5, 3.5, 10.5])
    assert LEVELS[cell_of()["level"]] == "usual"
    for minutes in (30, 20):
        hourly(small_world, rates=[3.5], until=timedelta(minutes=minutes))
        assert LEVELS[cell_of()["level"]] == "usual"
    hourly(small_world, rates=[3.5], until=timedelta(minutes=10))
    cell = cell_of()
    assert LEVELS[cell["level"]] == "slower"
    assert (cell["streak"], cell["since"]) == (6, (NOW - 3 * HOUR).timestamp())


def test_too_few_earlier_tests_say_nothing_of_what_is_usual(small_world):
    for day in range(8, 12):
        transfer(small_world.ral, small_world.glasgow, 10.0, ago=day * DAY)
    hourly(small_world, rates=[1.0] * 5)
    assert LEVELS[cell_of()["level"]] == "unknown"
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=12 * DAY)
    assert LEVELS[cell_of()["level"]] == "slower"


def test_late_results_of_earlier_weeks_change_what_is_usual(small_world):
    before_the_window(small_world)
    sealing.seal(NOW)
    hourly(small_world, rates=[4.0] * 5)
    assert LEVELS[cell_of()["level"]] == "slower"
    with transfers() as some:
        for hours in range(60):
            some.add(small_world.ral, small_world.glasgow, 4.0, ago=10 * DAY + hours * HOUR)
    assert LEVELS[cell_of()["level"]] == "usual"


def test_a_cell_of_several_links_fails_when_all_of_them_do(small_world):
    for hours in (1, 2, 3):
        transfer(small_world.desy, small_world.ral, None, ago=hours * HOUR)
        transfer(small_world.scratch, small_world.ral, 5.0, ago=hours * HOUR)
    answer = grid.build(MatrixQuery(rows="site", columns="site"), NOW)
    cells = dict(of_cells(answer))
    assert STATES[cells["DESY", "RAL"]["state"]] == "measured"
    assert cells["DESY", "RAL"]["partly"]
    assert answer.links() == {"failing": 1, "slower": 0, "faster": 0, "usual": 0}
    for minutes in (10, 20, 30):
        ago = timedelta(minutes=minutes)
        transfer(small_world.scratch, small_world.ral, None, ago=ago)
    cells = dict(of_cells(grid.build(MatrixQuery(rows="site", columns="site"), NOW)))
    assert STATES[cells["DESY", "RAL"]["state"]] == "failing"
    assert cells["DESY", "RAL"]["streak"] == 6


def test_a_declared_downtime_is_no_failure(small_world):
    hourly(small_world, rates=[None] * 5)
    downtime(site=small_world.ral.site)
    answer = grid.build(MatrixQuery(), NOW)
    assert STATES[dict(of_cells(answer))["RAL_DATADISK", "Glasgow_DATADISK"]["state"]] == "down"
    assert answer.links()["failing"] == 0
