"""Over a slow line a page arrives in pieces; nothing that is shown moves as the rest comes."""

import re
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import answering, wait_until_answered
from tests.browser.pages import assert_still
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.test_accessibility import PAGES, PARTNERS
from tests.browser.waiting import until_settled
from tests.storage.serving import AnyMethod, serving

# Long enough for the browser to show what is there, and short enough for every block of a page.
PAUSE_SECONDS = 0.1
BLOCK = re.compile(rb"(?=<(?:section|dl|table|aside|details)[ >])")
MOST_PIECES = 12


class SlowLine(AnyMethod):
    """Hands on what the server at ``upstream`` answers; a page block by block."""

    upstream: str

    def serve(self) -> None:
        connection = HTTPConnection(self.upstream)
        headers = {name: value for name, value in self.headers.items() if name != "Accept-Encoding"}
        connection.request(self.command, self.path, headers=headers | {"Host": self.upstream})
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


@pytest.fixture
def slow_line(live_server) -> Iterator[str]:
    upstream = urlsplit(live_server.url).netloc
    handler = type("Handler", (SlowLine,), {"upstream": upstream})
    with answering() as under_way, serving(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"
        wait_until_answered(under_way)


@pytest.mark.long
@seen_by(NARROW, LAPTOP)
def test_no_page_moves_as_it_arrives(browser, reader, slow_line, scene_of_today):
    ids = {"failing": scene_of_today.failing, "sampled": scene_of_today.sampled}
    page = reader.sit_down(browser).new_page()
    for name, path in (PAGES | PARTNERS).items():
        page.goto(slow_line + path.format(**ids))
        until_settled(page)
        assert_still(page, name)
    page.context.close()
