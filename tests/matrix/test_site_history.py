"""The links of a site over time against plain SQL: ratios to usual, failures, before and after."""

from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection

from matrix.answers.site import reports
from matrix.answers.site.history import (
    LinkResults,
    RatioSeries,
    WindowPair,
    cut_of,
    series_of,
    span_of,
)
from matrix.answers.site.site_links import SiteLink, figures_of, history_of, links_of
from matrix.answers.site.site_now import site_now
from matrix.query.comparison import around
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.together import Together
from matrix.statistics.samples.quantiles import across_links, quantiles_by
from sonar.models import Annotation, Downtime, Transfer
from sonar.notation.windows import Window
from tests.matrix import changed_site, world
from tests.matrix.changed_site import CHANGED, NOTED, ChangedSite
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = pytest.mark.django_db
GLASGOW = "UKI-SCOTGRID-GLASGOW"
WEEK = Window(NOW - timedelta(days=7), NOW)
# By bucket and link the median of its rates over its usual, and of those the middle half.
MIDDLE = """
    WITH usual AS (
        SELECT source_id, destination_id,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / seconds) AS rate, count(*) AS n
        FROM sonar_transfer WHERE state = 'done' AND size_class_id = %(size)s
          AND started_at >= %(since)s AND started_at < %(until)s GROUP BY 1, 2),
    links AS (
        SELECT date_bin('6 hours', started_at, 'epoch') AS bucket, source_id, destination_id,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / seconds / rate)
                   FILTER (WHERE state = 'done' AND n >= 5) AS ratio,
               count(*) FILTER (WHERE state = 'done') AS ok,
               count(*) FILTER (WHERE state = 'failed') AS failed
        FROM sonar_transfer LEFT JOIN usual USING (source_id, destination_id)
        WHERE destination_id = %(destination)s AND size_class_id = %(size)s
          AND started_at >= %(start)s AND started_at < %(end)s GROUP BY 1, 2, 3)
    SELECT extract(epoch FROM bucket)::float8,
           percentile_cont(0.25) WITHIN GROUP (ORDER BY ratio),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY ratio),
           percentile_cont(0.75) WITHIN GROUP (ORDER BY ratio),
           count(ratio), sum(ok)::int, sum(failed)::int
    FROM links GROUP BY 1 ORDER BY 1
"""


@pytest.fixture
def changed(db, at_noon) -> ChangedSite:
    return changed_site.make()


def rows_of(statement: str, destination: int, start: Any, end: Any) -> list[tuple[Any, ...]]:
    midnight = WEEK.start.replace(hour=0, minute=0, second=0)
    parameters = {
        "destination": destination,
        "start": start,
        "end": end,
        "since": midnight - timedelta(days=28),
        "until": midnight,
        "size": world.SizeClass.objects.get(name="large").id,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def ends_of(window: Window) -> tuple[reports.Report, dict[str, list[SiteLink]]]:
    query = MatrixQuery(window="", start=window.start, end=window.end)
    report = reports.build(GLASGOW, query, NOW)
    return report, {end: links_of(report, end) for end in ("source", "destination")}


def columns_of(series: RatioSeries) -> list[tuple[float, ...]]:
    arrays = (series.starts, series.low, series.median, series.high, series.links, series.ok)
    every = zip(*(values.tolist() for values in (*arrays, series.failed)), strict=True)
    return [row for row in every if row[-1] or row[-2]]


def test_the_line_is_the_middle_half_of_the_links_as_sql_has_it(changed):
    report, ends = ends_of(WEEK)
    found = history_of(report, ends, [])["destination"].series
    assert found.bucket == "6h"
    expected = rows_of(MIDDLE, changed.glasgow.id, WEEK.start, WEEK.end)
    assert len(expected) > 25
    np.testing.assert_allclose(np.array(columns_of(found)), np.array(expected, float), rtol=1e-6)


def note_ends(now: datetime = NOW) -> dict[str, Together]:
    """Return what the only note of the site did, by end, as a window of a week has it."""
    query = MatrixQuery(window="", start=WEEK.start, end=WEEK.end)
    (effect,) = site_now(reports.build(GLASGOW, query, now), notes_of_all(), now).effects
    return dict(effect.ends)


def notes_of_all() -> list[Annotation]:
    return list(Annotation.objects.all())


@pytest.mark.long
@pytest.mark.parametrize("moment", [NOTED, CHANGED])
def test_a_note_says_what_comparing_around_it_does(changed, moment):
    Annotation.objects.update(starts_at=moment)
    asked = MatrixQuery().around(moment, NOW)
    compared = site_now(reports.build(GLASGOW, asked, NOW), [], NOW).comparisons
    for end, together in note_ends().items():
        expected = compared[end].together
        counts = together.links, together.ok, together.other_ok
        assert counts == (expected.links, expected.ok, expected.other_ok)
        for name in ("ratio", "low", "high", "p"):
            assert getattr(together, name) == pytest.approx(getattr(expected, name), rel=1e-6)
    received = note_ends()["destination"]
    assert received.kind == ("slower" if moment == CHANGED else "same")
    assert received.ok > 150 if moment == NOTED else received.ok < 50


def test_what_lies_outside_the_window_is_read_for_comparisons_alone(changed):
    report, ends = ends_of(WEEK)
    pair = WindowPair(Window(NOTED, NOW), Window(NOTED - timedelta(days=4), NOTED))
    first = {
        compared: history_of(report, ends, [pair] * compared)["source"].results.started.min()
        for compared in (False, True)
    }
    assert first[False] >= WEEK.start.timestamp() * 1000
    assert first[True] < (WEEK.start - timedelta(hours=6)).timestamp() * 1000


def test_a_note_is_compared_up_to_a_week_whatever_window_the_page_has(changed):
    over = MatrixQuery(window="", start=NOTED - timedelta(hours=1), end=NOTED + timedelta(hours=1))
    (effect,) = site_now(reports.build(GLASGOW, over, NOW), notes_of_all(), NOW).effects
    assert effect.sides == WindowPair(*around(NOTED, NOW))
    for end, of_week in note_ends().items():
        assert astuple(effect.ends[end]) == pytest.approx(astuple(of_week), rel=1e-9)


def test_a_note_of_this_minute_has_nothing_on_a_side(changed):
    Annotation.objects.update(starts_at=NOW + timedelta(seconds=20))
    report, _ = ends_of(Window(WEEK.start, NOW + timedelta(minutes=1)))
    assert site_now(report, notes_of_all(), NOW).effects == []


def test_all_of_it_is_read_with_one_statement(changed):
    report, ends = ends_of(WEEK)
    assert len(statements(history_of, report, ends, [WindowPair(*around(NOTED, NOW))])) == 1


def test_filters_on_profiles_hold(small_world):
    single, sixteen = (world.profile(streams=streams) for streams in (1, 16))
    transfer(small_world.ral, small_world.glasgow, 5.0, made=single)
    transfer(small_world.ral, small_world.glasgow, 7.0, made=sixteen)
    links = [(small_world.ral.id, small_world.glasgow.id)]
    found = LinkResults.read(links, WEEK, (Filter("streams", "16"),), "large")
    assert found.rate.tolist() == pytest.approx([7.0])
    assert len(LinkResults.read(links, WEEK, (), "large").rate) == 2
    assert len(LinkResults.read(links, WEEK, (), "small").rate) == 0


def test_only_the_links_that_were_asked_for_are_read(small_world):
    for source in small_world.endpoints:
        for destination in small_world.endpoints:
            if source != destination:
                transfer(source, destination, float(source.id))
    ids = [endpoint.id for endpoint in small_world.endpoints]
    links = [(ids[0], ids[1]), (ids[2], ids[0]), (ids[3], ids[1])]
    found = LinkResults.read(links, WEEK, (), "large")
    assert sorted(found.link.tolist()) == [0, 1, 2]
    assert found.rate[np.argsort(found.link)].tolist() == pytest.approx(
        [float(source) for source, _ in links]
    )
    assert LinkResults.read([], WEEK, (), "large").rate.size == 0


def test_lost_tests_say_nothing_and_failed_ones_have_no_rate(small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    transfer(small_world.ral, small_world.glasgow, None, state="lost")
    links = [(small_world.ral.id, small_world.glasgow.id)]
    found = LinkResults.read(links, WEEK, (), "large")
    assert np.isnan(found.rate).tolist() == [True]


def results(*tests: tuple[int, timedelta, float]) -> LinkResults:
    """Return results of (link, how long ago, rate in MB/s)."""
    link, ago, rate = zip(*tests, strict=True)
    started = [int((NOW - one).timestamp() * 1000) for one in ago]
    sizes = np.full(len(link), 2 * 10**9)
    return LinkResults(np.array(link), np.array(started), np.array(rate), sizes)


def test_a_link_that_is_tested_often_does_not_outvote_the_others():
    often = [(0, HOUR * 2 + timedelta(minutes=at), 1.0) for at in range(9)]
    found = results(*often, (1, HOUR * 2, 4.0), (2, HOUR * 2, 8.0))
    window = Window(NOW - 6 * HOUR, NOW)
    series = series_of(found, np.array([1.0, 1.0, 1.0]), window, cut_of(window, [found]))
    assert series.median[series.links == 3].tolist() == [4.0]


def test_a_link_without_usual_has_no_ratio_but_its_tests_count():
    found = results((0, HOUR, 5.0), (1, HOUR, 5.0), (1, HOUR, np.nan))
    window = Window(NOW - 6 * HOUR, NOW)
    series = series_of(found, np.array([2.5, np.nan]), window, cut_of(window, [found]))
    assert (series.links.sum(), series.ok.sum(), series.failed.sum()) == (1, 2, 1)
    assert np.nanmax(series.median) == 2.0


def test_buckets_are_as_fine_as_the_links_allow():
    window = Window(NOW - timedelta(days=2), NOW)
    few = results(*((link, HOUR * 8 * at, 1.0) for link in range(3) for at in range(1, 6)))
    assert cut_of(window, [few]).bucket == "1h"
    single = results(*((0, HOUR * 8 * at, 1.0) for at in range(1, 6)))
    assert cut_of(window, [single]).bucket == "6h"
    assert cut_of(Window(NOW - timedelta(days=90), NOW), [single]).bucket == "1d"
    assert cut_of(window, []).bucket == "6h"


def test_what_is_read_holds_the_window_and_both_sides():
    assert span_of(WEEK, []) == WEEK
    pair = WindowPair(*around(WEEK.start + timedelta(days=1), WEEK.end + timedelta(days=30)))
    assert span_of(WEEK, [pair]) == Window(
        WEEK.start - timedelta(days=6), WEEK.end + timedelta(days=1)
    )


def test_figures_of_an_end_are_medians_of_its_links(changed):
    _, ends = ends_of(WEEK)
    received, sent = figures_of(ends["destination"]), figures_of(ends["source"])
    assert (received.links, received.sites, received.tested) == (10, 10, 10)
    assert (received.slower, received.faster, received.failing) == (4, 0, 0)
    assert (sent.slower, sent.faster, sent.failing) == (0, 1, 1)
    ratios = [link.now / link.usual for link in ends["destination"]]
    assert received.ratio == pytest.approx(float(np.median(ratios)))
    into = Transfer.objects.filter(destination=changed.glasgow, started_at__gte=WEEK.start)
    assert received.ok + received.failed == into.filter(started_at__lt=WEEK.end).count()


def test_what_fails_or_is_down_keeps_its_usual(changed):
    _, ends = ends_of(WEEK)
    (failing,) = [link for link in ends["source"] if link.is_failing]
    assert failing.usual == pytest.approx(failing.now, rel=0.3)
    Downtime.objects.update(starts_at=NOW - HOUR, ends_at=NOW + HOUR)
    _, down = ends_of(WEEK)
    assert {link.state for link in down["source"]} == {"down"}
    assert not any(np.isnan(link.usual) for link in down["source"])


def test_the_worst_link_is_first_failing_then_slowest_against_its_usual(changed):
    _, ends = ends_of(WEEK)
    assert ends["source"][0].partner == "DESY-HH"
    assert {link.partner for link in ends["destination"][:4]} == set(changed_site.SLOWED)
    ratios = [link.ratio for link in ends["destination"]]
    assert ratios == sorted(ratios)


def test_quantiles_by_group_are_numpys():
    rng = np.random.default_rng(7)
    group, values = rng.integers(0, 6, 200), rng.lognormal(0, 1, 200)
    found = quantiles_by(group, values, 8, [0.0, 0.3, 1.0])
    for number in range(6):
        expected = np.quantile(values[group == number], [0.0, 0.3, 1.0])
        assert found[:, number] == pytest.approx(expected)
    assert np.isnan(found[:, 6:]).all()
    empty = np.empty(0, dtype=np.int64)
    assert np.isnan(quantiles_by(empty, np.empty(0), 2, [0.5])).all()
    assert across_links(empty, empty, np.empty(0), 3)[1].tolist() == [0, 0, 0]
