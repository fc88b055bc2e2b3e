"""Query parameters of calls, from the tuples that the code checks them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from drf_spectacular.utils import OpenApiParameter

from matrix.api.pagination import SHORT, PageSizes

QUERY: Literal["query"] = "query"


def parameter(
    name: str, schema: dict[str, Any], description: str, *, required: bool = False
) -> OpenApiParameter:
    return OpenApiParameter(name, schema, QUERY, required=required, description=description)


def choice(
    name: str, allowed: Sequence[str], description: str, default: str | None = None
) -> OpenApiParameter:
    """One of some words; ``default`` is what stands for nothing."""
    schema: dict[str, Any] = {"type": "string", "enum": list(allowed)}
    return parameter(name, schema | ({"default": default} if default else {}), description)


def text(
    name: str, description: str, example: str, *, required: bool = False, **schema: object
) -> OpenApiParameter:
    """A text; ``schema`` may say more of it, as `pattern` or `maxLength`."""
    facts = {"type": "string", **schema, "examples": [example]}
    return parameter(name, facts, description, required=required)


def several(name: str, description: str, **items: object) -> OpenApiParameter:
    """A parameter that may be given several times; ``items`` says more of each, as `enum`."""
    schema = {"type": "array", "items": {"type": "string", **items}}
    return parameter(name, schema, description)


def number(
    name: str, description: str, kind: str = "number", default: float | None = None, **schema: float
) -> OpenApiParameter:
    """A number; ``kind`` may be `integer`, ``schema`` gives `minimum` and `maximum`."""
    facts: dict[str, Any] = {"type": kind, **schema}
    return parameter(name, facts | ({} if default is None else {"default": default}), description)


def paging(sizes: PageSizes = SHORT) -> tuple[OpenApiParameter, ...]:
    """`page_size` and `cursor` of a list."""
    size = number(
        "page_size",
        "Rows per page of JSON.",
        "integer",
        default=sizes.default,
        minimum=1,
        maximum=sizes.most,
    )
    after = text("cursor", "Where to continue: part of the address in `next`.", "")
    return size, after
