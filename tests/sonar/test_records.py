"""The result record: what is one, what is not, and what is said about it."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from sonar.models import Endpoint, Probe, Profile, SizeClass
from sonar.records.admission import MOST_PROFILES, Admission, profile_fields_of
from sonar.records.record import ALLOWED, FIELDS, READ, WrongRecordError, from_json, from_text
from tests.sonar.world import NOW, mesh

pytestmark = pytest.mark.django_db

DONE: dict[str, Any] = {
    "id": "6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
    "source": "GLASGOW_DATADISK",
    "destination": "RAL_DATADISK",
    "started_at": "2026-11-20T03:00:00.123456Z",
    "seconds": 12.5,
    "bytes": 2_000_000_000,
    "state": "done",
    "mover": "http-tpc",
}
PUSHED = {"mode": "push", "streams_used": 1}
FAILED = DONE | {"state": "failed", "seconds": 0, "error": "timed out", "error_where": "source"}


def problems(known: Admission, row: object) -> list[tuple[str, str]]:
    with pytest.raises(WrongRecordError) as caught:
        known.check(from_json(row))
    return caught.value.problems


def test_a_record_becomes_a_result_with_ids_for_names_and_the_class_of_its_bytes(known: Admission):
    result = known.result(from_json(DONE | {"streams": 4, "ip_version": 6} | PUSHED))
    assert str(result.id) == DONE["id"]
    assert result.source_id == known.ends.ids["GLASGOW_DATADISK"]
    assert result.destination_id == known.ends.ids["RAL_DATADISK"]
    assert result.started_at.isoformat() == "2026-11-20T03:00:00.123456+00:00"
    profile = Profile.objects.get(id=result.profile_id)
    assert (profile.mover, profile.streams, profile.ip_version) == ("http-tpc", 4, 6)
    assert (profile.origin, profile.mesh, profile.concurrent) == ("external", None, None)
    assert (profile.mode, profile.streams_used) == ("push", 1)


def test_the_size_class_follows_from_the_bytes_at_its_very_edges(known: Admission):
    names = dict(SizeClass.objects.values_list("id", "name"))
    for name, *sizes in (
        ("small", 1, 10**8 - 1),
        ("medium", 10**8, 10**9 - 1),
        ("large", 10**9, 10**18 - 1),
    ):
        for size in sizes:
            record = from_json(DONE | {"bytes": size, "seconds": 10_000_000})
            assert names[known.result(record).size_class_id] == name


def test_results_of_one_kind_share_one_profile(known: Admission):
    first, second = (known.result(from_json(DONE)).profile_id for _ in range(2))
    assert first == second
    assert Admission.at(NOW).result(from_json(DONE)).profile_id == first
    others = {"streams": 2}, {"mode": "push"}, {"mode": "pull"}, {"streams_used": 1}
    found = {known.result(from_json(DONE | other)).profile_id for other in others}
    assert len(found | {first}) == Profile.objects.count() == 5


def test_text_and_json_of_one_result_are_one_record():
    full = FAILED | PUSHED | {"streams": 3, "ip_version": 4, "origin": "production"}
    assert from_text({name: str(value) for name, value in full.items()}) == from_json(full)


@pytest.mark.parametrize("read", [from_json, from_text])
def test_a_value_of_yesterday_is_refused_by_what_it_is_called_now(read: Callable[[Any], object]):
    row = {name: str(value) for name, value in DONE.items()} if read is from_text else DONE
    with pytest.raises(WrongRecordError, match=r"^purpose 'experiment' is now called sweep$"):
        read(row | {"purpose": "experiment"})


@pytest.mark.parametrize("empty", [None, ""])
def test_what_is_empty_has_its_default(empty: str | None):
    optional = (*FIELDS[FIELDS.index("mover") + 1 :], "error", "error_where")
    record = from_json(DONE | dict.fromkeys(optional, empty))
    assert record == from_json(DONE)
    assert (record.streams, record.ip_version, record.origin) == (1, None, "external")
    assert (record.mode, record.streams_used) == ("", None)


def test_a_time_may_have_any_zone_and_without_one_is_utc():
    same = ("2026-11-20T03:00:00", "2026-11-20T04:00:00+01:00", "2026-11-20 03:00Z")
    for text in (*same, "20261120T030000Z"):
        started_at = from_json(DONE | {"started_at": text}).started_at
        assert started_at.isoformat() == "2026-11-20T03:00:00+00:00"


@pytest.mark.parametrize("field", [name for name in FIELDS if name in DONE])
def test_a_field_that_is_missing_is_named_with_what_it_is(known: Admission, field: str):
    row = {name: value for name, value in DONE.items() if name != field}
    assert problems(known, row) == [(field, f"{field} is missing: it must be {ALLOWED[field]}")]


WRONG = [
    ("id", "12", "id '12' is not a UUID"),
    ("id", 12, "id 12 is not a UUID"),
    ("started_at", "yesterday", "started_at 'yesterday' is not a time in ISO 8601 format"),
    ("started_at", 1763600000, "started_at 1763600000 is not a time"),
    ("started_at", "0001-01-01T00:00:00+14:00", "is not a time"),
    ("seconds", "12.5", "seconds '12.5' is not a number of seconds"),
    ("seconds", True, "seconds True is not a number"),
    ("seconds", -1, "seconds -1 is not a number of seconds from 0"),
    ("seconds", float("nan"), "seconds nan is not a number"),
    ("seconds", float("inf"), "seconds inf is not a number"),
    ("seconds", 100_000_001, "seconds 100000001 is not a number of seconds from 0 to 100000000"),
    ("bytes", 0, "bytes 0 is not a whole number of bytes that is at least 1 and less than 10^18"),
    ("bytes", 10**18, "bytes 1000000000000000000 is not"),
    ("bytes", 10**400, "is not a whole number of bytes"),
    ("bytes", 1.5, "bytes 1.5 is not a whole number"),
    ("bytes", "20", "bytes '20' is not a whole number"),
    ("state", "lost", "state 'lost' is not done or failed"),
    ("mover", "http tpc", "mover 'http tpc' is not 1 to 20 letters, digits"),
    ("mover", "m" * 21, "is not 1 to 20 letters"),
    ("mover", "gfal2\n", r"mover 'gfal2\n' is not 1 to 20"),
    ("streams", 0, "streams 0 is not a whole number from 1 to 9999"),
    ("streams", 10_000, "streams 10000 is not"),
    ("mode", "third-party", "mode 'third-party' is not pull, push or empty"),
    ("mode", 1, "mode 1 is not pull, push or empty"),
    ("streams_used", 0, "streams_used 0 is not a whole number from 1 to 9999 or empty"),
    ("streams_used", 10_000, "streams_used 10000 is not a whole number from 1 to 9999 or empty"),
    ("streams_used", "4", "streams_used '4' is not a whole number from 1 to 9999 or empty"),
    ("ip_version", 5, "ip_version 5 is not 4, 6 or empty"),
    ("ip_version", "4", "ip_version '4' is not 4, 6 or empty"),
    ("origin", "Test", "origin 'Test' is not test, production or external"),
    ("source", 7, "source 7 is not the name of an endpoint"),
    ("source", ["GLASGOW_DATADISK"], "is not the name of an endpoint"),
    ("error", {"why": "?"}, "error {'why': '?'} is not text of at most 10000 characters"),
]


@pytest.mark.parametrize(("field", "value", "said"), WRONG)
def test_a_value_of_the_wrong_form_is_shown_with_what_is_allowed(known, field, value, said):
    [(named, sentence)] = problems(known, DONE | {field: value})
    assert (named, said in sentence) == (field, True)


UNLIKELY = [
    ("source", {"source": "GLASGOW"}, "source 'GLASGOW' is not registered"),
    ("destination", {"destination": "ral_datadisk"}, "destination 'ral_datadisk' is not regist"),
    ("destination", {"destination": "GLASGOW_DATADISK"}, "must differ from the source"),
    ("started_at", {"started_at": "2026-11-20T04:05:01Z"}, "is in the future: more than 5 minutes"),
    (
        "started_at",
        {"started_at": "2025-10-15T00:00:00Z"},
        "Raise SONAR_KEEP_DAYS to import the result",
    ),
    ("seconds", {"seconds": 0}, "is not possible for a transfer that is done"),
    ("seconds", {"seconds": 5e-324}, "at most 10^12 bytes per second are accepted"),
    ("seconds", {"seconds": 0.0019}, "seconds 0.0019 is not possible for 2000000000 bytes"),
    ("error", {"error": "timed out"}, "error 'timed out' is not possible with state 'done'"),
    (
        "error_where",
        {"error_where": "source"},
        "error_where 'source' is not possible with state 'done",
    ),
]


@pytest.mark.parametrize(("field", "change", "said"), UNLIKELY)
def test_a_record_that_cannot_be_true_is_refused_in_a_sentence(known, field, change, said):
    [(named, sentence)] = problems(known, DONE | change)
    assert (named, said in sentence) == (field, True)


@pytest.mark.parametrize("field", ["error", "error_where"])
def test_a_failed_result_needs_to_say_where_and_why(known: Admission, field: str):
    [(named, sentence)] = problems(known, FAILED | {field: ""})
    assert (named, "is missing: a failed result needs" in sentence) == (field, True)
    known.check(from_json(FAILED))


@pytest.mark.parametrize("text", ["a\0b", "x" * 10_001, "\ud800"])
def test_a_text_that_cannot_be_kept_is_refused(known: Admission, text: str):
    [(field, sentence)] = problems(known, FAILED | {"error": text})
    assert (field, "is not text of at most 10000 characters" in sentence) == ("error", True)
    assert len(sentence) < 200
    known.check(from_json(FAILED | {"error": "x" * 10_000}))


def test_how_old_a_result_may_be_is_a_setting(known: Admission, settings):
    for edge in (NOW + timedelta(minutes=5), NOW - timedelta(days=400)):
        known.check(from_json(DONE | {"started_at": edge.isoformat()}))
    settings.SONAR_KEEP_DAYS = 2
    old = DONE | {"started_at": (NOW - timedelta(days=3)).isoformat()}
    [(_, sentence)] = problems(Admission.at(NOW), old)
    assert "since 2026-11-18T04:00:00Z are kept. Raise SONAR_KEEP_DAYS" in sentence


def test_a_retired_endpoint_keeps_its_history_so_late_results_come_in(grid):
    Endpoint.objects.update(retired_at=NOW)
    Admission.at(NOW).check(from_json(DONE))


def test_the_id_of_a_test_that_is_not_over_cannot_be_taken(grid):
    glasgow, _, ral = grid
    fields = {"size_class": SizeClass.objects.get(name="small"), "bytes": 1, "mover": "fake"}
    fields |= {"mesh": mesh(), "requested_at": NOW, "sent_at": NOW}
    probe = Probe.objects.create(source=glasgow, destination=ral, **fields)
    [(field, sentence)] = problems(Admission.at(NOW), DONE | {"id": str(probe.id)})
    assert field == "id"
    assert "belongs to a Sonar test that has not ended" in sentence


def test_a_script_with_a_number_in_its_mover_does_not_use_up_the_profiles(known: Admission):
    for number in range(MOST_PROFILES):
        record = from_json(DONE | {"mover": f"m{number}"})
        known.profiles[profile_fields_of(record)] = None
    known.check(from_json(DONE | {"mover": "m7"}))
    [(field, sentence)] = problems(known, DONE | {"mover": "job-4711"})
    assert field == "mover"
    assert "exceed the limit of 10000 combinations of settings in imported" in sentence


def test_a_profile_of_own_tests_with_known_concurrent_tests_is_none_of_results_without(
    known: Admission,
):
    record = from_json(DONE | PUSHED | {"origin": "test"})
    kind = {"mover": "http-tpc", "mode": "push", "streams_used": 1}
    own = {Profile.objects.create(**kind, concurrent=number).id for number in (0, 1)}
    later = Admission.at(NOW)
    assert later.result(record).profile_id not in own
    assert Admission.at(NOW).result(record) == later.result(record)


def test_kinds_of_earlier_imports_count_and_stay_welcome(known: Admission, monkeypatch):
    for mover in ("fts", "gfal2"):
        known.result(from_json(DONE | {"mover": mover}))
    monkeypatch.setattr("sonar.records.admission.MOST_PROFILES", 2)
    later = Admission.at(NOW)
    later.check(from_json(DONE | {"mover": "gfal2"}))
    assert [field for field, _ in problems(later, DONE | {"mover": "rucio"})] == ["mover"]


def test_fields_that_nobody_knows_are_named_with_those_there_are(known: Admission):
    row = DONE | {"rate": 5, "speed": 6}
    [(field, sentence)] = problems(known, row)
    assert field == "rate"
    assert sentence == f"unknown field 'rate', 'speed': the fields are {', '.join(FIELDS)}"
    [(field, sentence)] = problems(known, DONE | {f"x{n}" * 100: n for n in range(1000)})
    assert "and 997 more" in sentence
    assert len(sentence) < 700
    for old, new in (
        ("beside_source", "concurrent_at_source_mean"),
        ("beside_destination_max", "concurrent_at_destination_max"),
    ):
        renamed = f"the field '{old}' is now called {new}"
        assert problems(known, DONE | {old: 1}) == [(old, renamed)]


def test_without_size_classes_nothing_can_come_in(known: Admission):
    known.check(from_json(DONE))
    assert not Profile.objects.exists()  # which checking does not make
    SizeClass.objects.all().delete()
    assert problems(Admission.at(NOW), DONE) == [
        (
            "bytes",
            "bytes 2000000000 does not belong to a size class, because no size class is registered",
        )
    ]


@pytest.mark.parametrize("row", [None, 5, "x", [], [DONE], True])
def test_what_is_no_object_is_said_to_be_none(known: Admission, row: object):
    assert problems(known, row) == [("", f"{row!r:.60} is not a JSON object with a result")] or (
        problems(known, row)[0][1].endswith("... is not a JSON object with a result")
    )


def test_every_wrong_field_is_named_not_only_the_first(known: Admission):
    found = problems(known, DONE | {"bytes": 0, "state": "ok", "id": "x", "more": 1})
    assert [field for field, _ in found] == ["id", "bytes", "state", "more"]


def test_a_hostile_value_does_not_fill_the_sentence(known: Admission):
    for value in ("x" * 10**6, list(range(10**5)), {"a": "b" * 10**6}):
        for field in FIELDS:
            found = problems(known, FAILED | {field: value})
            assert all(len(sentence) < 250 for _, sentence in found)


def test_numbers_as_orjson_reads_them_are_refused_too(known: Admission):
    text = json.dumps(DONE).replace("2000000000", "1" + "0" * 30)
    [(field, _)] = problems(known, orjson.loads(text))
    assert field == "bytes"
    known.check(from_json(orjson.loads(json.dumps(DONE))))


def test_the_example_of_the_docs_is_a_result_and_every_field_is_in_them(known: Admission):
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert example
    for row in orjson.loads(example[1]):
        known.check(from_json(row))
    assert [name for name in FIELDS if f"| `{name}` |" not in page] == []
    assert set(ALLOWED) == set(READ.model_fields)
