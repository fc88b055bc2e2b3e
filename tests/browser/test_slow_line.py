"""Over a slow line a page arrives in pieces; nothing that is shown moves as the rest comes."""

import re
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tests.browser.pages import MOST_SHIFT, SHIFTS
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.test_accessibility import PAGES, PARTNERS
from tests.browser.waiting import until_settled

# Long enough for the browser to show what is there, and short enough for every block of a page.
PAUSE_SECONDS = 0.1
BLOCK = re.compile(rb"(?=<(?:section|dl|table|aside|details)[ >])")
MOST_PIECES = 12


class SlowLine(BaseHTTPRequestHandler):
    """Hands on what the server at ``upstream`` answers; a page block by block."""

    upstream: str

    def do_GET(self) -> None:
        connection = HTTPConnection(self.upstream)
        headers = {name: value for name, value in self.headers.items() if name != "Accept-Encoding"}
        connection.request("GET", self.path, headers=headers | {"Host": self.upstream})
        response = connection.getresponse()
        body = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name not in {"Connection", "Transfer-Encoding", "Content-Length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        is_page = response.getheader("Content-Type", "").startswith("text/html")
        pieces = BLOCK.split(body, MOST_PIECES) if is_page else [body]
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(PAUSE_SECONDS)
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def slow_line(live_server) -> Iterator[str]:
    upstream = urlsplit(live_server.url).netloc
    handler = type("Handler", (SlowLine,), {"upstream": upstream})
    server = ThreadingHTTPServer(("localhost", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.long
@seen_by(NARROW, LAPTOP)
def test_no_page_moves_as_it_arrives(browser, reader, slow_line, scene_of_today):
    ids = {"failing": scene_of_today.failing, "sampled": scene_of_today.sampled}
    page = reader.sit_down(browser).new_page()
    found = {}
    for name, path in (PAGES | PARTNERS).items():
        page.goto(slow_line + path.format(**ids))
        until_settled(page)
        shifts = page.evaluate(SHIFTS)
        if sum(value for value, _ in shifts) >= MOST_SHIFT:
            found[name] = shifts
    page.context.close()
    assert not found, found
