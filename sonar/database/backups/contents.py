"""What a database holds before it is backed up or restored, and who else uses it."""

from dataclasses import dataclass

from django.db import connection

from sonar.database import tables

# All that is in the schema and belongs to no extension.
OBJECTS = """
SELECT CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
       WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS kind,
       oid::regclass::text AS name, 'pg_class'::regclass AS class, oid
FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
    AND relnamespace = current_schema()::regnamespace
UNION ALL SELECT 'ROUTINE', oid::regprocedure::text, 'pg_proc'::regclass, oid
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
UNION ALL SELECT 'TYPE', oid::regtype::text, 'pg_type'::regclass, oid
FROM pg_type WHERE typtype IN ('e', 'd') AND typnamespace = current_schema()::regnamespace
"""
OWN_OBJECTS = f"""
SELECT kind, name FROM ({OBJECTS}) AS object WHERE NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = class AND objid = oid AND deptype = 'e')
"""  # noqa: S608
COUNT = f"SELECT count(*) FROM ({OWN_OBJECTS}) AS own"  # noqa: S608
SESSIONS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass(frozen=True)
class Contents:
    """A database as it is now."""

    name: str
    server: int
    objects: int
    results: int | None
    """None if it has no table of results: it is not Sonar's, or has nothing."""
    sessions: int
    """Others that use it now."""


def look() -> Contents:
    """Ask the database what it holds, and who else uses it."""
    session = tables.session_of().info
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
        (objects,) = cursor.fetchone() or (0,)
        cursor.execute("SELECT to_regclass('sonar_transfer') IS NOT NULL")
        results = None
        if cursor.fetchone() == (True,):
            cursor.execute("SELECT count(*) FROM sonar_transfer")
            (results,) = cursor.fetchone() or (0,)
        cursor.execute(SESSIONS)
        (sessions,) = cursor.fetchone() or (0,)
    return Contents(session.dbname, session.server_version // 10_000, objects, results, sessions)
