"""A body that was sent -> values by field, or sentences that say what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import NoneType
from typing import Any, cast

import orjson
from pydantic import ValidationError, create_model
from pydantic_core import PydanticUndefined
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from matrix.api.parsers import body_of
from matrix.api.schema.schemas import Answer, Body
from matrix.query.filters import either
from matrix.query.forms import BadQueryError
from sonar.records.record import cut

# A URL that was given by mistake with a password in it must not come back in an answer or a log.
NOT_REPEATED = ("base_url", "service")
# Of thousands of fields that there are not, a few tell enough.
MOST_NAMED = 20
Values = dict[str, Any]


def change_of(new: type[Body], name: str) -> type[Body]:
    """Return the body that changes a row: as the one that makes it, but no field is required."""
    fields: dict[str, Any] = {}
    for field_name, field in new.model_fields.items():
        optional = copy(field)
        # A factory, as the schema would show a default.
        optional.default, optional.default_factory = PydanticUndefined, NoneType
        fields[field_name] = (optional.annotation, optional)
    doc = f"The fields to change: any of {new.__name__}."
    return create_model(name, __base__=Body, __module__=__name__, __doc__=doc, **fields)


def record_of(new: type[Body], doc: str, name: str = "", **more: Any) -> type[Answer]:  # noqa: ANN401
    """Return the answer that has the fields of a body: NewSite -> SiteRecord.

    ``more`` are types of further fields, or of such that are answered otherwise than sent; a field
    with a default too may be left out, and stands last. What has no name has an id.
    """
    fields: dict[str, Any] = {} if "name" in new.model_fields else {"id": int}
    fields |= {field_name: field.annotation for field_name, field in new.model_fields.items()}
    fields |= more
    needed: dict[str, Any] = {
        field: (kind, ...) for field, kind in fields.items() if not isinstance(kind, tuple)
    }
    optional: dict[str, Any] = {
        field: kind for field, kind in fields.items() if isinstance(kind, tuple)
    }
    called = name or f"{new.__name__.removeprefix('New')}Record"
    return create_model(
        called, __base__=Answer, __module__=__name__, __doc__=doc, **needed, **optional
    )


def values_of(body: type[Body], request: Request) -> Values:
    """Return the fields that were sent, checked; raise BadQueryError with sentences by field."""
    content = cast("dict[str, Any]", body_of(request))  # JsonBody takes nothing else
    if request.stream is None:
        raise ParseError("There is no body: send a JSON object {...} with the fields by name.")
    try:
        read = body.model_validate(content)
    except ValidationError as error:
        raise BadQueryError(sentences(body, error, content)) from None
    return {name: getattr(read, name) for name in body.model_fields if name in content}


def sentences(
    body: type[Body], error: ValidationError, content: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Say of each wrong field once what it is and what it may be."""
    kinds = {str(fault["loc"][0]): fault["type"] for fault in error.errors(include_url=False)}
    names = list(kinds)[:MOST_NAMED]
    return {cut(name): [sentence(body, name, kinds[name], content)] for name in names}


def sentence(body: type[Body], name: str, kind: str, content: Mapping[str, Any]) -> str:
    if name not in body.model_fields:
        return f"There is no field “{cut(name)}” to write: use {either(list(body.model_fields))}."
    allowed = body.model_fields[name].description
    if kind == "missing":
        return f"{name} is missing: it must be {allowed}."
    if name in NOT_REPEATED:
        return f"{name} is not {allowed}."
    try:
        value = cut(orjson.dumps(content[name]).decode())
    except TypeError:  # it reads deeper nests than it writes
        value = "[…]"
    return f"{name} {value} is not {allowed}."
