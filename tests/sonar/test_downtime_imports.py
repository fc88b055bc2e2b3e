"""Downtimes from elsewhere: whom they concern, what follows them, and sources that fail."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from pytest_django import DjangoAssertNumQueries, Settings

from sonar import scheduler, tasks
from sonar import settings as project
from sonar.models import Annotation, Downtime, DowntimeSource, Endpoint, Schedule, UnknownAlias
from sonar.obstacles.catalogue import Down
from sonar.obstacles.obstacle import RunConditions
from sonar.registry import aliases
from sonar.registry.cache import registry_version
from sonar.registry.downtimes import importing, pages, state
from sonar.registry.downtimes.importing import NotImported
from tests.sonar import downtimes as written
from tests.sonar.downtimes import Feed, gocdb, gocdb_downtime, osg, osg_downtime
from tests.sonar.world import NOW, endpoint, mesh, ordered

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def feed(settings: Settings) -> Iterator[Feed]:
    """A source on loopback that is set as GOCDB."""
    with written.serving() as feed:
        settings.SONAR_GOCDB_URL = feed.url
        yield feed


def site_of_two() -> tuple[Endpoint, Endpoint]:
    first = endpoint("GLASGOW", base_url="davs://Disk.gla.example.org:443/data")
    second = Endpoint.objects.create(
        name="GLASGOW_TAPE", site=first.site, base_url="davs://tape.gla.example.org/data"
    )
    return first, second


def take(tmp_path: Path, content: bytes, origin: str = "gocdb", hours: int = 0):
    """Import a file so many hours after NOW."""
    path = tmp_path / "downtimes.xml"
    path.write_bytes(content)
    return importing.import_from(origin, str(path), NOW + hours * HOUR)


def kept() -> set[tuple[str, str, str]]:
    return {(row.key, row.subject, row.severity) for row in Downtime.objects.exclude(origin="hand")}


def lasting(key: str, host: str, **others: object) -> str:
    return gocdb_downtime(key, host, NOW - HOUR, NOW + HOUR, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("services", "rows"),
    [
        # One endpoint of a site, all of them, and a site of one.
        ([("disk.gla.example.org", "webdav")], {("GLASGOW_DATADISK", "outage")}),
        (
            [("DISK.gla.example.org.", "SRM"), ("tape.gla.example.org", "XRootD")],
            {("GLASGOW", "outage")},
        ),
        ([("se.lancs.example.org", "globus-GRIDFTP")], {("LANCS", "outage")}),
        # What is no storage stops no storage, at whatever host it is.
        ([("disk.gla.example.org", "ARC-CE"), ("tape.gla.example.org", "Squid")], set()),
        ([("disk.gla.example.org", "XRootD cache server")], set()),
        ([("disk.gla.example.org", "org.dcache.webdav")], {("GLASGOW_DATADISK", "outage")}),
        # Tape stops no disk.
        *[
            ([("disk.gla.example.org", kind)], set())
            for kind in ("wlcg.webdav.tape", "SRM.nearline", "SRMv2.tape", "WebDAV.tape")
        ],
        (
            [("disk.gla.example.org", "wlcg.xrootd.tape"), ("se.lancs.example.org", "SRM.tape")],
            set(),
        ),
        (
            [("disk.gla.example.org", "SRM.nearline"), ("disk.gla.example.org", "SRM")],
            {("GLASGOW_DATADISK", "outage")},
        ),
        ([("st-07.lancs.example.org", "wlcg.webdav.tape")], set()),
        ([("se.lancs.example.org", "net.perfSONAR.Bandwidth")], set()),
        ([("elsewhere.example.org", "webdav")], set()),
        # The network is tested by perfSONAR's.
        ([("ps.ral.example.org", "net.perfSONAR.Bandwidth")], {("RAL", "outage")}),
        ([("ps.ral.example.org", "webdav")], set()),
        # One of several data hosts.
        ([("st-07.lancs.example.org", "webdav")], {("LANCS", "warning")}),
        (
            [("st-07.lancs.example.org", "webdav"), ("se.lancs.example.org", "webdav")],
            {("LANCS", "outage")},
        ),
        ([("192.0.2.77", "webdav")], {("LANCS", "warning")}),
    ],
)
def test_a_downtime_is_of_those_endpoints_whose_storage_it_names(
    tmp_path: Path, services: list[tuple[str, str]], rows: set[tuple[str, str]]
):
    site_of_two()
    data_hosts = ["st-*.lancs.example.org:8443", "192.0.2.0/24"]
    endpoint("LANCS", base_url="davs://se.lancs.example.org/", data_hosts=data_hosts)
    endpoint("RAL", base_url="iperf3://ps.ral.example.org")
    retired = endpoint("OLD", base_url="davs://elsewhere.example.org/", retired_at=NOW)
    elements = [lasting("7G0", host, kind=kind) for host, kind in services]
    outcome = take(tmp_path, gocdb(*elements))
    assert {(subject, severity) for _, subject, severity in kept()} == rows
    assert outcome.concerned == bool(rows)
    assert retired.id not in Downtime.endpoints_down(NOW)


SITE_DOORS = {
    "A_DISK": "https://door.example.org:2880/disk/sonar",
    "A_SCRATCH": "https://door.example.org:2880/scratch/sonar",
    "A_OTHER": "davs://door.example.org:8443/disk",
    "A_ROOT": "root://door.example.org:1094//disk",
    "B_DISK": "https://other.example.org:2880/disk",
}


@pytest.mark.parametrize(
    ("kind", "named", "down"),
    [
        ("webdav", [], {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"}),
        # The port and the protocol.
        ("webdav", ["https://door.example.org:8443"], {"A_OTHER"}),
        ("webdav", ["davs://DOOR.example.org:2880/"], {"A_DISK", "A_SCRATCH"}),
        ("xrootd", ["root://door.example.org//"], {"A_ROOT"}),
        ("webdav", ["https://door.example.org:1/"], set()),
        # A path, if it is that of one of them; a path that only monitoring uses is of all.
        ("webdav", ["https://door.example.org:2880/scratch"], {"A_SCRATCH"}),
        ("webdav", ["https://door.example.org:2880/ops/probe"], {"A_DISK", "A_SCRATCH"}),
        ("webdav", ["https://door.example.org/ops"], {"A_DISK", "A_SCRATCH", "A_OTHER"}),
        # Another host than that of the service.
        ("webdav", ["https://other.example.org:2880/disk"], {"B_DISK"}),
        ("webdav", ["https://third.example.org/"], set()),
        # SRM leads to every door of its host, and so does what is no URL.
        (
            "SRM",
            ["httpg://door.example.org:8443/srm/managerv2"],
            {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"},
        ),
        (
            "SRM",
            ["https://door.example.org:8443/srm/managerv2"],
            {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"},
        ),
        ("webdav", ["door.example.org:2880"], {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"}),
        (
            "webdav",
            ["https://[::1", "https://door.example.org:x"],
            {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"},
        ),
        # Tape by its path.
        ("webdav", ["https://door.example.org:2880/tape"], set()),
        (
            "SRM",
            [
                "httpg://door.example.org:8443/srm/managerv2?SFN=/x",
                "https://door.example.org/atlas/mctape",
            ],
            {"A_DISK", "A_SCRATCH", "A_OTHER", "A_ROOT"},
        ),
    ],
)
def test_a_downtime_that_names_endpoints_of_a_service_is_of_no_others(
    tmp_path: Path, kind: str, named: list[str], down: set[str]
):
    site = endpoint("B", base_url="https://elsewhere.example.org/").site
    for name, base_url in SITE_DOORS.items():
        Endpoint.objects.create(name=name, site=site, base_url=base_url)
    urls = [(url, kind) for url in named]
    take(tmp_path, gocdb(lasting("7G0", "door.example.org", kind=kind, named=urls)))
    assert {subject for _, subject, _ in kept()} == down


@pytest.mark.parametrize(
    ("interface", "down"), [("wlcg.webdav.tape", set()), ("webdav", {"GLASGOW_DATADISK"})]
)
def test_a_named_endpoint_is_tape_by_its_interface(tmp_path: Path, interface: str, down: set[str]):
    site_of_two()
    named = [("https://disk.gla.example.org/", interface)]
    take(tmp_path, gocdb(lasting("7G0", "disk.gla.example.org", named=named)))
    assert {subject for _, subject, _ in kept()} == down


def osg_services(*services: tuple[str, str]) -> str:
    return "".join(
        f"<Service><ID>1</ID><Name>{name}</Name><Description>{words}</Description></Service>"
        for name, words in services
    )


@pytest.mark.parametrize(
    ("services", "down"),
    [
        ([("SRMv2.tape", ""), ("WebDAV.tape", "")], set()),
        ([("SRMv2.tape", ""), ("WebDAV.disk", "")], {"GLASGOW_DATADISK"}),
        ([("WebDAV", "Tape door")], set()),
        ([("WebDAV", "disk and tape")], {"GLASGOW_DATADISK"}),
        ([("Pelican cache", ""), ("XRootD cache server", "")], set()),
        ([("Pelican origin", "")], {"GLASGOW_DATADISK"}),
    ],
)
def test_a_resource_of_osg_is_of_disk_by_one_of_its_services(
    tmp_path: Path, services: list[tuple[str, str]], down: set[str]
):
    first, _ = site_of_two()
    aliases.assign("osg_resource", "AGLT2_SE", first)
    for host in ("disk.gla.example.org", "elsewhere.example.org"):
        row = osg_downtime(7, host, NOW, NOW + HOUR, Services=osg_services(*services))
        take(tmp_path, osg(row), "osg")
        assert {subject for _, subject, _ in kept()} == down


def test_what_was_announced_stays_while_its_element_cannot_be_read(tmp_path: Path):
    site_of_two()
    endpoint("LANCS", base_url="davs://se.lancs.example.org/")
    first, second, third = (
        ("7G0", "disk.gla.example.org"),
        ("8G0", "tape.gla.example.org"),
        ("9G0", "se.lancs.example.org"),
    )
    take(tmp_path, gocdb(lasting(*first), lasting(*second), lasting(*third)))
    odd = lasting(*first, severity="Bad")
    outcome = take(tmp_path, gocdb(odd, lasting(*third)), hours=1)
    assert {key for key, *_ in kept()} == {"7G0", "9G0"}
    assert outcome.changes.words == "0 new, 0 changed, 1 withdrawn, 2 unchanged"
    # An element that does not say which downtime it is of may be of any.
    outcome = take(tmp_path, gocdb(lasting("", "x.example.org"), lasting(*second)), hours=2)
    assert {key for key, *_ in kept()} == {"7G0", "8G0", "9G0"}
    take(tmp_path, gocdb(lasting(*second)), hours=3)
    assert {key for key, *_ in kept()} == {"8G0"}


def test_an_outage_stops_tests_of_its_endpoint_alone_and_a_warning_stops_none(tmp_path: Path):
    first, second = site_of_two()
    lancs = endpoint("LANCS", base_url="davs://se.lancs.example.org/")
    ral = endpoint("RAL", base_url="davs://se.ral.example.org/")
    take(
        tmp_path,
        gocdb(
            lasting("7G0", "disk.gla.example.org"),
            lasting("8G0", "se.lancs.example.org", severity="WARNING"),
        ),
    )
    assert Downtime.endpoints_down(NOW) == {first.id}
    assert list(Downtime.of_endpoints(NOW, Downtime.Severity.WARNING)) == [lancs]
    mesh(mover="http-tpc")
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="downtime")
    assert held.count() == 18  # of 36 tests
    assert all(first.id in (row.source_id, row.destination_id) for row in held)
    probe = ordered(second, ral, "http-tpc")
    assert not list(Down().blocks(RunConditions(NOW), probe))


def test_it_is_followed_as_it_is_extended_shortened_and_withdrawn(tmp_path: Path):
    site_of_two()
    note = Annotation.objects.create(
        site_id=Endpoint.objects.first().site_id, text="a", starts_at=NOW
    )
    by_hand = Downtime.objects.create(
        site=note.site, starts_at=NOW, ends_at=NOW + HOUR, reason="by hand"
    )
    past = gocdb_downtime("5G0", "tape.gla.example.org", NOW - 9 * DAY, NOW - 8 * DAY)
    take(tmp_path, gocdb(past, lasting("7G0", "disk.gla.example.org")))
    row = Downtime.objects.get(key="7G0")
    for hours, ends_at in ((1, NOW + 5 * HOUR), (2, NOW + 2 * HOUR)):
        content = gocdb(gocdb_downtime("7G0", "disk.gla.example.org", NOW - HOUR, ends_at))
        outcome = take(tmp_path, content, hours=hours)
        assert outcome.changes.words == "0 new, 1 changed, 0 withdrawn, 0 unchanged"
        row.refresh_from_db()  # the same row
        assert row.ends_at == ends_at
    # From one endpoint to the whole site.
    both = [lasting("7G0", host) for host in ("disk.gla.example.org", "tape.gla.example.org")]
    take(tmp_path, gocdb(*both), hours=3)
    assert kept() == {("5G0", "GLASGOW_TAPE", "outage"), ("7G0", "GLASGOW", "outage")}
    take(tmp_path, gocdb(), hours=4)
    # What is long over was not asked for; what people wrote is theirs.
    assert kept() == {("5G0", "GLASGOW_TAPE", "outage")}
    assert Downtime.objects.filter(pk=by_hand.pk).exists()
    assert Annotation.objects.filter(pk=note.pk).exists()


def test_the_same_answer_changes_no_version_and_an_older_one_nothing(
    tmp_path: Path, django_assert_num_queries: DjangoAssertNumQueries
):
    site_of_two()
    content = gocdb(lasting("7G0", "disk.gla.example.org"))
    take(tmp_path, content, hours=2)
    version = registry_version()
    # Of transactions 6, the source 3; endpoints, aliases and rows are read, old names forgotten.
    with django_assert_num_queries(14):
        take(tmp_path, content, hours=3)
    assert registry_version() == version
    with pytest.raises(importing.Overtaken):
        take(tmp_path, gocdb(), hours=1)
    assert kept() == {("7G0", "GLASGOW_DATADISK", "outage")}


def test_aliases_are_followed_and_names_that_stand_for_nothing_noted(tmp_path: Path):
    first, second = site_of_two()
    aliases.assign("se_host", "dpm.gla.example.org", first)
    aliases.assign("osg_resource", "AGLT2_SE", second)
    content = gocdb(
        lasting("7G0", "DPM.gla.example.org"),
        lasting("8G0", "dpm.example.org", kind="SRM"),
        lasting("9G0", "ce.example.org", kind="ARC-CE"),
        # What OSG calls a resource is none of GOCDB's sites.
        lasting("10G0", "ps.example.org", kind="net.perfSONAR.Latency", HOSTED_BY="AGLT2_SE"),
    )
    take(tmp_path, content)
    take(tmp_path, osg(osg_downtime(7, "x.example.org", NOW, NOW + HOUR)), "osg")
    assert kept() == {("7G0", "GLASGOW_DATADISK", "outage"), ("7", "GLASGOW_TAPE", "outage")}
    assert set(UnknownAlias.objects.values_list("kind", "name", "source")) == {
        ("se_host", "dpm.example.org", "gocdb"),
        ("gocdb_site", "UKI-SCOTGRID-GLASGOW", "gocdb"),
        ("perfsonar_host", "ps.example.org", "gocdb"),
        ("gocdb_site", "AGLT2_SE", "gocdb"),
    }


def test_each_source_has_its_own_downtimes(tmp_path: Path):
    site_of_two()
    take(tmp_path, gocdb(lasting("7", "disk.gla.example.org")))
    us = osg_downtime(7, "tape.gla.example.org", NOW - HOUR, NOW + HOUR, Severity="Severe")
    take(tmp_path, osg(us), "osg")
    assert {row.origin for row in Downtime.objects.all()} == {"gocdb", "osg"}
    take(tmp_path, osg(), "osg", hours=1)
    assert kept() == {("7", "GLASGOW_DATADISK", "outage")}


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        (500, "the server responded with 500"),
        (
            b"<results><error>No method</error></results>",
            "the source reports an error: “No method”",
        ),
        (gocdb(lasting("7G0", "a.example.org"))[:-30], "not valid XML: "),
        (
            gocdb(lasting("7G0", "a.example.org", SEVERITY="BAD")),
            "DOWNTIME 1 (7G0), SEVERITY: “BAD”",
        ),
        (gocdb(lasting("", "a.example.org")), "DOWNTIME 1, PRIMARY_KEY: missing or empty"),
        (None, "no answer within 0.3 s"),
        ("http://127.0.0.2:1/gocdbpi/public/", "the server redirects to a host that is not"),
    ],
)
def test_a_source_that_fails_changes_nothing_and_says_so(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, says: bytes | int | str | None, sentence: str
):
    site_of_two()
    feed.then = gocdb(lasting("7G0", "disk.gla.example.org"))
    importing.import_all(NOW)
    before = kept()
    assert before
    feed.then = says
    with monkeypatch.context() as patched:
        if says is None:
            patched.setattr(pages, "LIMITS", replace(pages.LIMITS, answer=0.3))
        importing.import_all(NOW + 2 * HOUR)
    assert kept() == before
    (source,) = state.states(NOW + 2 * HOUR)
    assert sentence in source.error
    assert (source.answered_at, source.asked_at) == (NOW, NOW + 2 * HOUR)
    assert source.stale
    feed.then = gocdb()
    importing.import_all(NOW + 3 * HOUR)
    (source,) = state.states(NOW + 3 * HOUR)
    assert (source.error, source.stale, source.downtimes) == ("", False, 0)
    assert not kept()


def test_a_source_that_has_died_keeps_no_other_from_being_read(
    feed: Feed, settings: Settings, tmp_path: Path
):
    site_of_two()
    settings.SONAR_GOCDB_URL = "http://127.0.0.1:1/"
    path = tmp_path / "osg.xml"
    path.write_bytes(osg(osg_downtime(7, "tape.gla.example.org", NOW, NOW + HOUR)))
    settings.SONAR_OSG_DOWNTIMES_URL = str(path)
    tasks.import_downtimes()
    assert kept() == {("7", "GLASGOW_TAPE", "outage")}
    assert DowntimeSource.objects.get(origin="gocdb").error
    assert DowntimeSource.objects.get(origin="osg").answered_at


def next_link(href: str) -> str:
    return f'<meta><link rel="self" href="x"/><link rel="next" href="{href}"/></meta>'


def test_pages_are_followed_to_the_last_and_never_to_another_place(feed: Feed):
    site_of_two()
    path = feed.url.removeprefix("http://").partition("/")[2]
    first, second = (
        lasting("7G0", "disk.gla.example.org"),
        lasting("8G0", "tape.gla.example.org"),
    )
    feed.pages = {
        "next_cursor=0": gocdb(first, meta=next_link(f"/{path}?next_cursor=7")),
        "next_cursor=7": gocdb(second, meta=next_link(f"{feed.url}?next_cursor=8")),
        "next_cursor=8": gocdb(meta=next_link(f"/{path}?next_cursor=9")),
    }
    importing.import_all(NOW)
    assert {key for key, *_ in kept()} == {"7G0", "8G0"}
    assert feed.paths[0].endswith(
        "?method=get_downtime&scope=&windowstart=2026-11-17&next_cursor=0"
    )
    assert len(feed.paths) == 3
    for href, sentence in (
        ("https://elsewhere.example.org/gocdbpi/public/?next_cursor=8", "at another URL"),
        (f"/{path}?next_cursor=7", "form a loop"),
    ):
        feed.pages["next_cursor=7"] = gocdb(second, meta=next_link(href))
        with pytest.raises(NotImported, match=sentence):
            importing.import_from("gocdb", feed.url, NOW + HOUR)
    assert {key for key, *_ in kept()} == {"7G0", "8G0"}


def test_nobody_is_asked_unless_a_source_is_set():
    importing.import_all(NOW)
    assert state.states(NOW) == ()


def imported(*arguments: str) -> str:
    out = StringIO()
    call_command("import_downtimes", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_says_what_it_does_and_a_dry_run_does_nothing(tmp_path: Path):
    site_of_two()
    path = tmp_path / "gocdb.xml"
    path.write_bytes(
        gocdb(lasting("7G0", "disk.gla.example.org"), lasting("8G0", "dpm.example.org"))
    )
    said = imported("--from", "gocdb", str(path), "--dry-run")
    assert "GOCDB announces 2 downtimes; 1 affects registered endpoints." in said
    assert "1 new, 0 changed, 0 withdrawn, 0 unchanged (dry run: nothing was changed)." in said
    assert "new  GLASGOW_DATADISK  outage  2026-11-20 03:00 UTC  2026-11-20 05:00 UTC" in said
    assert "No endpoint is registered for 1 storage host: dpm.example.org" in said
    assert not kept()
    assert not DowntimeSource.objects.exists()
    assert "nothing was changed" not in imported("--from", "gocdb", str(path))
    assert kept()
    path.write_bytes(gocdb(lasting("7G0", "disk.gla.example.org", END_DATE=2_524_608_000)))
    said = imported("--from", "gocdb", str(path), "--dry-run")
    assert "2026-11-20 03:00 UTC  until further notice (declared end: 1 Jan 2050 UTC)" in said


def test_the_command_counts_tape_names_network_hosts_as_such_and_says_what_is_left_out(
    tmp_path: Path,
):
    site_of_two()
    path = tmp_path / "gocdb.xml"
    tape = lasting("7G0", "disk.gla.example.org", kind="wlcg.webdav.tape")
    nearline = lasting("8G0", "srm.example.org", kind="SRM.nearline")
    hosts = ("ps-1.example.org", "ps-2.example.org")
    network = [lasting("9G0", host, kind="net.perfSONAR.Latency") for host in hosts]
    odd = lasting("10G0", "disk.gla.example.org", severity="Bad")
    path.write_bytes(gocdb(tape, nearline, *network, odd))
    said = imported("--from", "gocdb", str(path), "--dry-run")
    assert said.splitlines() == [
        "GOCDB announces 3 downtimes; 0 affect registered endpoints.",
        "0 new, 0 changed, 0 withdrawn, 0 unchanged (dry run: nothing was changed).",
        "Skipped downtimes that cannot be read (earlier data is kept):",
        "- DOWNTIME 5 (10G0), SEVERITY: “Bad” is not allowed: use OUTAGE or WARNING",
        "2 downtimes affect only tape services, which are not tested.",
        "No endpoint is registered for 2 perfSONAR hosts: ps-1.example.org, ps-2.example.org",
    ]
    path.write_bytes(gocdb(tape))
    said = imported("--from", "gocdb", str(path), "--dry-run")
    assert "1 downtime affects only tape services, which are not tested." in said


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/nowhere/gocdb.xml", "Nothing was changed: /nowhere/gocdb.xml: cannot be read: No"),
        ("http://goc.example.org/", "a URL must use https"),
        ("https://me:sesame@goc.example.org/", "cannot contain a user name or a query string"),
        ("ftp://goc.example.org/", "a URL must use https"),
        ("https://169.254.169.254/", "a URL must use https"),
    ],
)
def test_the_command_refuses_what_it_does_not_ask(address: str, sentence: str):
    with pytest.raises(CommandError) as caught:
        imported("--from", "gocdb", address)
    assert sentence in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://me:sesame@goc.example.org/",
        "https://goc.example.org/?token=sesame",
        "http://goc.example.org/sesame",
        "sesame/downtimes.xml",
        "/etc/sesame\n.xml",
    ],
)
def test_a_setting_that_is_no_source_stops_the_start_and_is_not_repeated(monkeypatch, text: str):
    monkeypatch.setenv("SONAR_GOCDB_URL", text)
    with pytest.raises(ImproperlyConfigured) as caught:
        project.envsource("SONAR_GOCDB_URL")
    assert str(caught.value).startswith(
        "SONAR_GOCDB_URL is not allowed: use a URL such as https://goc.egi.eu/gocdbpi/public/ or"
    )
    assert "sesame" not in str(caught.value)
    for source in ("https://goc.example.org/gocdbpi/", "/etc/sonar/downtimes.xml", ""):
        monkeypatch.setenv("SONAR_GOCDB_URL", source)
        assert project.envsource("SONAR_GOCDB_URL") == source
