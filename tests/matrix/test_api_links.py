"""GET /api/v1/links/: the link table for scripts, as the page shows it."""

import csv
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from matrix.answers.table import link_table
from matrix.api import links
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Site
from tests.matrix import many_links, responses, world
from tests.matrix.world import HOUR, MB, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
API = "/api/v1/links/"


def get(client: Client, text: str = "") -> dict[str, Any]:
    return responses.answer(client, API + text)


def lines(client: Client, text: str = "?format=csv") -> list[dict[str, str]]:
    return responses.csv_rows(client, API + text)


def ends(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["source"]["name"], row["destination"]["name"]) for row in rows]


@pytest.fixture
def measured(small_world: World) -> World:
    for rate in (4.0, 6.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.ral, small_world.glasgow, 1.5, size="small", ago=3 * HOUR)
    transfer(small_world.glasgow, small_world.ral, 9.0)
    transfer(small_world.desy, small_world.ral, None, ago=2 * HOUR)
    return small_world


def test_a_row_has_both_ends_and_the_numbers_of_each_size_class(client, measured):
    (row,) = get(client, "?source_site=RAL&destination_site=Glasgow")["links"]
    assert row["source"] == {
        "name": "RAL_DATADISK",
        "site": "RAL",
        "cloud": "UK",
        "tier": 1,
        "country": "GB",
        "label": "DATADISK",
        "tags": [],
        "simulated": False,
        "retired": False,
    }
    assert row["destination"]["name"] == "Glasgow_DATADISK"
    assert row["priority"] == 5
    unknown = {"level": "unknown", "streak": 0, "unconfirmed": "", "condition": 0} | dict.fromkeys(
        ("usual_mb_s", "now_mb_s", "ratio", "ratio_low", "ratio_high", "since")
    )
    assert row["large"] == {
        "mean_mb_s": 5.0,
        "std_mb_s": pytest.approx(2**0.5, rel=1e-6),
        "size_mean_bytes": 2000 * MB,
        "size_std_bytes": 0,
        "ok": 2,
        "failed": 1,
        "last": "2026-11-20T11:30:30Z",
        "state": "measured",
        "last_ok": "2026-11-20T11:30:30Z",
        "last_failed": "2026-11-20T11:30:30Z",
        **unknown,
    }
    assert (row["small"]["std_mb_s"], row["small"]["ok"]) == (None, 1)
    assert row["medium"] == {
        **dict.fromkeys(("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes")),
        **dict.fromkeys(("last", "last_ok", "last_failed")),
        "ok": 0,
        "failed": 0,
        "state": "not_applicable",
        **unknown,
    }


def test_the_answer_says_what_was_asked(client, measured):
    answer = get(client, "?window=24h&cloud=UK&search=ral&ordering=-large.ok&large.ok.min=1")
    assert answer["query"] == {
        "size": "large",
        "window": "24h",
        "start": "2026-11-19T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "ordering": "-large.ok",
        "search": "ral",
        "large.ok.min": "1",
        "cloud": ["UK"],
    }
    assert (answer["total"], answer["found"], answer["next"]) == (10, 2, None)


def test_json_and_csv_are_the_link_table(client, measured):
    table = link_table.build(MatrixQuery(), NOW)
    table = table.taken(table.order("large.mean_mb_s", descending=True))
    answer = get(client, "?ordering=-large.mean_mb_s")["links"]
    written = lines(client, "?ordering=-large.mean_mb_s&format=csv")
    assert len(table) == len(answer) == len(written) == 12
    for size in ("small", "medium", "large"):
        for name in ("mean_mb_s", "std_mb_s", "size_mean_bytes", "ok", "failed"):
            ours = table.column(f"{size}.{name}").tolist()
            rows = [row[size][name] for row in answer]
            texts = [row[f"{size}.{name}"] for row in written]
            assert [one != one for one in ours] == [one is None for one in rows]
            assert [one for one in rows if one is not None] == pytest.approx(
                [one for one in ours if one == one], rel=1e-6
            )
            assert [float(text) if text else None for text in texts] == rows
        for name in ("last", "state", "last_ok", "last_failed"):
            texts = [row[f"{size}.{name}"] for row in written]
            assert [row[size][name] or "" for row in answer] == texts
    assert ends(answer) == [(row["source"], row["destination"]) for row in written]
    assert {row["priority"] for row in written} == {"5"}


def test_csv_has_a_column_for_everything_that_can_be_ordered_by(client, measured):
    head = list(lines(client)[0])
    flags = ["source.simulated", "source.retired"]
    assert head[:10] == [
        *("source", "source.site", "source.cloud", "source.tier", "source.country"),
        *("source.label", "source.tags", *flags, "destination"),
    ]
    for column in set(head) - {*flags, "destination.simulated", "destination.retired"}:
        assert get(client, f"?ordering={column}")["links"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min_mb_s=6", [("Glasgow_DATADISK", "RAL_DATADISK")]),
        ("max_mb_s=6", [("RAL_DATADISK", "Glasgow_DATADISK")]),
        ("size=small&min_mb_s=1", [("RAL_DATADISK", "Glasgow_DATADISK")]),
        ("size=small&max_age=3600", []),
        ("max_age=7200&source_site=!RAL", [("Glasgow_DATADISK", "RAL_DATADISK")]),
        ("search=glasgow+t1&large.failed.min=1", [("RAL_DATADISK", "Glasgow_DATADISK")]),
        (
            "destination.cloud.has=de&source.tier.is=1&destination.has=scratch",
            [("RAL_DATADISK", "DESY_SCRATCHDISK")],
        ),
    ],
)
def test_links_are_chosen_by_what_the_page_has_and_by_the_short_names(
    client, measured, text, expected
):
    assert ends(get(client, f"?{text}")["links"]) == expected
    written = lines(client, f"?{text}&format=csv")
    assert [(row["source"], row["destination"]) for row in written] == expected


def test_a_dead_source_is_not_young_because_a_test_of_it_failed_just_now(client, small_world):
    """What brokers ask: the best sources that succeeded lately. It returned a dead one."""
    ral, glasgow, desy, _ = small_world.endpoints
    transfer(desy, ral, 90.0, ago=20 * HOUR)
    transfer(desy, ral, None, ago=HOUR / 60)
    transfer(glasgow, ral, 40.0, ago=HOUR)
    best = "?destination_site=RAL&max_age=3h&ordering=-large.mean_mb_s"
    assert ends(get(client, best)["links"]) == [("Glasgow_DATADISK", "RAL_DATADISK")]
    (dead,) = get(client, "?source_endpoint=DESY_DATADISK&destination_site=RAL")["links"]
    assert dead["large"]["last"] == dead["large"]["last_failed"] == "2026-11-20T11:59:30Z"
    assert dead["large"]["last_ok"] == "2026-11-19T16:00:30Z"


@pytest.mark.parametrize("form", ["json", "csv", "ndjson"])
def test_every_form_says_the_state_that_the_matrix_says(client, measured, form):
    cells = client.get("/api/v1/matrix/?fields=state").json()
    matrix = {
        (source["name"], destination["name"]): cells["cells"]["state"][row][column]
        for row, source in enumerate(cells["sources"])
        for column, destination in enumerate(cells["destinations"])
        if source != destination
    }
    assert set(matrix.values()) == {"measured", "failed", "untested"}
    if form == "csv":
        found = {(row["source"], row["destination"]): row["large.state"] for row in lines(client)}
    else:
        answer = client.get(f"{API}?format={form}")
        rows = (
            answer.json()["links"]
            if form == "json"
            else map(json.loads, answer.getvalue().decode().splitlines())
        )
        found = {
            (row["source"]["name"], row["destination"]["name"]): row["large"]["state"]
            for row in rows
        }
    assert found == matrix


def test_csv_tells_what_is_simulated_or_retired_as_json_does(client, measured):
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    Endpoint.objects.filter(name="DESY_DATADISK").update(retired_at=NOW)
    written = lines(client)
    for row, line in zip(get(client)["links"], written, strict=True):
        for end in ("source", "destination"):
            for flag in ("simulated", "retired"):
                assert line[f"{end}.{flag}"] == str(row[end][flag]).lower()
    assert {line["source.simulated"] for line in written} == {"true", "false"}


def test_links_without_a_value_come_last_either_way(client, measured):
    for sign, first in (("", "RAL_DATADISK"), ("-", "Glasgow_DATADISK")):
        rows = get(client, f"?ordering={sign}large.mean_mb_s")["links"]
        assert rows[0]["source"]["name"] == first
        assert [row["large"]["mean_mb_s"] is None for row in rows] == [False] * 2 + [True] * 10


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    """The table has 1,560 links, and is written in some blocks."""
    table = many_links.table(40)
    monkeypatch.setattr(links, "BLOCK", 500)
    monkeypatch.setattr(link_table, "build", lambda *asked, **also: table)


def test_next_leads_through_all_links_once(client, many):
    text = "?ordering=-large.mean_mb_s&page_size=500&source.has=site"
    found = [page["links"] for page in responses.pages(client, API + text)]
    assert [len(rows) for rows in found] == [500, 500, 500, 60]
    everything = [link for rows in found for link in ends(rows)]
    assert len(set(everything)) == 1560
    whole = lines(client, "?ordering=-large.mean_mb_s&source.has=site&format=csv")
    assert everything == [(row["source"], row["destination"]) for row in whole]


def test_all_pages_are_of_the_window_that_the_first_was_of(client, small_world, monkeypatch):
    first = get(client, "?window=1h&page_size=5")
    monkeypatch.setattr(timezone, "now", lambda: NOW + HOUR)
    second = client.get(first["next"]).json()
    assert second["query"] == first["query"]
    assert get(client, "?window=1h")["query"] != first["query"]


def test_a_cursor_behind_the_last_row_is_an_empty_page(client, many):
    answer = get(client, f"?cursor={int(NOW.timestamp())}-99999")
    assert (answer["links"], answer["next"]) == ([], None)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("page_size=0", "page_size", "which is not a whole number from 1 to 10000."),
        (
            "page_size=10001",
            "page_size",
            "“page_size” has the value “10001”, which is not a whole number",
        ),
        ("page_size=x", "page_size", "“page_size” has the value “x”, which is not a whole number"),
        ("cursor=x", "cursor", "which is not valid: follow the “next” URL of a response."),
        (
            "cursor=9999999999-1",
            "cursor",
            "“cursor” has the value “9999999999-1”, which is not valid",
        ),
        (
            "cursor=1-1&format=csv",
            "cursor",
            "“cursor” applies to JSON only: CSV and NDJSON contain all",
        ),
        ("page_size=1&format=ndjson", "page_size", "“page_size” applies to JSON only"),
        ("page=2", "page", "works only on the table page"),
        ("per_page=25", "per_page", "use “page_size”"),
        ("format=latex", "format", "“latex” is not known: use json, csv or ndjson."),
        ("ordering=speed", "ordering", "ordering “speed” is not known: use source, destination"),
        (
            "min_mb_s=fast",
            "min_mb_s",
            "min_mb_s “fast” is not a number of 0 or more, for example, 12.5.",
        ),
        ("fields=ok", "fields", "There is no parameter “fields”"),
        ("window=2h", "window", "window “2h” is not known"),
        ("site=NOWHERE", "site", "use the name of a registered site"),
    ],
)
def test_a_bad_parameter_is_a_400_that_names_it(client, db, text, name, sentence):
    response = client.get(f"{API}?{text}")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/json"
    assert sentence in response.json()["detail"]
    assert list(response.json()["errors"]) == [name]


def test_an_empty_registry_is_an_empty_list(client, db):
    answer = get(client)
    assert (answer["links"], answer["total"], answer["found"]) == ([], 0, 0)
    assert lines(client) == []


def test_what_has_not_changed_is_a_304_and_another_question_is_not(
    client, measured, django_assert_num_queries
):
    etag = client.get(API)["ETag"]
    with django_assert_num_queries(1):
        assert client.get(API, headers={"if-none-match": etag}).status_code == 304
    for text in ("?search=ral", "?format=csv", "?page_size=5", "?ordering=-source", "?size=small"):
        assert client.get(API + text, headers={"if-none-match": etag}).status_code == 200
    transfer(measured.ral, measured.glasgow, 1.0)
    assert client.get(API, headers={"if-none-match": etag}).status_code == 200


def test_markup_in_free_text_stays_inside_its_strings(client, small_world):
    text = '</script><script>alert(1)</script>,"\n'
    Site.objects.filter(name="RAL").update(cloud=text)
    assert get(client, "?source_site=RAL")["links"][0]["source"]["cloud"] == text
    response = client.get(f"{API}?source_site=RAL&format=csv").getvalue().decode()
    assert next(csv.DictReader(response.splitlines(keepends=True)))["source.cloud"] == text


def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    def statements(text: str) -> int:
        return len(responses.statements(lambda: client.get(API + text).getvalue()))

    transfer(small_world.ral, small_world.glasgow, 1.0)
    few = statements("")
    site = Site.objects.create(name="CERN")
    with world.transfers() as some:
        for place in world.endpoints((f"CERN-{number}", site) for number in range(30)).values():
            some.add(small_world.ral, place, 5.0)
    # The version of the registry, classes of form and table, what has changed; versions, classes,
    # places and three plans; what stands there of each class, raw rows, who is down.
    # The marks of conditions; for each class the versions of how its links stand, and the same of
    # three windows. In JSON one more looks for profiles of other origins.
    assert few == 1 + 2 + 1 + 2 + 4 + 3 + 1 + 1 + 1 + 3 * (1 + 3) + 1
    # After a change of both all of it anew; then columns are kept, and the question as well.
    assert statements("?format=csv") == few - 1
    assert statements("?page_size=3&search=cern") == 1 + 2 + 1 + 1
    assert statements("?page_size=3&search=cern") == 1
    assert Endpoint.objects.count() == 34


def test_an_empty_parameter_counts_as_not_given(client, measured):
    assert len(lines(client, "?format=csv&cursor=&page_size=&page=&search=")) == 12
    assert len(get(client, "?format=&cursor=&page_size=&per_page=")["links"]) == 12
