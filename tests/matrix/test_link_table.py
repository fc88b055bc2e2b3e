"""The link table: equal to plain SQL; which links are in it, and in what order."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.db.models import Max
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from matrix.answers.matrix import grid
from matrix.answers.table import link_table
from matrix.answers.table.link_table import LinkTable
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import NOT_APPLICABLE, STATES
from matrix.store.cache import ANSWERS
from sonar.models import Schedule, SizeClass, Transfer
from sonar.results import sealing
from tests.matrix import many_links, world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db
SQL = """
    SELECT s.name, d.name, avg(rate), stddev_samp(rate), avg(size), stddev_samp(size),
        count(*) FILTER (WHERE t.state = 'done'), count(*) FILTER (WHERE t.state = 'failed'),
        extract(epoch FROM max(started_at))::float8,
        extract(epoch FROM max(started_at) FILTER (WHERE t.state = 'done'))::float8,
        extract(epoch FROM max(started_at) FILTER (WHERE t.state = 'failed'))::float8
    FROM (
        SELECT *, CASE WHEN state = 'done' THEN bytes / seconds / 1e6 END AS rate,
            CASE WHEN state = 'done' THEN bytes::float8 END AS size FROM sonar_transfer
    ) AS t JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_endpoint d ON d.id = destination_id
    WHERE size_class_id = %s AND state <> 'lost' AND started_at >= %s AND started_at < %s
    GROUP BY 1, 2
"""
COLUMNS = (
    *("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes"),
    *("ok", "failed", "last", "last_ok", "last_failed"),
)


def built(text: str = "") -> LinkTable:
    return link_table.build(MatrixQuery.from_params(QueryDict(text)), NOW)


def ordered(table: LinkTable, name: str, *, descending: bool = False) -> LinkTable:
    return table.taken(table.order(name, descending=descending))


def names(table: LinkTable) -> list[tuple[str, str]]:
    ends = table.column("source").tolist(), table.column("destination").tolist()
    return list(zip(*ends, strict=True))


def values(table: LinkTable, size: str) -> dict[tuple[str, str], list[float]]:
    columns = [table.column(f"{size}.{name}").tolist() for name in COLUMNS]
    return dict(zip(names(table), map(list, zip(*columns, strict=True)), strict=True))


def fill(small_world: World, count: int, seed: int) -> None:
    """Record results of random links, sizes, rates and times over the last eight days."""
    rng = np.random.default_rng(seed)
    with world.transfers() as some:
        for _ in range(count):
            source, destination = rng.choice(4, 2, replace=False)
            rate = None if rng.random() < 0.3 else float(rng.lognormal(2, 1))
            ago = timedelta(seconds=int(rng.integers(0, 8 * 86_400)))
            size = str(rng.choice(["small", "large"]))
            some.add(
                small_world.endpoints[source],
                small_world.endpoints[destination],
                rate,
                ago=ago,
                size=size,
                nbytes=int(world.SIZES[size] * float(rng.uniform(1, 2))),
            )


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("window", ["24h", "7d", "30d"])
def test_every_column_is_equal_to_sql_in_every_size_class(small_world, seed: int, window: str):
    fill(small_world, 150, seed)
    sealing.seal(NOW)
    fill(small_world, 20, seed + 10)
    table = built(f"window={window}")
    for size in SizeClass.objects.all():
        with connection.cursor() as cursor:
            cursor.execute(SQL, [size.id, table.window.start, table.window.end])
            expected = {row[:2]: row[2:] for row in cursor.fetchall()}
        for link, ours in values(table, size.name).items():
            theirs = expected.pop(link, (*[None] * 4, 0, 0, *[None] * 3))
            blank_or_not = [np.nan if value is None else value for value in theirs]
            assert ours == pytest.approx(blank_or_not, rel=1e-6, nan_ok=True)
        assert expected == {}


@pytest.mark.parametrize("text", ["streams=4", "streams=!4&window=24h", "source_site=!RAL"])
def test_the_newest_success_and_failure_are_those_of_the_chosen_results(small_world, text: str):
    fill(small_world, 60, 3)
    four = world.profile(streams=4).id
    half = Transfer.objects.order_by("id").values_list("id", flat=True)[:30]
    Transfer.objects.filter(id__in=list(half)).update(profile_id=four)
    sealing.seal(NOW)
    built(text.replace("!", ""))  # nothing that is kept of another question goes into this one
    table = built(text)
    chosen = Transfer.objects.filter(
        started_at__gte=table.window.start, started_at__lt=table.window.end
    )
    if "streams" in text:
        chosen = chosen.filter(profile__streams=4) if text == "streams=4" else (
            chosen.exclude(profile__streams=4)
        )  # fmt: skip
    for size in ("small", "large"):
        for link, ours in values(table, size).items():
            results = chosen.filter(
                source__name=link[0], destination__name=link[1], size_class__name=size
            )
            newest = [
                results.filter(state=state).aggregate(last=Max("started_at"))["last"]
                for state in ("done", "failed")
            ]
            times = [one.timestamp() if one else np.nan for one in newest]
            assert ours[7:] == pytest.approx(times, nan_ok=True), (link, size)


def test_the_newest_success_is_found_anew_and_from_what_was_kept(small_world):
    fill(small_world, 100, 4)
    sealing.seal(NOW)
    first = built("window=30d")
    ANSWERS.forget()
    again = built("window=30d")
    assert again is not first
    for name in ("large.last", "large.last_ok", "large.last_failed", "small.last_ok"):
        assert np.array_equal(first.column(name), again.column(name), equal_nan=True)


def test_the_state_of_a_link_is_that_of_its_cell(small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    transfer(ral, glasgow, 5.0)
    transfer(ral, glasgow, None, ago=timedelta(minutes=10))
    transfer(glasgow, ral, 5.0, ago=3 * HOUR)
    transfer(desy, ral, None)
    transfer(desy, glasgow, 5.0, size="small", ago=90 * HOUR)
    world.downtime(endpoint=scratch)
    for text in ("", "cloud=UK", "streams=1", "from=2026-11-19T00:00:00Z&to=2026-11-20T11:00:00Z"):
        table = built(text)
        for size in ("small", "large"):
            query = MatrixQuery.from_params(QueryDict(f"{text}&size={size}"))
            answer = grid.build(query, NOW)
            cells = {
                (source.name, destination.name): answer.cells.state[row, column]
                for row, source in enumerate(answer.sources)
                for column, destination in enumerate(answer.destinations)
            }
            states = zip(names(table), table.column(f"{size}.state").tolist(), strict=True)
            assert {link: cells.get(link, NOT_APPLICABLE) for link in names(table)} == dict(states)
    found = {STATES[one] for one in built().column("large.state")}
    assert found == {"measured", "failed", "stale", "untested", "down"}
    assert STATES[built().column("small.state")[0]] == "not_applicable"


def test_links_are_ordered_by_their_state(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.glasgow, small_world.ral, None)
    for descending in (False, True):
        states = ordered(built(), "large.state", descending=descending).column("large.state")
        assert states.tolist() == sorted(states.tolist(), reverse=descending)
        assert len(set(states.tolist())) == 3


def test_equal_values_have_no_spread_at_all(small_world):
    for _ in range(3):
        transfer(small_world.ral, small_world.glasgow, 0.1)
    found = values(built(), "large")["RAL_DATADISK", "Glasgow_DATADISK"]
    assert (found[1], found[3]) == (0, 0)


def test_a_link_is_in_the_table_if_a_mesh_tests_it_or_it_has_a_result(small_world):
    assert len(built()) == 12
    Schedule.objects.exclude(source=small_world.ral, destination=small_world.desy).delete()
    world.Mesh.objects.create(name="newer")  # schedules follow the registry
    assert names(built()) == [("RAL_DATADISK", "DESY_DATADISK")]
    transfer(small_world.glasgow, small_world.ral, None, size="small")
    transfer(small_world.glasgow, small_world.desy, 5.0, ago=1000 * HOUR)
    transfer(small_world.desy, small_world.ral, None, state="lost")
    table = built()
    assert names(table) == [("RAL_DATADISK", "DESY_DATADISK"), ("Glasgow_DATADISK", "RAL_DATADISK")]
    assert table.column("small.failed").tolist() == [0, 1]
    assert np.isnan(table.column("large.mean_mb_s")).all()


def test_a_retired_endpoint_is_in_the_table_with_results_only(small_world):
    small_world.glasgow.retired_at = timezone.now()
    small_world.glasgow.save()
    assert len(built()) == 6
    transfer(small_world.glasgow, small_world.ral, 5.0)
    assert len(built()) == 7


@pytest.mark.parametrize(
    ("text", "count"),
    [("source_site=RAL", 3), ("cloud=UK&destination_cloud=DE", 4), ("endpoint=!RAL_DATADISK", 6)],
)
def test_filters_choose_links(small_world, text: str, count: int):
    assert len(built(text)) == count


def test_filters_choose_how_results_were_made(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.ral, small_world.glasgow, 9.0, made=world.profile(streams=4))
    assert built("streams=4").column("large.mean_mb_s").tolist() == [pytest.approx(9.0)]
    everything = built("origin=test").column("large.ok")
    assert (len(everything), everything.sum()) == (12, 2)


@pytest.fixture
def three(small_world: World) -> LinkTable:
    for source, rate in ((small_world.ral, 5.0), (small_world.desy, 1.0), (small_world.scratch, 5)):
        transfer(source, small_world.glasgow, rate)
    return built("destination_endpoint=Glasgow_DATADISK")


@pytest.mark.parametrize(
    ("column", "descending", "sources"),
    [
        ("large.mean_mb_s", False, "DESY_DATADISK RAL_DATADISK DESY_SCRATCHDISK"),
        ("large.mean_mb_s", True, "RAL_DATADISK DESY_SCRATCHDISK DESY_DATADISK"),
        ("source", False, "DESY_DATADISK DESY_SCRATCHDISK RAL_DATADISK"),
        ("source.tier", True, "DESY_DATADISK DESY_SCRATCHDISK RAL_DATADISK"),
        ("small.ok", True, "RAL_DATADISK DESY_DATADISK DESY_SCRATCHDISK"),
    ],
)
def test_any_column_orders_the_links_and_equal_ones_stay_in_order(
    three, column: str, descending: bool, sources: str
):
    found = ordered(three, column, descending=descending)
    assert found.column("source").tolist() == sources.split()


@pytest.mark.parametrize("descending", [False, True])
def test_links_without_a_value_come_last_either_way(small_world, descending: bool):
    transfer(small_world.desy, small_world.ral, 5.0)
    found = ordered(built(), "large.mean_mb_s", descending=descending)
    assert names(found)[0] == ("DESY_DATADISK", "RAL_DATADISK")
    assert np.isnan(found.column("large.mean_mb_s")).tolist() == [False] + 11 * [True]


def test_a_page_of_the_table_is_a_table(small_world):
    table = built()
    page = table.taken(np.arange(3, 6))
    assert names(page) == names(table)[3:6]
    assert len(page) == len(page.of_class("large")["ok"]) == 3
    found = table.taken(table.column("source.cloud") == "DE")
    assert set(found.column("source.cloud").tolist()) == {"DE"}


@pytest.mark.parametrize("name", ["giant.ok", "large.nothing", "source.nothing", "", "ok"])
def test_an_unknown_column_is_a_key_error(small_world, name: str):
    with pytest.raises(KeyError):
        built().column(name)


def test_a_table_of_nothing_is_empty(db):
    table = built()
    assert len(table) == 0
    assert ordered(table, "large.last").column("source").tolist() == []


def test_the_number_of_statements_depends_on_the_number_of_classes_alone(small_world):
    def statements() -> list[Any]:
        with CaptureQueriesContext(connection) as captured:
            built("window=7d")
        return captured.captured_queries

    few = len(statements())
    fill(small_world, 30, 1)
    sealing.seal(NOW)
    transfer(small_world.ral, small_world.glasgow, 5.0)
    many = statements()
    # The form's classes; what has changed; versions, classes; places and three
    # plans, until remembered; for each class what stands there, and columns of segments until
    # they are in the cache; raw rows of one class. Who is down. The marks of conditions; for each
    # class the versions of what is kept of how links stand, and for those with other results their
    # windows again, and columns or rows of all but one.
    assert few == 1 + 1 + 2 + 4 + 3 + 1 + 1 + 3 * (1 + 3)
    of_standings = 1 + 3 + 5 + 3
    assert len(many) == 1 + 1 + 2 + 3 + 2 + 1 + 1 + of_standings, "\n".join(
        one["sql"][:200] for one in many
    )
    assert len(statements()) == 1 + 1


def test_columns_are_kept_whatever_links_are_chosen_until_anything_in_them_changes(small_world):
    first = built()
    assert built("stat=max&size=small").links is first.links
    chosen = built("source_site=RAL&destination_cloud=!DE")
    assert chosen.links is first.links
    assert names(chosen) == [("RAL_DATADISK", "Glasgow_DATADISK")]
    assert len(first) == 12
    assert built("streams=4").links is not first.links
    assert built("window=24h").links is not first.links
    transfer(small_world.ral, small_world.glasgow, 5.0)
    assert built().column("large.ok").sum() == 1
    world.Mesh.objects.filter(id=small_world.mesh.id).update(priority=9)
    assert built().column("priority").max() == 9


def test_the_priority_is_the_highest_of_the_meshes_that_test_the_link(small_world):
    urgent = world.Mesh.objects.create(name="urgent", priority=8)
    lazy = world.Mesh.objects.create(name="lazy", priority=0)
    world.schedule(urgent, (small_world.ral, small_world.glasgow))
    world.schedule(lazy, (small_world.ral, small_world.glasgow))
    small = SizeClass.objects.get(name="small")
    Schedule.objects.filter(mesh=urgent).update(size_class=small)
    Schedule.objects.filter(source=small_world.desy, destination=small_world.ral).delete()
    transfer(small_world.desy, small_world.ral, 5.0)
    found = dict(zip(names(built()), built().column("priority").tolist(), strict=True))
    assert found["RAL_DATADISK", "Glasgow_DATADISK"] == 8
    assert found["Glasgow_DATADISK", "RAL_DATADISK"] == 5
    assert np.isnan(found["DESY_DATADISK", "RAL_DATADISK"])
    assert built("mesh=lazy").column("priority").tolist() == [0]


def test_links_of_one_source_are_ordered_by_destination_and_the_other_way_round(small_world):
    assert names(ordered(built(), "source"))[:4] == [
        ("DESY_DATADISK", "DESY_SCRATCHDISK"),
        ("DESY_DATADISK", "Glasgow_DATADISK"),
        ("DESY_DATADISK", "RAL_DATADISK"),
        ("DESY_SCRATCHDISK", "DESY_DATADISK"),
    ]
    assert names(ordered(built(), "destination", descending=True))[:2] == [
        ("Glasgow_DATADISK", "RAL_DATADISK"),
        ("DESY_SCRATCHDISK", "RAL_DATADISK"),
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 12),
        ("ral", 6),
        ("RAL glasgow", 2),
        ("t1", 6),
        ("T2", 12),
        ("tier 1 de", 4),
        ("scratch", 6),
        ("gb", 10),
        ("Glas gow_", 6),
        ("nowhere", 0),
        ("ral nowhere", 0),
    ],
)
def test_a_search_finds_the_links_that_have_every_word(small_world, text: str, count: int):
    assert built().searched(text).sum() == count


@pytest.mark.long
def test_a_million_links_are_searched_and_ordered():
    table = many_links.table(1001)
    assert len(table) == 1_001_000
    found = table.searched("site-7_ c7")
    assert found.sum() == 2_000
    rows = table.order("large.mean_mb_s", descending=True, among=found)
    rates = table.taken(rows).column("large.mean_mb_s")
    known = rates[~np.isnan(rates)]
    assert 1_700 < len(known) < 1_900
    assert (np.diff(known) <= 0).all()
    assert np.isnan(rates[len(known) :]).all()
