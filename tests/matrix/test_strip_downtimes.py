"""Where the strip of time says that links were declared down or at risk."""

from datetime import timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from matrix.answers.matrix import time_strip
from matrix.statistics.levels import declared
from matrix.statistics.levels.declared import DeclaredSpan
from matrix.statistics.levels.time_strip import TimeBuckets
from sonar.models import Downtime, Mesh, Schedule
from tests.matrix import responses, world
from tests.matrix.world import HOUR, NOW, World, downtime

SPAN = "from=2026-11-20T08:00:00Z&to=2026-11-20T13:00:00Z"
URL = f"/api/v1/strip/?{SPAN}"
PLACES, BUCKETS = 4, TimeBuckets(first=1000, width=10, count=6)
MOMENTS = st.integers(980, 1080)
SPANS = st.lists(
    st.tuples(st.sets(st.integers(0, PLACES - 1), min_size=1), MOMENTS, MOMENTS, st.booleans())
    .filter(lambda span: span[1] < span[2])
    .map(lambda span: DeclaredSpan(np.array(sorted(span[0])), *span[1:])),
    max_size=5,
)


@given(shown=st.sets(st.tuples(*[st.integers(0, PLACES - 1)] * 2)), spans=SPANS)
def test_counts_are_those_of_every_link_and_bucket_asked_one_by_one(
    shown: set[tuple[int, int]], spans: list[DeclaredSpan]
):
    flags = np.zeros((PLACES, PLACES), dtype=bool)
    for link in shown:
        flags[link] = True
    counts = declared.count(flags, spans, BUCKETS)
    down, at_risk = [0] * BUCKETS.count, [0] * BUCKETS.count
    for link, bucket in product(shown, range(BUCKETS.count)):
        start = BUCKETS.first + bucket * BUCKETS.width
        kinds = {
            span.is_outage
            for span in spans
            if span.start < start + BUCKETS.width and span.end > start
            if set(link) & set(span.places.tolist())
        }
        down[bucket] += True in kinds
        at_risk[bucket] += kinds == {False}
    assert (counts.down_links.tolist(), counts.at_risk_links.tolist()) == (down, at_risk)


@pytest.fixture
def both(small_world: World, settings: Settings) -> World:
    """RAL is down by hand from 9:30 to 10:00, and DESY at risk by GOCDB from 9:59 to 11:01."""
    downtime(
        timedelta(hours=-2, minutes=-31),
        timedelta(hours=-2, seconds=-30),
        site=small_world.ral.site,
    )
    for endpoint in (small_world.desy, small_world.scratch):
        downtime(
            timedelta(hours=-2, minutes=-2),
            -HOUR + timedelta(seconds=30),
            reason="dCache",
            severity="warning",
            origin="gocdb",
            key="8G0",
            endpoint=endpoint,
        )
    return small_world


def counts(client: Client, more: str = "") -> tuple[list[int], list[int]]:
    buckets = responses.answer(client, URL + more)["buckets"]
    return buckets["down_links"], buckets["at_risk_links"]


@pytest.mark.django_db
def test_each_hour_counts_the_links_that_were_down_and_those_at_risk(client: Client, both: World):
    # Of 12 links 6 have RAL as an end; 10 have one or both ends at DESY, 6 of them not RAL.
    assert counts(client) == ([0, 6, 0, 0, 0], [0, 6, 10, 10, 0])
    assert counts(client, "&site=Glasgow") == ([0, 2, 0, 0, 0], [0, 4, 4, 4, 0])
    assert counts(client, "&source_site=RAL&destination_site=Glasgow")[1] == [0] * 5
    days = responses.answer(client, f"{URL}&bucket=1d")["buckets"]
    assert (days["down_links"], days["at_risk_links"]) == ([6], [6])
    answer = responses.answer(client, URL)
    assert answer["downtime_count"] == 2
    assert [
        (each["subject"], each["severity"], each["reason"], each["source"])
        for each in answer["downtimes"]
    ] == [
        ("RAL", "outage", "disks", None),
        ("DESY_DATADISK and DESY_SCRATCHDISK", "warning", "dCache", "GOCDB"),
    ]
    lines = responses.csv_rows(client, f"{URL}&format=csv")
    assert [line["down_links"] for line in lines] == ["0", "6", "0", "0", "0"]


@pytest.mark.django_db
def test_links_count_that_are_planned_or_were_tested(client: Client, both: World):
    Mesh.objects.all().delete()
    Schedule.objects.all().delete()
    assert counts(client) == ([0] * 5, [0] * 5)
    with world.transfers() as some:
        some.add(both.ral, both.glasgow, 10.0, ago=3 * HOUR)
    assert counts(client) == ([0, 1, 0, 0, 0], [0] * 5)


@pytest.mark.django_db
def test_a_downtime_that_is_declared_changes_the_version_and_the_picture(
    client: Client, small_world: World
):
    figure = client.get(f"{URL}&format=plotly").json()
    assert [each["type"] for each in figure["data"]] == ["bar"] * 2
    before = client.get(URL)["ETag"]
    downtime(site=small_world.desy.site, severity="warning")
    assert client.get(URL)["ETag"] != before
    (*_, line) = client.get(f"{URL}&format=plotly").json()["data"]
    assert (line["name"], line["line"]["width"]) == ("declared at risk", 2)
    assert line["hovertext"][0] == "10 links: declared at risk"


@pytest.mark.django_db
def test_of_many_downtimes_the_first_are_named_and_all_counted(
    client: Client, small_world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(time_strip, "MOST_DOWNTIMES", 3)
    fields: dict[str, Any] = {"ends_at": NOW, "endpoint": small_world.ral}
    Downtime.objects.bulk_create(
        Downtime(starts_at=NOW - number * timedelta(minutes=1), reason=f"r{number}", **fields)
        for number in range(1, 8)
    )
    answer = responses.answer(client, URL)
    assert [each["reason"] for each in answer["downtimes"]] == ["r7", "r6", "r5"]
    assert answer["downtime_count"] == 7
