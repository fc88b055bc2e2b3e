"""The page of the API in a real browser: all calls, and some of them tried out."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from sonar.models import Site, Token
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.browser.axe import ON_COLOURS, violations
from tests.browser.conftest import Visit

DOCS = "/api/v1/docs/"
# The head, and of each method two calls: the first that writes is open.
MARK_ONE_OF_EACH = """(methods) => {
    for (const method of methods) {
        const calls = [...document.querySelectorAll(`.opblock-${method}`)];
        for (const call of calls.slice(0, 2)) call.dataset.lookedAt = "";
    }
    document.querySelector(".opblock-post .opblock-summary-control").click();
    for (const part of document.querySelectorAll(".info, .scheme-container, .opblock-tag")) {
        part.dataset.lookedAt = "";
    }
}"""
OPEN = ".opblock.is-open .opblock-summary-control"
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


def look_at_colours(page: Page, methods: set[str]) -> None:
    """Look at the head and some calls: all others are as these."""
    page.evaluate(MARK_ONE_OF_EACH, sorted(methods))
    expect(page.locator(OPEN)).to_have_count(1)
    title = page.locator(".info .title")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page, ON_COLOURS, "[data-looked-at]") == [], scheme
        ours = page.evaluate("getComputedStyle(document.body).color")
        assert title.evaluate("title => getComputedStyle(title).color") == ours, scheme
    page.locator(OPEN).evaluate_all("all => all.forEach((it) => it.click())")
    expect(page.locator(OPEN)).to_have_count(0)


@pytest.mark.long
def test_who_is_logged_in_can_write_from_the_page(administrator, visit):
    visit.log_in(administrator)
    box = call(opened(visit), "post_sites")
    box.locator("textarea.body-param__text").fill(SITE)
    expect(status_of(box)).to_contain_text("201")
    assert Site.objects.get().name == "RAL"


@pytest.mark.long
def test_the_page_shows_every_call_in_colours_of_ours_and_writes_with_a_token_alone(
    administrator, visit
):
    _, token = tokens.create(administrator, "docs", [Token.Scope.OPERATE], 1)
    page = opened(visit)
    schema = page.request.get(f"{visit.base}/api/v1/schema/").json()
    expect(page.locator(".opblock")).to_have_count(sum(map(len, schema["paths"].values())))
    expect(page.locator(".opblock-tag")).to_have_count(len(schema["tags"]))
    look_at_colours(page, {method for calls in schema["paths"].values() for method in calls})
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
