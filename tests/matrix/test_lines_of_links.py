"""Overhead and bandwidth in the matrix, the table, the API and on the link page: the same."""

import itertools
import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client

from matrix.answers.matrix import grid
from matrix.answers.table import link_table, table_query
from matrix.answers.table.link_table import LINE_COLUMNS
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes, around_median
from sonar.models import Endpoint
from tests.matrix import responses
from tests.matrix.world import NOW, SIZES, World, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

MEDIANS = """
    SELECT c.name, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / 1e6),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
        percentile_cont(%s) WITHIN GROUP (ORDER BY seconds),
        percentile_cont(%s) WITHIN GROUP (ORDER BY seconds)
    FROM sonar_transfer t JOIN sonar_sizeclass c ON c.id = size_class_id
    JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_site ss ON ss.id = s.site_id
    JOIN sonar_endpoint d ON d.id = destination_id JOIN sonar_site ds ON ds.id = d.site_id
    WHERE state = 'done' AND started_at >= %s AND started_at < %s
        AND {ends}
    GROUP BY 1
"""


def fill(
    source: Endpoint,
    destination: Endpoint,
    line: tuple[float, float],
    count: int = 7,
    *,
    noise: float = 1.2,
    off: float = 1.0,
) -> None:
    """Store transfers that take seconds + size / bandwidth; medium ones ``off`` times that."""
    random = np.random.default_rng(len(source.name) * 100 + len(destination.name))
    with transfers() as some:
        for size, number in itertools.product(SIZES, range(count)):
            megabytes = SIZES[size] / 1e6
            seconds = (line[0] + megabytes / line[1]) * noise ** random.standard_normal()
            seconds *= off if size == "medium" else 1
            ago = timedelta(hours=1 + 5 * number)
            some.add(source, destination, megabytes / seconds, ago=ago, size=size)


@pytest.fixture
def measured(small_world: World) -> World:
    """Two links on a line, one with a class far off it, and one with a size alone."""
    fill(small_world.ral, small_world.glasgow, (1.8, 42.0))
    fill(small_world.ral, small_world.desy, (14.0, 10.9), 12)
    fill(small_world.desy, small_world.ral, (2.0, 50.0), noise=1.01, off=2.0)
    with transfers() as few:
        for number in range(5):
            few.add(small_world.glasgow, small_world.ral, 10.0 + number)
    return small_world


def line_in_sql(ends: str, window: Any) -> dict[str, float]:
    """Fit the line to medians that SQL has found; the fit itself is held by test_overhead."""
    with connection.cursor() as cursor:
        statement = MEDIANS.format(ends=ends)
        cursor.execute(statement, [0.5, 0.5, window.start, window.end])
        counts = {row[0]: row[1] for row in cursor.fetchall()}
        times = []
        for name, count in counts.items():
            low, width = (float(values[0]) for values in around_median(np.array([count])))
            cursor.execute(statement, [low, 1 - low, window.start, window.end])
            _, _, size, median, lower, upper = next(
                row for row in cursor.fetchall() if row[0] == name
            )
            error = math.log(float(upper) / float(lower)) / width
            arrays = (np.array([float(value)]) for value in (size, median, error))
            times.append(ClassTimes(*arrays, np.array([count])))
    lines = overhead.fit(times)
    return {name: float(getattr(lines, name)[0]) for name in ("overhead", "bandwidth")}


def cell(answer: grid.Grid, source: str, destination: str) -> float:
    rows = [group.name for group in answer.sources]
    columns = [group.name for group in answer.destinations]
    return float(answer.cells.value[rows.index(source), columns.index(destination)])


@pytest.mark.parametrize("stat", ["overhead", "bandwidth"])
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_cell_has_the_line_through_medians_of_sql(measured, stat, size):
    query = MatrixQuery(stat=stat, size=size)
    answer = grid.build(query, NOW)
    for name in ("Glasgow_DATADISK", "DESY_DATADISK"):
        ends = f"s.name = 'RAL_DATADISK' AND d.name = '{name}'"
        true = line_in_sql(ends, query.window_at(NOW))
        assert cell(answer, "RAL_DATADISK", name) == pytest.approx(true[stat], rel=1e-5)
    assert math.isnan(cell(answer, "DESY_DATADISK", "RAL_DATADISK"))
    if size == "large":
        assert math.isnan(cell(answer, "Glasgow_DATADISK", "RAL_DATADISK"))


def test_a_cell_of_several_links_pools_their_transfers(measured):
    query = MatrixQuery(stat="overhead", rows="cloud", columns="cloud")
    true = line_in_sql("ss.cloud = 'UK' AND ds.cloud = 'DE'", query.window_at(NOW))
    assert cell(grid.build(query, NOW), "UK", "DE") == pytest.approx(true["overhead"], rel=1e-5)


def test_a_new_result_of_any_class_makes_a_new_answer(measured):
    query = MatrixQuery(stat="overhead")
    assert cell(grid.build(query, NOW), "RAL_DATADISK", "Glasgow_DATADISK") > 1
    with transfers() as new:
        for _ in range(20):
            new.add(measured.ral, measured.glasgow, 1.0, size="small")
    # Small files take so long now that larger ones are quicker than any line has it.
    assert math.isnan(cell(grid.build(query, NOW), "RAL_DATADISK", "Glasgow_DATADISK"))


def links(client: Client, params: str) -> list[dict[str, Any]]:
    return list(responses.answer(client, f"/api/v1/links/?{params}")["links"])


ENDS = "source.has=RAL_DATADISK&destination.has=Glasgow"


def test_matrix_table_csv_and_link_page_say_the_same(client, measured):
    shown = responses.answer(client, "/api/v1/matrix/?stat=overhead")
    assert shown["unit"] == "s"
    assert shown["description"].startswith("Overhead of transfers in all size classes")
    names = [[group["name"] for group in shown[side]] for side in ("sources", "destinations")]
    at = names[0].index("RAL_DATADISK"), names[1].index("Glasgow_DATADISK")
    value = shown["cells"]["value"][at[0]][at[1]]
    (row,) = links(client, f"{ENDS}&overhead=1")
    assert row["overhead_s"] == pytest.approx(value, rel=1e-5)
    assert row["overhead_low_s"] < 1.8 < row["overhead_high_s"]
    assert row["bandwidth_low_mb_s"] < 42 < row["bandwidth_high_mb_s"]
    half = row["overhead_s"] * row["bandwidth_mb_s"] * 1e6
    assert row["half_size_bytes"] == pytest.approx(half, rel=1e-5)
    assert row["line"] == "line"
    (line,) = responses.csv_rows(client, f"/api/v1/links/?{ENDS}&overhead=1&format=csv")
    assert float(line["overhead_s"]) == row["overhead_s"]
    assert line["line"] == "line"
    (own,) = (
        each
        for each in responses.csv_rows(client, "/api/v1/matrix/?stat=overhead&format=csv")
        if (each["source"], each["destination"]) == ("RAL_DATADISK", "Glasgow_DATADISK")
    )
    assert float(own["value_s"]) == value
    html = responses.html(client, "/links/RAL_DATADISK/Glasgow_DATADISK/")
    for text, name in (("{:.3g}", ""), ("({:.3g}", "low_"), ("–{:.3g})", "high_")):
        assert text.format(row[f"overhead_{name}s"]) in html
    assert "most of the transfer time is overhead" in html


def test_what_does_not_fit_says_so(client, measured):
    (bent,) = links(client, "source.has=DESY_DATADISK&destination.has=RAL&overhead=1")
    assert bent["line"] == "bent"
    assert [bent[name] for name in LINE_COLUMNS[:-1]] == [None] * 7
    html = responses.html(client, "/links/DESY_DATADISK/RAL_DATADISK/")
    assert "cannot be separated here: medium files take" in html
    table = responses.html(client, "/table/?overhead=1&source.has=DESY_DATADISK")
    assert "no fit" in table
    (few,) = links(client, "source.has=Glasgow_DATADISK&destination.has=RAL&overhead=1")
    assert few["line"] == "few"
    html = responses.html(client, "/links/Glasgow_DATADISK/RAL_DATADISK/")
    assert "overhead-heading" not in html


def test_columns_are_there_for_who_asks_orders_or_filters(client, measured):
    (plain,) = links(client, ENDS)
    assert not set(LINE_COLUMNS) & set(plain)
    ordered = links(client, "ordering=-overhead_s")
    first = [row["destination"]["name"] for row in ordered[:2]]
    assert first == ["DESY_DATADISK", "Glasgow_DATADISK"]
    assert ordered[2]["overhead_s"] is None
    chosen = links(client, "bandwidth_mb_s.min=20")
    assert [row["destination"]["name"] for row in chosen] == ["Glasgow_DATADISK"]
    chosen = links(client, "half_size_bytes.min=100MB")
    assert [row["destination"]["name"] for row in chosen] == ["DESY_DATADISK"]


def test_a_listing_names_its_columns_and_drops_them(measured):
    def listing(text: str) -> table_query.TableQuery:
        return table_query.read(QueryDict(text), list(SIZES))[1]

    assert not listing("").lines
    assert listing("overhead=1").params() == {"overhead": ["1"]}
    full = listing("overhead=1&ordering=-overhead_s&bandwidth_mb_s.min=2&large.ok.min=1")
    assert full.lines
    assert listing("overhead_s.max=2").lines
    assert full.without_lines().params() == {"large.ok.min": ["1"]}
    with pytest.raises(BadQueryError) as caught:
        listing("overhead=yes")
    assert "overhead" in str(caught.value.errors)
    assert link_table.build(MatrixQuery(), NOW).lines == {}


def test_the_page_of_the_table_has_them_by_a_click(client, measured):
    html = responses.html(client, "/table/")
    assert 'href="/table/?overhead=1"' in html
    html = responses.html(client, "/table/?ordering=-overhead_s&overhead=1")
    assert "95 % interval: " in html
    assert '<option value="overhead_s">overhead (s)</option>' in html
    # Another click takes them out, and the order with them.
    assert 'href="/table/"' in html


def test_the_worst_of_the_matrix_lead_to_the_table(client, measured):
    html = responses.html(client, "/?stat=overhead")
    assert "ost overhead" in html
    assert "/table/?ordering=-overhead_s" in html
    assert "based on the transfer times in all size classes" in html
    assert "2 of 4 cells with results have no value." in html
    assert "In 1 cell, the transfer times of the size classes do not fit a straight line" in html
    assert "east bandwidth" in responses.html(client, "/?stat=bandwidth")


def test_the_number_of_queries_depends_on_the_classes_alone(measured):
    query = MatrixQuery(stat="overhead")

    def queries() -> int:
        return len(responses.statements(grid.compute, query, NOW, grid.version(query, NOW)))

    queries()
    fill(measured.desy, measured.glasgow, (3.0, 20.0))
    first = queries()
    fill(measured.glasgow, measured.desy, (3.0, 20.0))
    assert queries() == first
