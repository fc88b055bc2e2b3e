"""The usual way to store: bulk_create into an ordinary table with the same columns."""

from collections.abc import Sequence
from dataclasses import asdict

from django.db import connection, models

from sonar.models import Transfer
from sonar.results.store import Result

TABLE = "peer_plain"
MAKE = f"""
    DROP TABLE IF EXISTS {TABLE};
    CREATE TABLE {TABLE} (LIKE sonar_transfer INCLUDING ALL);
"""


def model() -> type[models.Model]:
    """Return a model with the fields of Transfer over a table of its own."""
    meta = type("Meta", (), {"managed": False, "db_table": TABLE, "app_label": "sonar"})
    fields = {one.name: one.clone() for one in Transfer._meta.concrete_fields}
    return type("PlainTransfer", (models.Model,), {**fields, "Meta": meta, "__module__": __name__})


def make_table() -> None:
    """Make the table: columns, checks, primary key and indexes as those of the store."""
    with connection.cursor() as cursor:
        cursor.execute(MAKE)


def drop_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {TABLE}")


def objects_of(plain: type[models.Model], results: Sequence[Result]) -> list[models.Model]:
    return [plain(**asdict(one)) for one in results]


def store(plain: type[models.Model], objects: list[models.Model]) -> None:
    plain._default_manager.bulk_create(objects, batch_size=len(objects))
