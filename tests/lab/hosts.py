"""Two machines of one Sonar: database, queue, pages and planner here, workers and storage there."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from kombu import Connection

from sonar.celery import app
from sonar.sandbox import embedded, processes
from tests import template
from tests.lab.enclosure import START_SECONDS, RefusedError, run
from tests.storage import services
from tests.storage.grid import Grid, put_option
from tests.storage.nodes import Nodes
from tests.storage.xrootd import Authority, Server, make_room
from tests.waiting import wait_for

# RFC 2544 keeps 198.18.0.0/15 for the benchmarks of networks; the network of the lab is its own.
NEAR, FAR = "198.18.1.1", "198.18.1.2"
QUEUE_PORT = 6379
THERE = ("worker", "cleanup")
SETTINGS = {
    "SONAR_CLEANUP_SECONDS": "1",
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_RECOVERY_SECONDS": "1",
    "SONAR_HEARTBEAT_SECONDS": "1",
    "SONAR_RESEND_SECONDS": "5",
    "SONAR_IN_FLIGHT": "24",
    "SONAR_RATE_ANONYMOUS": "off",
}


class FarHost:
    """A separate network, with one wire to the network of this thread."""

    def __init__(self) -> None:
        apart = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
        self._process = subprocess.Popen(apart)
        self._space = Path(f"/proc/{self._process.pid}/ns/net")
        self._near = f"near{self._process.pid}"
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        own = Path("/proc/thread-self/ns/net").readlink()
        if not wait_for(lambda: self._space.readlink() != own, START_SECONDS, pause=0.02):
            raise RefusedError("a network of its own")
        peer = f"peer name far netns {self._process.pid}".split()
        run(["ip", "link", "add", self._near, "type", "veth", *peer])
        run(["ip", "address", "add", f"{NEAR}/30", "dev", self._near])
        self.plug(connected=True)
        for command in ("link set lo up", "link set far up", f"address add {FAR}/30 dev far"):
            run([*self.inside(), "ip", *command.split()])

    def inside(self, **settings: str) -> list[str]:
        """Return what goes before a command that runs there, with some settings of its own."""
        said = [f"{name}={value}" for name, value in settings.items()]
        return ["nsenter", f"--net={self._space}", "env", *said]

    def plug(self, *, connected: bool) -> None:
        """Pull the plug of the wire, or put it back."""
        run(["ip", "link", "set", self._near, "up" if connected else "down"])

    def connections(self) -> list[str]:
        """Return the ends of connections that this host still takes for alive."""
        listed = run([*self.inside(), "ss", "--no-header", "--tcp", "--numeric", "--oneline"])
        return [line.split()[4] for line in listed.splitlines() if line.startswith("ESTAB")]

    def close(self) -> None:
        """Take the wire down, which the kernel does some time after its network has gone."""
        with suppress(RefusedError):
            run(["ip", "link", "delete", self._near])
        with self._process:
            self._process.kill()


class Database(services.Database):
    """A PostgreSQL that the other host may use, too."""

    def start(self) -> None:
        if not self.data.exists():
            template.copy_to(self.data)
            with (self.data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {FAR}/32 trust\n")
        super().start()


class Queue(services.Queue):
    """A Redis that listens on the wire."""

    def start(self) -> None:
        self.url = f"redis://{NEAR}:{QUEUE_PORT}/0"
        command = [embedded.redis_binary(), "--bind", NEAR, "--port", str(QUEUE_PORT)]
        command += ["--protected-mode", "no", "--save", "", "--dir", str(self._place)]
        log = self._place / "redis.log"
        self._process = processes.start(command, log, processes.plain())
        processes.wait_until(lambda: embedded.redis_answers(self.url), self._process, "Redis", log)

    def stop(self) -> None:
        processes.stop(self._process)


class TwoHosts(Grid):
    """A Sonar on two hosts, and the wire between them."""

    def __init__(self, place: Path, sockets: Path) -> None:
        super().__init__(place, sockets, place)
        self.far = FarHost()
        self.database = Database(place, sockets, f"listen_addresses={NEAR}")
        self.queue = Queue(place, sockets)
        self.nodes = Nodes(place / "nodes", self.far.inside())

    def there(self, **settings: str) -> list[str]:
        """Return what goes before a command of Sonar that runs there."""
        name = self.database.url.rpartition("/")[2]
        url = f"postgresql://sonar@{NEAR}/{name}"
        return self.far.inside(DATABASE_URL=url, REDIS_URL=self.queue.url, **settings)

    def commands(self) -> dict[str, list[str]]:
        """Let workers that move and delete files run there, with addresses of what is here."""
        there = self.there()
        return {
            kind: [*there, *command] if kind in THERE else command
            for kind, command in super().commands().items()
        }

    def close(self) -> None:
        super().close()
        self.far.close()


class FarServer(Server):
    """An XRootD of the other host, on its loopback: nobody reaches it from here."""

    def __init__(self, far: FarHost, authority: Authority) -> None:
        self._far = far
        super().__init__(make_room(), authority)

    def _command(self) -> list[str]:
        return [*self._far.inside(), *super()._command()]

    def _answers(self) -> bool:
        ask = ["bash", "-c", f"exec 3<>/dev/tcp/{self.host}/{self.port}"]
        done = subprocess.run([*self._far.inside(), *ask], check=False, capture_output=True)
        return done.returncode == 0


class Campus(TwoHosts):
    """A Sonar here, and a worker on a host that alone reaches two servers of its own."""

    VANTAGE = "campus"

    def __init__(self, place: Path, sockets: Path) -> None:
        super().__init__(place, sockets)
        self._rooms = make_room()
        authority = Authority(self._rooms)
        self.servers = [FarServer(self.far, authority) for _ in range(2)]
        try:
            for server in self.servers:
                server.start().make_directory("base")
        except BaseException:
            self.far.close()
            raise

    def commands(self) -> dict[str, list[str]]:
        """One worker for all here, and one for what is done there; tests send as the beat does."""
        here = Grid.commands(self)
        there = self.there(SONAR_VANTAGE=self.VANTAGE)
        worker = [*here["worker"], "--loglevel=INFO"]
        put_option(worker, "-c", "8")
        of_all, of_storage = list(worker), list(worker)
        put_option(of_all, "-Q", "transfers,control,cleanup")
        put_option(of_storage, "-Q", "transfers,cleanup")
        return {"worker": of_all, "campus": [*there, *of_storage]}

    def send(self, task: str, queue: str) -> None:
        with Connection(self.queue.url) as connection:
            app.send_task(f"sonar.tasks.{task}", queue=queue, connection=connection)

    def files_left(self) -> list[Path]:
        """Return the files of tests and checks on the disks of the servers."""
        places = [server.data for server in self.servers]
        found = [path for place in places for path in place.rglob("sonar/incoming/*")]
        return [path for path in found if path.is_file()]

    def close(self) -> None:
        for server in self.servers:
            server.close()
        super().close()
        shutil.rmtree(self._rooms, ignore_errors=True)
