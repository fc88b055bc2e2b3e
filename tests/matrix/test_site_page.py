"""The page of a site: its numbers, lists, plan and words."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from plotly import graph_objects
from pytest_django import Settings

from sonar import sealing
from sonar.models import Annotation, Downtime, Endpoint, Schedule, Site, Transfer
from tests.matrix import responses, world
from tests.matrix.responses import words
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
MARKUP = "</script><script>alert(1)</script>"


def page(client: Client, path: str = "/sites/RAL/") -> str:
    return responses.html(client, path)


def row(html: str, head: str, end: str = "source") -> list[str]:
    """Return the texts of a row of the summary of an end."""
    table = html.split(f'aria-labelledby="as-{end}"')[1].split("</table>", maxsplit=1)[0]
    (found,) = [one for one in table.split("<tr>") if f">{head}</th>" in one]
    return [words(cell).strip() for cell in re.findall(r"<td.*?</td>", found, re.DOTALL)]


def figures(html: str) -> list[dict[str, object]]:
    found = re.findall(r'<script id="bars-\w+-data" type="application/json">(.*?)</script>', html)
    return [json.loads(one) for one in found]


def section(html: str, name: str) -> str:
    return words(html.split(f'aria-labelledby="{name}"')[1].split("</section>", maxsplit=1)[0])


def test_the_head_says_who_it_is_and_for_which_window(client: Client, small_world: World) -> None:
    Site.objects.filter(name="RAL").update(wan_gbit_s=10)
    html = words(page(client, "/sites/RAL/?window=24h"))
    assert "RAL: as source and as destination, the last 24 hours" in html
    assert "Tier 1 site, cloud UK, country GB, nominal WAN capacity 10 Gbit/s (1 250 MB/s)" in html


def test_tags_stand_with_the_site_and_each_endpoint(client: Client, small_world: World) -> None:
    untagged = page(client, "/sites/DESY/")
    assert "tags" not in words(untagged).casefold()
    assert "DESY_DATADISK DATADISK – yes" in section(untagged, "endpoints")
    Site.objects.filter(name="DESY").update(tags=["atlas", "lhcone"])
    head = page(client, "/sites/DESY/")
    assert "no nominal WAN capacity registered. Tags: atlas, lhcone. Matrix of" in words(head)
    assert "tags" not in section(head, "endpoints")
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(tags=["disk", "tape"])
    said = section(page(client, "/sites/DESY/"), "endpoints")
    assert "endpoint label tags software" in said
    assert "DESY_DATADISK DATADISK – yes" in said
    assert "DESY_SCRATCHDISK SCRATCHDISK disk, tape – yes" in said
    assert "Tags:" not in words(page(client))


def test_the_summary_has_each_class_and_both_ends(client: Client, small_world: World) -> None:
    Site.objects.filter(name="DESY").update(wan_gbit_s=10)
    transfer(small_world.desy, small_world.ral, 96.0)
    transfer(small_world.desy, small_world.glasgow, None)
    transfer(small_world.glasgow, small_world.ral, 24.0)
    transfer(small_world.glasgow, small_world.desy, 7.5, size="small")
    html = page(client, "/sites/DESY/")
    assert row(html, "mean in MB/s") == ["–", "–", "96.0"]
    assert row(html, "rank in Tier 2") == ["–", "–", "1st of 2"]
    assert row(html, "median of its peers") == ["7.50", "–", "24.0"]
    assert row(html, "ratio to its peers") == ["–", "–", "4.00"]
    assert row(html, "tests ok, failed") == ["0, 0", "0, 0", "1, 1"]
    assert row(html, "success") == ["–", "–", "50 %"]
    assert row(html, "fastest of 10 Gbit/s") == ["–", "–", "7.7 %"]
    assert row(html, "mean in MB/s", "destination") == ["7.50", "–", "–"]
    assert row(html, "last result", "destination") == ["30 min ago", "–", "–"]


def test_what_is_missing_is_a_dash_with_its_reason(client: Client, small_world: World) -> None:
    html = page(client)
    assert '<span title="no measured cell to rank by">–' in html
    assert '<span title="no nominal WAN capacity registered">–' in html
    shown = words(re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert not re.search(r"\b(nan|None)\b", shown)


def test_pictures_have_a_bar_for_each_partner_with_direction_in_words(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.ral, small_world.desy, 50.0)
    transfer(small_world.glasgow, small_world.ral, None)
    sent, received = (graph_objects.Figure(one) for one in figures(page(client)))
    assert list(sent.data[0].x) == pytest.approx([50, 5])
    assert list(sent.layout.yaxis.ticktext) == ["DESY", "Glasgow"]
    assert sent.layout.title.text.startswith("from RAL<br>to each destination")
    assert received.layout.title.text.startswith("to RAL<br>from each source")
    assert {trace.name for trace in received.data} == {"failed", "untested"}
    assert "from Glasgow<br>to RAL<br>no rate<br>0 ok, 1 failed<br>failed" in str(received.data)
    assert sent.layout.xaxis.range == received.layout.xaxis.range


def test_a_table_has_the_same_numbers_and_leads_to_the_link(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 6.0)
    transfer(small_world.ral, small_world.glasgow, 4.0)
    transfer(small_world.glasgow, small_world.ral, 2.0)
    html = page(client, "/sites/RAL/?window=24h")
    table = html.split('id="partners"')[1].split("</table>")[0]
    (glasgow,) = [one for one in table.split("<tr>") if '"row">Glasgow' in one]
    assert "Glasgow 5.00 ± 1.41 2, 0 30 min ago measured 2.00 1, 0" in words(glasgow)
    assert words(glasgow).split()[-1] == "2.50"  # sends 2.5 times as fast as it receives
    assert 'href="/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h"' in glasgow
    (desy,) = [one for one in table.split("<tr>") if '"row">DESY' in one]
    assert 'href="/?window=24h&amp;source_site=RAL&amp;destination_site=DESY"' in desy


def test_the_worst_links_each_way_lead_to_their_pages(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 6.0)
    transfer(small_world.ral, small_world.desy, 0.5)
    transfer(small_world.scratch, small_world.ral, None)
    html = page(client)
    slow = section(html, "worst-source")
    assert slow.index("to DESY_DATADISK") < slow.index("to Glasgow_DATADISK")
    assert 'href="/links/RAL_DATADISK/DESY_DATADISK/" title="from RAL_DATADISK to DESY_D' in html
    failing = section(html, "worst-destination")
    assert "from DESY_SCRATCHDISK : its only test failed 30 min ago" in failing
    # Where a site has several endpoints, both ends are named.
    failing = section(page(client, "/sites/DESY/"), "worst-source")
    assert "DESY_SCRATCHDISK → RAL_DATADISK" in failing


def test_errors_are_grouped_and_lead_to_the_newest(client: Client, small_world: World) -> None:
    for _ in range(3):
        made = transfer(small_world.ral, small_world.glasgow, None)
    transfer(small_world.glasgow, small_world.desy, None)
    html = page(client)
    assert "3 failed tests" in section(html, "errors")
    assert "3 1 destination 503 Service Unavailable 30 min ago" in section(html, "errors")
    newest = Transfer.objects.filter(source=small_world.ral).order_by("-started_at", "id").first()
    assert newest is not None
    assert f'href="/transfers/{newest.id}/"' in html or f'href="/transfers/{made.id}/"' in html


def test_the_plan_of_a_day_is_said(client: Client, small_world: World) -> None:
    Site.objects.filter(name="RAL").update(wan_gbit_s=1)
    Endpoint.objects.filter(name="RAL_DATADISK").update(budget_bytes_per_day=144 * 10**9)
    Schedule.objects.filter(source=small_world.ral).update(
        skipped_because="budget", skipped_since=NOW - HOUR
    )
    transfer(small_world.ral, small_world.glasgow, 10.0)
    html = page(client)
    said = section(html, "planned")
    assert "72 tests a day from it with 144 GB, on average 1.67 MB/s or 1.3 % of its WAN" in said
    assert "about 0.17 at once at the rates of this window" in said
    assert "3 tests that are due wait: budget, the longest since 2026-11-20 11:00:30 UTC" in said
    assert "everything large 3 72 144 GB 3 72 144 GB" in said
    assert "144 tests, 288 GB 144 GB 200 %: more than it may" in section(html, "endpoints")


def test_an_end_without_a_plan_says_so(client: Client, small_world: World) -> None:
    Schedule.objects.filter(source=small_world.ral).delete()
    world.Mesh.objects.create(name="newer")  # schedules follow the registry
    said = section(page(client), "planned")
    assert "no tests from it; 72 tests a day to it with 144 GB, on average 1.67 MB/s. Now" in said


def test_the_picture_of_many_says_which_of_them_it_shows(
    client: Client, small_world: World
) -> None:
    for number in range(45):
        site = Site.objects.create(name=f"site-{number:02d}")
        transfer(small_world.ral, world.endpoint(f"place-{number:02d}", site), number + 1.0)
    html = page(client)
    assert "Those that fail and the slowest, 40 of 47; all are in the table below." in html
    assert len(figures(html)[0]["layout"]["yaxis"]["ticktext"]) == 40  # type: ignore[index]
    table = html.split('id="partners"')[1].split("</table>")[0]
    assert table.count('<tr><th scope="row">') == 47


def test_endpoints_are_listed_with_their_caps_and_what_they_are(
    client: Client, small_world: World
) -> None:
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(
        retired_at=NOW - HOUR, software="dCache 9", simulated=True, inbound_cap=7
    )
    said = section(page(client, "/sites/DESY/"), "endpoints")
    assert "DESY_DATADISK DATADISK – yes 0 / 2 0 / 2" in said
    assert "DESY_SCRATCHDISK SCRATCHDISK dCache 9 retired since 2026-11-20 11:00:30 UTC" in said
    assert "simulated 0 / 2 0 / 7" in said


def test_downtimes_now_and_soon_are_said(client: Client, small_world: World) -> None:
    def down(start: timedelta, reason: str, **of: object) -> None:
        starts = NOW + start
        Downtime.objects.create(starts_at=starts, ends_at=starts + HOUR, reason=reason, **of)

    down(-HOUR / 2, "moving racks", site=small_world.desy.site)
    down(24 * HOUR, "new kernel", endpoint=small_world.scratch)
    down(24 * 30 * HOUR, "far away", endpoint=small_world.scratch)
    down(-24 * HOUR, "long over", endpoint=small_world.scratch)
    down(-HOUR / 2, "of another site", site=small_world.ral.site)
    html = words(page(client, "/sites/DESY/"))
    assert "In declared downtime now: moving racks" in html
    assert "Declared downtime soon, DESY_SCRATCHDISK: new kernel" in html
    assert not re.search("far away|long over|of another site", html)


def test_free_text_is_text(client: Client, small_world: World) -> None:
    Site.objects.filter(name="DESY").update(cloud=MARKUP[:40])
    Endpoint.objects.filter(name="DESY_DATADISK").update(label=MARKUP[:40], software=MARKUP)
    Downtime.objects.create(
        site=small_world.desy.site, starts_at=NOW, ends_at=NOW + HOUR, reason=MARKUP
    )
    Annotation.objects.create(site=small_world.desy.site, text=MARKUP, starts_at=NOW - HOUR)
    made = transfer(small_world.ral, small_world.desy, None)
    Transfer.objects.filter(id=made.id).update(error=MARKUP)
    html = page(client, "/sites/DESY/")
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert") >= 6
    for path in ("/sites/", "/search/?q=DESY"):
        html = page(client, path)
        assert "<script>alert" not in html
        assert "&lt;/script&gt;&lt;script&gt;alert" in html


def test_a_site_that_is_not_registered_is_a_404_that_says_so(client: Client, db: None) -> None:
    response = client.get("/sites/Nowhere/")
    assert response.status_code == 404
    assert "No site “Nowhere” is registered." in response.content.decode()
    assert client.get("/sites/%3Cscript%3Ealert(1)/").status_code == 404
    assert "<script>alert" not in client.get("/sites/%3Cscript%3Ealert(1)/").content.decode()


@pytest.mark.parametrize("name", ["stat", "rows", "source_cloud", "endpoint", "colour", "search"])
def test_what_has_no_meaning_for_one_site_is_a_400(
    client: Client, small_world: World, name: str
) -> None:
    response = client.get(f"/sites/RAL/?{name}=mean")
    assert response.status_code == 400
    assert f"There is no parameter “{name}”" in response.content.decode()


def test_one_view_has_one_url_and_controls_lead_to_the_others(
    client: Client, small_world: World
) -> None:
    response = client.get("/sites/RAL/?window=7d&size=large&streams=4")
    assert response["Location"] == "/sites/RAL/?streams=4"
    html = page(client, "/sites/RAL/?streams=4")
    assert 'href="/sites/RAL/?size=small&amp;streams=4"' in html
    assert 'href="/sites/RAL/?window=24h&amp;streams=4"' in html
    assert '<a class="chip" href="/sites/RAL/"' in html
    assert 'href="/?site=RAL&amp;streams=4"' in html
    assert 'href="/table/?site=RAL&amp;streams=4"' in html
    assert 'href="/api/v1/sites/RAL/?streams=4"' in html


@pytest.mark.parametrize("path", ["/?site=RAL&streams=4", "/table/?site=RAL&streams=4"])
def test_the_site_only_links_are_shortest(client: Client, small_world: World, path: str) -> None:
    assert client.get(path).status_code == 200


def test_empty_is_explained(client: Client, small_world: World) -> None:
    Site.objects.create(name="New")
    html = words(page(client, "/sites/New/"))
    assert "This site has no endpoint." in html
    assert "No result of this site in this window. 0 of its tests run now, 0 are queued." in words(
        page(client)
    )
    transfer(small_world.ral, small_world.glasgow, 5.0, size="small")
    assert "No result with large files in this window." in words(page(client))
    Schedule.objects.all().delete()
    html = page(client, "/sites/DESY/")
    assert "No mesh tests any of its links" in words(html)
    assert 'href="/sites/DESY/?window=90d"' in html


def test_simulated_results_are_called_so(client: Client, small_world: World) -> None:
    assert "Simulated." not in page(client)
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    assert "Simulated." in page(client)


def test_notes_on_the_site_are_shown(client: Client, small_world: World) -> None:
    Annotation.objects.create(
        site=small_world.ral.site, text="New switch", starts_at=NOW - HOUR, public=True
    )
    assert "New switch" in page(client)
    assert "New switch" not in page(client, "/sites/DESY/")


def test_the_number_of_queries_is_the_same_for_little_and_for_much(
    client: Client, small_world: World
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client)
        seen.append("\n".join(one["sql"] for one in captured.captured_queries))
        return len(captured)

    seen: list[str] = []

    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.ral, small_world.glasgow, None)
    queries()
    little = queries()
    for number in range(40):
        ends = small_world.endpoints[number % 4], small_world.endpoints[(number + 1) % 4]
        transfer(*ends, None if number % 3 else 5.0, ago=number * HOUR / 4)
    assert queries() == little == 23, seen[-1]
    sealing.seal(NOW)
    queries()
    assert queries() == 23, seen[-1]


def test_without_public_read_the_page_leads_to_the_login(
    client: Client, small_world: World, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ = False
    for path in ("/sites/", "/sites/RAL/", "/search/?q=RAL"):
        response = client.get(path)
        assert response.status_code == 302
        assert response["Location"].startswith("/login/?next=")
    client.force_login(User.objects.create_user("shifter"))
    assert client.get("/sites/RAL/").status_code == 200
