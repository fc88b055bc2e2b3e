"""Whether the tables of the database are those of this code: what starts asks, and ends if not.

A database that is newer, or half upgraded, would fail later, somewhere, and perhaps after it has
stored something. The way back is a backup (docs/operations.md): migrations are never undone, as
their older tables could not hold what is there by then. Nor does one that keeps text in another
encoding than UTF-8 fit: one of SQL_ASCII knows no characters, only bytes, and gives them back so.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import ModuleInfo, iter_modules
from typing import Any

import psycopg
from django.apps import AppConfig, apps
from django.core.checks import Error
from django.core.management.base import CommandError
from django.db import connection, connections
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from psycopg.errors import UndefinedTable

from sonar.database.sessions import Session, cut_off_after

log = logging.getLogger(__name__)

LONGEST_SECONDS = 2
APPLIED = "SELECT app, name FROM django_migrations"
NEWER = (
    "The database is newer than this version of Sonar, which lacks some of its migrations (newest: "
    "{last}; count: {count}). Start the newer version, or restore an older backup "
    "(docs/operations.md)."
)
OLDER = (
    "The database lacks migrations of this version of Sonar (newest: {last}; count: {count}): run "
    "manage.py migrate."
)
NO_WAY_BACK = (
    "Sonar does not reverse migrations; nothing was changed. To return to an older version of "
    "Sonar, restore a backup made with that version (docs/operations.md)."
)

NEEDED_ENCODING = "UTF8"
WRONG_ENCODING = (
    "The database has the encoding {}, but Sonar needs UTF8. Create another database (CREATE "
    "DATABASE sonar ENCODING 'UTF8' TEMPLATE template0) and set DATABASE_URL to it."
)

# What Django says of a connection that only its own code needs.
OF_DJANGO = ("context", "cursor_factory", "prepare_threshold")
# What PgBouncer answers whose server connections belong to transactions.
NEEDS_SESSIONS = "unsupported startup parameter"
POOLER = (
    "DATABASE_URL names a connection pooler that does not accept session settings: set "
    "SONAR_DATABASE_TRANSACTION_POOL=true (docs/engines.md)."
)

Names = frozenset[tuple[str, str]]


def problem(session: psycopg.Connection[Any]) -> str | None:
    """Say why this code cannot work with the database of this session."""
    return incurable(session) or _naming(OLDER, of_this_code() - of_database(session))


def incurable(session: psycopg.Connection[Any]) -> str | None:
    """Say why not even `migrate` could make a database fit."""
    return encoding_problem(session) or _naming(NEWER, of_database(session) - of_this_code())


def encoding_problem(session: psycopg.Connection[Any]) -> str | None:
    """Say what is wrong with the encoding of a database; the server told it at the start."""
    encoding = session.info.parameter_status("server_encoding")
    return None if encoding == NEEDED_ENCODING else WRONG_ENCODING.format(encoding)


def problem_at_start() -> str | None:
    """Say why a process must not go on; one whose database is away can, until it is back."""
    try:
        with asked_quickly() as session:
            return problem(session)
    except psycopg.OperationalError as error:
        why = " ".join(str(error).split())
        if NEEDS_SESSIONS in why:
            return POOLER
        log.warning("cannot check whether the database matches this version of Sonar: %s", why)
        return None


def session_of(alias: str = "default") -> psycopg.Connection[Any]:
    """Return the session that Django has with a database."""
    connections[alias].ensure_connection()
    session: psycopg.Connection[Any] = connections[alias].connection
    return session


def check(databases: Sequence[str] | None = None, **_: object) -> list[Error]:
    """Let `migrate`, and `check` with a database, end with what neither can cure."""
    sentences = [incurable(session_of(alias)) for alias in databases or ()]
    return [Error(sentence, id="sonar.E001") for sentence in sentences if sentence]


def refuse_to_go_back(plan: Sequence[tuple[Migration, bool]], **_: object) -> None:
    """Let `migrate` end before its first step if one of its steps undoes a migration."""
    if any(backwards for _, backwards in plan):
        raise CommandError(NO_WAY_BACK)


@contextmanager
def asked_quickly() -> Iterator[Session]:
    """Give a session with the database of its own, which waits long for nothing."""
    with Session.connect(**quickly()) as session, cut_off_after(session, LONGEST_SECONDS):
        yield session


def quickly() -> dict[str, Any]:
    """Return how to connect to the database without waiting long for anything."""
    params = connection.get_connection_params()
    kept = {name: value for name, value in params.items() if name not in OF_DJANGO}
    if connection.settings_dict.get("LIMITS_AT_BEGIN") is None:
        kept["options"] = f"{kept.get('options', '')} -c statement_timeout={LONGEST_SECONDS}s"
    return kept | {"connect_timeout": LONGEST_SECONDS}


@cache
def of_this_code() -> Names:
    """Return the migrations of this version; they are files, so that looking once is enough.

    By their names, as Django's loader finds them. To load them takes 1.6 MB and a quarter second.
    """
    return frozenset(
        (app.label, file.name) for app in apps.get_app_configs() for file in _migration_files(app)
    )


def _migration_files(app: AppConfig) -> Iterator[ModuleInfo]:
    name, is_named = MigrationLoader.migrations_module(app.label)
    if name is None or (not is_named and find_spec(name) is None):
        return
    for file in iter_modules(import_module(name).__path__):
        if not file.ispkg and file.name[0] not in "_~":
            yield file


def of_database(session: psycopg.Connection[Any]) -> Names:
    try:
        return frozenset(session.execute(APPLIED).fetchall())
    except UndefinedTable:
        session.rollback()
        return frozenset()


def _naming(sentence: str, names: Names) -> str | None:
    return sentence.format(last=".".join(max(names)), count=len(names)) if names else None
