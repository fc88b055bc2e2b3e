"""What a card fetches of its link, and when: by pointer, key and finger, from a slow server too."""

from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from sonar.models import Site
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.cells import place, point_at, wait_until_drawn
from tests.browser.pages import box_of, call, holding, is_on_the_screen, look
from tests.browser.readers import NARROW, Reader, seen_by
from tests.browser.scene import HOURS, send
from tests.browser.waiting import hold_clock, until_so
from tests.conditions import TYPES, stored_condition
from tests.matrix import world

FACTS = "**/card/*"
REST_MS = 150
WALL_OF_TEXT = "checksum differs " * 60
PIXELS_OF = "({{ pixelsOf }}) => pixelsOf({{ row: {}, column: {} }})"


def facts_of(card: Locator) -> Locator:
    return card.locator(".card-facts")


def asked_for(page: Page) -> list[str]:
    """Collect what is asked for of links from now on."""
    addresses: list[str] = []

    def note(request: Request) -> None:
        if "/card/" in request.url:
            addresses.append(request.url)

    page.on("request", note)
    return addresses


def test_the_week_all_sizes_and_the_last_error_come_to_the_card(visit, scene):
    page = wait_until_drawn(visit.open())
    card = point_at(page, "RAL_DATADISK", "DESY_DATADISK")
    facts = facts_of(card)
    expect(facts.get_by_role("img")).to_be_visible()
    expect(facts.get_by_role("row")).to_have_count(4)
    expect(facts.get_by_role("row", name="large")).to_contain_text("failing for 5 h")
    said = "The same error in 5 of 6 failed tests, at the destination: 503 Service Unavailable"
    expect(facts).to_contain_text(said)
    look(page, f"card-{visit.reader}")


def test_a_pointer_on_its_way_asks_for_nothing_and_one_that_rests_once(visit, scene):
    page = wait_until_drawn(visit.open())
    addresses = asked_for(page)
    names = ["RAL_DATADISK", "Glasgow_DATADISK", "DESY_DATADISK", "DESY_SCRATCHDISK"]
    # However long the machine takes from cell to cell: to the page the pointer rests on none.
    visit.set_clock()
    hold_clock(page)
    for x, y in [place(page, source, name) for source in names for name in names]:
        page.mouse.move(x, y)
    page.mouse.move(*place(page, "RAL_DATADISK", "Glasgow_DATADISK"))
    page.clock.run_for(REST_MS - 1)
    assert addresses == []
    page.clock.resume()
    expect(facts_of(page.locator("#card")).get_by_role("row")).to_have_count(4)
    assert [address.split("/links/")[1] for address in addresses] == [
        "RAL_DATADISK/Glasgow_DATADISK/card/"
    ]
    x, y = place(page, "RAL_DATADISK", "Glasgow_DATADISK")
    for step in range(5):
        page.mouse.move(x + step, y)
    page.mouse.move(5, 5)
    expect(page.locator("#card")).to_be_hidden()
    point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(facts_of(page.locator("#card")).get_by_role("row")).to_have_count(4)
    page.wait_for_timeout(300)
    assert len(addresses) == 1


def test_what_is_asked_for_is_given_up_when_the_pointer_goes_on(visit, scene):
    page = wait_until_drawn(visit.open())
    held: list[Route] = []
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.url))
    page.route(FACTS, holding(held))
    page.route("**/card/", holding(held))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    until_so(page, lambda: len(held) == 1, "the facts are asked for")
    expect(facts_of(card)).to_be_visible()
    expect(card).to_contain_text("0 of 7 tests")  # what is known already stands there
    point_at(page, "Glasgow_DATADISK", "RAL_DATADISK")
    until_so(page, lambda: len(given_up) == 1, "the first is given up")
    until_so(page, lambda: len(held) == 2, "the second is asked for")
    held[1].continue_()
    expect(facts_of(card).get_by_role("row")).to_have_count(4)
    assert "Glasgow_DATADISK/RAL_DATADISK/card/" in held[1].request.url


def test_the_card_neither_jumps_nor_leaves_the_screen_when_they_come(visit, scene):
    send(scene.world.glasgow, scene.world.ral, HOURS[0], error=WALL_OF_TEXT, error_where="transfer")
    # Of fewer than five tests there is no line, and no room is kept for it.
    for ago in HOURS[2:4]:
        send(scene.world.glasgow, scene.world.ral, ago)
    page = wait_until_drawn(visit.open())
    held: list[Route] = []
    page.route("**/card/", holding(held))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    until_so(page, lambda: len(held) == 1, "the facts are asked for")
    before = box_of(card)
    held[0].continue_()
    expect(facts_of(card).get_by_role("row")).to_have_count(4)
    assert card.bounding_box() == before
    card = point_at(page, "Glasgow_DATADISK", "RAL_DATADISK")
    until_so(page, lambda: len(held) == 2, "the second is asked for")
    before = box_of(card)
    held[1].continue_()
    expect(facts_of(card)).to_contain_text("checksum differs")
    assert card.bounding_box() == before


def test_a_server_in_trouble_is_told_and_the_rest_of_the_card_stands(visit, scene):
    page = wait_until_drawn(visit.open())
    page.route("**/card/", lambda route: route.fulfill(status=503))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(facts_of(card)).to_have_text(
        "Details of this link did not load: the server answered with status 503."
    )
    expect(card).to_contain_text("0 of 7 tests")
    visit.expect_refusal(503)


def test_by_keys_they_come_too_and_space_holds_them(visit, scene):
    page = wait_until_drawn(visit.open())
    page.locator("#picture").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    card = page.locator("#card")
    expect(facts_of(card)).to_contain_text("503 Service Unavailable")
    page.keyboard.press("Space")
    held = page.locator("#card.pinned")
    expect(facts_of(held)).to_contain_text("503 Service Unavailable")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/links/RAL_DATADISK/DESY_DATADISK/")


@seen_by(NARROW)
def test_a_tap_holds_a_card_that_has_room_beside_its_cell(visit, scene):
    page = wait_until_drawn(visit.open())
    page.locator("#picture").scroll_into_view_if_needed()
    for row, column in ((0, 2), (3, 0), (2, 2)):
        cell = page.evaluate(call("matrix/places", PIXELS_OF.format(row, column)))
        page.touchscreen.tap(cell["left"] + cell["width"] / 2, cell["top"] + cell["height"] / 2)
        card = page.locator("#card.pinned")
        if row != column:
            expect(facts_of(card).get_by_role("row")).to_have_count(4)
        box = box_of(card)
        assert is_on_the_screen(page, box)
        above = box["y"] + box["height"] <= cell["top"] + 1
        below = box["y"] >= cell["top"] + cell["height"] - 1
        assert above or below
        look(page, f"card-narrow-{row}-{column}")
        card.get_by_role("button", name="Close").tap()
        expect(page.locator("#card")).to_be_hidden()


def test_a_cell_of_several_links_counts_them_and_fetches_nothing(visit, scene):
    page = wait_until_drawn(visit.open("/?rows=site&columns=site"))
    addresses = asked_for(page)
    card = point_at(page, "RAL", "DESY")
    expect(card.get_by_role("row", name="state")).to_contain_text("1 of 1 links failing")
    assert facts_of(card).count() == 0
    page.wait_for_timeout(300)
    assert addresses == []


@pytest.mark.parametrize("site", ["RAL", "Glasgow"])
def test_who_may_test_a_link_finds_the_way_to_it_in_the_held_card(visit, scene, site):
    visit.log_in(account(Role.SITE_ADMIN, Site.objects.get(name=site)))
    page = wait_until_drawn(visit.open())
    card = point_at(page, "RAL_DATADISK", "DESY_DATADISK")
    expect(facts_of(card).get_by_role("row")).to_have_count(4)
    offer = card.get_by_role("link", name="Test now…")
    if site == "Glasgow":
        expect(offer).to_have_count(0)
        return
    expect(offer).to_be_hidden()
    page.locator("#picture").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Space"):
        page.keyboard.press(key)
    expect(page.locator("#card.pinned").get_by_role("link", name="Test now…")).to_have_attribute(
        "href", "/links/RAL_DATADISK/DESY_DATADISK/#test-now"
    )


@pytest.mark.parametrize("reader", [Reader("laptop of a stranger")], ids=str)
def test_after_a_log_out_the_card_says_why_it_lacks_the_rest(visit, scene):
    page = wait_until_drawn(visit.open())
    page.route(
        "**/card/", lambda route: route.fulfill(status=302, headers={"location": "/login/?next=/"})
    )
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(facts_of(card)).to_contain_text("you may have to log in again")


def test_a_link_as_usual_a_slower_one_and_one_that_fails_say_so_on_the_whole_card(
    visit, real_commits, at_noon
):
    made = world.make()
    usual, slower, failed = (made.ral, made.desy), (made.glasgow, made.desy), (made.desy, made.ral)
    with world.transfers() as several:
        for number in range(40):
            ago = HOURS[0] * 1100 + HOURS[1] * number
            several.add(*usual, 9.0, ago=ago)
            several.add(*slower, 9.0 + number % 3, ago=ago)
            several.add(*failed, 9.0, ago=timedelta(days=10, hours=number))
        for ago in HOURS[:4]:
            several.add(*usual, 9.0, ago=ago)
            several.add(*slower, 2.5, ago=ago)
        several.add(*failed, None, ago=HOURS[0])
    stored_condition(
        TYPES.SLOW, destination=made.desy, links=[slower], since=HOURS[3], baseline=10e6
    )
    stored_condition(
        TYPES.FAILING, source=failed[0], destination=failed[1], since=HOURS[0], confirmed=False
    )
    page = wait_until_drawn(visit.open())
    card = point_at(page, slower[0].name, slower[1].name)
    state, ratio = (
        card.get_by_role("row", name=name).first for name in ("state", "now / baseline")
    )
    expect(state).to_contain_text("slower than usual since ")
    expect(state).to_contain_text("UTC (3 h)")
    expect(card).to_contain_text("Part of: DESY_DATADISK receives at 0.40× (0.35–0.46)")
    expect(ratio).to_contain_text("0.25× the baseline of 10.0 MB/s")
    point_at(page, usual[0].name, usual[1].name)
    expect(state.get_by_role("cell").first).to_have_text("as usual")
    expect(facts_of(card).get_by_role("row", name="large")).to_contain_text("as usual")
    # All of its tests failed in this window: it has no rate now.
    point_at(page, failed[0].name, failed[1].name)
    expect(state).to_contain_text("failed")
    expect(card).to_contain_text("Unconfirmed: DESY_DATADISK to RAL_DATADISK fails since ")
    expect(ratio.get_by_role("cell").first).to_have_text("–")
    cells = facts_of(card).get_by_role("row", name="large").get_by_role("cell")
    expect(cells).to_have_text(["–", "–", "failed"])
