"""On a narrow screen, too, a figure is on one line with its unit, and a list shows its choice."""

import pytest

from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.readers import LAPTOP, NARROW

LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
# The times and figures in the text of the page that begin on one line and end on another, at any
# width that a column may have.
BROKEN = r"""() => {
  const time = /\d+ [A-Z][a-z]{2}( \d{4})? \d\d:\d\d(:\d\d)? UTC/.source;
  const figure = new RegExp(`${time}|[\\d.]+\\s+((h|d|min|s) ago|[kMGT]?B(/s)?\\b)`, "g");
  const main = document.getElementById("page");
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const match of text.data.matchAll(figure)) {
      const range = document.createRange();
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      ranges.push(range);
    }
  }
  const isBroken = (range) => {
    const boxes = [...range.getClientRects()].filter((box) => box.width > 1);
    return new Set(boxes.map((box) => box.top)).size > 1;
  };
  const broken = new Set();
  for (let width = main.clientWidth; width > 280; width -= 11) {
    main.style.width = `${width}px`;
    for (const range of ranges.filter(isBroken)) broken.add(range.startContainer.data.trim());
  }
  main.style.width = "";
  return [...broken];
}"""
# The choices that are longer than the room that their list has for them, menus opened.
CUT = """() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const menu of document.querySelectorAll("[popover]")) {
    menu.popover = "manual";
    menu.showPopover();
  }
  const pen = document.createElement("canvas").getContext("2d");
  const cut = [];
  for (const list of document.querySelectorAll("main select")) {
    const style = getComputedStyle(list);
    if (!list.checkVisibility()) continue;
    pen.font = style.font;
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    for (const { index, label } of list.options) {
      list.selectedIndex = index;
      const missing = pen.measureText(label).width + padding - list.clientWidth;
      if (missing > 1) cut.push(`${list.name}: ${label} lacks ${missing} px`);
    }
  }
  return cut;
}"""
PAGES = ["/", "/table/", "/sites/", "/sites/RAL/", LINK, f"{LINK}tests/", "/operations/"]


@pytest.mark.parametrize("reader", [LAPTOP, NARROW], ids=str)
def test_no_line_breaks_within_a_figure_and_every_list_has_room_for_its_choices(visit, scene):
    visit.log_in(account(Role.ADMINISTRATOR))
    for path in PAGES:
        page = visit.open(path)
        assert page.evaluate(BROKEN) == [], path
        assert page.evaluate(CUT) == [], path
