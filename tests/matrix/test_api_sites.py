"""GET /api/v1/sites/ and /api/v1/sites/<name>/; what is written there, test_api_registry tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from matrix.answers.site import reports
from matrix.api.schema.sites import LISTED, REPORT, ListedSite, SiteReport
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Site, Transfer
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture
def measured(small_world: World) -> World:
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=HOUR)
    transfer(small_world.ral, small_world.glasgow, 14.0, ago=HOUR)
    transfer(small_world.glasgow, small_world.ral, 4.0, size="small")
    transfer(small_world.ral, small_world.desy, None)
    Site.objects.filter(name="RAL").update(wan_gbit_s=1)
    return small_world


def answer(client: Client, path: str) -> dict[str, Any]:
    return responses.answer(client, f"/api/v1/{path}")


def lines(client: Client, path: str) -> list[dict[str, str]]:
    return responses.csv_rows(client, f"/api/v1/{path}")


def test_all_sites_are_answered_with_what_is_registered_and_measured(
    client: Client, measured: World
) -> None:
    found = answer(client, "sites/?window=24h")
    assert found["query"]["window"] == "24h"
    assert found["query"]["end"] == "2026-11-20T12:01:00Z"
    assert [one["name"] for one in found["sites"]] == ["DESY", "Glasgow", "RAL"]
    assert found["sites"][2] == {
        "name": "RAL",
        "cloud": "UK",
        "tier": 1,
        "country": "GB",
        "latitude": None,
        "longitude": None,
        "wan_gbit_s": 1.0,
        "tags": [],
        "endpoints": ["RAL_DATADISK"],
        "retired_endpoints": [],
        "simulated": False,
        "source_mean_mb_s": 12.0,
        "destination_mean_mb_s": None,
        "ok": 2,
        "failed": 1,
        "success": 0.666667,
        "last": "2026-11-20T11:30:30Z",
    }


def test_the_list_is_searched_sorted_and_filtered_as_the_page_is(
    client: Client, measured: World
) -> None:
    def names(text: str) -> list[str]:
        return [one["name"] for one in answer(client, f"sites/?{text}")["sites"]]

    assert names("ordering=-name&search=a") == ["RAL", "Glasgow", "DESY"]
    assert names("cloud=UK") == ["Glasgow", "RAL"]
    assert [one["name"] for one in lines(client, "sites/?search=gb&format=csv")] == [
        "Glasgow",
        "RAL",
    ]


def test_the_list_is_turned_page_by_page_in_one_window(
    client: Client, measured: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "sites/?window=24h&ordering=-source&page_size=2"
    first = answer(client, asked)
    assert [one["name"] for one in first["sites"]] == ["RAL", "DESY"]
    monkeypatch.setattr(timezone, "now", lambda: NOW + 2 * HOUR)
    second = answer(client, first["next"].partition("/api/v1/")[2])
    assert [one["name"] for one in second["sites"]] == ["Glasgow"]
    assert (second["query"], second["next"]) == (first["query"], None)
    whole = answer(client, asked.removesuffix("&page_size=2"))
    assert whole["query"]["end"] != first["query"]["end"]
    assert whole["next"] is None
    assert answer(client, "sites/?page_size=3")["next"] is None


def test_ndjson_has_a_line_for_each_site(client: Client, measured: World) -> None:
    response = client.get("/api/v1/sites/", headers={"accept": "application/x-ndjson"})
    assert response["Content-Type"] == "application/x-ndjson"
    found = [json.loads(line) for line in response.content.splitlines()]
    assert found == answer(client, "sites/")["sites"]


@pytest.mark.parametrize("path", ["sites/", "sites/RAL/", "sites/DESY/?size=small&streams=1"])
def test_answers_are_as_they_are_described(client: Client, measured: World, path: str) -> None:
    found = answer(client, path)
    if path == "sites/":
        for one in found["sites"]:
            ListedSite.model_validate(one)
        ListedSite.model_validate(LISTED)
    else:
        SiteReport.model_validate(found)
        SiteReport.model_validate(REPORT)


def test_a_report_has_the_numbers_of_the_page(client: Client, measured: World) -> None:
    found = answer(client, "sites/RAL/")
    report = reports.build("RAL", MatrixQuery(), NOW)
    own = found["as_source"]["classes"]["large"]
    assert own["mean_mb_s"] == report.standings("source")["large"].mean == pytest.approx(12)
    assert (own["rank"], own["ranked"], own["ok"], own["failed"]) == (1, 1, 2, 1)
    assert (own["fastest_mb_s"], own["fastest_partner"]) == (14.0, "Glasgow")
    assert own["fastest_of_wan"] == pytest.approx(0.112)
    assert found["as_destination"]["classes"]["small"]["mean_mb_s"] == 4.0
    assert found["as_destination"]["classes"]["large"]["mean_mb_s"] is None
    (worst,) = found["as_source"]["worst"]
    assert (worst["source"], worst["destination"]) == ("RAL_DATADISK", "Glasgow_DATADISK")
    assert worst["std_mb_s"] == pytest.approx(2.828427)
    (failing,) = found["as_source"]["failing"]
    assert (failing["destination"], failing["failed"]) == ("DESY_DATADISK", 1)
    assert found["planned"]["out"]["tests_per_day"] == 72
    assert found["planned"]["in"]["rate_mb_s"] == pytest.approx(1.666667)
    assert found["errors"][0]["count"] == found["errors_total"] == 1
    assert found["findings"][0]["title"] == "Fails as source on single links."


def test_the_csv_is_row_and_column_of_all_size_classes(client: Client, measured: World) -> None:
    found = lines(client, "sites/RAL/?format=csv")
    assert {(one["source"], one["destination"], one["size"]) for one in found} == {
        ("RAL", "Glasgow", "large"),
        ("RAL", "DESY", "large"),
        ("Glasgow", "RAL", "large"),
        ("DESY", "RAL", "large"),
        ("Glasgow", "RAL", "small"),
    }
    (one,) = [one for one in found if (one["source"], one["state"]) == ("RAL", "measured")]
    assert one == {
        "source": "RAL",
        "destination": "Glasgow",
        "size": "large",
        "mean_mb_s": "12.0",
        "std_mb_s": "2.828427",
        "ok": "2",
        "failed": "0",
        "last": "2026-11-20T11:00:30Z",
        "state": "measured",
    }


def test_a_cell_with_itself_is_in_the_csv_once(client: Client, small_world: World) -> None:
    transfer(small_world.desy, small_world.scratch, 5.0)
    found = lines(client, "sites/DESY/?format=csv")
    assert [one["destination"] for one in found].count("DESY") == 3
    assert sum(one["source"] == one["destination"] for one in found) == 1


def test_a_csv_of_nothing_has_its_head(client: Client, db: None) -> None:
    Site.objects.create(name="New")
    text = client.get("/api/v1/sites/New/?format=csv").content.decode()
    assert text == "source,destination,size,mean_mb_s,std_mb_s,ok,failed,last,state\n"


def test_the_json_of_a_view_is_asked_for_with_the_parameters_of_the_page(
    client: Client, measured: World
) -> None:
    html = client.get("/sites/RAL/?size=small&window=24h&streams=1").content.decode()
    assert 'href="/api/v1/sites/RAL/?size=small&amp;window=24h&amp;streams=1"' in html
    found = answer(client, "sites/RAL/?size=small&window=24h&streams=1")
    assert found["query"]["streams"] == ["1"]
    assert found["query"]["size"] == "small"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("sites/Nowhere/", 404, "No site “Nowhere” is registered."),
        ("sites/RAL/?window=2h", 400, "window “2h” is not known"),
        ("sites/RAL/?cloud=UK", 400, "There is no parameter “cloud”"),
        ("sites/RAL/?format=xml", 400, "format “xml” is not known"),
        ("sites/?ordering=colour", 400, "ordering “colour” is not known"),
        ("sites/?stat=max", 400, "There is no parameter “stat”"),
    ],
)
def test_errors_are_json_with_a_sentence(
    client: Client, small_world: World, path: str, status: int, said: str
) -> None:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status
    assert said in response.json()["detail"]


def test_markup_stays_text_in_json(client: Client, measured: World) -> None:
    Transfer.objects.filter(state="failed").update(error="</script><script>alert(1)</script>")
    response = client.get("/api/v1/sites/RAL/")
    assert response["Content-Type"] == "application/json"
    assert response.json()["errors"][0]["error"] == "</script><script>alert(1)</script>"


def test_reading_needs_an_account_where_it_is_not_public(
    client: Client, small_world: World, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ = False
    assert client.get("/api/v1/sites/").status_code in (401, 403)
    assert client.get("/api/v1/sites/RAL/").status_code in (401, 403)
    assert client.post("/api/v1/sites/").status_code in (401, 403, 405)


def test_the_number_of_queries_is_the_same_for_little_and_for_much(
    client: Client, small_world: World
) -> None:
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            answer(client, path)
        return len(captured)

    transfer(small_world.ral, small_world.glasgow, None)
    pinned = {"sites/": 7, "sites/RAL/": 18}
    for path, number in pinned.items():
        queries(path)
        assert (path, queries(path)) == (path, number)
    for number in range(30):
        ends = small_world.endpoints[number % 4], small_world.endpoints[(number + 1) % 4]
        transfer(*ends, None if number % 3 else 5.0, ago=number * HOUR / 4)
    for path, number in pinned.items():
        assert (path, queries(path)) == (path, number)
