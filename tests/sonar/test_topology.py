"""The registry follows CRIC, Rucio and storages: what people set stays, and nothing is deleted."""

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import Alias, Endpoint, Mesh, MeshInterval, Site, SizeClass, UnknownAlias
from sonar.registry.topology import catalogue, reading
from sonar.registry.topology.applying import apply
from sonar.registry.topology.reading import TopologyError
from tests.sonar import topologies
from tests.sonar.topologies import cric_endpoints, cric_sites, rse, written

pytestmark = pytest.mark.django_db
GLASGOW, BNL = "UKI-SCOTGRID-GLASGOW_DATADISK", "BNL-ATLAS_DATADISK"
Run = Callable[..., str]


def topology(verb: str, source: str, *places: str, **options: Any) -> str:
    out = StringIO()
    call_command("topology", verb, "--from", source, *places, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def cric(tmp_path: Path) -> Run:
    """Run the command on the answers of ATLAS CRIC, with other endpoints or sites."""

    def run(verb: str = "apply", sites: Any = None, ends: Any = None, **options: Any) -> str:
        documents = {"sites": sites or cric_sites(), "ends": ends or cric_endpoints()}
        return topology(verb, "cric-atlas", *written(tmp_path, **documents), **options)

    return run


def test_a_diff_says_what_would_be_and_changes_nothing(cric):
    text = cric("diff")
    assert "cric-atlas: 2 new sites, 2 new endpoints, 6 aliases" in text
    assert "+ UKI-SCOTGRID-GLASGOW: cloud UK, country GB, latitude 55.86, longitude -4.26" in text
    assert f"+ {GLASGOW}: base URL davs://ceph.example.ac.uk/atlas/datadisk" in text
    assert "+ storage host door-ceph.example.ac.uk: UKI-SCOTGRID-GLASGOW_DATADISK" in text
    assert "- BNL-ATLAS_DATATAPE: the endpoint is tape storage, which Sonar does not test" in text
    assert (
        "- BNL-ATLAS_OLDDISK: the endpoint is not in use and was never registered in Sonar" in text
    )
    assert "Nothing was changed." in text
    assert [model.objects.count() for model in (Site, Endpoint, Alias)] == [0, 0, 0]


def test_applied_again_nothing_changes_and_new_endpoints_wait_until_they_are_wanted(cric):
    cric()
    glasgow = Endpoint.objects.get(name=GLASGOW)
    assert (glasgow.base_url, glasgow.label, glasgow.site.country) == (
        "davs://ceph.example.ac.uk/atlas/datadisk",
        "DATADISK",
        "GB",
    )
    assert glasgow.retired_at
    again = cric()
    assert again.startswith("cric-atlas: no changes\n")
    assert f"registered but not yet in use:\n  {BNL}, {GLASGOW}" in again
    assert again.endswith(
        "2 endpoints are not in use and not tested. To change this, run `topology apply --join`.\n"
    )
    assert "2 changed endpoints" in cric(join=True)
    assert Endpoint.objects.filter(retired_at=None).count() == 2
    assert cric() == cric(join=True) == cric("diff")


def test_a_diff_says_which_meshes_new_endpoints_would_join(cric):
    old = Site.objects.create(name="Old")
    for number in range(2):
        url = f"https://old{number}.example.org/disk"
        Endpoint.objects.create(name=f"OLD{number}", site=old, base_url=url)
    mesh = Mesh.objects.create(name="all")
    small = SizeClass.objects.get(name="small")
    MeshInterval.objects.create(mesh=mesh, size_class=small, every_seconds=3600)
    # From 2 links to 12, each 24 times a day with 20 MB.
    assert "mesh all: 10 more links, about 240 tests and 4.80 GB a day" in cric("diff")
    # A mesh by filter gains what fits, as the source says its site: one of the two new ones.
    Site.objects.filter(name="Old").update(cloud="UK")
    mesh.sources_filter = mesh.destinations_filter = {"cloud": ["UK"]}
    mesh.save()
    assert "mesh all: 4 more links, about 96 tests and 1.92 GB a day" in cric("diff")
    mesh.sources_filter = mesh.destinations_filter = {}
    mesh.save()
    # A mesh with named endpoints gains nothing.
    mesh.sources.set(Endpoint.objects.all())
    mesh.destinations.set(Endpoint.objects.all())
    assert "more links" not in cric("diff")


def test_values_that_people_set_are_kept_and_others_follow_the_source(cric):
    cric(join=True)
    Site.objects.filter(name="BNL-ATLAS").update(cloud="NORTH")
    Endpoint.objects.filter(name=GLASGOW).update(label="SCRATCH")
    sites = cric_sites(**{"BNL-ATLAS": topologies.site("BNL-ATLAS", tier_level=2, cloud="US2")})
    moved = rse(GLASGOW, "UKI-SCOTGRID-GLASGOW", "new.example.ac.uk")
    text = cric(sites=sites, ends=cric_endpoints(**{GLASGOW: moved}))
    assert "= BNL-ATLAS: cloud NORTH (set manually), not US2" in text
    assert f"= {GLASGOW}: label SCRATCH (set manually), not DATADISK" in text
    assert "~ BNL-ATLAS: tier 1 -> 2" in text
    site, endpoint = Site.objects.get(name="BNL-ATLAS"), Endpoint.objects.get(name=GLASGOW)
    assert (site.cloud, site.tier, endpoint.label) == ("NORTH", 2, "SCRATCH")
    assert endpoint.base_url == "davs://new.example.ac.uk/atlas/datadisk"


def test_what_is_registered_already_is_adopted_by_its_name_its_alias_or_its_place(cric):
    site = Site.objects.create(name="BNL-ATLAS", cloud="BY HAND", tier=0)
    url = "https://DCGFTP.example.gov:443/atlas//datadisk/"
    here = Endpoint.objects.create(name="BNL_DISK", site=site, base_url=url, label="MINE")
    text = cric(join=True)
    assert "= BNL-ATLAS: cloud BY HAND (set manually), not US" in text
    assert "= BNL_DISK: label MINE (set manually), not DATADISK" in text
    here.refresh_from_db()
    assert (here.base_url, here.retired_at) == (url, None)
    assert Endpoint.objects.count() == 2
    assert Alias.objects.get(kind="rse", name=BNL).target == here
    # It is still the same one after it was renamed.
    Endpoint.objects.filter(pk=here.pk).update(name="RENAMED")
    assert cric().startswith("cric-atlas: no changes")


def test_what_is_disabled_or_retired_by_people_is_retired_and_what_is_gone_only_if_wanted(cric):
    cric(join=True)
    disabled = rse(GLASGOW, "UKI-SCOTGRID-GLASGOW", "ceph.example.ac.uk", state="DISABLED")
    cric(ends=cric_endpoints(**{GLASGOW: disabled}))
    assert Endpoint.objects.get(name=GLASGOW).retired_at
    only = {GLASGOW: rse(GLASGOW, "UKI-SCOTGRID-GLASGOW", "ceph.example.ac.uk")}
    text = cric(ends=only)
    assert f"no longer in the source:\n  {BNL}\n" in text
    assert Endpoint.objects.get(name=BNL).retired_at is None
    cric(ends=only, retire=True, join=True)
    assert Endpoint.objects.get(name=BNL).retired_at
    assert Endpoint.objects.get(name=GLASGOW).retired_at is None
    Endpoint.objects.filter(name=GLASGOW).update(retired_at="2026-01-01T00:00Z")
    assert f"= {GLASGOW}: retired yes (set manually), not no" in cric(ends=only, join=True)
    assert Endpoint.objects.count() == 2


LEFT_OUT = {
    "a b": "a b: the name is not allowed.",
    "uki-scotgrid-glasgow_datadisk": "the name differs only in case from " + GLASGOW,
    "TWIN": "TWIN: the base URL is the same as that of",
}


@pytest.mark.parametrize(("name", "said"), LEFT_OUT.items())
def test_what_cannot_be_registered_is_left_out_with_its_reason(cric, name: str, said: str):
    host = "ceph.example.ac.uk" if name == "TWIN" else "other.example.ac.uk"
    twin = rse(name, "BNL-ATLAS", host)
    twin["aprotocols"] = {"write_wan": [[f"davs://{host}", 1, "/atlas"]]}
    text = cric(ends=cric_endpoints(**{name: twin}))
    assert said in text
    assert Endpoint.objects.count() == 2
    assert cric(ends=cric_endpoints(**{name: twin})).startswith("cric-atlas: no changes")


def test_aliases_follow_the_source_unless_people_said_otherwise(cric):
    UnknownAlias.objects.create(
        kind="rse", name=BNL, source="x", first_at="2026-01-01T00:00Z", last_at="2026-01-01T00:00Z"
    )
    site = Site.objects.create(name="Mine")
    Alias.objects.create(kind="rcsite", name="BNL", site=site)
    assert "= WLCG site (rcsite) BNL: Mine (set manually), not BNL-ATLAS" in cric()
    assert not UnknownAlias.objects.exists()
    assert Alias.objects.get(kind="rse", name=BNL).origin == "cric-atlas"


def test_rucio_gives_disks_with_a_site_and_a_protocol_between_sites(tmp_path: Path):
    (path,) = written(tmp_path, export=topologies.rucio_export())
    text = topology("apply", "rucio", path)
    assert "rucio: 1 new site, 1 new endpoint, 2 aliases" in text
    disk = Endpoint.objects.get()
    # It has root as well, and is tested by HTTP.
    expected = "davs://davs.glasgow-datadisk.example.org:2880/vo/datadisk"
    assert (disk.base_url, disk.label, disk.site.country) == (expected, "DATADISK", "GB")
    for sentence in (
        "BNL_TAPE: the endpoint is tape storage, which Sonar does not test",
        "SRM_ONLY: the RSE has no protocol that Sonar can test, only srm",
        "NOWHERE: the RSE has no attribute `site`",
    ):
        assert f"- {sentence}" in text
    assert topology("apply", "rucio", path).startswith("rucio: no changes")


def test_two_sources_do_not_take_turns(cric, tmp_path: Path):
    cric(join=True)
    host = "ceph.example.ac.uk"
    export = topologies.rucio_export()
    (row,) = [row for row in export["rses"].values() if row["rse"] == "GLASGOW_DATADISK"]
    row["rse"], row["attributes"]["type"] = GLASGOW, "DISK"
    row["protocols"][1] |= {"hostname": host, "port": 443, "prefix": "/atlas/datadisk"}
    (path,) = written(tmp_path, export=export)
    assert f"= {GLASGOW}: label DATADISK (set by cric-atlas), not DISK" in topology(
        "apply", "rucio", path
    )
    assert cric().startswith("cric-atlas: no changes")


def test_wlcg_cric_names_hosts_of_registered_sites_and_adds_none(cric, tmp_path: Path):
    cric()
    sites, services = topologies.wlcg()
    text = topology("apply", "cric-wlcg", *written(tmp_path, rcsites=sites, services=services))
    assert "unregistered sites in the source:\n  UKI-ELSEWHERE" in text
    glasgow = Site.objects.get(name="UKI-SCOTGRID-GLASGOW")
    names = Alias.objects.filter(origin="cric-wlcg").order_by("kind", "name")
    assert [(row.kind, row.name, row.target) for row in names] == [
        ("netsite", "UKI-SCOTGRID-GLASGOW-LHCONE", glasgow),
        ("perfsonar_host", "ps-bandwidth.example.ac.uk", glasgow),
        ("se_host", "door.example.ac.uk", glasgow),
        ("se_host", "srm.example.ac.uk", glasgow),
    ]
    assert Site.objects.count() == 2


def test_a_storage_says_its_software_and_its_room(cric, tmp_path: Path):
    cric(join=True)
    (path,) = written(tmp_path, srr=topologies.storage_report("ceph.example.ac.uk"))
    text = topology("apply", "srr", path)
    assert f"~ {GLASGOW}: software nothing -> xrootd 5.7.1" in text
    assert "Glasgow, share atlas: 1\u202f000 TB of 10\u202f000 TB free" in text
    assert topology("apply", "srr", path).startswith("srr: no changes")
    (other,) = written(tmp_path, other=topologies.storage_report("other.example.ac.uk"))
    assert "in the source" not in topology("apply", "srr", other, retire=True)
    assert cric().startswith("cric-atlas: no changes")


def test_the_example_of_the_page_is_what_the_command_says(tmp_path: Path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/topology.md").read_text()
    sites, endpoints = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    written(tmp_path, sites=sites, endpoints=endpoints)
    monkeypatch.chdir(tmp_path)
    console = re.search(r"```console\n\$ manage.py topology (.*?)\n(.*?)```", page, re.DOTALL)
    assert console
    verb, _, source, *paths = console[1].split()
    assert topology(verb, source, *paths) == console[2]


WRONG = {
    "breaks off": ('{"A": {"name": "A", "si', "line 1, column 21: not JSON"),
    "no object": ("[]", "expected a JSON object, but found a list"),
    "a name twice": ('{"A": {"site": "B", "site": "C"}}', "'site' appears twice in one object"),
    "no number": ('{"A": {"site": NaN}}', "NaN is not a JSON number"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "thousands of digits": ('{"A": ' + "9" * 5000 + "}", "Exceeds the limit"),
    "another type": ('{"A": {"name": "A", "site": 7}}', "A.site: Input should be a valid string"),
    "a long line": (
        json.dumps({"A": {"name": "x" * 10_000_000, "site": "B"}}),
        "A.name: String should have at most 255 characters",
    ),
    "a line break": (
        '{"A": {"name": "A\\n", "site": "B"}}',
        "A.name: the text contains unprintable characters",
    ),
    "a part of a pair": ('{"A": {"name": "\\ud800", "site": "B"}}', "A.name"),
    "nothing known": ('{"A": {}}', "not a response to site/query or ddmendpoint/query"),
    "a wrong protocol": (
        '{"A": {"name": "A", "site": "B", "aprotocols": {"read_wan": [["x", "1", "/"]]}}}',
        "A.aprotocols.read_wan[0][1]: Input should be a valid integer",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_document_that_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, said: str):
    paths = written(tmp_path, sites=cric_sites(), wrong=text)
    with pytest.raises(CommandError, match="Nothing was changed") as error:
        topology("apply", "cric-atlas", *paths)
    assert f"{paths[1]}: {said}" in str(error.value)
    assert not Site.objects.exists()


SHARES = [
    {"name": "atlas", "totalsize": 10_000_000, "usedsize": 5_000_000},
    {"path": ["/eos/proc/"], "totalsize": 0, "usedsize": 0},
    {"name": ["A", "B"], "totalsize": 10, "usedsize": 5},
    {"name": "odd", "totalsize": -1, "usedsize": 5},
    {"name": "tape", "totalsize": 10_000_000, "usedsize": 0, "accesslatency": "nearline"},
    {"name": "kept", "totalsize": 10_000_000, "usedsize": 0, "retentionpolicy": "custodial"},
    {"name": "disk", "totalsize": 10_000_000, "usedsize": 0, "accesslatency": "online"},
    None,
]


def test_of_a_report_of_a_storage_the_elements_are_left_out_that_cannot_be_read(
    cric, tmp_path: Path
):
    """EOS writes shares without a name, lists for names with a comma, and endpoints from 1 on."""
    cric(join=True)
    report = topologies.storage_report("ceph.example.ac.uk")
    service = report["storageservice"]
    service["storageendpoints"] = [None, {"endpointurl": 7}, *service["storageendpoints"]]
    service["storageshares"] = SHARES
    service.pop("name")
    (path,) = written(tmp_path, srr=report)
    text = topology("apply", "srr", path)
    assert f"~ {GLASGOW}: software nothing -> xrootd 5.7.1" in text
    left_out = text.partition("skipped:\n")[2].partition("\n\n")[0]
    place = f"  - {path}: storageservice"
    assert left_out.splitlines() == [
        f"{place}: storageendpoints[0]: Input should be an object",
        f"{place}: storageendpoints[1].endpointurl: Input should be a valid string",
        f"{place}: storageshares[1].name: Field required",
        f"{place}: storageshares[2].name: Input should be a valid string",
        f"{place}: storageshares[3].totalsize: Input should be greater than or equal to 0",
        f"{place}: storageshares[7]: Input should be an object",
    ]
    rooms = [line.partition(", share ")[2] for line in text.splitlines() if ", share " in line]
    assert rooms == [
        "atlas: 5 MB of 10 MB free",
        "tape: 10 MB of 10 MB free, on tape",
        "kept: 10 MB of 10 MB free, on tape",
        "disk: 10 MB of 10 MB free",
    ]


def test_of_an_answer_of_cric_the_rows_are_left_out_that_cannot_be_read(cric, tmp_path: Path):
    odd = {
        "A": rse("A", "BNL-ATLAS", "a.example.gov", is_tape="yes"),
        "B": rse("B", "BNL-ATLAS", "b.example.gov", aprotocols={"read_wan": [["x", "1", "/"]]}),
        "C": None,
    }
    text = cric(
        sites=cric_sites(D=topologies.site("D", latitude="north")), ends=cric_endpoints(**odd)
    )
    assert "cric-atlas: 2 new sites, 2 new endpoints" in text
    for place in (
        "sites.json: D.latitude: Input should be a valid number",
        "ends.json: A.is_tape: Input should be a valid boolean",
        "ends.json: B.aprotocols.read_wan[0][1]: Input should be a valid integer",
        "ends.json: C: Input should be an object",
    ):
        assert place in text
    sites, services = topologies.wlcg()
    paths = written(tmp_path, rcsites=sites | {"X": 7}, services=services | {"odd": {"rcsite": 7}})
    text = topology("apply", "cric-wlcg", *paths)
    assert f"{paths[0]}: X: Input should be an object" in text
    assert f"{paths[1]}: odd.rcsite: Input should be a valid string" in text
    assert Alias.objects.filter(origin="cric-wlcg", kind="se_host").count() == 2


@pytest.mark.parametrize(
    "marks",
    [
        {"is_tape": True},
        {"type": "MCTAPE"},
        {"token": "ATLASDATATAPE"},
        {"name": "BNL-ATLAS_MCTAPE"},
        {"rse_type": "TAPE"},
        {"qos": "CUSTODIAL"},
        {"access_latency": "NEARLINE", "retention_policy": None},
        {"retention_policy": "CUSTODIAL", "qos": ["SSD"]},
        {"is_tape": None, "type": "DATATAPE"},
    ],
)
def test_any_mark_of_tape_leaves_an_endpoint_of_cric_out(cric, marks: dict[str, Any]):
    row = rse("BNL-ATLAS_X", "BNL-ATLAS", "x.example.gov") | marks
    text = cric(ends=cric_endpoints(X=row), join=True)
    assert f"- {row['name']}: the endpoint is tape storage, which Sonar does not test" in text
    assert not Endpoint.objects.filter(name=row["name"]).exists()


def test_an_endpoint_of_cric_in_use_that_becomes_tape_is_retired_until_it_is_disk_again(cric):
    cric(join=True)
    tape = rse(GLASGOW, "UKI-SCOTGRID-GLASGOW", "ceph.example.ac.uk", is_tape=True)
    text = cric(ends=cric_endpoints(**{GLASGOW: tape}))
    assert f"- {GLASGOW}: registered and in use, but no longer usable: the endpoint is tape" in text
    assert "no longer in the source" not in text
    assert Endpoint.objects.get(name=GLASGOW).retired_at
    cric()
    assert Endpoint.objects.get(name=GLASGOW).retired_at is None


def test_an_endpoint_of_cric_is_known_by_its_id_when_it_is_renamed(cric):
    cric(join=True)
    row = rse(GLASGOW, "UKI-SCOTGRID-GLASGOW", "new.example.ac.uk") | {"name": "GLASGOW_NEWDISK"}
    rows = {key: value for key, value in cric_endpoints().items() if key != GLASGOW}
    text = cric(ends=rows | {"GLASGOW_NEWDISK": row})
    assert "no longer in the source" not in text
    assert Endpoint.objects.get(name=GLASGOW).base_url.startswith("davs://new.example.ac.uk/")
    assert Alias.objects.get(kind="rse", name="GLASGOW_NEWDISK").endpoint.name == GLASGOW
    assert cric(ends=rows | {"GLASGOW_NEWDISK": row}).startswith("cric-atlas: no changes")


def test_a_door_of_cric_that_is_only_read_is_no_base_url(cric):
    door, reader = ["root://door.example.gov:1094", 1, "/x"], ["davs://read.example.gov", 1, "/x"]
    both = {"read_wan": [reader], "write_wan": [door]}
    rows = {"A": rse("A", "BNL-ATLAS", "a", aprotocols=both)}
    rows["B"] = rse("B", "BNL-ATLAS", "b", aprotocols={"read_wan": [reader]})
    text = cric(ends=cric_endpoints(**rows))
    assert Endpoint.objects.get(name="A").base_url == "root://door.example.gov/x"
    assert (
        "- B: the endpoint has no protocol for writing from other sites, only for reading" in text
    )


def test_an_endpoint_of_cric_whose_row_cannot_be_read_stays_in_use(cric):
    cric(join=True)
    text = cric(ends=cric_endpoints(**{GLASGOW: {"name": GLASGOW, "site": 7}}), retire=True)
    assert f"ends.json: {GLASGOW}.site: Input should be a valid string" in text
    assert "no longer in the source" not in text
    assert Endpoint.objects.get(name=GLASGOW).retired_at is None


def test_what_cannot_be_read_at_all_is_said(tmp_path: Path, monkeypatch):
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"A": "\xe9"}')
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    long = written(tmp_path, long=" " * 1001)[0]
    for place, said in (
        (str(latin), "byte 8 is not UTF-8"),
        (long, "larger than 1,000 bytes"),
        (str(tmp_path / "none"), "cannot be read: No such file or directory"),
        ("http://cric.example.org/x?token=secret", "a URL must have the form https://host/path"),
        ("https://me:secret@cric.example.org/x", "a URL must have the form https://host/path"),
        ("https://169.254.169.254/x?token=secret", "169.254.169.254"),
    ):
        with pytest.raises(CommandError, match=said) as error:
            topology("diff", "cric-atlas", place)
        assert "secret" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
VECTORS: dict[str, list[dict[str, Any]]] = {
    "cric-atlas": [cric_sites(), cric_endpoints()],
    "rucio": [topologies.rucio_export()],
    "cric-wlcg": list(topologies.wlcg()),
    "srr": [topologies.storage_report("se.example.org")],
}


@st.composite
def spoilt(draw: st.DrawFn, document: Any) -> Any:
    """Draw a document with one value, at whatever place, replaced by another."""
    if not isinstance(document, dict | list) or not document or draw(st.integers(0, 4)) == 0:
        return draw(JSON)
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = draw(st.sampled_from(keys))
    changed = draw(spoilt(document[key]))
    if isinstance(document, dict):
        return document | {key: changed}
    return [changed if place == key else one for place, one in enumerate(document)]


@pytest.mark.parametrize("source", VECTORS)
@given(data=st.data())
def test_a_spoilt_document_is_applied_once_or_refused_with_a_place(
    source: str, data: st.DataObject
):
    documents = [*VECTORS[source]]
    place = data.draw(st.sampled_from(range(len(documents))))
    documents[place] = data.draw(spoilt(documents[place]))
    contents = {str(number): json.dumps(one).encode() for number, one in enumerate(documents)}
    problems = []
    try:
        decoded = {name: reading.decoded(content, name) for name, content in contents.items()}
        spoilt_topology = catalogue.SOURCES[source](decoded)
    except TopologyError as error:
        problems = error.problems
    else:
        apply(spoilt_topology, joins=True)
        assert not apply(spoilt_topology, joins=True)
    assert all(problem[0].isdigit() or problem.startswith("and ") for problem in problems)
