"""`manage.py load_registry`: what a file changes, and what a bad one says."""

from collections.abc import Iterable
from datetime import time
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sonar.models import (
    Credential,
    CriteriaSet,
    Endpoint,
    Mesh,
    Site,
    SizeClass,
    Target,
    Version,
)
from sonar.registry.file.loading import FIELDS
from sonar.registry.file.sections import RegistryFile
from tests.matrix.world import NOW

pytestmark = pytest.mark.django_db

GOOD = """\
sites:
  - {name: GLASGOW, cloud: UK, tier: 2, country: GB, latitude: 55.9, longitude: -4.3, wan_gbit_s: 6}
  - {name: RAL, cloud: UK, tier: 1, country: GB}
endpoints:
  - name: GLASGOW_DATADISK
    site: GLASGOW
    label: DATADISK
    base_url: https://glasgow.example:1094/data
    inbound_cap: 4
    credential: glasgow
  - name: RAL_DATADISK
    site: RAL
    base_url: davs://ral.example/data
meshes:
  - name: uk
    mode: push
    sources: [GLASGOW_DATADISK]
    every: {small: 10m, large: 6h}
    quiet_hours: "23:00-04:30"
    scitag: 2/11
credentials:
  - {name: glasgow, hosts: [glasgow.example]}
"""


def load(tmp_path: Path, text: str, *options: str) -> str:
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    out = StringIO()
    call_command("load_registry", str(path), *options, stdout=out)
    return out.getvalue()


def errors(tmp_path: Path, text: str) -> str:
    """Load a bad file; return what was said, after making sure that nothing changed."""
    before = snapshot()
    with pytest.raises(CommandError) as caught:
        load(tmp_path, text)
    assert snapshot() == before
    assert "nothing was changed" in str(caught.value)
    return str(caught.value)


def snapshot() -> list[list[object]]:
    return [
        list(kind.objects.order_by("id").values()) for kind in (Site, Endpoint, Mesh, SizeClass)
    ]


def test_a_file_is_loaded_whole_and_says_what_it_added(tmp_path):
    said = load(tmp_path, GOOD)
    assert "added: 2 sites: GLASGOW, RAL" in said
    assert "added: 2 endpoints: GLASGOW_DATADISK, RAL_DATADISK" in said
    assert "added: 1 mesh: uk" in said
    glasgow = Endpoint.objects.get(name="GLASGOW_DATADISK")
    assert (glasgow.site.name, glasgow.inbound_cap, glasgow.outbound_cap) == ("GLASGOW", 4, 2)
    uk = Mesh.objects.get(name="uk")
    assert (uk.mode, list(uk.sources.all()), uk.destinations.count()) == ("push", [glasgow], 0)
    assert {one.size_class.name: one.every_seconds for one in uk.intervals.all()} == {
        "small": 600,
        "large": 21600,
    }
    assert (str(uk.quiet_from), uk.scitag) == ("23:00:00", 139)


def test_quiet_hours_of_a_site_stay_unless_the_file_speaks_of_them(tmp_path):
    with_hours = GOOD.replace("wan_gbit_s: 6}", 'wan_gbit_s: 6, quiet_hours: "22:00-04:00"}')
    load(tmp_path, with_hours)
    glasgow = Site.objects.filter(name="GLASGOW")
    assert glasgow.get().quiet_hours == "22:00-04:00"
    assert "changed" not in load(tmp_path, with_hours)
    assert "changed" not in load(tmp_path, GOOD)
    assert glasgow.get().quiet_hours == "22:00-04:00"
    load(tmp_path, with_hours.replace('"22:00-04:00"', "null"))
    assert glasgow.get().quiet_hours is None


def test_loading_it_again_or_what_does_not_name_it_changes_nothing(tmp_path):
    load(tmp_path, GOOD)
    before, version = snapshot(), Version.objects.get(name="registry").value
    said = load(tmp_path, GOOD)
    assert "added" not in said
    assert "changed" not in said
    assert "as before: 2 endpoints" in said
    assert snapshot() == before
    assert Version.objects.get(name="registry").value == version
    load(tmp_path, "sites: [{name: LANCS}]")
    assert Endpoint.objects.count() == 2


def test_a_changed_value_changes_its_row_only_and_an_interval_or_member_its_mesh(tmp_path):
    load(tmp_path, GOOD)
    said = load(tmp_path, GOOD.replace("inbound_cap: 4", "inbound_cap: 5"))
    assert "changed: endpoint GLASGOW_DATADISK: inbound_cap 4 -> 5" in said
    assert "as before: 1 endpoint: RAL_DATADISK" in said
    said = load(tmp_path, GOOD.replace("10m", "20m"))
    assert "changed: mesh uk: every large=6h small=10m -> large=6h small=20m" in said
    assert "1 mesh" not in said.partition("as before")[2]
    all_sources = GOOD.replace("sources: [GLASGOW_DATADISK]", "sources: all").replace("10m", "20m")
    assert "changed: mesh uk: sources GLASGOW_DATADISK -> all" in load(tmp_path, all_sources)


def test_an_endpoint_is_retired_and_comes_back(tmp_path):
    load(tmp_path, GOOD)
    retired = GOOD.replace("    credential: glasgow", "    credential: glasgow\n    retired: true")
    load(tmp_path, retired)
    when = Endpoint.objects.get(name="GLASGOW_DATADISK").retired_at
    assert when
    load(tmp_path, retired)
    assert Endpoint.objects.get(name="GLASGOW_DATADISK").retired_at == when
    load(tmp_path, GOOD)
    assert Endpoint.objects.get(name="GLASGOW_DATADISK").retired_at == when
    load(tmp_path, retired.replace("retired: true", "retired: false"))
    assert Endpoint.objects.get(name="GLASGOW_DATADISK").retired_at is None


def test_a_size_class_that_cannot_be_is_refused_in_words(tmp_path):
    for name, start, why in (
        ("compare", 0, "query parameters use this name as a prefix"),
        ("'16'", 0, "it would be read as a number"),
        ("small", 5, "the first size class, small, must start at 0 bytes"),
    ):
        text = f"size_classes: [{{name: {name}, from_bytes: {start}, test_bytes: 10}}]"
        assert why in errors(tmp_path, text)


def test_size_classes_are_configuration(tmp_path):
    tiny, small = "name: tiny, from_bytes: 0, test_bytes: 1000", "name: small, from_bytes: 10000000"
    load(tmp_path, f"size_classes: [{{{tiny}}}, {{{small}, test_bytes: 20000000}}]")
    begins = dict(SizeClass.objects.values_list("name", "from_bytes"))
    assert begins == {"tiny": 0, "small": 10**7, "medium": 10**8, "large": 10**9}


SCHEME = "endpoints[0].base_url (line 8):"
BAD = [
    ("tier: 1", "tier: 5", "sites[1].tier (line 3): Ensure this value is less than or equal to 3"),
    ("tier: 1", "tier: one", "sites[1].tier (line 3): Input should be a valid integer"),
    ("site: RAL", "site: RALL", "endpoints[1].site (line 12): site 'RALL' is not registered"),
    ("cap: 4", "cap: 0", "endpoints[0].inbound_cap (line 9): Ensure this value"),
    ("https://glasgow", "https://me:secret@glasgow", f"{SCHEME} Enter a base URL as scheme://"),
    ("glasgow.example:1094", "[", f"{SCHEME} A base URL needs a host"),
    ("example:1094", "example:70000", f"{SCHEME} A base URL needs a host"),
    ("https://glasgow", "file://glasgow", f"{SCHEME} Enter a base URL as"),
    ("davs://ral.example/data", "https://glasgow.example:1094/data", "endpoints[1].base_url"),
    ("mode: push", "mode: shove", "meshes[0].mode (line 16): Value 'shove' is not a valid"),
    ("mode: push", "mover: warp", "meshes[0].mover (line 16): 'warp' is not a transfer tool"),
    ("mode: push", "modus: push", "meshes[0].modus (line 16): Extra inputs are not permitted"),
    ("10m", "10x", "meshes[0].every.small (line 18): '10x' is not a duration"),
    ("10m", "9999999d", "meshes[0].every.small (line 18): '9999999d' is too long"),
    (
        "small: 10m",
        "tiny: 1m",
        "meshes[0].every.tiny (line 18): size class 'tiny' is not registered",
    ),
    ("23:00-04:30", "all night", "meshes[0].quiet_hours (line 19): write quiet hours in UTC"),
    ("2/11", "139", "meshes[0].scitag (line 20): write a flow label as experiment/activity, for"),
    ("2/11", "2/64", "meshes[0].scitag (line 20): write a flow label"),
    ("23:00-04:30", "25:00-26:00", "meshes[0].quiet_hours (line 19): "),
    (
        "[GLASGOW_DATADISK]",
        "[NOWHERE]",
        "meshes[0].sources[0] (line 17): endpoint 'NOWHERE' is not",
    ),
    (
        "[GLASGOW_DATADISK]",
        "{klout: UK}",
        "meshes[0].sources.klout (line 17): “klout” is not an attribute",
    ),
    (
        "[GLASGOW_DATADISK]",
        "{cloud: UK, country: NO}",
        "sources.country (line 17): “country” must be a string",
    ),
    (
        "[GLASGOW_DATADISK]",
        "{cloud: !UK }",
        "line 17: not valid YAML: could not determine a constructor",
    ),
    (
        "[GLASGOW_DATADISK]",
        "some",
        'meshes[0].sources (line 17): write "all", a list of endpoint names',
    ),
    ("[GLASGOW_DATADISK]", "[]", 'meshes[0].sources (line 17): list endpoints, or write "all"'),
    ("name: RAL_DATADISK", "name: GLASGOW_DATADISK", "GLASGOW_DATADISK appears twice"),
    ("    label: DATADISK", "    site: RAL", "'site' appears twice in one mapping (line 7)"),
    ("sites:", "sights:", "sights (line 2): Extra inputs are not permitted"),
    ("mode: push", "mode: [push", "not valid YAML"),
]


@pytest.mark.parametrize(("old", "new", "said"), BAD)
def test_a_bad_file_changes_nothing_and_names_the_place(tmp_path, old: str, new: str, said: str):
    told = errors(tmp_path, GOOD.replace(old, new, 1))
    assert said in told
    assert "secret" not in told


def test_every_error_is_named_not_only_the_first(tmp_path):
    said = errors(tmp_path, GOOD.replace("tier: 1", "tier: 5").replace("cap: 4", "cap: 0"))
    assert "sites[1].tier" in said
    assert "endpoints[0].inbound_cap" in said


def test_an_empty_or_missing_file_is_one_sentence(tmp_path):
    assert "the file is empty" in errors(tmp_path, "# nothing\n")
    assert "the file (line 1)" in errors(tmp_path, "- a\n- b\n")  # no mapping
    with pytest.raises(CommandError, match="Cannot read"):
        call_command("load_registry", str(tmp_path / "none.yaml"))


def test_a_mesh_whose_mover_does_not_fit_an_endpoint_that_it_names_is_an_error_of_its_place(
    tmp_path: Path,
):
    told = errors(tmp_path, GOOD.replace("https://glasgow", "root://glasgow"))
    place = "meshes[0].mover (line 15): The mesh uk cannot be saved. The transfer tool http-tpc"
    schemes = "supports the URL schemes dav, davs, http, https"
    assert f"{place} {schemes}, not those of GLASGOW_DATADISK (root)." in told


def test_a_mesh_of_every_endpoint_may_stand_beside_endpoints_that_it_does_not_fit(tmp_path: Path):
    load(tmp_path, GOOD.replace("davs://ral", "gsiftp://ral"))
    assert Endpoint.objects.filter(base_url__startswith="gsiftp:").exists()


def test_a_mesh_that_fits_no_endpoint_at_all_is_an_error(tmp_path: Path):
    both = GOOD.replace("davs://ral", "root://ral").replace("https://glasgow", "root://glasgow")
    told = errors(tmp_path, both.replace("sources: [GLASGOW_DATADISK]", "sources: all"))
    assert "The mesh uk would test nothing" in told
    assert "the endpoints in use have root." in told


def test_a_base_url_that_a_mesh_of_another_file_does_not_fit_is_an_error_of_its_place(
    tmp_path: Path,
):
    load(tmp_path, GOOD)
    endpoints, _, meshes = GOOD.replace("https://glasgow", "root://glasgow").partition("meshes:")
    told = errors(tmp_path, endpoints)
    assert (
        "endpoints[0].base_url (line 8): GLASGOW_DATADISK cannot have a base URL with root" in told
    )
    assert "uk (http-tpc)" in told
    # Both together, mesh and endpoint, are judged as they are in the end.
    load(tmp_path, f"{endpoints}meshes:{meshes}".replace("[GLASGOW_DATADISK]", "[RAL_DATADISK]"))
    assert Endpoint.objects.get(name="GLASGOW_DATADISK").base_url.startswith("root:")


def test_a_retired_endpoint_is_judged_when_it_comes_back(tmp_path: Path):
    retired = GOOD.replace("inbound_cap: 4", "inbound_cap: 4\n    retired: true")
    retired = retired.replace("https://glasgow", "root://glasgow")
    load(tmp_path, retired.replace("destinations: all", "destinations: [RAL_DATADISK]"))
    back = retired.replace("retired: true", "retired: false").partition("meshes:")[0]
    assert "GLASGOW_DATADISK cannot have a base URL with root" in errors(tmp_path, back)


# Each field of a registry file that pages or the API can set, with another value than the file's.
ON_PAGES = {
    "size_classes": ("large", {"timeout_seconds": 60}),
    "sites": (
        "RAL",
        {
            "cloud": "FR",
            "tier": 3,
            "country": "FR",
            "tags": ["own"],
            "latitude": 1.5,
            "longitude": 2.5,
            "wan_gbit_s": 40.0,
            "quiet_from": time(1),
            "quiet_until": time(2),
        },
    ),
    "credentials": ("ral", {"to_data_hosts": True}),
    "endpoints": (
        "RAL_DATADISK",
        {
            "label": "OWN",
            "software": "XRootD 5.9",
            "tags": ["own"],
            "inbound_cap": 7,
            "outbound_cap": 8,
            "budget_bytes_per_day": 10**11,
            "credential": "ral",
            "credential_lent": "reading",
            "lend_credential": True,
            "data_hosts": ["st-1.ral.example"],
            "vantage": "uk",
            "enabled": False,
            "retired_at": NOW,
        },
    ),
    "meshes": (
        "uk",
        {
            "enabled": False,
            "mode": "push",
            "streams": 4,
            "scitag": 139,
            "priority": 9,
            "vantage": "uk",
            "sources_filter": {"cloud": ["UK"]},
            "destinations_filter": {"cloud": ["UK"]},
            "quiet_from": time(1),
            "quiet_until": time(2),
            "bytes_per_hour": 10**9,
        },
    ),
    "criteria_sets": ("DDT", {"least_success_percent": 90.0, "least_bytes": 10**9}),
    "targets": ("fast", {"enabled": False, "priority": 9, "failures": 4}),
}
SHORT = """\
size_classes: [{name: small, from_bytes: 0, test_bytes: 1000000},
  {name: large, from_bytes: 1000000000, test_bytes: 2000000000}]
sites: [{name: RAL}]
credentials: [{name: ral, hosts: [ral.example]}, {name: reading, hosts: [ral.example]}]
endpoints: [{name: RAL_DATADISK, site: RAL, base_url: "davs://ral.example/data"}]
meshes: [{name: uk, every: {large: 6h}}]
criteria_sets: [{name: DDT, size: large, period_hours: 24, least_tests: 6, least_mb_s: 20}]
targets: [{name: fast, floor: 20 MB/s}]
"""
MODELS = {
    "size_classes": SizeClass,
    "sites": Site,
    "credentials": Credential,
    "endpoints": Endpoint,
    "meshes": Mesh,
    "criteria_sets": CriteriaSet,
    "targets": Target,
}
# Which row a field tells from others, or which the file must have.
NEEDED = {"name", "site", "base_url", "from_bytes", "test_bytes", "hosts", "every", "size"} | {
    *("period_hours", "least_tests", "least_mb_s", "floor")
}
# What no page or call sets alone: a mover, a service, and what only some kinds of credentials have.
TOGETHER = {"mover", "tcp_buffer_bytes", "service", "service_credential", "kind", "issuer"} | {
    *("client_id", "audience", "path_prefix", "scope", "simulated", "size_class", "mesh"),
    *("below", "above", "silent_after", "sources", "destinations"),
}


def as_fields(columns: Iterable[str]) -> set[str]:
    return {FIELDS.get(column, column) for column in columns}


@pytest.mark.parametrize("kind", ON_PAGES)
def test_what_the_file_leaves_out_stays_as_pages_have_set_it(tmp_path: Path, kind: str):
    load(tmp_path, SHORT)
    name, values = ON_PAGES[kind]
    section = RegistryFile.model_fields[kind].annotation.__args__[0]
    assert as_fields(values) | NEEDED | TOGETHER >= section.model_fields.keys()
    for key in ("credential", "credential_lent") if kind == "endpoints" else ():
        values = values | {key: Credential.objects.get(name=values[key])}
    row = MODELS[kind].objects.get(name=name)
    for column, value in values.items():
        assert getattr(row, column) != value, column
        setattr(row, column, value)
    row.save()
    before = MODELS[kind].objects.filter(name=name).values().get()
    said = load(tmp_path, SHORT)
    assert "changed" not in said
    assert MODELS[kind].objects.filter(name=name).values().get() == before


CAPPED = GOOD.replace("ral.example/data", "ral.example/data\n    inbound_cap: 2")


def test_a_field_that_the_file_states_as_before_stays_as_pages_have_set_it(tmp_path: Path):
    load(tmp_path, CAPPED)
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    ral.inbound_cap, ral.base_url = 5, "davs://ral2.example/data"
    ral.save()
    uk = Mesh.objects.get(name="uk")
    uk.intervals.update(every_seconds=60)
    uk.sources.clear()
    assert "changed" not in load(tmp_path, CAPPED)
    ral.refresh_from_db()
    assert (ral.inbound_cap, ral.base_url) == (5, "davs://ral2.example/data")
    assert {step.every_seconds for step in uk.intervals.all()} == {60}
    assert not uk.sources.exists()


def test_a_field_that_changed_in_the_file_is_set_and_others_are_not(tmp_path: Path):
    load(tmp_path, CAPPED)
    Endpoint.objects.filter(name="RAL_DATADISK").update(inbound_cap=5, outbound_cap=7)
    said = load(tmp_path, CAPPED.replace("inbound_cap: 2", "inbound_cap: 3"))
    assert "changed: endpoint RAL_DATADISK: inbound_cap 5 -> 3" in said.splitlines()
    assert Endpoint.objects.get(name="RAL_DATADISK").outbound_cap == 7
    # A load that is refused does not count as the last one.
    with pytest.raises(CommandError):
        load(tmp_path, CAPPED.replace("inbound_cap: 2", "inbound_cap: 4").replace("UK", "x" * 99))
    said = load(tmp_path, CAPPED.replace("inbound_cap: 2", "inbound_cap: 4"))
    assert "changed: endpoint RAL_DATADISK: inbound_cap 3 -> 4" in said.splitlines()


def test_reset_takes_back_what_pages_have_set(tmp_path: Path):
    load(tmp_path, CAPPED)
    Endpoint.objects.filter(name="RAL_DATADISK").update(inbound_cap=5)
    said = load(tmp_path, CAPPED, "--reset")
    assert "changed: endpoint RAL_DATADISK: inbound_cap 5 -> 2" in said.splitlines()


def test_members_and_sections_that_a_mesh_leaves_out_stay(tmp_path: Path):
    load(tmp_path, GOOD)
    uk = Mesh.objects.get(name="uk")
    uk.destinations.set(Endpoint.objects.filter(name="RAL_DATADISK"))
    load(tmp_path, GOOD)
    assert [end.name for end in uk.destinations.all()] == ["RAL_DATADISK"]


def test_it_says_which_fields_it_changed_from_what_to_what(tmp_path: Path):
    load(tmp_path, GOOD)
    Endpoint.objects.filter(name="RAL_DATADISK").update(budget_bytes_per_day=10**11)
    text = GOOD.replace("ral.example/data", "ral.example/data\n    budget_bytes_per_day: null")
    text = text.replace("mode: push", "mode: pull").replace("large: 6h", "large: 1h")
    text = text.replace("23:00-04:30", "23:00-05:30").replace("[GLASGOW_DATADISK]", "all")
    text = text.replace("cloud: UK, tier: 1", "cloud: UK, tier: 2, tags: [atlas, t1]")
    lines = load(tmp_path, text).splitlines()
    assert "changed: site RAL: tier 1 -> 2, tags none -> atlas t1" in lines
    assert "changed: endpoint RAL_DATADISK: budget_bytes_per_day 100 GB -> none" in lines
    assert (
        "changed: mesh uk: mode push -> pull, quiet_hours 04:30 -> 05:30, sources "
        "GLASGOW_DATADISK -> all, every large=6h small=10m -> large=1h small=10m"
    ) in lines
