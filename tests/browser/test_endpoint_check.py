"""The check of an endpoint in a real browser: ordered by its button, followed to its end."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from sonar.models import Endpoint, EndpointCheck
from sonar.notation.check_steps import CheckStep, StepState
from sonar.ordering import request_checks
from sonar.people.roles import Role
from sonar.work import refused_redirects
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look, refresh
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene
from tests.matrix.world import NOW

PAGE = "/sites/RAL/endpoints/RAL_DATADISK/"
GOOD = [
    CheckStep(
        "name", StepState.FINE, "se.ral.example: 192.0.2.7 (IPv4). The host has no IPv6 address."
    ),
    CheckStep(
        "certificate",
        StepState.FINE,
        "The certificate is for se.ral.example; the certificate expires on 2027-11-20.",
    ),
    CheckStep(
        "write", StepState.FINE, "100 kB uploaded under a temporary name and renamed, in 0.2 s."
    ),
]
BAD = [
    *GOOD[:1],
    CheckStep("certificate", StepState.WARNING, "The certificate expires in 4 days.", "Renew it."),
    CheckStep("write", StepState.FAILED, f"PUT se.ral.example:1094/{'x' * 60}: 403.", "Ask why."),
    CheckStep("read", StepState.NOT_TRIED, "This step needs “Write” to succeed first."),
]


def end(steps: list[CheckStep]) -> None:
    """Let a worker have carried the check out."""
    kept = [step.to_json() for step in steps]
    EndpointCheck.objects.update(started_at=NOW, ended_at=NOW, steps=kept)


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_a_check_is_ordered_and_followed_to_its_end(
    visit: Visit, scene: Scene, reader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request_checks, "send_check", lambda *_: None)
    refused_redirects.note(scene.world.ral, f"pool-7.{'storage-' * 9}.example.org:20001", NOW)
    long = f"https://{'gateway-' * 8}.example.org/{'atlas' * 30}"
    Endpoint.objects.filter(pk=scene.world.ral.pk).update(base_url=long)
    visit.log_in(account(Role.SITE_ADMIN, scene.world.ral.site))
    page = visit.open(PAGE)
    look(page, f"endpoint-never-checked-{reader}")
    section = page.locator("#check")
    expect(section).to_contain_text("This endpoint has not been checked yet.")
    section.get_by_role("button", name="Run check").click()
    expect(section).to_contain_text("The check is waiting for a worker.")
    EndpointCheck.objects.update(started_at=NOW, steps=[GOOD[0].to_json()])
    refresh(page)
    expect(section).to_contain_text("The check is running; steps so far: 1.")
    look(page, f"endpoint-being-checked-{reader}")
    for name, steps, words in (("well", GOOD, "nothing is wrong"), ("badly", BAD, "2 steps need")):
        end(steps)
        refresh(page)
        expect(section).to_contain_text(words)
        look(page, f"endpoint-checked-{name}-{reader}")
        assert fits(page)
        assert by_day_and_night(page, ALL) == []
        look(page, f"endpoint-checked-{name}-dark-{reader}")
        page.emulate_media(color_scheme="light")
    EndpointCheck.objects.update(requested_at=NOW - timedelta(minutes=2))
    expect(section.get_by_role("button", name="Check again")).to_be_visible()
