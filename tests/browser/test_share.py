"""Links and tables are copied: with a mouse, by keys, by touch, without permission or script."""

import re
from datetime import timedelta
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from sonar.models import Endpoint
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.pages import fits, look, refresh
from tests.browser.readers import COPYING, SCRIPTLESS, Reader, seen_by
from tests.matrix import sent, world

TOUCHING = Reader("touches and may use the clipboard", 390, 844, touch=True, clipboard=True)
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
SITE = "/sites/RAL/"
# What a document takes from the clipboard.
READ_HTML = """async () => {
  const [item] = await navigator.clipboard.read();
  return (await item.getType("text/html")).text();
}"""
# What is written into pictures.
WRITTEN = """const { fillText } = CanvasRenderingContext2D.prototype;
  globalThis.written = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    written.push(text);
    return fillText.call(this, text, ...at);
  };"""
MINUTE = timedelta(minutes=1)
WINDOW = (
    r"Time range: \d+ [A-Z][a-z]{2}(?: \d{4})? \d\d:\d\d "
    r"to (?:\d+ [A-Z][a-z]{2} \d{4} )?\d\d:\d\d UTC"
)
WINDOW_IN_FORCE = "13 Nov 12:01 to 20 Nov 2026 12:01 UTC"
copying = pytest.mark.parametrize("reader", [COPYING], ids=str)


def copy(part: Locator, role: Literal["button", "link"] = "button") -> None:
    """Click what copies, and wait until it says that it did."""
    part.click()
    expect(part.page.get_by_role(role, name="Copied")).to_be_visible()


def text_of(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def lines_of(page: Page) -> list[list[str]]:
    return [line.split("\t") for line in text_of(page).splitlines()]


@pytest.mark.long
@copying
def test_exactly_these_numbers_is_a_link_with_both_bounds(visit, scene):
    for path in ("/?window=24h", "/table/?window=24h", SITE, LINK):
        page = visit.open(path)
        exact = page.get_by_role("link", name="exactly these numbers")
        exact.click()
        expect(page.get_by_role("link", name="Copied")).to_be_visible()
        parts = urlsplit(text_of(page))
        assert {"from", "to"} <= parse_qs(parts.query).keys(), path
        # It is said for two seconds: time enough to go there, too, which it must not.
        expect(exact).to_be_visible()
        assert page.url == visit.base + path
        visit.open(f"{parts.path}?{parts.query}")
        expect(page.get_by_role("link", name="exactly these numbers")).to_have_count(0)
        expect(page.get_by_role("link", name="Copy link")).to_be_visible()


@pytest.mark.long
def test_exactly_these_numbers_are_those_of_the_last_refresh(visit, scene, monkeypatch):
    later = world.NOW + 10 * MINUTE
    for path in ("/?window=24h", "/table/", "/sites/", SITE, LINK):
        page = visit.open(path)
        exact = page.get_by_role("link", name="exactly these numbers")
        end = re.compile(f"to={world.NOW + MINUTE:%Y-%m-%dT%H:%M}")
        expect(exact).to_have_attribute("href", end)
        with monkeypatch.context() as patch:
            patch.setattr(world, "NOW", later)
            refresh(page)
            end = re.compile(f"to={later + MINUTE:%Y-%m-%dT%H:%M}")
            expect(exact).to_have_attribute("href", end)
            expect(exact).to_have_attribute("data-copy", end)


@copying
def test_links_are_copied_by_a_click_and_by_keys_and_the_focus_stays(visit, scene):
    page = visit.go("/?window=24h&source_cloud=UK")
    link = page.get_by_role("link", name="newest results")
    link.click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    assert text_of(page) == visit.base + "/?window=24h&source_cloud=UK"
    expect(link).to_be_visible()
    page = visit.open("/table/?window=24h")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Copied")).to_be_focused()
    assert text_of(page) == visit.base + "/table/?window=24h"
    expect(link).to_be_focused()


@seen_by(TOUCHING)
def test_links_and_tables_are_copied_by_touch(visit, scene):
    page = visit.open("/")
    page.get_by_role("link", name="newest results").tap()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    assert text_of(page) == visit.base + "/"
    page.get_by_role("button", name="Copy table").tap()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert lines_of(page)[1][0] == r"from \ to"
    page.locator("#export summary").tap()
    expect(page.get_by_role("link", name="CSV, wide")).to_be_visible()
    assert fits(page)
    look(page, "share-narrow")


@copying
def test_the_matrix_is_copied_with_its_means_unit_and_window(visit, scene):
    page = visit.open("/")
    copy(page.get_by_role("button", name="Copy table"))
    (caption,), head, *rows = lines_of(page)
    assert "Mean rate of large-file transfers" in caption
    assert "MB/s" in caption
    assert re.search(WINDOW, caption)
    shown = page.evaluate(
        """[...document.querySelectorAll("#table tr")].map((row) =>
            [...row.cells].map((cell) => cell.textContent.replace(/\\s+/g, " ").trim()))"""
    )
    # What has no result is left out, and counted above the table; what only failed stays.
    assert "Not copied because they have no results: 1 row and 1 column" in caption
    at = shown[0].index("DESY_SCRATCHDISK")
    left = [row[:at] + row[at + 1 :] for row in shown if row[0] != "DESY_SCRATCHDISK"]
    assert [head, *rows] == left
    assert "DESY_DATADISK" in head
    assert (head[-1], rows[-1][0]) == ("mean", "mean")
    html = page.evaluate(READ_HTML)
    assert "<p>Mean rate of large-file transfers" in html
    assert html.count("<tr>") == len(left)
    assert "<th>RAL_DATADISK</th>" in html


@copying
def test_every_page_with_data_copies_its_main_table(visit, scene):
    for path in ("/table/", "/sites/", SITE, LINK):
        page = visit.open(path)
        copy(page.get_by_role("button", name="Copy table"))
        (caption,), *rows = lines_of(page)
        assert re.search(WINDOW, caption), path
        assert len(rows) > 1, path
        assert not any("sort by" in cell or "▲" in cell for row in rows for cell in row), path


@pytest.mark.long
@copying
def test_the_table_that_the_page_is_about_is_copied_and_says_simulated(visit, scene):
    visit.log_in(account(Role.ADMINISTRATOR))
    # Above the results of its link stands what was ordered there.
    ordered = world.profile(mesh=None, purpose="ordered")
    for hour in range(2):
        world.transfer(scene.world.ral, scene.world.glasgow, 9.0, ago=hour * MINUTE, made=ordered)
    for simulated in (False, True):
        Endpoint.objects.update(simulated=simulated)
        for path, head in (("/", r"from \ to"), (SITE, "partner"), (LINK, "started (UTC)")):
            page = visit.open(path)
            copy(page.get_by_role("button", name="Copy table", exact=True))
            (caption,), heads, *_ = lines_of(page)
            assert heads[0] == head
            assert ".." not in caption
            assert caption.endswith(". Simulated endpoints") is simulated, path
            html = page.evaluate(READ_HTML)
            assert ("Simulated endpoints</p>" in html) is simulated, path


@copying
def test_every_other_table_of_a_page_is_in_the_list(visit, scene):
    page = visit.open(LINK)
    page.locator("#export summary").click()
    tables = page.locator("main table").count()
    offers = page.get_by_role("button", name="Copy table:")
    assert tables > 2
    expect(offers).to_have_count(tables)
    offers.nth(1).click()
    caption = page.locator("main table caption").nth(1).inner_text()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert text_of(page).startswith(caption[:20])


@copying
def test_tables_of_operations_are_offered_by_their_headings_as_a_refresh_brings_them(visit, scene):
    page = visit.open("/operations/")
    page.locator("#export summary").click()
    offers = page.get_by_role("button", name="Copy table:")
    expect(offers).to_have_count(page.locator("main table").count())
    running = page.get_by_role("button", name="Copy table: Running tests")
    expect(running).to_have_count(0)
    copy(page.get_by_role("button", name="Copy table: Latest results"))
    (caption,), head, *rows = lines_of(page)
    assert re.fullmatch(r"Health.* – Latest results\. As of \d+ [A-Z][a-z]{2} .* UTC", caption)
    assert head[:2] == ["link", "size class"]
    latest = page.get_by_role("region", name="Latest results").locator("tbody tr")
    assert len(rows) == latest.count()
    made = scene.world
    started = world.NOW - MINUTE
    probe = sent.probe(made.ral, made.desy, started_at=started, worker="w1")
    refresh(page)
    expect(running).to_be_visible()
    copy(page.get_by_role("button", name="Copy table: Latest results"))
    assert "Latest results" in text_of(page)
    probe.delete()
    refresh(page)
    expect(running).to_have_count(0)


@copying
def test_what_a_spreadsheet_takes_for_a_formula_is_text_and_a_number_is_a_number(visit, scene):
    page = visit.open("/table/")
    page.evaluate(
        """document.querySelector(".links tbody tr").innerHTML =
            '<td>=HYPERLINK("x")</td><td>-1.5</td><td>1\\u202f234</td><td>&lt;b&gt; &amp;</td>'"""
    )
    copy(page.get_by_role("button", name="Copy table"))
    html = page.evaluate(READ_HTML)
    assert "'=HYPERLINK(&quot;x&quot;)" in html or '\'=HYPERLINK("x")' in html
    assert "&lt;b&gt; &amp;" in html
    row = next(line for line in lines_of(page) if "HYPERLINK" in line[0])
    assert row == ['"\'=HYPERLINK(""x"")"', "-1.5", "1234", "<b> &"]


@pytest.mark.long
def test_a_png_says_its_size_class_and_its_window(visit, scene):
    visit.run_before_each_page(WRITTEN)
    transfer, of_sampled = f"/transfers/{scene.sampled}/", "20 Nov 11:50:30 UTC"
    for path, title, when in (
        ("/", "Mean rate of large-file transfers", WINDOW_IN_FORCE),
        (SITE, "RAL as source, large files", WINDOW_IN_FORCE),
        (LINK, "From RAL_DATADISK to Glasgow_DATADISK, large files", WINDOW_IN_FORCE),
        (transfer, "Transfer from RAL_DATADISK to Glasgow_DATADISK, large file", of_sampled),
    ):
        page = visit.open(path)
        with page.expect_download():
            page.get_by_role("button", name="PNG", exact=True).first.click()
        texts = page.evaluate("written.join(' ')")
        assert title in texts
        assert when in texts, path


@pytest.mark.long
def test_a_figure_that_was_saved_draws_without_a_network(visit, scene, tmp_path):
    page = visit.open("/")
    page.locator("#export summary").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Figure as one HTML file").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "sonar-matrix-mean-2026-11-13-to-2026-11-20.html"
    # The file is no page of Sonar: nothing keeps it from other hosts but itself.
    alone = page.context.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(saved.as_uri())
    expect(alone).to_have_title(re.compile("Mean rate of large-file transfers"))
    expect(alone.locator(".gtitle")).to_contain_text("Mean rate of large-file transfers")
    expect(alone.get_by_text("129", exact=True).first).to_be_visible()
    alone.mouse.move(*middle_of(alone, "RAL_DATADISK", "Glasgow_DATADISK"))
    expect(alone.locator(".hoverlayer .hovertext")).to_contain_text(
        "RAL_DATADISK → Glasgow_DATADISK129 MB/s, measured"
    )
    assert asked == [saved.as_uri()]
    alone.close()


def middle_of(alone: Page, source: str, destination: str) -> tuple[float, float]:
    """Return where a cell of a figure without a page is on the screen."""
    x, y = alone.evaluate(
        """([source, destination]) => {
          const { _fullLayout: { xaxis, yaxis } } = document.getElementById("figure");
          const at = (axis, name) => axis._offset + axis.d2p(axis.ticktext.indexOf(name));
          const { left, top } = document.getElementById("figure").getBoundingClientRect();
          return [left + at(xaxis, destination), top + at(yaxis, source)];
        }""",
        [source, destination],
    )
    return x, y


REFUSED = "Promise.reject(new DOMException('', 'NotAllowedError'))"
REFUSING = f"void (navigator.clipboard.write = () => {REFUSED})"


@copying
def test_without_permission_a_selection_is_copied(visit, scene):
    for script in (REFUSING, "delete Navigator.prototype.clipboard"):
        page = visit.open("/table/")
        page.evaluate("globalThis.kept = navigator.clipboard")
        page.evaluate(script)
        copy(page.get_by_role("button", name="Copy table"))
        assert "MB/s" in page.evaluate("kept.readText()"), script
        html = "kept.read().then(([item]) => item.getType('text/html')).then((html) => html.text())"
        assert "<table" in page.evaluate(html), script
        copy(page.get_by_role("link", name="newest results"), "link")
        assert page.evaluate("kept.readText()") == visit.base + "/table/", script
        expect(page.locator("textarea")).to_have_count(0)


@copying
def test_where_nothing_can_be_copied_it_says_so(visit, scene):
    page = visit.open("/table/")
    page.evaluate(REFUSING)
    page.evaluate("void (document.execCommand = () => false)")
    page.get_by_role("button", name="Copy table").click()
    expect(
        page.get_by_role("button", name="Not copied: the browser did not allow it")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Copy table")).to_be_visible()


@pytest.mark.long
@seen_by(SCRIPTLESS)
def test_without_a_script_all_of_it_are_links(visit, scene):
    for path in ("/", "/table/", SITE, LINK):
        page = visit.open(path)
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)
        page.locator("#export summary").click()
        expect(page.get_by_role("link", name="JSON", exact=True)).to_be_visible()
        page.get_by_role("link", name="exactly these numbers").click()
        expect(page).to_have_url(re.compile("[?&]from=.*&to="))


def test_print_has_the_window_and_nothing_to_click(visit, scene):
    page = visit.open("/?window=24h")
    expect(page.locator(".from-to")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.locator(".from-to")).to_have_text(re.compile(WINDOW))
    expect(page.locator(".share")).to_be_hidden()
    page.emulate_media(media="null")


def test_what_mail_adds_is_said_and_leaves_the_address(visit, scene):
    page = visit.open("/table/?window=24h&utm_source=mail&fbclid=1")
    expect(page.locator("#ignored")).to_have_text("Ignored: utm_source, fbclid")
    expect(page).to_have_url(visit.base + "/table/?window=24h")
    page.get_by_role("link", name="30d", exact=True).click()
    page.wait_for_url("**/table/?window=30d")
    page.go_back()
    page.wait_for_url("**/table/?window=24h")
    expect(page.get_by_role("link", name="24h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


@copying
def test_a_matrix_that_is_too_large_for_a_table_is_copied_whole(visit, real_commits, at_noon):
    site = world.Site.objects.create(name="Many")
    places = [world.endpoint(f"node-{number:03d}", site) for number in range(40)]
    mesh = world.Mesh.objects.create(name="all")
    world.schedule(mesh, *((one, other) for one in places for other in places if one != other))
    world.transfer(places[0], places[1], 12.5)
    page = visit.open("/")
    copy(page.get_by_role("button", name="Copy table"))
    (caption,), head, first, *rows = lines_of(page)
    assert re.search(WINDOW, caption)
    assert len(head) == len(first) == 42
    assert first[:3] == ["node-000", "", "12.5"]
    assert len(rows) == 40
    assert page.evaluate(READ_HTML).count("<tr>") == 42
