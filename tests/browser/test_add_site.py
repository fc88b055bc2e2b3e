"""A new site is in a mesh and measured, on pages alone: twelve clicks, and its cost seen before."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django import Settings

from sonar import scheduler, tasks
from sonar.models import Credential, Endpoint, EndpointCheck, Mesh, Probe, Site, SizeClass, Transfer
from sonar.ordering import request_checks
from sonar.people.roles import Role
from sonar.work import probes
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look, refresh
from tests.browser.readers import DARK, LAPTOP, NARROW, Reader
from tests.needs import needs
from tests.storage.conftest import Pair, close_pair, start_pair
from tests.storage.xrootd import Authority, Server, make_room

MOST_CLICKS = 12
ECDF = "UKI-SCOTGRID-ECDF"


@pytest.fixture
def storage(settings: Settings, tmp_path: Path) -> Iterator[Pair]:
    """Return two servers with TLS that want a token each."""
    needs("xrootd", "openssl")
    room = make_room()
    pair = start_pair(Authority(room), guarded=True)
    settings.SONAR_CA_BUNDLE = str(pair.source.authority.bundle)
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    yield pair
    close_pair(pair)
    shutil.rmtree(room, ignore_errors=True)


def base_url(server: Server) -> str:
    return f"{server.url.replace('https', 'davs')}/base"


@pytest.fixture
def ral(real_commits: None, storage: Pair, tmp_path: Path) -> Endpoint:
    """Return the endpoint that is tested already, in a mesh of all that are."""
    (tmp_path / "ral").write_text(storage.source_token)
    port = urlsplit(storage.source.url).port
    credential = Credential.objects.create(name="ral", hosts=[f"localhost:{port}"])
    ral = Endpoint.objects.create(
        site=Site.objects.create(name="RAL", tier=1, cloud="UK"),
        name="RAL_DATADISK",
        label="DATADISK",
        base_url=base_url(storage.source),
        credential=credential,
        lend_credential=True,
    )
    SizeClass.objects.filter(name="small").update(test_bytes=1_000_000)
    mesh = Mesh.objects.create(name="production")
    for name, seconds in (("small", 3600), ("large", 86_400)):
        mesh.intervals.create(size_class=SizeClass.objects.get(name=name), every_seconds=seconds)
    return ral


class Counted:
    """What somebody does on a page; each click counts, and so does each form that is typed into."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def press(self, place: Locator) -> None:
        self.clicks += 1
        place.click()

    def follow(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    def button(self, name: str) -> None:
        with self.page.expect_navigation():
            self.press(self.page.get_by_role("button", name=name, exact=True))

    def type(self, **texts: str) -> None:
        self.clicks += 1
        for field, text in texts.items():
            self.page.locator(f"#{field.replace('__', '-')}").fill(text)


def seen(page: Page, name: str) -> None:
    """Save what is seen by day and by night, wide and narrow; it fits everywhere."""
    for reader in (LAPTOP, NARROW, DARK, Reader("narrow-dark", 390, 844, dark=True)):
        if reader.width < 1000 or "SONAR_TEST_PICTURES" in os.environ:
            reader.adjust(page)
            look(page, f"add-site-{name}-{reader}")
            assert fits(page), (name, reader)
    LAPTOP.adjust(page)


def by_an_operator(visit: Visit) -> Counted:
    """Register the site; what comes next is its endpoint."""
    visit.log_in(account(Role.OPERATOR))
    hand = Counted(visit.open("/"))
    hand.follow("Sites")
    hand.follow("Add site…")
    seen(hand.page, "1-site")
    hand.type(site__name=ECDF, site__country="GB", site__wan_gbit_s="20")
    hand.button("Save and continue")
    return hand


def by_its_admin(visit: Visit) -> Counted:
    """Begin on the page of a site that an operator has registered, with a server of its network."""
    site = Site.objects.create(name=ECDF, country="GB", wan_gbit_s=20)
    place = {"base_url": "davs://localhost:1/old", "retired_at": timezone.now()}
    Endpoint.objects.create(site=site, name="OLD", enabled=False, **place)
    visit.log_in(account(Role.SITE_ADMIN, site))
    hand = Counted(visit.open(f"/sites/{ECDF}/"))
    hand.follow("Add endpoint…")
    return hand


@pytest.mark.long
@pytest.mark.parametrize("begin", [by_an_operator, by_its_admin])
def test_a_new_site_is_measured_after_twelve_clicks_and_its_cost_was_seen(
    begin: Callable[[Visit], Counted],
    visit: Visit,
    ral: Endpoint,
    storage: Pair,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(request_checks, "send_check", lambda *_: None)
    hand = begin(visit)
    page = hand.page
    hand.type(endpoint__base_url=base_url(storage.destination), endpoint__software="XRootD")
    seen(page, "2-endpoint")
    hand.button("Save and continue")
    expect(page.get_by_role("heading", name="Cost")).not_to_be_visible()
    seen(page, "3-credential")
    hand.clicks += 1
    token = {"name": "ecdf.token", "mimeType": "text/plain"}
    content = storage.destination_token.encode()
    page.get_by_label("file", exact=True).set_input_files([{**token, "buffer": content}])
    hand.press(page.get_by_label("delegate this credential"))
    hand.button("Upload and check credential")
    expect(page.locator("#check")).to_contain_text("The check is waiting for a worker.")
    tasks.check_endpoint(str(EndpointCheck.objects.get().run))
    refresh(page)
    expect(page.locator("#check")).to_contain_text("nothing is wrong")
    expect(page.locator("#check")).to_contain_text("(uploaded): a macaroon")
    cost = page.locator("#cost")
    expect(cost).to_contain_text("50")  # 24 small and 1 large, each way
    hand.type(mesh__budget="60")
    expect(cost).to_contain_text("of 60 GB")
    seen(page, "4-mesh")
    assert by_day_and_night(page, ALL) == []
    assert storage.destination_token not in page.content()
    assert not Probe.objects.exists()
    hand.button(f"Start testing {ECDF}_DATADISK")
    expect(page.get_by_role("main")).to_contain_text(f"Started testing {ECDF}_DATADISK")
    seen(page, "5-started")
    assert hand.clicks <= MOST_CLICKS
    measure_all()
    results = Transfer.objects.filter(size_class__name="small")
    assert set(results.values_list("source__name", "error")) == {
        ("RAL_DATADISK", ""),
        (f"{ECDF}_DATADISK", ""),
    }


def measure_all() -> None:
    """Let the planner and a worker do what they do, for the smallest tests."""
    now = timezone.now()
    scheduler.follow_registry(now)
    scheduler.claim_due(now)
    for probe in Probe.objects.filter(size_class__name="small"):
        probes.run(probe.id)
    Probe.objects.all().delete()
