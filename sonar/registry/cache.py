"""What is made of the registry once for a process, and again when its version has moved."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from django.db import connection

from sonar.database.cursors import planned_cursor
from sonar.models.version import RAISED

Value = TypeVar("Value")
VERSION = RAISED.format("registry")


class RegistryCache(Generic[Value]):
    """One value for all threads, made by one of them at a time.

    That of a replica, which may be behind, is kept beside that of the primary.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._lock = Lock()
        self._kept: dict[str, tuple[str, Value]] = {}

    def read(self, is_over: Callable[[Value], bool] = lambda _: False) -> Value:
        """Return it as of now. One SQL query while the registry stays as it is.

        ``is_over`` says of a value that it must be made again for another reason.
        """
        version = registry_version()  # read before the value: what is kept is never older
        server: str = connection.alias
        kept = self._kept.get(server)
        if kept is None or kept[0] != version or is_over(kept[1]):
            with self._lock:
                kept = self._kept.get(server)
                if kept is None or kept[0] != version or is_over(kept[1]):
                    kept = self._kept[server] = version, self._make()
        return kept[1]

    def last(self) -> Value | None:
        """Return it as it was read last, None if it never was; nobody is asked."""
        kept = self._kept.get(connection.alias)
        return kept[1] if kept else None


def registry_version() -> str:
    with planned_cursor() as cursor:
        cursor.execute(VERSION)
        row = cursor.fetchone()
    return str(row[0]) if row else ""
