"""Ordered tests in a real browser: ordered on the page of a link, followed there, compared."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Endpoint, Probe
from sonar.ordering import request_probes
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import ONE_REFRESH, until_refreshed
from tests.matrix import world

LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
everybody = seen_by(LAPTOP, NARROW)


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


@pytest.fixture
def link(visit: Visit, scene: Scene) -> Page:
    """The page of a link, open for an operator."""
    visit.set_clock()
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(LINK)
    open_form(page)
    return page


def open_form(page: Page) -> None:
    """The form is behind a button, and the browser itself opens it."""
    expect(page.locator("#order")).to_be_hidden()
    page.get_by_role("button", name="Test now…").click()
    expect(page.locator("#order")).to_be_visible()


def end(probe: Probe, rate: float) -> None:
    """Let a test end with this rate in MB/s, as a worker would."""
    send(probe.source, probe.destination, rate, probe.streams, size=probe.size_class.name)
    probe.delete()


def send(source: Endpoint, destination: Endpoint, rate: float, streams: int, **more: Any) -> None:
    """Store what a worker made of an ordered test; what is no pull with 1 stream tried it out."""
    purpose = "ordered" if streams == 1 else "sweep"
    profile = world.profile(
        mode="pull", streams=streams, streams_used=streams, mesh=None, purpose=purpose
    )
    made = {"made": profile, "worker": "worker-1", "ago": timedelta(minutes=1)}
    world.transfer(source, destination, rate, **made | more)


def test_progress_and_results_come_by_themselves(link, scene):
    form = link.locator("#test-now form").first
    form.locator("[name=streams]").fill("4")
    expect(form.locator("[name=compare]")).to_be_checked()
    form.locator("[name=count]").fill("1")
    form.locator("button").click()
    expect(link.locator("#order")).to_be_hidden()
    expect(link.locator("#test-now-live li")).to_have_count(2)
    expect(link.locator("#test-now-live li").first).to_be_in_viewport()
    open_form(link)
    first, second = Probe.objects.order_by("id")
    Probe.objects.filter(id=first.id).update(
        state="running",
        started_at=world.NOW,
        deadline=world.NOW + timedelta(hours=1),
        progress_bytes=first.bytes // 2,
    )
    form.locator("[name=count]").fill("7")
    bar = expect(link.locator("#test-now progress"))
    until_refreshed(link, lambda: bar.to_have_attribute("value", "50", timeout=ONE_REFRESH))
    expect(form.locator("[name=count]")).to_have_value("7")
    end(first, 200.0)
    end(second, 100.0)
    rows = expect(link.locator("#test-now tbody tr", has_text="pull"))
    until_refreshed(link, lambda: rows.to_have_count(2, timeout=ONE_REFRESH))
    expect(link.locator("#test-now")).to_contain_text(
        "4 streams and 1 stream: 1 and 1 tests, too few to compare."
    )
    expect(link.locator("#test-now-live li")).to_have_count(0)


def test_a_refusal_stands_in_place_and_keeps_what_was_typed(visit, link, scene):
    form = link.locator("#test-now form").first
    form.locator("[name=count]").fill("99")
    form.locator("[name=both]").check()
    form.locator("button").click()
    expect(link.locator("#test-count_error")).to_have_text(
        "Number of tests must be a whole number from 1 to 10."
    )
    visit.expect_refusal(400)
    expect(link.locator("#order")).to_be_visible()
    expect(form.locator("[name=count]")).to_have_value("99")
    expect(form.locator("[name=both]")).to_be_checked()
    assert link.url == visit.base + LINK
    assert not Probe.objects.exists()


def test_one_is_cancelled_in_place(link, scene):
    link.locator("#test-now form button").first.click()
    waiting = link.locator("#test-now-live li")
    expect(waiting).to_have_count(3)
    waiting.nth(2).locator("button").click()
    expect(waiting).to_have_count(2)
    expect(link.locator("#test-now [role=status]")).to_contain_text("was cancelled")


def test_who_was_logged_out_meanwhile_is_told_so(visit, link, scene):
    visit.page.context.clear_cookies()
    link.locator("#test-now form button").first.click()
    expect(link.locator("#trouble")).to_contain_text("you may have to log in again")
    expect(link.locator("#test-now form").first).to_be_visible()


@pytest.mark.long
@everybody
def test_the_page_fits_and_breaks_no_rule(visit, scene, reader):
    visit.log_in(account(Role.OPERATOR))
    made = scene.world
    for number in range(3):
        for streams, rate in ((1, 110.0), (4, 205.0)):
            ago = timedelta(minutes=10 + number)
            send(made.ral, made.glasgow, rate + 7 * number, streams, ago=ago)
    page = visit.open(LINK)
    open_form(page)
    assert by_day_and_night(page, "#test-now") == []
    look(page, f"test-now-form-{reader}")
    page.locator("#test-now form button").first.click()
    expect(page.locator("#test-now-live li")).to_have_count(3)
    assert by_day_and_night(page, "#test-now") == []
    assert fits(page)
    look(page, f"test-now-{reader}")
    page = visit.open(f"{LINK}tests/")
    assert by_day_and_night(page) == []
    assert fits(page)
    look(page, f"link-probes-{reader}")


@seen_by(SCRIPTLESS)
def test_it_works_without_javascript(visit, scene):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(LINK)
    open_form(page)
    page.locator("#test-now form button").first.click()
    expect(page.locator("h1")).to_contain_text("On-demand tests from RAL_DATADISK")
    expect(page.locator("#test-now [role=status]")).to_have_text("3 tests were requested.")
    waiting = page.locator("#test-now-live li")
    expect(waiting).to_have_count(3)
    page.click("text=Refresh progress")
    waiting.nth(2).locator("button").click()
    expect(waiting).to_have_count(2)
    open_form(page)
    page.fill("[name=count]", "11")
    page.locator("#test-now form button").first.click()
    visit.expect_refusal(400)
    expect(page.locator("#test-count_error")).to_contain_text("from 1 to 10")
    expect(page.locator("[name=count]")).to_have_value("11")
    look(page, "test-now-refused")
