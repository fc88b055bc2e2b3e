"""What a test has committed is taken back by deleting what there is."""

from importlib import import_module

from django.apps import apps
from django.db import connection, transaction

from sonar.models import SizeClass
from sonar.people import roles

# Django truncates every table, which makes each of them and each index anew, then makes the same
# permissions again: a fifth of a second for each test with real commits. To delete rows where
# there are any costs some milliseconds. Neither triggers nor foreign keys are asked; the version
# of registry and incidents are raised, as by the triggers.
EMPTY = """
    DO $$
    DECLARE
        one record;
        filled boolean;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR one IN
            SELECT oid::regclass AS name, relispartition AND pg_table_size(oid) > 1000000 AS large
            FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN
                ('django_migrations', 'django_content_type', 'auth_permission')
        LOOP
            EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one.name) INTO filled;
            IF one.large THEN
                EXECUTE format('TRUNCATE %s', one.name);
            ELSIF filled THEN
                EXECUTE format('DELETE FROM %s', one.name);
            END IF;
        END LOOP;
        INSERT INTO sonar_version (name, value) VALUES ('registry', 1), ('incidents', 1);
    END $$
"""


def empty(_test: object = None) -> None:
    """Leave of the database what migrations have made, but for the default size classes."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(EMPTY)
        roles.ensure_operators()


def add_size_classes() -> None:
    """Make the default classes again, which a migration had brought and ``empty`` took away."""
    default = import_module("sonar.migrations.0002_triggers_and_size_classes")
    if not SizeClass.objects.exists():
        with transaction.atomic():
            default.add_default_classes(apps, None)
