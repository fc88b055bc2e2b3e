"""Endpoints in answers: their name, what there is of them beside it, and an example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import create_model

from matrix.api.schema.schemas import Answer
from matrix.query.attributes import BY_KEY, NAME


def with_facts(
    name: str, words: str, flags: Iterable[str], *, shared: bool = False
) -> type[Answer]:
    """Return the schema of an endpoint; where several share facts, one may be null."""
    fields: dict[str, Any] = {
        key: (attribute.kind | None if shared and key != NAME else attribute.kind, ...)
        for key, attribute in BY_KEY.items()
    }
    fields |= dict.fromkeys(flags, (bool, ...))
    return create_model(name, __base__=Answer, __doc__=words, __module__=__name__, **fields)


RAL: dict[str, Any] = {key: attribute.example for key, attribute in BY_KEY.items()}
RAL |= {"simulated": False}
GLASGOW = RAL | {"name": "Glasgow_DATADISK", "site": "Glasgow", "tier": 2}
