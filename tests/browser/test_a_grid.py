"""From an empty Sonar to a mesh that knows who is down, on pages alone: as docs/a-grid.md says."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from sonar import scheduler, tasks
from sonar.models import EndpointCheck, Mesh, Schedule
from sonar.ordering import request_checks
from sonar.people.roles import Role
from tests import a_grid
from tests.accounts import account
from tests.browser.conftest import Visit
from tests.browser.pages import fits, log_in, look, navigate, refresh
from tests.matrix.world import NOW
from tests.sonar import downtimes

FILTER = "cloud=UK&label=DATADISK"


def follow(page: Page, name: str) -> None:
    page.get_by_role("main").get_by_role("link", name=name, exact=True).click()


def press(page: Page, name: str) -> None:
    """Press a button, and wait for the page that follows for as long as any page may take."""
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


def propose_and_apply(page: Page, folder: Path, reader: object) -> None:
    follow(page, "An operator can import endpoints from CRIC or Rucio")
    look(page, f"a-grid-2-topology-empty-{reader}")
    assert fits(page)
    documents = [folder / "sites.json", folder / "endpoints.json"]
    page.get_by_label("Documents (JSON)").set_input_files(documents)
    press(page, "Compare with the registry")
    expect(page.get_by_role("heading", level=2).first).to_contain_text("4 new sites")
    look(page, f"a-grid-3-topology-proposed-{reader}")
    assert fits(page)
    page.get_by_label("Put new endpoints into use immediately").check()
    press(page, "Apply changes from cric-atlas")
    expect(page.get_by_text("Applied. cric-atlas: 4 new sites, 5 new endpoints")).to_be_visible()
    look(page, f"a-grid-4-topology-applied-{reader}")


def see_downtimes(page: Page, reader: object) -> None:
    navigate(page, "Health")
    look(page, f"a-grid-5-operations-{reader}")
    expect(page.get_by_text("new disks")).to_contain_text("site GLASGOW")


def check(page: Page, reader: object) -> None:
    navigate(page, "Sites")
    follow(page, "RAL")
    follow(page, "Tests and endpoints")
    look(page, f"a-grid-6-site-{reader}")
    follow(page, "RAL_DATADISK")
    look(page, f"a-grid-7-endpoint-{reader}")
    press(page, "Run check")
    tasks.check_endpoint(str(EndpointCheck.objects.get().run))
    refresh(page)
    expect(page.locator("#check")).to_contain_text("The file was deleted.")
    look(page, f"a-grid-8-endpoint-checked-{reader}")


def add_mesh(page: Page, reader: object) -> None:
    navigate(page, "Health")
    follow(page, "Add a mesh")
    page.get_by_label("name", exact=True).fill("uk-datadisks")
    page.get_by_label("endpoint filter").fill(FILTER)
    page.get_by_label("interval per link for large files").fill("1d")
    expect(page.locator("#cost")).to_contain_text("12 GB")
    look(page, f"a-grid-10-mesh-{reader}")
    press(page, "Save and enable")
    expect(page.get_by_role("main")).to_contain_text("3 now, 6 links, 6 tests and 12 GB a day")
    look(page, f"a-grid-11-mesh-saved-{reader}")


@pytest.mark.long
@pytest.mark.usefixtures("real_commits", "at_noon")
def test_a_new_administrator_gets_there_on_pages_alone(
    visit: Visit, reader, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(request_checks, "send_check", lambda *_: None)
    administrator = account(Role.ADMINISTRATOR)
    page = visit.open("/")
    look(page, f"a-grid-1-empty-{reader}")
    visit.open("/login/")
    log_in(page, administrator)
    visit.open("/")
    with a_grid.storage() as url, downtimes.serving() as gocdb:
        a_grid.write(tmp_path, url)
        gocdb.then = (tmp_path / "downtimes.xml").read_bytes()
        settings.SONAR_GOCDB_URL = gocdb.url
        propose_and_apply(page, tmp_path, reader)
        tasks.import_downtimes()
        see_downtimes(page, reader)
        check(page, reader)
    add_mesh(page, reader)
    scheduler.follow_registry(NOW)
    assert (Mesh.objects.count(), Schedule.objects.count()) == (1, 6)
    navigate(page, "Overview")
    look(page, f"a-grid-12-matrix-{reader}")
    expect(page.locator("#live > .notice").first).to_contain_text(
        "No results in this time range yet"
    )
