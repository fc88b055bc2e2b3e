"""A person logs in at a provider in a browser, with what the groups give, or reads why not."""

from ipaddress import ip_network

import jwt
import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sonar.models import Site
from sonar.people import roles
from sonar.people.role_rules import Role
from tests.browser.axe import by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("real_commits")


@pytest.fixture
def page(visit: Visit, provider: Provider) -> Page:
    """A window in which a person goes to the provider and comes back."""
    visit.page.on("request", lambda _: visit.hosts.discard(provider.host))
    return visit.page


def go_to_provider(visit: Visit, path: str = "/login/") -> None:
    visit.page.goto(visit.base + path)
    visit.page.get_by_role("link", name="Log in with Grid IAM").click()
    expect(visit.page.get_by_role("heading", name="Authorize Client")).to_be_visible()


def log_in(visit: Visit, subject: str, path: str = "/login/") -> None:
    go_to_provider(visit, path)
    visit.page.get_by_placeholder("sub").fill(subject)
    visit.page.get_by_role("button", name="Authorize", exact=True).click()


def expect_refused(visit: Visit, sentence: str, status: int = 403) -> None:
    """Wait for the page that says so, with a way to try again."""
    notice = visit.page.get_by_role("alert").filter(has_text="You were not logged in.")
    expect(notice).to_contain_text(sentence)
    expect(visit.page.get_by_role("link", name="Log in with Grid IAM")).to_be_visible()
    visit.expect_refusal(status)


@pytest.mark.long
def test_a_person_gets_the_roles_of_the_groups_and_loses_them(visit, page, provider):
    Site.objects.create(name="RAL")
    provider.person("s-1", preferred_username="anna", groups=["/grid/shifters"])
    visit.page.goto(f"{visit.base}/table/?window=24h")
    page.get_by_role("link", name="Log in", exact=True).click()
    page.get_by_role("link", name="Log in with Grid IAM").click()
    page.get_by_placeholder("sub").fill("s-1")
    page.get_by_role("button", name="Authorize", exact=True).click()
    page.wait_for_url("**/table/?window=24h")
    page.locator("[popovertarget=account]").click()
    expect(page.get_by_role("link", name="Admin", exact=True)).to_be_visible()
    page.goto(f"{visit.base}/admin/sonar/site/add/")
    expect(page.get_by_role("heading", name="Add site")).to_be_visible()

    provider.person("s-1", preferred_username="anna", groups=["/grid/sites/RAL"])
    log_in(visit, "s-1")
    page.wait_for_url("**/sites/RAL/")
    page.locator("[popovertarget=account]").click()
    expect(page.get_by_role("link", name="API tokens")).to_be_visible()
    expect(page.get_by_role("link", name="Admin", exact=True)).to_have_count(0)
    assert roles.role_of(User.objects.get(username="anna@localhost")) is Role.SITE_ADMIN

    provider.person("s-1", preferred_username="anna", groups=["/another"])
    log_in(visit, "s-1")
    expect_refused(visit, "provider: /another.")
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("link", name="Log in", exact=True)).to_be_visible()
    assert roles.described(User.objects.get(username="anna@localhost")) == "not active"


def test_an_id_token_that_is_not_right_is_refused_in_a_sentence(visit, page, provider):
    provider.person("s-1", groups=["/grid/admins"])
    provider.lie = lambda claims, key: jwt.encode(claims | {"nonce": "another"}, key, "RS256")
    log_in(visit, "s-1")
    sentence = "this ID token was issued for another log-in (nonce)."
    expect_refused(visit, f"The ID token of Grid IAM is not accepted: {sentence}")
    assert not User.objects.filter(username__contains="@").exists()


def test_a_log_in_that_is_cancelled_replayed_or_not_answered_is_a_sentence(visit, page, provider):
    provider.person("s-1", groups=["/grid"])
    go_to_provider(visit)
    page.get_by_role("button", name="Deny").click()
    expect_refused(visit, "The log-in was cancelled at Grid IAM")

    with page.expect_response("**/login/oidc/callback/**") as answer:
        log_in(visit, "s-1")
    page.wait_for_url(f"{visit.base}/")
    page.context.clear_cookies()
    page.goto(answer.value.url)
    expect_refused(visit, "This log-in attempt has already ended")

    provider.broken.add("/oauth2/token")
    log_in(visit, "s-1")
    expect_refused(visit, "Grid IAM did not complete the log-in.")
    provider.forgotten()
    provider.broken.add("/.well-known/openid-configuration")
    page.get_by_role("link", name="Log in with Grid IAM").click()
    expect_refused(visit, "Grid IAM is not responding, or its", 503)


def test_the_page_offers_each_way_at_any_width(visiting, provider, settings):
    settings.SONAR_X509_PROXIES = [ip_network("192.0.2.7")]
    for reader in (LAPTOP, NARROW):
        visit = visiting(reader)
        settings.SONAR_PASSWORDS = True
        page = visit.open("/login/?next=/table/")
        expect(page.get_by_role("button", name="Log in with your certificate")).to_be_visible()
        expect(page.get_by_label("Password")).to_be_visible()
        assert by_day_and_night(page) == []
        assert fits(page)
        look(page, f"login-all-{reader.name}")
        settings.SONAR_PASSWORDS = False
        visit.open("/login/oidc/callback/", status=403)
        expect(page.get_by_label("Password")).to_have_count(0)
        assert by_day_and_night(page) == []
        assert fits(page)
        look(page, f"login-refused-{reader.name}")
    page.get_by_role("button", name="Log in with your certificate").click()
    notice = page.get_by_role("alert").filter(has_text="did not come through the front server.")
    expect(notice).to_be_visible()
    visit.expect_refusal(403)
