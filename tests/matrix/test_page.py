"""The matrix page without a script: its words, controls, table, errors and caching."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from sonar.models import Endpoint, Probe, Schedule, SizeClass
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)


def page(client: Client, text: str = "") -> str:
    response = client.get(f"/{text}")
    assert response.status_code == 200, response
    return response.content.decode()


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_the_heading_says_what_is_shown_and_in_which_unit(
    client: Client, small_world: World
) -> None:
    html = page(client, "?window=24h&source_cloud=UK")
    assert (
        "Mean rate of large-file transfers, the last 24 hours, from endpoint to endpoint, "
        "only from cloud UK in MB/s" in words(html)
    )


def test_the_table_has_every_published_average(client: Client, db: None) -> None:
    table = world.make_published()
    html = page(client)
    last = html.split("<tfoot>")[1].split("</tfoot>")[0]
    assert words(last).split()[-1] == f"{table.average:.2f}"
    assert words(html).count("UKI-LT2-QMUL_DATADISK") >= 1


def test_a_blank_cell_is_a_dash_with_its_reason(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, None)
    html = page(client)
    assert '<td class="failed" title="failed: tests ran and none succeeded">–' in html
    assert '<td class="untested" title="untested: scheduled' in html
    assert "nan" not in html.split("<table>")[1].lower()
    assert "None" not in html


@pytest.mark.parametrize(
    ("asked", "shorter"),
    [
        ("/?window=7d&size=large&stat=mean", "/"),
        ("/?rows=site&stat=p95", "/?stat=p95&rows=site"),
        ("/?from=&to=&stat=max", "/?stat=max"),
        ("/?site=RAL&site=RAL", "/?site=RAL"),
    ],
)
def test_one_view_has_one_url(client: Client, small_world: World, asked: str, shorter: str) -> None:
    response = client.get(asked)
    assert (response.status_code, response["Location"]) == (302, shorter)
    assert client.get(shorter).status_code == 200


def test_every_control_leads_to_the_same_view_with_one_thing_changed(
    client: Client, small_world: World
) -> None:
    html = page(client, "?stat=p95&site=RAL&site=!DESY")
    hrefs = re.findall(r'class="switch".*?</div>', html, re.DOTALL)
    assert 'href="/?size=small&amp;stat=p95&amp;site=RAL&amp;site=!DESY"' in hrefs[0]
    assert 'href="/?window=24h&amp;stat=p95&amp;site=RAL&amp;site=!DESY"' in hrefs[1]
    assert '<a class="chip" href="/?stat=p95&amp;site=!DESY"' in html
    assert '<option value="p95" selected>' in html
    assert '<input type="hidden" name="site" value="!DESY">' in html


def test_a_bad_parameter_is_a_400_that_says_what_is_allowed_and_leads_back(
    client: Client, db: None
) -> None:
    response = client.get("/?stat=mode&colour=<script>alert(1)</script>&<b>=1")
    html = response.content.decode()
    assert response.status_code == 400
    assert "stat “mode” is not known: use mean, median" in html
    assert "There is no parameter “colour”" in html
    assert "&lt;b&gt;" in html
    assert "<script>alert" not in html
    assert 'href="/"' in html


def test_names_from_the_registry_are_escaped(client: Client, small_world: World) -> None:
    site = small_world.ral.site
    site.cloud = "</script><script>alert(1)</script>"
    site.save()
    transfer(small_world.ral, small_world.glasgow, 1.0)
    for text in (
        "?rows=cloud&columns=cloud",
        "?cloud=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        assert "<script>alert" not in page(client, text)


def test_no_endpoints_yet_says_what_to_do(client: Client, db: None) -> None:
    html = page(client)
    assert "No endpoints are registered yet." in html
    assert 'href="/admin/sonar/site/add/"' in html
    assert "picture-data" not in html


def test_endpoints_without_a_mesh_say_so(client: Client, small_world: World) -> None:
    Schedule.objects.all().delete()
    html = page(client)
    assert "No mesh tests links with large files." in html
    assert "There has never been a result with large files." in html


def test_filters_that_nothing_passes_say_so_and_can_be_dropped(
    client: Client, small_world: World
) -> None:
    html = page(client, "?stat=max&cloud=FR")
    assert "No link matches these filters." in html
    assert '<a href="/?stat=max">Show the matrix without filters</a>' in html


def test_a_window_without_results_says_when_the_last_was_and_what_runs(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=3 * HOUR)
    Probe.objects.create(
        source=small_world.ral,
        destination=small_world.desy,
        size_class=SizeClass.objects.get(name="large"),
        bytes=1,
        requested_at=NOW,
        sent_at=NOW,
    )
    html = page(client, "?window=1h")
    assert "No results in this window yet." in html
    assert "The last result with large files was 3 h ago, at 2026-11-20T09:00:30Z." in html
    assert "0 tests of this size are running, 1 queued." in html


def test_endpoints_that_are_not_shown_are_named(client: Client, small_world: World) -> None:
    Schedule.objects.all().delete()
    transfer(small_world.ral, small_world.glasgow, 1.0)
    html = words(page(client))
    assert "2 registered endpoints not shown" in html
    assert "DESY_DATADISK, DESY_SCRATCHDISK" in html


def test_simulated_rates_are_called_so_before_anything_else(
    client: Client, small_world: World
) -> None:
    assert "Simulated" not in page(client)
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    assert "Simulated" in page(client)


def test_the_legend_counts_the_cells_of_each_state(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0)
    legend = words(page(client).split('class="legend"')[1].split("</ul>")[0])
    assert "measured 1" in legend
    assert "untested 11" in legend
    assert "not applicable 4" in legend


def test_api_and_csv_of_the_same_view_are_linked(client: Client, small_world: World) -> None:
    html = page(client, "?stat=max&site=!RAL")
    assert 'href="/api/v1/matrix/?stat=max&amp;site=!RAL"' in html
    assert 'href="/api/v1/matrix/?stat=max&amp;site=!RAL&amp;format=csv"' in html


def test_an_unchanged_page_is_a_304_for_its_reader_alone(
    client: Client, small_world: World
) -> None:
    etag = client.get("/")["ETag"]
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/", headers={"if-none-match": etag}).status_code == 304
    assert len(captured) == 2
    client.force_login(User.objects.create_user("shifter"))
    assert client.get("/", headers={"if-none-match": etag}).status_code == 200


def test_the_number_of_queries_of_the_page_is_nine_and_seven_once_the_registry_is_known(
    client: Client, small_world: World
) -> None:
    for source, destination in [(small_world.ral, small_world.glasgow)] * 3:
        transfer(source, destination, 1.0)
    for pinned in (9, 7):
        with CaptureQueriesContext(connection) as captured:
            page(client)
        assert len(captured) == pinned, [one["sql"] for one in captured.captured_queries]


def test_without_public_read_the_page_leads_to_the_login_and_back(
    client: Client, small_world: World, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ = False
    response = client.get("/?stat=max")
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/%3Fstat%3Dmax")
    User.objects.create_user("shifter", password="four in the morning")
    form = client.get(response["Location"]).content.decode()
    assert 'name="next" value="/?stat=max"' in form
    sent = {"username": "shifter", "password": "four in the morning", "next": "/?stat=max"}
    assert client.post("/login/", sent)["Location"] == "/?stat=max"
    assert "Log out shifter" in page(client, "?stat=max")


def test_a_wrong_password_is_said_without_saying_which_was_wrong(client: Client, db: None) -> None:
    html = client.post("/login/", {"username": "x", "password": "y"}).content.decode()
    assert "do not match an account" in html


def test_a_path_that_does_not_exist_is_a_page_that_leads_back(client: Client, db: None) -> None:
    response = client.get("/nothing/<b>")
    assert response.status_code == 404
    assert "/nothing/&lt;b&gt;" in response.content.decode()


def test_a_page_is_read_only(client: Client, db: None) -> None:
    assert client.post("/").status_code == 405


@pytest.mark.parametrize("stat", ["mean", "success", "count", "last"])
def test_a_page_names_no_other_host(client: Client, small_world: World, stat: str) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0)
    html = page(client, "" if stat == "mean" else f"?stat={stat}")
    assert set(re.findall(r"https?://[\w./-]+", html)) <= {"http://www.w3.org/2000/svg"}
