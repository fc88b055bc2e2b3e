"""Aliases of sites and endpoints, and a list of the unknown ones."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import Alias, Endpoint, Site, UnknownAlias
from sonar.models.aliases import BY_HAND, AliasKind, compared
from sonar.registry import aliases
from sonar.registry.aliases import Unknown, find, note_unknown
from sonar.registry.file import RegistryError, load

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def glasgow() -> Site:
    return Site.objects.create(name="Glasgow")


@pytest.fixture
def disk(glasgow: Site) -> Endpoint:
    url = "https://SE.example.org:1094/atlas/disk"
    return Endpoint.objects.create(name="GLASGOW_DISK", site=glasgow, base_url=url)


@pytest.fixture
def scratch(glasgow: Site) -> Endpoint:
    url = "davs://se.example.org/atlas/scratch"
    return Endpoint.objects.create(name="GLASGOW_SCRATCH", site=glasgow, base_url=url)


def test_a_name_is_found_by_its_alias_then_by_what_is_registered(
    glasgow, disk, scratch, django_assert_num_queries
):
    aliases.assign(AliasKind.RSE, "UKI-GLASGOW_DATADISK", disk)
    asked = ["UKI-GLASGOW_DATADISK", "GLASGOW_SCRATCH", "nobody"]
    with django_assert_num_queries(2):
        found = find(AliasKind.RSE, asked)
    assert found == {"UKI-GLASGOW_DATADISK": (disk,), "GLASGOW_SCRATCH": (scratch,)}
    assert find(AliasKind.RCSITE, ["Glasgow"]) == {"Glasgow": (glasgow,)}
    assert find(AliasKind.NETSITE, ["Glasgow"]) == {}


def test_hosts_are_the_same_in_any_case_and_stand_for_all_endpoints_there(disk, scratch, glasgow):
    both = {"Se.Example.org": (disk, scratch)}
    assert find(AliasKind.SE_HOST, ["Se.Example.org", "other.example.org"]) == both
    aliases.assign(AliasKind.SE_HOST, "SE.EXAMPLE.org", glasgow)
    assert find(AliasKind.SE_HOST, ["se.example.ORG"]) == {"se.example.ORG": (glasgow,)}
    # Of an RSE the case counts.
    aliases.assign(AliasKind.RSE, "Disk", disk)
    assert find(AliasKind.RSE, ["disk"]) == {}
    scratch.retired_at = NOW
    scratch.save()
    Alias.objects.all().delete()
    assert find(AliasKind.SE_HOST, ["se.example.org"]) == {"se.example.org": (disk,)}


def test_a_name_stands_for_one_thing_and_assigning_it_again_changes_that(glasgow, disk):
    first = aliases.assign(AliasKind.PERFSONAR_HOST, "ps.example.org", glasgow, "cric-wlcg")
    second = aliases.assign(AliasKind.PERFSONAR_HOST, "PS.example.org", disk)
    assert (first.pk, second.target, second.origin) == (second.pk, disk, BY_HAND)
    for wrong in (
        {"name": "other", "site": glasgow, "endpoint": disk},
        {"name": "other"},
        {"name": "Ps.Example.Org", "site": glasgow},
    ):
        alias = Alias(kind=AliasKind.PERFSONAR_HOST, **wrong)
        with pytest.raises(ValidationError):
            alias.full_clean()
        with pytest.raises(IntegrityError), transaction.atomic():
            alias.save()


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 256])
def test_what_is_no_name_is_refused(glasgow, name: str):
    with pytest.raises(ValidationError) as error:
        aliases.assign(AliasKind.RCSITE, name, glasgow)
    assert list(error.value.message_dict) == ["name"]


def rows() -> list[tuple[str, int, str]]:
    found = UnknownAlias.objects.order_by("name")
    return list(found.values_list("name", "times", "example"))


def test_unknown_aliases_are_counted_once_a_reading_and_gone_once_assigned(
    glasgow, django_assert_num_queries
):
    told = [Unknown(AliasKind.SE_HOST, "a.example.org", "downtime 7"), *[host("B.org")] * 2]
    note_unknown("gocdb", told, NOW - DAY)
    note_unknown("osg", [host("b.org")], NOW)
    again = [Unknown(AliasKind.SE_HOST, "b.ORG", "downtime 9"), host("")]
    with django_assert_num_queries(5):  # two of them are the transaction's
        note_unknown("gocdb", again, NOW)
    assert rows() == [
        ("a.example.org", 1, "downtime 7"),
        ("b.ORG", 2, "downtime 9"),
        ("b.org", 1, ""),
    ]
    row = UnknownAlias.objects.get(name="b.ORG")
    assert (row.first_at, row.last_at) == (NOW - DAY, NOW)
    aliases.assign(AliasKind.SE_HOST, "B.ORG", glasgow)
    assert [name for name, *_ in rows()] == ["a.example.org"]


def host(name: str) -> Unknown:
    return Unknown(AliasKind.SE_HOST, name)


def test_what_a_source_says_no_more_is_forgotten_and_too_many_are_not_kept(monkeypatch):
    monkeypatch.setattr(aliases, "MOST_KEPT", 3)
    note_unknown("gocdb", [host("old")], NOW - 31 * DAY)
    note_unknown("osg", [host("old")], NOW - 31 * DAY)
    note_unknown("gocdb", [host("dismissed")], NOW - 20 * DAY)
    UnknownAlias.objects.filter(name="dismissed").update(dismissed=True)
    note_unknown("gocdb", [host("first")], NOW - DAY)
    note_unknown("gocdb", [host(f"new{number}") for number in range(2)], NOW)
    kept = UnknownAlias.objects.filter(source="gocdb").values_list("name", flat=True)
    assert sorted(kept) == ["dismissed", "new0", "new1"]
    assert UnknownAlias.objects.filter(source="osg").count() == 1


@given(name=st.text(), example=st.text())
def test_whatever_a_source_says_can_be_noted(name: str, example: str):
    UnknownAlias.objects.all().delete()
    note_unknown("gocdb", [Unknown(AliasKind.SE_HOST, name, example)], NOW)
    note_unknown("gocdb", [Unknown(AliasKind.SE_HOST, name, example)], NOW)
    kept = list(UnknownAlias.objects.all())
    assert len(kept) == bool(name.strip())
    assert all(row.times == 2 and row.name.isprintable() for row in kept)


@given(name=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=30))
def test_python_and_postgresql_compare_hosts_alike(name: str):
    row = UnknownAlias(kind=AliasKind.SE_HOST, name=name, source="x", first_at=NOW, last_at=NOW)
    row.save()
    row.refresh_from_db()
    assert row.key == compared(AliasKind.SE_HOST, name)
    row.delete()


FILE = """
sites: [{name: RAL}]
endpoints: [{name: RAL_DISK, site: RAL, base_url: "https://se.example.org/disk"}]
aliases:
  - {kind: rcsite, name: RAL-LCG2, site: RAL}
  - {kind: rse, name: RAL-LCG2, endpoint: RAL_DISK}
"""


def test_a_registry_file_assigns_names():
    note_unknown("gocdb", [Unknown(AliasKind.RCSITE, "RAL-LCG2")], NOW)
    assert load(FILE).added["aliases"] == ["rcsite RAL-LCG2", "rse RAL-LCG2"]
    assert not UnknownAlias.objects.exists()
    assert not load(FILE).changed.get("aliases")
    Alias.objects.update(origin="rucio")
    assert len(load(FILE).changed["aliases"]) == 2
    assert {alias.origin for alias in Alias.objects.all()} == {BY_HAND}


WRONG = {
    "{kind: rcsite, name: X}": "aliases[0] (line 1): specify either a site or an endpoint",
    "{kind: rcsite, name: X, site: PIC}": "aliases[0].site (line 1): site 'PIC' is not registered",
    "{kind: x, name: X, site: PIC}": "aliases[0].kind (line 1): 'x' is not a kind of alias: use",
    "{kind: rse, name: ' X', site: RAL}": "aliases[0].name (line 1): An alias must be printable",
    "{kind: se_host, name: a, site: RAL}, {kind: se_host, name: A, site: RAL}": "aliases[1].name "
    "(line 1): se_host a appears twice in this file",
}


@pytest.mark.parametrize(("text", "said"), WRONG.items())
def test_a_file_with_a_wrong_alias_is_refused_with_its_place(text: str, said: str):
    with pytest.raises(RegistryError) as error:
        load(f"aliases: [{text}]\nsites: [{{name: RAL}}]")
    assert said in str(error.value)
    assert not Alias.objects.exists()
