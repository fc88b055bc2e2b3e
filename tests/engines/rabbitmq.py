"""A real RabbitMQ, on loopback alone, whose children end with it."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kombu import Connection

from sonar.sandbox import processes
from tests.needs import needs
from tests.ports import free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
ERLANG_HOME = Path("/usr/lib/erlang")
# One thread that does not wait busily, and none of its nodes is asked from outside.
ERLANG = (
    "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
)


class Broker:
    """A RabbitMQ with a directory of its own, to be killed and started."""

    def __init__(self, place: Path) -> None:
        needs("rabbitmq-server")
        self.place, self.port = place, free_port()
        for name in ("log", "mnesia", "home"):
            (place / name).mkdir()
        (place / "plugins").write_text("[].")
        epmd = {"ERL_EPMD_PORT": str(free_port()), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        self.env = processes.plain() | epmd
        self.env |= {
            "HOME": str(place / "home"),
            "RABBITMQ_NODENAME": "sonar@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
            "RABBITMQ_LOG_BASE": str(place / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG,
        }
        # Else Erlang starts one by itself, which stays.
        (program,) = ERLANG_HOME.glob("erts-*/bin/epmd")
        self._epmd = processes.start([str(program)], place / "epmd.log", self.env)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        log = self.place / "rabbitmq.log"
        self.process = processes.start([str(SERVER)], log, self.env)
        processes.wait_until(self.answers, self.process, "RabbitMQ", log)

    def answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=2) as connection:
                connection.connect()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Let it die without a word."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it stand still, as a machine that has no more memory does."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        processes.stop(self.process)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        processes.stop(self._epmd)
        shutil.rmtree(self.place)
