"""The matrix page without a script: its words, controls, table, errors and caching."""

import json
import re
from itertools import permutations
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_script_prefix

from matrix.http.my_site import MY_SITE
from matrix.query.catalogue import STATISTICS
from matrix.store.cache import ANSWERS
from sonar.models import Endpoint, Schedule, Site, SizeClass
from sonar.results import store
from sonar.sandbox.stories import STORIES
from tests.conditions import TYPES, stored_condition
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.sent import probe
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


def look(client: Client, text: str = "") -> Page:
    return responses.page(client, f"/{text}")


def test_the_heading_says_what_is_shown_and_in_which_unit(client, small_world):
    page = look(client, "?window=24h&source_cloud=UK")
    assert (
        "Mean rate of large-file transfers, the last 24 hours, "
        "only from cloud UK, in MB/s." in page.words
    )


def test_the_table_has_every_published_average(client, db):
    table = world.make_published()
    page = look(client)
    assert page.table("tfoot tr")[0][-1] == f"{table.average:.2f}"
    assert page.words.count("UKI-LT2-QMUL_DATADISK") >= 1


def test_a_blank_cell_is_a_dash_with_its_reason(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    page = look(client)
    why = "failed: every test in this time range failed, "
    why += "but too few tests ran to classify the link as failing"
    table = page.part("#table table")
    assert [cell.words for cell in table.parts(f'td.failed[title="{why}"]')] == ["– failed"]
    assert table.parts('td.untested[title^="untested: scheduled"]')
    assert "nan" not in table.words.lower()
    assert "None" not in page.source


@pytest.mark.parametrize(
    ("asked", "shorter"),
    [
        ("/?window=7d&size=large&stat=mean", "/"),
        ("/?rows=site&stat=p95", "/?stat=p95&rows=site"),
        ("/?from=&to=&stat=max", "/?stat=max"),
        ("/?site=RAL&site=RAL", "/?site=RAL"),
        (
            "/?wall=1&only=stale&only=failed&stat=max&scale=middle&order=tier",
            "/?stat=max&order=tier&only=failed&only=stale&wall=1",
        ),
    ],
)
def test_one_view_has_one_url(client, small_world, asked, shorter):
    response = client.get(asked)
    assert (response.status_code, response["Location"]) == (302, shorter)
    assert client.get(shorter).status_code == 200


def test_every_control_leads_to_the_same_view_with_one_thing_changed(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    page = look(client, "?stat=p95&site=RAL&site=!DESY&order=tier&only=failed")
    kept = "stat=p95&site=RAL&site=!DESY&order=tier"
    for url in (
        f"/?size=small&{kept}&only=failed",
        f"/?window=24h&{kept}&only=failed",
        f"/?{kept}&transpose=1&only=failed",
        f"/?{kept}&only=failed&wall=1",
        f"/?{kept}&only=failed&only=untested",
        f"/?window=1h&{kept}&only=failed",
        "/?stat=max&site=RAL&site=!DESY&order=tier&only=failed",
        f"/?{kept}&only=failed".replace("stat=p95", "stat=p95&rows=site&columns=site"),
        f"/?{kept}",
        "/?stat=p95&site=!DESY&order=tier&only=failed",
        "/?stat=p95&order=tier",
    ):
        assert f"{url}" in page.links()
    assert "95th percentile 95 % of tests are slower" in page.texts('a[aria-current="true"]')
    assert page.parts('option[value="tier"][selected]')
    assert page.parts('input[type="hidden"][name="site"][value="!DESY"]')


def hidden(kept: list[tuple[str, str]]) -> str:
    return "&".join(f"{name}={one}" for name, one in kept)


def test_each_form_keeps_all_but_its_own_fields(client, small_world):
    asked = "?stat=p95&site=RAL&order=tier&only=failed&above=2&palette=magma&high=9"
    controls = client.get(f"/{asked}").context["controls"]
    assert hidden(controls["kept"]) == (
        "stat=p95&site=RAL&order=tier&only=failed&above=2&palette=magma&high=9&unit=MB/s"
    )
    assert hidden(controls["focus"]["kept"]) == (
        "stat=p95&site=RAL&order=tier&palette=magma&high=9&unit=MB/s"
    )
    assert hidden(controls["drawing"]["kept"]) == (
        "stat=p95&site=RAL&only=failed&above=2&palette=magma&unit=MB/s"
    )
    for menu in (controls[end] for end in ("source", "destination", "either")):
        assert hidden(menu["kept"]) == asked[1:]
    assert "unit" not in dict(client.get("/").context["controls"]["kept"])


def test_numbers_in_another_unit_do_not_survive_a_change_of_the_statistic(client, small_world):
    response = client.get("/?stat=success&above=2&high=9&order=tier&unit=MB/s")
    assert response["Location"] == "/?stat=success&order=tier"
    response = client.get("/?stat=median&above=2&high=9&unit=MB/s")
    assert response["Location"] == "/?stat=median&above=2&high=9"


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ("filter_end=source&filter_on=cloud&filter_value=UK", "/?source_cloud=UK"),
        ("filter_end=destination&filter_on=tier&filter_value=2", "/?destination_tier=2"),
        ("filter_end=either&filter_on=site&filter_not=1&filter_value=RAL", "/?site=!RAL"),
        ("filter_on=site&filter_value=RAL&site=DESY", "/?site=DESY&site=RAL"),
        ("filter_end=source&filter_on=mover&filter_value=http-tpc", "/?mover=http-tpc"),
        ("filter_end=source&filter_on=cloud&filter_value=", "/"),
        ("filter_on=site&filter_value=RAL&stat=max&order=tier", "/?stat=max&site=RAL&order=tier"),
        ("filter_value=RAL", "/?site=RAL"),
    ],
)
def test_a_filter_is_added_by_a_form_without_a_script(client, small_world, fields, url):
    response = client.get(f"/?{fields}")
    assert (response.status_code, response["Location"]) == (302, url)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ("filter_end=middle", "filter_end “middle” is not known: use either, source or"),
        ("filter_on=planet", "filter_on “planet” is not known: use site, cloud, tier"),
        ("filter_not=2", "filter_not “2” is not known: use 1."),
        ("filter_on=tier&filter_value=9", "tier “9” is not known: use 0, 1, 2 or 3."),
        ("filter_on=site&filter_value=Mars", "site “Mars” is not known: use the name of"),
        ("max_age=soon", "max_age “soon” is not an age"),
    ],
)
def test_a_filter_that_cannot_be_added_says_why(client, small_world, fields, sentence):
    response = client.get(f"/?{fields}")
    assert response.status_code == 400
    assert sentence in response.content.decode()


def test_the_values_in_use_are_offered_for_filters(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(streams=16))
    transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(streams=4))
    values = client.get("/").context["controls"]["values"]
    assert [title for name, title, _ in values if name == "ip_version"] == ["IP version"]
    known = {name: re.findall('value="([^"]*)"', offered) for name, _, offered in values}
    assert known["site"] == ["DESY", "Glasgow", "RAL"]
    assert known["endpoint"][0] == "DESY_DATADISK"
    assert known["label"] == ["DATADISK", "SCRATCHDISK"]
    assert known["tier"] == ["1", "2"]
    assert known["streams"] == ["4", "16"]
    assert known["mover"] == ["http-tpc"]
    assert known["mesh"] == ["everything"]
    assert known["ip_version"] == []


def test_what_narrows_the_view_stands_in_chips_that_take_it_away(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    chips = client.get("/?site=RAL&only=measured&above=2&below=7.5").context["controls"]["chips"]
    assert [(chip.label, chip.url) for chip in chips] == [
        ("only from or to site RAL", "/?only=measured&above=2&below=7.5"),
        ("only measured", "/?site=RAL&above=2&below=7.5"),
        ("only ≥ 2 MB/s", "/?site=RAL&only=measured&below=7.5"),
        ("only ≤ 7.5 MB/s", "/?site=RAL&only=measured&above=2"),
    ]


@pytest.mark.parametrize(
    ("asked", "source", "destination"),
    [
        ("", "anywhere", "anywhere"),
        ("?site=RAL&mover=http-tpc", "anywhere", "anywhere"),
        ("?source_cloud=UK", "UK", "anywhere"),
        ("?source_cloud=DE&source_cloud=UK&source_site=!RAL", "DE or UK, not RAL", "anywhere"),
        ("?destination_tier=2&source_tier=1", "Tier 1", "Tier 2"),
        ("?destination_label=DATADISK", "anywhere", "DATADISK"),
    ],
)
def test_the_menus_say_from_where_to_where(client, small_world, asked, source, destination):
    controls = client.get(f"/{asked}", follow=True).context["controls"]
    assert (controls["source"]["words"], controls["destination"]["words"]) == (source, destination)


def test_views_that_many_want_are_one_click_and_another_click_leaves_them(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    asked = "/?size=large&stat=max&site=RAL&only=failed"
    presets = {
        choice.label: choice
        for choice in client.get(asked, follow=True).context["controls"]["presets"]
    }
    assert presets["T1 to T2"].url == "/?stat=max&source_tier=1&destination_tier=2&only=failed"
    assert presets["T2 to T1"].url == "/?stat=max&source_tier=2&destination_tier=1&only=failed"
    assert not presets["T1 to T2"].chosen
    for label in ("T1 to T2", "Only failing links", "Only links slower than usual"):
        response = client.get(presets[label].url)
        assert response.status_code == 200
        again = {choice.label: choice for choice in response.context["controls"]["presets"]}[label]
        assert again.chosen
        assert client.get(again.url).status_code == 200
    assert presets["Only failing links"].url == "/?stat=max&site=RAL&only=failing"
    slower = presets["Only links slower than usual"].url
    assert slower == "/?stat=vs_usual&site=RAL&only=slower"


@pytest.mark.parametrize("path", ["/", "/sites/", "/sites/RAL/"])
def test_the_switch_of_size_classes_says_how_large_their_test_files_are(client, small_world, path):
    SizeClass.objects.filter(name="medium").update(test_bytes=300_000_000)
    page = responses.page(client, path)
    switch = page.part('[aria-label="size class"]')
    titles = [(choice["title"], choice.words) for choice in switch.parts('[title^="test files "]')]
    assert titles == [
        ("test files of 20 MB", "small"),
        ("test files of 300 MB", "medium"),
        ("test files of 2 GB", "large"),
    ]


@pytest.mark.parametrize("asked", ["", "?stat=max&source_cloud=UK&order=tier"])
def test_my_site_is_a_view_of_its_own(client, small_world, asked):
    client.cookies[MY_SITE] = "RAL"
    page = look(client, asked)
    whole = "/?stat=max&order=tier&site=RAL" if asked else "/?site=RAL"
    assert page.links('a[title="Only links from or to RAL"]') == [whole]
    assert client.get(whole, follow=True).context["query"].filters


def test_how_old_a_success_may_be_has_its_field(client, small_world):
    page = look(client, "?max_age=6h")
    fields = [
        part for part in page.parts('[name="max_age"]') if part.attributes.get("type") != "hidden"
    ]
    assert [field["value"] for field in fields] == ["6h"]


def test_a_bad_parameter_is_a_400_that_says_what_is_allowed_and_leads_back(client, db):
    response = client.get("/?stat=<script>alert(1)</script>&colour=red")
    page = Page(response.content.decode())
    assert response.status_code == 400
    assert "stat “<script>alert(1)</script>” is not known: use mean, median" in page
    assert "colour" not in page.source
    assert "<script>alert" not in page.source
    assert "/" in page.links()


MARKUP = "</script><script>alert(1)</script>"


@pytest.mark.parametrize(
    "text",
    [
        "?rows=cloud&columns=cloud",
        "?cloud=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "?order=cloud",
        "?rows=site&columns=tier&order=cloud&transpose=1",
        "?label=!%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "?rows=cloud&columns=cloud&wall=1",
    ],
)
def test_free_text_of_the_registry_is_escaped(client, small_world, text):
    Site.objects.filter(id=small_world.ral.site_id).update(cloud=MARKUP)
    Endpoint.objects.filter(id=small_world.ral.id).update(label=MARKUP)
    transfer(small_world.ral, small_world.glasgow, 1.0)
    transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(activity=MARKUP))
    page = look(client, text)
    assert "<script>alert" not in page.source
    assert "alert(1)" in page.source
    # Nor does the figure hold markup, which Plotly would read.
    figure = client.get(f"/{text}").context["picture"]["figure"]
    assert "<script" not in repr(figure)


def test_no_endpoints_yet_says_what_to_do(client, db):
    page = look(client)
    assert "No endpoints are registered yet." in page
    assert "/sites/add/" in page.links()
    assert "picture-data" not in page.source


def test_endpoints_without_a_mesh_say_so(client, small_world):
    Schedule.objects.all().delete()
    page = look(client)
    assert "No mesh has tests with large files." in page
    assert "Sonar has no results for large files yet." in page


def test_filters_that_nothing_passes_say_so_and_can_be_dropped(client, small_world):
    page = look(client, "?stat=max&cloud=FR")
    assert "No link matches these filters." in page
    assert page.link("Show the matrix without filters") == "/?stat=max"


def test_a_window_without_results_says_when_the_last_was_and_what_runs(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=3 * HOUR)
    probe(small_world.ral, small_world.desy, size="large", requested_at=NOW)
    page = look(client, "?window=1h")
    assert "No results in this time range yet." in page
    last = "The last result for large files was 3 h ago, at 20 Nov 09:00 UTC."
    assert last in " ".join(page.text.split())
    assert "Tests of this size class: 0 running, 1 queued." in page


def test_what_fails_has_its_place_before_the_first_results_but_not_in_a_window_that_is_over(
    client, small_world
):
    assert "No results yet." in responses.page(client, "/").words
    past = "/?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z"
    assert "No results yet." not in responses.page(client, past).words
    transfer(small_world.ral, small_world.glasgow, 50.0)
    assert "No results yet." not in responses.page(client, "/").words


def test_endpoints_that_are_not_shown_are_named(client, small_world):
    Schedule.objects.all().delete()
    transfer(small_world.ral, small_world.glasgow, 1.0)
    page = look(client).words
    assert "2 registered endpoints not shown" in page
    assert "DESY_DATADISK, DESY_SCRATCHDISK" in page


def test_a_simulated_grid_is_called_so_once(client, small_world):
    page = look(client)
    assert "Simulated" not in page.source
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    page = look(client)
    assert len(page.parts(".simulated")) == 1
    assert "are demo data" not in page.source
    # There are no planted faults without a made-up past.
    assert "planted" not in page.words


def test_a_sandbox_asks_for_its_planted_faults_until_the_reader_has_enough(client, small_world):
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    made_up = world.profile(**store.profile_fields(NOW.replace(hour=9, second=0)))
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=4 * HOUR, made=made_up)
    planted = look(client).part(".planted")
    asked = [story for story in STORIES if story.question]
    assert planted.part("h2").words == f"This sandbox has {len(asked)} planted faults. Find them."
    for story, item in zip(asked, planted.parts("li"), strict=True):
        assert item.words.startswith(f"{story.question} answer ")
        assert story.name in item.part("details").words
        ends = (story.source, story.destination, story.site)
        assert all(end in item.part("details").words for end in ends)
    # Its hours before the end of what is made up.
    assert "since 17 Nov 17:00 UTC" in planted.parts("li")[0].words
    assert "large files are 2 GB in size." in planted.words
    etag = client.get("/")["ETag"]
    client.cookies["sonar_planted"] = "1"
    assert "planted" not in look(client).words
    assert client.get("/")["ETag"] != etag


PAST = "Results before 20 Nov 09:00 UTC are demo data, which only show what weeks of tests"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/table/", "/sites/", "/sites/RAL/", "/events/", "/causes/", "/operations/"),
        "/links/RAL_DATADISK/Glasgow_DATADISK/",
    ],
)
def test_each_page_that_is_simulated_says_since_when_results_are_measured(
    client, small_world, path
):
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    end = NOW.replace(hour=9, second=0)
    transfer(
        small_world.ral,
        small_world.glasgow,
        1.0,
        ago=4 * HOUR,
        made=world.profile(**store.profile_fields(end)),
    )
    assert PAST in responses.page(client, path)


def test_the_legend_counts_the_cells_of_each_state(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    legend = look(client).part("ul.legend")
    assert "measured 1" in legend
    assert "untested 11" in legend
    assert "not applicable 4" in legend


def test_api_and_csv_of_the_same_view_are_linked(client, small_world):
    page = look(client, "?stat=max&site=!RAL")
    assert "/api/v1/matrix/?stat=max&site=!RAL" in page.links()
    assert "/api/v1/matrix/?stat=max&site=!RAL&format=csv" in page.links()


def test_an_unchanged_page_is_a_304_for_its_reader_alone(client, small_world):
    etag = client.get("/")["ETag"]
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/", headers={"if-none-match": etag}).status_code == 304
    assert len(captured) == 2
    client.force_login(User.objects.create_user("shifter"))
    assert client.get("/", headers={"if-none-match": etag}).status_code == 200


def queries(client: Client, text: str = "", *, kept: bool = False) -> int:
    """Count those of a page, of which nothing is kept unless said so."""
    if not kept:
        ANSWERS.forget()
    with CaptureQueriesContext(connection) as captured:
        look(client, text)
    return len(captured)


def test_the_number_of_queries_of_the_page_does_not_grow_with_the_data(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    # Eight of them only until the registry is known, and how links stand.
    first = [queries(client), queries(client), queries(client, kept=True)]
    for number, (source, destination) in enumerate(permutations(small_world.endpoints, 2)):
        transfer(source, destination, 1.0 + number, made=world.profile(streams=2 + number))
        transfer(source, destination, None, made=world.profile(streams=2))
        probe(source, destination, size="large")
    # Those of today are read again, and three queries show which cells mix streams; a wall says
    # nothing of streams.
    later = [
        queries(client),
        queries(client, "?rows=cloud&columns=tier&order=tier&transpose=1&only=measured"),
        queries(client, "?order=cloud&wall=1"),
        queries(client, "?order=-average", kept=True),
        queries(client, "?order=-average", kept=True),
    ]
    assert (first, later) == ([21, 13, 9], [17, 14, 12, 10, 9])


def test_no_more_queries_are_needed_for_many_endpoints(client, small_world):
    site = small_world.ral.site
    world.endpoints((f"more-{number}", site) for number in range(40))
    world.schedule(world.Mesh.objects.create(name="x"), *permutations(Endpoint.objects.all(), 2))
    transfer(small_world.ral, small_world.glasgow, 1.0)
    look(client)
    assert queries(client) == 13


def test_without_public_read_the_page_leads_to_the_login_and_back(client, small_world, settings):
    settings.SONAR_PUBLIC_READ = False
    response = client.get("/?stat=max")
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/%3Fstat%3Dmax")
    client.force_login(User.objects.create_user("shifter"))
    assert "shifter Notifications" in look(client, "?stat=max")


def test_a_wrong_password_is_said_without_saying_which_was_wrong(client, db):
    page = client.post("/login/", {"username": "x", "password": "y"}).content.decode()
    assert "do not match an account" in page


def test_a_path_that_does_not_exist_is_a_page_that_leads_back(client, db):
    response = client.get("/nothing/<b>")
    assert response.status_code == 404
    assert "/nothing/&lt;b&gt;" in response.content.decode()


@pytest.mark.parametrize(
    "path",
    ["/", "/?stat=success", "/?stat=count", "/?stat=last", "/links/RAL_DATADISK/Glasgow_DATADISK/"],
)
def test_a_page_names_no_other_host(client, small_world, path):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    hosts = set(re.findall(r"https?://([\w.-]+)", responses.page(client, path).source))
    assert hosts <= {"www.w3.org", "testserver"}


def test_the_legend_leads_to_the_cells_of_a_state_and_back(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    legend = {one.state: one for one in client.get("/?order=tier").context["legend"]}
    # What does not occur is left out.
    assert list(legend) == ["failed", "untested", "not_applicable"]
    assert legend["failed"].url == "/?order=tier&only=failed"
    assert not legend["failed"].chosen
    assert legend["not_applicable"].url == ""
    stored_condition(TYPES.FAILING, source=small_world.ral, destination=small_world.glasgow)
    legend = {one.state: one for one in client.get("/?only=failed").context["legend"]}
    assert legend["failing"].words.endswith(
        "fail significantly more often than usual; the cell shows for how long"
    )
    # What was chosen stays, so that it can be taken back.
    assert (legend["failed"].count, legend["failed"].chosen) == (0, True)
    assert legend["failed"].url == "/"
    assert legend["untested"].url == "/?only=failed&only=untested"


def test_the_table_is_drawn_as_the_picture_is(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    transfer(small_world.ral, small_world.desy, 1.0)
    table = client.get("/?order=-average&transpose=1").context["table"]
    assert table["corner"] == "to \\ from"
    assert [name for name, _, _ in table["rows"]][:2] == ["DESY_DATADISK", "Glasgow_DATADISK"]
    assert table["columns"][0] == "RAL_DATADISK"
    assert table["rows"][1][1][0][0] == "2.00"
    assert (table["averages"][0], table["average"]) == ("1.50", "1.50")


def test_a_large_matrix_has_a_table_of_its_rows_and_columns(client, small_world):
    site = small_world.ral.site
    names = [f"more-{number:02d}" for number in range(32)]
    many = [*world.endpoints((name, site) for name in names).values()]
    with world.transfers() as some:
        for number, one in enumerate(many):
            some.add(one, many[0] if number else many[1], 1.0 + number)
    context = client.get("/?endpoint=more-00").context
    assert "table" not in context
    assert context["summary"]["rows"] == [("from more-00", 1, "1.00"), ("to more-00", 31, "17.0")]
    assert context["summary"]["columns"][:2] == [("more-01", 2, "1.50"), ("more-02", 1, "3.00")]
    assert context["table_url"] == "/table/?endpoint=more-00"
    assert "/table/?endpoint=more-00" in look(client, "?endpoint=more-00").links()


def test_what_stands_out_leads_to_links_or_into_groups(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    transfer(small_world.ral, small_world.desy, None)
    found = {one.kind: one for one in client.get("/?window=24h&site=RAL").context["standouts"]}
    assert found["worst"].items[0].url == "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h"
    assert found["worst"].more == "/table/?window=24h&site=RAL&ordering=large.mean_mb_s"
    assert client.get(found["worst"].more).status_code == 200
    assert found["failed"].more == "/?window=24h&site=RAL&only=failed"
    grouped = client.get("/?rows=cloud&columns=tier&source_cloud=UK&order=tier").context
    assert grouped["standouts"][0].items[0].url == (
        "/?order=tier&source_cloud=UK&destination_tier=2"
    )
    assert client.get(grouped["standouts"][0].items[0].url, follow=True).status_code == 200


def opened(client: Client, text: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/{text}").context["picture"]["open"]
    return found


def test_a_cell_opens_its_link_with_the_window_and_the_way_of_measuring(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    asked = "?window=24h&stat=max&site=RAL&mover=http-tpc&order=tier"
    assert opened(client, asked) == {"kind": "link", "query": "?window=24h&mover=http-tpc"}
    assert opened(client, "") == {"kind": "link", "query": ""}


def test_a_cell_of_groups_opens_the_links_that_it_pools(client, small_world):
    Site.objects.filter(name="DESY").update(cloud="")
    Site.objects.filter(name="Glasgow").update(cloud="A & B")
    asked = "?window=24h&rows=cloud&columns=tier&cloud=!FR&source_cloud=A+%26+B&source_cloud=UK"
    found = opened(client, f"{asked}&transpose=1")
    # What is narrowed replaces the alternatives given before.
    to = ["destination_tier=1", "destination_tier=2"]
    assert found["destination"] == dict(zip(("Tier 1", "Tier 2"), to, strict=True))
    assert found["source"] == {"A & B": "source_cloud=A+%26+B", "UK": "source_cloud=UK"}
    assert found["query"] == "?window=24h&cloud=!FR&transpose=1"
    within = client.get(f"/{found['query']}&{found['source']['A & B']}&{to[0]}", follow=True)
    assert [group.name for group in within.context["grid"].sources] == ["Glasgow_DATADISK"]
    assert [group.name for group in within.context["grid"].destinations] == ["RAL_DATADISK"]


def test_a_group_of_those_without_a_cloud_opens_too(client, small_world):
    Site.objects.filter(name="DESY").update(cloud="")
    found = opened(client, "?rows=cloud&columns=cloud")
    assert found["source"] == {"no cloud": "source_cloud=!UK", "UK": "source_cloud=UK"}
    Site.objects.update(cloud="")
    assert opened(client, "?rows=cloud")["source"] == {"no cloud": None}


def test_the_payload_names_rows_and_columns_as_they_are_drawn(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    context = client.get("/?order=tier").context
    picture = context["picture"]
    rows = picture["rows"]
    assert rows["names"] == [
        *("RAL_DATADISK", "DESY_DATADISK", "DESY_SCRATCHDISK", "Glasgow_DATADISK")
    ]
    assert rows["labels"] == picture["figure"]["layout"]["yaxis"]["ticktext"]
    named = dict(zip(rows["names"], [rows["labels"][at] for at in rows["at"]], strict=True))
    assert named.pop("RAL_DATADISK") == "<b>Tier 1</b> RAL_DATADISK"
    assert named.pop("DESY_DATADISK") == "<b>Tier 2</b> DESY_DATADISK"
    assert list(named) == list(named.values())
    assert rows["average"] == [2.0, None, None, None]
    assert picture["average"] == 2.0
    assert (picture["stat"], picture["unit"]) == ("mean", "MB/s")
    assert not context["grid"].simulated
    assert "NaN" not in json.dumps(picture)


def test_addresses_that_scripts_open_are_those_of_the_routes(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    with override_script_prefix("/below/"):
        below = client.get("/").context["picture"]
    assert below["cells_url"] == "/below/cells/"
    assert below["link_url"] == "/below/links/:source/:destination/"


@pytest.mark.parametrize(
    ("stat", "said"),
    [
        ("mean", None),
        ("count", None),
        ("p05", "5th percentile"),
        ("success", "success"),
        ("now", "now"),
        # It stands there as now / baseline.
        ("vs_usual", None),
    ],
)
def test_a_card_has_a_line_for_a_statistic_that_it_does_not_say_anyway(
    client, small_world, stat, said
):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    assert client.get(f"/?stat={stat}", follow=True).context["picture"]["said"] == said


@pytest.mark.parametrize(
    ("asked", "square"), [("", True), ("?rows=site&columns=site", True), ("?rows=site", False)]
)
def test_only_a_matrix_of_the_same_on_both_sides_has_reverse_cells(
    client, small_world, asked, square
):
    transfer(small_world.ral, small_world.glasgow, 2.0)
    assert client.get(f"/{asked}").context["picture"]["square"] is square


def test_a_focus_on_nothing_has_a_page_without_a_picture(client, small_world):
    page = look(client, "?only=failed")
    assert "No cell matches these filters." in page
    assert page.link("Show all cells") == "/"
    assert "picture-data" not in page.source


def test_the_palette_chosen_last_is_that_of_a_url_without_one(client, small_world):
    first = client.get("/")
    client.cookies["sonar_palette"] = "magma"
    leads = client.get("/?stat=max", HTTP_IF_NONE_MATCH=first["ETag"])
    assert (leads.status_code, leads["Location"]) == (302, "/?stat=max&palette=magma")
    magma = client.get("/?palette=magma")
    assert (magma.status_code, magma.context["page"].display.palette_name) == (200, "magma")
    # What the URL says wins, the default of others included; it stays in what is passed on.
    own = client.get("/?palette=viridis")
    assert (own.status_code, own.context["page"].display.palette_name) == (200, "viridis")
    assert own.context["page"].url() == "/?palette=viridis"


@pytest.mark.parametrize("kept", ["viridis", "jet", "", "<b>"])
def test_a_remembered_palette_that_says_nothing_leads_nowhere(client, small_world, kept):
    client.cookies["sonar_palette"] = kept
    assert client.get("/").status_code == 200


def test_each_statistic_is_offered_with_what_it_is_for():
    purposes = {statistic.purpose for statistic in STATISTICS.values()}
    assert all(purposes)
    assert len(purposes) == len(STATISTICS)


def test_bounds_go_along_to_statistics_in_their_unit_alone(client, small_world):
    controls = client.get("/?stat=p95&order=tier&above=2&high=9").context["controls"]
    urls = {choice.label: choice.url for choice in controls["shows"]}
    assert urls["median"] == "/?stat=median&order=tier&above=2&high=9"
    assert urls["success (%)"] == "/?stat=success&order=tier"
    assert [choice.label for choice in controls["shows"] if choice.chosen] == ["95th percentile"]
    by = {choice.label: choice.url for choice in controls["groupings"]}
    assert by["cloud"] == "/?stat=p95&rows=cloud&columns=cloud&order=tier&above=2&high=9"
    mixed = client.get("/?rows=site&columns=tier").context["controls"]
    assert (mixed["grouping"], [choice for choice in mixed["groupings"] if choice.chosen]) == (
        "site × tier", [],
    )  # fmt: skip
