"""Real XRootD servers for tests: started on free loopback ports, ended by their own pid."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import trustme
import urllib3
from cryptography import x509
from urllib3.util import Timeout

from tests.ports import free_port
from tests.waiting import wait_for

# Of a thread, as the kernel writes it.
STOPPED = "T"
START_SECONDS = 60.0
START_TRIES = 5
ACTIVITIES = "UPLOAD,DOWNLOAD,DELETE,LIST,MANAGE"
SERVER_USER = "xrootd"

# Without xrd.tls XrdHttp skips its handlers, and COPY is a "Request unknown" even over http.
PLAIN_CONFIG = """
all.role server
all.export /
oss.localroot {room}/data
all.adminpath {room}/admin
all.pidpath {room}/run
xrd.port {port}
xrd.network nodnr norpipa
xrd.protocol http:{port} libXrdHttp.so
{checksums}
http.exthandler xrdtpc libXrdHttpTPC.so
ofs.tpc pgm /usr/bin/xrdcp --server
xrd.tls {room}/host.pem {room}/host.key
xrd.tlsca certdir {certificates}
"""

CHECKSUMS = "xrootd.chksum max 4 adler32 md5 crc32c"

SLOW_CHECKSUM = """#!{python} -IS
import sys, time, zlib
time.sleep({seconds})
# XRootD names the file as clients do, and gives who asks after it, or before.
path = next("{data}" + one for one in sys.argv[1:] if one.startswith("/"))
print(format(zlib.adler32(open(path, "rb").read()), "08x"))
"""

Checksums = Callable[[Path], str]


def usual_checksums(_room: Path) -> str:
    return CHECKSUMS


def slow_checksums(seconds: float) -> Checksums:
    """Return what makes a server take that long for each checksum, four at a time."""

    def configure(room: Path) -> str:
        program = room / "slow-checksum"
        text = SLOW_CHECKSUM.format(python="/usr/bin/python3", seconds=seconds, data=room / "data")
        program.write_text(text)
        program.chmod(0o755)
        return f"xrootd.chksum max 4 adler32 {program}"

    return configure


MACAROON_CONFIG = """
all.sitename TEST_{port}
http.exthandler xrdmacaroons libXrdMacaroons.so
http.header2cgi Authorization authz
http.gridmap {room}/grid-mapfile
macaroons.secretkey {room}/macaroon.secret
ofs.authorize 1
acc.authdb {room}/authdb
ofs.authlib ++ libXrdMacaroons.so
"""


def give_to_server(path: Path) -> None:
    """Hand a file or directory to the user the servers run as (root only)."""
    if os.getuid() == 0:
        shutil.chown(path, SERVER_USER, SERVER_USER)


def make_room() -> Path:
    """Make a directory the server's user may enter, unlike pytest's own."""
    room = Path(tempfile.mkdtemp(prefix="sonar-xrootd-"))
    room.chmod(0o755)
    give_to_server(room)
    return room


def takes_connections(host: str, port: int) -> bool:
    """Say whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


class Authority:
    """A certificate authority with one client, as the TLS servers of these tests know it."""

    def __init__(self, room: Path) -> None:
        self.directory = room / "certificates"
        self.directory.mkdir(mode=0o755)
        self.ca = trustme.CA()
        self.bundle = self.directory / "ca.pem"
        self.ca.cert_pem.write_to_path(str(self.bundle))
        subprocess.run(["openssl", "rehash", str(self.directory)], check=True, capture_output=True)
        client = self.ca.issue_cert(common_name="worker")
        self.client_pem = room / "client.pem"
        client.private_key_and_cert_chain_pem.write_to_path(str(self.client_pem))
        self.client_name = self._openssl_name(client.cert_chain_pems[0].bytes())

    @staticmethod
    def _openssl_name(pem: bytes) -> str:
        short = {"organizationName": "O", "organizationalUnitName": "OU", "commonName": "CN"}
        subject = x509.load_pem_x509_certificate(pem).subject
        return "".join(f"/{short[part.oid._name]}={part.value!s}" for part in subject)

    def equip(self, room: Path) -> None:
        """Put a host certificate, and who may do what, into a server's directory."""
        host = self.ca.issue_cert("localhost", "127.0.0.1")
        chain = b"".join(pem.bytes() for pem in host.cert_chain_pems)
        (room / "host.pem").write_bytes(chain)
        (room / "host.key").write_bytes(host.private_key_pem.bytes())
        (room / "grid-mapfile").write_text(f'"{self.client_name}" worker\n')
        (room / "authdb").write_text("u worker / a\n")
        (room / "macaroon.secret").write_bytes(base64.encodebytes(os.urandom(64)))
        for name in ("host.pem", "host.key", "grid-mapfile", "authdb", "macaroon.secret"):
            (room / name).chmod(0o400)
            give_to_server(room / name)


class Server:
    """One storage server, its data on disk, and the means to stop, freeze and restart it."""

    def __init__(
        self,
        room: Path,
        authority: Authority,
        *,
        guarded: bool = False,
        checksums: Checksums = usual_checksums,
        host: str = "127.0.0.1",
    ) -> None:
        self.room, self.authority, self.guarded = room, authority, guarded
        self.data = room / "data"
        self.host, self.port = host, free_port()
        self.instance = "test"
        self.process: subprocess.Popen[bytes] | None = None
        for directory in (self.data, room / "admin", room / "run"):
            directory.mkdir(exist_ok=True)
            give_to_server(directory)
        authority.equip(room)
        (room / "server.cfg").write_text(self._config(checksums(room)))

    def _config(self, checksums: str) -> str:
        text = PLAIN_CONFIG + (MACAROON_CONFIG if self.guarded else "")
        return text.format(
            room=self.room,
            port=self.port,
            certificates=self.authority.directory,
            checksums=checksums,
        )

    @property
    def url(self) -> str:
        scheme, host = ("https", "localhost") if self.guarded else ("http", self.host)
        return f"{scheme}://{host}:{self.port}"

    @property
    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self.room.rglob("x.log"))

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> Server:
        """Start it, and again if it does not come up: XRootD 5.5.3 now and then dies at once."""
        for _ in range(START_TRIES):
            self._launch()
            if self._is_up():
                return self
            self.kill()
        words = (self.room / "out.log").read_text(errors="replace") + self.log
        raise RuntimeError(f"xrootd did not start in {START_TRIES} tries:\n{words[-3000:]}")

    def _launch(self) -> None:
        self.process = self._run(self._command())

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.room / "out.log").open("ab") as out:
            return subprocess.Popen(command, cwd=self.room, stdout=out, stderr=subprocess.STDOUT)

    def _command(self) -> list[str]:
        return self._program("xrootd", "server.cfg", "x")

    def _program(self, program: str, config: str, files: str) -> list[str]:
        """Return what runs one of XRootD's programs; ``files`` names those that it writes."""
        become = ["-R", SERVER_USER] if os.getuid() == 0 else []
        log, pid = self.room / f"{files}.log", self.room / "run" / f"{files}.pid"
        command = [program, *become, "-n", self.instance, "-c", str(self.room / config)]
        return [*command, "-l", str(log), "-s", str(pid)]

    def _is_up(self) -> bool:
        """Wait until the port answers; False once the process has ended, or after a while."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.alive:
            if self._answers():
                return self.alive
            time.sleep(0.02)
        return False

    def _answers(self) -> bool:
        return takes_connections(self.host, self.port)

    def freeze(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGSTOP)
        # Each of its threads goes on until it is given a processor to stop on.
        assert wait_for(lambda: self._states() == {STOPPED}, 120)

    def _states(self) -> set[str]:
        """Return the states of its threads, as the kernel writes them."""
        assert self.process
        states = set()
        for stat in Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                states.add(stat.read_text().rpartition(")")[2].split()[0])
        return states

    def thaw(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.room, ignore_errors=True)

    def make_directory(self, name: str) -> Path:
        """Make a directory on the server's disk, as its operators would."""
        path = self.data
        for part in name.strip("/").split("/"):
            path = path / part
            path.mkdir(exist_ok=True)
            give_to_server(path)
        return path

    def macaroon(self, activities: str = ACTIVITIES) -> str:
        """Fetch a token from the server as the client with a certificate would."""
        client = str(self.authority.client_pem)
        with urllib3.PoolManager(
            ca_certs=str(self.authority.bundle), cert_file=client, key_file=client
        ) as pool:
            answer = pool.request(
                "POST",
                f"{self.url}/",
                json={"caveats": [f"activity:{activities}"], "validity": "PT2H"},
                headers={"Content-Type": "application/macaroon-request"},
                timeout=Timeout(60),
            )
        return str(answer.json()["macaroon"])
