"""GET /api/v1/sites/ and /api/v1/sites/<name>/; what is written there, test_api_registry tests."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from matrix.answers.site import reports
from matrix.api.schema.operation import stored_examples
from matrix.api.site_report import SiteReport
from matrix.api.sites import ListedSite
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Annotation, Site, Transfer
from tests.conditions import assessed_at, stored_condition
from tests.matrix import changed_site, responses
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World, transfer, transfers

GLASGOW = "UKI-SCOTGRID-GLASGOW"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture
def measured(small_world) -> World:
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


def test_all_sites_are_answered_with_what_is_registered_and_measured(client, measured):
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
        "quiet_hours": None,
        "paused": False,
        "paused_until": None,
        "pause_reason": "",
        "paused_since": None,
        "endpoints": ["RAL_DATADISK"],
        "retired_endpoints": [],
        "simulated": False,
        "source_mean_mb_s": 12.0,
        "destination_mean_mb_s": None,
        "ok": 2,
        "failed": 1,
        "success": 0.666667,
        "last": "2026-11-20T11:30:30Z",
        "failing": 0,
        "slower_as_source": 0,
        "slower_as_destination": 0,
        "ratio_as_source": None,
        "ratio_as_destination": None,
    }


def test_the_list_is_searched_sorted_and_filtered_as_the_page_is(client, measured):
    def names(text: str) -> list[str]:
        return [one["name"] for one in answer(client, f"sites/?{text}")["sites"]]

    assert names("ordering=-name&search=a") == ["RAL", "Glasgow", "DESY"]
    assert names("cloud=UK") == ["Glasgow", "RAL"]
    expected = ["Glasgow", "RAL"]
    assert [one["name"] for one in lines(client, "sites/?search=gb&format=csv")] == expected


def test_the_list_is_turned_page_by_page_in_one_window(client, measured, monkeypatch):
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


def test_ndjson_has_a_line_for_each_site(client, measured):
    response = client.get("/api/v1/sites/", headers={"accept": "application/x-ndjson"})
    assert response["Content-Type"] == "application/x-ndjson"
    found = [json.loads(line) for line in response.content.splitlines()]
    assert found == answer(client, "sites/")["sites"]


@pytest.mark.parametrize("path", ["sites/", "sites/RAL/", "sites/DESY/?size=small&streams=1"])
def test_answers_are_as_they_are_described(client, measured, path):
    found = answer(client, path)
    if path == "sites/":
        for one in found["sites"]:
            ListedSite.model_validate(one)
        ListedSite.model_validate(stored_examples()["get_sites"]["json"]["sites"][0])
    else:
        SiteReport.model_validate(found)
        SiteReport.model_validate(stored_examples()["get_sites_name"]["json"])


def test_a_report_has_the_numbers_of_the_page(client, measured):
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
    assert found["as_source"]["failing"] == []
    assert found["planned"]["out"]["tests_per_day"] == 72
    assert found["planned"]["in"]["rate_mb_s"] == pytest.approx(1.666667)
    assert found["errors"][0]["count"] == found["errors_total"] == 1
    assert (found["findings"], found["assessed_at"]) == ([], None)


def test_a_report_has_the_conditions_of_the_site_and_what_to_check(client, measured):
    ral, desy = measured.ral, measured.desy
    stored_condition("slow", source=ral, destination=desy, confirmed=False)
    stored_condition(destination=ral, sizes=["large", "small"], since_low=NOW - 9 * HOUR)
    stored_condition(destination=desy)
    stored_condition(source=ral, sizes=["medium"])
    assessed_at()
    found = answer(client, "sites/RAL/")
    assert found["assessed_at"] == "2026-11-20T12:00:30Z"
    first, second = found["findings"]
    assert isinstance(first.pop("condition"), int)
    assert first == {
        "type": "failing",
        "scope": "destination",
        "title": "RAL_DATADISK fails as destination",
        "sentence": "RAL_DATADISK has been failing as destination since some time between 20 Nov "
        "03:00 and 20 Nov 06:00 UTC, with large and small files, on 3 of 3 links, 60 of 60 tests "
        "failed.",
        "advice": "Check RAL_DATADISK first. The errors of its failed tests show the reason.",
        "since": "2026-11-20T06:00:30Z",
        "since_low": "2026-11-20T03:00:30Z",
        "since_high": "2026-11-20T06:00:30Z",
        "confirmed_at": "2026-11-20T07:00:30Z",
    }
    assert (second["type"], second["confirmed_at"]) == ("slow", None)
    assert found["verdict"]["kind"] == "failing"
    assert found["verdict"]["sentence"].startswith(first["title"])
    assert ("Conditions at partner sites: DESY_DATADISK fails as destination") in found["verdict"][
        "sentence"
    ]


def test_a_report_has_the_verdict_and_the_links_as_they_are_now(client, db):
    changed_site.make()
    found = answer(client, f"sites/{GLASGOW}/")
    SiteReport.model_validate(found)
    assert found["verdict"]["kind"] == "failing"
    sentence = "UKI-SCOTGRID-GLASGOW_DATADISK to DESY-HH_DATADISK fails, with large files"
    assert found["verdict"]["sentence"].startswith(sentence)
    received, sent = found["as_destination"], found["as_source"]
    figures = received["figures"]
    assert (figures["links"], figures["slower"], sent["figures"]["failing"]) == (10, 4, 1)
    ratios = [link["ratio"] for link in received["links"]]
    assert ratios == sorted(ratios)
    assert figures["ratio"] == pytest.approx((ratios[4] + ratios[5]) / 2, abs=1e-5)
    first = sent["links"][0]
    expected = ("failing", "2026-11-19T06:00:30Z", 8)
    assert (first["state"], first["since"], first["streak"]) == expected
    assert first["size_mean_bytes"] == 2e9
    points = received["over_time"]["points"]
    assert (
        sum(point["ok"] + point["failed"] for point in points) == figures["ok"] + figures["failed"]
    )
    assert received["over_time"]["bucket"] == "6h"
    assert points[-1]["ratio_low"] < 0.4 < points[-1]["ratio_median"]


@pytest.mark.long
def test_notes_are_in_a_report_for_who_may_read_them(client, db):
    changed_site.make()
    (note,) = answer(client, f"sites/{GLASGOW}/")["notes"]
    expected = ("new firmware of the switch", "2026-11-16T09:30:00Z")
    assert (note["text"], note["starts_at"]) == expected
    asked = f"sites/{GLASGOW}/?compare.around={note['starts_at']}"
    for end, said in answer(client, asked)["comparison"].items():
        if end != "description":
            assert note[end] == {name: said[name] for name in note[end] if name != "links"} | {
                "links": said["compared"]
            }
    assert note["after"] == {"start": "2026-11-16T09:30:00Z", "end": "2026-11-20T12:01:00Z"}
    assert note["before"] == {"start": "2026-11-12T06:59:00Z", "end": "2026-11-16T09:30:00Z"}
    Annotation.objects.update(public=False)
    assert answer(client, f"sites/{GLASGOW}/")["notes"] == []


@pytest.mark.long
def test_a_long_window_says_whether_it_drifted(client, db):
    changed_site.make()
    assert answer(client, f"sites/{GLASGOW}/")["drift"] is None
    drift = answer(client, f"sites/{GLASGOW}/?window=30d")["drift"]
    after, before = (
        {"from": drift[side]["start"], "to": drift[side]["end"]} for side in ("after", "before")
    )
    assert after["from"] == before["to"] == "2026-11-05T12:01:00Z"
    asked = f"{urlencode(after)}&compare={before['from']}..{before['to']}"
    said = answer(client, f"sites/{GLASGOW}/?{asked}")["comparison"]
    for end in ("as_source", "as_destination"):
        assert drift[end]["ratio"] == said[end]["ratio"]
        assert (drift[end]["low"], drift[end]["ok"]) == (said[end]["low"], said[end]["ok"])


def test_the_csv_has_how_each_cell_is_now(client, db):
    changed_site.make()
    found = lines(client, f"sites/{GLASGOW}/?format=csv")
    (slow,) = [one for one in found if (one["source"], one["destination"]) == ("PIC", GLASGOW)]
    assert slow["level"] == "slower"
    assert float(slow["now_mb_s"]) < 0.4 * float(slow["usual_mb_s"])
    assert slow["since"].startswith("2026-11-19T20:15")


def test_the_list_can_be_sorted_by_what_is_wrong(client, db):
    changed_site.make()
    found = answer(client, "sites/?ordering=-trouble")["sites"]
    assert [one["name"] for one in found[:2]] == [GLASGOW, "DESY-HH"]
    assert (found[0]["failing"], found[0]["slower_as_destination"]) == (1, 4)
    assert found[0]["ratio_as_destination"] == pytest.approx(0.99, abs=0.05)


def test_the_csv_is_row_and_column_of_all_size_classes(client, measured):
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
        "level": "unknown",
        "now_mb_s": "",
        "usual_mb_s": "",
        "since": "",
    }


def test_a_cell_with_itself_is_in_the_csv_once(client, small_world):
    transfer(small_world.desy, small_world.scratch, 5.0)
    found = lines(client, "sites/DESY/?format=csv")
    assert [one["destination"] for one in found].count("DESY") == 3
    assert sum(one["source"] == one["destination"] for one in found) == 1


def test_a_csv_of_nothing_has_its_head(client, db):
    Site.objects.create(name="New")
    text = client.get("/api/v1/sites/New/?format=csv").content.decode()
    of_window = "source,destination,size,mean_mb_s,std_mb_s,ok,failed,last,state"
    assert text == f"{of_window},level,now_mb_s,usual_mb_s,since\n"


def test_the_json_of_a_view_is_asked_for_with_the_parameters_of_the_page(client, measured):
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
def test_errors_are_json_with_a_sentence(client, small_world, path, status, said):
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status
    assert said in response.json()["detail"]


def test_markup_stays_text_in_json(client, measured):
    Transfer.objects.filter(state="failed").update(error="</script><script>alert(1)</script>")
    response = client.get("/api/v1/sites/RAL/")
    assert response["Content-Type"] == "application/json"
    assert response.json()["errors"][0]["error"] == "</script><script>alert(1)</script>"


def test_the_number_of_queries_is_the_same_for_little_and_for_much(client, small_world):
    def queries(path: str) -> int:
        return len(statements(answer, client, path))

    transfer(small_world.ral, small_world.glasgow, None)
    # With the version of how links stand; of a report for each class, its links once more, their
    # results over time, what is inside its transfers at either end, and the notes.
    pinned = {"sites/": 7, "sites/RAL/": 24}
    for path, number in pinned.items():
        queries(path)
        assert (path, queries(path)) == (path, number)
    with transfers() as some:
        for number in range(30):
            ends = small_world.endpoints[number % 4], small_world.endpoints[(number + 1) % 4]
            some.add(*ends, None if number % 3 else 5.0, ago=number * HOUR / 4)
    # Five more for the diagnoses of links that fail.
    for path, number in (pinned | {"sites/RAL/": 29}).items():
        queries(path)  # how links stand is kept until results change
        assert (path, queries(path)) == (path, number)
