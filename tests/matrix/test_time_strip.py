"""How many links failed or were slower than usual by the hour or day: equal to plain SQL."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from matrix.answers.matrix import time_strip
from matrix.answers.matrix.time_strip import StripQuestion
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.estimates.moderation import Prior
from matrix.store.cache import ANSWERS
from sonar.models import SizeClass, Transfer
from sonar.results import sealing
from tests.matrix import moderated, responses, world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World
from tests.properties import examples
from tests.sonar.history import undone

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
# Where windows begin; a month ends between the usual days before it.
START = datetime(2026, 11, 19, 22, 0, tzinfo=UTC)
LINKS = [(0, 1), (1, 0), (2, 3)]
FIELDS = ("links", "failed_links", "all_failed_links", "slower_links", "ok", "failed")

BY_SQL = """
    WITH rated AS (
        SELECT source_id, destination_id, started_at, state,
            CASE WHEN state = 'done' THEN (bytes / seconds)::real::float8 END AS rate
        FROM sonar_transfer WHERE size_class_id = %(size)s AND state <> 'lost'),
    usual AS (
        SELECT source_id, destination_id,
            array_agg(rate ORDER BY started_at) AS rates,
            array_agg(date_trunc('day', started_at, 'UTC') ORDER BY started_at) AS days
        FROM rated
        WHERE started_at < date_trunc('day', %(start)s::timestamptz, 'UTC')
          AND started_at >= date_trunc('day', %(start)s::timestamptz, 'UTC') - interval '28 days'
          AND state = 'done'
        GROUP BY 1, 2 HAVING count(rate) >= 5),
    by_link AS (
        SELECT date_trunc(%(unit)s, started_at, 'UTC') AS bucket, source_id, destination_id,
            count(*) FILTER (WHERE state = 'done') AS ok,
            count(*) FILTER (WHERE state = 'failed') AS failed,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY rate) AS median
        FROM rated WHERE started_at >= %(start)s AND started_at < %(end)s
        GROUP BY 1, 2, 3)
    SELECT ARRAY[source_id, destination_id], rates, days, bucket,
        source_id = ANY(%(sources)s) AND bucket IS NOT NULL, ok, failed, median
    FROM by_link FULL JOIN usual USING (source_id, destination_id)
"""

RATES = st.one_of(st.none(), st.sampled_from([1.0, 4.0, 6.0, 6.2, 9.0]), st.floats(0.001, 5000))
STATES = st.sampled_from(["", "", "", "", "lost"])
# In hours from START: the usual days, what is before them, and what is shown.
BEFORE = st.one_of(st.integers(-28 * 24 - 30, 2), st.sampled_from([-694, -695, -22, -23]))
WITHIN = st.one_of(st.integers(-2, 60), st.sampled_from([0, 1, 2, 3, 26, 49, 50]))
# Such that the usual rate and two thirds of it are rates as well.
USUAL_RATES = st.sampled_from([4.0, 4.0, 6.0, 9.0, 9.0, None])
RESULTS = st.tuples(
    st.lists(st.tuples(BEFORE, st.sampled_from(LINKS), USUAL_RATES, STATES), max_size=40),
    st.lists(st.tuples(WITHIN, st.sampled_from(LINKS), RATES, STATES), max_size=20),
).map(lambda both: [*both[0], *both[1]])


@pytest.fixture(autouse=True)
def nothing_kept():
    ANSWERS.forget()


def fill(small_world: World, results: Sequence[tuple[Any, ...]]) -> None:
    with world.transfers() as some:
        for hours, (source, destination), rate, state in results:
            some.add(
                small_world.endpoints[source],
                small_world.endpoints[destination],
                None if state else rate,
                ago=NOW - START - hours * HOUR,
                state=state,
            )


def by_sql(question: StripQuestion, sources: Sequence[int]) -> dict[float, tuple[int, ...]]:
    parameters = {
        "size": SizeClass.objects.get(name=question.query.size).id,
        "start": question.window.start,
        "end": question.window.end,
        "unit": {"1h": "hour", "1d": "day"}[question.cut.bucket],
        "sources": list(sources),
    }
    with connection.cursor() as cursor:
        cursor.execute(BY_SQL, parameters)
        rows = cursor.fetchall()
    scatters = {
        tuple(link): moderated.in_a_row(rates, days) for link, rates, days, *_ in rows if rates
    }
    return counted(rows, scatters)


def counted(rows: Sequence[tuple[Any, ...]], scatters: dict[Any, Any]) -> dict[float, Any]:
    """Count by bucket, with the scatter of each link that has a usual rate."""
    known = moderated.prior_of([*scatters.values()])
    counts: dict[float, list[int]] = {}
    for link, rates, _, bucket, is_shown, ok, failed, median in rows:
        if not is_shown:
            continue
        of_bucket = counts.setdefault(bucket.timestamp(), [0] * len(FIELDS))
        slower = bool(ok and rates) and is_slower(
            median, ok, rates, scatters[tuple(link)], known, len(scatters)
        )
        for at, number in enumerate((1, failed > 0, ok == 0, slower, ok, failed)):
            of_bucket[at] += number
    return {bucket: tuple(numbers) for bucket, numbers in counts.items()}


def is_slower(
    median: float,
    ok: int,
    rates: Sequence[float],
    scatter: tuple[float, float],
    known: Prior,
    links: int,
) -> bool:
    usual = float(np.median(rates))
    of_three = moderated.of_scatter(median / usual, (3, len(rates)), *scatter, known)
    if median > usual / 1.5:
        return False
    # By how much fewer tests scatter more: those of one, two and three or more.
    of_one = [1, np.sqrt((np.pi / 2 - 2.25 / 4) / 2), np.sqrt((np.pi / 2 - 0.68 / 3) / 3)]
    half = np.log(of_three.high / of_three.ratio) * of_one[min(ok, 3) - 1] / of_one[2]
    dof = scatter[1] + known.dof
    reach = half * stats.t.isf(0.015 / links, dof) / stats.t.isf(0.025, dof)
    return bool(median <= usual * np.exp(-reach) * (1 + 1e-9))


def by_bucket(question: StripQuestion) -> dict[float, tuple[int, ...]]:
    """Return the buckets in which a link was tested."""
    strip = time_strip.build(question)
    columns = [getattr(strip.counts, name).tolist() for name in FIELDS]
    rows = zip(*columns, strict=True)
    return {start: row for start, row in zip(strip.starts.tolist(), rows, strict=True) if any(row)}


def failing_by_hand(question: StripQuestion, sources: Sequence[int]) -> dict[float, int]:
    """Count the links in a row of three failures or more, in each bucket from first to last."""
    rows = Transfer.objects.filter(
        size_class__name=question.query.size,
        source_id__in=sources,
        started_at__gte=question.window.start,
        started_at__lt=question.window.end,
        state__in=["done", "failed"],
    ).order_by("source_id", "destination_id", "started_at")
    failing = set()
    for link, tests in groupby(rows, key=lambda test: (test.source_id, test.destination_id)):
        # A success that started with a failure is what counts.
        moments = [list(same) for _, same in groupby(tests, key=lambda test: test.started_at)]
        is_ok = [any(test.state == "done" for test in same) for same in moments]
        for ok, row in groupby(zip(is_ok, moments, strict=True), key=itemgetter(0)):
            failed = [test.started_at for _, same in row for test in same]
            if not ok and len(failed) >= 3:
                failing |= {(link, bucket) for bucket in buckets_of(question, failed)}
    return Counter(bucket for _, bucket in failing)


def buckets_of(question: StripQuestion, moments: Sequence[datetime]) -> Iterator[float]:
    width = question.width / 1000
    low, high = (int(moment.timestamp() // width) for moment in (moments[0], moments[-1]))
    return (number * width for number in range(low, high + 1))


@given(
    early=RESULTS,
    sealed_at=st.integers(-40, 80),
    late=RESULTS,
    bucket=st.sampled_from(["1h", "1d"]),
    minutes=st.tuples(st.integers(0, 90), st.integers(1, 3600)),
    narrow=st.booleans(),
)
@examples(60)
def test_any_window_is_equal_to_sql_whatever_is_sealed(
    small_world, early, sealed_at, late, bucket, minutes, narrow
):
    start = START + timedelta(minutes=minutes[0])
    filters = (Filter("source_site", "RAL"),) if narrow else ()
    query = MatrixQuery(
        window="", start=start, end=start + timedelta(minutes=minutes[1]), filters=filters
    )
    sources = small_world.endpoints[:1] if narrow else small_world.endpoints
    with undone():
        fill(small_world, early)
        sealing.seal(START + sealed_at * HOUR)
        fill(small_world, late)
        question = StripQuestion.of(query, NOW, bucket)
        expected = by_sql(question, [endpoint.id for endpoint in sources])
        assert by_bucket(question) == expected
        assert by_bucket(question) == expected  # what is kept
        strip = time_strip.build(question)
        counted = zip(strip.starts.tolist(), strip.counts.failing_links.tolist(), strict=True)
        failing = {start: number for start, number in counted if number}
        assert failing == failing_by_hand(question, [endpoint.id for endpoint in sources])


def night(small_world: World) -> None:
    """RAL -> Glasgow fails for an hour and is slow in the next; the others are as usual."""
    first, second, third = LINKS
    usual = [(-24 * day, link, 10.0, "") for day in range(1, 8) for link in LINKS]
    hours = [
        (0, first, None, ""), (0, first, 10.0, ""), (0, second, 10.0, ""), (0, third, None, ""),
        (1, first, 5.0, ""), (1, second, 7.0, ""), (1, third, None, "lost"),
    ]  # fmt: skip
    fill(small_world, [*usual, *hours])


def test_a_bucket_counts_links_that_failed_and_links_slower_than_usual(client, small_world):
    night(small_world)
    span = "from=2026-11-19T22:00:00Z&to=2026-11-20T01:00:00Z"
    answer = responses.answer(client, f"/api/v1/strip/?{span}")
    assert (answer["bucket"], answer["bucket_seconds"]) == ("1h", 3600)
    assert answer["query"]["start"] == "2026-11-19T22:00:00Z"
    assert answer["buckets"] == {
        "start": ["2026-11-19T22:00:00Z", "2026-11-19T23:00:00Z", "2026-11-20T00:00:00Z"],
        "links": [3, 2, 0],
        "failed_links": [2, 0, 0],
        "all_failed_links": [1, 0, 0],
        "failing_links": [0, 0, 0],
        "slower_links": [0, 1, 0],
        "ok": [2, 2, 0],
        "failed": [2, 0, 0],
        "down_links": [0, 0, 0],
        "at_risk_links": [0, 0, 0],
    }
    assert (answer["downtimes"], answer["downtime_count"]) == ([], 0)
    lines = responses.csv_rows(client, f"/api/v1/strip/?{span}&format=csv&bucket=1d")
    assert [(line["start"], line["failed_links"], line["ok"]) for line in lines] == [
        ("2026-11-19T00:00:00Z", "2", "4"), ("2026-11-20T00:00:00Z", "0", "0"),
    ]  # fmt: skip


def test_a_link_that_fails_three_times_in_a_row_is_failing_over_hours_and_midnight(
    client, small_world
):
    first, second, third = LINKS
    rows = [(hour, first, None, "") for hour in (0, 1, 3)]  # nothing was tested in the hour between
    twice_each = [(hour, second, None, "") for hour in (0, 1, 3, 4)] + [(2, second, 9.0, "")]
    fill(small_world, [*rows, *twice_each, (4, first, 9.0, ""), (0, third, None, "")])
    span = "from=2026-11-19T22:00:00Z&to=2026-11-20T03:00:00Z"
    buckets = responses.answer(client, f"/api/v1/strip/?{span}")["buckets"]
    assert buckets["failing_links"] == [1, 1, 1, 1, 0]
    assert buckets["all_failed_links"] == [3, 2, 0, 2, 1]
    days = responses.answer(client, f"/api/v1/strip/?{span}&bucket=1d")["buckets"]
    assert days["failing_links"] == [1, 1]


def test_a_single_test_must_be_lower_than_three_to_be_no_chance(client, small_world):
    """Usual is 10, and a test is off by a factor of 1.25; by chance 1 in 100 of three links are."""
    past = [(-24 * day, link, 8 * 1.25 ** (day % 3), "") for day in range(1, 22) for link in LINKS]
    first, second, third = LINKS
    one, three, lower = [(0, first, 6.0, "")], [(0, second, 6.0, "")] * 3, [(0, third, 5.0, "")]
    fill(small_world, [*past, *one])
    span = "from=2026-11-19T22:00:00Z&to=2026-11-19T23:00:00Z"
    for more, slower in (([], 0), (three, 1), (lower, 2)):
        fill(small_world, more)
        answer = responses.answer(client, f"/api/v1/strip/?{span}")
        assert answer["buckets"]["slower_links"] == [slower]
        answer = responses.answer(client, f"/api/v1/strip/?{span}&source_site=DESY")
        assert answer["buckets"]["slower_links"] == [int(slower == 2)]


def test_filters_choose_the_links_that_are_counted(client, small_world):
    night(small_world)
    span = "from=2026-11-19T22:00:00Z&to=2026-11-20T00:00:00Z"
    for text, links in (
        ("source_endpoint=RAL_DATADISK&destination_endpoint=Glasgow_DATADISK", [1, 1]),
        ("site=RAL", [2, 2]),
        ("site=!RAL", [1, 0]),
        ("origin=production", [0, 0]),
        ("size=small", [0, 0]),
    ):
        answer = responses.answer(client, f"/api/v1/strip/?{span}&{text}")
        assert answer["buckets"]["links"] == links, text


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("bucket=5m", "bucket", "bucket “5m” is not known: use auto, 1h or 1d."),
        ("stat=mean", "stat", "There is no parameter “stat”"),
        ("from=1970-01-01&to=2026-01-01&bucket=1h", "bucket", "at most 30000 can be shown"),
        ("window=2d", "window", "window “2d” is not known"),
    ],
)
def test_a_bad_parameter_is_named(client, small_world, text, name, sentence):
    response = client.get(f"/api/v1/strip/?{text}")
    assert response.status_code == 400
    assert sentence in response.json()["errors"][name][0]


def test_statements_do_not_grow_with_data_and_a_304_takes_one(client, small_world):
    url = "/api/v1/strip/?from=2026-11-19T22:00:00Z&to=2026-11-20T01:00:00Z"
    client.get(url)
    night(small_world)
    assert len(statements(client.get, url)) == 7
    for number in range(3):
        world.downtime(-20 * HOUR, reason=f"disks {number}", endpoint=small_world.ral)
    assert len(statements(client.get, url)) == 9  # places and plan are of another registry
    known = {"if-none-match": client.get(url)["ETag"]}
    assert len(statements(client.get, url, headers=known)) == 1
    assert client.get(url, headers=known).status_code == 304


def test_a_result_that_changes_what_is_usual_changes_the_version(client, small_world):
    night(small_world)
    url = "/api/v1/strip/?from=2026-11-19T22:00:00Z&to=2026-11-20T01:00:00Z"
    before = client.get(url)["ETag"]
    assert client.get(url)["ETag"] == before
    fill(small_world, [(-24 * 9, LINKS[0], 10.0, "")])
    assert client.get(url)["ETag"] != before


@pytest.mark.usefixtures("at_noon")
@pytest.mark.parametrize(
    ("text", "span", "hours", "newest"),
    [
        ("", "7d", 168, "2026-11-20T12:00:00Z"),
        ("?window=30d", "30d", 168, "2026-11-20T12:00:00Z"),
        ("?from=2026-11-14T00:00:00Z&to=2026-11-14T01:00:00Z", "7d", 168, "2026-11-20T12:00:00Z"),
        ("?from=2026-11-10T00:00:00Z&to=2026-11-11T00:00:00Z", "30d", 168, "2026-11-20T12:00:00Z"),
        ("?from=2026-03-10T00:00:00Z&to=2026-03-11T07:30:00Z", "7d", 168, "2026-03-11T07:00:00Z"),
        ("?from=1970-01-01T00:00:00Z&to=1970-01-02T00:00:00Z", "7d", 24, "1970-01-01T23:00:00Z"),
        ("?from=2026-11-20T00:00:00Z&to=9999-12-31T23:59:59Z", "7d", 168, "2026-11-20T12:00:00Z"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/sites/RAL/", "/links/RAL_DATADISK/Glasgow_DATADISK/"])
def test_a_page_leads_to_the_numbers_of_its_links_up_to_its_window(
    client, small_world, path, text, span, hours, newest
):
    if path.startswith("/links"):
        text = text.replace("9999", "2027")  # a link is shown for a number of days
    page = responses.html(client, f"{path}{text}")
    data = {name: unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', page)}
    assert data["span"] == span
    week, month = (responses.answer(client, data[name]) for name in ("week", "month"))
    assert (week["bucket"], month["bucket"]) == ("1h", "1d")
    starts = week["buckets"]["start"]
    assert (len(starts), starts[-1]) == (hours, newest)
    names = {"/": set(), "/sites/RAL/": {"site"}}
    of_links = {"source_endpoint", "destination_endpoint"}
    expected = {"size", "window", "start", "end", *names.get(path, of_links)}
    assert set(week["query"]) == expected
