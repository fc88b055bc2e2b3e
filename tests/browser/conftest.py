from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.needs import needs

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    needs("chromium")
    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield running
        running.close()


@dataclass
class Visit:
    """A page of the running server, and what the browser had to say about it."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, path: str = "/") -> Page:
        self.page.goto(self.base + path)
        self.page.wait_for_selector("#picture .heatmaplayer image", state="attached")
        return self.page


@pytest.fixture
def visit(browser: Browser, live_server: LiveServer) -> Iterator[Visit]:
    """Open a page; afterwards nothing may have gone wrong or left for another host."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page = context.new_page()
    visit = Visit(page, live_server.url)
    page.on("console", lambda message: visit.errors.append(message.text))
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("request", lambda request: visit.hosts.add(urlsplit(request.url).netloc))
    yield visit
    context.close()
    assert visit.errors == []
    assert visit.hosts <= {urlsplit(live_server.url).netloc, ""}
