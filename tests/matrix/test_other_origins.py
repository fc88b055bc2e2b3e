"""Results of other origins: pages and calls say how many do not count, and show them on request."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from matrix.answers import other_origins
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from sonar.results import sealing
from tests.matrix import responses, world
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
ENDS = "source=RAL_DATADISK&destination=Glasgow_DATADISK"
SAID = (
    "5 production and 1 external results in this time range are not counted: rates and states are "
    "based on tests."
)
PAGES = ["/", "/table/", "/sites/RAL/", LINK]
CALLS = ["matrix/", "links/", "sites/RAL/", f"series/?{ENDS}"]


@pytest.fixture
def imported(small_world: World) -> World:
    """Return a world with five tests of 10 MB/s on a link, and six other results, most of 40."""
    ends = small_world.ral, small_world.glasgow
    tests = world.profile(origin="test")
    production = world.profile(mover="fts", streams=4, origin="production")
    external = world.profile(origin="external")
    tried = world.profile(mover="fts", origin="production", purpose="sweep")
    with world.transfers() as some:
        for hour in range(5):
            some.add(*ends, 10.0 + hour / 10, ago=hour * HOUR + timedelta(minutes=20), made=tests)
        for hour in range(4):
            some.add(*ends, 40.0, ago=hour * HOUR + timedelta(minutes=10), made=production)
        some.add(*ends, None, ago=3 * HOUR, made=production)
        some.add(*ends, 40.0, ago=4 * HOUR, made=external)
        # A sweep counts nowhere, and neither does what is long ago.
        some.add(*ends, 40.0, ago=4 * HOUR, made=tried)
        some.add(*ends, 40.0, ago=40 * 24 * HOUR, made=production)
    return small_world


def seal() -> None:
    sealing.seal(NOW, seconds=60)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_which_results_do_not_count_and_leads_to_them(client, imported, path, sealed):
    if sealed:
        seal()
    page = responses.page(client, path)
    assert SAID in page.words
    links = {
        link.words: link.attributes["href"]
        for link in page.parts("a")
        if "origin=" in link.attributes.get("href", "")
    }
    asked = {
        "Compare these results with test results": (
            "compare.origin=external&compare.origin=production"
        ),
        "Show only production": "origin=production",
        "Show only external": "origin=external",
        "Show all origins": "origin=all",
    }
    assert {words: links[words].partition("?")[2] for words in asked} == asked
    for words in asked:
        shown = responses.page(client, links[words])
        assert "not counted" not in shown.words or "Compare" in words


def test_nothing_is_said_where_tests_are_all_that_there_is(client, small_world):
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    for path in PAGES:
        assert "not counted" not in responses.page(client, path).words
    for call in CALLS:
        assert client.get(f"/api/v1/{call}").json()["other_origins"] == {}


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_counts_what_does_not_count(client, imported, call, sealed):
    if sealed:
        seal()
    assert client.get(f"/api/v1/{call}").json()["other_origins"] == {"production": 5, "external": 1}
    joined = f"{call}&" if "?" in call else f"{call}?"
    for text in ("origin=test", "origin=all", "origin=!external"):
        assert client.get(f"/api/v1/{joined}{text}").json()["other_origins"] == {}
    fts = client.get(f"/api/v1/{joined}mover=fts").json()
    assert fts["other_origins"] == {"production": 5}
    shorter = client.get(f"/api/v1/{joined}window=1h").json()
    assert shorter["other_origins"] == {"production": 1}


def test_results_of_links_that_are_not_shown_are_not_counted(client, imported):
    for call in ("matrix/?cloud=DE", "links/?source_site=Glasgow", "sites/DESY/"):
        assert client.get(f"/api/v1/{call}").json()["other_origins"] == {}
    small = client.get("/api/v1/matrix/?size=small").json()
    assert small["other_origins"] == {}


@pytest.mark.parametrize(
    ("text", "ok", "failed"),
    [
        ("", 5, 0),
        ("origin=test", 5, 0),
        ("origin=production", 4, 1),
        ("origin=external", 1, 0),
        ("origin=!test", 5, 1),
        ("origin=production&origin=external", 5, 1),
        ("origin=all", 10, 1),
        ("origin=all&origin=!external", 9, 1),
    ],
)
@pytest.mark.parametrize("sealed", [False, True])
def test_who_names_an_origin_gets_it_in_every_call(client, imported, text, ok, failed, sealed):
    if sealed:
        seal()
    row = client.get(f"/api/v1/links/?{text}&source_site=RAL").json()["links"]
    large = next(each["large"] for each in row if each["destination"]["site"] == "Glasgow")
    assert (large["ok"], large["failed"]) == (ok, failed)
    buckets = client.get(f"/api/v1/series/?{ENDS}&{text}").json()["buckets"]
    assert (sum(buckets["ok"]), sum(buckets["failed"])) == (ok, failed)
    matrix = client.get(f"/api/v1/matrix/?{text}&source_site=RAL").json()["cells"]
    assert sum(count or 0 for line in matrix["ok"] for count in line) == ok


def test_production_is_compared_with_the_tests_on_one_page(client, imported):
    page = responses.page(client, f"{LINK}?compare.origin=production")
    said = page.part("section#comparison").words
    assert "median 10.2 MB/s in the last 7 days, 40.0 MB/s for transfers only with origin" in said
    turned = responses.page(client, f"{LINK}?origin=production&compare.origin=")
    words = "median 40.0 MB/s in the last 7 days, 10.2 MB/s for transfers only with origin test"
    assert words in turned.part("section#comparison").words


def test_results_of_other_origins_have_a_mark_and_a_colour_of_their_own(client, imported):
    def traces(text: str) -> dict[str, tuple[int, str, str]]:
        drawn = json.loads(responses.page(client, LINK + text).part("script#rates-data").text)
        return {
            trace["name"]: (len(trace["x"]), trace["marker"]["symbol"], trace["marker"]["color"])
            for trace in drawn["data"]
            if trace["mode"] == "markers" and trace["x"]
        }

    tests = {"each test": (5, "circle", "var(--there)")}
    assert traces("") == tests
    production = {
        "each production result": (4, "square-open", "var(--other)"),
        "failed, production": (1, "square-open", "var(--failing)"),
    }
    external = {"each external result": (1, "triangle-up-open", "var(--other)")}
    assert traces("?origin=all") == tests | production | external
    assert traces("?origin=production") == production
    compared = traces("?compare.origin=production")
    assert compared["each test"] == tests["each test"]
    name = "transfers only with origin production: each transfer"
    assert compared[name] == (4, "circle-open", "var(--other)")
    turned = traces("?origin=production&compare.origin=")
    assert turned["transfers only with origin test: each test"][0] == 5


def test_lists_of_single_results_have_those_of_every_origin(client, imported):
    rows = client.get("/api/v1/transfers/").json()["transfers"]
    assert [row["origin"] for row in rows].count("production") == 6
    assert {row["origin"] for row in rows} == {"test", "production", "external"}
    lines = client.get("/api/v1/transfers/?format=csv").getvalue().decode()
    assert lines.count("production") == 6
    only = client.get("/api/v1/transfers/?origin=test").json()["transfers"]
    assert {row["origin"] for row in only} == {"test"}


def test_the_list_of_a_link_has_others_only_on_request(client, imported):
    assert "fts" not in responses.page(client, LINK).part("table.result-rows").words
    assert "fts" in responses.page(client, f"{LINK}?origin=all").part("table.result-rows").words


def test_a_view_that_was_saved_without_an_origin_shows_tests(client, imported):
    """An address of before has none, and means tests now."""
    page = responses.page(client, "/?window=24h&stat=max")
    assert SAID in page.words
    cells = client.get("/api/v1/matrix/?size=large&window=24h&stat=max").json()["cells"]
    assert max(value or 0 for line in cells["value"] for value in line) == pytest.approx(10.4)


def test_what_other_results_there_are_is_looked_for_once_for_a_version(client, imported):
    seal()
    answer = grid.build(MatrixQuery(), NOW)
    with CaptureQueriesContext(connection) as first:
        counts = other_origins.of_grid(answer).counts
    # Their profiles, what stands there, and the columns of their rows.
    assert len([each for each in first if "SELECT" in each["sql"]]) <= 3
    with CaptureQueriesContext(connection) as again:
        assert other_origins.of_grid(answer).counts == counts
    assert len(again) == 0
