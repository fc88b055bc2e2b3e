"""The page of operations in a real browser: it keeps itself up to date, and orders tests."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from matrix.answers.status import figures
from sonar.models import (
    Circuit,
    Credential,
    CredentialState,
    Endpoint,
    EndpointCheck,
    Mesh,
    Probe,
    Schedule,
    SignOfLife,
    Site,
)
from sonar.ordering import request_probes
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look, refresh
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import ONE_REFRESH, REFRESH_MS, hold_clock, until_refreshed, until_so
from tests.matrix import sent, world

URL = "/operations/"
MINUTE = timedelta(minutes=1)
everybody = seen_by(LAPTOP, NARROW)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    figures.forget()
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


@pytest.fixture
def busy(scene: Scene) -> Probe:
    """A grid on which tests run, wait and are queued; returns one that runs."""
    made = scene.world
    signs = dict.fromkeys(["transfers@w1", "control@w2", "cleanup@w2"], "worker")
    signs |= {"beat@w2": "beat"}
    signs |= dict.fromkeys(figures.TASKS, "task")
    for name, kind in signs.items():
        queues = world.QUEUES[name.partition("@")[0]] if kind == "worker" else []
        SignOfLife.objects.create(
            name=name, kind=kind, seen_at=world.NOW, every_seconds=600, queues=queues
        )
    waiting = Schedule.objects.filter(source=made.glasgow)
    waiting.update(skipped_because="cap", skipped_since=world.NOW - 20 * MINUTE)
    link, started = (made.ral, made.desy), world.NOW - MINUTE
    probe("large", 0.05, *link, started_at=started, worker="w1")
    running = probe("small", 0.4, started_at=started, worker="w1")
    probe("large", 1.0, started_at=started, worker="w1")
    probe("medium", 0)
    why = "Another test of this link is running."
    for _ in range(2):
        probe("small", 0, *link, state="waiting", waits_because=why)
    Circuit.objects.create(
        endpoint=made.desy,
        failures=12,
        since=world.NOW - 90 * MINUTE,
        last_at=world.NOW - MINUTE,
        error="HEAD DESY_DATADISK: no answer within 15 s",
    )
    client = Credential.objects.create(name="iam-client", hosts=["ral", "desy"])
    for endpoint, holds in ((made.desy, True), (made.ral, False)):
        CredentialState.objects.create(
            credential=client,
            endpoint=endpoint,
            role="own" if holds else "lent",
            since=world.NOW - 90 * MINUTE,
            holds=holds,
            sentence="the issuer is not responding: GET iam.example:443/.well-known/openid-"
            "configuration: no answer within 10 s",
            expires_at=None if holds else world.NOW + 30 * MINUTE,
            checked_at=world.NOW,
        )
    world.of_service(client, "grid-by-fts")
    two_proxies()
    return running


def two_proxies() -> None:
    """Register a mesh whose ends show a proxy each."""
    site = Site.objects.create(name="Lancaster", cloud="UK", tier=2)
    for number in range(2):
        end = world.endpoint(f"RAL-TAPE-WITH-A-LONG-NAME-{number}", site)
        facts = {"name": f"proxy-{number}", "hosts": ["ral"], "kind": "x509"}
        end.credential = Credential.objects.create(**facts)
        end.base_url = f"root://ral/{number}"
        end.save()
    Mesh.objects.create(name="grid-by-xrdcp", mover="xrootd")


def probe(size: str, share: float, *link: Endpoint, **fields: Any) -> Probe:
    """Keep a test of a link, or of one that is free, which has done a share of its bytes."""
    ends = link or world.free_link()
    done = int(share * world.SIZES[size])
    asked = world.NOW - 2 * MINUTE
    return sent.probe(*ends, size=size, requested_at=asked, progress_bytes=done, **fields)


@everybody
def test_the_page_fits_and_breaks_no_rule(visit, busy, reader):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(URL)
    expect(page.locator("h1")).to_contain_text("Health")
    assert by_day_and_night(page) == []
    assert fits(page)
    look(page, f"operations-{reader}")


def test_bars_move_by_themselves_and_vanish_with_the_tests(visit, busy):
    visit.set_clock()
    page = visit.open(URL)
    bars = page.locator("progress")
    expect(bars).to_have_count(3)
    Probe.objects.filter(id=busy.id).update(progress_bytes=15_000_000)
    moved = expect(page.locator("progress[value='75']"))
    until_refreshed(page, lambda: moved.to_have_count(1, timeout=ONE_REFRESH))
    Probe.objects.filter(state="running").delete()
    until_refreshed(page, lambda: expect(bars).to_have_count(0, timeout=ONE_REFRESH))


def test_a_test_is_ordered_and_followed(visit, busy):
    Probe.objects.all().delete()
    visit.set_clock()
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(URL)
    page.click("#order summary")
    page.fill("[name=source]", "RAL_DATADISK")
    page.fill("[name=destination]", "DESY_DATADISK")
    page.select_option("[name=size]", "small")
    page.click("#order button")
    expect(page.locator("h1")).to_have_text("On-demand tests from RAL_DATADISK to DESY_DATADISK")
    expect(page.locator("main")).to_contain_text("queued for a worker")
    Probe.objects.update(
        state="running", started_at=world.NOW, deadline=world.NOW + MINUTE, progress_bytes=10**7
    )
    bar = expect(page.locator("progress"))
    until_refreshed(page, lambda: bar.to_have_attribute("value", "50", timeout=ONE_REFRESH))


@pytest.mark.long
def test_a_refusal_says_why_by_its_field(visit, busy):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(URL)
    page.click("#order summary")
    page.fill("[name=source]", "DESY")
    page.fill("[name=destination]", "RAL")
    page.click("#order button")
    expect(page.locator("#test-source_error")).to_contain_text("DESY has 2 endpoints: choose")
    visit.expect_refusal(400)
    page.select_option("[name=source]", "DESY_SCRATCHDISK")
    page.click("#order button")
    refusal = page.locator("#test-source_error")
    expect(refusal).to_have_text("DESY_SCRATCHDISK is in a declared downtime.")
    visit.expect_refusal(409)
    expect(page.locator("[name=destination]")).to_have_value("RAL")
    expect(page.locator("h1")).to_contain_text("Health")
    assert by_day_and_night(page) == []
    look(page, "operations-refused")


@seen_by(LAPTOP, SCRIPTLESS)
def test_a_test_that_waits_is_cancelled_in_the_list_and_on_its_page(visit, busy, reader):
    # Where the answer takes long, the page would ask for the test again, which is gone by then.
    visit.set_clock()
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(URL)
    waiting = page.locator("#ordered ~ .scroll tbody tr", has_text="Another test of this link")
    expect(waiting).to_have_count(2)
    waiting.nth(1).locator("a").click()
    expect(page.locator("main")).to_contain_text("This test is number 2 in the queue")
    if reader is LAPTOP:  # what looks for violations is a script
        assert by_day_and_night(page) == []
    page.locator("main form button", has_text="Cancel this test").click()
    expect(page.locator("main [role=status]")).to_contain_text("was cancelled before it started.")
    expect(waiting).to_have_count(1)
    waiting.nth(0).locator("button").click()
    expect(waiting).to_have_count(0)
    assert not Probe.objects.filter(state="waiting").exists()


def test_a_page_that_is_left_by_a_form_is_not_fetched_any_more(visit, busy):
    visit.set_clock()
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(f"/transfers/{Probe.objects.filter(state='waiting')[0].id}/")
    hold_clock(page)
    # The browser stays where it is, as while it waits for another page.
    page.route("**/cancel/", lambda route: route.fulfill(status=204))
    with page.expect_response("**/cancel/"):
        page.locator("main form button", has_text="Cancel this test").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(REFRESH_MS)
    refresh(page)
    page.wait_for_timeout(100)
    assert asked == []
    page.clock.run_for(2 * REFRESH_MS)
    until_so(page, lambda: len(asked) > 0, "the page that is still there lives on")


@pytest.mark.long
@seen_by(LAPTOP, NARROW, SCRIPTLESS)
def test_a_running_test_and_then_all_tests_are_stopped(visit, busy, scene: Scene, reader):
    check = EndpointCheck.objects.create(
        endpoint=scene.world.ral,
        requested_at=world.NOW,
        started_at=world.NOW,
        ended_at=world.NOW,
        steps=[{"name": "write", "state": "failed", "seen": "403", "advice": "Ask who gave it."}],
    )
    Endpoint.objects.filter(pk=check.endpoint_id).update(enabled=False)
    root = account(Role.ADMINISTRATOR, name="root")
    root.set_password("four in the morning")
    root.save()
    visit.log_in(root)
    pages = {
        "operations": URL,
        "cancel": f"{URL}probes/{busy.id}/cancel/",
        "transfer": f"/transfers/{busy.id}/",
        "site": "/sites/RAL/",
        "set-up": "/sites/RAL/endpoints/RAL_DATADISK/set-up/",
        "people": "/people/",
        "password": "/password/",
        "tokens": "/tokens/",
        "sweeps": "/links/RAL_DATADISK/DESY_DATADISK/sweeps/?variable=streams",
    }
    for name, path in pages.items():
        page = visit.open(path)
        if name in ("operations", "people"):
            page.locator(".site-work summary").last.click()
        assert fits(page), name
        look(page, f"{name}-{reader}")
        if reader.script and name in ("cancel", "password", "operations", "set-up"):
            assert by_day_and_night(page) == [], name
            look(page, f"{name}-{reader}-dark")
            page.emulate_media(color_scheme="light")
    page = visit.open(URL)
    page.locator(f'a[href^="{URL}probes/{busy.id}/cancel/"]').click()
    page.get_by_role("button", name="Cancel this test").click()
    expect(page.locator("main")).to_contain_text("will end within seconds")
    expect(page.locator("#running").locator("..")).to_contain_text("being cancelled")
    page.locator("#stop > summary").click()
    page.get_by_label("reason (visible to everyone)").fill("new firewall")
    page.get_by_role("button", name="Stop all tests").click()
    expect(page.locator("#stopped")).to_contain_text("All Sonar tests are stopped")
    for name in ("operations", "site"):
        page = visit.open(pages[name])
        expect(page.locator("#stopped")).to_contain_text("(root), until someone resumes them")
        assert fits(page), name
        look(page, f"stopped-{name}-{reader}")
    if reader.script:
        assert by_day_and_night(page) == []
        look(page, f"stopped-site-{reader}-dark")
    page.get_by_role("link", name="Start tests again").click()
    page.get_by_role("button", name="Start tests again").click()
    expect(page.locator("main")).to_contain_text(
        "Tests start again: due tests run as soon as limits allow."
    )
    expect(page.locator("#stopped")).to_have_count(0)
