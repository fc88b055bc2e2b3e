"""A comparison says what plain SQL says of both sides, and scipy of their scatter."""

from datetime import datetime, timedelta
from itertools import product

import numpy as np
import pytest
from django.db import connection, transaction
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.filters import on_links
from matrix.query.matrix_query import MatrixQuery
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import format_time
from sonar.results import sealing
from sonar.results import store as results
from tests.matrix import moderated
from tests.matrix.test_against_sql import BOUNDS, GROUPS
from tests.properties import examples
from tests.sonar.history import MIDNIGHT, NOW, STEPS, Store, carry_out

pytestmark = pytest.mark.django_db

# What a matrix takes, of this history.
STATEMENTS = 3
Window = tuple[datetime, datetime]
Samples = dict[tuple[str, str], list[float]]

SWEEPS = "p.purpose = 'sweep'"
# What a URL has beside the window and the grouping, and what that means in SQL on each side. s and
# d are the ends, ss and ds their sites, p the profile.
FILTERS = {
    "": ("true", "true"),
    "streams=1&compare.streams=4": ("p.streams = 1", "p.streams = 4"),
    "mover=http-tpc&compare.mover=": ("p.mover = 'http-tpc'", "true"),
    "origin=!production&tier=2&compare.origin=production": (
        "p.origin <> 'production' AND 2 IN (ss.tier, ds.tier)",
        "p.origin = 'production' AND 2 IN (ss.tier, ds.tier)",
    ),
    "source_cloud=UK&compare.source_cloud=!UK": ("ss.cloud = 'UK'", "ss.cloud <> 'UK'"),
    "cloud=!DE&compare.size=medium": ("ss.cloud <> 'DE' AND ds.cloud <> 'DE'",) * 2,
    "compare.purpose=sweep": ("true", SWEEPS),
    "purpose=sweep&compare.purpose=": (SWEEPS, "true"),
}
# Those of a link in the opposite direction, by what they are of the link itself.
OPPOSITE = {"source_cloud=UK": ("ss.cloud = 'UK'", "ds.cloud = 'UK'")}
SQL = """
    SELECT {row}, {column}, array_agg((t.bytes / t.seconds)::real::float8)
    FROM sonar_transfer t
    JOIN sonar_endpoint s ON s.id = t.source_id JOIN sonar_site ss ON ss.id = s.site_id
    JOIN sonar_endpoint d ON d.id = t.destination_id JOIN sonar_site ds ON ds.id = d.site_id
    JOIN sonar_profile p ON p.id = t.profile_id
    JOIN sonar_sizeclass c ON c.id = t.size_class_id
    WHERE t.state = 'done' AND t.started_at >= %(start)s AND t.started_at < %(end)s
        AND c.name = %(size)s AND {where}
    GROUP BY 1, 2
"""
SPANS = st.tuples(BOUNDS, BOUNDS).filter(lambda pair: pair[0] != pair[1]).map(sorted)


def in_sql(window: Window, size: str, where: str, rows: str, columns: str) -> Samples:
    if where != SWEEPS:
        where += " AND p.purpose <> 'sweep'"
    if "p.origin" not in where:
        where += " AND p.origin = 'test'"
    statement = SQL.format(
        row=GROUPS[rows].format(end="s"), column=GROUPS[columns].format(end="d"), where=where
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"start": window[0], "end": window[1], "size": size})
        return {(row, column): rates for row, column, rates in cursor.fetchall()}


def check(answer: Grid, own: Samples, other: Samples, of: str) -> int:
    """Hold a grid against both sides; return how many cells could be compared."""
    comparison, middle = answer.comparison, np.median if of == "median" else np.mean
    prior, compared = answer.rule.prior, 0
    if not on_links(answer.query.filters):
        pairs = [(own[cell], other[cell]) for cell in own.keys() & other.keys()]
        wanted_prior = moderated.prior(pairs)
        assert prior.variance == pytest.approx(wanted_prior.variance, rel=1e-3)
        # Of the difference of two variances, from logarithms in float32: the larger, the less sure.
        near = max(1e-3, 2e-7 * wanted_prior.dof)
        assert prior.dof == pytest.approx(wanted_prior.dof, rel=near)
    for row, source in enumerate(answer.sources):
        for column, destination in enumerate(answer.destinations):
            cell = comparison.taken((row, column))
            sides = [side.get((source.name, destination.name), []) for side in (own, other)]
            assert (cell.ok, cell.other_ok) == tuple(map(len, sides))
            wanted = [middle(side) / 1e6 if side else np.nan for side in sides]
            assert (cell.value, cell.other) == pytest.approx(tuple(wanted), rel=2e-7, nan_ok=True)
            ratio = answer.cells.value[row, column]
            if min(map(len, sides)) < 3:
                assert np.isnan([ratio, cell.p, cell.low]).all()
                continue
            compared += 1
            assert ratio == pytest.approx(wanted[0] / wanted[1], rel=1e-6)
            expected = moderated.expected(*sides, prior, of)
            assert cell.p == pytest.approx(expected.p, rel=1e-3, abs=1e-300)
            ends = expected.low, expected.high
            assert (cell.low, cell.high) == pytest.approx(ends, rel=1e-4)
    # Nothing that this side has is without a cell.
    shown = {(a.name, b.name) for a in answer.sources for b in answer.destinations}
    assert own.keys() <= shown
    return compared


def asked(window: Window, text: str, rows: str, columns: str, compare: str, of: str) -> MatrixQuery:
    bounds = f"from={format_time(window[0])}&to={format_time(window[1])}"
    shown = f"rows={rows}&columns={columns}&compare.of={of}"
    return MatrixQuery.from_params(QueryDict(f"{bounds}&{shown}&{text}{compare}"))


def compare_windows(own: Window, other: Window, text: str, rows: str, columns: str, of: str) -> int:
    between = f"&compare={format_time(other[0])}..{format_time(other[1])}"
    query = asked(own, text, rows, columns, "" if own == other else between, of)
    where, where_other = FILTERS[text]
    size = "medium" if "medium" in text else "large"
    return check(
        grid.build(query, NOW),
        in_sql(own, "large", where, rows, columns),
        in_sql(other, size, where_other, rows, columns),
        of,
    )


@examples(60)
@given(
    steps=STEPS,
    windows=st.tuples(SPANS, SPANS),
    text=st.sampled_from(list(FILTERS)),
    groups=st.tuples(st.sampled_from(list(GROUPS)), st.sampled_from(list(GROUPS))),
    of=st.sampled_from(["median", "mean"]),
)
def test_any_history_two_windows_filters_and_grouping(
    small_world, steps, windows, text, groups, of
):
    with transaction.atomic():
        store, stored = Store(small_world.endpoints, sweeps=True), []
        for step in steps:
            carry_out(store, step, stored)
        if windows[0] != windows[1]:
            compare_windows(*map(tuple, windows), text, *groups, of)
        whole = MIDNIGHT - timedelta(days=3), NOW + timedelta(hours=2)
        compare_windows(whole, tuple(windows[0]), text, *groups, of)
        transaction.set_rollback(True)


@pytest.fixture
def store(small_world) -> Store:
    """Two days of results of each link in two classes, sealed but for the late ones."""
    store = Store(small_world.endpoints, sweeps=True)
    moments = [MIDNIGHT + timedelta(minutes=7 * number) for number in range(-200, 220)]
    states = ["done", "done", "failed", "done", "done", "lost", "done"]
    for size in ("large", "medium"):
        store.size_class = SizeClass.objects.get(name=size).id
        results.store(
            store.result(moment, states[number % 7], number % 12)
            for number, moment in enumerate(moments)
        )
    scatter_rates()
    sealing.seal(NOW)
    store.size_class = SizeClass.objects.get(name="large").id
    results.store(store.result(moment, "done", 3) for moment in moments[::11])
    return store


def scatter_rates() -> None:
    """Give each transfer a duration of its own, whatever its link: not all are ties then."""
    rng = np.random.default_rng(4)
    # Ids are random: what fixes the order is that a size class has one transfer at a time.
    rows = list(Transfer.objects.order_by("started_at", "size_class").only("id"))
    for row, seconds in zip(rows[::2], rng.lognormal(2, 0.5, len(rows)), strict=False):
        row.seconds = seconds
    Transfer.objects.bulk_update(rows[::2], ["seconds"])


@pytest.mark.long
def test_each_kind_of_comparison_over_sealed_and_dirty_hours(store, subtests):
    day = timedelta(days=1)
    own, other = (MIDNIGHT - timedelta(seconds=7), MIDNIGHT + day), (MIDNIGHT - day, MIDNIGHT)
    groups = (("endpoint", "endpoint"), ("cloud", "site"), ("tier", "country"))
    for text, of, grouping in product(FILTERS, ("median", "mean"), groups):
        with subtests.test(text, of=of, grouping=grouping):
            compared = compare_windows(own, other, text, *grouping, of)
            # Sources of another cloud have none of these rows, but of tiers.
            assert compared or (grouping[0] != "tier" and "compare.source_cloud" in text)


@pytest.mark.long
def test_links_are_compared_with_those_of_the_opposite_direction(store, subtests):
    window = (MIDNIGHT - timedelta(hours=20), MIDNIGHT + timedelta(hours=20))
    for text, grouping in product(["", *OPPOSITE], ("endpoint", "site", "cloud")):
        with subtests.test(text, grouping=grouping):
            query = asked(window, text, grouping, grouping, "&compare=reverse", "median")
            where, where_other = OPPOSITE.get(text, ("true", "true"))
            other = in_sql(window, "large", where_other, grouping, grouping)
            turned = {(row, column): rates for (column, row), rates in other.items()}
            own = in_sql(window, "large", where, grouping, grouping)
            assert check(grid.build(query, NOW), own, turned, "median") > 0


def test_previous_and_week_are_the_windows_that_they_say(store):
    window = (MIDNIGHT, MIDNIGHT + timedelta(hours=9))
    own = in_sql(window, "large", "true", "site", "site")
    for compare, back in (("previous", timedelta(hours=9)), ("week", timedelta(days=7))):
        query = asked(window, "", "site", "site", f"&compare={compare}", "median")
        answer = grid.build(query, NOW)
        other = (window[0] - back, window[1] - back)
        found = check(answer, own, in_sql(other, "large", "true", "site", "site"), "median")
        assert (found > 0) == (compare == "previous")
        assert (answer.other.window.start, answer.other.window.end) == other


def test_a_late_result_of_either_side_makes_the_answer_anew(store):
    window = (MIDNIGHT + timedelta(hours=5), MIDNIGHT + timedelta(hours=20))
    query = asked(window, "", "site", "site", "&compare=previous", "median")
    before = grid.version(query, NOW)
    assert grid.build(query, NOW) is grid.build(query, NOW)
    # The other side begins ten hours before midnight.
    store.add(MIDNIGHT - timedelta(hours=9))
    assert grid.version(query, NOW) != before
    other = (MIDNIGHT - timedelta(hours=10), MIDNIGHT + timedelta(hours=5))
    own = in_sql(window, "large", "true", "site", "site")
    other_samples = in_sql(other, "large", "true", "site", "site")
    assert check(grid.build(query, NOW), own, other_samples, "median") > 0
    store.size_class = SizeClass.objects.get(name="small").id
    with_small = asked(window, "", "site", "site", "&compare.size=small", "median")
    present, present_small = (grid.version(side, NOW) for side in (query, with_small))
    store.add(MIDNIGHT + timedelta(hours=6))
    assert grid.version(query, NOW) == present
    assert grid.version(with_small, NOW) != present_small


def test_max_age_blanks_what_is_old_on_this_side_alone(store):
    window = (MIDNIGHT, MIDNIGHT + timedelta(hours=12))
    query = asked(window, "max_age=30m&", "endpoint", "endpoint", "&compare=previous", "median")
    answer = grid.build(query, NOW)
    old = np.isnan(answer.cells.mean)
    enough = answer.comparison.enough
    assert (np.isnan(answer.cells.value) == (old | ~enough)).all()
    assert (old & enough).any()
    assert (~old & enough).any()


def test_both_sides_are_read_as_of_one_moment_with_so_many_statements(
    store, django_assert_num_queries
):
    window = (MIDNIGHT, MIDNIGHT + timedelta(hours=9))
    plain = asked(window, "", "site", "site", "", "median")
    compared = asked(window, "", "site", "site", "&compare=previous", "median")
    for query, more in ((plain, 0), (compared, 1)):
        version = grid.version(query, NOW)
        # What is usual is kept.
        grid.compute(query, NOW, version)
        with django_assert_num_queries(STATEMENTS + more):
            grid.compute(query, NOW, version)
