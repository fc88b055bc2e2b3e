"""What Sonar takes from Rucio is what Rucio means: which RSEs, which doors, under which names."""

import json
import logging
import re
import ssl
from collections.abc import Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trustme
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from sonar.models import Endpoint, Mesh, Proposal, Site
from sonar.models.topology import SourcedValues
from sonar.registry import aliases
from sonar.registry.topology import proposals
from sonar.registry.topology.sources import rucio as source
from sonar.settings.sources import envfilename
from tests.sonar import topologies
from tests.sonar.rucio import HERE, Rucio, protocol, real, rse
from tests.storage.serving import AnyMethod, serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def rucio(tmp_path: Path) -> Rucio:
    """A Rucio with two RSEs, of two sites."""
    rucio = Rucio(tmp_path)
    rucio.add("A_DISK", "A")
    rucio.add("B_DISK", "B")
    return rucio


def endpoints() -> dict[str, str]:
    return dict(Endpoint.objects.values_list("name", "base_url"))


def in_use() -> list[str]:
    return list(Endpoint.objects.filter(retired_at=None).values_list("name", flat=True))


def of_rse(name: str) -> str:
    """Return the endpoint whose results are stored where somebody writes this RSE."""
    found = aliases.find(aliases.AliasKind.RSE, [name]).get(name, ())
    return found[0].name if found else ""


# What Rucio's submitter wrote to, where it is the same; where it is not, a remark says so.
CHOSEN = {
    "BNL_DATADISK": "davs://dcgftp-write.bnl.example.org/pnfs/usatlas/datadisk",
    "CERN-PROD_DATADISK": "davs://eosatlas-http.example.org/eos/atlas/atlasdatadisk/rucio",
    "DESY_DATADISK": "davs://dcache-door.desy.example.org:2880/pnfs/desy/data",
    "GLASGOW_DATADISK": "davs://ceph-gw.glasgow.example.org:1094/atlas/datadisk",
    "LYON_SCRATCHDISK": "root://ccxroot.lyon.example.org/pnfs/lyon/scratch",
    "NUM123": "https://num.example.org",
    "T2_BE_IIHE": "davs://maite.iihe.example.org:2880/pnfs/iihe/cms",
    "TRIUMF_V6": "davs://[2001:db8:10::5]:2880/atlas/v6",
}
LEFT_OUT = {
    "FNAL_STAGE": "the RSE is a staging area, which keeps files for a short time",
    "FNAL_TAPE": "the endpoint is tape storage, which Sonar does not test",
    "GLASGOW_LOCALDISK": "the base URL is the same as that of GLASGOW_DATADISK, or one of",
    "KIT_MCTAPE": "the endpoint is tape storage, which Sonar does not test",
    "LANCS_LOCALDISK": "the RSE has no protocol that Sonar can test: davs is for the LAN only",
    "LOCAL_POSIX": "the RSE has no protocol that Sonar can test, only file",
    "MWT2_CACHE": "the RSE is volatile, a cache that does not keep files",
    "NDGF_DATADISK": "the RSE is not writable (availability_write is false)",
    "ODD-1-2_3-X": "the RSE has no protocol that Sonar can test: https cannot be used: the "
    "base URL contains spaces",
    "PIC_OLD": "the endpoint is not in use and was never registered in Sonar",
    "RAL_ECHO_S3": "the RSE has no protocol that Sonar can test, only s3",
    "TRIUMF_V6B": "the RSE has no protocol that Sonar can test: davs cannot be used: the host is "
    "an IPv6 address without brackets",
    "XENON_DISK": "the RSE has no attribute `site`",
}


def test_a_real_export_gives_what_its_submitter_writes_to(tmp_path: Path):
    rucio = real(tmp_path)
    text = rucio.apply(join=True)
    assert endpoints() == CHOSEN
    assert LEFT_OUT.keys() | CHOSEN.keys() == rucio.rses.keys()
    for name, reason in LEFT_OUT.items():
        assert f"- {name}: {reason}" in text
    elsewhere = "root://eosatlas.example.org/eos/atlas/atlasdatadisk/rucio"
    assert f"CERN-PROD_DATADISK: Sonar tests {CHOSEN['CERN-PROD_DATADISK']}, " in text
    assert f"Rucio prefers {elsewhere} for writing if the source has a scheme comp" in text
    assert re.findall(r"(\S+): Sonar tests", text) == ["CERN-PROD_DATADISK", "T2_BE_IIHE"]
    # Neither a site of RSEs that are left out, nor one that is off.
    sites = {rucio[name]["attributes"]["site"] for name in CHOSEN}
    assert set(Site.objects.values_list("name", flat=True)) == sites


@pytest.mark.parametrize("sample", ["tape_by_attribute", "no_site"])
def test_tape_by_any_mark_and_rses_without_a_site_are_left_out(tmp_path: Path, sample: str):
    document = json.loads((HERE / f"{sample}.json").read_text())
    text = Rucio(tmp_path, **{row["rse"]: row for row in document["rses"].values()}).apply()
    if sample == "no_site":
        assert "No RSE has the attribute `site`. Set SONAR_RUCIO_SITE_ATTRIBUTE" in text
        assert "`pnn`" in text
        assert not endpoints()
    else:
        assert list(endpoints()) == ["WEST_DISK"]
        for name in ("WEST_QOS", "WEST_TAPE_OLD", "WEST_TAPE"):
            assert f"- {name}: the endpoint is tape storage, which Sonar does not test" in text


MARKS = {
    "staging_required": ({"staging_required": "yes"}, "the endpoint is tape"),
    "istape as a text": ({"istape": "true"}, "the endpoint is tape"),
    "its type": ({"type": "DATATAPE"}, "the endpoint is tape"),
    "signed": ({"sign_url": "gcs"}, "the URLs of the RSE are signed by Rucio"),
    "no": ({"istape": "False", "staging_required": "false", "sign_url": "", "type": "DISK"}, ""),
}


@pytest.mark.parametrize(("attributes", "reason"), MARKS.values(), ids=MARKS)
def test_an_attribute_says_what_an_rse_is(rucio: Rucio, attributes: dict[str, Any], reason: str):
    rucio["A_DISK"]["attributes"] |= attributes
    assert f"A_DISK: {reason or 'none'}" in rucio.apply() or not reason
    assert ("A_DISK" in endpoints()) != bool(reason)


def test_the_site_may_be_another_attribute(rucio: Rucio, settings: Settings):
    for name in ("A_DISK", "B_DISK"):
        rucio[name]["attributes"] = {name: True, "pnn": f"T2_{name[0]}"}
    settings.SONAR_RUCIO_SITE_ATTRIBUTE = "pnn"
    rucio.apply()
    assert set(Site.objects.values_list("name", flat=True)) == {"T2_A", "T2_B"}


# Which doors -> the host that Sonar tests, or why it tests none.
DOORS = {
    "copies both ways before reading and writing": (
        [
            protocol("davs", "rw", third_party_copy_read=None, third_party_copy_write=None),
            protocol("root", "tpc", 2),
        ],
        "root://tpc",
    ),
    "written to before read": (
        [
            protocol("davs", "out", third_party_copy_write=None),
            protocol("davs", "in", 2, third_party_copy_read=None),
        ],
        "davs://in",
    ),
    "https and davs by their priorities": (
        [protocol("davs", "second", 2), protocol("https", "first", 1)],
        "https://first",
    ),
    "http before root": ([protocol("root", "a", 0), protocol("davs", "b", 5)], "davs://b"),
    "the first by name of two with one priority": (
        [protocol("davs", "b", 3), protocol("davs", "a", 3)],
        "davs://a",
    ),
    "a door that cannot be a base URL is passed over": (
        [protocol("davs", "2001:db8::1", 0), protocol("davs", "b", 5)],
        "davs://b",
    ),
    "a door with an endless prefix": (
        [protocol("davs", "a", 0) | {"prefix": "/x" * 300}, protocol("davs", "b", 5)],
        "davs://b",
    ),
    "never what is only read": (
        [protocol("davs", "a", write=None, third_party_copy_write=None)],
        "the RSE has no protocol that Sonar can test: davs is for reading only",
    ),
    "switched off": (
        [protocol("root", "a", None) | {"domains": {}}, protocol("srm", "b")],
        "the RSE has no protocol that Sonar can test: root is disabled, srm is not tested",
    ),
    "a long prefix alone": (
        [protocol("davs", "a") | {"prefix": "/x" * 300}],
        "davs cannot be used: the base URL has more than 400 characters",
    ),
    "a prefix with a line break": (
        [protocol("davs", "a") | {"prefix": "/data\n"}],
        "davs cannot be used: the base URL contains unprintable characters",
    ),
    "no host": ([protocol("davs", "a") | {"hostname": None}], "the base URL has no host"),
    "no port": (
        [protocol("davs", "a") | {"port": 99999}],
        "the base URL has no host, or its port is not from 1 to 65535",
    ),
    "a letter": ([protocol("davs", "a") | {"prefix": "/a#b"}], "the base URL contains #"),
    "nothing": ([], "the RSE has no protocol that Sonar can test"),
}


@pytest.mark.parametrize(("protocols", "chosen"), DOORS.values(), ids=DOORS)
def test_a_door_that_nobody_writes_to_is_never_chosen(
    rucio: Rucio, protocols: list[dict[str, Any]], chosen: str
):
    rucio["A_DISK"]["protocols"] = protocols
    text = rucio.apply()
    if "://" in chosen:
        assert endpoints()["A_DISK"].startswith(chosen)
    else:
        assert re.search(rf"- A_DISK: .*{re.escape(chosen)}", text)
        assert list(endpoints()) == ["B_DISK"]


GSIFTP = {
    "gsiftp first": (
        [protocol("gsiftp", "a", 1), protocol("davs", "b", 2)],
        "Sonar tests davs://b:2880/vo/disk, but Rucio prefers gsiftp://a:8443/vo/disk for writing "
        "if the source has a scheme compatible with gsiftp, and only if Rucio's option `scheme` in "
        "`[conveyor]` is not set",
    ),
    "gsiftp alone": (
        [protocol("gsiftp", "a", 1), protocol("srm", "b", 2)],
        "Rucio writes to gsiftp://a:8443/vo/disk only if Rucio's option `scheme` in `[conveyor]` "
        "is not set",
    ),
}


@pytest.mark.parametrize(("protocols", "remark"), GSIFTP.values(), ids=GSIFTP)
def test_what_rucio_copies_by_gsiftp_depends_on_its_configuration(
    rucio: Rucio, protocols: list[dict[str, Any]], remark: str
):
    rucio["A_DISK"]["protocols"] = protocols
    assert f"A_DISK: {remark}\n" in rucio.apply()


PRIORITIES = st.one_of(st.none(), st.integers(0, 3))


@given(
    st.lists(
        st.builds(
            protocol,
            st.sampled_from(["davs", "https", "root", "gsiftp", "srm"]),
            st.sampled_from("abcd"),
            read=PRIORITIES,
            write=PRIORITIES,
            third_party_copy_read=PRIORITIES,
            third_party_copy_write=PRIORITIES,
        ),
        max_size=4,
    ),
    st.sampled_from(["41.5.1", "34.0.0"]),
)
def test_where_sonar_and_the_submitter_differ_is_said(
    protocols: list[dict[str, Any]], version: str
):
    """As find_matching_scheme of Rucio's rsemanager orders the doors of a destination."""
    row = rse("X", "1", "x", "S") | {"protocols": protocols}
    topology = source.parse({"e": {"rses": {"1": row}}, "p": {"version": version}})
    (facts,) = topology.endpoints

    def is_on(door: dict[str, Any], purpose: str) -> bool:
        priority = door["domains"]["wan"][purpose]
        return priority is not None and (priority > 0 or version == "41.5.1")

    writing = [door for door in protocols if is_on(door, "third_party_copy_write")]
    best = min((door["domains"]["wan"]["third_party_copy_write"] for door in writing), default=None)
    chosen = [door for door in protocols if source.Protocol(**door).url == facts.base_url]
    if facts.unusable:
        tested = [door for door in protocols if door["scheme"] != "srm"]
        assert not any(
            is_on(door, "write") or is_on(door, "third_party_copy_write") for door in tested
        )
        return
    assert any(is_on(door, "write") or is_on(door, "third_party_copy_write") for door in chosen)
    same = [
        door
        for door in chosen
        if door in writing and door["domains"]["wan"]["third_party_copy_write"] == best
    ]
    said = [line for line in topology.remarks if line.startswith("X: ")]
    is_limited = bool(same) and same[0]["scheme"] == "gsiftp"
    assert bool(said) == (best is None or not same or is_limited)


def zeros(*, null: bool) -> list[dict[str, Any]]:
    """Return a door whose priorities are 0 and one whose are 1; a third one is off, if null."""
    off = [protocol("root", "off", None)] if null else []
    return [protocol("davs", "zero", 0), protocol("davs", "one", 1), *off]


@pytest.mark.parametrize(
    ("null", "version", "host", "remark"),
    [
        (True, "", "zero", "0 and null, so Sonar treats 0 as the highest"),
        (False, "", "one", "No protocol has priority null, so Sonar treats 0"),
        (True, "41.5.1", "zero", ""),
        (False, "39.0.0rc1", "zero", ""),
        (True, "38.2.0", "one", ""),
        (False, "1.29.7", "one", ""),
    ],
)
def test_zero_is_the_best_priority_since_rucio_39_and_off_before(
    rucio: Rucio, tmp_path: Path, null: bool, version: str, host: str, remark: str
):
    rucio["A_DISK"]["protocols"] = zeros(null=null)
    ping = tmp_path / "ping.json"
    ping.write_text(json.dumps({"version": version}))
    text = rucio.run("apply", *([ping] if version else []))
    assert endpoints()["A_DISK"] == f"davs://{host}:2880/vo/disk"
    assert ("priority" in text or "priorities" in text) == bool(remark)
    assert remark in text


def test_an_old_export_has_one_priority_for_third_party_copies(rucio: Rucio):
    (door,) = rucio["A_DISK"]["protocols"]
    wan = {"read": 1, "write": 1, "delete": 1, "third_party_copy": 0}
    door["domains"]["wan"] = wan
    rucio["A_DISK"]["protocols"].append(
        protocol("davs", "copies") | {"domains": {"wan": wan | {"third_party_copy": 1}}}
    )
    rucio.apply()
    assert endpoints()["A_DISK"] == "davs://copies:2880/vo/disk"


def test_a_renamed_rse_is_the_same_wherever_it_has_moved(rucio: Rucio):
    rucio.apply(join=True)
    rucio.rename("A_DISK", "ALPHA_DISK")
    rucio["ALPHA_DISK"]["protocols"] = [protocol("davs", "moved.example.org")]
    text = rucio.apply()
    assert "~ A_DISK: base URL davs://se1.example.org:2880/vo/disk -> davs://moved" in text
    assert "+ Rucio RSE ALPHA_DISK: A_DISK" in text
    assert list(endpoints()) == ["A_DISK", "B_DISK"]
    assert of_rse("ALPHA_DISK") == of_rse("A_DISK") == "A_DISK"


@pytest.mark.parametrize("is_applied_between", [True, False])
@pytest.mark.parametrize("new_first", [True, False])
def test_a_name_given_to_another_rse_takes_no_history_along(
    rucio: Rucio, is_applied_between: bool, new_first: bool
):
    rucio.apply(join=True)
    before = {row.name: row.pk for row in Endpoint.objects.all()}
    old = endpoints()["A_DISK"]
    rucio.rename("A_DISK", "ZZ_OLDDISK" if new_first else "A0_OLDDISK")
    renamed = "ZZ_OLDDISK" if new_first else "A0_OLDDISK"
    if is_applied_between:
        rucio.apply()
        assert endpoints()["A_DISK"] == old
    rucio.add("A_DISK", "A")
    text = rucio.apply(join=True)
    assert f"~ A_DISK: name A_DISK -> {renamed}" in text or f"~ {renamed}: name A_DISK -> " in text
    now = {row.name: (row.pk, row.base_url) for row in Endpoint.objects.all()}
    assert now[renamed] == (before["A_DISK"], old)
    assert now["A_DISK"][0] not in before.values()
    assert of_rse("A_DISK") == "A_DISK"
    assert of_rse(renamed) == renamed


def test_rses_that_take_each_others_places_do_so_at_the_first_time(rucio: Rucio):
    rucio.add("C_DISK", "C")
    rucio.apply(join=True)
    for name, host in (("A_DISK", "se2"), ("B_DISK", "se3"), ("C_DISK", "se4")):
        rucio[name]["protocols"] = [protocol("davs", f"{host}.example.org")]
    rucio.apply()
    assert [url.partition(".")[0] for url in endpoints().values()] == [
        "davs://se2",
        "davs://se3",
        "davs://se4",
    ]


def test_a_name_of_an_rse_that_is_now_tape_is_no_name_of_the_old_disk(rucio: Rucio):
    rucio.apply(join=True)
    rucio.rename("A_DISK", "A_OLDDISK")
    rucio.add("A_DISK", "A", rse_type="TAPE")
    text = rucio.apply()
    assert "- Rucio RSE A_DISK: now refers to something else in the source" in text
    assert (of_rse("A_DISK"), of_rse("A_OLDDISK")) == ("", "A_OLDDISK")
    assert in_use() == ["A_OLDDISK", "B_DISK"]


def test_a_name_that_people_gave_is_kept_and_the_other_rse_left_out(rucio: Rucio):
    rucio.apply(join=True)
    Endpoint.objects.filter(name="A_DISK").update(name="MINE")
    rucio.add("MINE", "A")
    text = rucio.apply()
    assert "- MINE: another registered endpoint has this name. Rename that endpoint or" in text
    assert list(endpoints()) == ["B_DISK", "MINE"]
    assert of_rse("A_DISK") == "MINE"


def test_an_rse_that_was_made_again_is_the_same_only_at_the_same_place(rucio: Rucio):
    rucio.apply(join=True)
    rucio["A_DISK"]["id"], rucio["B_DISK"]["id"] = "a" * 32, "b" * 32
    rucio["B_DISK"]["protocols"] = [protocol("davs", "new.example.org")]
    text = rucio.apply(join=True)
    assert "- B_DISK: another registered endpoint has this name" in text
    assert endpoints()["B_DISK"] == "davs://se2.example.org:2880/vo/disk"
    assert SourcedValues.objects.get(endpoint__name="A_DISK").source_id == "a" * 32
    # As the sentence says.
    Endpoint.objects.filter(name="B_DISK").update(base_url="davs://new.example.org:2880/vo/disk")
    rucio.apply()
    assert SourcedValues.objects.get(endpoint__name="B_DISK").source_id == "b" * 32


def test_an_export_without_ids_is_known_by_its_names(rucio: Rucio):
    rucio.apply(join=True)
    for row in rucio.rses.values():
        row["id"] = None
    document = {"rses": rucio.rses}
    rucio.document = lambda: document  # as one that a client wrote
    assert rucio.run().startswith("rucio: no changes")
    assert SourcedValues.objects.get(endpoint__name="A_DISK").source_id.endswith("1")


OFF = {
    "both": {"availability_read": False, "availability_write": False},
    "write": {"availability_write": False},
    "read": {"availability_read": False},
    "tape": {"rse_type": "TAPE"},
    "staging": {"staging_area": True},
    "volatile": {"volatile": True},
    "no site": {"attributes": {"A_DISK": True}},
    "no door": {"protocols": []},
}
NOW = {
    "write": "the RSE is not writable (availability_write is false)",
    "read": "the RSE is not readable (availability_read is false)",
    "tape": "the endpoint is tape storage, which Sonar does not test",
    "staging": "the RSE is a staging area, which keeps files for a short time",
    "volatile": "the RSE is volatile, a cache that does not keep files",
}


@pytest.mark.parametrize("name", OFF)
def test_what_the_source_switches_off_is_retired_and_comes_back_with_it(rucio: Rucio, name: str):
    rucio.apply(join=True)
    rucio.add("NEW_DISK", "N")
    rucio.apply()  # waits
    usual = dict(rucio["A_DISK"])
    rucio["A_DISK"].update(OFF[name])
    text = rucio.apply()
    assert "~ A_DISK: not in use\n" in text
    assert "no longer in the source" not in text
    if name in NOW:
        assert f"- A_DISK: registered and in use, but no longer usable: {NOW[name]}" in text
    elif name != "both":
        assert "- A_DISK: registered and in use, but no longer usable: " in text
    assert in_use() == ["B_DISK"]
    rucio["A_DISK"].update(usual)
    assert "~ A_DISK: in use again\n" in rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]
    assert Endpoint.objects.get(name="NEW_DISK").retired_at


def test_what_people_retired_while_the_source_had_it_off_stays_retired(rucio: Rucio):
    rucio.apply(join=True)
    Endpoint.objects.filter(name="A_DISK").update(retired_at="2026-01-01T00:00Z")
    rucio["A_DISK"].update(OFF["both"])
    rucio.apply()
    rucio["A_DISK"].update(availability_read=True, availability_write=True)
    assert "= A_DISK: retired yes (set manually), not no" in rucio.apply(join=True)
    assert in_use() == ["B_DISK"]


def test_what_people_took_into_use_is_retired_by_the_source_once_and_then_kept(rucio: Rucio):
    rucio.apply()
    Endpoint.objects.update(retired_at=None, enabled=True)
    rucio["A_DISK"].update(OFF["tape"])
    assert "registered and in use, but no longer usable: the endpoint is tape" in rucio.apply()
    Endpoint.objects.filter(name="A_DISK").update(retired_at=None)
    assert "= A_DISK: retired no (set manually), not yes" in rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]
    rucio["A_DISK"].update({"rse_type": "DISK"})
    rucio.apply()
    rucio["A_DISK"].update(OFF["tape"])
    rucio.apply()
    assert in_use() == ["B_DISK"]


def test_what_was_retired_before_its_reason_was_kept_waits_to_be_taken_into_use(rucio: Rucio):
    rucio.apply()
    for said in SourcedValues.objects.filter(endpoint__isnull=False):
        said.values = {"base_url": said.values["base_url"], "retired": True}
        said.save()
    migration = import_module("sonar.migrations.0049_sourced_ids")
    migration.tell_waiting_from_off(apps, connection.schema_editor())
    values = SourcedValues.objects.get(endpoint__name="A_DISK").values
    assert values.keys() == {"base_url", "retired", "held"}
    assert "registered but not yet in use:\n  A_DISK, B_DISK" in rucio.apply()
    rucio.apply(join=True)
    assert in_use() == ["A_DISK", "B_DISK"]


def test_a_pause_of_an_endpoint_outlasts_a_return(rucio: Rucio):
    rucio.apply(join=True)
    Endpoint.objects.filter(name="A_DISK").update(enabled=False)
    rucio["A_DISK"].update(OFF["both"])
    rucio.apply()
    rucio["A_DISK"].update(availability_read=True, availability_write=True)
    rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]
    assert not Endpoint.objects.get(name="A_DISK").enabled


def test_what_is_gone_and_was_retired_for_that_comes_back_with_the_source(rucio: Rucio):
    rucio.apply(join=True)
    gone = rucio.rses.pop("A_DISK")
    assert "no longer in the source:\n  A_DISK" in rucio.apply()
    rucio.apply(retire=True)
    assert in_use() == ["B_DISK"]
    rucio.rses["A_DISK"] = gone
    rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]


def test_a_new_scheme_that_a_mesh_cannot_test_retires_an_endpoint_until_it_can(rucio: Rucio):
    rucio.apply(join=True)
    mesh = Mesh.objects.create(name="own")
    for end in (mesh.sources, mesh.destinations):
        end.set(Endpoint.objects.all())
    rucio["A_DISK"]["protocols"] = [protocol("root", "se1.example.org")]
    text = rucio.apply()
    reason = "A_DISK cannot have a base URL with root"
    assert f"- A_DISK: registered and in use, but no longer usable: {reason}" in text
    assert in_use() == ["B_DISK"]
    for end in (mesh.sources, mesh.destinations):
        end.set(Endpoint.objects.filter(name="B_DISK"))
    assert "~ A_DISK: base URL davs://se1.example.org:2880/vo/disk -> root://se1" in rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]


def test_a_move_that_cannot_be_does_not_keep_the_rest_away(rucio: Rucio):
    rucio.apply(join=True)
    rucio["A_DISK"].update(OFF["both"] | {"protocols": rucio["B_DISK"]["protocols"]})
    rucio["B_DISK"]["attributes"]["type"] = "x" * 50
    text = rucio.run()
    reason = "the base URL is the same as that of B_DISK"
    assert f"- A_DISK: registered and in use, but no longer usable: {reason}" in text
    assert "- B_DISK: label: " in text
    assert endpoints()["A_DISK"] == "davs://se1.example.org:2880/vo/disk"
    assert in_use() == ["B_DISK"]


def test_an_endpoint_follows_its_rse_to_another_site_unless_people_chose_its_site(rucio: Rucio):
    rucio.apply(join=True)
    rucio["A_DISK"]["attributes"]["site"] = "ELSEWHERE"
    text = rucio.apply()
    assert "+ ELSEWHERE" in text
    assert "~ A_DISK: site A -> ELSEWHERE" in text
    Endpoint.objects.filter(name="A_DISK").update(site=Site.objects.get(name="B"))
    rucio["A_DISK"]["attributes"]["site"] = "A"
    assert "= A_DISK: site B (set manually), not A" in rucio.apply()
    # A site that is renamed here is the same.
    Site.objects.filter(name="B").update(name="BETA")
    rucio.apply()
    assert Endpoint.objects.get(name="B_DISK").site.name == "BETA"


def test_a_site_is_what_any_of_its_rses_says_and_contradictions_are_said(rucio: Rucio):
    rucio.add("P1_DISK", "PRAGUE")
    rucio.add("P2_DISK", "PRAGUE", latitude=50.1, longitude=14.4)
    rucio["P2_DISK"]["attributes"] |= {"country": "CZ", "cloud": "DE", "tier": "2"}
    rucio.add("P3_TAPE", "PRAGUE", rse_type="TAPE")
    rucio["P3_TAPE"]["attributes"] |= {"country": "PL", "cloud": "DE", "tier": 1}
    rucio.add("Q_TAPE", "QUEBEC", rse_type="TAPE")
    text = rucio.apply()
    site = Site.objects.get(name="PRAGUE")
    assert (site.country, site.cloud, site.tier, site.latitude) == ("CZ", "DE", 2, 50.1)
    for field, values in (
        ("country", "CZ (P2_DISK), PL (P3_TAPE)"),
        ("tier", "2 (P2_DISK), 1 (P3_TAPE)"),
    ):
        assert (
            f"- site PRAGUE: its RSEs differ in {field}: {values}. The first value is used" in text
        )
    assert "differ in cloud" not in text
    assert not Site.objects.filter(name="QUEBEC").exists()


WRONG = {
    "a port as text": (
        {"protocols": [protocol("davs", "a") | {"port": "443"}]},
        "protocols[0].port",
    ),
    "a long type": ({"rse_type": "x" * 300}, "rse_type"),
    "a flag as text": ({"availability_write": "no"}, "availability_write"),
}


@pytest.mark.parametrize(("values", "place"), WRONG.values(), ids=WRONG)
def test_one_odd_rse_is_left_out_and_stays_as_it_is(
    rucio: Rucio, values: dict[str, Any], place: str
):
    rucio.apply(join=True)
    rucio["A_DISK"].update(values)
    rucio.add("C_DISK", "C")
    text = rucio.apply(join=True, retire=True)
    assert f"- A_DISK: {place}: " in text
    assert "no longer in the source" not in text
    assert in_use() == ["A_DISK", "B_DISK", "C_DISK"]
    # Of which none is understood is no export.
    for row in rucio.rses.values():
        row.update(values)
    with pytest.raises(CommandError, match="Nothing was changed") as error:
        rucio.run()
    assert str(error.value).count(place) == 3


def test_an_unprintable_name_is_left_out(rucio: Rucio):
    rucio.add("C\n_DISK", "C")
    assert "- 'C\\n_DISK': rse: the text contains unprintable characters" in rucio.apply()


@pytest.mark.parametrize("is_same_id", [True, False])
def test_two_vos_are_not_mixed(rucio: Rucio, tmp_path: Path, is_same_id: bool):
    other = rse("A_DISK", "f" * 32, "other.example.org", "A") | {"vo": "cms"}
    if is_same_id:
        other |= {"rse": "C_DISK", "id": rucio["A_DISK"]["id"]}
    second = tmp_path / "cms.json"
    second.write_text(json.dumps({"rses": {other["id"]: other}}))
    with pytest.raises(CommandError, match=r"Compare one VO at a time") as error:
        rucio.run("apply", second)
    assert "(VO def)" in str(error.value)
    assert "(VO cms)" in str(error.value)
    assert not Endpoint.objects.exists()
    # Twice the same says the same.
    second.write_text(json.dumps({"rses": {"1": rucio["A_DISK"]}}))
    assert "2 new endpoints" in rucio.run("apply", second)


def test_what_may_not_be_deleted_or_written_by_all_is_said(rucio: Rucio):
    rucio["A_DISK"]["availability_delete"] = False
    rucio["B_DISK"]["attributes"]["restricted_write"] = True
    text = rucio.apply()
    assert "B_DISK: only Rucio administrators can write to it (attribute `restricted_" in text
    assert "A_DISK: files cannot be deleted (availability_delete is false), so test" in text


def test_hosts_are_listed_in_one_order(rucio: Rucio):
    hosts = [f"door{number}.example.org" for number in range(9)]
    rucio["A_DISK"]["protocols"] += [protocol("root", host, 2) for host in reversed(hosts)]
    assert re.findall(r"storage host (\S+): A_DISK", rucio.apply()) == hosts


def test_an_export_without_rses_retires_none_and_says_so(rucio: Rucio):
    rucio.apply(join=True)
    rucio.rses.clear()
    sentence = "The documents contain no endpoints, so no endpoints are retired\n"
    assert sentence in rucio.apply(retire=True)
    assert sentence not in rucio.apply()
    assert in_use() == ["A_DISK", "B_DISK"]


REFUSED = {
    "an error": (
        {"ExceptionClass": "AccessDenied", "ExceptionMessage": "Account a can not export data"},
        "an error message from Rucio, not an export: 'AccessDenied: Account a can not export data'",
    ),
    "a version alone": ({"version": "41.5.1"}, "not a response to GET /export/: `rses` is missing"),
    "no version": ({"version": "new", "x": 1}, "version: 'new' is not a version such as 41.5.1"),
    "a list": ({"rses": []}, "rses: the document: Input should be an object"),
}


@pytest.mark.parametrize(("document", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_export_is_refused(tmp_path: Path, document: dict[str, Any], said: str):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CommandError) as error:
        call_command("topology", "apply", "--from", "rucio", str(path))
    assert f"{path}: {said}" in str(error.value)


def test_two_sources_that_switch_off_one_endpoint_both_switch_it_on(rucio: Rucio, tmp_path: Path):
    rucio.apply(join=True)
    end = topologies.rse("A_DISK", "A", "se1.example.org")
    end["aprotocols"] = {"third_party_copy": [["davs://se1.example.org:2880", 1, "/vo/disk"]]}
    path = tmp_path / "ends.json"

    def cric(state: str) -> str:
        path.write_text(json.dumps({"A_DISK": end | {"state": state}}))
        out = StringIO()
        call_command("topology", "apply", "--from", "cric-atlas", str(path), stdout=out)
        return out.getvalue()

    cric("ACTIVE")
    cric("DISABLED")
    assert in_use() == ["B_DISK"]
    assert "= A_DISK: retired yes (set by cric-atlas), not no" in rucio.apply()
    rucio["A_DISK"].update(OFF["both"])
    rucio.apply()
    assert "= A_DISK: retired yes (set by rucio), not no" in cric("ACTIVE")
    rucio["A_DISK"].update(availability_read=True, availability_write=True)
    rucio.apply()
    cric("ACTIVE")
    assert in_use() == ["A_DISK", "B_DISK"]


TOKEN = "sonar-/CN=Robot: sonar-unknown-0123456789abcdef"


class Server:
    """Answers as Rucio's REST server does, to one token; ``seen`` are the tokens of requests."""

    def __init__(self, document: dict[str, Any], authority: trustme.CA) -> None:
        self.document, self.seen, self.location = document, list[str](), ""
        self.says_in_headers = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        it = self

        class Handler(AnyMethod):
            def serve(self) -> None:
                it.serve(self)

        self._serving = serving(Handler)
        server = self._serving.__enter__()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://localhost:{server.server_address[1]}"
        self.places = [f"{self.url}/export/?distance=False", f"{self.url}/ping"]

    def stop(self) -> None:
        self._serving.__exit__(None, None, None)

    def serve(self, request: AnyMethod) -> None:
        token = request.headers.get("X-Rucio-Auth-Token", "")
        self.seen.append(token)
        assert "Authorization" not in request.headers
        if self.location:
            request.answer(302, {"Location": self.location})
        elif request.path == "/ping":
            request.answer(200, content=json.dumps({"version": "41.5.1"}).encode())
        elif token != TOKEN:
            error = {"ExceptionClass": "ValueError", "ExceptionMessage": "Token must be set."}
            if token:
                sentence = f"Cannot authenticate with {token}"
                error = {"ExceptionClass": "CannotAuthenticate", "ExceptionMessage": sentence}
            headers = error if self.says_in_headers else {}
            request.answer(401 if token else 400, headers, json.dumps(error).encode())
        elif request.path != "/export/?distance=False":
            request.answer(404)
        else:
            request.answer(200, content=json.dumps(self.document).encode())


@pytest.fixture
def server(rucio: Rucio, tmp_path: Path, settings: Settings) -> Iterator[Server]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    settings.SONAR_CA_BUNDLE = str(tmp_path / "ca.pem")
    settings.SONAR_CREDENTIALS_DIR = tmp_path / "credentials"
    settings.SONAR_CREDENTIALS_DIR.mkdir()
    server = Server(rucio.document(), authority)
    yield server
    server.stop()


def read_live(*places: str) -> str:
    out = StringIO()
    call_command("topology", "diff", "--from", "rucio", *places, stdout=out)
    return out.getvalue()


def test_a_live_rucio_is_asked_with_the_token_of_a_file(
    server: Server, settings: Settings, caplog: pytest.LogCaptureFixture
):
    (settings.SONAR_CREDENTIALS_DIR / "rucio").write_text(f"{TOKEN}\n")
    settings.SONAR_RUCIO_CREDENTIAL = "rucio"
    settings.SONAR_TOPOLOGY = {"rucio": server.places}
    assert "2 new sites, 2 new endpoints" in read_live(*server.places)
    proposals.read_all(timezone.now())
    (kept,) = Proposal.objects.all()
    assert len(kept.topology["endpoints"]) == 2
    assert set(server.seen) == {TOKEN}
    with pytest.raises(CommandError) as error:
        read_live(f"{server.url}/exports/")
    assert str(error.value).endswith("/exports/: the server responded with 404")
    # One that has expired: its server says so, and nobody reads it.
    (settings.SONAR_CREDENTIALS_DIR / "rucio").write_text(old := "an-old-token-of-rucio-0123")
    with caplog.at_level(logging.WARNING):
        proposals.read_all(timezone.now())
    with pytest.raises(CommandError) as error:
        read_live(*server.places)
    for text in (str(error.value), caplog.text):
        assert (
            "the server responded with 401 (CannotAuthenticate: Cannot authenticate with ***)"
            in text
        )
        assert "The token of SONAR_RUCIO_CREDENTIAL was sent. It may have expired" in text
        assert old not in text


@pytest.mark.parametrize("says_in_headers", [True, False])
def test_without_a_token_its_error_says_what_to_do(server: Server, says_in_headers: bool):
    server.says_in_headers = says_in_headers
    with pytest.raises(CommandError) as error:
        read_live(*server.places)
    assert "the server responded with 400 (ValueError: Token must be set.)" in str(error.value)
    assert "Set SONAR_RUCIO_CREDENTIAL to the name of a token file" in str(error.value)


BAD_TOKENS = {
    "is missing": (None, "cannot use the file: No such file or directory"),
    "is empty": (" \n", "cannot use the file: the secret is empty"),
    "has two lines": (
        "hidden\nX-Other: hidden",
        "the file must contain a token: one line of ASCII",
    ),
    "is not ASCII": ("hïdden", "the file must contain a token: one line of ASCII"),
}


@pytest.mark.parametrize(("text", "said"), BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_what_is_no_token_is_not_sent(
    server: Server, settings: Settings, text: str | None, said: str
):
    settings.SONAR_RUCIO_CREDENTIAL = "rucio"
    if text is not None:
        (settings.SONAR_CREDENTIALS_DIR / "rucio").write_text(text)
    with pytest.raises(CommandError, match=said) as error:
        read_live(*server.places)
    assert "dden" not in str(error.value)
    assert not server.seen


def test_a_token_is_sent_to_one_server_and_not_in_clear(server: Server, settings: Settings):
    settings.SONAR_RUCIO_CREDENTIAL = "rucio"
    (settings.SONAR_CREDENTIALS_DIR / "rucio").write_text(TOKEN)
    with pytest.raises(CommandError, match="is for one server"):
        read_live(server.places[0], "https://other.example.org/ping")
    assert not server.seen
    seen = []

    class Plain(AnyMethod):
        def serve(self) -> None:
            seen.append(self.headers.get("X-Rucio-Auth-Token"))
            self.answer(200, content=b"{}")

    with serving(Plain) as plain:
        server.location = f"http://localhost:{plain.server_address[1]}/ping"
        with pytest.raises(CommandError, match="redirects from https to http"):
            read_live(f"{server.url}/ping")
    assert not seen


@pytest.mark.parametrize("text", ["../secret", "/etc/token", ".hidden", "a b", "eyJ.x y"])
def test_the_name_of_the_file_is_a_name(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("SONAR_RUCIO_CREDENTIAL", text)
    with pytest.raises(ImproperlyConfigured, match="SONAR_RUCIO_CREDENTIAL") as error:
        envfilename("SONAR_RUCIO_CREDENTIAL")
    assert text not in str(error.value)
