"""The pages of a source of downtimes: asked one after the other, and all at one place.

The address of a source is https, or http on this machine. All pages come within a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from sonar.movers.base import Limits
from sonar.notation.addresses import is_url, is_web_service
from sonar.registry.documents import NoDocument, Questions
from sonar.registry.downtimes.announcement import Announcement, Answer, LeftOut

LIMITS = Limits(connect=10, answer=30, total=60)
MOST_BYTES = 20_000_000
MOST_PAGES = 100
ACCEPT = "application/xml, text/xml"


def problem(address: str) -> str:
    """Say why this is no address of a source; empty if it may be one."""
    if is_url(address):
        return (
            ""
            if is_web_service(address)
            else "a URL must use https (http only for this machine) and cannot contain a user name "
            "or a query string"
        )
    return (
        ""
        if address.isprintable() and address
        else "a file name must contain printable characters only"
    )


def read(read_page: Callable[[bytes], Answer], first: str, ca_file: str = "") -> Answer:
    """Return what all pages announce, from the first one on; raise NoDocument."""
    questions = Questions(LIMITS, MOST_BYTES, ACCEPT, ca_file)
    announcements: dict[str, Announcement] = {}
    left_out: list[LeftOut] = []
    urls = set[str]()
    url = first
    while url:
        if url in urls or len(urls) >= MOST_PAGES:
            raise NoDocument(f"the pages form a loop, or there are more than {MOST_PAGES}")
        urls.add(url)
        answer = read_page(questions.ask(url))
        announcements |= {each.key: each for each in answer.announcements}
        left_out += answer.left_out
        url = urljoin(url, answer.next_page) if answer.next_page else ""
        if url and not is_same_place(first, url):
            raise NoDocument("the next page is at another URL, from which Sonar does not read")
    return Answer(tuple(announcements.values()), tuple(left_out))


def is_same_place(url: str, other: str) -> bool:
    """Say whether two URLs differ in no more than what is asked of one server."""
    places = [(parts.scheme, parts.netloc, parts.path) for parts in map(urlsplit, (url, other))]
    return places[0] == places[1]
