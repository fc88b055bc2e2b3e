"""Windows that are kept from test to test: a new one starts a process and compiles all scripts."""

from collections import defaultdict

from playwright.sync_api import Browser, Error, Page

from tests.browser.readers import Reader

# Of the same host: for another one's the process would change.
SHORT = "/healthz"
# Where the test ended with "back" or a search, the page was still on its way: two ways of the
# browser to say that, once or twice. Such a window is closed.
ON_ITS_WAY = ("net::ERR_ABORTED", "is interrupted by another navigation")


class Windows:
    """The windows of one browser that nobody looks at just now, by who looked at them."""

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
