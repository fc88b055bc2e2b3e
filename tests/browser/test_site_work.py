"""A site admin in a real browser: logs in, declares a downtime, changes caps, writes a note."""

from datetime import time

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from sonar.models import Annotation, Downtime, Endpoint, Site, SizeClass
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, log_in, look
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.scene import Scene

SITE = "/sites/RAL/"
everybody = seen_by(LAPTOP, NARROW)
both = seen_by(LAPTOP, SCRIPTLESS)


@pytest.fixture
def site(visit: Visit, scene: Scene) -> Page:
    """The page of a site, open for its admin."""
    visit.log_in(account(Role.SITE_ADMIN, scene.world.ral.site))
    return visit.open(SITE)


@pytest.mark.long
@both
def test_a_downtime_is_declared_in_four_clicks_and_ended(visit, scene, reader):
    log_in(visit.open("/login/"), account(Role.SITE_ADMIN, scene.world.ral.site))
    expect(visit.page).to_have_url(visit.base + SITE)
    page = visit.open("/")
    page.click("nav >> text=My site")  # 1
    page.click("summary >> text=Declare downtime")  # 2
    page.fill("#downtime-ends_at", "2026-01-01 00:00")
    page.click("#downtime-reason")  # 3
    page.keyboard.type("new switch")
    page.click("button >> text=Declare")  # 4
    wrong = page.locator("#downtime-ends_at_error")
    expect(wrong).to_have_text("A downtime must end after it starts.")
    visit.expect_refusal(400)
    expect(page.locator("#downtime-reason")).to_have_value("new switch")
    look(page, f"site-work-refused-{reader}")
    page.fill("#downtime-ends_at", "2999-01-01 00:00")
    page.click("button >> text=Declare")
    expect(page.locator("#site-work [role=status]")).to_contain_text("Declared a downtime of RAL")
    expect(page).to_have_url(f"{visit.base}{SITE}#site-work")
    assert Downtime.objects.filter(site__name="RAL", reason="new switch").exists()
    page.click("text=End downtime now")
    expect(page.locator("#site-work [role=status]")).to_contain_text("has ended")


@pytest.mark.long
@both
def test_caps_are_changed_and_a_note_is_written(visit, site, scene):
    page = site
    page.click("summary >> text=Caps and budgets")
    end = scene.world.ral
    page.fill(f"#endpoint-{end.id}-inbound_cap", "7")
    page.fill(f"#endpoint-{end.id}-budget", "500")
    page.click("#site-work details[open] button")
    expect(page.locator("#site-work [role=status]")).to_contain_text("from 2 to 7")
    row = Endpoint.objects.get(id=end.id)
    assert (row.inbound_cap, row.budget_bytes_per_day) == (7, 500_000_000_000)
    page.click("summary >> text=Add note")
    page.fill("#note-text", "routed over the backup line")
    page.click('button >> text="Add note"')
    expect(page.locator("#site-work [role=status]")).to_contain_text("Added a note")
    assert Annotation.objects.filter(site=end.site, text="routed over the backup line").exists()
    page.click("summary >> text=Latest changes")
    expect(page.locator("#site-work li")).to_have_count(2)


@pytest.mark.long
@both
def test_tests_are_paused_and_resumed_and_quiet_hours_are_set(visit, site, reader):
    page, said = site, site.locator("#site-work [role=status]")
    page.click("summary >> text=Pause tests")
    page.fill("#pause-paused_until", "2026-01-01 00:00")
    page.fill("#pause-pause_reason", "new firewall")
    page.click("#site-work details[open] button")
    wrong = page.locator("#pause-paused_until_error")
    expect(wrong).to_contain_text("The end must be in the future")
    visit.expect_refusal(400)
    expect(page.locator("#pause-pause_reason")).to_have_value("new firewall")
    page.fill("#pause-paused_until", "")
    page.click("#site-work details[open] button")
    expect(said).to_contain_text("Paused the tests of RAL, until someone resumes them")
    expect(page.locator("#paused")).to_contain_text("RAL has paused its tests since")
    assert Site.objects.get(name="RAL").paused_since
    look(page, f"site-paused-{reader}")
    page.click("button >> text=Resume tests")
    expect(said).to_contain_text("Resumed the tests of RAL")
    expect(page.locator("#paused")).to_have_count(0)
    page.click("summary >> text=Quiet hours")
    page.fill("#quiet-quiet_from", "22:00")
    page.click("#site-work details[open] button")
    expect(page.locator("#quiet-quiet_until_error")).to_contain_text("need a start and an end")
    visit.expect_refusal(400)
    expect(page.locator("#quiet-quiet_from")).to_have_value("22:00")
    page.fill("#quiet-quiet_until", "04:00")
    page.click("#site-work details[open] button")
    expect(page.locator("#quiet-hours")).to_contain_text("between 22:00 and 04:00 UTC")
    assert Site.objects.get(name="RAL").quiet_hours == "22:00-04:00"


@pytest.mark.long
@everybody
def test_a_paused_site_fits_and_breaks_no_rule(visit, site, reader):
    row = Site.objects.get(name="RAL")
    row.pause(timezone.now(), "new firewall, with a reason as long as they come " * 3, None, None)
    row.quiet_from, row.quiet_until = time(22), time(4)
    row.save()
    for path, part in (
        (SITE, ALL),
        ("/", ".notice"),
        ("/operations/", "section:has(#pauses)"),
        ("/links/RAL_DATADISK/DESY_DATADISK/", ".notice"),
    ):
        page = visit.open(path)
        expect(
            page.get_by_text("RAL has paused its tests").or_(page.locator("#pauses")).first
        ).to_be_visible()
        assert by_day_and_night(page, part) == []
        assert fits(page)
        look(page, f"paused-{path.split('/')[1] or 'matrix'}-{reader}")


@pytest.mark.long
@everybody
def test_the_forms_fit_and_break_no_rule(visit, site, reader):
    page = site
    site_admin_forms = page.locator("#site-work > details")
    expect(site_admin_forms).not_to_have_count(0)
    for number in range(site_admin_forms.count()):
        site_admin_forms.nth(number).locator("summary").click()
        # One at a time, and no more than one button that comes first.
        expect(page.locator("#site-work > details[open]")).to_have_count(1)
        assert by_day_and_night(page, "#site-work" if number else ALL) == []
        assert fits(page)
        look(page, f"site-work-{number}-{reader}")


@pytest.mark.long
@everybody
def test_an_endpoint_is_enabled_with_its_cost_seen_before(visit: Visit, scene: Scene, reader):
    small = SizeClass.objects.get(name="small")
    scene.world.mesh.intervals.update_or_create(size_class=small, defaults={"every_seconds": 3600})
    Endpoint.objects.filter(pk=scene.world.ral.pk).update(enabled=False)
    visit.log_in(account(Role.SITE_ADMIN, scene.world.ral.site))
    for path, name in ((SITE, "site"), (f"{SITE}endpoints/RAL_DATADISK/", "endpoint")):
        page = visit.open(path)
        expect(page.locator("form", has_text="is not enabled")).to_contain_text("tests and")
        assert fits(page)
        look(page, f"{name}-not-enabled-{reader}")
        assert by_day_and_night(page, ALL) == []
        look(page, f"{name}-not-enabled-dark-{reader}")
        page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    look(page, f"endpoint-enabled-{reader}")
    assert Endpoint.objects.get(pk=scene.world.ral.pk).enabled
