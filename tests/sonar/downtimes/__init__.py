"""Answers of GOCDB and OSG as the tests write them, and a server on loopback that gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
GOCDB_SAMPLE, OSG_SAMPLE = HERE / "gocdb.xml", HERE / "osg.xml"


def element(name: str, text: object) -> str:
    """Write an element as GOCDB does: none for an empty text."""
    return f"<{name}>{escape(str(text))}</{name}>" if text != "" else ""


def gocdb_downtime(
    key: str,
    host: str,
    starts_at: datetime,
    ends_at: datetime,
    *,
    severity: str = "OUTAGE",
    kind: str = "webdav",
    named: Iterable[tuple[str, str]] = (),
    **others: object,
) -> str:
    """Write the element of one service; ``others`` replace or add elements.

    ``named`` are the endpoints of the service that are affected: their URLs and interfaces.
    """
    values: dict[str, object] = {
        "PRIMARY_KEY": key,
        "HOSTNAME": host,
        "SERVICE_TYPE": kind,
        "HOSTED_BY": "UKI-SCOTGRID-GLASGOW",
        "GOCDB_PORTAL_URL": f"https://goc.egi.eu/portal/index.php?Page_Type=Downtime&id={key}",
        "SEVERITY": severity,
        "DESCRIPTION": "new disks",
        "START_DATE": int(starts_at.timestamp()),
        "END_DATE": int(ends_at.timestamp()),
    }
    inner = "".join(element(name, value) for name, value in (values | others).items())
    endpoints = "".join(
        f"<ENDPOINT><ID>1</ID><NAME>door</NAME>{element('URL', url)}"
        f"{element('INTERFACENAME', interface)}</ENDPOINT>"
        for url, interface in named
    )
    inner += f"<AFFECTED_ENDPOINTS>{endpoints}</AFFECTED_ENDPOINTS>"
    return (
        f'<DOWNTIME ID="1" PRIMARY_KEY={quoted(key)} CLASSIFICATION="SCHEDULED">{inner}</DOWNTIME>'
    )


def quoted(text: str) -> str:
    return '"' + escape(text, {'"': "&quot;"}) + '"'


def gocdb(*downtimes: str, meta: str = "") -> bytes:
    return f"<results>{meta}{''.join(downtimes)}</results>".encode()


def osg_downtime(
    key: object, host: str, starts_at: datetime, ends_at: datetime, **others: str
) -> str:
    """Write a downtime with the storage of one resource; ``others`` replace elements."""
    values: dict[str, object] = {
        "ID": key,
        "ResourceName": "AGLT2_SE",
        "ResourceFQDN": host,
        "StartTime": osg_time(starts_at),
        "EndTime": osg_time(ends_at),
        "Severity": "Outage",
        "CreatedTime": "Not Available",
        "Description": "new disks",
    } | others
    services = values.pop("Services", "<Service><ID>158</ID><Name>WebDAV</Name></Service>")
    inner = "".join(element(name, value) for name, value in values.items())
    return f"<Downtime>{inner}<Services>{services}</Services></Downtime>"


def osg_time(moment: datetime) -> str:
    return f"{moment:%b %d, %Y %H:%M %p} UTC"


def osg(*downtimes: str) -> bytes:
    current = "".join(downtimes)
    return f"<Downtimes><CurrentDowntimes>{current}</CurrentDowntimes></Downtimes>".encode()


class Feed:
    """What a server says: ``pages`` by the query that asks, ``then`` for all others.

    A number is a status without a body, a text is where a redirect leads, None hangs.
    """

    def __init__(self) -> None:
        self.then: bytes | int | str | None = 404
        self.pages: dict[str, bytes] = {}
        self.paths: list[str] = []
        self.url = ""
        self.released = Event()

    def answer(self, path: str) -> bytes | int | str | None:
        self.paths.append(path)
        marks = (mark for mark in self.pages if mark in path)
        mark = next(marks, None)
        return self.then if mark is None else self.pages[mark]


@contextmanager
def serving() -> Iterator[Feed]:
    """Serve a feed on loopback for a while."""
    feed = Feed()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = feed.answer(self.path)
            if content is None:
                feed.released.wait(120)
                return
            if isinstance(content, bytes):
                self.send_response(200)
            else:
                self.send_response(content if isinstance(content, int) else 302)
            if isinstance(content, str):
                self.send_header("Location", content)
            body = content if isinstance(content, bytes) else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    feed.url = f"http://127.0.0.1:{server.server_port}/gocdbpi/public/"
    try:
        yield feed
    finally:
        feed.released.set()
        server.shutdown()
        server.server_close()
