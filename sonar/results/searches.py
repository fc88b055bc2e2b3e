"""What searches of results have in common that keep what they find, each thing once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model


@dataclass(frozen=True)
class Search:
    """What was searched: the size class, the window, and from when on it renews what stands."""

    size_class_id: int
    start: datetime
    renews: datetime
    end: datetime
    sequences: int
    days: Mapping[str, str]
    method: int


@dataclass(frozen=True)
class Stored:
    """How many rows came, changed and went."""

    new: int
    renewed: int
    gone: int


def update(row: Model, values: Mapping[str, Any]) -> bool:
    """Take over what was found; say whether anything differs."""
    differs = False
    for name, value in values.items():
        if not _equal(getattr(row, name), value):
            setattr(row, name, value)
            differs = True
    return differs


def _equal(old: Any, new: Any) -> bool:  # noqa: ANN401 - a value of any column
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=1e-9)
    return bool(old == new)
