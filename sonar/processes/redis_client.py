"""A client of Redis by its address: one server, or the master that Sentinels name."""

from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

SENTINEL, PORT = "sentinel://", 26379


def quick_client(url: str, seconds: float, tries_again: int = 0) -> Redis:
    """Return a client that gives up each try after this many seconds."""
    retry = Retry(NoBackoff(), tries_again)
    return client_of(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=retry)


def client_of(url: str, **patience: Any) -> Redis:  # noqa: ANN401 - as redis-py has them
    """Return a client that is as patient with each server as redis-py is told.

    Of several addresses of Sentinels the first one has user, password and database of Redis. Each
    connection asks who the master is, so that a failover needs no new client.
    """
    if not url.startswith(SENTINEL):
        return Redis.from_url(url, **patience)
    parts = [urlsplit(each) for each in url.split(";")]
    first, account = parts[0], {}
    for name, value in (("username", first.username), ("password", first.password)):
        if value:
            account[name] = unquote(value)
    sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
        [(each.hostname, each.port or PORT) for each in parts], sentinel_kwargs=patience
    )
    client: Redis = sentinels.master_for(
        settings.SONAR_REDIS_MASTER, db=int(first.path.strip("/") or 0), **account, **patience
    )
    return client
