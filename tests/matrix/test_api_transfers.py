"""Single results in the API and in lists: records, filters, pages, CSV that can come in again."""

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from matrix.api.transfers.views import FIRST, columns_of
from matrix.query.filters import Filter
from matrix.store import registry, transfers
from matrix.store.keyset import Cursor
from matrix.store.transfers import TransferSelection
from sonar.models import Mesh, Transfer
from sonar.notation.result_columns import RECORD
from sonar.notation.windows import Window
from sonar.people.roles import Role
from sonar.records.record import FIELDS
from tests.matrix import responses, world
from tests.matrix.registry import caller
from tests.matrix.sent import MARKUP, MINUTE, PLAIN, many, probe, send
from tests.matrix.world import HOUR, NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
URL = "/api/v1/transfers/"
CSV_FIELDS = tuple(column.name for column in columns_of("csv", internal=False))
INTERNAL = {column.name for column in RECORD if column.internal}


def get(client: Client, text: str = "", path: str = URL) -> dict:
    return responses.answer(client, f"{path}{text}")


def lines(client: Client, text: str = "?format=csv", path: str = URL) -> list[dict[str, str]]:
    return responses.csv_rows(client, f"{path}{text}")


def test_a_record_has_all_fields_of_a_result_its_class_and_its_rate(client, small_world):
    made = world.profile(
        **PLAIN | {"mode": "push"} | {"streams": 4, "streams_used": 1, "ip_version": 6},
        clock="service",
        tcp_buffer_bytes=4_000_000,
        purpose="ordered",
    )
    account = {
        "prepare_seconds": 0.5,
        "queue_seconds": 40.0,
        "redirect_seconds": 5.02,
        "first_byte_seconds": 0.25,
        "transfer_seconds": 7.5,
        "checksum_seconds": 1.5,
        "tcp_buffer_used_bytes": 8_000_000,
        "remote_id": "0ae3b5de-c6b5-11f0",
        "scitag": 139,
    }
    at = datetime(2026, 11, 20, 11, 0, 0, 123456, tzinfo=UTC)
    plain = {"profile_id": made.id, "seconds": 8.0, "log_url": "https://fts.example/log"}
    one = send(small_world.ral, small_world.glasgow, at, **plain, **account)
    (record,) = get(client)["transfers"]
    assert record == {
        "id": str(one),
        "source": "RAL_DATADISK",
        "destination": "Glasgow_DATADISK",
        "started_at": "2026-11-20T11:00:00.123456Z",
        "seconds": 8.0,
        "bytes": 2 * 10**9,
        "state": "done",
        "error": None,
        "error_where": None,
        "mover": "http-tpc",
        "mode": "push",
        "streams": 4,
        "streams_used": 1,
        "ip_version": 6,
        "origin": "test",
        "size": "large",
        "rate_mb_s": 250.0,
        **dict.fromkeys(f"concurrent_at_{end}_mean" for end in ("source", "destination")),
        **dict.fromkeys(f"concurrent_at_{end}_max" for end in ("source", "destination")),
        **dict.fromkeys(("moved_bytes", "verified")),
        "clock": "service",
        "tcp_buffer_bytes": 4_000_000,
        "purpose": "ordered",
        **account,
    }
    assert set(FIELDS) - set(record) == set(INTERNAL)


def test_concurrent_tests_what_it_moved_and_how_it_was_made_stand_in_every_form(
    client, small_world
):
    made = world.profile(**PLAIN | {"mode": "push", "streams": 4, "streams_used": 1}, concurrent=1)
    kept = {
        "concurrent_at_source_mean": 1.4,
        "concurrent_at_source_max": 3,
        "concurrent_at_destination_mean": 0.0,
        "concurrent_at_destination_max": 0,
        "moved_bytes": 5 * 10**8,
        "verified": False,
    }
    note = {"prepare_seconds": 0.5, "verified_note": "the server has no checksum"}
    one = send(small_world.ral, small_world.glasgow, NOW, profile_id=made.id, **kept, **note)
    expected = kept | {"mode": "push", "streams": 4, "streams_used": 1}
    (listed,) = get(client)["transfers"]
    assert listed.items() >= expected.items()
    body = b"".join(client.get(f"{URL}?format=ndjson").streaming_content)
    assert json.loads(body) == listed
    assert get(client, path=f"{URL}{one}/").items() >= (expected | note).items()
    (line,) = lines(client)
    assert list(line)[13:15] == ["mode", "streams_used"]
    assert (line["mode"], line["streams"], line["streams_used"]) == ("push", "4", "1")


def test_a_failed_one_has_no_rate_and_its_whole_error(client, small_world):
    error = f"{MARKUP}\nline two " + "x" * 5000
    send(small_world.ral, small_world.glasgow, NOW, error=error)
    response = client.get(URL)
    (record,) = response.json()["transfers"]
    assert (record["rate_mb_s"], record["error"]) == (None, error)
    assert record["error_where"] == "destination"
    assert response["Content-Type"] == "application/json"


def test_pages_follow_each_other_in_one_window_and_leave_nothing_out(
    client, small_world, monkeypatch
):
    many(small_world.ral, small_world.glasgow, 25, NOW)
    send(small_world.ral, small_world.glasgow, NOW - 2 * HOUR)
    seen: list[str] = []
    for page in responses.pages(client, f"{URL}?page_size=10&window=1h&mover=http-tpc"):
        seen += [one["started_at"] for one in page["transfers"]]
        monkeypatch.setattr(timezone, "now", lambda: NOW + 10 * HOUR)
    assert len(seen) == 25
    assert seen == sorted(seen, reverse=True)


def test_the_first_page_has_a_hundred(client, small_world):
    many(small_world.ral, small_world.glasgow, 101, NOW)
    answer = get(client)
    assert len(answer["transfers"]) == 100
    assert len(get(client, "?page_size=1000")["transfers"]) == 101


def test_filters_narrow_it_as_everywhere(client, small_world):
    ral, glasgow, desy, _ = small_world.endpoints
    there = send(ral, glasgow, NOW)
    back = send(glasgow, ral, NOW, size="small")
    failed = send(desy, ral, NOW, error="503 Service Unavailable")
    lost = send(desy, ral, NOW, state="lost", error="worker died", error_where="control")
    old = send(ral, desy, NOW - 10 * 24 * HOUR)
    four = world.profile(**PLAIN | {"streams": 4}).id
    by_four = send(desy, glasgow, NOW, profile_id=four, size="medium")

    def ids(text: str) -> set[UUID]:
        return {UUID(one["id"]) for one in get(client, text)["transfers"]}

    assert ids("") == {there, back, failed, by_four}
    assert ids("?state=done&state=failed&state=lost") == {there, back, failed, lost, by_four}
    assert ids("?state=lost&state=failed") == {failed, lost}
    assert ids("?error=SERVICE+un") == {failed}
    assert ids("?error=100%25") == set()
    assert ids("?size=small") == {back}
    assert ids("?size=large") == {there, failed}
    assert ids("?source_site=RAL") == {there}
    assert ids("?cloud=!DE") == {there, back}
    assert ids("?window=30d") == {there, back, failed, old, by_four}
    assert ids("?from=2026-11-10T00:00:00Z&to=2026-11-11T00:00:00Z") == {old}
    assert ids("?streams=4") == {by_four}
    assert ids("?streams=8") == ids("?cloud=FR") == set()


def test_mode_and_concurrent_tests_are_filters_that_exclude_too(client, small_world):
    ends = small_world.ral, small_world.glasgow
    kinds = pull, push, imported = ("pull", 0), ("push", 1), ("", None)
    profiles = [
        world.profile(**PLAIN | {"mode": mode}, concurrent=number) for mode, number in kinds
    ]
    known = {
        send(*ends, NOW, profile_id=made.id): kind
        for made, kind in zip(profiles, kinds, strict=True)
    }

    def kinds_of(text: str) -> set[tuple[str, int | None]]:
        listed = {known[UUID(one["id"])] for one in get(client, f"?{text}")["transfers"]}
        streamed = client.get(f"{URL}?format=ndjson&{text}").streaming_content
        ids = [UUID(json.loads(line)["id"]) for line in b"".join(streamed).splitlines()]
        assert {known[one] for one in ids} == listed
        return listed

    assert kinds_of("mode=push") == kinds_of("concurrent=some") == {push}
    assert kinds_of("mode=!push") == kinds_of("concurrent=!some") == {pull, imported}
    both = {pull, push}
    assert kinds_of("mode=pull&mode=push") == kinds_of("concurrent=none&concurrent=some") == both
    assert kinds_of("concurrent=unknown") == kinds_of("mode=!pull&mode=!push") == {imported}
    assert kinds_of("concurrent=!unknown") == {pull, push}
    assert kinds_of("concurrent=none&mode=push") == set()


def test_the_answer_says_what_was_asked(client, small_world):
    query = get(client, "?window=24h&state=failed&source_cloud=UK&error=x")["query"]
    assert query == {
        "size": None,
        "window": "24h",
        "start": "2026-11-19T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "state": ["failed"],
        "error": "x",
        "source_cloud": ["UK"],
    }


@pytest.mark.parametrize(
    ("text", "parameter", "said"),
    [
        ("state=broken", "state", "state “broken” is not known: use done, failed or lost."),
        ("page_size=0", "page_size", "which is not a whole number from 1 to 1000."),
        ("page_size=1001", "page_size", "from 1 to 1000"),
        (
            "page_size=1&page_size=2",
            "page_size",
            "“page_size” is given 2 times: give it only once.",
        ),
        ("cursor=x", "cursor", "which is not valid: follow the “next” URL of a response."),
        ("error=%00", "error", "“error” must be at most 200 printable characters"),
        ("size=huge", "size", "size “huge” is not known"),
        ("stat=mean", "stat", "There is no parameter “stat”"),
        ("format=xml", "format", "format “xml” is not known: use json, csv or ndjson."),
        ("format=csv&format=csv", "format", "“format” is given 2 times: give it only once."),
        ("format=csv&page_size=5", "page_size", "“page_size” applies to JSON only: CSV and NDJSON"),
        ("format=ndjson&cursor=x", "cursor", "“cursor” applies to JSON only: CSV and NDJSON"),
        ("site=Nowhere", "site", "site “Nowhere” is not known"),
    ],
)
def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(
    client, small_world, text, parameter, said
):
    response = client.get(f"{URL}?{text}")
    assert response.status_code == 400
    assert said in response.json()["errors"][parameter][0]


def test_csv_has_everything_that_matches_as_records(client, small_world):
    many(small_world.ral, small_world.glasgow, 2500, NOW)
    many(small_world.glasgow, small_world.ral, 10, NOW)
    found = lines(client, "?format=csv&source_site=RAL")
    assert len(found) == 2500
    assert tuple(found[0]) == CSV_FIELDS
    assert CSV_FIELDS[:13] == FIRST
    started = [one["started_at"] for one in found]
    assert started == sorted(started, reverse=True)
    by_id = {one["id"]: one for one in found}
    for one in get(client, "?source_site=RAL&page_size=1000")["transfers"]:
        line = by_id[one["id"]]
        for name in set(FIELDS) - set(INTERNAL):
            assert line[name] == str("" if one[name] is None else one[name]).removesuffix(
                ".0" if name == "seconds" else "\0"
            ), name
        assert (line["size"], line["mode"]) == (one["size"], one["mode"] or "")
        for name in ("rate_mb_s", "moved_bytes"):
            assert (float(line[name]) if line[name] else None) == one[name], name
        assert line["verified"] == ("" if one["verified"] is None else str(one["verified"]).lower())


def test_what_goes_out_as_csv_comes_in_again(client, small_world, tmp_path):
    ends = small_world.ral, small_world.glasgow
    error = 'said "no", twice\nand, then, nothing'
    plain = world.profile(**PLAIN | {"origin": "external"})
    send(*ends, NOW - HOUR, error=error, profile_id=plain.id)
    send(*ends, NOW - MINUTE, profile_id=plain.id, seconds=0.1 + 0.2)
    fields = ("id", "started_at", "seconds", "bytes", "state", "error", "error_where")
    before = list(Transfer.objects.order_by("id").values(*fields))
    body = b"".join(client.get(f"{URL}?format=csv").streaming_content)
    file = tmp_path / "results.csv"
    file.write_bytes(body)
    assert b",large," in body
    Transfer.objects.all().delete()
    call_command("import_results", str(file))
    assert list(Transfer.objects.order_by("id").values(*fields)) == before


def test_csv_of_nothing_is_a_header(client, small_world):
    for text in ("?format=csv", "?format=csv&cloud=FR"):
        response = client.get(f"{URL}{text}")
        assert b"".join(response.streaming_content).decode() == ",".join(CSV_FIELDS) + "\n"


def test_csv_leaves_in_pieces_and_keeps_none(client, small_world):
    many(small_world.ral, small_world.glasgow, 3000, NOW)
    pieces = [len(piece) for piece in client.get(f"{URL}?format=csv").streaming_content]
    assert len(pieces) > 3
    assert max(pieces) < 70_000


def test_one_has_all_that_is_kept_of_it(client, small_world):
    mesh = Mesh.objects.create(name="production")
    made = world.profile(**PLAIN | {"mesh": mesh, "mode": "pull", "tcp_buffer_bytes": 4096})
    kept = {"samples": [[1.0, 100], [2.0, 300]], "first_byte_seconds": 0.5}
    one = send(small_world.ral, small_world.glasgow, NOW, profile_id=made.id, **kept)
    answer = get(client, path=f"{URL}{one}/")
    made = {"mesh": "production", "mode": "pull", "tcp_buffer_bytes": 4096, "rate_mb_s": 200.0}
    assert answer.items() >= (kept | made).items()
    (line,) = lines(client, "?format=csv", f"{URL}{one}/")
    assert line["id"] == str(one)


def test_names_of_machines_are_for_who_may_see_them(client, small_world):
    ends = small_world.ral, small_world.glasgow
    one = send(*ends, NOW, remote_connections=["tcp:[::1]:1094"], worker="w1")
    assert not {"worker", "remote_connections"} & set(get(client, path=f"{URL}{one}/"))
    site_admin = caller(Role.SITE_ADMIN, "DESY")
    assert not {"worker", "remote_connections"} & set(get(site_admin, path=f"{URL}{one}/"))
    answer = get(caller(Role.OPERATOR), path=f"{URL}{one}/")
    assert (answer["worker"], answer["remote_connections"]) == ("w1", ["tcp:[::1]:1094"])


def test_one_that_there_is_not_is_a_404_that_says_why(client, small_world, settings):
    settings.SONAR_KEEP_DAYS = 123
    response = client.get(f"{URL}{uuid4()}/")
    assert response.status_code == 404
    assert "Results are kept for 123 days" in response.json()["detail"]
    one = probe(small_world.ral, small_world.glasgow)
    response = client.get(f"{URL}{one.id}/")
    assert response.status_code == 404
    assert "is queued: its result is available after it has ended." in response.json()["detail"]
    assert client.get(f"{URL}nothing/").status_code == 404


@pytest.mark.parametrize(
    ("text", "pinned"),
    [("", 3), ("?format=csv", 4), ("?format=ndjson", 4), ("?size=large&mover=x", 4)],
)
def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world, text, pinned):
    get(client)
    for count in (5, 500):
        many(small_world.ral, small_world.glasgow, count, NOW)
        with CaptureQueriesContext(connection) as captured:
            response = client.get(f"{URL}{text}")
            if response.streaming:
                assert len(b"".join(response.streaming_content)) > count * 100
        assert len(captured) == pinned, [one["sql"] for one in captured.captured_queries]


DAY = Window(NOW - 24 * HOUR, NOW + HOUR)
EVERY = tuple(Transfer.State.values)


def rows(*filters: Filter, **more: Any) -> QuerySet[Transfer]:
    wanted = TransferSelection(DAY, filters=filters, **more)
    return wanted.rows(registry.read_places(registry.read_versions()))


def ids(*filters: Filter, **more: Any) -> set[UUID]:
    return {one.id for one in rows(*filters, **more)}


def test_pages_follow_each_other_newest_first_and_leave_nothing_out(small_world):
    ends = small_world.ral, small_world.glasgow
    sent = [send(*ends, NOW - (number // 3) * MINUTE) for number in range(10)]
    seen: list[UUID] = []
    after = None
    for _ in range(4):
        page = transfers.listing(rows(), 3, after)
        seen += [one.id for one in page.results]
        after = Cursor.parse(str(page.next)) if page.next else None
    assert after is None
    assert len(seen) == 10
    assert set(seen) == set(sent)
    found = Transfer.objects.in_bulk(seen)
    order = [(found[one].started_at, one) for one in seen]
    assert order == sorted(order, reverse=True)


def test_a_last_page_that_is_full_has_no_next(small_world):
    for number in range(4):
        send(small_world.ral, small_world.glasgow, NOW - number * MINUTE)
    assert transfers.listing(rows(), 4).next is None
    assert transfers.listing(rows(), 3).next is not None


@pytest.mark.parametrize("text", ["", "_", "2026-11-20T12:00:00Z", "x_y", f"2026_{UUID(int=7)}x"])
def test_a_cursor_that_no_answer_had_is_an_error(text):
    with pytest.raises(ValueError):
        Cursor.parse(text)


def test_filters_on_ends_choose_what_the_matrix_chooses(small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    there = send(ral, glasgow, NOW)
    back = send(glasgow, ral, NOW)
    far = send(desy, scratch, NOW)
    assert ids(Filter("source_site", "RAL")) == {there}
    assert ids(Filter("destination_endpoint", "RAL_DATADISK")) == {back}
    assert ids(Filter("site", "RAL")) == {there, back}
    assert ids(Filter("site", "RAL", exclude=True)) == {far}
    assert ids(Filter("source_site", "RAL"), Filter("source_site", "DESY")) == {there, far}
    assert ids(Filter("cloud", "UK"), Filter("source_tier", "1", exclude=True)) == {back}
    assert ids(Filter("cloud", "FR")) == set()
    assert ids(Filter("cloud", "FR", exclude=True)) == {there, back, far}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"no file {UUID(int=7)} here", f"no file {UUID(int=8)} here"),
        ("GET https://a.example.org:80/x/1 failed", "GET https://b.example.org:81/y failed"),
        ("cannot open /data/1/file", "cannot open /other/file: "),
        ("stalled after 12.5 s", "stalled after 3.25 s"),
        ("adler32 1a2b3c4d5e6f7a8b is wrong", "adler32 ffffffffffffffff is wrong"),
        ("503 from node01.example.org", "503 from node22.example.org"),
        ("it is 123456 bytes", "it is 98765 bytes"),
    ],
)
def test_errors_of_one_cause_are_one_group(small_world, one, other):
    send(small_world.ral, small_world.glasgow, NOW - HOUR, error=one)
    newest = send(small_world.ral, small_world.glasgow, NOW, error=other.removesuffix(": "))
    (group,) = transfers.failures(rows())
    assert (group.count, group.where, group.is_lost) == (2, "destination", False)
    assert (group.first, group.last) == (NOW - HOUR, NOW)
    assert group.example.id == newest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("503 Service Unavailable", "403 Forbidden"),
        ("status 503", "status 500"),
        ("no route over IPv4", "no route over IPv6"),
    ],
)
def test_errors_that_say_something_else_are_two_groups(small_world, one, other):
    for error in (one, other):
        send(small_world.ral, small_world.glasgow, NOW, error=error)
    assert [group.count for group in transfers.failures(rows())] == [1, 1]


def test_groups_differ_by_where_and_lost_ones_stand_apart(small_world):
    ends = small_world.ral, small_world.glasgow
    for where in ("source", "destination", "source"):
        send(*ends, NOW, error="timeout", error_where=where)
    send(*ends, NOW, state="lost", error="timeout", error_where="source")
    found = transfers.failures(rows(states=EVERY))
    assert (found[0].where, found[0].count, found[0].is_lost) == ("source", 2, False)
    assert {(one.where, one.count, one.is_lost) for one in found[1:]} == {
        ("destination", 1, False),
        ("source", 1, True),
    }


def test_a_page_and_the_groups_take_the_same_queries_whatever_there_is(small_world):
    many(small_world.ral, small_world.glasgow, 6, NOW)
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            transfers.listing(rows(), 50)
            transfers.failures(rows())
        pinned = [
            one["sql"] for one in captured.captured_queries if "sonar_version" not in one["sql"]
        ]
        assert len([sql for sql in pinned if "sonar_transfer" in sql]) == 3, pinned
        many(small_world.ral, small_world.glasgow, 300, NOW - HOUR)


def test_the_results_of_a_link_are_found_by_its_index(small_world):
    for link in permutations(small_world.endpoints, 2):
        # So many that pages which rows of other tests have left in the index do not matter.
        many(*link, 600, NOW)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sonar_transfer")
    ends = (
        Filter("source_endpoint", "RAL_DATADISK"),
        Filter("destination_endpoint", "DESY_DATADISK"),
    )
    plan = rows(*ends).order_by("-started_at", "-id")[:50].explain()
    assert "source_id_destination_id_started_at_idx" in plan, plan
    newest = TransferSelection(Window(NOW - timedelta(days=30), NOW + HOUR)).rows([])
    assert "Index Scan Backward" in newest.order_by("-started_at", "-id")[:50].explain()
