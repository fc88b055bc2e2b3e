"""The figure behind each picture, for a notebook and as one HTML file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import plotly.io
import pytest
from django.test import Client

from matrix.plots import standalone
from sonar.models import Annotation, Endpoint
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.browser import scene
from tests.browser.scene import MARKUP, Scene
from tests.conditions import stored_condition
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW
from tests.scenes import standing

API = "/api/v1"
ENDS = "source=RAL_DATADISK&destination=Glasgow_DATADISK"
MATRIX, SERIES, SITE, STRIP = (
    f"{API}/matrix/?",
    f"{API}/series/?{ENDS}&",
    f"{API}/sites/Glasgow/?",
    f"{API}/strip/?",
)
FIGURES = pytest.mark.parametrize("call", [MATRIX, SERIES, SITE, STRIP])
PLOTS = Path(standalone.__file__).parent
# What the page of a matrix works out by its script stands in a figure without a page.
WORKED_OUT = ("x", "y", "hovertext", "hoverinfo")


@pytest.fixture(scope="module")
def standing_scene(django_db_setup, django_db_blocker) -> Iterator[Scene]:
    with standing(django_db_blocker, scene.make) as made:
        yield made


@pytest.fixture
def grid(standing_scene, db, at_noon) -> Scene:
    return standing_scene


def drawn(client: Client, call: str, form: str = "plotly") -> Any:
    response = client.get(f"{call}format={form}")
    assert response.status_code == 200, response.content
    return response


def figure(client: Client, call: str) -> dict[str, Any]:
    return json.loads(drawn(client, call).content)


def on_page(client: Client, path: str, name: str) -> dict[str, Any]:
    """Return the figure that a page has in this element, in the colours of a light page."""
    return standalone.with_colours(responses.page(client, path).data(name))


@FIGURES
@pytest.mark.parametrize("simulated", [False, True])
def test_plotly_reads_each_and_it_says_of_what_and_when_it_is(client, grid, call, simulated):
    Endpoint.objects.update(simulated=simulated)
    response = drawn(client, call)
    assert response["Content-Type"] == "application/vnd.plotly.v1+json"
    read = plotly.io.from_json(response.content)
    assert read.data
    title = read.layout.title
    assert re.search(r"large(-file|\b.*\bfiles)", title.text)
    assert "13 Nov 12:01 to 20 Nov 2026 12:01 UTC" in title.subtitle.text
    assert ("simulated endpoints" in title.subtitle.text) is simulated
    assert b"var(" not in response.content
    assert b"veil(" not in response.content


def test_the_figure_of_a_link_has_the_data_of_its_page(client, grid):
    page = on_page(client, "/links/RAL_DATADISK/Glasgow_DATADISK/", "rates-data")
    assert figure(client, SERIES)["data"] == page["data"]
    compared = f"{SERIES}compare=previous&"
    page = on_page(client, "/links/RAL_DATADISK/Glasgow_DATADISK/?compare=previous", "rates-data")
    alone = figure(client, compared)
    assert alone["data"] == page["data"]
    assert alone["layout"]["shapes"] == page["layout"]["shapes"]


@pytest.mark.parametrize("end", ["source", "destination"])
def test_the_figures_of_a_site_have_the_data_of_its_page(client, grid, end):
    page = on_page(client, "/sites/Glasgow/", f"over-time-{end}-data")
    alone = figure(client, f"{SITE}end={end}&")
    assert alone["data"] == page["data"]
    assert f"Glasgow as {end}" in alone["layout"]["title"]["text"]


@pytest.mark.parametrize("more", ["", "stat=vs_usual&", "source_site=RAL&", "stat=last&"])
def test_the_figure_of_a_matrix_has_the_data_of_its_page(client, grid, more):
    page = on_page(client, f"/?{more}".rstrip("&?"), "picture-data")["figure"]
    alone = figure(client, f"{MATRIX}{more}")
    for own, other in zip(alone["data"], page["data"], strict=True):
        is_outline = "outline" in own.get("meta", {})
        left_out = WORKED_OUT if is_outline or own.get("name") == "cells" else ()
        assert {name: own[name] for name in own if name not in left_out} == {
            name: other[name] for name in other if name not in left_out
        }
        if is_outline:
            # Each cell has a closed line around its place, and then a gap.
            assert own["x"].count(None) == len(other["x"])
            assert round(own["x"][0]) == other["x"][0]


def test_each_cell_of_a_matrix_says_which_link_it_is_and_how(client, grid):
    alone = figure(client, MATRIX)
    cells = next(trace for trace in alone["data"] if trace.get("name") == "cells")
    texts = np.array(cells["hovertext"])
    rows, columns = (alone["layout"][axis]["ticktext"] for axis in ("yaxis", "xaxis"))
    assert texts.shape == (len(rows), len(columns))
    place = rows.index("RAL_DATADISK"), columns.index("Glasgow_DATADISK")
    assert texts[place] == "RAL_DATADISK → Glasgow_DATADISK<br>129 MB/s, measured<br>7 ok, 0 failed"
    assert texts[place[0], columns.index("RAL_DATADISK")] == ""
    assert alone["layout"]["hovermode"] == "closest"


def test_strips_of_a_site_name_both_directions(client, grid):
    alone = figure(client, f"{MATRIX}site=RAL&")
    cells = next(trace for trace in alone["data"] if trace.get("name") == "cells")
    lines = {text.partition("<br>")[0] for row in cells["hovertext"] for text in row if text}
    links = ("RAL_DATADISK → Glasgow_DATADISK", "Glasgow_DATADISK → RAL_DATADISK")
    assert set(links) <= lines
    assert all("RAL_DATADISK" in line for line in lines)


def test_the_figure_of_a_strip_has_its_counts(client, grid):
    first, second, third = Endpoint.objects.filter(retired_at=None).order_by("id")[:3]
    before = client.get(f"{STRIP}bucket=1h").json()["buckets"]
    stored_condition("failing", source=first, destination=second)
    stored_condition("slow", source=third)
    counts = client.get(f"{STRIP}bucket=1h").json()["buckets"]
    bars = {trace["name"]: trace["y"] for trace in figure(client, f"{STRIP}bucket=1h&")["data"]}
    assert sum(counts["failing_links"]) == sum(before["failing_links"]) + 7
    assert sum(counts["slower_links"]) > sum(before["slower_links"]) + 7
    assert bars["failing"] == counts["failing_links"]
    assert bars["slower than usual"] == counts["slower_links"]


@FIGURES
def test_html_is_a_file_of_its_own_and_never_a_page_of_sonar(client, grid, call):
    response = drawn(client, call, "html")
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert "script-src 'self'" in response["Content-Security-Policy"]
    text = response.content.decode()
    head, _, data = text.rpartition("Plotly.newPlot")
    assert "plotly.js v" in head
    assert MARKUP not in text
    assert "<script>alert" not in data
    assert (
        re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", text.partition("plotly.js v")[0])
        == []
    )
    # The same answer has the same tag.
    again = client.get(f"{call}format=html", headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304


@FIGURES
def test_a_browser_that_accepts_html_still_gets_json(client, grid, call):
    accept = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert client.get(call, headers=accept)["Content-Type"] == "application/json"
    notebook = {"Accept": "application/vnd.plotly.v1+json"}
    assert client.get(call, headers=notebook)["Content-Type"] == notebook["Accept"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            f"{MATRIX}fields=ok&format=plotly",
            "“fields” cannot be used with format=plotly or format=html",
        ),
        (
            f"{SERIES}points=1&format=html",
            "“bucket” and “points” cannot be used with format=plotly",
        ),
        (
            f"{SERIES}bucket=1h&format=plotly",
            "“bucket” and “points” cannot be used with format=plotly",
        ),
        (f"{SERIES}from=1971-01-01T00:00:00Z&to=2100-01-01T00:00:00Z&format=html", "at most"),
        (f"{SITE}end=source", "“end” can be used only with format=plotly or format=html."),
        (f"{SITE}end=middle&format=html", "is not known"),
        (f"{API}/links/?format=plotly", "is not known"),
    ],
)
def test_what_a_figure_cannot_have_is_refused(client, grid, call, sentence):
    response = client.get(call)
    assert response.status_code == 400
    assert sentence in response.content.decode()


def test_a_link_without_a_result_has_a_figure_that_says_so(client, grid):
    empty = figure(client, f"{API}/series/?source=DESY_DATADISK&destination=DESY_SCRATCHDISK&")
    texts = [words["text"] for words in empty["layout"]["annotations"]]
    assert "no transfer succeeded" in texts


def test_only_who_may_read_a_note_has_it_in_the_figure(client, grid):
    Annotation.objects.create(site=grid.world.ral.site, text="hush", starts_at=NOW - HOUR)
    operator = logged_in(account(Role.OPERATOR))
    for call in (SERIES, f"{API}/sites/RAL/?"):
        assert "hush" not in drawn(client, call).content.decode()
        assert "hush" in drawn(operator, call).content.decode()


def test_every_colour_of_a_figure_is_in_the_style_sheet():
    texts = "".join(path.read_text() for path in PLOTS.glob("*.py"))
    names = set(re.findall(r'"var\(--([\w-]+)\)"', texts))
    assert len(names) > 15
    assert names <= standalone.light_colours().keys()
    expected = ["#ffffff", ["#0b57a4"]]
    assert standalone.with_colours(["var(--surface)", ("var(--there)",)]) == expected
    # As static/js/colours.js: 0.64 of the surface.
    assert standalone.with_colours({"a": "veil(#000000)"}) == {"a": "rgb(163, 163, 163)"}


def test_what_was_asked_is_text_in_a_title(client, grid):
    alone = figure(client, f"{MATRIX}source_label=<b>odd</b>&")
    assert "&lt;b&gt;odd&lt;/b&gt;" in alone["layout"]["title"]["text"]
    assert (
        "<b>odd" not in drawn(client, f"{STRIP}source_label=<b>odd</b>&", "html").content.decode()
    )
