"""Causes: the published matrix on page and in the API; links judged by their own 30 days in SQL."""

import csv
import html
import json
import re
from collections import defaultdict
from datetime import timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.causes import attribution, change_causes
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.causes.causes import name_slower
from sonar.models import Endpoint, Site
from tests.conditions import assessed_at, stored_condition
from tests.matrix import responses, world
from tests.matrix.months import month_of, slow_link
from tests.matrix.world import NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/causes/"
CLOSE = {"rel": 0.02}
ENDS = ("source", "destination")


@pytest.fixture
def published(db: None) -> None:
    world.make_published()


def answer(client: Client, text: str = "") -> Any:
    return responses.answer(client, f"{API}{text}")


def factors(document: Any, end: str) -> dict[str, float]:
    return {record["site"]: record["factor"] for record in document[end]}


def off(document: Any) -> dict[tuple[str, str], float]:
    names = ([link[end].removesuffix("_DATADISK") for end in ENDS] for link in document["links"])
    return {(*ends,): link["factor"] for ends, link in zip(names, document["links"], strict=True)}


def page(client: Client, text: str = "") -> str:
    return responses.page(client, f"/causes/{text}").words


def test_the_published_matrix_in_the_api(client, published):
    document = answer(client)
    assert (document["links_explained"], document["degrees_of_freedom"]) == (90, 72)
    of_model = {"r2": 0.848, "r2_adjusted": 0.81, "r2_left_out": 0.76}
    sources = {"UKI-NORTHGRID-MAN-HEP": 0.415, "UKI-LT2-QMUL": 2.864, "UKI-SCOTGRID-GLASGOW": 1.0}
    links = {
        ("UKI-LT2-QMUL", "FZK-LCG2"): 0.287,
        ("UKI-SOUTHGRID-RALPP", "NDGF-T1"): 0.403,
        ("UKI-NORTHGRID-MAN-HEP", "NDGF-T1"): 0.408,
        ("UKI-SCOTGRID-GLASGOW", "NDGF-T1"): 3.279,
    }
    for found, true in (
        (document, of_model),
        (factors(document, "sources"), sources),
        (factors(document, "destinations"), {"TAIWAN-LCG2": 0.240, "TRIUMF-LCG2": 0.518}),
        (off(document), links),
    ):
        assert {name: found[name] for name in true} == pytest.approx(true, **CLOSE)


def test_the_published_matrix_by_a_polish(client, published):
    document = answer(client, "?fit=polish")
    assert document["query"]["fit"] == "polish"
    assert document["r2"] == pytest.approx(0.829, **CLOSE)
    assert off(document)["UKI-LT2-QMUL", "FZK-LCG2"] == pytest.approx(0.214, **CLOSE)
    assert factors(document, "sources")["UKI-SCOTGRID-GLASGOW"] == pytest.approx(0.77, **CLOSE)
    assert 'title="R² 0.83; 0.76 for links' in responses.html(client, "/causes/?fit=polish")


def test_of_sites_and_endpoints_none_is_said_to_lack_results_at_the_other_end(client, published):
    text = page(client, "?rows=site")
    assert (
        "MAN sends at 42 % of the rate of its partners on other links (32–54 %, 10 partners)."
        in text
    )
    assert "No results as" not in text


def test_the_page_says_what_the_published_matrix_says(client, published):
    text = page(client)
    assert (
        "2 sources and 3 destinations are slow compared with their peers. Sources and destinations "
        "explain 85 % of the differences between 90 links." in text
    )
    assert "A typical link is within a factor of 1.46 of its predicted rate." in text
    assert "Most slow links are slow because of their source or destination." in text
    assert (
        "MAN sends at 42 % of the rate of its partners on other links (32–54 %, 10 partners). "
        "No results as a destination." in text
    )
    assert "TAIWAN receives at 24 % of the rate of its partners on other links (1" in text
    assert "LT2-QMUL sends at 286 % of the rate of its partners on other links (2" in text
    left = text.split("Links that deviate from their predicted rate")[1]
    rows = [
        "LT2-QMUL to FZK FZK 3.31 11.5 0.29× 1 < 0.001 yes",
        "SCOTGRID-GLASGOW to NDGF-T1 NDGF-T1 10.4 3.16 3.3× 1 < 0.001 yes",
        "RALPP to NDGF-T1 NDGF-T1 1.61 4.00 0.40× 1 0.006 no",
        "MAN to NDGF-T1 NDGF-T1 0.590 1.45 0.41× 1 0.007 no",
    ]
    for row in rows:
        assert row in left


def test_what_changed_is_apart_from_what_is_slow_by_nature_and_before_it(client, published):
    """Advice is for what changed: an end that is slow by nature is at no fault."""
    places = {end.site.name: end for end in Endpoint.objects.select_related("site")}
    assert "Open conditions not assessed yet There are no open conditions." in page(client)
    stored_condition("slow", source=places["UKI-LT2-QMUL"], confirmed=False)
    stored_condition(destination=places["TAIWAN-LCG2"])
    stored_condition(destination=places["FZK-LCG2"], sizes=["small"])
    assessed_at()
    shown = responses.page(client, "/causes/")
    assert shown.parts("#answer.failing")
    changed, nature = (shown.section(name).words for name in ("changed", "findings"))
    assert shown.words.index(changed) < shown.words.index(nature)
    assert changed.startswith("Open conditions as of 12:00 UTC TAIWAN fails as destination ,")
    assert "LT2-QMUL sends at 0.40× (0.35–0.46)" in changed
    assert "unconfirmed" in changed
    assert "FZK" not in changed
    assert nature.startswith("Slow or fast compared with peers significantly")
    assert "Check" not in nature
    # A condition is of the links that filters choose if one of these is a member.
    assert "TAIWAN fails" not in page(client, "?destination_site=FZK-LCG2")
    assert "TAIWAN fails" in page(client, "?source_site=UKI-LT2-QMUL")


def test_of_doubtful_measurements_it_says_so_before_all_else(client, published):
    stored_condition("slow", since=5 * world.HOUR)
    stored_condition(destination=Endpoint.objects.get(name="TAIWAN-LCG2_DATADISK"), since=DAY / 8)
    changed = responses.page(client, "/causes/").section("changed").words
    assert "Results have been doubtful since 20 Nov 07:00 UTC" in changed
    assert "TAIWAN" not in changed


def test_the_lists_begin_with_the_slowest(client, published):
    text = responses.html(client, "/causes/")
    for end, slowest, fastest in (
        ("source", "UKI-NORTHGRID-MAN-HEP", "UKI-LT2-QMUL"),
        ("destination", "TAIWAN-LCG2", "IN2P3-CC"),
    ):
        table = text.split(f'id="as-{end}"')[1].split("</table>")[0]
        names = re.findall(r'<th scope="row"[^>]*>\s*<a href="([^"]+)">', table)
        assert (names[0], names[-1]) == (f"/sites/{slowest}/", f"/sites/{fastest}/")


def test_the_csv_has_a_line_for_each_end(client, published):
    lines = responses.csv_rows(client, f"{API}?format=csv")
    assert len(lines) == 19
    assert [line["end"] for line in lines] == ["source"] * 9 + ["destination"] * 10
    assert lines[0]["name"] == "UKI-NORTHGRID-MAN-HEP_DATADISK"
    assert float(lines[0]["factor"]) == pytest.approx(0.415, **CLOSE)
    assert lines[0]["kind"] == "slow"


def test_predicted_and_vs_predicted_in_the_matrix(client, published):
    predicted, ratio, median = (
        responses.answer(client, f"/api/v1/matrix/?stat={stat}&fields=value")
        for stat in ("predicted", "vs_predicted", "median")
    )
    assert (predicted["unit"], ratio["unit"]) == ("MB/s", "×")
    values = [
        np.array(document["cells"]["value"], dtype=float) for document in (predicted, ratio, median)
    ]
    np.testing.assert_allclose(values[0] * values[1], values[2], rtol=1e-4)
    sources = [group["site"] for group in ratio["sources"]]
    destinations = [group["site"] for group in ratio["destinations"]]
    qmul_to_fzk = values[1][sources.index("UKI-LT2-QMUL"), destinations.index("FZK-LCG2")]
    assert qmul_to_fzk == pytest.approx(0.287, **CLOSE)
    # What is left of a row is 1 in the geometric mean.
    np.testing.assert_allclose(ratio["source_average"], 1, rtol=1e-5)
    wide = client.get("/api/v1/matrix/?stat=vs_predicted&format=csv").content.decode().splitlines()
    assert next(csv.reader(wide))[2] == "value_times"


@pytest.mark.parametrize("path", ["/", "/api/v1/matrix/", "/api/v1/links/"])
def test_expected_and_residual_have_new_names(client, path, small_world):
    for old, new in (("expected", "predicted"), ("residual", "vs_predicted")):
        refused = client.get(f"{path}?stat={old}")
        assert refused.status_code == 400
        assert f"“{old}” is now called {new}" in refused.content.decode()


@pytest.mark.parametrize(
    ("stat", "sentence"),
    [
        (
            "predicted",
            "Predicted rate (suggested by the other links of both endpoints) for large-file",
        ),
        (
            "vs_predicted",
            "Links that deviate from their predicted rate: median / predicted rate for",
        ),
    ],
)
def test_the_matrix_page_and_the_wall_show_them(client, stat, sentence, published):
    assert client.get(f"/?stat={stat}&wall=1").status_code == 200
    assert sentence in responses.page(client, f"/?stat={stat}").words


def test_means_stand_for_links_if_they_are_asked_for(client, published):
    source, destination = (
        Endpoint.objects.get(name=f"{name}_DATADISK") for name in ("UKI-LT2-QMUL", "FZK-LCG2")
    )
    for rate in (100.0, 3.31):
        world.transfer(source, destination, rate)
    by_median, by_mean = (off(answer(client, text)) for text in ("", "?stat=mean"))
    link = "UKI-LT2-QMUL", "FZK-LCG2"
    assert by_median[link] == pytest.approx(0.287, **CLOSE)
    assert by_mean.get(link, 1.0) > 1


def test_peers_are_those_that_the_filters_let_pass(client, published):
    text = page(client, "?destination_site=FZK-LCG2")
    assert "All 9 links with results have the same destination. A second destination" in text
    # What a single column leaves of each link is nothing.
    assert "Links that deviate from their predicted rate" not in text
    assert "Remove the filters" in text
    document = answer(client, "?destination_site=FZK-LCG2&destination_site=TAIWAN-LCG2")
    assert document["links_explained"] == 18
    assert {record["partners"] for record in document["sources"]} == {2}


def test_an_empty_grid_says_so(client, small_world):
    assert "No link has results to compare." in page(client)
    document = answer(client)
    assert document["headline"] == "No link has results to compare."
    assert document["r2"] is None
    assert document["sources"] == document["links"] == []


def test_one_link_says_nothing(client, small_world):
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    assert "Only one link has results, so it cannot be compared." in page(client)


def test_what_no_results_connect_is_not_compared(client, small_world):
    places = small_world.endpoints
    extra = world.endpoints(
        [(f"S{number}_DISK", Site.objects.create(name=f"S{number}")) for number in range(4)]
    )
    sets = (places[:2], places[2:]), (list(extra.values())[:2], list(extra.values())[2:])
    with world.transfers() as some:
        for sources, destinations in sets:
            for row, source in enumerate(sources):
                for column, destination in enumerate(destinations):
                    some.add(source, destination, 10.0 + 3 * row * column)
    document = answer(client)
    assert document["components"] == 2
    assert {record["component"] for record in document["sources"]} == {0, 1}
    assert "This matrix has 2 parts that are not connected by any results" in page(client)


def test_links_within_a_site_are_no_network_to_compare(client, small_world):
    desy, scratch = small_world.desy, small_world.scratch
    with world.transfers() as some:
        for source, destination in permutations(small_world.endpoints, 2):
            some.add(source, destination, 10.0)
        some.add(desy, scratch, 5_000.0)
    document = answer(client)
    assert document["links_explained"] == 10
    assert document["links"] == []
    matrix = responses.answer(client, "/api/v1/matrix/?stat=vs_predicted&fields=value")
    names = [group["name"] for group in matrix["sources"]]
    row = matrix["cells"]["value"][names.index("DESY_DATADISK")]
    assert row[names.index("DESY_SCRATCHDISK")] is None
    assert row[names.index("RAL_DATADISK")] == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("?fit=robust", "fit", "fit “robust” is not allowed: use means or polish."),
        ("?stat=p95", "stat", "stat “p95” is not allowed: use median or mean."),
        ("?fit=means&fit=polish", "fit", "“fit” is given 2 times: give it only once."),
        ("?size=huge", "size", "size “huge” is not known"),
    ],
)
def test_bad_parameters_are_named(client, small_world, text, name, sentence):
    for address in (API, "/causes/"):
        response = client.get(f"{address}{text}")
        assert response.status_code == 400
        assert sentence in html.unescape(response.content.decode().replace("\\u201c", "“"))
    errors = json.loads(client.get(f"{API}{text}").content)
    assert name in json.dumps(errors)


def test_one_view_has_one_address(client, published):
    response = client.get("/causes/?stat=median&fit=means&window=7d")
    assert response.status_code == 302
    assert response["Location"] == "/causes/"
    for text in ("?stat=mean&fit=polish", "?size=small&rows=site&columns=site&fit=polish"):
        assert client.get(f"/causes/{text}").status_code == 200


def test_the_filter_form_adds_a_filter_without_a_script(client, published):
    response = client.get("/causes/?filter_end=source&filter_on=site&filter_value=UKI-LT2-QMUL")
    assert response["Location"] == "/causes/?source_site=UKI-LT2-QMUL"


def test_the_same_answer_is_not_sent_twice(client, published):
    first = client.get(API)
    assert client.get(API, headers={"If-None-Match": first["ETag"]}).status_code == 304
    assert client.get(f"{API}?fit=polish")["ETag"] != first["ETag"]


def test_an_attribution_is_built_once_for_page_and_api(published):
    query = MatrixQuery(stat="median")
    version = grid.version(query, NOW)
    first = attribution.build(query, NOW, version, "means")
    assert attribution.build(query, NOW, version, "means") is first
    assert attribution.build(query, NOW, version, "polish") is not first


def test_the_site_page_says_it_first(client, published):
    of_manchester = responses.page(client, "/sites/UKI-NORTHGRID-MAN-HEP/")
    first = of_manchester.words.split("Set as my site")[1].split("Standing")[0]
    assert (
        "Slow compared with its peers: sends at 42 % of the rate of its partners on other links "
        "(32–54 %, 10 partners). No results as a destination. Causes" in first
    )
    assert "/causes/?rows=site&columns=site" in of_manchester.links()
    # Glasgow does as its peers do, which is said with its figures, too.
    said = responses.page(client, "/sites/UKI-SCOTGRID-GLASGOW/").words
    assert (
        "Similar to its peers: sends at 100 % of the rate of its partners on other links (" in said
    )


def peers(client: Client, site: str) -> dict[str, str]:
    found: dict[str, str] = responses.answer(client, f"/api/v1/sites/{site}/")["against_peers"]
    return found


def test_the_api_says_the_same_of_a_site_and_its_peers(client, published):
    assert peers(client, "TAIWAN-LCG2") == {
        "kind": "slow",
        "sentence": "Slow compared with its peers: receives at 24 % of the rate of its partners on "
        "other links (18–31 %, 9 partners). No results as a source.",
    }
    assert peers(client, "UKI-LT2-QMUL")["kind"] == "fast"
    assert peers(client, "UKI-LT2-QMUL")["sentence"].startswith(
        "Fast compared with its peers: sends at"
    )


def test_of_a_site_with_too_few_links_nothing_is_said_but_that(client, small_world):
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    assert peers(client, "RAL") == {
        "kind": "unknown",
        "sentence": "Not compared with its peers: too few other links have results.",
    }


def compared_grid() -> None:
    """Twelve sources and ten destinations in two days: on the second, S03 sends at a half."""
    rng = np.random.default_rng(15)
    sites = Site.objects.bulk_create(Site(name=f"S{number:02}") for number in range(22))
    places = list(world.endpoints((f"{site.name}_DISK", site) for site in sites).values())
    with world.transfers() as some:
        for source in places[:12]:
            for destination in places[12:]:
                for hours in range(1, 47, 5):
                    is_hit = hours < 24 and source.name == "S03_DISK"
                    rate = 20 * np.exp(rng.normal(0, 0.3)) / (2 if is_hit else 1)
                    some.add(source, destination, float(rate), ago=hours * world.HOUR)


def test_of_a_comparison_the_cause_is_named(client, db):
    compared_grid()
    text = "?window=24h&compare=previous"
    document = answer(client, text)
    (change,) = document["changes"]
    assert (change["scope"], change["source"], change["destination"]) == (
        "source",
        "S03_DISK",
        None,
    )
    assert change["low"] < 0.5 < change["high"]
    assert change["links"] == 10
    slowest = document["sources"][0]
    assert slowest["name"] == "S03_DISK"
    # Against the mean of the eleven others.
    assert slowest["low"] < 0.5 < slowest["high"]
    assert document["unit"] == "×"
    shown = page(client, text)
    assert change["text"] in shown
    assert re.match(r"S03_DISK sends at \d\d % of the 24 hours before \(", change["text"])
    assert "%, 10 links). Check the outbound path." in shown


def test_a_comparison_in_which_nothing_changed_names_nothing(client, db):
    compared_grid()
    text = "?window=24h&source_site=!S03&compare=previous"
    assert answer(client, text)["changes"] == []
    assert "changed significantly compared with the 24 hours before." in page(client, text)


def test_a_comparison_without_results_says_what_is_missing(client, small_world):
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    text = page(client, "?compare=previous")
    assert "No link has 3 successful transfers on both sides of the comparison." in text
    assert "Links with fewer than 3 successful tests on either side of the comparison" in text
    assert "Causes of the change" not in text


def test_a_link_to_a_site_is_called_after_it(client, published):
    html = responses.html(client, "/causes/")
    findings = html.split('aria-labelledby="findings"')[1].split("</section>")[0]
    links = re.findall(r'<a href="/sites/([^/]+)/"[^>]*>([^<]+)</a>', findings)
    assert len(links) >= 2
    assert all(site == name for site, name in links)
    assert "Site page<" not in html
    # Whole names are a hover away.
    assert '<th scope="row" title="UKI-NORTHGRID-MAN-HEP_DATADISK">' in html


MONTH = "?window=24h&compare=month"
DAY = timedelta(days=1)
ROWS = """
    SELECT source.name, destination.name, (started_at AT TIME ZONE 'UTC')::date, bytes / seconds
    FROM sonar_transfer t
    JOIN sonar_endpoint source ON source.id = source_id
    JOIN sonar_endpoint destination ON destination.id = destination_id
    JOIN sonar_sizeclass c ON c.id = size_class_id
    WHERE state = 'done' AND c.name = 'large' AND started_at >= %s AND started_at < %s
"""
Logs = dict[tuple[str, str], list[float]]


def logs_of_links(query: MatrixQuery) -> tuple[Logs, dict[Any, Logs]]:
    """Return by link the log rates of the window and, by day, of the 30 days before."""
    now, before = defaultdict(list), defaultdict(lambda: defaultdict(list))
    window = query.window_at(NOW)
    start = window.start - 30 * DAY
    with connection.cursor() as cursor:
        cursor.execute(ROWS, [window.start, window.end])
        for source, destination, _, rate in cursor.fetchall():
            now[source, destination].append(np.log(rate))
        cursor.execute(ROWS, [start, window.start])
        for source, destination, day, rate in cursor.fetchall():
            before[day][source, destination].append(np.log(rate))
    return now, before


def mixed_month(small: World) -> None:
    """Store tests now and then on most links of the small world, with failures and holes."""
    rng = np.random.default_rng(4)
    with world.transfers() as some:
        for source, destination in permutations(small.endpoints, 2):
            if (source, destination) == (small.ral, small.scratch):
                continue
            level = 5.0 * (1 + source.id % 7) * (1 + destination.id % 5)
            # One link of two from DESY to Glasgow has rested since before each window.
            rests = (source, destination) == (small.scratch, small.glasgow)
            for hours in rng.uniform(8 * 24 if rests else 0.1, 40 * 24, 160):
                rate = None if rng.uniform() < 0.2 else level * float(np.exp(rng.normal()))
                some.add(source, destination, rate, ago=timedelta(hours=float(hours)))
        # A link of the last week alone, and one of the last hours alone.
        for hours in (3, 30, 40, 70):
            some.add(small.ral, small.scratch, 9.0, ago=timedelta(hours=hours))


@pytest.mark.parametrize("grouping", ["endpoint", "site"])
@pytest.mark.parametrize("window", ["24h", "7d"])
def test_days_of_cells_are_those_of_the_rows_in_sql(small_world, grouping, window):
    mixed_month(small_world)
    query = MatrixQuery(window=window, stat="median", rows=grouping, columns=grouping)
    text = {**query.to_params(), "stat": ["median"], "compare": ["month"]}
    matrix = grid.build(MatrixQuery.from_params(text), NOW)
    assert matrix.other is not None
    own, judged, unjudged = change_causes.read_history(matrix, matrix.other)
    now, before = logs_of_links(query)
    site_of = dict(Endpoint.objects.values_list("name", "site__name"))
    usual = {
        link: np.mean([log for logs in before.values() for log in logs.get(link, ())])
        for link in now
        if any(link in logs for logs in before.values())
    }

    def cell(logs: Logs, source: str, destination: str) -> list[float]:
        def is_of(name: str, group: str) -> bool:
            return group in (name, site_of[name])

        return [
            log - usual[link]
            for link in usual
            if is_of(link[0], source) and is_of(link[1], destination)
            if site_of[link[0]] != site_of[link[1]]
            for log in logs.get(link, ())
        ]

    days = [before[day] for day in sorted(before)]
    for row, source in enumerate(matrix.sources):
        for column, destination in enumerate(matrix.destinations):
            for logs, mean, count in (
                (now, own.window, own.ok),
                *zip(days, own.days, own.other_ok, strict=True),
            ):
                values = cell(logs, source.name, destination.name)
                assert count[row, column] == len(values)
                expected = np.mean(values) if values else np.nan
                np.testing.assert_allclose(mean[row, column], expected, atol=1e-6)
    enough = np.isfinite(own.days).sum(axis=0) >= 5
    np.testing.assert_array_equal(judged, enough & np.isfinite(own.window))
    rated = np.isfinite(own.window)
    assert judged[rated].sum() > 3
    if grouping == "endpoint":
        assert unjudged.sum() == 1


def test_a_single_link_is_named_by_its_own_days_where_one_comparison_does_not(client, db):
    month_of(8, slow_link)
    document = answer(client, MONTH)
    (change,) = document["changes"]
    ends = change["scope"], change["source"], change["destination"]
    assert ends == ("link", "S03_DISK", "S05_DISK")
    assert change["low"] < 1 / 3 < change["high"]
    assert (change["ok"], change["other_ok"], change["links"]) == (2, 60, 1)
    assert document["history"] == {"judged_links": 56, "unjudged_links": 0}
    factor, low, high = (100 * change[name] for name in ("factor", "low", "high"))
    assert change["text"] == (
        f"S03_DISK → S05_DISK is at {factor:.0f} % of its 30-day rate ({low:.0f}–{high:.0f} %, 2 "
        "tests, 60 before). Only this link is affected. Check its network path."
    )
    shown = page(client, MONTH)
    headline = "Compared with the 30 days before, the rate of 1 link fell."
    assert headline in shown
    assert document["headline"] == headline
    assert change["text"] in shown
    assert "56 links are compared with their own results on each of the 30 days before" in shown
    assert "All days in this time range are combined" not in shown
    plain = answer(client, "?window=24h&compare=previous")
    assert (plain["changes"], plain["history"]) == ([], None)


def test_its_numbers_are_those_of_the_rows_in_sql(client, db):
    places = [place.name for place in month_of(8, slow_link)]
    now, before = logs_of_links(MatrixQuery(window="24h"))
    days = [before[day] for day in sorted(before)]
    shape = len(days) + 1, len(places), len(places)
    logs, spread = np.full(shape, np.nan), np.ones(shape)
    for number, of_day in enumerate([now, *days]):
        for (source, destination), values in of_day.items():
            place = number, places.index(source), places.index(destination)
            logs[place], spread[place] = np.mean(values), len(values) ** -0.5
    (cause,) = name_slower(
        logs[0], logs[1:], spread=(spread[0], spread[1:]), sites=places, endpoints=places
    )
    (change,) = answer(client, MONTH)["changes"]
    for name in ("factor", "low", "high", "p"):
        assert change[name] == pytest.approx(getattr(cause, name), rel=1e-4)


def test_of_a_source_all_its_tests_are_counted(client, db):
    month_of(6, lambda row, _, day: 20 / (2 if (row, day) == (3, 0) else 1))
    (change,) = answer(client, MONTH)["changes"]
    assert (change["scope"], change["source"], change["destination"]) == (
        "source",
        "S03_DISK",
        None,
    )
    assert (change["links"], change["ok"], change["other_ok"]) == (5, 10, 300)
    assert "%, 5 links, 10 tests, 300 before). Check the outbound path." in page(client, MONTH)


def test_several_causes_are_counted_by_what_they_are(client, db):
    hit = {(3, 5), (6, 2), *((row, 7) for row in range(9))}
    month_of(9, lambda row, column, day: 20 / (4 if (row, column) in hit and not day else 1))
    document = answer(client, MONTH)
    scopes = [change["scope"] for change in document["changes"]]
    assert sorted(scopes) == ["destination", "link", "link"]
    assert document["headline"] in (
        "Compared with the 30 days before, the rates of 1 destination and 2 links fell.",
        "Compared with the 30 days before, the rates of 2 links and 1 destination fell.",
    )


def test_what_became_faster_or_stayed_is_not_named(client, db):
    month_of(6, lambda row, _, day: 20 * (3 if (row, day) == (3, 0) else 1))
    assert answer(client, MONTH)["changes"] == []
    shown = page(client, MONTH)
    assert "Compared with the 30 days before, no rate fell significantly." in shown
    assert "No source, destination, site or link became significantly slower." in shown


def test_the_csv_has_the_causes_before_the_ends(client, db):
    month_of(8, slow_link, per_day=3)
    first, *lines = responses.csv_rows(client, f"{API}{MONTH}&format=csv")
    (change,) = answer(client, MONTH)["changes"]
    assert (first["list"], first["end"], first["kind"]) == ("changes", "link", "slow")
    assert (first["name"], first["destination"]) == ("S03_DISK", "S05_DISK")
    assert (first["ok"], first["other_ok"], first["partners"]) == ("3", "90", "1")
    assert first["text"] == change["text"]
    assert float(first["factor"]) == change["factor"]
    assert [line["list"] for line in lines] == ["sources"] * 8 + ["destinations"] * 8
    assert {line["text"] for line in lines} == {""}


def test_a_long_window_says_that_its_days_count_together(client, db):
    month_of(6, slow_link)
    shown = page(client, "?compare=month")
    assert "30 links are compared" in shown
    assert "All days in this time range are combined" in shown


def test_where_more_differs_the_sides_are_compared_as_wholes(client, db):
    month_of(6, slow_link)
    for text in (f"{MONTH}&compare=reverse", f"{MONTH}&compare.size=small"):
        assert answer(client, text)["history"] is None
        assert "Compared with the 30 days before" not in page(client, text)


@pytest.mark.parametrize(("days", "judged"), [(4, 0), (5, 6)])
def test_too_few_days_are_said(client, small_world, days, judged):
    with world.transfers() as some:
        for source, destination in permutations(small_world.endpoints[:3], 2):
            for number in range(days + 1):
                # At noon of each day, and now.
                ago = number * DAY + world.HOUR / 2
                some.add(source, destination, 10.0 + number, ago=ago)
    assert answer(client, MONTH)["history"] == {
        "judged_links": judged,
        "unjudged_links": 6 - judged,
    }
    few = "has results both in this time range and on at least 5 of the 30 days before"
    assert (few in page(client, MONTH)) == (not judged)


def test_an_empty_grid_has_no_link_to_judge(client, small_world):
    document = answer(client, MONTH)
    nothing = {"judged_links": 0, "unjudged_links": 0}
    assert (document["changes"], document["history"]) == ([], nothing)
    assert "no link has results both in this time range" in page(client, MONTH)
    world.transfer(small_world.ral, small_world.glasgow, 10.0)
    assert answer(client, MONTH)["history"] == {"judged_links": 0, "unjudged_links": 1}


def test_filters_choose_the_links_that_are_judged(client, db):
    month_of(6, slow_link)
    document = answer(client, f"{MONTH}&source_site=S03&source_site=S04")
    assert document["history"] == {"judged_links": 10, "unjudged_links": 0}
    assert answer(client, f"{MONTH}&streams=4")["history"]["judged_links"] == 0


def test_it_is_computed_once_for_page_and_api(client, db):
    month_of(6, slow_link)
    query = MatrixQuery.from_params({"window": ["24h"], "compare": ["month"], "stat": ["median"]})
    version = grid.version(query, NOW)
    built = [
        change_causes.build(attribution.build(query, NOW, version, fit))
        for fit in ("means", "polish")
    ]
    assert built[0] is built[1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "most"),
    [("/causes/", 11), (API, 7), (f"/causes/{MONTH}", 16), (f"{API}{MONTH}", 12)],
)
def test_the_number_of_queries_does_not_depend_on_the_data(client, small_world, address, most):
    # Its tests are no change of a level: since when one lasts is read only where there is one.
    idle = world.endpoint("X", small_world.ral.site), world.endpoint("Y", small_world.desy.site)

    def queries() -> tuple[int, str]:
        world.transfer(*idle, 5.0)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured), "\n".join(query["sql"] for query in captured)

    mixed_month(small_world)
    queries()
    count, statements = queries()
    assert count == most, statements
    mixed_month(small_world)
    sites = Site.objects.bulk_create(Site(name=f"site-{number}") for number in range(30))
    with world.transfers() as some:
        for place in world.endpoints((f"at-{site.name}", site) for site in sites).values():
            some.add(small_world.ral, place, 5.0)
    queries()
    assert queries()[0] == most
