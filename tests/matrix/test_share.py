"""What a page offers to take along: two addresses of its view, its numbers, and files of them."""

import re
from html import unescape

import pytest
from django.test import Client

from matrix.api.rendering import as_file, file_name
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from tests.matrix.world import HOUR, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
BOUNDS = "from=2026-11-19T12:01:00Z&to=2026-11-20T12:01:00Z"


def offers(client: Client, path: str) -> dict[str, str]:
    """Return the links of the block, by their words."""
    html = client.get(path).content.decode()
    block = re.search(r'<div class="share.*?</details>', html, re.DOTALL)
    assert block
    links = re.findall(r'<a href="([^"]*)".*?>(.*?)</a>', block[0], re.DOTALL)
    return {
        " ".join(re.sub("<[^>]*>", " ", unescape(words)).split()): unescape(url)
        for url, words in links
    }


@pytest.mark.parametrize(
    ("path", "asked", "kept"),
    [
        (
            "/",
            "?window=24h&stat=max&only=measured&palette=magma",
            "stat=max&{}&only=measured&palette=magma",
        ),
        ("/table/", "?window=24h&search=ral", "{}&search=ral"),
        ("/sites/", "?window=24h&ordering=-wan", "{}&ordering=-wan"),
        ("/sites/RAL/", "?size=small&window=24h", "size=small&{}"),
        (LINK, "?window=24h&reverse=1", "{}&reverse=1"),
    ],
)
def test_one_link_is_of_the_newest_and_one_of_exactly_these_numbers(
    client, small_world, path, asked, kept
):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    exact = f"{path}?{kept.format(BOUNDS)}"
    shown = offers(client, path + asked)
    assert shown["link that always shows the newest results"] == path + asked
    assert shown["link to exactly these numbers"] == exact
    response = client.get(exact)
    assert response.status_code == 200
    assert "Time range: 19 Nov 12:01 to 20 Nov 2026 12:01 UTC" in response.content.decode()
    of_exact = offers(client, exact)
    assert "link to exactly these numbers" not in of_exact
    assert exact in of_exact.values()


def test_the_exact_link_shows_the_same_numbers_later(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    exact = offers(client, "/")["link to exactly these numbers"]
    transfer(small_world.ral, small_world.glasgow, 50.0, ago=-HOUR)
    grids = [
        client.get(path).context["grid"]
        for path in ("/?from=2026-11-13T12:01:00Z&to=2026-11-21T00:00:00Z", exact)
    ]
    assert [grid.cells.ok.sum() for grid in grids] == [2, 1]


def test_a_page_without_a_window_has_one_link(client, small_world):
    one = transfer(small_world.ral, small_world.glasgow, 10.0)
    path = f"/transfers/{one.id}/"
    shown = offers(client, path)
    assert path in shown.values()
    assert "link to exactly these numbers" not in shown


@pytest.mark.long
def test_every_link_of_the_block_answers(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    for path in ("/", "/table/", "/sites/", "/sites/RAL/", LINK, "/operations/"):
        for words, url in offers(client, path).items():
            response = client.get(url)
            assert response.status_code == 200, (path, words)
            assert response.getvalue()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/?window=24h&stat=max", "Figure for a notebook (Plotly JSON)"),
        ("/?window=24h&stat=max", "Figure as one HTML file"),
        (f"{LINK}?size=small&window=24h", "Figure for a notebook (Plotly JSON)"),
        ("/sites/RAL/?window=24h", "Plot of the site as source, for a notebook (Plotly JSON)"),
        ("/sites/RAL/?window=24h", "Plot of the site as destination, as one HTML file"),
    ],
)
def test_the_figure_is_of_what_the_page_shows(client, small_world, path, words):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    url = offers(client, path)[words]
    response = client.get(url)
    assert response.status_code == 200
    text = response.content.decode()
    assert "19 Nov 12:01 to 20 Nov 2026 12:01 UTC" in text
    size = "small" if "small" in path else "large"
    assert re.search(rf"{size}(-file| files)", text)


DAY = "from=2026-11-19&to=2026-11-20"


@pytest.mark.parametrize(
    ("call", "asked", "name"),
    [
        ("links/", "site=RAL&from=2026-11-19&to=2026-11-20", "links-RAL-2026-11-19.csv"),
        ("links/", "window=24h", "links-2026-11-19-to-2026-11-20.csv"),
        (
            "links/",
            f"{DAY}&source_site=RAL&destination_site=!DESY&size=small&format=ndjson",
            "links-from-RAL-not-to-DESY-small-2026-11-19.ndjson",
        ),
        ("transfers/", f"{DAY}&mesh=everything", "transfers-everything-2026-11-19.csv"),
        (
            "transfers/",
            f"{DAY}&source_endpoint=RAL_DATADISK&destination_endpoint=DESY_DATADISK",
            "transfers-from-RAL_DATADISK-to-DESY_DATADISK-2026-11-19.csv",
        ),
        ("sites/", DAY, "sites-2026-11-19.csv"),
        ("sites/RAL/", DAY, "site-RAL-2026-11-19.csv"),
        ("sites/RAL/", f"{DAY}&compare=previous", "site-RAL-2026-11-19.csv"),
        (
            "sites/RAL/",
            f"{DAY}&format=plotly&end=destination",
            "site-RAL-as-destination-2026-11-19.plotly.json",
        ),
        (
            "series/",
            f"{DAY}&source=RAL_DATADISK&destination=DESY_DATADISK",
            "series-RAL_DATADISK-DESY_DATADISK-2026-11-19.csv",
        ),
        ("matrix/", f"{DAY}&cloud=UK", "matrix-mean-UK-2026-11-19.csv"),
        (
            "matrix/",
            f"{DAY}&shape=wide&source_tier=1&destination_tier=2&destination_tier=3",
            "matrix-wide-mean-from-tier-1-to-tier-2-3-2026-11-19.csv",
        ),
        ("matrix/", f"{DAY}&format=plotly", "matrix-mean-2026-11-19.plotly.json"),
        ("matrix/", f"{DAY}&format=html", "matrix-mean-2026-11-19.html"),
        ("strip/", DAY, "strip-2026-11-19.csv"),
        ("causes/", DAY, "causes-2026-11-19.csv"),
        ("events/", f"{DAY}&site=RAL", "events-RAL-2026-11-19.csv"),
        ("incidents/", f"{DAY}&site=RAL", "incidents-RAL-2026-11-19.csv"),
        ("network/", f"{DAY}&site=RAL", "network-RAL-2026-11-19.csv"),
        ("meshes/", "", "meshes.csv"),
    ],
)
def test_a_file_is_named_after_its_places_size_class_and_dates(
    client: Client, small_world, call: str, asked: str, name: str
):
    form = "" if "format=" in asked else "format=csv&"
    response = client.get(f"/api/v1/{call}?{form}{asked}")
    assert response.status_code == 200
    b"".join(response)  # a stream has a place until its end
    kind = "attachment" if name.endswith(".html") else "inline"
    assert response["Content-Disposition"] == f'{kind}; filename="sonar-{name}"'


@pytest.mark.parametrize(
    ("values", "header"),
    [
        (["Süd"], "inline; filename*=utf-8''sonar-links-S%C3%BCd.csv"),
        (["a\r\nSet-Cookie: b=c"], 'inline; filename="sonar-links-a-Set-Cookie-b-c.csv"'),
        (['../"x\\y;\u202e"'], 'inline; filename="sonar-links-..-x-y.csv"'),
        (["A", "B", "C", "D", "E"], 'inline; filename="sonar-links-A-B-C-and-2-more.csv"'),
        (["x" * 300], f'inline; filename="sonar-links-{"x" * 108}.csv"'),
    ],
)
def test_a_file_name_has_safe_characters_and_a_limit(values: list[str], header: str):
    query = MatrixQuery(filters=tuple(Filter("cloud", value) for value in values))
    response = as_file("", "csv", file_name("links", query=query))
    assert response["Content-Disposition"] == header
