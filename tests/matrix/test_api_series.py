"""GET /api/v1/series/: one link over time, the same numbers as matrix.answers.link.series."""

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.matrix import responses, world
from tests.matrix.sent import MINUTE, PLAIN, many
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
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
    body = client.get(f"{URL}&window=6h&bucket=1h&format=csv").content.decode()
    table = list(csv.DictReader(io.StringIO(body)))
    assert len(table) == 7
    assert table[5] == {
        "start": "2026-11-20T11:00:00Z", "ok": "2", "failed": "1", "mean_mb_s": "15.0",
        "p05_mb_s": "10.5", "median_mb_s": "15.0", "p95_mb_s": "19.5", "p99_mb_s": "19.9",
    }  # fmt: skip
    assert table[0]["mean_mb_s"] == ""
    body = client.get(f"{URL}&points=1&format=csv").content.decode()
    table = list(csv.DictReader(io.StringIO(body)))
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
        ("?destination=RAL_DATADISK", "source", "source is missing: name an endpoint."),
        ("?source=RAL_DATADISK", "destination", "destination is missing"),
        ("?source=x&destination=RAL_DATADISK", "source", "source “x” is not known"),
        ("?source=RAL_DATADISK&destination=RAL_DATADISK", "destination", "two different ends"),
        (f"{URL}&bucket=2h", "bucket", "bucket “2h” is not known: use auto, 5m, 1h, 6h or 1d."),
        (f"{URL}&points=yes", "points", "points “yes” is not known: use 1."),
        (f"{URL}&site=RAL", "site", "There is no parameter “site”"),
        (f"{URL}&stat=max", "stat", "There is no parameter “stat”"),
        (
            f"{URL}&bucket=5m&from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
            "bucket",
            "a bucket of 5m makes 105120 of them: at most 30000 can be shown.",
        ),
    ],
)
def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(
    client, small_world, url, parameter, said
):
    response = client.get(f"/api/v1/series/{url.removeprefix('/api/v1/series/')}")
    assert response.status_code == 400
    assert said in response.json()["errors"][parameter][0]


def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    get(client)
    for count in (5, 500):
        many(small_world.ral, small_world.glasgow, count, NOW - MINUTE)
        with CaptureQueriesContext(connection) as captured:
            assert sum(get(client, "&points=1")["buckets"]["ok"]) >= count / 5
        assert len(captured) == 4, [one["sql"] for one in captured.captured_queries]
