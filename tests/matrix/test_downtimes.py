"""Downtimes on pages and in the API: outages and warnings, by hand and from elsewhere."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from matrix.store.downtimes import read_soon
from sonar.models import Downtime, DowntimeSource, Transfer
from sonar.people.roles import Role
from tests.accounts import account
from tests.matrix import responses
from tests.matrix.world import NOW, World, downtime, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_status", "nothing_is_sent")]
HOUR = timedelta(hours=1)
PORTAL = "https://goc.egi.eu/portal/index.php?Page_Type=Downtime&id=7"


def from_gocdb(key: str = "7G0", severity: str = "outage", **of: object) -> Downtime:
    elsewhere = {"origin": "gocdb", "key": key, "severity": severity, "url": PORTAL}
    return downtime(reason="new switch", **(elsewhere | of))


@pytest.fixture
def both(small_world: World) -> World:
    """An outage of RAL, and a warning for both endpoints of DESY, both of GOCDB."""
    from_gocdb(endpoint=small_world.ral)
    for endpoint in (small_world.desy, small_world.scratch):
        from_gocdb("8G0", "warning", endpoint=endpoint)
    return small_world


def test_the_matrix_shows_what_is_down_and_names_who_is_at_risk(client: Client, both: World):
    cells = responses.answer(client, "/api/v1/links/?size=large")["links"]
    down = {
        (row["source"]["name"], row["destination"]["name"])
        for row in cells
        if row["large"]["state"] == "down"
    }
    assert down
    assert all("RAL_DATADISK" in link for link in down)
    page = responses.page(client, "/")
    assert "2 sites or endpoints are declared at risk." in page
    said = "DESY_DATADISK and DESY_SCRATCHDISK until 20 Nov 13:00:30 UTC: new switch (GOCDB)"
    assert said in page.source.replace("\u00a0", " ")


def test_a_link_is_down_by_an_outage_and_measured_at_risk(client: Client, both: World):
    page = responses.page(client, "/links/RAL_DATADISK/Glasgow_DATADISK/")
    assert "Down: RAL_DATADISK is in a declared downtime until" in page
    assert page.link("Declared in GOCDB") == page.link("GOCDB") == PORTAL
    page = responses.page(client, "/links/Glasgow_DATADISK/DESY_DATADISK/")
    assert "At risk, DESY_DATADISK: new switch, until" in page
    assert "Down:" not in page


def test_a_site_has_one_notice_for_all_endpoints_of_a_downtime(client: Client, both: World):
    page = responses.page(client, "/sites/DESY/")
    assert page.source.count("At risk now") == 1
    assert "At risk now, DESY_DATADISK and DESY_SCRATCHDISK: new switch" in page
    assert "In declared downtime now, RAL_DATADISK: new switch" in responses.page(
        client, "/sites/RAL/"
    )


def test_an_end_decades_away_is_said_as_what_it_is_wherever_the_downtime_shows(
    client: Client, small_world: World
):
    times = {"starts": -3 * HOUR, "ends": timedelta(days=9000)}
    from_gocdb(site=small_world.ral.site, **times)
    from_gocdb("8G0", "warning", site=small_world.desy.site, **times)
    with transfers() as some:
        some.add(small_world.desy, small_world.glasgow, 10.0, ago=HOUR)
    until = "until further notice (declared end: 12 Jul 2051 UTC)"
    from_until = f"new switch, from 20 Nov 09:00:30 UTC {until}."
    client.force_login(account(Role.ADMINISTRATOR))
    for path, said in {
        "/": f"DESY {until}: new switch (GOCDB)",
        "/sites/RAL/": f"In declared downtime now: {from_until}",
        "/sites/DESY/": f"At risk now: {from_until}",
        "/operations/": f"now {until}: site RAL",
        "/links/RAL_DATADISK/DESY_DATADISK/": f"RAL is in a declared downtime {until}: new",
        f"/transfers/{Transfer.objects.get().id}/": f"was at risk during this test: {from_until}",
        "/admin/sonar/downtime/": until,
    }.items():
        page = responses.page(client, path)
        assert said in page, (path, page)
        assert "2051 00" not in page


def test_what_is_from_elsewhere_is_changed_there(client: Client, both: World):
    client.force_login(account(Role.OPERATOR))
    row = Downtime.objects.get(endpoint=both.ral)
    page = responses.page(client, "/sites/RAL/")
    assert "End downtime now" not in page
    said = client.post(f"/sites/RAL/downtimes/{row.id}/", {"end": "1"}, follow=True)
    assert "This downtime was declared in GOCDB. Change it there." in said.content.decode()
    url = f"/api/v1/downtimes/{row.id}/"
    for refused in (
        client.patch(url, {"reason": "mine"}, content_type="application/json"),
        client.delete(url),
    ):
        assert refused.status_code == 409
        assert "was imported from GOCDB. Change it there." in refused.content.decode()
    assert Downtime.objects.get(pk=row.pk).reason == "new switch"
    record = responses.answer(client, url)
    assert (record["origin"], record["key"], record["url"]) == ("gocdb", "7G0", PORTAL)


def test_operations_say_how_old_each_source_is(client: Client, both: World, settings: Settings):
    settings.SONAR_GOCDB_URL = settings.SONAR_OSG_DOWNTIMES_URL = "https://source.example.org/"
    page = responses.page(client, "/operations/")
    risk = "at risk , tests run: DESY_DATADISK and DESY_SCRATCHDISK, new switch ( GOCDB )"
    assert risk in page
    assert "OSG Topology: not read yet." in page
    DowntimeSource.objects.create(
        origin="gocdb",
        asked_at=NOW,
        answered_at=NOW - 2 * HOUR,
        error="GET source.example.org:443/: the server responded with 500",
        downtimes=40,
        of_endpoints=3,
    )
    page = responses.page(client, "/operations/")
    assert "GOCDB: stale read 2 h ago; 40 downtimes, 3 affect endpoints here." in page
    assert "failed. Downtimes read earlier are kept until the source responds." in page
    (gocdb, osg) = responses.answer(client, "/api/v1/status/")["downtime_sources"]
    assert (gocdb["stale"], gocdb["failing"], gocdb["answered_at"]) == (
        True,
        True,
        "2026-11-20T10:00:30Z",
    )
    assert "error" not in gocdb
    assert (osg["stale"], osg["answered_at"]) == (True, None)
    assert (
        'sonar_downtimes_last_good_timestamp_seconds{source="gocdb"}'
        in client.get("/metrics").content.decode()
    )
    client.force_login(account(Role.OPERATOR))
    assert "The last request failed: GET source.example.org" in responses.page(
        client, "/operations/"
    )


@pytest.mark.parametrize(
    ("severity", "word"), [("outage", "declared down"), ("warning", "at risk")]
)
def test_a_result_says_that_an_end_was_down_or_at_risk_while_it_ran(
    client: Client, small_world: World, severity: str, word: str
):
    ends = small_world.glasgow, small_world.desy
    with transfers() as some:
        for hours in (2, 5):
            some.add(*ends, 10.0, ago=hours * HOUR)
    from_gocdb(severity=severity, starts=-3 * HOUR, site=small_world.desy.site)
    newest, oldest = Transfer.objects.order_by("-started_at")
    said = f"DESY was {word} during this test: new switch, from 20 Nov 09:00"
    marked, plain = (responses.page(client, f"/transfers/{one.id}/") for one in (newest, oldest))
    assert said in marked
    assert f'href="{PORTAL.replace("&", "&amp;")}"' in marked.source
    assert "during this test" not in plain
    rows = responses.page(client, "/links/Glasgow_DATADISK/DESY_DATADISK/").source
    mark = word.removeprefix("declared ")
    mark_title = f'title="the source or destination was declared {mark} during this test"'
    assert rows.count(mark_title) == 1


def head_line(client: Client, asked: str = "") -> str:
    lines = responses.page(client, f"/{asked}").parts("#answer .downtimes")
    return lines[0].words if lines else ""


def test_the_front_page_names_downtimes_of_today_and_tomorrow(
    client: Client, small_world: World, django_assert_num_queries
):
    assert head_line(client) == ""
    with django_assert_num_queries(1):
        assert read_soon(NOW) == []
    downtime(-HOUR, 6 * HOUR, site=small_world.ral.site)
    downtime(20 * HOUR, 30 * HOUR, endpoint=small_world.desy)
    downtime(-9 * HOUR, -HOUR, site=small_world.glasgow.site)
    downtime(25 * HOUR, 26 * HOUR, site=small_world.glasgow.site)
    said = "RAL until 20 Nov 18:00:30 UTC, DESY_DATADISK tomorrow from 08:00 UTC"
    assert head_line(client) == f"Downtime : {said}"
    with django_assert_num_queries(2):
        assert len(read_soon(NOW)) == 2
    line = responses.page(client, "/").part("#answer .downtimes")
    assert line.part("a")["href"] == "/downtimes/"
    assert "DESY_DATADISK, from 21 Nov 08:00:30 UTC to 21 Nov 18:00:30 UTC" in line["title"]
    # Of what is in sight, and of now.
    assert head_line(client, "?site=DESY") == f"Downtime : {said}"
    assert head_line(client, "?source_site=DESY&destination_site=Glasgow").endswith(
        ": DESY_DATADISK tomorrow from 08:00 UTC"
    )
    assert head_line(client, "?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z") == ""


def test_downtimes_beyond_three_are_counted_and_warnings_say_so(client: Client, small_world: World):
    hour = HOUR, 2 * HOUR
    for endpoint in small_world.endpoints[:3]:
        downtime(*hour, endpoint=endpoint)
    for endpoint in (small_world.desy, small_world.scratch):
        from_gocdb("8G0", "warning", starts=HOUR, ends=2 * HOUR, endpoint=endpoint)
    names = ("RAL_DATADISK", "Glasgow_DATADISK", "DESY_DATADISK")
    said = ", ".join(f"{name} today from 13:00 UTC" for name in names)
    assert head_line(client) == f"Downtime : {said} and 1 more"
    Downtime.objects.filter(origin="hand").delete()
    assert head_line(client) == "Downtime : DESY at risk today from 13:00 UTC"
    page = responses.page(client, "/")
    assert page.link("Downtime") == "/downtimes/?when=coming"
    assert "declared at risk" not in page
