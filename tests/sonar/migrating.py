"""Migrating a database to and fro, as `migrate` does it, without its drawing of all models anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState

# Of whatever is no month of results: columns in their order, what must hold of them, indexes and
# triggers.
TABLES = """
    WITH tables AS (
        SELECT oid, relname FROM pg_class
        WHERE relkind IN ('r', 'p', 'v') AND NOT relispartition
          AND relnamespace = 'public'::regnamespace
    )
    SELECT relname, attname, format('%%s %%s %%s %%s', format_type(atttypid, atttypmod),
           attnotnull, attidentity, pg_get_expr(adbin, adrelid))
    FROM tables JOIN pg_attribute ON attrelid = oid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT relname, conname, pg_get_constraintdef(held.oid)
    FROM tables JOIN pg_constraint AS held ON conrelid = tables.oid
    UNION ALL
    SELECT relname, indexrelid::regclass::text, pg_get_indexdef(indexrelid)
    FROM tables JOIN pg_index ON indrelid = oid
    UNION ALL
    SELECT relname, tgname, pg_get_triggerdef(fired.oid)
    FROM tables JOIN pg_trigger AS fired ON tgrelid = tables.oid
    WHERE NOT tgisinternal
    UNION ALL
    SELECT '', proname, md5(prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ORDER BY 1, 2, 3
"""


def migrate(targets: list[tuple[str, str | None]]) -> None:
    with _one_model_at_a_time():
        MigrationExecutor(connection).migrate(targets)


def migrate_to_now() -> None:
    migrate(MigrationExecutor(connection).loader.graph.leaf_nodes("sonar"))


def tables() -> list[tuple[str, str, str]]:
    """Return what the database is made of: a table, a part of it, and how that is written."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES, ())
        return cursor.fetchall()


@contextmanager
def _one_model_at_a_time() -> Iterator[None]:
    """Draw only the model anew that an operation changes, and not all that lead to it.

    Those are three quarters of what migrating costs. A migration that runs Python, which may follow
    them, has all drawn anew before, as Django has it where it delays a model itself. Renaming a
    model follows them, too.
    """
    find, rename = ProjectState._find_reload_model, ProjectState.rename_model

    def alone(state: ProjectState, app: str, model: str, delay: bool = False) -> set:
        state.is_delayed = True
        return {(app, model)}

    def renamed(state: ProjectState, app: str, old: str, new: str) -> None:
        with patch.object(ProjectState, "_find_reload_model", find):
            rename(state, app, old, new)

    with (
        patch.object(ProjectState, "_find_reload_model", alone),
        patch.object(ProjectState, "rename_model", renamed),
    ):
        yield
