"""Fixtures of tests in a browser: windows that are kept, scenes that stay, and visits of pages."""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.base import BaseHandler
from django.core.signals import request_finished, request_started
from django.db import connection, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import TransactionTestCase
from django.utils import timezone
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from sonar.database.base import DatabaseWrapper
from sonar.ordering import request_probes
from tests import flush
from tests.accounts import logged_in
from tests.browser import scene as scenes
from tests.browser import slow_scene as slow_scenes
from tests.browser.cells import DRAWN
from tests.browser.readers import CHROMIUM, LAPTOP, PATIENCE_MS, Reader
from tests.browser.waiting import until, until_so
from tests.matrix import changed_site, world
from tests.needs import needs

# No page is open for as long as it takes to win back what the compiler of hot code costs.
BRIEFLY = "--js-flags=--no-opt"
LONGEST_ANSWER_SECONDS = 60
# Six for the server, as many as a browser asks it at once, and the test's own.
MOST_CONNECTIONS = 8
# Chromium's own words on an answer that is an error, and on none.
REFUSED = "Failed to load resource: the server responded with a status of {status}"
NOT_LOADED = "Failed to load resource: net::ERR_FAILED"

Scene = TypeVar("Scene")


# Of the same host: for another one's the process would change.
SHORT = "/healthz"
# Where the test ended with "back" or a search, the page was still on its way: two ways of the
# browser to say that, once or twice. Such a window is closed.
ON_ITS_WAY = ("net::ERR_ABORTED", "is interrupted by another navigation")


class Windows:
    """The windows of one browser that nobody looks at just now, by who looked at them.

    They are kept from test to test: a new one starts a process and compiles all scripts.
    """

    def __init__(self, browser: Browser, base: str) -> None:
        self._browser, self._base = browser, base
        self._free: defaultdict[Reader, list[Page]] = defaultdict(list)

    def take(self, reader: Reader) -> Page:
        """Return a window without a past, that of an earlier test where there is one."""
        if free := self._free[reader]:
            return free.pop()
        return reader.sit_down(self._browser).new_page()

    def give_back(self, reader: Reader, page: Page, *, keep: bool, forget: bool) -> None:
        """Take from a window all that a test did to it, for the next one, or close it.

        What the browser keeps of answers stays unless it is to ``forget`` those, too.
        """
        if not keep:
            page.context.close()
            return
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.unroute_all()
        if not self._leaves(page):
            page.context.close()
            return
        page.context.clear_cookies()
        session = page.context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": self._base, "storageTypes": "all"})
        if forget:
            session.send("Network.clearBrowserCache")
        session.send("Page.resetNavigationHistory")
        session.detach()
        reader.adjust(page)
        page.mouse.move(0, 0)
        self._free[reader].append(page)

    def _leaves(self, page: Page) -> bool:
        """Go to a short page without scripts; say whether the one before let go of the window."""
        try:
            page.goto(self._base + SHORT)
        except Error as error:
            if any(words in error.message for words in ON_ITS_WAY):
                return False
            raise
        return True


# Of transactions only those that write get a number: this is that of the next one.
NEXT_WRITING = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"


class Kept:
    """The scene that the database holds besides what migrations made, if it holds any.

    Whoever writes, be it PostgreSQL itself, spoils it: who wants it next has it made anew.
    """

    def __init__(self) -> None:
        self._make: Callable[[], Any] | None = None
        self._scene: Any = None
        self._next = ""

    def scene(self, make: Callable[[], Scene]) -> Scene:
        """Return what ``make`` makes: once for all tests in a row that only read."""
        if make is not self._make or not self._is_whole():
            self.forget()
            flush.add_size_classes()
            self._scene, self._make, self._next = make(), make, next_writing()
        scene: Scene = self._scene
        return scene

    def end_test(self) -> None:
        """Empty the database, unless a scene stands there as it was made."""
        if not self._is_whole():
            self._make = self._scene = None
            flush.empty()

    def forget(self) -> None:
        """Empty the database if a scene stands there."""
        if self._make:
            self._make = self._scene = None
            flush.empty()

    def _is_whole(self) -> bool:
        return self._make is not None and next_writing() == self._next


def next_writing() -> str:
    with connection.cursor() as cursor:
        cursor.execute(NEXT_WRITING)
        return str(cursor.fetchone()[0])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    needs("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    # The same engine without windows, menus and a profile: a fifth less to do for each test.
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=[*CHROMIUM, BRIEFLY], timeout=PATIENCE_MS
        )
        yield running
        running.close()


@dataclass
class Visit:
    """A page of the running server, and what the browser had to say about it."""

    page: Page
    base: str
    reader: Reader
    is_kept: bool = True
    """Whether the next test may have the window: what runs before each page stays in it."""
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, path: str = "/") -> Page:
        """Open a matrix and wait until it is drawn."""
        self.page.goto(self.base + path)
        until(self.page, DRAWN)
        return self.page

    def open(self, path: str = "/", status: int = 200) -> Page:
        """Open any page; only the error that was expected may be reported by the browser."""
        response = self.page.goto(self.base + path)
        assert response is not None
        assert response.status == status, f"{path}: {self.page.locator('main').inner_text()}"
        if status >= 400:
            self.expect_refusal(status)
        return self.page

    def log_in(self, user: User) -> None:
        """Give the window the cookie of this account, as the form of the login would."""
        value = logged_in(user).cookies["sessionid"].value
        self.page.context.add_cookies([{"name": "sessionid", "value": value, "url": self.base}])

    def forget_files(self) -> None:
        """Let the browser fetch all files again, as on a first visit."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Network.clearBrowserCache")
        session.detach()

    def run_before_each_page(self, script: str) -> None:
        self.is_kept = False
        self.page.add_init_script(script)

    def set_clock(self) -> None:
        """Let the test put forward the clock of the pages that are opened from now on."""
        self.is_kept = False
        self.page.clock.install()

    def expect_refusal(self, status: int) -> None:
        """Strike out the browser's one line on an answer that the test wanted."""
        self.expect_error(REFUSED.format(status=status))

    def expect_error(self, beginning: str) -> None:
        """Strike out one line of the browser that begins so, once it has come."""

        def lines() -> list[str]:
            return [text for text in self.errors if text.startswith(beginning)]

        until_so(self.page, lambda: bool(lines()), f"the browser says: {beginning}")
        self.errors.remove(lines()[0])

    def watch(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", self._error)
        self.page.on("request", self._request)

    def watch_no_more(self) -> None:
        self.page.remove_listener("console", self._console)
        self.page.remove_listener("pageerror", self._error)
        self.page.remove_listener("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        self.errors.append(message.text)

    def _error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _request(self, request: Request) -> None:
        self.hosts.add(urlsplit(request.url).netloc)


@contextmanager
def answering() -> Iterator[set[int]]:
    """Give the threads of the server that are answering a request: they last as long as that."""
    under_way: set[int] = set()

    def begun(**_: object) -> None:
        under_way.add(get_ident())

    def done(**_: object) -> None:
        under_way.discard(get_ident())

    request_started.connect(begun)
    request_finished.connect(done)
    try:
        yield under_way
    finally:
        request_started.disconnect(begun)
        request_finished.disconnect(done)


def wait_until_answered(under_way: set[int]) -> None:
    """Let the server end what nobody waits for any more: the database is emptied after a test."""
    deadline = time.monotonic() + LONGEST_ANSWER_SECONDS
    while under_way and time.monotonic() < deadline:
        time.sleep(0.02)


Visiting = Callable[[Reader], Visit]


@pytest.fixture(scope="session")
def lasting() -> Iterator[set[str]]:
    """Give the paths of answers, but for files, that a browser does not ask for a second time.

    Files it keeps from test to test with what it compiled of them, as those with hashed names.
    """
    respond, serve = BaseHandler.get_response, StaticFilesHandler.serve
    paths: set[str] = set()

    def responding(handler: BaseHandler, request: HttpRequest) -> HttpResponseBase:
        response = respond(handler, request)
        if "max-age" in response.get("Cache-Control", ""):
            paths.add(request.path)
        return response

    def serving(handler: StaticFilesHandler, request: HttpRequest) -> HttpResponseBase:
        response = serve(handler, request)
        response["Cache-Control"] = "max-age=86400"
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseHandler, "get_response", responding)
        patch.setattr(StaticFilesHandler, "serve", serving)
        yield paths


@pytest.fixture(scope="session")
def pooled(django_db_setup: None) -> Iterator[None]:
    """Let the server's threads share connections to the database, as in the web server.

    To open one for each request, where PostgreSQL learns anew what tables there are, costs more.
    """
    close_connections()
    options = connection.settings_dict["OPTIONS"]
    options["pool"] = {"min_size": 0, "max_size": MOST_CONNECTIONS}
    yield
    close_connections()
    del options["pool"]


@pytest.fixture
def unpooled(pooled: None) -> Iterator[None]:
    """Let each request open a connection of its own: kept ones take longer over a million rows."""
    close_connections()
    options = connection.settings_dict["OPTIONS"]
    pool = options.pop("pool")
    yield
    connection.close()
    options["pool"] = pool


def close_connections() -> None:
    database = connections["default"]
    assert isinstance(database, DatabaseWrapper)
    database.close()
    database.close_pool()


@pytest.fixture(scope="session")
def windows(browser: Browser, live_server: LiveServer, pooled: None) -> Windows:
    return Windows(browser, live_server.url)


@pytest.fixture
def visiting(windows: Windows, live_server: LiveServer, lasting: set[str]) -> Iterator[Visiting]:
    """Open windows; afterwards nothing may have gone wrong or left for another host."""
    visits: list[Visit] = []
    lasting.clear()

    def visit(reader: Reader) -> Visit:
        visit = Visit(windows.take(reader), live_server.url, reader)
        visit.watch()
        visits.append(visit)
        return visit

    with answering() as under_way:
        yield visit
        for visit in visits:
            visit.watch_no_more()
            windows.give_back(visit.reader, visit.page, keep=visit.is_kept, forget=bool(lasting))
        wait_until_answered(under_way)
    assert [visit.errors for visit in visits] == [[] for _ in visits]
    assert set().union(*(visit.hosts for visit in visits)) <= {urlsplit(live_server.url).netloc, ""}


@pytest.fixture
def reader() -> Reader:
    """Say who looks; a test that is parametrised with readers says it instead."""
    return LAPTOP


@pytest.fixture
def visit(visiting: Visiting, reader: Reader) -> Visit:
    """Open one window, as the reader of the test does."""
    return visiting(reader)


@pytest.fixture
def real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests' world stand at the time of the browser's clock, where a page reads that.

    All other worlds stand at noon: no hour and no day ends in the midst of a test.
    """
    monkeypatch.setattr(world, "NOW", timezone.now())


@pytest.fixture(scope="module")
def kept(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Kept]:
    """The scene that tests of the module share as long as they only read."""
    kept = Kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: kept.end_test())
        yield kept
    with django_db_blocker.unblock():
        kept.forget()
        connection.close()


@pytest.fixture
def real_commits(kept: Kept, transactional_db: None) -> None:
    """A database that the server sees, too, with the default size classes and nothing else."""
    kept.forget()
    flush.add_size_classes()


Standing = Callable[[Callable[[], Scene]], Scene]


@pytest.fixture
def standing(kept: Kept, transactional_db: None) -> Standing[Scene]:
    """Give a scene that others see, too, from what makes it or from an earlier test."""
    return kept.scene


@pytest.fixture
def scene(standing: Standing[scenes.Scene], at_noon: None) -> scenes.Scene:
    """A small grid in trouble, with each of the six states."""
    return standing(scenes.make)


@pytest.fixture
def scene_of_today(real_commits: None, real_time: None) -> scenes.Scene:
    """The same, for pages that compare their age with the browser's clock."""
    return scenes.make()


@pytest.fixture
def slow_scene(
    standing: Standing[slow_scenes.SlowScene], at_noon: None, monkeypatch: pytest.MonkeyPatch
) -> slow_scenes.SlowScene:
    """A grid of which something became slower; no test that is ordered reaches a worker."""
    monkeypatch.setattr(request_probes, "send", lambda ids: None)
    return standing(slow_scenes.make)


@pytest.fixture
def changed(
    standing: Standing[changed_site.ChangedSite], at_noon: None
) -> changed_site.ChangedSite:
    """A site and its partners over five weeks, with what changed there."""
    return standing(changed_site.make)


@pytest.fixture
def published(standing: Standing[world.Published], at_noon: None) -> world.Published:
    """Ninety links of 2011, and the averages that were printed beside them."""
    return standing(world.make_published)
