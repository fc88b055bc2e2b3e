"""References to the registry from tables with millions of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import models


def reference(
    to: type[models.Model],
    on_delete: Callable[..., None] = models.PROTECT,
    *,
    null: bool = False,
) -> models.ForeignKey[Any, Any]:
    """Refer to a row of the registry without a constraint and an index of its own.

    For tables with millions of rows: constraints look at each of them, which costs as much
    as writing it. What is needed is checked for a statement as a whole (migration 0003), and
    schedules are made of the registry and follow it.
    """
    return models.ForeignKey(
        to, on_delete=on_delete, null=null, related_name="+", db_constraint=False, db_index=False
    )
