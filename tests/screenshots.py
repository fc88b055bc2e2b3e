"""The pictures of docs/pages.md, made from a running `make run`: `make screenshots`.

Waits until the sandbox's matrix is full, looks for links worth showing, and overwrites
docs/pages/*.png and docs/matrix.png. Half an hour after its start, the sandbox has something of its
own to show beside its made-up past.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from playwright.sync_api import Browser, sync_playwright

from tests.browser.cells import point_at, wait_until_drawn
from tests.browser.readers import CHROMIUM, NARROW, Reader

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# What GitHub still shows at once.
MOST_BYTES = 300_000
PATIENCE_SECONDS = 900
SETTLE_MS = 800
# Smaller than a real screen: pictures in a page of text.
DESK = Reader("desk", 1200, 800)
DARK_DESK = Reader("desk, dark", 1200, 800, dark=True)
# Tables are wider.
WIDE_DESK = Reader("wide desk", 1440, 700)
SCRIPTLESS_DESK = Reader("wide desk, without JavaScript", 1440, 700, script=False)
WALL = Reader("wall", 1920, 1080, dark=True)
CLASSES = ("small", "medium", "large")


@dataclass(frozen=True)
class Link:
    source: str
    destination: str

    def path(self) -> str:
        return f"/links/{self.source}/{self.destination}/"


@dataclass(frozen=True)
class Shot:
    """``point`` is a link whose cell the pointer is over; ``tall`` shows more than a screen."""

    name: str
    path: str
    reader: Reader = DESK
    point: Link | None = None
    tall: int = 0


FOR_README = Shot("matrix", "/")


class Sonar:
    """The Sonar that is being shown, asked by its own API."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.pool = urllib3.PoolManager(retries=False, timeout=60)

    def get(self, path: str, **query: str) -> dict[str, Any]:
        response = self.pool.request("GET", f"{self.url}/api/v1/{path}", fields=query)
        if response.status != 200:
            raise SystemExit(f"{self.url}/api/v1/{path} answered {response.status}")
        answer: dict[str, Any] = response.json()
        return answer

    def matrix(self, **query: str) -> dict[str, Any]:
        return self.get("matrix/", window="24h", **query)

    def wait_until_full(self) -> None:
        """Return once every link has a result in every class; give up after a while."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while missing := sum(self.untested(size) for size in CLASSES):
            if time.monotonic() > deadline:
                raise SystemExit(f"{missing} cells are still untested: is a worker running?")
            print(f"waiting for {missing} cells", flush=True)
            time.sleep(10)

    def newest(self, link: Link, state: str) -> str:
        """Return the page of the newest transfer of a link that ended like this."""
        ends = {"source_endpoint": link.source, "destination_endpoint": link.destination}
        found = self.get(
            "transfers/", state=state, page_size="1", window="24h", size="large", **ends
        )
        return f"/transfers/{found['transfers'][0]['id']}/"

    def sweep(self, link: Link) -> str:
        """Return the page of the newest sweep on a link, which takes a minute if it is new."""
        ends = {"source": link.source, "destination": link.destination}
        if not self.get("sweeps/", **ends)["sweeps"]:
            manage("sweep", link.source, link.destination, "--vary", "size")
        return f"/sweeps/{self.get('sweeps/', **ends)['sweeps'][0]['id']}/"

    def untested(self, size: str) -> int:
        """Count links of which nothing is measured, whatever is made up."""
        states = self.matrix(size=size, mover="!fake")["cells"]["state"]
        return sum(row.count("untested") for row in states)


def manage(*arguments: str) -> None:
    """Run a command of manage.py, which finds the running Sonar by itself."""
    subprocess.run([sys.executable, str(ROOT / "manage.py"), *arguments], check=True)


def links_by(answer: dict[str, Any], name: str) -> list[tuple[float, Link]]:
    """Return the links of a matrix answer that have this number, lowest first."""
    found = [
        (value, Link(source["name"], destination["name"]))
        for source, row in zip(answer["sources"], answer["cells"][name], strict=True)
        for destination, value in zip(answer["destinations"], row, strict=True)
        if value is not None
    ]
    return sorted(found, key=lambda one: (one[0], one[1].path()))


def shots(sonar: Sonar) -> list[Shot]:
    """Choose what to show: a link that fails, the fastest and its site, and the slowest."""
    answer = sonar.matrix(size="large")
    failing = links_by(answer, "failed")[-1][1]
    rates = links_by(answer, "value")
    fast, slow = rates[-1][1], rates[0][1]
    site = next(one["site"] for one in answer["sources"] if one["name"] == fast.source)
    return [
        Shot("matrix", "/", point=fast),
        Shot("matrix-dark", "/?order=-average", DARK_DESK),
        Shot("matrix-narrow", "/", NARROW),
        Shot("matrix-only-failing", "/?only=failing&only=slower"),
        Shot("matrix-by-cloud", "/?rows=cloud&columns=tier"),
        Shot("matrix-one-site", f"/?site={site}"),
        Shot("matrix-compared", "/?compare=reverse"),
        Shot("causes", "/causes/", WIDE_DESK, tall=1000),
        Shot("events", "/events/?size=large", WIDE_DESK),
        Shot("sweep", sonar.sweep(fast)),
        Shot("operations", "/operations/", WIDE_DESK, tall=1300),
        Shot("wall", "/?wall=1&views=&views=size=medium&views=size=small", WALL),
        Shot("table", "/table/", WIDE_DESK),
        Shot("link", f"{fast.path()}?reverse=1", tall=1300),
        Shot("link-failing", failing.path(), DARK_DESK, tall=1300),
        Shot("link-failures", f"{failing.path()}#failures"),
        Shot("transfer", sonar.newest(slow, "done"), tall=1000),
        Shot("transfer-failed", sonar.newest(failing, "failed"), DARK_DESK),
        Shot("sites", "/sites/", WIDE_DESK),
        Shot("site", f"/sites/{site}/", tall=1300),
        Shot("site-narrow", f"/sites/{site}/", NARROW),
        Shot("search", "/search/?q=ral+glasgow"),
        Shot("without-javascript", "/table/?search=glasgow", SCRIPTLESS_DESK),
    ]


def take(browser: Browser, sonar: Sonar, shot: Shot, directory: Path) -> None:
    context = shot.reader.sit_down(browser)
    page = context.new_page()
    page.goto(sonar.url + shot.path)
    page.wait_for_load_state("networkidle")
    if shot.point:
        point_at(wait_until_drawn(page), shot.point.source, shot.point.destination)
    if shot.tall:
        page.set_viewport_size({"width": shot.reader.width, "height": shot.tall})
    page.wait_for_timeout(SETTLE_MS)
    path = directory / f"{shot.name}.png"
    page.screenshot(path=path, animations="disabled")
    context.close()
    size = path.stat().st_size
    print(f"{path}: {size // 1000} kB", flush=True)
    if size > MOST_BYTES:
        print(f"  more than {MOST_BYTES // 1000} kB: show less of the page", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    port = os.environ.get("SONAR_PORT") or "8000"
    parser.add_argument("--url", default=f"http://127.0.0.1:{port}/", help="of the running Sonar")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="pictures to take; all if none")
    parser.add_argument("--into", type=Path, default=DOCS / "pages", metavar="DIRECTORY")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    sonar = Sonar(chosen.url)
    sonar.wait_until_full()
    chosen.into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM
        )
        for shot in shots(sonar):
            if not chosen.only or shot.name in chosen.only:
                take(browser, sonar, shot, chosen.into)
        if not chosen.only:
            take(browser, sonar, FOR_README, chosen.into.parent)
        browser.close()


if __name__ == "__main__":
    main()
