"""The admin looks like Sonar, breaks no rule, and gives roles in few clicks; people make tokens."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sonar.models import Endpoint, Mesh, Site, Token
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.cells import wait_until_drawn
from tests.browser.pages import Hand, fits, look
from tests.browser.readers import COPYING, LAPTOP, NARROW, SCRIPTLESS_NARROW, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import until, until_settled

BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_lists_and_forms_break_no_rule_by_day_and_night(visit, scene, reader):
    root = account(Role.ADMINISTRATOR)
    visit.log_in(root)
    end, mesh = Endpoint.objects.get(name="RAL_DATADISK"), Mesh.objects.earliest("id")
    paths = {
        "index": "/admin/",
        "list": "/admin/sonar/endpoint/",
        "results": "/admin/sonar/transfer/",
        "endpoint": f"/admin/sonar/endpoint/{end.pk}/change/",
        "mesh": f"/admin/sonar/mesh/{mesh.pk}/change/",
        "account": f"/admin/auth/user/{root.pk}/change/",
        "history": f"/admin/sonar/endpoint/{end.pk}/history/",
    }
    broken = {}
    for name, path in paths.items():
        page = visit.open(path)
        until_settled(page)
        is_asked = reader is LAPTOP or name in ("list", "endpoint")
        broken[name] = by_day_and_night(page) if is_asked else []
        look(page, f"admin-{name}-{reader}")
        if not fits(page):
            broken[name].append("wider than the screen")
    assert not any(broken.values()), "\n\n".join(f"{n}: {b}" for n, b in broken.items() if b)


def test_it_has_the_line_of_navigation_and_the_colours_of_the_pages(visit, scene):
    visit.log_in(account(Role.ADMINISTRATOR))
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        ours = visit.open("/sites/").evaluate(BACKGROUND)
        page = visit.open("/admin/sonar/mesh/add/")
        assert page.evaluate(BACKGROUND) == ours
        field = page.get_by_label("Name:")
        assert field.evaluate("field => getComputedStyle(field).backgroundColor") == ours
    expect(page.locator(".top [aria-current]")).to_have_text("Admin")
    page.get_by_role("link", name="Sites").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Sites")


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_o_make_a_site_admin(visit, scene, reader):
    """Task o: an account becomes the admin of a site in seven clicks."""
    anna = account(name="anna")
    visit.log_in(account(Role.ADMINISTRATOR))
    on = Hand(wait_until_drawn(visit.go("/")))
    menu = "places" if reader is NARROW else "account"
    on.click(on.page.locator(f"[popovertarget={menu}]"))
    on.link("Admin")
    on.link("Users")
    on.link("anna")
    on.click(on.page.get_by_label("Site admin:"))
    on.click(on.page.get_by_label("RAL", exact=True))
    on.click(on.page.get_by_role("button", name="Save", exact=True))
    expect(on.page.get_by_role("status").filter(has_text="anna")).to_contain_text("successfully")
    assert roles.described(anna) == "a site admin of RAL"
    expect(on.page.get_by_role("row", name="anna")).to_contain_text("a site admin of RAL")
    assert on.clicks == 7


@pytest.fixture
def shifter(scene: Scene) -> User:
    return account(Role.SITE_ADMIN, *Site.objects.filter(name__in=["RAL", "Glasgow"]))


def make(page: Page, name: str) -> str:
    page.get_by_label("Name (for example cron-at-ral)").fill(name)
    page.get_by_label("read: ").check()
    page.get_by_label("Validity (days)").fill("30")
    page.get_by_role("button", name="Create token").click()
    shown = page.locator("#token")
    expect(shown).to_contain_text("sonar_")
    return shown.inner_text()


@seen_by(LAPTOP, NARROW, SCRIPTLESS_NARROW)
def test_a_token_is_made_seen_once_and_revoked(visit, shifter, reader):
    tokens.create(shifter, "old-cron", ["operate"], 90)
    visit.log_in(shifter)
    page = visit.open("/tokens/")
    expect(page.locator("main")).to_contain_text("You are a site admin of Glasgow and RAL.")
    look(page, f"tokens-{reader}-before")
    text = make(page, "cron-at-ral")
    look(page, f"tokens-{reader}-made")
    assert fits(page)
    if reader.script:  # what looks for violations is one
        page.locator("summary").first.click()
        assert by_day_and_night(page) == []
    visit.open("/tokens/")
    assert text not in page.content()
    row = page.locator("tr", has_text="cron-at-ral")
    row.locator("summary").click()
    look(page, f"tokens-{reader}-revoke")
    row.get_by_role("button", name="Yes, revoke cron-at-ral").click()
    expect(page.locator("main")).not_to_contain_text("revoke cron-at-ral")
    assert list(Token.objects.values_list("name", flat=True)) == ["old-cron"]


@seen_by(COPYING)
def test_it_is_copied_as_it_is(visit, shifter):
    visit.log_in(shifter)
    page = visit.open("/tokens/")
    text = make(page, "cron")
    page.get_by_role("button", name="Copy token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    page.get_by_role("button", name="Copy command").click()
    until(page, "navigator.clipboard.readText().then(text => text.startsWith('curl'))")
    assert text in page.evaluate("navigator.clipboard.readText()")
