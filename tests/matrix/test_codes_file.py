"""GET /cells/codes/: the colours of the cells, as the page of the same time range has them."""

import base64
import gzip
from typing import Any

import numpy as np
import pytest
from django.test import Client

from matrix.answers.matrix import grid
from matrix.plots import matrix as plots
from matrix.plots.scales import Scale
from matrix.query.catalogue import STATISTICS
from matrix.statistics.cells.states import FAILING
from sonar.models import Site
from tests.conditions import TYPES, stored_condition
from tests.matrix import world
from tests.matrix.responses import statements
from tests.matrix.test_cells_file import decoded
from tests.matrix.world import HOUR, NOW, World, transfer, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = 24 * HOUR
# Until eleven hours before noon, and over midnight.
PAST = "from=2026-11-19T20:00:00Z&to=2026-11-20T01:00:00Z"


@pytest.fixture
def busy(small_world) -> World:
    """Cells of each state, and links that fail over midnight, recover, or rest."""
    ral, glasgow, desy, scratch = small_world.endpoints
    with transfers() as some:
        for rate in (10.0, 11.0, 18.0):
            some.add(ral, glasgow, rate)
        for day in range(2, 9):
            some.add(ral, desy, 9.0 + day, ago=day * DAY)
        for number, rate in enumerate((3.0, 3.1, 3.2)):
            some.add(ral, desy, rate, ago=(number + 1) * HOUR / 4)
        some.add(glasgow, ral, None)
        some.add(desy, ral, 3.0, ago=5 * HOUR)
        # Of four in a row that failed, the last two were after midnight.
        for hours in (11.2, 11.4, 13, 14):
            some.add(desy, glasgow, None, ago=hours * HOUR)
            some.add(glasgow, desy, None, ago=hours * HOUR)
        some.add(glasgow, desy, 7.0, ago=11 * HOUR)
    stored_condition(TYPES.FAILING, source=desy, destination=glasgow, since=14 * HOUR)
    ended = {"since": 14 * HOUR, "ended": 11 * HOUR}
    stored_condition(TYPES.FAILING, source=glasgow, destination=desy, **ended)
    stored_condition(TYPES.SLOW, source=ral, destination=desy, since=HOUR)
    world.downtime(endpoint=scratch)
    return small_world


def fetched(client: Client, text: str = "") -> tuple[dict[str, Any], np.ndarray]:
    response = client.get(f"/cells/codes/?{text}")
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "application/octet-stream"
    header, arrays = decoded(response.content)
    return header, arrays["code"]


def unpacked(array: dict[str, str]) -> np.ndarray:
    shape = [int(size) for size in array["shape"].split(", ")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def expected(figure: dict[str, Any]) -> np.ndarray:
    """Return the codes of a page's cells, and below and beside them those of its strips."""
    bar = figure["layout"]["coloraxis"]
    scale = Scale(bar["cmin"], bar["cmax"], {}, logarithmic=False)
    parts = [one for one in figure["data"] if one["type"] == "heatmap" and "text" not in one]
    cells, across, down, grand = (unpacked(one["z"]) for one in parts)
    steps = [plots.steps_of(one.astype(float), scale, plots.GAP) for one in (across, down, grand)]
    return np.block([[cells, steps[0]], [steps[1], steps[2]]])


OF_ALL = [one.name for one in STATISTICS.values() if one.of_now or one.of_line or one.base]
QUESTIONS = [
    *(f"stat={name}" for name in STATISTICS if name not in OF_ALL),
    *("", PAST, "source_endpoint=RAL_DATADISK", "source_cloud=UK&mover=http-tpc"),
    *("order=cloud", "transpose=1", "order=tier&low=2", "above=5", "scale=whole"),
    f"{PAST}&source_endpoint=Glasgow_DATADISK",
]
# What takes the whole grid.
OTHERS = [
    *(f"stat={name}" for name in OF_ALL),
    *("max_age=1h", "rows=cloud", "only=failing", "only=slower&only=partly"),
    *("compare=previous", f"{PAST}&compare=previous"),
]


def test_what_is_paused_stays_failing(client, busy):
    before = fetched(client)[1]
    assert plots.CODES[FAILING] in before
    Site.objects.filter(name="DESY").update(paused_since=NOW - HOUR, pause_reason="moving")
    np.testing.assert_array_equal(fetched(client)[1], before)


@pytest.mark.parametrize("text", [*QUESTIONS, *OTHERS])
def test_the_codes_and_the_title_are_those_of_the_page(client, busy, text):
    header, code = fetched(client, text)
    page = client.get(f"/?{text}", follow=True)
    picture = page.context["picture"]
    assert code.shape == (header["rows"], header["columns"])
    np.testing.assert_array_equal(code, expected(picture["figure"]))
    frames = [
        {**one, "x": [*one["x"]], "y": [*one["y"]]}
        for one in picture["figure"]["data"]
        if one.get("meta", {}).get("outline") == "frame"
    ]
    assert header["frames"] == frames
    assert header["arrangement"] == picture["arrangement"]
    unit = page.context["unit"]
    assert header["title"] == page.context["heading"] + (f", in {unit}" if unit else "")
    assert code.dtype == np.uint8


def test_the_scene_has_every_look(client, busy):
    looks = set(fetched(client)[1].ravel().tolist()) | set(fetched(client, PAST)[1].ravel())
    assert looks >= {*plots.CODES.values()}
    assert any(plots.STEPS <= code < 2 * plots.STEPS for code in looks)


@pytest.mark.parametrize("text", [*QUESTIONS, *OTHERS])
def test_single_links_take_no_whole_grid_and_all_else_does(client, busy, text, monkeypatch):
    built: list[str] = []
    for name, own in {"glance": grid.glance, "build": grid.build}.items():

        def build(*args: Any, of: str = name, whole: Any = own, **more: Any) -> Any:
            built.append(of)
            return whole(*args, **more)

        monkeypatch.setattr(grid, name, build)
    fetched(client, text)
    assert built[0] == ("build" if text in OTHERS else "glance")
    assert "build" not in built or text in OTHERS


def test_what_is_kept_serves_who_comes_back_and_a_result_makes_it_anew(client, busy):
    known = {"if-none-match": client.get("/cells/codes/")["ETag"]}
    assert client.get("/cells/codes/", headers=known).status_code == 304
    assert len(statements(client.get, "/cells/codes/", headers=known)) == 1
    assert len(statements(client.get, "/cells/codes/")) == 1
    before = fetched(client)[1]
    transfer(busy.scratch, busy.ral, 500.0)
    transfer(busy.ral, busy.glasgow, 5.0)
    assert (fetched(client)[1] != before).any()


def test_it_is_as_private_as_the_page(client, busy):
    response = client.get("/cells/codes/", headers={"accept-encoding": "gzip"})
    assert decoded(gzip.decompress(response.content))[0] == fetched(client)[0]
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Cookie, Accept-Encoding"
    refused = client.get("/cells/codes/?order=size")
    assert refused.status_code == 400
    assert "order “size” is not known" in refused.json()["detail"]
    assert client.post("/cells/codes/").status_code in (403, 405)


def test_nothing_is_a_file_of_one_mean(client, db):
    header, code = fetched(client)
    assert (header["rows"], header["columns"]) == (1, 1)
    assert code.tolist() == [[plots.GAP]]


def test_where_values_decide_the_rows_the_page_names_no_codes(client, busy):
    for text, url in (
        ("", "/cells/codes/"),
        ("order=cloud", "/cells/codes/"),
        ("order=average", None),
        ("order=-average", None),
        ("only=failing", None),
        ("above=1", None),
    ):
        assert client.get(f"/?{text}").context["picture"]["codes_url"] == url, text
