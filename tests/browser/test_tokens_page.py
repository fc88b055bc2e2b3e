"""A person makes, copies and revokes a token, with and without a script, at any width."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sonar.models import Site, Token
from sonar.people import tokens
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import COPYING, LAPTOP, NARROW, SCRIPTLESS_NARROW, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import until


@pytest.fixture
def shifter(scene: Scene) -> User:
    return account(Role.SITE_ADMIN, *Site.objects.filter(name__in=["RAL", "Glasgow"]))


def make(page: Page, name: str) -> str:
    page.get_by_label("Name, for example").fill(name)
    page.get_by_label("read: ").check()
    page.get_by_label("Valid for (days)").fill("30")
    page.get_by_role("button", name="Create the token").click()
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
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    page.get_by_role("button", name="Copy the command").click()
    until(page, "navigator.clipboard.readText().then(text => text.startsWith('curl'))")
    assert text in page.evaluate("navigator.clipboard.readText()")
