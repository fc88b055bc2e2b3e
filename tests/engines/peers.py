"""Those who are told of incidents: Alertmanager and Icinga 2 of Debian, SMTP, and a webhook."""

from __future__ import annotations

import os
import shutil
import signal
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import trustme

from tests.needs import find
from tests.ports import free_port
from tests.waiting import wait_for

ICINGA = """
const NodeName = "localhost"
const ZoneName = "localhost"
include <itl>
object Endpoint NodeName {{ }}
object Zone ZoneName {{ endpoints = [ NodeName ] }}
object CheckerComponent "checker" {{ }}
object ApiListener "api" {{ bind_host = "127.0.0.1", bind_port = "{port}" }}
object ApiUser "sonar" {{
    password = "secret-of-icinga",
    permissions = [ "actions/process-check-result", "objects/query/Service" ]
}}
object Host "grid" {{ check_command = "dummy", enable_active_checks = false }}
object Service "sonar" {{
    host_name = "grid", check_command = "dummy", enable_active_checks = false,
    max_check_attempts = 1
}}
"""


@contextmanager
def running(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a server and its children to end, and make those that do not: Icinga 2 may wait on."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def answers(url: str, **asked: Any) -> bool:
    try:
        return httpx.get(url, **asked).status_code < 500
    except httpx.HTTPError:
        return False


@contextmanager
def alertmanager(place: Path) -> Iterator[str]:
    """Start an Alertmanager that tells nobody; return its address."""
    (place / "alertmanager.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    url = f"http://127.0.0.1:{free_port()}"
    command = (
        find("prometheus-alertmanager"),
        f"--config.file={place / 'alertmanager.yml'}",
        f"--storage.path={place}",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--cluster.listen-address=",
    )
    with running(*command):
        assert wait_for(lambda: answers(f"{url}/-/ready"), 120)
        yield url


@contextmanager
def icinga(place: Path, authority: trustme.CA) -> Iterator[str]:
    """Start an Icinga 2 with the service grid!sonar; return the address of its API."""
    port, certificates = free_port(), place / "lib" / "certs"
    for name in ("lib/certs", "log", "cache", "spool", "run/icinga2"):
        (place / name).mkdir(parents=True)
    issued = authority.issue_cert("localhost", "127.0.0.1", common_name="localhost")
    issued.private_key_pem.write_to_path(certificates / "localhost.key")
    issued.cert_chain_pems[0].write_to_path(certificates / "localhost.crt")
    authority.cert_pem.write_to_path(certificates / "ca.crt")
    (place / "icinga2.conf").write_text(ICINGA.format(port=port))
    user = {}
    if os.getuid() == 0:  # it gives its rights up
        for path in (place, *place.rglob("*")):
            shutil.chown(path, "nagios", "nagios")
        for path in place.parents:
            if path.stat().st_uid == 0 and path != Path("/"):
                path.chmod(path.stat().st_mode | 0o011)
    else:
        user = dict.fromkeys(("ICINGA2_USER", "ICINGA2_GROUP"), str(os.getuid()))
    constants = {"DataDir": "lib", "LogDir": "log", "CacheDir": "cache", "SpoolDir": "spool"}
    constants["InitRunDir"] = "run"
    defined = [f"-D{name}={place / folder}" for name, folder in constants.items()]
    with running(find("icinga2"), "daemon", f"-c{place / 'icinga2.conf'}", *defined, **user):
        url = f"https://127.0.0.1:{port}"
        assert wait_for(lambda: answers(url, verify=False), 120)
        yield url


@dataclass
class Request:
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A webhook that behaves as its ``mood`` says, and keeps what it was sent."""

    mood: str = "well"
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    came: threading.Event = field(default_factory=threading.Event)


class ReceiverServer(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        receiver = self.server.receiver  # type: ignore[attr-defined]
        self.rfile.readline()
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers["content-length"]))
        receiver.requests.append(Request(headers, body))
        receiver.came.set()
        with suppress(OSError):  # who asked has gone
            getattr(self, receiver.mood)()

    def answer(self, status: str, body: str = "", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        self.wfile.write("\r\n".join([*lines, *headers, "", body]).encode())

    def well(self) -> None:
        self.answer("200 OK", "thanks")

    def broken(self) -> None:
        self.answer("500 Internal Server Error", "token=secret-path is wrong")

    def redirecting(self) -> None:
        self.answer("302 Found", "", "Location: http://127.0.0.1:1/inside")

    def dying(self) -> None:
        """Close the connection without a word."""

    def hanging(self) -> None:
        self.rfile.read()

    def trickling(self) -> None:
        for letter in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 6000:
            self.wfile.write(bytes([letter]))
            time.sleep(0.05)


@contextmanager
def receiver(mood: str = "well") -> Iterator[Receiver]:
    made = Receiver(mood)
    with ReceiverServer(made) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}/secret-path"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


class MailServer(socketserver.ThreadingTCPServer):
    """SMTP with STARTTLS and nothing else that clients need not have (RFC 5321, RFC 3207)."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, authority: trustme.CA) -> None:
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost", "127.0.0.1").configure_cert(self.context)
        self.mails: list[EmailMessage] = []
        self.is_clear: list[bool] = []
        super().__init__(("127.0.0.1", 0), MailSession)


class MailSession(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.say("220 localhost ESMTP")
        while line := self.rfile.readline().decode().strip():
            verb = line.partition(" ")[0].upper()
            if verb == "QUIT":
                return self.say("221 bye")
            getattr(self, verb.lower(), self.other)(line)
        return None

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
        self.wfile.flush()

    def other(self, line: str) -> None:
        self.say("250 fine")

    def ehlo(self, line: str) -> None:
        self.say("250-localhost\r\n250 STARTTLS")

    def starttls(self, line: str) -> None:
        self.say("220 go on")
        self.connection = self.server.context.wrap_socket(  # type: ignore[attr-defined]
            self.connection, server_side=True
        )
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")

    def rcpt(self, line: str) -> None:
        self.say("550 5.1.1 nobody is called so" if "nobody@" in line else "250 fine")

    def data(self, line: str) -> None:
        self.say("354 go on")
        lines = []
        while (text := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(text.removeprefix(b".") if text.startswith(b"..") else text)
        mail = message_from_bytes(b"".join(lines), policy=policy.default)
        server: Any = self.server
        server.mails.append(mail)
        server.is_clear.append(not isinstance(self.connection, ssl.SSLSocket))
        self.say("250 queued as 1")


@contextmanager
def mail_server(authority: trustme.CA) -> Iterator[MailServer]:
    with MailServer(authority) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
