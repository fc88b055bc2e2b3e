"""Causes: the published matrix on page, in the API and in the matrix, and what cannot be said."""

import csv
import html
import json
import re
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.causes import attribution
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Site
from tests.matrix import responses, world
from tests.matrix.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/causes/"
CLOSE = {"rel": 0.02}


@pytest.fixture
def published(db: None) -> None:
    world.make_published()


def answer(client: Client, text: str = "") -> Any:
    return responses.answer(client, f"{API}{text}")


def factors(document: Any, end: str) -> dict[str, float]:
    return {record["site"]: record["factor"] for record in document[end]}


def off(document: Any) -> dict[tuple[str, str], float]:
    return {
        tuple(link[end].removesuffix("_DATADISK") for end in ("source", "destination")): link[
            "factor"
        ]
        for link in document["links"]
    }


def page(client: Client, text: str = "") -> str:
    return html.unescape(responses.words(responses.html(client, f"/causes/{text}")))


@pytest.mark.usefixtures("published")
def test_the_published_matrix_in_the_api(client):
    document = answer(client)
    assert document["r2"] == pytest.approx(0.848, **CLOSE)
    assert document["r2_adjusted"] == pytest.approx(0.81, **CLOSE)
    assert document["r2_left_out"] == pytest.approx(0.76, **CLOSE)
    assert document["links_explained"] == 90
    assert document["degrees_of_freedom"] == 72
    assert factors(document, "sources") == pytest.approx(
        factors(document, "sources")
        | {
            "UKI-NORTHGRID-MAN-HEP": 0.415,
            "UKI-LT2-QMUL": 2.864,
            "UKI-SCOTGRID-GLASGOW": 1.0,
        },
        **CLOSE,
    )
    as_destination = factors(document, "destinations")
    assert as_destination["TAIWAN-LCG2"] == pytest.approx(0.240, **CLOSE)
    assert as_destination["TRIUMF-LCG2"] == pytest.approx(0.518, **CLOSE)
    links = off(document)
    assert links["UKI-LT2-QMUL", "FZK-LCG2"] == pytest.approx(0.287, **CLOSE)
    assert links["UKI-SOUTHGRID-RALPP", "NDGF-T1"] == pytest.approx(0.403, **CLOSE)
    assert links["UKI-NORTHGRID-MAN-HEP", "NDGF-T1"] == pytest.approx(0.408, **CLOSE)
    assert links["UKI-SCOTGRID-GLASGOW", "NDGF-T1"] == pytest.approx(3.279, **CLOSE)


@pytest.mark.usefixtures("published")
def test_the_published_matrix_by_a_polish(client):
    document = answer(client, "?fit=polish")
    assert document["query"]["fit"] == "polish"
    assert document["r2"] == pytest.approx(0.829, **CLOSE)
    assert off(document)["UKI-LT2-QMUL", "FZK-LCG2"] == pytest.approx(0.214, **CLOSE)
    assert factors(document, "sources")["UKI-SCOTGRID-GLASGOW"] == pytest.approx(0.77, **CLOSE)
    assert 'title="R² 0.83; 0.76 for links' in responses.html(client, "/causes/?fit=polish")


@pytest.mark.usefixtures("published")
def test_of_sites_and_endpoints_none_is_said_to_lack_results_at_the_other_end(
    client,
):
    text = page(client, "?rows=site")
    assert (
        "MAN sends at 42 % of what its partners reach elsewhere (32–54 %, 10 partners). Check the "
        "outbound path." in text
    )
    assert "No results as" not in text


@pytest.mark.usefixtures("published")
def test_the_page_says_what_the_published_matrix_says(client):
    text = page(client)
    assert (
        "2 sources and 3 destinations are slow. Sources and destinations explain 85 % of the "
        "differences between 90 links." in text
    )
    assert "A typical link is within a factor of 1.46 of that." in text
    assert "Most slow links are slow because of their source or destination." in text
    assert (
        "MAN sends at 42 % of what its partners reach elsewhere (32–54 %, 10 partners). "
        "No results as a destination. Check the outbound path." in text
    )
    assert "TAIWAN receives at 24 % of what its partners reach elsewhere (1" in text
    assert "LT2-QMUL sends at 286 % of what its partners reach elsewhere (2" in text
    left = text.split("Links that deviate from their endpoints")[1]
    rows = [
        "LT2-QMUL to FZK FZK 3.31 11.5 0.29× 1 < 0.001 yes",
        "SCOTGRID-GLASGOW to NDGF-T1 NDGF-T1 10.4 3.16 3.3× 1 < 0.001 yes",
        "RALPP to NDGF-T1 NDGF-T1 1.61 4.00 0.40× 1 0.006 no",
        "MAN to NDGF-T1 NDGF-T1 0.590 1.45 0.41× 1 0.007 no",
    ]
    for row in rows:
        assert row in left


@pytest.mark.usefixtures("published")
def test_the_lists_begin_with_the_slowest(client):
    text = responses.html(client, "/causes/")
    for end, slowest, fastest in (
        ("source", "UKI-NORTHGRID-MAN-HEP", "UKI-LT2-QMUL"),
        ("destination", "TAIWAN-LCG2", "IN2P3-CC"),
    ):
        table = text.split(f'id="as-{end}"')[1].split("</table>")[0]
        names = re.findall(r'<th scope="row"[^>]*>\s*<a href="([^"]+)">', table)
        assert names[0] == f"/sites/{slowest}/"
        assert names[-1] == f"/sites/{fastest}/"


@pytest.mark.usefixtures("published")
def test_the_csv_has_a_line_for_each_end(client):
    lines = responses.csv_rows(client, f"{API}?format=csv")
    assert len(lines) == 19
    assert [line["end"] for line in lines] == ["source"] * 9 + ["destination"] * 10
    assert lines[0]["name"] == "UKI-NORTHGRID-MAN-HEP_DATADISK"
    assert float(lines[0]["factor"]) == pytest.approx(0.415, **CLOSE)
    assert lines[0]["kind"] == "slow"


@pytest.mark.usefixtures("published")
def test_expected_and_residual_in_the_matrix(client):
    expected, residual, median = (
        responses.answer(client, f"/api/v1/matrix/?stat={stat}&fields=value")
        for stat in ("expected", "residual", "median")
    )
    assert (expected["unit"], residual["unit"]) == ("MB/s", "×")
    values = [
        np.array(document["cells"]["value"], dtype=float)
        for document in (expected, residual, median)
    ]
    np.testing.assert_allclose(values[0] * values[1], values[2], rtol=1e-4)
    sources = [group["site"] for group in residual["sources"]]
    destinations = [group["site"] for group in residual["destinations"]]
    qmul_to_fzk = values[1][sources.index("UKI-LT2-QMUL"), destinations.index("FZK-LCG2")]
    assert qmul_to_fzk == pytest.approx(0.287, **CLOSE)
    # What is left of a row is 1 in the geometric mean.
    np.testing.assert_allclose(residual["source_average"], 1, rtol=1e-5)
    wide = client.get("/api/v1/matrix/?stat=residual&format=csv").content.decode().splitlines()
    assert next(csv.reader(wide))[2] == "value_times"


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("stat", "sentence"),
    [
        ("expected", "Expected rate (what both endpoints explain) of large-file transfers"),
        ("residual", "Links that deviate from their endpoints: median / expected rate of"),
    ],
)
def test_the_matrix_page_and_the_wall_show_them(client, stat, sentence):
    for address in (f"/?stat={stat}", f"/?stat={stat}&wall=1"):
        assert client.get(address).status_code == 200
    assert sentence in page_of_matrix(client, stat)


def page_of_matrix(client: Client, stat: str) -> str:
    return responses.words(responses.html(client, f"/?stat={stat}"))


@pytest.mark.usefixtures("published")
def test_means_stand_for_links_if_they_are_asked_for(client):
    source, destination = (
        Endpoint.objects.get(name=f"{name}_DATADISK") for name in ("UKI-LT2-QMUL", "FZK-LCG2")
    )
    for rate in (100.0, 3.31):
        world.transfer(source, destination, rate)
    by_median, by_mean = (off(answer(client, text)) for text in ("", "?stat=mean"))
    link = "UKI-LT2-QMUL", "FZK-LCG2"
    assert by_median[link] == pytest.approx(0.287, **CLOSE)
    assert by_mean.get(link, 1.0) > 1


@pytest.mark.usefixtures("published")
def test_peers_are_those_that_the_filters_let_pass(client):
    text = page(client, "?destination_site=FZK-LCG2")
    assert "All 9 links with results have the same destination. Only a second destination" in text
    # What a single column leaves of each link is nothing.
    assert "Links that deviate from their endpoints" not in text
    assert "remove the filters" in text
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
    assert "The only link with results has nothing to be compared with." in page(client)


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
    assert "This matrix has 2 parts that no results connect" in page(client)


def test_links_within_a_site_are_no_network_to_compare(client, small_world):
    desy, scratch = small_world.desy, small_world.scratch
    with world.transfers() as some:
        for source in small_world.endpoints:
            for destination in small_world.endpoints:
                if source != destination:
                    some.add(source, destination, 10.0)
        some.add(desy, scratch, 5_000.0)
    document = answer(client)
    assert document["links_explained"] == 10
    assert document["links"] == []
    matrix = responses.answer(client, "/api/v1/matrix/?stat=residual&fields=value")
    names = [group["name"] for group in matrix["sources"]]
    row = matrix["cells"]["value"][names.index("DESY_DATADISK")]
    assert row[names.index("DESY_SCRATCHDISK")] is None
    assert row[names.index("RAL_DATADISK")] == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("?fit=robust", "fit", "fit “robust” is not known here: use means or polish."),
        ("?stat=p95", "stat", "stat “p95” is not known here: use median or mean."),
        ("?fit=means&fit=polish", "fit", "fit is given 2 times: give it once."),
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


@pytest.mark.usefixtures("published")
def test_one_view_has_one_address(client):
    response = client.get("/causes/?stat=median&fit=means&window=7d")
    assert response.status_code == 302
    assert response["Location"] == "/causes/"
    for text in ("?stat=mean&fit=polish", "?size=small&rows=site&columns=site&fit=polish"):
        assert client.get(f"/causes/{text}").status_code == 200


@pytest.mark.usefixtures("published")
def test_the_filter_form_adds_a_filter_without_a_script(client):
    response = client.get("/causes/?filter_end=source&filter_on=site&filter_value=UKI-LT2-QMUL")
    assert response["Location"] == "/causes/?source_site=UKI-LT2-QMUL"


@pytest.mark.usefixtures("published")
def test_the_same_answer_is_not_sent_twice(client):
    first = client.get(API)
    assert client.get(API, headers={"If-None-Match": first["ETag"]}).status_code == 304
    assert client.get(f"{API}?fit=polish")["ETag"] != first["ETag"]


@pytest.mark.parametrize(("address", "most"), [("/causes/", 13), (API, 9)])
def test_the_number_of_queries_is_the_same_for_little_and_for_much(
    client, small_world, address, most
):
    def queries() -> tuple[int, str]:
        world.transfer(small_world.ral, small_world.glasgow, 5.0)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured), "\n".join(query["sql"] for query in captured)

    queries()
    count, statements = queries()
    assert count == most, statements
    for number in range(30):
        site = Site.objects.create(name=f"site-{number}")
        world.transfer(small_world.ral, world.endpoint(f"place-{number}", site), 5.0)
    queries()
    assert queries()[0] == most


@pytest.mark.usefixtures("published")
def test_an_attribution_is_built_once_for_page_and_api():
    query = MatrixQuery(stat="median")
    version = grid.version(query, NOW)
    first = attribution.build(query, NOW, version, "means")
    assert attribution.build(query, NOW, version, "means") is first
    assert attribution.build(query, NOW, version, "polish") is not first


@pytest.mark.usefixtures("published")
def test_the_site_page_says_it_first(client):
    text = html.unescape(responses.words(responses.html(client, "/sites/UKI-NORTHGRID-MAN-HEP/")))
    first = text.split("Make this my site")[1].split("Standing")[0]
    assert (
        "Slow against its peers: sends at 42 % of what its partners reach elsewhere (32–54 %, 10 "
        "partners). No results as a destination. Check the outbound path. Causes" in first
    )
    assert 'href="/causes/?rows=site&columns=site"' in html.unescape(
        responses.html(client, "/sites/UKI-NORTHGRID-MAN-HEP/")
    )
    # Glasgow does as its peers do, which is said with its figures, too.
    said = html.unescape(responses.words(responses.html(client, "/sites/UKI-SCOTGRID-GLASGOW/")))
    assert "Similar to its peers: sends at 100 % of what its partners reach elsewhere (" in said


def peers(client: Client, site: str) -> dict[str, str]:
    found: dict[str, str] = responses.answer(client, f"/api/v1/sites/{site}/")["against_peers"]
    return found


@pytest.mark.usefixtures("published")
def test_the_api_says_the_same_of_a_site_and_its_peers(client):
    assert peers(client, "TAIWAN-LCG2") == {
        "kind": "slow",
        "sentence": "Slow against its peers: receives at 24 % of what its partners reach elsewhere "
        "(18–31 %, 9 partners). No results as a source. Check the inbound path.",
    }
    assert peers(client, "UKI-LT2-QMUL")["kind"] == "fast"
    assert peers(client, "UKI-LT2-QMUL")["sentence"].startswith("Fast against its peers: sends at")


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
    assert (change["kind"], change["source"], change["destination"]) == ("source", "S03_DISK", None)
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
    assert "No link has 3 successful transfers on both sides to compare." in text
    assert "need 3 successful tests each on both sides. Choose a longer window" in text
    assert "What explains the change" not in text


@pytest.mark.usefixtures("published")
def test_a_link_to_a_site_is_called_after_it(client):
    html = responses.html(client, "/causes/")
    findings = html.split('aria-labelledby="findings"')[1].split("</section>")[0]
    links = re.findall(r'<a href="/sites/([^/]+)/"[^>]*>([^<]+)</a>', findings)
    assert len(links) >= 2
    assert all(site == name for site, name in links)
    assert "Site page<" not in html
    # Whole names are a hover away.
    assert '<th scope="row" title="UKI-NORTHGRID-MAN-HEP_DATADISK">' in html
