"""Where a site stands: equal to the matrix, ranked within its tier, and against its WAN."""

import math

import numpy as np
import pytest

from matrix.answers.matrix import grid
from matrix.answers.site import reports
from matrix.answers.site.reports import ENDS, Report, capacity
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Site
from sonar.results import sealing
from tests.conditions import stored_condition
from tests.matrix import world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db


def report(name: str, query: MatrixQuery | None = None) -> Report:
    return reports.build(name, query or MatrixQuery(), NOW)


def names(cells: list[reports.ReportCell]) -> list[tuple[str, str]]:
    return [(cell.source, cell.destination) for cell in cells]


@pytest.mark.parametrize("query", [MatrixQuery(), MatrixQuery(rows="site", columns="site")])
def test_the_means_of_every_site_are_the_averages_of_the_matrix(db, query):
    table = world.make_published()
    answered = grid.build(query, NOW)
    rows = zip(answered.sources, answered.averages.row.tolist(), strict=True)
    columns = zip(answered.destinations, answered.averages.column.tolist(), strict=True)
    for end, averages in (("source", rows), ("destination", columns)):
        for group, average in averages:
            assert report(group.site).standings(end)["large"].mean == average
    at = table.sources.index("UKI-LT2-QMUL_DATADISK")
    mean = report("UKI-LT2-QMUL").standings("source")["large"].mean
    assert mean == pytest.approx(table.source_average[at], abs=0.0061)


def test_a_site_of_several_endpoints_is_one_row_of_the_matrix_of_sites(small_world):
    transfer(small_world.desy, small_world.ral, 10.0)
    transfer(small_world.scratch, small_world.ral, 2.0)
    transfer(small_world.scratch, small_world.glasgow, 20.0)
    transfer(small_world.desy, small_world.scratch, 30.0)
    own = report("DESY").standings("source")["large"]
    answered = grid.build(MatrixQuery(rows="site", columns="site"), NOW)
    assert own.mean == pytest.approx((6 + 20 + 30) / 3)
    assert own.mean == answered.averages.row[[one.name for one in answered.sources].index("DESY")]
    assert own.cells == 3


def test_counts_success_and_last_are_of_all_tests_at_this_end(small_world):
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=3 * HOUR)
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=2 * HOUR)
    transfer(small_world.ral, small_world.desy, None, ago=HOUR)
    transfer(small_world.ral, small_world.desy, None, ago=HOUR, state="lost")
    transfer(small_world.glasgow, small_world.ral, None)
    own = report("RAL").standings("source")["large"]
    assert (own.ok, own.failed, own.cells) == (2, 1, 1)
    assert own.success == pytest.approx(2 / 3)
    assert own.last == (NOW - HOUR).timestamp()
    assert report("RAL").standings("destination")["large"].failed == 1
    assert math.isnan(report("RAL").standings("source")["small"].success)


@pytest.fixture
def four_tier_two_sites(small_world) -> World:
    """Glasgow sends at 4, DESY at 8, Bonn at 16 and RAL, of another tier, at 100."""
    bonn = world.endpoint("Bonn_DATADISK", Site.objects.create(name="Bonn", tier=2))
    world.endpoint("Idle_DATADISK", Site.objects.create(name="Idle", tier=2))
    transfer(small_world.glasgow, small_world.ral, 4.0)
    transfer(small_world.desy, small_world.ral, 8.0)
    transfer(bonn, small_world.ral, 16.0)
    transfer(small_world.ral, small_world.glasgow, 100.0)
    return small_world


@pytest.mark.parametrize(
    ("name", "rank", "ranked", "median"),
    # RAL is alone in its tier, without peers.
    [("Bonn", 1, 3, 6.0), ("DESY", 2, 3, 10.0), ("Glasgow", 3, 3, 12.0), ("RAL", 1, 1, math.nan)],
)
def test_rank_and_median_are_among_the_measured_sites_of_the_tier(
    four_tier_two_sites, name, rank, ranked, median
):
    own = report(name).standings("source")["large"]
    assert (own.rank, own.ranked) == (rank, ranked)
    assert own.peers_median == pytest.approx(median, nan_ok=True)
    assert own.ratio == pytest.approx(own.mean / median, nan_ok=True)


def test_a_site_without_a_measured_cell_has_no_rank(four_tier_two_sites):
    own = report("Idle").standings("source")["large"]
    assert own.rank is None
    assert math.isnan(own.mean)
    blank = report("Glasgow").standings("destination")["small"]
    assert (blank.rank, blank.ranked, blank.ok) == (None, 0, 0)


def test_equal_sites_share_a_rank(small_world):
    transfer(small_world.glasgow, small_world.ral, 4.0)
    transfer(small_world.desy, small_world.ral, 4.0)
    ranks = [report(name).standings("source")["large"].rank for name in ("Glasgow", "DESY")]
    assert ranks == [1, 1]


def test_the_fastest_transfer_is_compared_with_the_nominal_capacity(small_world):
    assert capacity(10) == 1250
    transfer(small_world.desy, small_world.ral, 50.0)
    transfer(small_world.desy, small_world.ral, 100.0)
    transfer(small_world.scratch, small_world.glasgow, 90.0)
    transfer(small_world.desy, small_world.scratch, 900.0)  # does not leave the site
    own = report("DESY").standings("source")["large"]
    assert (own.fastest, own.fastest_partner) == (pytest.approx(100), "RAL")
    assert own.of_capacity(10) == pytest.approx(0.08)
    assert math.isnan(own.of_capacity(None))


def test_row_and_column_are_never_mixed_up(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.glasgow, small_world.ral, 7.0)
    found = {end: report("RAL").cells(end) for end in ENDS}
    assert names(found["source"]) == [("RAL", "DESY"), ("RAL", "Glasgow")]
    assert names(found["destination"]) == [("DESY", "RAL"), ("Glasgow", "RAL")]
    assert found["source"][1].mean == pytest.approx(5)
    assert found["destination"][1].mean == pytest.approx(7)
    assert [cell.state for cell in found["source"]] == ["untested", "measured"]


def test_the_worst_links_come_first_and_are_ten_at_most(small_world):
    for number in range(12):
        site = Site.objects.create(name=f"site-{number:02d}")
        transfer(small_world.ral, world.endpoint(f"place-{number:02d}", site), 20.0 - number)
    worst = report("RAL").worst("source")
    assert [cell.destination for cell in worst] == [f"place-{n:02d}" for n in range(11, 1, -1)]
    assert report("RAL").worst("destination") == []


def test_failing_links_are_those_that_conditions_call_so(small_world):
    """Not those of which every test failed: too few tests say nothing of a link."""
    ral, glasgow, desy, _ = small_world.endpoints
    transfer(ral, glasgow, None)
    for rate in (5.0, None, None):
        transfer(ral, desy, rate)
    assert report("RAL").failing("source") == []
    stored_condition(source=ral, destination=desy)
    failing = report("RAL").failing("source")
    assert [(cell.destination, cell.failed) for cell in failing] == [("DESY_DATADISK", 2)]
    assert report("RAL").failing("destination") == []
    assert len(report("DESY").failing("destination")) == 1


def test_only_results_made_as_asked_count(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.ral, small_world.glasgow, 9.0, made=world.profile(streams=4))
    asked = MatrixQuery(filters=(Filter("streams", "4"),))
    assert report("RAL", asked).standings("source")["large"].mean == pytest.approx(9)
    assert report("RAL", asked).worst("source")[0].mean == pytest.approx(9)


def test_the_number_of_queries_of_a_report_does_not_grow(small_world):
    def queries() -> int:
        return len(statements(report, "RAL"))

    queries()
    few = queries()
    rng = np.random.default_rng(1)
    with world.transfers() as some:
        for number in range(20):
            source, destination = rng.choice(4, 2, replace=False)
            ends = small_world.endpoints[source], small_world.endpoints[destination]
            some.add(*ends, float(number + 1), ago=number * 5 * HOUR)
    queries()  # how links stand is kept until results change
    assert queries() == few  # rows that are not sealed are kept, too
    sealing.seal(NOW)
    queries()
    assert queries() <= few + 1
