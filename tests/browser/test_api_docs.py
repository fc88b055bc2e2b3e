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
# The head, of each method two calls, and the one that is open. The others are put away, as axe-core
# would look where each of them is.
MARK_ONE_OF_EACH = """(methods) => {
    const open = document.querySelector(".opblock.is-open");
    open.dataset.lookedAt = "";
    for (const method of methods) {
        const calls = [...document.querySelectorAll(`.opblock-${method}`)];
        for (const call of calls.slice(0, 2)) call.dataset.lookedAt = "";
        for (const call of calls.slice(2)) if (call !== open) call.style.display = "none";
    }
    for (const part of document.querySelectorAll(".info, .scheme-container, .opblock-tag")) {
        part.dataset.lookedAt = "";
    }
}"""
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
    """Open the box of a call, by the name that the schema gives it."""
    box = page.locator(f"[id$='-{name}']")
    box.locator(".opblock-summary-control").click()
    expect(page.locator(".opblock.is-open")).to_have_count(1)
    return box


def status_of(box: Locator) -> Locator:
    box.get_by_role("button", name="Execute").click()
    return box.locator(".live-responses-table td.response-col_status:not(.col_header)")


def look_at_colours(page: Page, methods: set[str]) -> None:
    """Look at the head, the open call and some others: the rest is as these."""
    page.evaluate(MARK_ONE_OF_EACH, sorted(methods))
    title = page.locator(".info .title")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page, ON_COLOURS, "[data-looked-at]") == [], scheme
        ours = page.evaluate("getComputedStyle(document.body).color")
        assert title.evaluate("title => getComputedStyle(title).color") == ours, scheme


@pytest.mark.long
def test_the_page_shows_every_call_in_colours_of_ours_and_writes_by_a_session_or_a_token_alone(
    administrator, visit
):
    visit.log_in(administrator)
    page = opened(visit)
    schema = page.request.get(f"{visit.base}/api/v1/schema/").json()
    expect(page.locator(".opblock")).to_have_count(sum(map(len, schema["paths"].values())))
    expect(page.locator(".opblock-tag")).to_have_count(len(schema["tags"]))
    box = call(page, "post_sites")
    look_at_colours(page, {method for calls in schema["paths"].values() for method in calls})
    box.get_by_role("button", name="Try it out").click()
    box.locator("textarea.body-param__text").fill(SITE)
    expect(status_of(box)).to_contain_text("201")
    assert Site.objects.get().name == "RAL"
    Site.objects.all().delete()
    page.context.clear_cookies(name="sessionid")
    expect(status_of(box)).to_contain_text("401")
    visit.expect_refusal(401)
    assert not Site.objects.exists()
    authorize(page, tokens.create(administrator, "docs", [Token.Scope.OPERATE], 1)[1])
    expect(status_of(box)).to_contain_text("201")
    assert Site.objects.get().name == "RAL"


def authorize(page: Page, token: str) -> None:
    page.get_by_role("button", name="Authorize").first.click()
    way = page.locator(".auth-container", has_text="token  (apiKey)")
    way.locator("input").fill(f"Token {token}")
    way.get_by_role("button", name="Apply credentials").click()
    way.get_by_role("button", name="Close").click()
