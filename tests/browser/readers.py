"""How people look at the pages, and the browser in which they do."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

# The first two are pages of the browser's own address bar, made for each window and never seen. The
# others Playwright would leave out by itself: of two such lists the browser takes the last one.
WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable"),
    *("LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying"),
    *("AimEnabled", "PreconnectToSearch"),
)
CHROMIUM = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(WITHOUT)}",
]
# A machine that stands still for half a minute, as shared ones do, spoils no test.
PATIENCE_MS = 120_000
CLIPBOARD = ["clipboard-read", "clipboard-write"]


@dataclass(frozen=True)
class Reader:
    """How somebody looks at the pages; ``name`` is what a parametrised test is called by."""

    name: str
    width: int = 1440
    height: int = 900
    dark: bool = False
    script: bool = True
    touch: bool = False
    clipboard: bool = False

    def __str__(self) -> str:
        return self.name

    def sit_down(self, browser: Browser) -> BrowserContext:
        """Open a window of the browser that shares nothing with those before."""
        context = browser.new_context(
            viewport={"width": self.width, "height": self.height},
            color_scheme="dark" if self.dark else "light",
            java_script_enabled=self.script,
            has_touch=self.touch,
            accept_downloads=True,
            permissions=CLIPBOARD if self.clipboard else [],
        )
        context.set_default_timeout(PATIENCE_MS)
        return context

    def adjust(self, page: Page) -> None:
        """Give a window back the size and the colours in which it was opened."""
        page.set_viewport_size({"width": self.width, "height": self.height})
        page.emulate_media(
            media="null", color_scheme="dark" if self.dark else "light", reduced_motion="null"
        )


LAPTOP = Reader("laptop")
DARK = Reader("dark", dark=True)
NARROW = Reader("narrow", 390, 844, touch=True)
NARROW_DARK = Reader("narrow, dark", 390, 844, dark=True, touch=True)
WALL = Reader("wall", 2560, 1440)
SCRIPTLESS = Reader("without JavaScript", script=False)
SCRIPTLESS_NARROW = Reader("narrow, without JavaScript", 390, 844, script=False, touch=True)
COPYING = Reader("may use the clipboard", clipboard=True)


def seen_by(first: Reader, *others: Reader) -> pytest.MarkDecorator:
    """Let each of these readers do what a test does; after each change the first one is enough."""
    long = [pytest.param(reader, marks=pytest.mark.long) for reader in others]
    return pytest.mark.parametrize("reader", [first, *long], ids=str)
