"""PostgreSQL as Django drives it, with two round trips fewer for each request.

The name of this module is Django's: ENGINE is the package (sonar.settings).
"""

from typing import Any, ClassVar

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.backends.utils import CursorWrapper
from psycopg import IsolationLevel
from psycopg_pool import ConnectionPool

from sonar.database import actor
from sonar.database.sessions import Session, check, limits_at_begin


class Operations(DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:  # noqa: ANN401
        """Return a statement for the log of statements, a planned one with its values too."""
        said: str | None = super().last_executed_query(cursor, sql, params)
        return said or self.compose_sql(sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = Operations
    # Django's, which its stubs do not know.
    _connection_pools: ClassVar[dict[str, ConnectionPool[Session]]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(actor.signed)

    @property
    def pool(self) -> ConnectionPool[Session] | None:
        """As Django's own, but for the class and the check of its connections."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            pool = ConnectionPool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                connection_class=Session,
                open=False,
                configure=self._configure_connection,  # type: ignore[arg-type]
                check=check,
                **options,
            )
            # Of threads that come at once the first one's stays: none is open yet.
            self._connection_pools.setdefault(self.alias, pool)
        return self._connection_pools[self.alias]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Session:
        """Return a connection as Django does, of our class with and without a pool."""
        if self.pool:
            return super().get_new_connection(conn_params)  # type: ignore[no-any-return]
        self.isolation_level = IsolationLevel.READ_COMMITTED
        return Session.connect(**conn_params)

    def _configure_connection(self, connection: Session) -> bool:
        """Set up what has just been opened, by Django or by the pool."""
        connection.limits = limits_at_begin(self.settings_dict.get("LIMITS_AT_BEGIN") or {})
        return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def planned_cursor(self) -> CursorWrapper:
        """Return a cursor whose statements PostgreSQL plans once for each connection.

        For what every request asks: to plan it may take longer than to run it.
        """
        self.ensure_connection()
        cursor: Any = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
        return self.make_debug_cursor(cursor) if self.queries_logged else self.make_cursor(cursor)
