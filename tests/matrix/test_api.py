"""GET /api/v1/matrix/ as docs/api.md has it."""

import csv
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from matrix.store.cache import ANSWERS
from tests.matrix import responses
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
URL = "/api/v1/matrix/"


def answer(client: Client, text: str = "") -> dict[str, Any]:
    return responses.answer(client, f"{URL}?{text}")


def test_the_whole_matrix_comes_in_one_answer(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 4.0)
    transfer(small_world.ral, small_world.glasgow, 6.0)
    transfer(small_world.ral, small_world.desy, None)
    found = answer(
        client, "source_cloud=UK&destination_cloud=DE&destination_cloud=UK&label=!SCRATCHDISK"
    )
    assert found["query"] == {
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "stat": "mean",
        "rows": "endpoint",
        "columns": "endpoint",
        "max_age": None,
        "source_cloud": ["UK"],
        "destination_cloud": ["DE", "UK"],
        "label": ["!SCRATCHDISK"],
    }
    assert found["description"].startswith("Mean rate of large-file transfers, the last 7 days,")
    assert (found["unit"], found["simulated"]) == ("MB/s", False)
    assert found["sources"][1] == {
        "name": "RAL_DATADISK",
        "site": "RAL",
        "cloud": "UK",
        "tier": 1,
        "country": "GB",
        "label": "DATADISK",
        "tags": [],
        "simulated": False,
    }
    expected = ["DESY_DATADISK", "Glasgow_DATADISK", "RAL_DATADISK"]
    assert [one["name"] for one in found["destinations"]] == expected
    assert found["cells"] == {
        "value": [[None, None, None], [None, 5.0, None]],
        "std": [[None, None, None], [None, 1.4142, None]],
        "ok": [[0, 0, 0], [0, 2, 0]],
        "failed": [[0, 0, 0], [1, 0, 0]],
        "last": [[None, None, None], ["2026-11-20T11:30:30Z", "2026-11-20T11:30:30Z", None]],
        "state": [
            ["untested", "not_applicable", "untested"],
            ["failed", "measured", "not_applicable"],
        ],
    }
    assert found["source_average"] == [None, 5.0]
    assert found["destination_average"] == [None, 5.0, None]
    assert found["average"] == 5.0


def test_an_empty_matrix_is_an_answer_too(client, db):
    found = answer(client)
    assert (found["sources"], found["cells"]["value"], found["average"]) == ([], [], None)


def test_fields_pick_the_arrays_of_cells(client, small_world):
    assert list(answer(client, "fields=ok,state")["cells"]) == ["ok", "state"]
    assert list(answer(client, "fields=ok&fields=value")["cells"]) == ["value", "ok"]


def test_a_custom_window_has_no_preset(client, db):
    asked = answer(client, "from=2026-11-01&to=2026-11-02T00:00:01Z")["query"]
    expected = (None, "2026-11-01T00:00:00Z", "2026-11-02T00:00:01Z")
    assert (asked["window"], asked["start"], asked["end"]) == expected


@pytest.mark.parametrize(
    ("asked", "accept"),
    [("format=csv", "*/*"), ("", "text/csv"), ("format=csv", "application/json")],
)
def test_csv_has_one_line_for_each_link(client, small_world, asked, accept):
    transfer(small_world.ral, small_world.glasgow, 4.0)
    transfer(small_world.ral, small_world.desy, None)
    response = client.get(f"{URL}?{asked}", headers={"accept": accept})
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    lines = list(csv.reader(response.content.decode().splitlines()))
    assert lines[0] == [
        "source",
        "destination",
        "value_mb_s",
        "std_mb_s",
        "ok",
        "failed",
        "last",
        "state",
    ]
    assert len(lines) == 1 + 4 * 3
    measured = [line for line in lines if line[:2] == ["RAL_DATADISK", "Glasgow_DATADISK"]]
    expected = ["4.0", "", "1", "0", "2026-11-20T11:30:30Z", "measured"]
    assert measured[0][2:] == expected


@pytest.mark.parametrize(
    ("stat", "head"),
    [("success", "value_percent"), ("count", "value_transfers"), ("last", "value_seconds")],
)
def test_csv_names_the_unit_of_the_value(client, db, stat, head):
    response = client.get(f"{URL}?format=csv&fields=value&stat={stat}")
    assert response.content.decode() == f"source,destination,{head}\n"


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("size=giant", "size"),
        ("nonsense=1", "nonsense"),
        ("format=xml", "format"),
        ("format=csv&stat=mode", "stat"),
        ("fields=median", "fields"),
        ("site=%00", "site"),
        ("endpoint=%3Cscript%3E", "endpoint"),
    ],
)
def test_a_bad_parameter_is_a_400_in_json(client, db, text, parameter):
    response = client.get(f"{URL}?{text}", headers={"accept": "text/csv"})
    assert (response.status_code, response["Content-Type"]) == (400, "application/json")
    assert list(response.json()["errors"]) == [parameter]
    assert response.json()["errors"][parameter] == [response.json()["detail"]]


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing/", "/api/", "/api/v2/matrix/", "/api/v1/matrix/x"]
)
def test_an_unknown_route_is_a_404_in_json(client, db, path):
    response = client.get(path)
    assert (response.status_code, response["Content-Type"]) == (404, "application/json")
    assert response.json() == {"detail": f"There is nothing at {path}.", "errors": {}}


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_method_that_writes_is_a_405_in_json(client, db, method):
    response = getattr(client, method)(URL)
    assert response.status_code == 405
    assert response.json() == {"detail": f'Method "{method.upper()}" not allowed.', "errors": {}}


def test_without_public_read_an_account_is_needed(client, db, settings):
    settings.SONAR_PUBLIC_READ = False
    response = client.get(URL)
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Token")
    assert response.json()["errors"] == {}
    client.force_login(User.objects.create_user("shifter"))
    assert client.get(URL).status_code == 200


@pytest.mark.parametrize("text", ["", "format=csv", "stat=p95&source_cloud=UK"])
def test_an_unchanged_answer_is_a_304_that_computes_nothing(client, small_world, text):
    etag = client.get(f"{URL}?{text}")["ETag"]
    asked = {"path": f"{URL}?{text}", "headers": {"if-none-match": etag}}
    again = client.get(**asked)
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    # What has changed in the window, and whether the registry has.
    (sent,) = statements(client.get, **asked)
    assert "sonar_transfer" not in sent


def test_the_etag_is_the_version_and_holds_as_long_as_the_data_do(client, small_world):
    first = client.get(URL)
    assert first["ETag"] == f'"{first.json()["version"]}"'
    weak = {"if-none-match": f"W/{first['ETag']}"}  # as the compressing middleware sends it
    assert client.get(URL, headers=weak).status_code == 304
    assert client.get(f"{URL}?stat=max", headers=weak).status_code == 200
    assert client.get(f"{URL}?format=csv", headers=weak).status_code == 200
    transfer(small_world.ral, small_world.glasgow, 4.0)
    assert client.get(URL, headers=weak).status_code == 200


def test_an_answer_takes_fourteen_queries_one_while_kept_and_five_once_the_rest_is_known(
    client, small_world
):
    transfer(small_world.ral, small_world.glasgow, 4.0)
    # What is usual, and how links stand, is kept until results change; marks of conditions are not.
    # One looks for profiles of other origins.
    for pinned in (14, 1, 5):
        if pinned == 5:
            ANSWERS.forget()
        assert len(statements(answer, client)) == pinned


def test_what_succeeded_too_long_ago_is_a_dash_and_stale(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 4.0, ago=20 * HOUR)
    transfer(small_world.ral, small_world.glasgow, None)
    found = answer(client, "max_age=6h&source_site=RAL&destination_site=Glasgow")
    assert found["cells"] == {
        "value": [[None]],
        "std": [[None]],
        "ok": [[1]],
        "failed": [[1]],
        "last": [["2026-11-20T11:30:30Z"]],
        "state": [["stale"]],
    }
    assert (found["query"]["max_age"], found["average"]) == ("6h", None)
    assert found["description"].endswith(", only links with a successful test in the last 6h")
    assert (
        "max_age “soon” is not an age"
        in (client.get(f"{URL}?max_age=soon").json()["errors"]["max_age"][0])
    )


def test_the_page_draws_the_same_and_says_so(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 4.0, ago=20 * HOUR)
    html = client.get("/?max_age=6h&cloud=UK").content.decode()
    assert "only links with a successful test in the last 6h" in html.split("</h1>")[0]
    assert 'href="/?cloud=UK"' in html
    assert 'href="/?max_age=6h"' in html
    assert client.get("/cells/?max_age=6h").status_code == 200
    for path in ("/api/v1/sites/", "/api/v1/sites/RAL/", "/api/v1/transfers/"):
        assert client.get(f"{path}?max_age=6h").status_code == 400
