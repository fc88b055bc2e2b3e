"""Aliases and proposals of sources in a real browser: readable, and assigned by hand."""

from pathlib import Path

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from sonar.models import Alias, UnknownAlias
from sonar.models.aliases import AliasKind
from sonar.people.roles import Role
from sonar.registry import aliases
from sonar.registry.aliases import Unknown
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene
from tests.matrix.world import HOUR, NOW
from tests.sonar import topologies

everybody = seen_by(LAPTOP, NARROW)


@pytest.fixture
def asked(scene: Scene, tmp_path: Path) -> None:
    told = [
        Unknown(AliasKind.SE_HOST, "se.example.org", "downtime 117: outage, new network cards"),
        Unknown(AliasKind.RSE, "UKI-SCOTGRID-GLASGOW-CEPH_DATADISK", "in CRIC"),
        Unknown(AliasKind.SE_HOST, "a-door-that-nobody-tests.department-of-physics.example.org"),
    ]
    aliases.note_unknown("gocdb", told, NOW - HOUR)
    UnknownAlias.objects.filter(example="").update(dismissed=True)
    aliases.assign(AliasKind.RCSITE, "RAL-LCG2", scene.world.ral.site)
    documents = {"sites": topologies.cric_sites(), "ends": topologies.cric_endpoints()}
    paths = topologies.written(tmp_path, **documents)
    call_command("topology", "propose", "--from", "cric-atlas", *paths)


@pytest.mark.long
@everybody
def test_operators_assign_names_and_read_proposals(visit, asked, reader):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open("/operations/topology/")
    look(page, f"topology-{reader}")
    assert fits(page)
    assert by_day_and_night(page) == []
    page = visit.open("/operations/aliases/")
    for summary in ("Dismissed aliases", "Assigned manually"):
        page.locator("summary", has_text=summary).click()
    look(page, f"aliases-{reader}")
    assert fits(page)
    assert by_day_and_night(page) == []
    field = page.get_by_label("Site or endpoint for the alias se.example.org")
    field.fill("RAL")
    field.press("Enter")
    expect(page.locator("main")).to_contain_text("se.example.org is now an alias of the site RAL")
    look(page, f"aliases-{reader}-assigned")
    assert Alias.objects.filter(kind=AliasKind.SE_HOST).count() == 1
