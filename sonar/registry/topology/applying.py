"""Applies a topology: what a comparison says, as a whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Model

from sonar.models import Alias, Endpoint, Site, Version
from sonar.models.topology import SourcedValues
from sonar.registry.aliases import forget
from sonar.registry.topology.changes import Change, Changes
from sonar.registry.topology.comparing import compare
from sonar.registry.topology.model import Topology

BATCH = 500
# Endpoints may take each other's names and places (migration 0050).
UNIQUE = "sonar_endpoint_name_key, sonar_endpoint_base_url_key"


@transaction.atomic
def apply(topology: Topology, *, joins: bool = False, retires: bool = False) -> Changes:
    """Compare with the registry as it is, and change it so; return what was changed.

    One transaction, in which nobody else changes the registry by a page or by REST.
    """
    Version.lock_registry()
    changes = compare(topology, joins=joins, retires=retires)
    _save(Site, changes.sites)
    for change in changes.endpoints:  # a new site has its id only now
        if isinstance(change.row, Endpoint):
            change.row.site = change.row.site
    with connection.cursor() as cursor:
        cursor.execute(f"SET CONSTRAINTS {UNIQUE} DEFERRED")
        _save(Endpoint, changes.endpoints)
        cursor.execute(f"SET CONSTRAINTS {UNIQUE} IMMEDIATE")
    Alias.objects.filter(pk__in=[alias.pk for alias in changes.dropped_aliases]).delete()
    _save_aliases(changes.aliases)
    _save_said(changes.said)
    return changes


def _save(model: type[Site] | type[Endpoint], changes: Sequence[Change]) -> None:
    rows: Any = model.objects
    changed = [change for change in changes if not change.is_new]
    columns = {_column(field) for change in changed for field in change.values}
    if columns:
        rows.bulk_update([change.row for change in changed], sorted(columns), batch_size=BATCH)
    rows.bulk_create([change.row for change in changes if change.is_new], batch_size=BATCH)


def _column(field: str) -> str:
    return "retired_at" if field == "retired" else field


def _save_aliases(aliases: Sequence[Alias]) -> None:
    for alias in aliases:
        alias.site, alias.endpoint = alias.site, alias.endpoint
    _save_rows(Alias, aliases, ["name", "site", "endpoint"])
    forget((alias.kind, alias.name) for alias in aliases)


def _save_said(said: Sequence[SourcedValues]) -> None:
    for row in said:
        row.site, row.endpoint = row.site, row.endpoint
    _save_rows(SourcedValues, said, ["name", "source_id", "values"])


def _save_rows(model: type[Model], rows: Sequence[Model], columns: Sequence[str]) -> None:
    rows_of = model._default_manager
    rows_of.bulk_create([row for row in rows if row.pk is None], batch_size=BATCH)
    old = [row for row in rows if row.pk is not None]
    if old:
        rows_of.bulk_update(old, columns, batch_size=BATCH)
