"""The history, and people and roles, in a real browser: readable, and used without a mouse."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from playwright.sync_api import expect

from sonar.database.actor import acting
from sonar.models import Endpoint, Site
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene

everybody = seen_by(LAPTOP, NARROW)


@pytest.fixture
def changed(scene: Scene) -> None:
    anna = account(Role.SITE_ADMIN, scene.world.ral.site, name="anna")
    eve = account(Role.OPERATOR, name="eve.of-a-long-name@iam.cloud.example.org")
    SocialAccount.objects.create(user=eve, provider="https://iam.cloud.example.org", uid="12-34")
    with acting("page", "anna"):
        Endpoint.objects.filter(pk=scene.world.ral.pk).update(
            inbound_cap=8, budget_bytes_per_day=10**12, tags=["tape", "dc27"], enabled=False
        )
        scene.world.mesh.sources.set([scene.world.ral, scene.world.desy])
        tokens.create(anna, "cron-at-ral", ["read"], 90)
    with acting("file", "manage.py load_registry a-grid-of-the-whole-world-2026.yaml"):
        Site.objects.create(name="A-Site-With-A-Name-That-Is-Rather-Long", cloud="UK")


@pytest.mark.long
@everybody
def test_administrators_see_who_changed_what_and_give_roles(visit, changed, reader):
    visit.log_in(account(Role.ADMINISTRATOR, name="root"))
    page = visit.open("/history/")
    expect(page.locator("main")).to_contain_text("inbound cap: 2 → 8")
    for name, path in {
        "history": "/history/",
        "people": "/people/",
        "person": "/people/anna/",
        "person-elsewhere": "/people/eve.of-a-long-name@iam.cloud.example.org/",
    }.items():
        page = visit.open(path)
        if name == "people":
            page.locator("summary", has_text="Add account…").click()
        look(page, f"{name}-{reader}")
        assert fits(page), name
        if name in ("history", "people", "person"):
            assert by_day_and_night(page) == [], name
        look(page, f"{name}-{reader}-dark")
    page = visit.open("/people/anna/")
    page.get_by_label("Sites of a site admin").select_option([])
    page.get_by_label("Operator").check()
    page.get_by_label("Operator").press("Enter")
    expect(page.locator("h1")).to_have_text("anna: an operator")
    assert roles.role_of(User.objects.get(username="anna")) is Role.OPERATOR
    page.get_by_label("active").uncheck()
    page.get_by_label("Site admin:").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".field .error").first).to_contain_text(
        "Select at least one site for a site admin."
    )
    visit.expect_refusal(400)
    look(page, f"person-{reader}-refused")
