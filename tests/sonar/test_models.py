"""What the database itself refuses, whoever writes to it."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from sonar.models import (
    DirtyMark,
    Downtime,
    Endpoint,
    Profile,
    Schedule,
    Site,
    SizeClass,
    Transfer,
    Version,
)
from sonar.movers.catalogue import kept
from tests.sonar.world import NOW, endpoint, mesh, three_endpoints

pytestmark = pytest.mark.django_db


def refused(constraint: str, write: Callable[..., object], *args: object, **values: object) -> None:
    """Make sure that a write fails for this constraint, at the latest at its commit."""
    with pytest.raises(IntegrityError, match=constraint):
        write_and_check(write, *args, **values)


@transaction.atomic
def write_and_check(write: Callable[..., object], *args: object, **values: object) -> None:
    write(*args, **values)
    connection.check_constraints()


def test_names_are_unique_and_plain_and_numbers_possible():
    Site.objects.create(name="RAL")
    refused("sonar_site_name", Site.objects.create, name="RAL")
    refused("site_name_is_plain", Site.objects.create, name="<b>RAL</b>")
    for cap in ("inbound_cap", "outbound_cap"):
        refused("endpoint_caps_are_positive", endpoint, "RAL", **{cap: 0})
    refused("endpoint_budget_is_positive", endpoint, "RAL", budget_bytes_per_day=0)
    # As a segment has room for.
    refused("endpoint_id_has_16_bits", endpoint, "HUGE", id=65536)
    Profile.objects.create(mover="fake")  # with empty columns, too
    refused("profile_once", Profile.objects.create, mover="fake")


def test_what_was_called_as_an_address_before_is_kept_as_it_is():
    site = Site.objects.create(name="RAL")
    state = Endpoint.objects.create(name="state", site=site, base_url="https://ral.example/")
    state.inbound_cap = 5
    state.full_clean()
    state.name = "other"
    state.full_clean()
    with pytest.raises(ValidationError, match="The endpoint cannot be named “state”"):
        Endpoint(name="state", site=site, base_url="https://b.ral.example/").full_clean()


def test_a_base_url_has_a_known_scheme_and_no_credentials():
    for base_url in (
        "https://user:password@ral.ac.uk/data",
        "https://token@ral.ac.uk/data",
        "https://ral.ac.uk/data?authz=secret",
        "file:///etc",
        "ral.ac.uk/data",
        "https:///data",
    ):
        refused("endpoint_base_url_is_plain", endpoint, "RAL", base_url=base_url)
    for base_url in ("https://ral.ac.uk:1094/a/b", "davs://[2001:db8::1]/x", "root://ral.ac.uk"):
        assert endpoint(base_url.partition(":")[0], base_url=base_url).pk


def test_a_downtime_is_of_one_thing_and_ends_after_it_starts():
    ral = endpoint("RAL")
    times = {"starts_at": NOW, "ends_at": NOW + timedelta(hours=1)}
    refused("downtime_of_one", Downtime.objects.create, **times)
    refused("downtime_of_one", Downtime.objects.create, site=ral.site, endpoint=ral, **times)
    refused("downtime_ends", Downtime.objects.create, site=ral.site, starts_at=NOW, ends_at=NOW)


def test_a_downtime_of_a_site_is_one_of_its_endpoints():
    glasgow, lancs, _ = three_endpoints()
    later = NOW + timedelta(hours=1)
    Downtime.objects.create(site=glasgow.site, starts_at=NOW, ends_at=later, reason="power")
    Downtime.objects.create(endpoint=lancs, starts_at=later, ends_at=later + timedelta(1))
    assert Downtime.endpoints_down(NOW) == {glasgow.id}
    assert Downtime.endpoints_down(later) == {lancs.id}


def test_size_classes_tile_by_construction():
    """A class ends where the next begins; two may not begin at the same size."""
    new = {"name": "x", "from_bytes": 0, "test_bytes": 1}
    refused("sizeclass_begins_alone", SizeClass.objects.create, **new)
    small, medium = (SizeClass.objects.filter(name=name) for name in ("small", "medium"))
    refused("small does not fit", small.update, from_bytes=1)
    refused("medium does not fit", small.delete)
    refused("medium does not fit", medium.update, test_bytes=10**9)
    refused("medium does not fit", medium.update, test_bytes=10**8 - 1)
    medium.update(test_bytes=10**8)
    connection.check_constraints()


def test_quiet_hours_are_whole_or_none():
    refused("mesh_quiet_hours_have_two_ends", mesh, quiet_from="01:00")
    refused("mesh_quiet_hours_have_two_ends", mesh, quiet_from="01:00", quiet_until="01:00")
    sites = Site.objects.filter(id=endpoint("RAL").site_id)
    refused("site_quiet_hours_have_two_ends", sites.update, quiet_until="01:00")
    refused("site_quiet_hours_have_two_ends", sites.update, quiet_from="01:00", quiet_until="01:00")
    sites.update(quiet_from="23:00", quiet_until="01:00")


def test_a_pause_has_a_begin_and_a_reason_and_ends_after_it_starts():
    sites = Site.objects.filter(id=endpoint("RAL").site_id)
    refused("site_pause_has_a_reason", sites.update, paused_since=NOW)
    refused("site_pause_has_a_reason", sites.update, pause_reason="new switch")
    refused("site_pause_has_a_reason", sites.update, paused_until=NOW)
    pause = {"paused_since": NOW, "pause_reason": "new switch"}
    refused("site_pause_ends_after_it_starts", sites.update, **pause, paused_until=NOW)
    sites.update(**pause)


def test_a_schedule_is_between_two_endpoints():
    ends = dict.fromkeys(("source", "destination"), endpoint("GLASGOW"))
    fields = {"mesh": mesh(), "size_class": SizeClass.objects.first(), "next_due": NOW} | ends
    refused("schedule_is_between", Schedule.objects.create, **fields, every_seconds=60)


def transfer(**values: object) -> Transfer:
    glasgow, lancs, _ = Endpoint.objects.all()
    facts = {
        "source": glasgow,
        "destination": lancs,
        "size_class": SizeClass.objects.get(name="small"),
        "profile": Profile.objects.get_or_create(mover="fake")[0],
        "state": "done",
        "started_at": NOW,
        "seconds": 1.0,
        "bytes": 10,
    }
    return Transfer.objects.create(**(facts | values))


@pytest.mark.parametrize(
    "values",
    [
        {"error": "no such file"},
        {"seconds": 0.0},
        {"state": "failed"},
        {"state": "failed", "error": "no such file"},
        {"state": "failed", "error_where": "source"},
        {"state": "failed", "error": "x", "error_where": "moon"},
    ],
)
def test_a_transfer_is_done_or_says_where_and_why_not(values: dict[str, object]):
    three_endpoints()
    refused("transfer_failed_with_where_and_why", transfer, **values)


def test_every_change_of_the_registry_raises_its_version():
    three_endpoints()
    before = Version.objects.get(name="registry").value
    Endpoint.objects.filter(name="RAL_DATADISK").update(label="x")
    assert Version.objects.get(name="registry").value == before + 1


def marks() -> list[tuple[str, datetime]]:
    found = list(DirtyMark.objects.order_by("seq").values_list("level", "start"))
    DirtyMark.objects.all().delete()
    return found


def test_every_change_of_results_marks_the_hours_it_touches():
    three_endpoints()
    hour = timedelta(hours=1)
    made = transfer(started_at=NOW + timedelta(minutes=59))
    assert marks() == [("hour", NOW)]
    Transfer.objects.filter(id=made.id).update(started_at=NOW - hour)
    assert sorted(marks()) == [("hour", NOW - hour), ("hour", NOW)]
    Transfer.objects.filter(id=made.id).delete()
    assert marks() == [("hour", NOW - hour)]
    transfer()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE sonar_transfer")
    assert marks() == []


@pytest.mark.parametrize("field", ["source_id", "destination_id", "size_class_id", "profile_id"])
def test_a_transfer_refers_to_what_exists(field: str):
    three_endpoints()
    with pytest.raises(IntegrityError, match="does not exist"):
        transfer(**{field: -1})


@pytest.mark.parametrize("table", ["endpoint", "sizeclass", "profile"])
def test_what_results_refer_to_cannot_be_deleted(table: str):
    three_endpoints()
    transfer()
    with pytest.raises(IntegrityError, match="cannot be deleted"), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM sonar_{table}")


@pytest.mark.parametrize(
    ("mover", "base_urls", "sentence"),
    [
        ("http-tpc", {"A": "https://a/", "B": "davs://b", "C": "http://c", "D": "dav://d/x"}, ""),
        ("fake", {"A": "fake://a"}, ""),
        (
            "http-tpc",
            {"B": "root://b", "A": "fake://a/", "C": "https://c"},
            "The transfer tool http-tpc supports the URL schemes dav, davs, http, https, not "
            "those of A (fake), "
            "B (root).",
        ),
        (
            "fake",
            {str(number): "gsiftp://a" for number in range(7)},
            "The transfer tool fake supports the URL scheme fake, not those of 0 (gsiftp), 1 "
            "(gsiftp), 2 (gsiftp), "
            "3 (gsiftp), 4 (gsiftp) and 2 more.",
        ),
    ],
)
def test_a_mover_that_does_not_fit_an_endpoint_is_told_in_a_sentence(
    mover: str, base_urls: dict[str, str], sentence: str
):
    assert kept(mover).scheme_mismatch("pull", base_urls) == sentence
