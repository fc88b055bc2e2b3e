"""Published tables come out again: results made to have their figures give them back."""

import csv
from datetime import timedelta
from uuid import uuid4

import numpy as np
import pytest
from django.http import QueryDict

from matrix.answers.matrix import grid
from matrix.answers.table import link_table
from matrix.answers.table.link_table import LinkTable
from matrix.query.matrix_query import MatrixQuery
from sonar.models import DirtyMark, Endpoint, Site, SizeClass
from sonar.results import sealing, store
from sonar.results.store import Result
from tests.matrix import world
from tests.matrix.world import MB, NOW

pytestmark = pytest.mark.django_db

TABLE = world.PUBLISHED.with_name("glasgow_sonar.csv")
DAY = timedelta(days=1)


def rows() -> list[dict[str, str]]:
    """The Glasgow sonar table: 24 links in three size classes."""
    return list(csv.DictReader(TABLE.read_text().splitlines()))


def having(mean: float, std: float, count: int) -> np.ndarray:
    """So many positive values with this mean and sample standard deviation: all but one equal."""
    low = mean - std / np.sqrt(count)
    return np.array([low] * (count - 1) + [mean + (count - 1) * std / np.sqrt(count)])


def endpoints(table: list[dict[str, str]]) -> dict[str, Endpoint]:
    found = {}
    for end in ("source", "destination"):
        for row in table:
            name = row[end]
            if name not in found:
                tier = int(row[f"{end}_tier"].removeprefix("T"))
                site = Site.objects.create(name=name, cloud=row[f"{end}_cloud"], tier=tier)
                found[name] = world.endpoint(name, site)
    return found


def made(row: dict[str, str], places: dict[str, Endpoint], classes: dict[str, int]) -> list[Result]:
    """Results with the figures of a row, spread over ten days."""
    count = int(row["transfers"])
    rates = having(float(row["rate_mean_mb_s"]) * MB, float(row["rate_std_mb_s"]) * MB, count)
    sizes = having(float(row["size_mean_mb"]) * MB, float(row["size_std_mb"]) * MB, count)
    profile = world.profile().id
    return [
        Result(
            id=uuid4(),
            source_id=places[row["source"]].id,
            destination_id=places[row["destination"]].id,
            size_class_id=classes[row["size_class"]],
            profile_id=profile,
            state="done",
            started_at=NOW - number * 10 * DAY / count - timedelta(minutes=1),
            seconds=round(size) / rate,
            bytes=round(size),
        )
        for number, (rate, size) in enumerate(zip(rates, sizes, strict=True))
    ]


def rounded(table: LinkTable) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """The table's figures with the digits of the published one."""
    sources, destinations = table.column("source"), table.column("destination")
    return {
        (sources[row], destinations[row], name): (
            round(of_class["mean_mb_s"][row], 2),
            round(of_class["std_mb_s"][row], 2),
            round(of_class["size_mean_bytes"][row] / MB, 2),
            round(of_class["size_std_bytes"][row] / MB, 2),
            int(of_class["ok"][row]),
        )
        for name in table.sizes
        for of_class in [table.of_class(name)]
        for row in range(len(table))
    }


@pytest.mark.long
@pytest.mark.parametrize("sealed", [False, True])
def test_the_glasgow_sonar_table_comes_out(db, sealed):
    table = rows()
    places, classes = endpoints(table), dict(SizeClass.objects.values_list("name", "id"))
    for row in table:
        store.store(made(row, places, classes))
    if sealed:
        sealing.seal(NOW)
    found = rounded(link_table.build(MatrixQuery.from_params(QueryDict("window=30d")), NOW))
    assert len(found) == len(table) == 72
    for row in table:
        published = ("rate_mean_mb_s", "rate_std_mb_s", "size_mean_mb", "size_std_mb", "transfers")
        assert found[row["source"], row["destination"], row["size_class"]] == tuple(
            float(row[name]) for name in published
        )


def test_the_published_matrix_and_its_averages_come_out_of_segments(db):
    table = world.make_published()
    later = NOW + timedelta(hours=2)
    sealing.seal(later)
    assert not DirtyMark.objects.filter(level="hour").exists()
    answer = grid.build(MatrixQuery(), later)
    order = [table.sources.index(group.name) for group in answer.sources]
    columns = [table.destinations.index(group.name) for group in answer.destinations]
    rates = np.array(table.rates, dtype=float)[order][:, columns]
    np.testing.assert_allclose(answer.cells.value, rates, rtol=1e-6)
    # The table's own averages were made before its cells were rounded: one differs by 0.006.
    source_average = np.array(table.source_average)[order]
    destination_average = np.array(table.destination_average)[columns]
    np.testing.assert_allclose(answer.averages.row, source_average, atol=0.0061)
    np.testing.assert_allclose(answer.averages.column, destination_average, atol=0.0061)
    assert round(answer.averages.grand, 2) == table.average
