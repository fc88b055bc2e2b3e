"""A real Redis that reads and answers, and takes nothing: full, unable to save, or a replica."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import redis

MB = 10**6


@contextmanager
def full(url: str) -> Iterator[None]:
    """Fill it up to its maxmemory; make room again at the end."""
    with redis.Redis.from_url(url) as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + MB)
        try:
            fill(client)
            # What clients hold comes and goes: without this a small key would fit now and then.
            client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
            yield
        finally:
            client.config_set("maxmemory", 0)
            for key in client.scan_iter("filler:*"):
                client.delete(key)


def fill(client: redis.Redis) -> None:
    for number in range(10_000):
        try:
            client.set(f"filler:{number}", "x" * 10_000)
        except redis.OutOfMemoryError:
            return
    raise AssertionError("it takes everything")


@contextmanager
def not_saving(url: str) -> Iterator[None]:
    """Take its directory away, as a disk that is full would: it refuses what it cannot save."""
    with redis.Redis.from_url(url) as client:
        before = {name: client.config_get(name)[name] for name in ("dir", "save")}
        lost = Path(before["dir"]) / "lost"
        lost.mkdir()
        client.config_set("dir", str(lost))
        shutil.rmtree(lost)
        client.config_set("save", "3600 1")
        try:
            save(client, "err")
            yield
        finally:
            client.config_set("dir", before["dir"])
            save(client, "ok")
            client.config_set("save", before["save"])


def save(client: redis.Redis, outcome: str) -> None:
    deadline = time.monotonic() + 120
    while client.info("persistence")["rdb_last_bgsave_status"] != outcome:
        assert time.monotonic() < deadline
        if not client.info("persistence")["rdb_bgsave_in_progress"]:
            client.bgsave()
        time.sleep(0.05)


@contextmanager
def a_replica(url: str) -> Iterator[None]:
    with redis.Redis.from_url(url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            yield
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")


Refusal = Callable[[str], AbstractContextManager[None]]
WAYS: dict[str, tuple[Refusal, str]] = {
    "full": (full, "its memory is full"),
    "not saving": (not_saving, "it cannot save to disk"),
    "a replica": (a_replica, "it is a replica"),
}
