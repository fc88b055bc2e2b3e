"""What the pages of links and sites say of the rate within transfers."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from matrix.answers.link import rate_profile
from matrix.answers.link.rate_profile import MOST_TRANSFERS, SHAPE_WORDS, verb
from matrix.api.diagnosis import LinkInside
from matrix.api.site_report import SiteReport
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.transfers.rate_profile import SHAPES
from matrix.store import registry
from sonar.models import Endpoint, Site
from tests.matrix import responses
from tests.matrix.sent import send
from tests.matrix.world import NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

STEADY = [80.0] * 20
STALLING = [*[80.0] * 10, *[0.0] * 6, *[80.0] * 10]
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"


def run(source: Endpoint, destination: Endpoint, rates: list[float], hours: float = 1) -> None:
    """Record a transfer with a sample every 5 s, of these rates between one and the next."""
    moved = (5e6 * np.cumsum(rates)).tolist()
    samples = [[5.0 * number, sent] for number, sent in enumerate(moved, 1)]
    whole = {"seconds": 5.0 * len(rates), "moved_bytes": int(moved[-1])}
    send(source, destination, NOW - timedelta(hours=hours), samples=samples[:-1], **whole)


def five_runs(world: World) -> None:
    """Record four even transfers from RAL to Glasgow, and one that stalls."""
    for hours in range(1, 5):
        run(world.ral, world.glasgow, STEADY, hours)
    run(world.ral, world.glasgow, STALLING)


def words(client: Client, path: str) -> str:
    return responses.page(client, path).words


def looked(world: World) -> Any:
    query, ends = MatrixQuery(), (world.ral, world.glasgow)
    filters = map(Filter, ("source_endpoint", "destination_endpoint"), (end.name for end in ends))
    places = registry.read_places(registry.read_versions())
    return rate_profile.read(query, query.window_at(NOW), places, filters, ["RAL", "Glasgow"])


def test_every_shape_has_words():
    assert set(SHAPE_WORDS) == set(SHAPES)
    assert {shape: verb(shape, 1) for shape in SHAPES} == {
        "stalls": "stalls",
        "saw-tooth": "follows a saw-tooth pattern",
        "ramps": "starts slowly",
        "slows": "slows down",
        "ceiling": "runs at a constant maximum rate",
        "uneven": "varies irregularly",
    }


def test_shapes_are_counted_and_rates_weighed_by_time(small_world):
    five_runs(small_world)
    run(small_world.glasgow, small_world.ral, STALLING)
    run(small_world.ral, small_world.glasgow, STEADY[:3])
    found = looked(small_world)
    assert found.looked_at == 6
    assert {shape: n for shape, n in found.counts.items() if n} == {"stalls": 1, "ceiling": 4}
    assert found.seconds.sum() == pytest.approx(5 * (4 * 20 + 26))
    assert found.stalled == pytest.approx(30 / 530)
    assert found.middle[1] == pytest.approx(80)
    assert found.ceiling == pytest.approx(80)
    assert found.nominal is None


def test_the_lowest_capacity_of_both_sites_counts(small_world):
    Site.objects.filter(name="RAL").update(wan_gbit_s=6)
    Site.objects.filter(name="Glasgow").update(wan_gbit_s=1)
    Site.objects.filter(name="DESY").update(wan_gbit_s=0.1)
    run(small_world.ral, small_world.glasgow, STEADY)
    found = looked(small_world)
    assert (found.nominal.site, found.nominal.mb_s) == ("Glasgow", 125)


def test_transfers_without_enough_samples_say_nothing(client, small_world):
    assert looked(small_world) is None
    run(small_world.ral, small_world.glasgow, STEADY[:4])
    assert looked(small_world) is None
    assert "progress samples" not in words(client, LINK)
    assert "Inside transfers" not in words(client, "/sites/RAL/")


def test_ceilings_that_differ_are_not_one(small_world):
    for number in range(6):
        run(small_world.ral, small_world.glasgow, [20.0 * 2**number] * 20, number + 1)
    found = looked(small_world)
    assert found.counts["ceiling"] == 6
    assert found.ceiling is None


def test_only_the_newest_are_looked_at(small_world, monkeypatch):
    monkeypatch.setattr(rate_profile, "MOST_TRANSFERS", 2)
    run(small_world.ral, small_world.glasgow, STALLING, 9)
    for hours in (1, 2):
        run(small_world.ral, small_world.glasgow, STEADY, hours)
    found = looked(small_world)
    assert (found.looked_at, found.counts["stalls"], MOST_TRANSFERS) == (2, 0, 300)


def test_the_page_of_a_link_says_it(client, small_world):
    Site.objects.filter(name="RAL").update(wan_gbit_s=6)
    five_runs(small_world)
    html = words(client, LINK)
    assert (
        "Of 5 large-file transfers with 6 or more progress samples, 4 run at a constant maximum "
        "rate" in html
    )
    assert "1 stalls; transfers were stalled for 5.7 % of the time." in html
    assert "the median rate is 80.0 MB/s" in html
    assert "is 11 % of the nominal capacity of RAL (750 MB/s)." in html
    assert "progress samples" not in words(client, f"{LINK}?size=small")


def test_a_full_link_is_called_so(client, small_world):
    Site.objects.filter(name="Glasgow").update(wan_gbit_s=0.66)
    for hours in range(1, 4):
        run(small_world.ral, small_world.glasgow, STEADY, hours)
    html = words(client, LINK)
    assert "reaches the nominal capacity of Glasgow (82.5 MB/s)" in html


def test_the_page_of_a_site_says_it_for_each_direction(client, small_world):
    for hours in range(1, 4):
        run(small_world.ral, small_world.glasgow, STEADY, hours)
        run(small_world.desy, small_world.ral, STALLING, hours)
    html = words(client, "/sites/RAL/")
    assert "Inside transfers to RAL" in html
    assert "Inside transfers from RAL" in html
    assert "3 stall; transfers were stalled for" in html
    assert "3 run at a constant maximum rate" in html


def test_the_call_has_the_same_figures(client, small_world):
    Site.objects.filter(name="RAL").update(wan_gbit_s=6)
    five_runs(small_world)
    url = "/api/v1/inside/?source=RAL_DATADISK&destination=Glasgow_DATADISK"
    answer = responses.answer(client, url)
    LinkInside.model_validate(answer)
    assert (answer["query"]["size"], answer["query"]["end"]) == ("large", "2026-11-20T12:01:00Z")
    inside = answer["inside"]
    sentences = inside.pop("sentences")
    assert inside == {
        "looked_at": 5,
        "courses": 5,
        "shapes": dict.fromkeys(SHAPES, 0) | {"stalls": 1, "ceiling": 4},
        "low_mb_s": 0.0,
        "median_mb_s": 80.0,
        "high_mb_s": 80.0,
        "stalled": pytest.approx(30 / 530, abs=1e-6),
        "ceiling_mb_s": 80.0,
        "nominal_mb_s": 750.0,
        "nominal_site": "RAL",
    }
    page = words(client, LINK)
    assert len(sentences) == 4
    assert all(sentence in page for sentence in sentences)
    assert responses.answer(client, f"{url}&size=small")["inside"] is None
    refused = client.get(f"{url}&compare=previous")
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["compare"])


def test_the_call_costs_as_many_queries_however_many_there_are(client, small_world):
    url = "/api/v1/inside/?source=RAL_DATADISK&destination=Glasgow_DATADISK"
    counts = []
    for hours in (1, 2, 3):
        run(small_world.ral, small_world.glasgow, STEADY, hours)
        responses.answer(client, url)
        counts.append(len(responses.statements(responses.answer, client, url)))
    assert counts == [3, 3, 3]


def test_the_report_on_a_site_has_both_directions(client, small_world):
    for hours in range(1, 4):
        run(small_world.desy, small_world.ral, STALLING, hours)
    report = responses.answer(client, "/api/v1/sites/RAL/")
    assert report["as_source"]["inside"] is None
    inside = report["as_destination"]["inside"]
    assert (inside["courses"], inside["shapes"]["stalls"]) == (3, 3)
    assert inside["sentences"][0].startswith("Of 3 large-file transfers with 6 or more progress")
    SiteReport.model_validate(report)
