"""What a chat shows of a page: its answer in a sentence, and an image that says no more."""

import re
from datetime import UTC, datetime
from html import unescape
from io import BytesIO

import pytest
from django.http import HttpResponse
from django.test import Client
from PIL import Image, ImageFont
from PIL.ImageDraw import Draw, ImageDraw

from matrix.plots import preview, standalone
from matrix.plots.over_time import OPACITY
from matrix.plots.palettes import PALETTES
from sonar.models import Annotation, Endpoint
from sonar.notation.windows import Window
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.browser import scene
from tests.browser.scene import Scene
from tests.matrix import world
from tests.matrix.world import HOUR, NOW

HOST = "http://testserver"
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
PAGES = pytest.mark.parametrize("path", ["/", LINK, "/sites/RAL/"])
TAG = re.compile(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)">')


@pytest.fixture
def grid(db: None, at_noon: None) -> Scene:
    return scene.make()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that are written into images from now on."""
    texts: list[str] = []
    write = ImageDraw.text

    def noting(pen: ImageDraw, at: object, text: str, **looks: object) -> None:
        texts.append(text)
        write(pen, at, text, **looks)

    monkeypatch.setattr(ImageDraw, "text", noting)
    return texts


def tags(client: Client, path: str) -> dict[str, str]:
    found = TAG.findall(client.get(path).content.decode())
    return {name: unescape(text) for name, text in found}


def image(client: Client, path: str) -> tuple[HttpResponse, Image.Image]:
    """Return the image that a page names, as a chat would ask for it."""
    url = tags(client, path)["og:image"]
    assert url.startswith(f"{HOST}/")
    response = client.get(url.removeprefix(HOST))
    assert response.status_code == 200
    assert response["Content-Type"] == "image/png"
    return response, Image.open(BytesIO(response.content))


@pytest.mark.parametrize(
    ("path", "title", "answer"),
    [
        (
            "/",
            "Mean rate of large-file transfers, the last 7 days",
            "RAL_DATADISK to DESY_DATADISK fails since 20 Nov 06:50 UTC.",
        ),
        (
            LINK,
            "From RAL_DATADISK to DESY_DATADISK, large files",
            "Fails, with large files, 10 of 10 tests failed, since 20 Nov 06:50 UTC.",
        ),
        (
            "/sites/RAL/",
            "RAL, large files, the last 7 days",
            "RAL_DATADISK to DESY_DATADISK fails, with large files, 10 of 10 tests failed, since "
            "20 Nov 06:50 UTC.",
        ),
    ],
)
def test_a_page_says_its_answer_and_where_its_image_is(client, grid, written, path, title, answer):
    said = tags(client, path)
    assert (said["og:title"], said["og:description"]) == (title, answer)
    assert said["description"] == said["og:image:alt"] == answer
    assert said["og:url"] == HOST + path
    _, drawn = image(client, path)
    assert drawn.size == (1200, 630)
    assert (said["og:image:width"], said["og:image:height"]) == ("1200", "630")
    assert " ".join(written).startswith(answer.removesuffix("." if path == "/" else ""))


@PAGES
def test_what_is_simulated_is_said_in_words_and_in_the_image(client, grid, written, path):
    for simulated in (False, True):
        Endpoint.objects.update(simulated=simulated)
        written.clear()
        image(client, path)
        assert ("Simulated endpoints" in " ".join(written)) is simulated
        said = tags(client, path)["og:description"]
        assert said.endswith(" Simulated endpoints.") is simulated


@pytest.mark.parametrize("path", ["/", LINK, "/sites/DESY/"])
def test_the_image_is_of_what_the_page_asks_for(client, grid, written, path):
    image(client, f"{path}?size=small&window=24h")
    text = " ".join(written)
    assert "19 Nov 12:01 to 20 Nov 2026 12:01 UTC" in text
    assert re.search("small(-file| files)", text)


def test_a_link_has_its_times_and_a_band_where_it_fails(client, grid, written):
    _, drawn = image(client, f"{LINK}?window=24h")
    assert {"failed", "19 Nov 18:00", "20 Nov 06:00"} <= set(written)
    # It has failed since 06:50, the last 5 of 24 hours.
    failing = preview.colour_of(standalone.light_colours()["failing"])
    band = tuple(round(255 + (channel - 255) * OPACITY["failing"]) for channel in failing)
    row = [drawn.convert("RGB").getpixel((x, 350)) for x in range(drawn.width)]
    across = [x for x, colour in enumerate(row) if max(map(abs, subtract(colour, band))) <= 2]
    assert (across[0] > 0.7 * drawn.width, across[-1] > 0.9 * drawn.width) == (True, True)


def subtract(colour: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    return [one - two for one, two in zip(colour, other, strict=True)]


@pytest.mark.parametrize(
    ("hours", "times"),
    [
        (1, ["20 Nov 12:00"]),
        (6, ["20 Nov 09:00", "20 Nov 12:00"]),
        (24, ["20 Nov 00:00", "20 Nov 12:00"]),
        (7 * 24, ["15 Nov", "17 Nov", "19 Nov"]),
        (90 * 24, ["27 Aug", "10 Sep", "24 Sep", "8 Oct", "22 Oct", "5 Nov", "19 Nov"]),
    ],
)
def test_times_below_a_picture_are_round_and_have_room(written, hours, times):
    image = Image.new("RGB", (1000, 200))
    end = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    bounds = [round(each.timestamp() * 1000) for each in (end - hours * HOUR, end)]
    failed = {"range": [0, 1], "tickvals": [], "ticktext": []}
    layout = {"xaxis": {"range": bounds}, "yaxis2": failed}
    box = preview.Box(0, 0, 1000, 150)
    preview.draw_times(preview.Plot(Draw(image), image, layout, box))
    assert written == times


@PAGES
def test_who_has_the_image_gets_no_other(client, grid, path):
    response, _ = image(client, path)
    assert response["Cache-Control"] == "private, no-cache"
    url = tags(client, path)["og:image"].removeprefix(HOST)
    again = client.get(url, headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    world.transfer(grid.world.ral, grid.world.desy, 77.0)
    assert client.get(url, headers={"If-None-Match": response["ETag"]}).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("path", [LINK, "/sites/RAL/"])
def test_all_readers_have_the_same_image_whatever_notes_they_may_read(client, grid, path):
    before, _ = image(client, path)
    Annotation.objects.create(site=grid.world.ral.site, text="hush", starts_at=NOW - HOUR)
    for reader in (client, logged_in(account(Role.OPERATOR))):
        assert image(reader, path)[0].content == before.content


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/preview/?size=huge", 400),
        ("/preview/?utm_source=mail", 400),
        (f"{LINK}preview/?before=x", 400),
        ("/links/RAL_DATADISK/nowhere/preview/", 404),
        ("/sites/nowhere/preview/", 404),
    ],
)
def test_what_there_is_no_page_of_has_no_image(client, grid, path, status):
    assert client.get(path).status_code == status


def test_cells_have_the_colours_of_the_page(client, small_world, at_noon):
    world.transfer(small_world.ral, small_world.glasgow, 1.0)
    world.transfer(small_world.glasgow, small_world.ral, 100.0)
    _, drawn = image(client, "/")
    colours = {colour for _, colour in drawn.convert("RGB").getcolors(1 << 20)}
    least, most = (preview.colour_of(PALETTES["viridis"][at]) for at in (0, -1))
    assert {least, most} <= colours


@pytest.mark.parametrize("path", ["/?cloud=none", "/links/DESY_SCRATCHDISK/RAL_DATADISK/"])
def test_where_nothing_is_there_is_an_image_all_the_same(client, small_world, path):
    assert image(client, path)[1].size == (1200, 630)


@pytest.mark.long
@pytest.mark.parametrize("more", ["?compare=reverse", "?compare=previous", "?window=30d"])
def test_what_is_compared_is_drawn_on_its_own_axes(client, grid, more):
    for path in ("/links/RAL_DATADISK/Glasgow_DATADISK/", "/sites/Glasgow/", "/"):
        image(client, path + more)


def test_colours_are_read_as_the_style_sheet_writes_them():
    light = standalone.light_colours()
    assert preview.colour_of(light["there"]) == (11, 87, 164)
    assert preview.colour_of("rgb(163, 163, 163)") == (163, 163, 163)
    # 0.18 of it on white.
    assert preview.colour_of(light["there-band"]) == (211, 225, 239)


def test_no_sign_is_written_that_the_font_does_not_have(written):
    answer = "Slower (0.28×, 0.20–0.39) on A → B, ≥ 3 and ≤ 5, −1"
    words = preview.Preview("B’s", answer, Window(NOW - HOUR, NOW), True, [])
    preview.write(Image.new("RGB", (2400, 400)), words, 2300)
    assert "Slower (0.28x, 0.20-0.39) on A to B, >= 3 and <= 5, -1" in " ".join(written)
    font = ImageFont.load_default(40)
    missing = bytes(font.getmask(chr(0x378)))
    assert bytes(font.getmask("→")) == missing
    for sign in set("".join(written)) - {" "}:
        assert bytes(font.getmask(sign)) != missing, sign


def test_what_was_asked_is_text_in_the_tags(client, grid):
    page = client.get('/?cloud="><script>x').content.decode()
    assert "<script>x" not in page
    assert '"><script>x' in tags(client, '/?cloud="><script>x')["og:title"]
