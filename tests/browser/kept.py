"""A scene that is committed stays for the tests after it, as long as nobody writes."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connection

from tests import flush

Scene = TypeVar("Scene")
# Of transactions only those that write get a number: this is that of the next one.
NEXT_WRITING = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"


class Kept:
    """The scene that the database holds besides what migrations made, if it holds any.

    Whoever writes, be it PostgreSQL itself, spoils it: who wants it next has it made anew.
    """

    def __init__(self) -> None:
        self._make: Callable[[], Any] | None = None
        self._scene: Any = None
        self._next = ""

    def scene(self, make: Callable[[], Scene]) -> Scene:
        """Return what ``make`` makes: once for all tests in a row that only read."""
        if make is not self._make or not self._is_whole():
            self.forget()
            flush.add_size_classes()
            self._scene, self._make, self._next = make(), make, next_writing()
        scene: Scene = self._scene
        return scene

    def end_test(self) -> None:
        """Empty the database, unless a scene stands there as it was made."""
        if not self._is_whole():
            self._make = self._scene = None
            flush.empty()

    def forget(self) -> None:
        """Empty the database if a scene stands there."""
        if self._make:
            self._make = self._scene = None
            flush.empty()

    def _is_whole(self) -> bool:
        return self._make is not None and next_writing() == self._next


def next_writing() -> str:
    with connection.cursor() as cursor:
        cursor.execute(NEXT_WRITING)
        return str(cursor.fetchone()[0])
