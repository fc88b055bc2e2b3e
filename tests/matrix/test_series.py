"""One link over time, in buckets and one by one: equal to plain SQL, and the same in the API."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.link import series
from matrix.answers.link.series import TimeSeries
from matrix.query.filters import Filter
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import Window
from sonar.results import sealing
from tests.matrix import responses, world
from tests.matrix.sent import MINUTE, PLAIN, many
from tests.matrix.world import HOUR, NOW, World, transfer
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
TODAY = datetime(2026, 11, 20, tzinfo=UTC)
STRIDES = {"5m": 5 * MINUTE, "1h": HOUR, "1d": DAY}
SQL = """
    SELECT extract(epoch FROM date_bin(%s, started_at, '2000-01-01Z'))::float8,
        count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed'),
        avg(rate), percentile_cont(ARRAY[0.05, 0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY rate)
    FROM (
        SELECT *, CASE WHEN state = 'done' THEN (bytes / seconds / 1e6)::float8 END AS rate
        FROM sonar_transfer
    ) AS rated
    WHERE source_id = %s AND destination_id = %s AND size_class_id = %s
      AND started_at >= %s AND started_at < %s AND state <> 'lost'
    GROUP BY 1
"""


def built(world_: World, window: Window, bucket: str = "auto", *filters: Filter) -> TimeSeries:
    return series.build((world_.ral.id, world_.glasgow.id), "large", window, bucket, filters)


def at(world_: World, moment: datetime, rate: float | None = 5.0, **more: Any) -> None:
    transfer(world_.ral, world_.glasgow, rate, ago=NOW - moment, **more)


@given(
    results=st.lists(
        st.tuples(
            st.one_of(
                st.integers(0, 3 * 86_400_000),
                st.sampled_from([0, 299_999, 300_000, 3_600_000, 86_399_999, 86_400_000]),
            ),
            st.one_of(st.none(), st.just(5.0), st.floats(0.001, 5000)),
        ),
        max_size=25,
    ),
    bounds=st.tuples(st.integers(0, 3 * 86_400), st.integers(1, 86_400)),
    bucket=st.sampled_from(list(STRIDES)),
)
@examples(40)
def test_buckets_are_equal_to_sql(small_world, results, bounds, bucket):
    Transfer.objects.all().delete()
    with world.transfers() as some:
        for offset, rate in results:
            moment = TODAY + timedelta(milliseconds=offset)
            some.add(small_world.ral, small_world.glasgow, rate, ago=NOW - moment)
    start = TODAY + timedelta(seconds=bounds[0])
    window = Window(start, start + timedelta(seconds=bounds[1]))
    found = built(small_world, window, bucket)
    ends = [small_world.ral.id, small_world.glasgow.id, SizeClass.objects.get(name="large").id]
    with connection.cursor() as cursor:
        cursor.execute(SQL, [STRIDES[bucket], *ends, window.start, window.end])
        expected = {row[0]: row[1:] for row in cursor.fetchall()}
    assert set(expected) <= set(found.starts.tolist())
    for index, start_s in enumerate(found.starts.tolist()):
        ok, failed, mean, parts = expected.get(start_s, (0, 0, None, None))
        assert (found.ok[index], found.failed[index]) == (ok, failed)
        ours = [found.rates[name][index] for name in ("mean", "p05", "median", "p95", "p99")]
        theirs = [np.nan] * 5 if mean is None else [mean, *parts]
        assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True)


def test_buckets_begin_with_full_hours_and_hold_nothing_from_outside_the_window(
    small_world,
):
    for minutes in (-31, -29, 30, 89, 91):
        at(small_world, TODAY + 10 * HOUR + minutes * MINUTE)
    found = built(small_world, Window(TODAY + 9.5 * HOUR, TODAY + 11 * HOUR + 30 * MINUTE), "1h")
    hours = [TODAY + hour * HOUR for hour in (9, 10, 11)]
    assert found.starts.tolist() == [hour.timestamp() for hour in hours]
    assert found.ok.tolist() == [1, 1, 1]


def test_an_empty_bucket_is_there_with_counts_of_zero_and_no_rate(small_world):
    at(small_world, TODAY + 2 * HOUR, 8.0)
    at(small_world, TODAY + 3 * HOUR, None)
    found = built(small_world, Window(TODAY, TODAY + 5 * HOUR), "1h")
    assert found.ok.tolist() == [0, 0, 1, 0, 0]
    assert found.failed.tolist() == [0, 0, 0, 1, 0]
    assert np.isnan(found.rates["median"]).tolist() == np.isnan(found.rates["mean"]).tolist()
    assert np.isnan(found.rates["mean"]).tolist() == [True, True, False, True, True]
    assert found.rates["median"][2] == 8.0


@pytest.mark.parametrize("window", [timedelta(seconds=1), HOUR, 90 * DAY])
def test_a_link_without_results_has_buckets_and_no_points(small_world, window):
    found = built(small_world, Window(TODAY, TODAY + window))
    assert found.ok.sum() == found.failed.sum() == found.points.rate.size == 0
    assert np.isnan(found.rates["p95"]).all()


@pytest.mark.parametrize(
    ("length", "bucket", "count", "in_table"),
    [
        (timedelta(seconds=1), "5m", 1, "5m"),
        (HOUR, "5m", 12, "5m"),
        (6 * HOUR, "5m", 72, "5m"),
        (24 * HOUR, "1h", 24, "1h"),
        (7 * DAY, "1h", 168, "1h"),
        (30 * DAY, "1h", 720, "6h"),
        (90 * DAY, "6h", 360, "1d"),
        (400 * DAY, "1d", 400, "1d"),
    ],
)
def test_auto_takes_the_finest_bucket_of_which_there_are_not_too_many_and_a_table_fewer(
    small_world, length, bucket, count, in_table
):
    window = Window(TODAY, TODAY + length)
    found = built(small_world, window)
    assert (found.bucket, len(found.starts)) == (bucket, count)
    assert series.cut_for_table(window).bucket == in_table


def test_points_are_single_results_in_the_order_of_time(small_world):
    with connection.cursor() as cursor:  # or the index happens to give that order
        cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
    for hour, rate in ((5, 7.0), (1, None), (3, 2.5)):
        at(small_world, TODAY + hour * HOUR, rate)
    points = built(small_world, Window(TODAY, TODAY + DAY)).points
    assert points.started.tolist() == [(TODAY + hour * HOUR).timestamp() for hour in (1, 3, 5)]
    assert points.rate.tolist() == pytest.approx([np.nan, 2.5, 7.0], nan_ok=True)
    assert points.ok.tolist() == [False, True, True]


def test_only_results_of_the_link_the_class_and_the_filters_count(small_world):
    transfer(small_world.glasgow, small_world.ral, 1.0, ago=NOW - TODAY)
    at(small_world, TODAY, 2.0, size="small")
    at(small_world, TODAY, None, state="lost")
    at(small_world, TODAY, 4.0)
    at(small_world, TODAY, 3.0, made=world.profile(streams=4))
    day = Window(TODAY, TODAY + DAY)
    assert sorted(built(small_world, day).points.rate) == [3.0, 4.0]
    assert built(small_world, day, "auto", Filter("streams", "4")).points.rate.tolist() == [3.0]
    unlike = Filter("streams", "4", exclude=True)
    assert built(small_world, day, "auto", unlike).points.rate.tolist() == [4.0]


def test_one_statement_reads_a_link_sealed_or_not(small_world, django_assert_num_queries):
    at(small_world, TODAY, 3.0)
    window = Window(TODAY - 30 * DAY, TODAY + DAY)
    for _ in range(2):
        with django_assert_num_queries(1):
            found = built(small_world, window, "1d", Filter("mover", "http-tpc"))
        assert found.ok.sum() == 1
        sealing.seal(TODAY + 2 * DAY)


def test_too_many_buckets_are_an_error_that_says_so(small_world):
    with pytest.raises(ValueError, match="at most 30000"):
        built(small_world, Window(TODAY, TODAY + 400 * DAY), "5m")
    assert len(built(small_world, Window(TODAY, TODAY + 90 * DAY), "5m").starts) == 25920


URL = "/api/v1/series/?source=RAL_DATADISK&destination=Glasgow_DATADISK"


def get(client: Client, text: str = "", url: str = URL) -> dict:
    return responses.answer(client, f"{url}{text}")


def results(small_world: World) -> None:
    for rate in (10.0, 20.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=3 * HOUR)
    transfer(small_world.glasgow, small_world.ral, 99.0)
    transfer(small_world.ral, small_world.glasgow, 77.0, size="small")


def test_buckets_have_counts_and_rates_and_empty_ones_null(client, small_world):
    results(small_world)
    answer = get(client, "&window=6h&bucket=1h")
    assert (answer["bucket"], answer["bucket_seconds"], answer["unit"]) == ("1h", 3600, "MB/s")
    buckets = answer["buckets"]
    assert buckets["start"] == [f"2026-11-20T{hour:02d}:00:00Z" for hour in range(6, 13)]
    assert buckets["ok"] == [0, 0, 0, 1, 0, 2, 0]
    assert buckets["failed"] == [0, 0, 0, 0, 0, 1, 0]
    assert buckets["mean_mb_s"] == [None, None, None, 5.0, None, 15.0, None]
    assert buckets["median_mb_s"] == buckets["mean_mb_s"]
    assert buckets["p05_mb_s"][5] == 10.5
    assert buckets["p95_mb_s"][5] == 19.5
    assert buckets["p99_mb_s"][5] == 19.9
    assert "points" not in answer


def test_the_direction_is_as_asked_and_so_is_the_size_class(client, small_world):
    results(small_world)
    back = "/api/v1/series/?source=Glasgow_DATADISK&destination=RAL_DATADISK"
    assert get(client, "&bucket=1d&window=1h", back)["buckets"]["mean_mb_s"] == [99.0]
    assert get(client, "&bucket=1d&window=1h&size=small")["buckets"]["mean_mb_s"] == [77.0]


def test_points_are_single_results(client, small_world):
    results(small_world)
    points = get(client, "&points=1")["points"]
    assert points["started_at"] == ["2026-11-20T09:00:30Z"] + ["2026-11-20T11:30:30Z"] * 3
    assert sorted(points["state"]) == ["done", "done", "done", "failed"]
    rates = dict(zip(points["rate_mb_s"], points["state"], strict=True))
    assert rates == {5.0: "done", 10.0: "done", 20.0: "done", None: "failed"}


def test_csv_has_a_line_for_each_bucket_or_each_result(client, small_world):
    results(small_world)
    table = responses.csv_rows(client, f"{URL}&window=6h&bucket=1h&format=csv")
    assert len(table) == 7
    assert table[5] == {
        "start": "2026-11-20T11:00:00Z", "ok": "2", "failed": "1", "mean_mb_s": "15.0",
        "p05_mb_s": "10.5", "median_mb_s": "15.0", "p95_mb_s": "19.5", "p99_mb_s": "19.9",
    }  # fmt: skip
    assert table[0]["mean_mb_s"] == ""
    table = responses.csv_rows(client, f"{URL}&points=1&format=csv")
    assert table[0] == {"started_at": "2026-11-20T09:00:30Z", "state": "done", "rate_mb_s": "5.0"}
    assert len(table) == 4


def test_a_link_without_results_is_answered(client, small_world):
    assert set(get(client)["buckets"]["ok"]) == {0}
    assert client.get(f"{URL}&points=1&format=csv").content.decode().count("\n") == 1


def test_filters_on_how_it_was_measured_hold(client, small_world):
    ends = small_world.ral, small_world.glasgow
    transfer(*ends, 3.0, made=world.profile(**PLAIN))
    transfer(*ends, 9.0, made=world.profile(**PLAIN | {"streams": 4}))
    answer = get(client, "&window=1h&bucket=1d&streams=4")
    assert answer["buckets"]["mean_mb_s"] == [9.0]
    assert answer["query"] == {
        "source": "RAL_DATADISK", "destination": "Glasgow_DATADISK", "size": "large",
        "window": "1h", "start": "2026-11-20T11:01:00Z", "end": "2026-11-20T12:01:00Z",
        "streams": ["4"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "parameter", "said"),
    [
        (
            "?destination=RAL_DATADISK",
            "source",
            "“source” is missing: give the name of a registered endpoint.",
        ),
        ("?source=RAL_DATADISK", "destination", "“destination” is missing"),
        ("?source=x&destination=RAL_DATADISK", "source", "source “x” is not known"),
        (
            "?source=RAL_DATADISK&destination=RAL_DATADISK",
            "destination",
            "“destination” must differ",
        ),
        (f"{URL}&bucket=2h", "bucket", "bucket “2h” is not known: use auto, 5m, 1h, 6h or 1d."),
        (f"{URL}&points=yes", "points", "points “yes” is not known: use 1."),
        (f"{URL}&site=RAL", "site", "There is no parameter “site”"),
        (f"{URL}&stat=max", "stat", "There is no parameter “stat”"),
        (
            f"{URL}&bucket=5m&from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
            "bucket",
            "a bucket size of 5m divides the time range into 105120 buckets: at most 30000 buckets "
            "can be shown.",
        ),
    ],
)
def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(
    client, small_world, url, parameter, said
):
    response = client.get(f"/api/v1/series/{url.removeprefix('/api/v1/series/')}")
    assert response.status_code == 400
    assert said in response.json()["errors"][parameter][0]


def test_the_number_of_queries_does_not_grow(client, small_world, django_assert_num_queries):
    get(client)
    for count in (5, 500):
        many(small_world.ral, small_world.glasgow, count, NOW - MINUTE)
        with django_assert_num_queries(5):
            assert sum(get(client, "&points=1")["buckets"]["ok"]) >= count / 5
