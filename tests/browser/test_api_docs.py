"""The page of the API in a real browser: all calls, and some of them tried out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from sonar import roles, tokens
from sonar.models import Site, Token
from sonar.roles import Role
from tests.browser.axe import ON_COLOURS, violations
from tests.browser.conftest import Visit

DOCS = "/api/v1/docs/"
SITE = '{"name": "RAL", "cloud": "UK", "tier": 1, "country": "GB"}'


@pytest.fixture
def administrator(real_commits: None) -> User:
    made = User.objects.create_user("ada")
    roles.give(made, Role.ADMINISTRATOR)
    return made


def opened(visit: Visit) -> Page:
    page = visit.open(DOCS)
    page.wait_for_selector(".opblock")
    return page


def call(page: Page, name: str) -> Locator:
    """Open the box of a call, by the name that the schema gives it, and let it be tried out."""
    box = page.locator(f"[id$='-{name}']")
    box.locator(".opblock-summary-control").click()
    box.get_by_role("button", name="Try it out").click()
    return box


def status_of(box: Locator) -> Locator:
    box.get_by_role("button", name="Execute").click()
    return box.locator(".live-responses-table td.response-col_status:not(.col_header)")


def test_the_page_shows_every_call_in_colours_of_ours_and_asks_no_other_host(
    real_commits: None, visit: Visit
) -> None:
    page = opened(visit)
    schema = page.request.get(f"{visit.base}/api/v1/schema/").json()
    expect(page.locator(".opblock")).to_have_count(sum(map(len, schema["paths"].values())))
    expect(page.locator(".opblock-tag")).to_have_count(len(schema["tags"]))
    page.locator(".opblock-summary-control").first.click()
    title = page.locator(".info .title")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page, ON_COLOURS) == [], scheme
        ours = page.evaluate("getComputedStyle(document.body).color")
        assert title.evaluate("title => getComputedStyle(title).color") == ours, scheme


def test_who_is_logged_in_can_write_from_the_page(administrator: User, visit: Visit):
    visit.log_in(administrator)
    box = call(opened(visit), "post_sites")
    box.locator("textarea.body-param__text").fill(SITE)
    expect(status_of(box)).to_contain_text("201")
    assert Site.objects.get().name == "RAL"


def test_who_has_a_token_can_write_from_the_page_and_nobody_without(
    administrator: User, visit: Visit
):
    _, token = tokens.create(administrator, "docs", [Token.Scope.OPERATE], 1)
    page = opened(visit)
    box = call(page, "post_sites")
    box.locator("textarea.body-param__text").fill(SITE)
    expect(status_of(box)).to_contain_text("401")
    visit.expect_refusal(401)
    assert not Site.objects.exists()
    page.get_by_role("button", name="Authorize").first.click()
    way = page.locator(".auth-container", has_text="token  (apiKey)")
    way.locator("input").fill(f"Token {token}")
    way.get_by_role("button", name="Apply credentials").click()
    way.get_by_role("button", name="Close").click()
    expect(status_of(box)).to_contain_text("201")
