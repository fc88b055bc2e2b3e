"""Where on the screen the cell of a link is."""

from playwright.sync_api import Locator, Page

from tests.browser.waiting import until

AT = """([source, destination]) => {
    const said = JSON.parse(document.getElementById("picture-data").textContent);
    const [row, column] = said.transposed ? [destination, source] : [source, destination];
    const plot = document.querySelector("#picture .plot");
    const { xaxis, yaxis } = plot._fullLayout;
    const box = plot.getBoundingClientRect();
    return [
        box.x + xaxis._offset + xaxis.d2p(said.columns.at[said.columns.names.indexOf(column)]),
        box.y + yaxis._offset + yaxis.d2p(said.rows.at[said.rows.names.indexOf(row)]),
    ];
}"""
CELL_SIZE = """() => {
    const { xaxis, yaxis } = document.querySelector("#picture .plot")._fullLayout;
    return [Math.abs(xaxis.l2p(1) - xaxis.l2p(0)), Math.abs(yaxis.l2p(1) - yaxis.l2p(0))];
}"""
DRAWN = "performance.getEntriesByName('picture-drawn').length > 0"
LOADED = "performance.getEntriesByName('cells-loaded').length > 0"


def wait_until_drawn(page: Page) -> Page:
    """Wait for the picture of a matrix and for the numbers that its card shows."""
    for mark in (DRAWN, LOADED):
        until(page, mark)
    return page


def place(page: Page, source: str, destination: str) -> tuple[float, float]:
    x, y = page.evaluate(AT, [source, destination])
    return x, y


def point_at(page: Page, source: str, destination: str) -> Locator:
    """Put the pointer on a cell and return the card that comes."""
    x, y = place(page, source, destination)
    page.mouse.move(x - 3, y - 3)
    page.mouse.move(x, y)
    card = page.locator("#card")
    card.get_by_text(f"to {destination}").first.wait_for()
    return card


def row(card: Locator, name: str) -> list[str]:
    return card.get_by_role("row", name=name).get_by_role("cell").all_inner_texts()
