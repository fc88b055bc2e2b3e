"""compare=month on /causes/: links judged by their own 30 days, against the rows of SQL."""

import html
from collections import defaultdict
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.causes import attribution, change_causes
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.causes.causes import name_slower
from sonar.models import Endpoint
from tests.matrix import responses, world
from tests.matrix.months import month_of, slow_link
from tests.matrix.world import NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/causes/"
MONTH = "?window=24h&compare=month"
DAY = timedelta(days=1)
ROWS = """
    SELECT source.name, destination.name, (started_at AT TIME ZONE 'UTC')::date, bytes / seconds
    FROM sonar_transfer t
    JOIN sonar_endpoint source ON source.id = source_id
    JOIN sonar_endpoint destination ON destination.id = destination_id
    JOIN sonar_sizeclass c ON c.id = size_class_id
    WHERE state = 'done' AND c.name = 'large' AND started_at >= %s AND started_at < %s
"""
Logs = dict[tuple[str, str], list[float]]


def answer(client: Client, text: str = MONTH) -> Any:
    return responses.answer(client, f"{API}{text}")


def page(client: Client, text: str = MONTH) -> str:
    return html.unescape(responses.words(responses.html(client, f"/causes/{text}")))


def logs_of_links(query: MatrixQuery) -> tuple[Logs, dict[Any, Logs]]:
    """Return by link the log rates of the window and, by day, of the 30 days before."""
    now, before = defaultdict(list), defaultdict(lambda: defaultdict(list))
    window = query.window_at(NOW)
    start = window.start - 30 * DAY
    with connection.cursor() as cursor:
        cursor.execute(ROWS, [window.start, window.end])
        for source, destination, _, rate in cursor.fetchall():
            now[source, destination].append(np.log(rate))
        cursor.execute(ROWS, [start, window.start])
        for source, destination, day, rate in cursor.fetchall():
            before[day][source, destination].append(np.log(rate))
    return now, before


def mixed_month(small: World) -> None:
    """Store tests now and then on most links of the small world, with failures and holes."""
    rng = np.random.default_rng(4)
    with world.transfers() as some:
        for source in small.endpoints:
            for destination in small.endpoints:
                if source == destination or (source, destination) == (small.ral, small.scratch):
                    continue
                level = 5.0 * (1 + source.id % 7) * (1 + destination.id % 5)
                # One link of two from DESY to Glasgow has rested since before each window.
                rests = (source, destination) == (small.scratch, small.glasgow)
                for hours in rng.uniform(8 * 24 if rests else 0.1, 40 * 24, 160):
                    rate = None if rng.uniform() < 0.2 else level * float(np.exp(rng.normal()))
                    some.add(source, destination, rate, ago=timedelta(hours=float(hours)))
        # A link of the last week alone, and one of the last hours alone.
        for hours in (3, 30, 40, 70):
            some.add(small.ral, small.scratch, 9.0, ago=timedelta(hours=hours))


@pytest.mark.parametrize("grouping", ["endpoint", "site"])
@pytest.mark.parametrize("window", ["24h", "7d"])
def test_days_of_cells_are_those_of_the_rows_in_sql(small_world, grouping, window):
    mixed_month(small_world)
    query = MatrixQuery(window=window, stat="median", rows=grouping, columns=grouping)
    text = {**query.to_params(), "stat": ["median"], "compare": ["month"]}
    matrix = grid.build(MatrixQuery.from_params(text), NOW)
    assert matrix.other is not None
    own = change_causes.read_history(matrix, matrix.other)
    now, before = logs_of_links(query)
    site_of = dict(Endpoint.objects.values_list("name", "site__name"))
    usual = {
        link: np.mean([log for logs in before.values() for log in logs.get(link, ())])
        for link in now
        if any(link in logs for logs in before.values())
    }

    def cell(logs: Logs, source: str, destination: str) -> list[float]:
        def is_of(name: str, group: str) -> bool:
            return group in (name, site_of[name])

        return [
            log - usual[link]
            for link in usual
            if is_of(link[0], source) and is_of(link[1], destination)
            if site_of[link[0]] != site_of[link[1]]
            for log in logs.get(link, ())
        ]

    days = [before[day] for day in sorted(before)]
    for row, source in enumerate(matrix.sources):
        for column, destination in enumerate(matrix.destinations):
            for logs, mean, count in (
                (now, own.days.window, own.days.ok),
                *zip(days, own.days.days, own.days.other_ok, strict=True),
            ):
                values = cell(logs, source.name, destination.name)
                assert count[row, column] == len(values)
                expected = np.mean(values) if values else np.nan
                np.testing.assert_allclose(mean[row, column], expected, atol=1e-6)
    enough = np.isfinite(own.days.days).sum(axis=0) >= 5
    np.testing.assert_array_equal(own.judged, enough & np.isfinite(own.days.window))
    rated = np.isfinite(own.days.window)
    assert own.judged[rated].sum() > 3
    if grouping == "endpoint":
        assert own.unjudged.sum() == 1


def test_a_single_link_is_named_by_its_own_days_where_one_comparison_does_not(client, db):
    month_of(8, slow_link)
    document = answer(client)
    (change,) = document["changes"]
    assert (change["kind"], change["source"], change["destination"]) == (
        "link",
        "S03_DISK",
        "S05_DISK",
    )
    assert change["low"] < 1 / 3 < change["high"]
    assert (change["ok"], change["other_ok"], change["links"]) == (2, 60, 1)
    assert document["history"] == {"judged_links": 56, "unjudged_links": 0}
    factor, low, high = (100 * change[name] for name in ("factor", "low", "high"))
    assert change["text"] == (
        f"S03_DISK → S05_DISK is at {factor:.0f} % of its 30-day rate ({low:.0f}–{high:.0f} %, 2 "
        "tests, 60 before). Only this link: check the path."
    )
    shown = page(client)
    headline = "1 link is slower than in the 30 days before."
    assert headline in shown
    assert document["headline"] == headline
    assert change["text"] in shown
    assert "56 links are compared with the same link on each of the 30 days before" in shown
    assert "All days of this window count together" not in shown
    plain = answer(client, "?window=24h&compare=previous")
    assert (plain["changes"], plain["history"]) == ([], None)


def test_its_numbers_are_those_of_the_rows_in_sql(client, db):
    places = [place.name for place in month_of(8, slow_link)]
    now, before = logs_of_links(MatrixQuery(window="24h"))
    days = [before[day] for day in sorted(before)]
    shape = len(days) + 1, len(places), len(places)
    logs, spread = np.full(shape, np.nan), np.ones(shape)
    for number, of_day in enumerate([now, *days]):
        for (source, destination), values in of_day.items():
            place = number, places.index(source), places.index(destination)
            logs[place], spread[place] = np.mean(values), len(values) ** -0.5
    (cause,) = name_slower(
        logs[0], logs[1:], spread=(spread[0], spread[1:]), sites=places, endpoints=places
    )
    (change,) = answer(client)["changes"]
    for name in ("factor", "low", "high", "p"):
        assert change[name] == pytest.approx(getattr(cause, name), rel=1e-4)


def test_of_a_source_all_its_tests_are_counted(client, db):
    month_of(6, lambda row, _, day: 20 / (2 if (row, day) == (3, 0) else 1))
    (change,) = answer(client)["changes"]
    assert (change["kind"], change["source"], change["destination"]) == ("source", "S03_DISK", None)
    assert (change["links"], change["ok"], change["other_ok"]) == (5, 10, 300)
    assert "%, 5 links, 10 tests, 300 before). Check the outbound path." in page(client)


def test_several_causes_are_counted_by_what_they_are(client, db):
    hit = {(3, 5), (6, 2), *((row, 7) for row in range(9))}
    month_of(9, lambda row, column, day: 20 / (4 if (row, column) in hit and not day else 1))
    document = answer(client)
    assert sorted(change["kind"] for change in document["changes"]) == [
        "destination",
        "link",
        "link",
    ]
    assert document["headline"] in (
        "1 destination and 2 links are slower than in the 30 days before.",
        "2 links and 1 destination are slower than in the 30 days before.",
    )


def test_what_became_faster_or_stayed_is_not_named(client, db):
    month_of(6, lambda row, _, day: 20 * (3 if (row, day) == (3, 0) else 1))
    assert answer(client)["changes"] == []
    shown = page(client)
    assert "Nothing is significantly slower than in the 30 days before." in shown
    assert (
        "No source, destination, site or link is significantly slower than in the "
        "30 days before." in shown
    )


def test_the_csv_has_the_causes_before_the_ends(client, db):
    month_of(8, slow_link, per_day=3)
    first, *lines = responses.csv_rows(client, f"{API}{MONTH}&format=csv")
    (change,) = answer(client)["changes"]
    assert (first["list"], first["end"], first["kind"]) == ("changes", "link", "slow")
    assert (first["name"], first["destination"]) == ("S03_DISK", "S05_DISK")
    assert (first["ok"], first["other_ok"], first["partners"]) == ("3", "90", "1")
    assert first["text"] == change["text"]
    assert float(first["factor"]) == change["factor"]
    assert [line["list"] for line in lines] == ["sources"] * 8 + ["destinations"] * 8
    assert {line["text"] for line in lines} == {""}


def test_a_long_window_says_that_its_days_count_together(client, db):
    month_of(6, slow_link)
    shown = page(client, "?compare=month")
    assert "30 links are compared" in shown
    assert "All days of this window count together" in shown


def test_where_more_differs_the_sides_are_compared_as_wholes(client, db):
    month_of(6, slow_link)
    for text in (f"{MONTH}&compare=reverse", f"{MONTH}&compare.size=small"):
        assert answer(client, text)["history"] is None
        assert "Slower than in the 30 days before" not in page(client, text)


@pytest.mark.parametrize(("days", "judged"), [(4, 0), (5, 6)])
def test_too_few_days_are_said(client, small_world, days, judged):
    links = [
        (source, destination)
        for source in small_world.endpoints[:3]
        for destination in small_world.endpoints[:3]
        if source != destination
    ]
    with world.transfers() as some:
        for source, destination in links:
            for number in range(days + 1):
                # At noon of each day, and now.
                some.add(
                    source, destination, 10.0 + number, ago=number * DAY + 30 * world.HOUR / 60
                )
    assert answer(client)["history"] == {"judged_links": judged, "unjudged_links": 6 - judged}
    few = "Too few results: no link has any in this window and on at least 5 of the 30 days before"
    assert (few in page(client)) == (not judged)


def test_an_empty_grid_says_so(client, small_world):
    document = answer(client)
    assert (document["changes"], document["history"]) == (
        [],
        {"judged_links": 0, "unjudged_links": 0},
    )
    assert "no link has any in this window" in page(client)
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    assert answer(client)["history"] == {"judged_links": 0, "unjudged_links": 1}


def test_filters_choose_the_links_that_are_judged(client, db):
    month_of(6, slow_link)
    document = answer(client, f"{MONTH}&source_site=S03&source_site=S04")
    assert document["history"] == {"judged_links": 10, "unjudged_links": 0}
    assert answer(client, f"{MONTH}&streams=4")["history"]["judged_links"] == 0


def test_it_is_computed_once_for_page_and_api(client, db):
    month_of(6, slow_link)
    query = MatrixQuery.from_params({"window": ["24h"], "compare": ["month"], "stat": ["median"]})
    version = grid.version(query, NOW)
    built = [
        change_causes.build(attribution.build(query, NOW, version, fit))
        for fit in ("means", "polish")
    ]
    assert built[0] is built[1]


@pytest.mark.parametrize(("address", "most"), [("/causes/", 24), (API, 20)])
def test_the_number_of_queries_does_not_depend_on_the_data(client, small_world, address, most):
    # Its tests are no change of a level: since when one lasts is read only where there is one.
    idle = world.endpoint("X", small_world.ral.site), world.endpoint("Y", small_world.desy.site)

    def queries() -> tuple[int, str]:
        world.transfer(*idle, 5.0)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"{address}{MONTH}").status_code == 200
        return len(captured), "\n".join(query["sql"] for query in captured)

    mixed_month(small_world)
    queries()
    count, statements = queries()
    assert count == most, statements
    mixed_month(small_world)
    queries()
    assert queries()[0] == most
