"""The matrix says what plain SQL says of the raw rows, whatever happened to them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.query import catalogue
from matrix.query.matrix_query import MatrixQuery
from matrix.store import runs
from sonar.models import Transfer
from sonar.notation.windows import format_time
from sonar.results import sealing
from sonar.results import store as results
from tests.conditions import stored_condition
from tests.matrix import world
from tests.properties import examples
from tests.sonar.history import MIDNIGHT, NOW, STEPS, Store, carry_out, undone

pytestmark = pytest.mark.django_db

# A filter as a URL has it, and what it means in SQL. s and d are the ends, p the profile.
FILTERS = {
    "": "true",
    "source_cloud=UK": "ss.cloud = 'UK'",
    "destination_site=!DESY": "ds.name <> 'DESY'",
    "endpoint=RAL_DATADISK": "'RAL_DATADISK' IN (s.name, d.name)",
    "tier=1&tier=2&label=SCRATCHDISK": "'SCRATCHDISK' IN (s.label, d.label)",
    "cloud=!DE": "ss.cloud <> 'DE' AND ds.cloud <> 'DE'",
    "mover=xrootd": "p.mover = 'xrootd'",
    "streams=!4": "p.streams <> 4",
    "ip_version=!6": "p.ip_version IS DISTINCT FROM 6",
    "origin=test&source_country=GB": "p.origin = 'test' AND ss.country = 'GB'",
    "origin=all&tier=2": "2 IN (ss.tier, ds.tier)",
    "origin=!test": "p.origin <> 'test'",
    "purpose=sweep": "p.purpose = 'sweep'",
    "purpose=!ordered&streams=16": "p.streams = 16",
    "purpose=unknown&purpose=sweep&tier=2": "2 IN (ss.tier, ds.tier)",
}
# What holds where a filter does not name them: sweeps do not count, and tests alone do.
COUNTED = {"purpose=sweep": "p.purpose <> 'sweep'", "origin=": "p.origin = 'test'"}
GROUPS = {
    "endpoint": "{end}.name",
    "site": "{end}s.name",
    "cloud": "{end}s.cloud",
    "tier": "'Tier ' || {end}s.tier",
    "country": "{end}s.country",
}
STATS = tuple(
    name
    for name, statistic in catalogue.STATISTICS.items()
    # What is made of the whole matrix is compared in test_causes, and in test_lines_of_links, and
    # what looks back beyond the window below.
    if name != "last" and not (statistic.base or statistic.of_line or statistic.of_now)
)
SQL = """
    SELECT {row}, {column},
        count(*) FILTER (WHERE t.state = 'done') AS ok,
        count(*) FILTER (WHERE t.state = 'failed') AS failed,
        avg(r.rate) AS mean, stddev_samp(r.rate) AS std, min(r.rate), max(r.rate),
        percentile_cont(0.05) WITHIN GROUP (ORDER BY r.rate) AS p05,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY r.rate) AS median,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY r.rate) AS p95,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY r.rate) AS p99,
        sum(t.bytes) FILTER (WHERE t.state = 'done')
            / sum(t.seconds) FILTER (WHERE t.state = 'done') / 1e6 AS throughput,
        100.0 * count(*) FILTER (WHERE t.state = 'done') / count(*) AS success,
        count(*) AS count,
        extract(epoch FROM date_trunc('milliseconds', max(t.started_at))) AS last
    FROM sonar_transfer t
    JOIN sonar_endpoint s ON s.id = t.source_id JOIN sonar_site ss ON ss.id = s.site_id
    JOIN sonar_endpoint d ON d.id = t.destination_id JOIN sonar_site ds ON ds.id = d.site_id
    JOIN sonar_profile p ON p.id = t.profile_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN t.state = 'done' THEN t.bytes / t.seconds / 1e6 END AS rate) r
    WHERE t.state <> 'lost' AND t.started_at >= %(start)s AND t.started_at < %(end)s AND {where}
    GROUP BY 1, 2
"""
# To the second, near the edges of hours and days, and the change of a month.
BOUNDS = st.builds(
    lambda hours, seconds: MIDNIGHT + timedelta(hours=hours, seconds=seconds),
    st.sampled_from([-48, -25, -24, -13, -1, 0, 1, 11, 24, 48, 60, 61]),
    st.sampled_from([0, 0, 1, 1799, 3599]),
)
ASKED = st.tuples(
    st.tuples(BOUNDS, BOUNDS).filter(lambda two: two[0] != two[1]).map(sorted),
    st.sampled_from(list(FILTERS)),
    st.sampled_from(list(GROUPS)),
    st.sampled_from(list(GROUPS)),
    st.sampled_from(STATS),
)


def in_sql(
    start: datetime, end: datetime, where: str, rows: str, columns: str
) -> dict[tuple[str, str], dict[str, Any]]:
    statement = SQL.format(
        row=GROUPS[rows].format(end="s"), column=GROUPS[columns].format(end="d"), where=where
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"start": start, "end": end})
        names = [column.name for column in cursor.description]
        return {
            (row[0], row[1]): dict(zip(names[2:], row[2:], strict=True))
            for row in cursor.fetchall()
        }


def in_grid(answer: Grid) -> dict[tuple[str, str], dict[str, Any]]:
    """The cells that have a result, under the names that the SQL has."""
    names = {"value": answer.query.stat, "mean": "mean", "std": "std", "last": "last"}
    names |= {"ok": "ok", "failed": "failed"}
    return {
        (answer.sources[row].name, answer.destinations[column].name): {
            name: getattr(answer.cells, field)[row, column] for field, name in names.items()
        }
        for row, column in np.argwhere(answer.cells.ok + answer.cells.failed > 0)
    }


def check(start: datetime, end: datetime, text: str, rows: str, columns: str, stat: str) -> None:
    params = f"from={format_time(start)}&to={format_time(end)}&stat={stat}&rows={rows}"
    query = MatrixQuery.from_params(QueryDict(f"{params}&columns={columns}&{text}"))
    found = in_grid(grid.build(query, NOW))
    where = [FILTERS[text], *(rule for name, rule in COUNTED.items() if name not in text)]
    true = in_sql(start, end, " AND ".join(where), rows, columns)
    assert found.keys() == true.keys()
    for cell, values in found.items():
        for name, value in values.items():
            wanted = np.nan if true[cell][name] is None else float(true[cell][name])
            assert value == pytest.approx(wanted, **tolerance(name, true[cell]), nan_ok=True), (
                cell,
                name,
            )


def tolerance(name: str, cell: dict[str, Any]) -> dict[str, float]:
    """Counts are equal, quantiles equal to float32, moments to 1e-6 (of the rate itself)."""
    if name in ("ok", "failed", "count"):
        return {"abs": 0, "rel": 0}
    if name == "last":
        return {"abs": 1e-6, "rel": 0}
    return {"rel": 2e-7 if name[0] == "p" else 1e-6, "abs": 1e-7 * (cell["mean"] or 0)}


@pytest.mark.long
@examples(80)
@given(steps=STEPS, asked=st.lists(ASKED, min_size=1, max_size=3))
def test_any_history_window_filter_and_grouping(small_world, steps, asked):
    with undone():
        store, stored = Store(small_world.endpoints, sweeps=True), []
        for step in steps:
            carry_out(store, step, stored)
        for (start, end), *question in asked:
            check(start, end, *question)
            check(MIDNIGHT - timedelta(days=3), NOW + timedelta(hours=2), *question)


@pytest.mark.long
def test_each_statistic_over_sealed_and_dirty_hours(small_world, subtests):
    store = Store(small_world.endpoints, sweeps=True)
    moments = [MIDNIGHT + timedelta(minutes=37 * number) for number in range(-60, 90)]
    states = ["done", "done", "failed", "done", "lost"]
    results.store(
        store.result(moment, states[number % 5], number % 7)
        for number, moment in enumerate(moments)
    )
    sealing.seal(NOW)
    results.store(
        store.result(moment, "done", number % 7) for number, moment in enumerate(moments[::9])
    )
    window = MIDNIGHT - timedelta(hours=30), MIDNIGHT + timedelta(hours=50, seconds=7)
    groups = (("endpoint", "endpoint"), ("cloud", "site"))
    # A filter leaves out results before there is a statistic of any: each with some is enough.
    for text, (grouping, stat) in zip(cycle(FILTERS), product(groups, STATS), strict=False):
        with subtests.test(text, stat=stat, grouping=grouping):
            check(*window, text, *grouping, stat)


# What is now and what is usual of links, and of cells of several: the mean of the rates now of
# those that have one, and of those that also have a usual one the mean of both, divided.
NOW_SQL = """
    WITH known AS (
        SELECT source_id, destination_id, started_at, state, (bytes / seconds)::real AS rate
        FROM sonar_transfer WHERE state <> 'lost' AND started_at < %(end)s
    ), done AS (
        SELECT *, row_number() OVER (
            PARTITION BY source_id, destination_id ORDER BY started_at DESC, rate DESC) AS place
        FROM known WHERE state = 'done'
            AND started_at >= date_trunc('day', %(last)s, 'UTC') - interval '28 days'
    ), latest AS (
        SELECT source_id, destination_id, CASE WHEN count(*) = 3
            THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY rate) / 1e6 END AS now
        FROM done WHERE place <= 3 GROUP BY 1, 2
    ), usual AS (
        SELECT source_id, destination_id,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY rate) / 1e6 AS usual
        FROM known WHERE state = 'done' AND started_at < date_trunc('day', %(start)s, 'UTC')
            AND started_at >= date_trunc('day', %(start)s, 'UTC') - interval '28 days'
        GROUP BY 1, 2 HAVING count(*) >= 5
    ), failing AS (
        SELECT source_id, destination_id FROM sonar_conditionlink
    ), tested AS (
        SELECT source_id, destination_id, bool_or(state = 'done') AS any_ok
        FROM known WHERE started_at >= %(start)s GROUP BY 1, 2
    ), links AS (
        SELECT {row} AS row, {column} AS column, any_ok, usual,
            CASE WHEN failing.source_id IS NULL THEN now END AS now
        FROM tested LEFT JOIN latest USING (source_id, destination_id)
            LEFT JOIN usual USING (source_id, destination_id)
            LEFT JOIN failing USING (source_id, destination_id)
            JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_site ss ON ss.id = s.site_id
            JOIN sonar_endpoint d ON d.id = destination_id JOIN sonar_site ds ON ds.id = d.site_id
    )
    SELECT "row", "column", avg(now) FILTER (WHERE now IS NOT NULL) AS now,
        avg(now) FILTER (WHERE usual IS NOT NULL)
            / avg(usual) FILTER (WHERE now IS NOT NULL) AS vs_usual
    FROM links GROUP BY 1, 2 HAVING bool_or(any_ok)
"""


def weeks_of(store: Store) -> list[results.Result]:
    """Return five weeks of tests: some links fail now, some have few tests, some other rates."""
    random = np.random.default_rng(31)
    tests = []
    for link in range(12):
        number = [3, 12, 40, 90][link % 4]
        ages = np.sort(random.uniform(0.0, 35.0, number))[::-1]
        for place, age in enumerate(ages):
            is_new = place >= number - 5
            fails = random.random() < 0.15 or (is_new and link in (5, 6))
            made = store.result(
                NOW - timedelta(days=float(age)), "failed" if fails else "done", link
            )
            factor = [1.0, 0.3, 3.0][link % 3] if is_new else 1.0
            tests.append(replace(made, seconds=20 / factor * float(random.lognormal(0, 0.3))))
    return tests


def test_rates_now_and_against_usual_are_those_of_sql(small_world, subtests):
    tests = weeks_of(Store(small_world.endpoints))
    results.make_months([test.started_at for test in tests])
    results.store(tests)
    sealing.seal(NOW)
    stored_condition(source=small_world.glasgow, since=60 * timedelta(days=1), baseline=None)
    windows = ("window=24h", "window=7d", "from=2026-10-25&to=2026-10-31")
    groups = (("endpoint", "endpoint"), ("site", "cloud"), ("cloud", "cloud"))
    for window, grouping in product(windows, groups):
        with subtests.test(window, grouping=grouping):
            are_those_of_sql(window, *grouping)


def are_those_of_sql(window: str, rows: str, columns: str) -> None:
    found: dict[str, dict[tuple[str, str], float]] = {}
    for stat in ("now", "vs_usual"):
        query = MatrixQuery.from_params(
            QueryDict(f"{window}&stat={stat}&rows={rows}&columns={columns}&origin=all")
        )
        found[stat] = {
            cell: values[stat] for cell, values in in_grid(grid.build(query, NOW)).items()
        }
    asked = query.window_at(NOW)
    end = min(asked.end, NOW + timedelta(minutes=1))
    statement = NOW_SQL.format(
        row=GROUPS[rows].format(end="s"), column=GROUPS[columns].format(end="d")
    )
    times = {"start": asked.start, "end": end, "last": end - timedelta(milliseconds=1)}
    with connection.cursor() as cursor:
        cursor.execute(statement, times)
        true = {row[:2]: dict(zip(("now", "vs_usual"), row[2:], strict=True)) for row in cursor}
    for stat, cells in found.items():
        assert any(not np.isnan(value) for value in cells.values()), stat
        for cell, value in cells.items():
            wanted = true.get(cell, {}).get(stat)
            wanted = np.nan if wanted is None else float(wanted)
            assert value == pytest.approx(wanted, rel=1e-6, nan_ok=True), (stat, cell)


class Busy:
    """Threads that do these things over and over until the block ends; their errors are raised."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self.stop = threading.Event()
        self.errors: list[Exception] = []
        self.rounds = [0 for _ in acts]
        self.threads = [
            threading.Thread(target=self.repeat, args=[number, act])
            for number, act in enumerate(acts)
        ]

    def repeat(self, number: int, act: Callable[[], object]) -> None:
        try:
            while not self.stop.is_set():
                act()
                self.rounds[number] += 1
        except Exception as error:  # noqa: BLE001 - raised again at the end of the block
            self.errors.append(error)
        finally:
            connection.close()

    def still_begins(self) -> bool:
        """Whether a thread has not been through three rounds yet, and none has failed."""
        return min(self.rounds) < 3 and not self.errors

    def __enter__(self) -> Busy:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()
        for error in self.errors:
            raise error


# In a day and in hours that are sealed, and in one that is not yet.
MOMENTS = [MIDNIGHT + timedelta(hours=hours) for hours in (-30, -1, 0, 5, 60)]


def all_moments() -> MatrixQuery:
    return MatrixQuery.from_params(
        QueryDict("from=2026-10-30&to=2026-11-04&stat=median&origin=all")
    )


def write_to_every_link(store: Store) -> None:
    """Store a result of each of the moments for each of the twelve links, in one transaction."""
    results.store(store.result(*one) for one in product(MOMENTS, ["done"], range(12)))


def test_what_is_written_between_a_readers_statements_is_not_half_seen(real_commits, monkeypatch):
    store = Store(world.make().endpoints)
    write_to_every_link(store)
    sealing.seal(NOW)
    written = []
    plain = runs._of_segments

    def meanwhile(*args: Any, **more: Any) -> Any:
        # What one statement could not answer is asked again, in a transaction.
        if connection.in_atomic_block and not written:
            with ThreadPoolExecutor(1) as other:
                written.append(other.submit(write_and_go, store))
        return plain(*args, **more)

    monkeypatch.setattr(runs, "_of_segments", meanwhile)
    counts = grid.build(all_moments(), NOW).cells.ok[~np.eye(4, dtype=bool)]
    assert written[0].result() is None
    assert (counts == len(MOMENTS)).all()


def write_and_go(store: Store) -> None:
    try:
        write_to_every_link(store)
    finally:
        connection.close()


@pytest.mark.long
def test_readers_see_whole_transactions_while_others_write_edit_and_seal(real_commits):
    """Each transaction adds five results to every link: a reader sees all of them or none."""
    store, query = Store(world.make().endpoints), all_moments()

    def edit() -> None:
        ids = Transfer.objects.order_by("id").values_list("id", flat=True)[:60]
        Transfer.objects.filter(id__in=list(ids)).update(seconds=2.0)

    seen: list[np.ndarray] = []
    with Busy(lambda: write_to_every_link(store), edit, lambda: sealing.seal(NOW)) as busy:
        while len(seen) < 30 or busy.still_begins():
            seen.append(grid.build(query, NOW).cells.ok)
    for ok in (one for one in seen if one.size):
        counts = ok[~np.eye(4, dtype=bool)]
        assert (counts == counts[0]).all()
        assert counts[0] % len(MOMENTS) == 0
    assert sum(ok.sum() for ok in seen) > 0
    assert grid.build(query, NOW).cells.ok.sum() == Transfer.objects.count()
