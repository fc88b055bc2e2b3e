"""From recorded transfers to cells: statistics, groupings, filters, states."""

from datetime import timedelta

import numpy as np
import pytest
from django.http import QueryDict
from django.utils import timezone

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import STATES
from matrix.store.cache import ANSWERS
from sonar.models import Mesh, Schedule, Transfer
from sonar.results import sealing
from tests.matrix import world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = pytest.mark.django_db


# The printed cells of this column give 3.1156; the table prints 3.11, surely from more digits.
PRINTED_OTHERWISE = "TRIUMF-LCG2_DATADISK"


def built(text: str = "") -> Grid:
    return grid.build(MatrixQuery.from_params(QueryDict(text)), NOW)


def values(answer: Grid) -> dict[tuple[str, str], float]:
    """Return the cells that have a value, by the names of their ends."""
    return {
        (source.name, destination.name): float(answer.cells.value[row, column])
        for row, source in enumerate(answer.sources)
        for column, destination in enumerate(answer.destinations)
        if not np.isnan(answer.cells.value[row, column])
    }


def state(answer: Grid, source: str, destination: str) -> str:
    row = [group.name for group in answer.sources].index(source)
    column = [group.name for group in answer.destinations].index(destination)
    return STATES[answer.cells.state[row, column]]


def test_the_published_matrix_comes_out_with_its_published_averages(db):
    table = world.make_published()
    answer = built()
    order = [table.sources.index(group.name) for group in answer.sources]
    columns = [table.destinations.index(group.name) for group in answer.destinations]
    np.testing.assert_allclose(answer.cells.value, np.array(table.rates)[order][:, columns])
    for found, printed, group in [
        *zip(
            answer.averages.row, np.array(table.source_average)[order], answer.sources, strict=True
        ),
        *zip(
            answer.averages.column,
            np.array(table.destination_average)[columns],
            answer.destinations,
            strict=True,
        ),
    ]:
        assert round(found, 2) == printed or group.name == PRINTED_OTHERWISE, group
        assert found == pytest.approx(printed, abs=0.01)
    assert round(answer.averages.grand, 2) == table.average


def test_last_is_the_age_of_the_newest_result(small_world):
    """All other statistics, filters and groupings: see test_against_sql."""
    for minutes in (90, 30):
        transfer(small_world.ral, small_world.glasgow, 5.0, ago=timedelta(minutes=minutes))
    assert values(built("stat=last")) == {("RAL_DATADISK", "Glasgow_DATADISK"): 1800}


def test_a_lost_transfer_counts_neither_as_ok_nor_as_failed(small_world):
    transfer(small_world.ral, small_world.glasgow, None, state="lost")
    assert values(built("stat=count")) == {}
    assert state(built(), "RAL_DATADISK", "Glasgow_DATADISK") == "untested"


def test_the_window_holds_its_start_and_not_its_end(small_world):
    for minutes in (10, 20, 30):
        transfer(small_world.ral, small_world.desy, minutes, ago=timedelta(minutes=minutes))
    assert list(values(built("from=2026-11-20T11:40:30Z&to=2026-11-20T11:50:30Z")).values()) == [20]
    assert list(values(built("from=2026-11-20T11:40:31Z&to=2026-11-20T11:50:31Z")).values()) == [10]


def test_size_classes_are_not_mixed(small_world):
    transfer(small_world.ral, small_world.desy, 3.0, size="small")
    transfer(small_world.ral, small_world.desy, 9.0)
    assert list(values(built("size=small")).values()) == [3.0]
    assert list(values(built()).values()) == [9.0]


def test_a_group_keeps_the_attributes_that_its_endpoints_share(small_world):
    uk = built("rows=cloud").sources[1]
    expected = ("UK", "UK", "GB", None, None)
    assert (uk.name, uk.cloud, uk.facts["country"], uk.tier, uk.site) == expected


LINKS = {"RG": 1.0, "GD": 2.0, "DS": 3.0, "SR": 4.0}


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("site=RAL", "RG SR"),
        ("site=!RAL", "GD DS"),
        ("source_site=RAL", "RG"),
        ("source_site=!RAL", "GD DS SR"),
        ("destination_site=RAL", "SR"),
        ("destination_site=!RAL", "RG GD DS"),
        ("site=RAL&site=Glasgow", "RG GD SR"),
        ("site=!RAL&site=!Glasgow", "DS"),
        ("site=DESY&site=!RAL", "GD DS"),
        ("cloud=DE", "GD DS SR"),
        ("source_cloud=UK&destination_cloud=UK", "RG"),
        ("tier=1", "RG SR"),
        ("destination_tier=!1", "RG GD DS"),
        ("country=DE", "GD DS SR"),
        ("source_country=!DE", "RG GD"),
        ("label=SCRATCHDISK", "DS SR"),
        ("destination_label=SCRATCHDISK", "DS"),
        ("endpoint=DESY_SCRATCHDISK", "DS SR"),
        ("source_endpoint=DESY_SCRATCHDISK", "SR"),
        ("destination_endpoint=!DESY_SCRATCHDISK", "RG GD SR"),
        ("cloud=nowhere", ""),
        ("mover=xrootd", "GD"),
        ("mover=!xrootd", "RG DS SR"),
        ("streams=4", "DS"),
        ("streams=4&streams=1", "RG GD DS SR"),
        ("ip_version=6", "SR"),
        ("ip_version=!6", "RG GD DS"),
        ("origin=production", "RG"),
        ("origin=!production", "GD DS SR"),
        ("origin=all", "RG GD DS SR"),
        ("origin=all&origin=!production", "GD DS SR"),
        ("origin=production&origin=test", "RG GD DS SR"),
        ("mesh=everything", "SR"),
        ("mesh=!everything", "RG GD DS"),
    ],
)
def test_filters_choose_links_and_profiles(small_world, text, links):
    made = {
        "RG": world.profile(origin="production"),
        "GD": world.Profile.objects.create(mover="xrootd"),
        "DS": world.profile(streams=4),
        "SR": world.profile(ip_version=6, mesh=small_world.mesh),
    }
    place = dict(zip("RGDS", small_world.endpoints, strict=True))
    with world.transfers() as some:
        for (source, destination), rate in LINKS.items():
            some.add(place[source], place[destination], rate, made=made[source + destination])
    every = text if "origin" in text else f"{text}&origin=all"
    assert set(values(built(every)).values()) == {LINKS[link] for link in links.split()}


def test_a_measured_cell_goes_stale_after_two_intervals(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=2 * HOUR)
    transfer(small_world.ral, small_world.desy, 5.0, ago=2 * HOUR + timedelta(seconds=1))
    assert state(built(), "RAL_DATADISK", "Glasgow_DATADISK") == "measured"
    assert state(built(), "RAL_DATADISK", "DESY_DATADISK") == "stale"


def test_a_link_outside_every_mesh_is_judged_by_its_results_alone(small_world):
    Schedule.objects.all().delete()
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=100 * HOUR)
    transfer(small_world.glasgow, small_world.ral, None, ago=100 * HOUR)
    answer = built()
    assert state(answer, "RAL_DATADISK", "Glasgow_DATADISK") == "measured"
    assert state(answer, "Glasgow_DATADISK", "RAL_DATADISK") == "failed"
    assert state(answer, "RAL_DATADISK", "RAL_DATADISK") == "not_applicable"
    assert answer.idle == ("DESY_DATADISK", "DESY_SCRATCHDISK")


def test_tested_without_success_is_failed_and_not_tested_is_untested(small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    answer = built()
    assert state(answer, "RAL_DATADISK", "Glasgow_DATADISK") == "failed"
    assert state(answer, "RAL_DATADISK", "DESY_DATADISK") == "untested"
    assert state(answer, "RAL_DATADISK", "RAL_DATADISK") == "not_applicable"
    assert answer.states() == {
        "measured": 0,
        "failing": 0,
        "failed": 1,
        "stale": 0,
        "untested": 11,
        "down": 0,
        "not_applicable": 4,
    }


def test_a_declared_downtime_of_either_end_shows_at_the_end_of_the_window(small_world):
    world.downtime(site=small_world.glasgow.site)
    transfer(small_world.ral, small_world.glasgow, 5.0)
    answer = built()
    assert state(answer, "RAL_DATADISK", "Glasgow_DATADISK") == "down"
    assert state(answer, "Glasgow_DATADISK", "DESY_DATADISK") == "down"
    assert state(answer, "RAL_DATADISK", "DESY_DATADISK") == "untested"
    before = built("from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:00Z")
    assert state(before, "RAL_DATADISK", "Glasgow_DATADISK") == "untested"


def test_a_group_is_down_only_if_all_its_links_are(small_world):
    world.downtime(endpoint=small_world.desy)
    grouped = built("rows=site&columns=site")
    assert state(grouped, "RAL", "DESY") == "untested"
    assert state(grouped, "DESY", "DESY") == "down"
    assert state(grouped, "RAL", "RAL") == "not_applicable"


def test_a_group_takes_the_shortest_promise_and_the_newest_result(small_world):
    often = Mesh.objects.create(name="often")
    world.schedule(often, (small_world.ral, small_world.desy), every=600)
    transfer(small_world.ral, small_world.scratch, 5.0, ago=timedelta(minutes=21))
    assert state(built(), "RAL_DATADISK", "DESY_SCRATCHDISK") == "measured"
    assert state(built("columns=site"), "RAL_DATADISK", "DESY") == "stale"
    transfer(small_world.ral, small_world.desy, 5.0, ago=timedelta(minutes=19))
    assert state(built("columns=site"), "RAL_DATADISK", "DESY") == "measured"


def test_only_meshes_that_pass_the_filters_promise_results(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, made=world.profile(streams=4))
    answer = built("streams=4")
    assert [group.name for group in answer.sources] == ["RAL_DATADISK"]
    assert built("origin=production").sources == ()
    assert len(built("mover=http-tpc").sources) == 4
    assert len(built("mesh=everything").sources) == 4
    assert len(built("mesh=!everything").sources) == 1


def test_a_retired_endpoint_shows_only_with_results_in_the_window(small_world):
    small_world.glasgow.retired_at = timezone.now()
    small_world.glasgow.save()
    assert "Glasgow_DATADISK" not in {group.name for group in built().sources}
    assert built().idle == ()
    transfer(small_world.glasgow, small_world.ral, 5.0)
    answer = built()
    assert "Glasgow_DATADISK" in {group.name for group in answer.sources}
    assert "Glasgow_DATADISK" not in {group.name for group in answer.destinations}


def test_a_matrix_of_nothing_is_empty(db):
    answer = built()
    assert (answer.sources, answer.destinations, answer.cells.value.shape) == ((), (), (0, 0))


def test_a_simulated_endpoint_makes_the_matrix_simulated(small_world):
    assert not built().simulated
    small_world.ral.simulated = True
    small_world.ral.save()
    assert built().simulated
    assert not built("site=!RAL").simulated


# Fingerprint, dirty marks, segments, rows, conditions, downtimes; profiles where a filter asks. New
# results of today need the versions of what is kept of how links stand, and those results apart.
@pytest.mark.parametrize(
    ("text", "number", "reading"),
    [("", 4, 3), ("rows=site&columns=cloud&stat=p95&mover=http-tpc&site=RAL", 5, 4)],
)
def test_the_number_of_queries_does_not_grow_with_the_data(small_world, text, number, reading):
    query = MatrixQuery.from_params(QueryDict(text))

    def sent() -> list[str]:
        ANSWERS.forget()
        return statements(grid.build, query, NOW)

    transfer(small_world.ral, small_world.glasgow, 3.0)
    first = sent()
    few = sent()
    for rate in (1.0, 2.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    many = sent()
    # Endpoints and promises are only read when they have changed, and what is older than today
    # when late results came: nothing lies there, so that there are no rows.
    assert len(few) == number, "\n".join(few)
    assert len(many) == number + reading, "\n".join(many)
    assert len(first) == number + reading + 2 + 2 * (reading - 2), "\n".join(first)


def test_the_version_changes_with_results_registry_query_and_minute(small_world):
    query = MatrixQuery()
    seen = {grid.version(query, NOW)}
    assert grid.version(query, NOW + timedelta(seconds=29)) in seen
    seen.add(grid.version(query, NOW + timedelta(seconds=30)))
    seen.add(grid.version(query.replace(stat="max"), NOW))
    transfer(small_world.ral, small_world.glasgow, 1.0)
    seen.add(grid.version(query, NOW))
    small_world.ral.label = "X"
    small_world.ral.save()
    seen.add(grid.version(query, NOW))
    assert len(seen) == 5


def test_the_version_of_a_custom_window_changes_with_the_minute_too(db):
    query = MatrixQuery.from_params(QueryDict("from=2026-11-01&to=2026-12-01"))
    later = NOW + timedelta(minutes=1)
    assert grid.version(query, NOW) != grid.version(query, later)


def test_a_cell_without_a_success_of_the_age_that_was_asked_for_has_no_value(small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    transfer(ral, glasgow, 40.0, ago=HOUR)
    transfer(ral, desy, 90.0, ago=20 * HOUR)
    transfer(ral, desy, None, ago=HOUR / 60)
    transfer(ral, scratch, None, ago=HOUR)
    names = [one.name for one in (glasgow, desy, scratch)]
    for stat in ("mean", "median", "success", "count", "last", "max"):
        young = built(f"max_age=3h&stat={stat}")
        assert values(young).keys() == {("RAL_DATADISK", "Glasgow_DATADISK")}, stat
        assert values(young).items() <= values(built(f"stat={stat}")).items()
    young, everything = built("max_age=3h"), built()
    assert [state(young, ral.name, name) for name in names] == ["measured", "stale", "failed"]
    assert [state(everything, ral.name, name) for name in names] == [
        *("measured", "measured", "failed")
    ]
    assert np.isnan(young.cells.std).all()
    assert (young.averages.grand, everything.averages.grand) == (40.0, 65.0)
    for name in ("ok", "failed", "last"):
        ours, theirs = getattr(young.cells, name), getattr(everything.cells, name)
        np.testing.assert_array_equal(ours, theirs)
    assert young.version != everything.version


def test_a_cell_of_many_links_is_as_young_as_its_youngest_success(small_world):
    transfer(small_world.desy, small_world.ral, 10.0, ago=HOUR)
    transfer(small_world.scratch, small_world.ral, 20.0, ago=20 * HOUR)
    transfer(small_world.glasgow, small_world.ral, 20.0, ago=20 * HOUR)
    answer = built("rows=site&columns=site&max_age=7200")
    assert values(answer) == {("DESY", "RAL"): 15.0}
    assert state(answer, "Glasgow", "RAL") == "stale"
    filtered = built("rows=site&columns=site&max_age=7200&endpoint=!DESY_DATADISK")
    assert values(filtered) == {}
    assert values(built("rows=site&columns=site&max_age=21h")).keys() == {
        *(("DESY", "RAL"), ("Glasgow", "RAL"))
    }


@pytest.mark.parametrize("text", ["", "streams=1", "from=2026-11-18T06:30:00Z&to=2026-11-20"])
@pytest.mark.parametrize("max_age", ["1h", "50000", "3d"])
def test_the_young_cells_are_those_of_sql(small_world, text, max_age):
    rng = np.random.default_rng(7)
    streams = {number: world.profile(streams=number) for number in (1, 2)}
    with world.transfers() as some:
        for _ in range(80):
            source, destination = rng.choice(4, 2, replace=False)
            ends = small_world.endpoints[source], small_world.endpoints[destination]
            ago = timedelta(seconds=int(rng.integers(0, 4 * 86_400)))
            made = streams[int(rng.integers(1, 3))]
            some.add(*ends, None if rng.random() < 0.5 else 5.0, ago=ago, made=made)
    sealing.seal(NOW)
    answer = built(f"{text}&max_age={max_age}&stat=count")
    chosen = Transfer.objects.filter(
        started_at__gte=answer.window.start,
        started_at__lt=answer.window.end,
        state="done",
        **({"profile__streams": 1} if text == "streams=1" else {}),
    )
    seconds = {"1h": 3600, "50000": 50_000, "3d": 3 * 86_400}[max_age]
    oldest = answer.moment - timedelta(seconds=seconds)
    young = chosen.filter(started_at__gte=oldest)
    assert values(answer).keys() == set(
        young.values_list("source__name", "destination__name").distinct()
    )


@pytest.mark.parametrize("text", ["soon", "-1", "0.5", "1e3", "\u0666"])
def test_an_age_that_is_none_is_refused(db, text):
    with pytest.raises(BadQueryError) as caught:
        MatrixQuery.from_params(QueryDict(f"max_age={text}"))
    allowed = "enter a number of seconds, or a number with s, m, h or d, for example, 6h"
    assert caught.value.errors == {"max_age": [f"max_age “{text}” is not an age: {allowed}."]}
