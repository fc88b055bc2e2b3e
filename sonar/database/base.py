"""PostgreSQL as Django drives it, with two round trips fewer for each request.

The name of this module is Django's: ENGINE is the package (sonar.settings).
"""

import select
import time
from collections.abc import Callable
from typing import Any, ClassVar

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.backends.utils import CursorWrapper
from psycopg import Connection
from psycopg_pool import ConnectionPool

# What was fine so lately is asked again only if something waits to be read.
FRESH_SECONDS = 5


class SeenConnection(Connection):
    """A connection of a pool, which knows when it was last given out."""

    seen_at = float("-inf")


def check(connection: SeenConnection) -> None:
    """Raise OperationalError for a connection that has ended; ask only one that may have.

    A PostgreSQL that stops, or drops a connection, says so: then there is something to read. One
    that is cut off without a word is found out when it has not been used for some seconds.
    """
    now = time.monotonic()
    if now - connection.seen_at > FRESH_SECONDS or has_something_to_say(connection):
        ConnectionPool.check_connection(connection)
    connection.seen_at = now


def has_something_to_say(connection: SeenConnection) -> bool:
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class Operations(DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:  # noqa: ANN401
        """Return a statement for the log of statements, a planned one with its values too."""
        said: str | None = super().last_executed_query(cursor, sql, params)
        return said or self.compose_sql(sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = Operations
    # Django's, which its stubs do not know.
    _connection_pools: ClassVar[dict[str, ConnectionPool[SeenConnection]]]
    _configure_connection: Callable[[SeenConnection], None]

    @property
    def pool(self) -> ConnectionPool[SeenConnection] | None:
        """As Django's own, but for the class and the check of its connections."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            pool = ConnectionPool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                connection_class=SeenConnection,
                open=False,
                configure=self._configure_connection,
                check=check,
                **options,
            )
            # Of threads that come at once the first one's stays: none is open yet.
            self._connection_pools.setdefault(self.alias, pool)
        return self._connection_pools[self.alias]

    def planned_cursor(self) -> CursorWrapper:
        """Return a cursor whose statements PostgreSQL plans once for each connection.

        For what every request asks: to plan it may take longer than to run it.
        """
        self.ensure_connection()
        cursor: Any = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
        return self.make_debug_cursor(cursor) if self.queries_logged else self.make_cursor(cursor)
