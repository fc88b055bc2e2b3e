"""How many links were tested, failing or slower by the hour or day: equal to plain SQL."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import product
from typing import Any

import numpy as np
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.matrix import time_strip
from matrix.answers.matrix.time_strip import StripQuestion
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.levels.time_strip import ConditionSpan, TimeBuckets, count
from matrix.statistics.samples.pooling import Numbering
from matrix.store.cache import ANSWERS
from sonar.models import Endpoint, SizeClass
from sonar.results import sealing
from tests.conditions import stored_condition
from tests.matrix import responses, world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World
from tests.properties import examples
from tests.sonar.history import undone

pytestmark = pytest.mark.django_db
START = datetime(2026, 11, 19, 22, 0, tzinfo=UTC)
LINKS = [(0, 1), (1, 0), (2, 3)]
FIELDS = ("links", "failed_links", "all_failed_links", "ok", "failed")

BY_SQL = """
    WITH by_link AS (
        SELECT date_trunc(%(unit)s, started_at, 'UTC') AS bucket, source_id, destination_id,
            count(*) FILTER (WHERE state = 'done') AS ok,
            count(*) FILTER (WHERE state = 'failed') AS failed
        FROM sonar_transfer
        WHERE size_class_id = %(size)s AND state <> 'lost' AND source_id = ANY(%(sources)s)
          AND started_at >= %(start)s AND started_at < %(end)s
        GROUP BY 1, 2, 3)
    SELECT extract(epoch FROM bucket)::float8, count(*), count(*) FILTER (WHERE failed > 0),
        count(*) FILTER (WHERE ok = 0), sum(ok)::bigint, sum(failed)::bigint
    FROM by_link GROUP BY 1
"""

RATES = st.one_of(st.none(), st.floats(0.001, 5000))
# In hours from START, within what is shown and just outside.
WITHIN = st.one_of(st.integers(-2, 60), st.sampled_from([0, 1, 2, 3, 26, 49, 50]))
RESULTS = st.lists(
    st.tuples(WITHIN, st.sampled_from(LINKS), RATES, st.sampled_from(["", "", "", "lost"])),
    max_size=25,
)


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
        return {start: tuple(counts) for start, *counts in cursor.fetchall()}


def by_bucket(question: StripQuestion) -> dict[float, tuple[int, ...]]:
    """Return the buckets in which a link was tested."""
    strip = time_strip.build(question)
    columns = [getattr(strip.counts, name).tolist() for name in FIELDS]
    rows = zip(*columns, strict=True)
    return {start: row for start, row in zip(strip.starts.tolist(), rows, strict=True) if any(row)}


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


BUCKETS = TimeBuckets(first=1000, width=10, count=6)
MOMENTS = st.integers(960, 1080)
SPANS = st.lists(
    st.tuples(st.sets(st.integers(0, 8), min_size=1), MOMENTS, MOMENTS, st.booleans())
    .filter(lambda span: span[1] <= span[2])
    .map(lambda span: ConditionSpan(np.array(sorted(span[0])), *span[1:])),
    max_size=6,
)


@given(shown=st.sets(st.integers(0, 8)), spans=SPANS)
def test_links_of_conditions_are_those_of_every_link_and_bucket_asked_one_by_one(
    shown: set[int], spans: list[ConditionSpan]
):
    numbering = Numbering(np.array([3, 5, 8]))
    flags = np.isin(np.arange(9), sorted(shown)).reshape(3, 3)
    counts = count([], spans, numbering, flags, BUCKETS)
    failing, slower = [0] * BUCKETS.count, [0] * BUCKETS.count
    for link, bucket in product(shown, range(BUCKETS.count)):
        start = BUCKETS.first + bucket * BUCKETS.width
        kinds = {
            span.is_failing
            for span in spans
            if span.start < start + BUCKETS.width
            if span.end > start or span.start >= start
            if link in span.links
        }
        failing[bucket] += True in kinds
        slower[bucket] += kinds == {False}
    assert (counts.failing_links.tolist(), counts.slower_links.tolist()) == (failing, slower)


def night(small_world: World) -> None:
    """RAL -> Glasgow fails in an hour; nothing but conditions says what is failing or slower."""
    first, second, third = LINKS
    hours = [
        (0, first, None, ""), (0, first, 10.0, ""), (0, second, 10.0, ""), (0, third, None, ""),
        (1, first, 5.0, ""), (1, second, 7.0, ""), (1, third, None, "lost"),
    ]  # fmt: skip
    fill(small_world, hours)


def link(small_world: World, number: int) -> dict[str, Endpoint]:
    source, destination = LINKS[number]
    return {
        "source": small_world.endpoints[source],
        "destination": small_world.endpoints[destination],
    }


def ago(hours: float) -> timedelta:
    """Return how long before NOW so many hours from START are."""
    return NOW - START - hours * HOUR


NIGHT = "/api/v1/strip/?from=2026-11-19T22:00:00Z&to=2026-11-20T01:00:00Z"


def test_a_bucket_counts_tests_and_the_links_of_conditions(client, small_world):
    night(small_world)
    stored_condition("slow", **link(small_world, 0), since=ago(1.5), ended=ago(2))
    answer = responses.answer(client, NIGHT)
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
    lines = responses.csv_rows(client, f"{NIGHT}&format=csv&bucket=1d")
    assert [(line["start"], line["failed_links"], line["ok"]) for line in lines] == [
        ("2026-11-19T00:00:00Z", "2", "4"), ("2026-11-20T00:00:00Z", "0", "0"),
    ]  # fmt: skip


def test_all_links_of_a_condition_count_in_every_hour_tested_or_not(client, small_world):
    """A destination, slow over 4 h with a test or two an hour, is slow on all its links."""
    night(small_world)
    stored_condition("slow", destination=small_world.glasgow, since=ago(1.2), ended=ago(4.5))
    stored_condition("failing", **link(small_world, 0), since=ago(3.1), sizes=("large", "small"))
    url = "/api/v1/strip/?from=2026-11-19T22:00:00Z&to=2026-11-20T05:00:00Z"

    def counts(more: str = "") -> tuple[list[int], list[int]]:
        buckets = responses.answer(client, url + more)["buckets"]
        return buckets["failing_links"], buckets["slower_links"]

    assert counts() == ([0, 0, 0, 1, 1, 1, 1], [0, 3, 3, 2, 2, 0, 0])
    assert counts("&bucket=1d") == ([0, 1], [3, 2])
    assert counts("&site=DESY") == ([0] * 7, [0, 2, 2, 2, 2, 0, 0])
    assert counts("&destination_site=DESY") == ([0] * 7, [0] * 7)
    assert counts("&size=small") == ([0, 0, 0, 1, 1, 1, 1], [0] * 7)
    # How a test was measured chooses numbers, and no judgements.
    assert counts("&origin=production") == counts()


def test_what_is_not_confirmed_fast_silent_or_of_the_grid_is_in_no_bar(client, small_world):
    for kind in ("fast", "silent"):
        stored_condition(kind, **link(small_world, 0), since=ago(-5))
    stored_condition("failing", **link(small_world, 1), since=ago(-5), confirmed=False)
    stored_condition("slow", since=ago(-5))
    buckets = responses.answer(client, NIGHT)["buckets"]
    assert buckets["failing_links"] == buckets["slower_links"] == [0, 0, 0]


@pytest.mark.usefixtures("at_noon")
def test_what_lasts_is_in_no_hour_that_has_not_begun(client, small_world):
    stored_condition("failing", **link(small_world, 0), since=2.5 * HOUR)
    url = "/api/v1/strip/?from=2026-11-20T09:00:00Z&to=2026-11-20T15:00:00Z"
    assert responses.answer(client, url)["buckets"]["failing_links"] == [1, 1, 1, 1, 0, 0]


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
        (
            "from=1970-01-01&to=2026-01-01&bucket=1h",
            "bucket",
            "at most 30000 buckets can be shown",
        ),
        ("window=2d", "window", "window “2d” is not known"),
    ],
)
def test_a_bad_parameter_is_named(client, small_world, text, name, sentence):
    response = client.get(f"/api/v1/strip/?{text}")
    assert response.status_code == 400
    assert sentence in response.json()["errors"][name][0]


def test_statements_do_not_grow_with_data_and_a_304_takes_one(client, small_world):
    url = NIGHT
    client.get(url)
    night(small_world)
    assert len(statements(client.get, url)) == 5
    for number in range(3):
        world.downtime(-20 * HOUR, reason=f"disks {number}", endpoint=small_world.ral)
    assert len(statements(client.get, url)) == 9  # places and plan are of another registry
    known = {"if-none-match": client.get(url)["ETag"]}
    assert len(statements(client.get, url, headers=known)) == 1
    assert client.get(url, headers=known).status_code == 304


def test_a_condition_changes_the_version(client, small_world):
    night(small_world)
    before = client.get(NIGHT)["ETag"]
    fill(small_world, [(-24 * 9, LINKS[0], 10.0, "")])
    assert client.get(NIGHT)["ETag"] == before
    stored_condition("slow", **link(small_world, 0), since=ago(1))
    assert client.get(NIGHT)["ETag"] != before


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
