"""Bodies that the registry takes: what values their fields may have, and what is wrong with one."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, cast

import orjson
from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from matrix.api.base import body_of
from matrix.api.schema.schemas import Answer, Body
from matrix.query.forms import BadQueryError
from sonar.credentials import rules as credentials
from sonar.models.fields import MOST_TAGS, NAME, TAG, TAG_RULE, tidy
from sonar.notation import data_hosts, vantages
from sonar.notation.enumeration import unknown_field
from sonar.notation.windows import EARLIEST, LATEST, parse_time
from sonar.records.record import cut

CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
NO_CONTROLS = r"[^\x00-\x1f\x7f]"
VISIBLE = r"[^\x00-\x20\x7f]"
CREDENTIAL_NAME = f"^({credentials.NAME.strip('^$')})?$"
LINES = r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"


@dataclass(frozen=True)
class Worded:
    """What a field is (`meaning`) and what it may be (`rule`), apart from its description."""

    meaning: str
    rule: str


def field(
    rule: str,
    meaning: str = "",
    *,
    or_null: bool = False,
    strict: bool | None = True,
    **bounds: Any,  # noqa: ANN401
) -> FieldInfo:
    """A field that says what it is and may be: `Tests at once. Must be a whole number, or null.`

    Strict: no number is read from a text.
    """
    rule += ", or null" if or_null else ""
    words = f"{meaning} Must be {rule}.".lstrip()
    info: FieldInfo = Field(strict=strict, description=words, **bounds)
    info.metadata.append(Worded(meaning, rule))
    return info


def worded(info: FieldInfo) -> Worded:
    """Return the words of a field; those of a flag are its description, and it has no rule."""
    description = info.description or ""
    own = (each for each in info.metadata if isinstance(each, Worded))
    return next(own, Worded(description, "true or false"))


def line(most: int, meaning: str, pattern: str = f"^{NO_CONTROLS}*$") -> FieldInfo:
    """A text on one line; it may be empty, unless a pattern says otherwise."""
    rule = f"a single line of at most {most} characters"
    return field(rule, meaning, max_length=most, pattern=pattern)


def needed_text(most: int, meaning: str, *, lines: bool = False) -> FieldInfo:
    """A text with something to read in it, on one line or several."""
    kind = "string" if lines else "single line"
    rule = f"a {kind} of 1 to {most} characters, including at least one visible character"
    others = LINES if lines else NO_CONTROLS
    return field(rule, meaning, max_length=most, pattern=f"^{others}*{VISIBLE}{others}*$")


def whole(least: int, most: int, meaning: str, *, or_null: bool = False) -> FieldInfo:
    rule = f"a whole number from {least} to {most}"
    return field(rule, meaning, or_null=or_null, ge=least, le=most)


def number(least: float, most: float, meaning: str, *, or_null: bool = False) -> FieldInfo:
    rule = f"a number from {least} to {most}"
    return field(rule, meaning, or_null=or_null, ge=least, le=most, allow_inf_nan=False)


def flag(meaning: str) -> FieldInfo:
    info: FieldInfo = Field(strict=True, description=meaning)
    return info


def name_of(kind: str, meaning: str = "", *, or_null: bool = False) -> FieldInfo:
    """The name of a row that is registered."""
    rule = f"the name of a registered {kind}"
    return field(rule, meaning, or_null=or_null, max_length=80, pattern=NAME)


def own_name(kind: str) -> FieldInfo:
    rule = "1 to 80 letters, digits, dots, dashes and underscores, starting with a letter or digit"
    return field(rule, f"Name of the {kind}.", max_length=80, pattern=NAME)


def credential_name(meaning: str) -> FieldInfo:
    rule = "the name of a registered credential, or empty for no credential"
    return field(rule, meaning, max_length=80, pattern=CREDENTIAL_NAME)


def vantage_name(meaning: str) -> FieldInfo:
    rule = f"at most {vantages.LONGEST} lower-case letters, digits and dashes"
    return field(rule, meaning, max_length=vantages.LONGEST, pattern="^[a-z0-9-]*$")


def quiet_times(meaning: str) -> FieldInfo:
    rule = "a daily period in UTC (for example, 01:00-05:30)"
    return field(rule, meaning, or_null=True, max_length=11, pattern=f"^{CLOCK}-{CLOCK}$")


def time(meaning: str, *, or_null: bool = False) -> FieldInfo:
    rule = "an ISO 8601 time between 1970 and 2999 (for example, 2026-11-20T04:00:00Z)"
    return field(rule, meaning, or_null=or_null, strict=None)


def read_moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 - pydantic catches ValueError only
    read = parse_time(value)
    if not EARLIEST <= read <= LATEST:
        raise ValueError("too early or too late")
    return read


def tag_list(meaning: str) -> FieldInfo:
    rule = f"a list of at most {MOST_TAGS} tags, each with {TAG_RULE}"
    return field(rule, meaning, max_length=MOST_TAGS)


def data_host_list(meaning: str) -> FieldInfo:
    rule = (
        f"a list of at most {data_hosts.MOST} lower-case host names, addresses, networks or "
        "patterns, each with an optional port or port range (for example, st-*.example.org:8443)"
    )
    return field(rule, meaning, max_length=data_hosts.MOST)


def declarable(host: str) -> str:
    if data_hosts.problem(host):
        raise ValueError("not a data host")
    return host


# Of the notation only what a schema can say.
DataHosts = list[
    Annotated[
        str,
        Field(strict=True, max_length=255, pattern=r"^[a-z0-9_.*:/\[\]-]+$"),
        AfterValidator(declarable),
    ]
]
Tags = Annotated[list[Annotated[str, Field(strict=True, pattern=f"^{TAG}$")]], AfterValidator(tidy)]
# A time with a zone; without one it is UTC.
Moment = Annotated[
    datetime,
    PlainValidator(read_moment),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "pattern": r"^(19[7-9][0-9]|2[0-9]{3})-"}
    ),
]


# Secrets, and a URL with a password in it by mistake, must not come back in an answer or a log.
NOT_REPEATED = ("base_url", "service", "settings")
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
    doc = f"Fields to change, with the same rules as in {new.__name__}. Omitted fields keep their "
    doc += "values."
    return create_model(name, __base__=Body, __module__=__name__, __doc__=doc, **fields)


ID = Annotated[int, Field(description="Id of the object. The URL of the object ends with this id.")]


def as_described(kind: Any, meaning: str) -> Any:  # noqa: ANN401 - a type
    """Return the type of a field with its meaning, unless it has one."""
    has_one = any(getattr(each, "description", None) for each in getattr(kind, "__metadata__", ()))
    return Annotated[kind, Field(description=meaning)] if meaning and not has_one else kind


def record_of(new: type[Body], doc: str, name: str = "", **more: Any) -> type[Answer]:  # noqa: ANN401
    """Return the answer that has the fields of a body: NewSite -> SiteRecord.

    ``more`` are types of further fields, or of such that are answered otherwise than sent; a field
    with a default too may be left out, and stands last. What has no name has an id. Fields of the
    body are described as there, without what may be sent.
    """
    fields: dict[str, Any] = {} if "name" in new.model_fields else {"id": ID}
    fields |= {field_name: field.annotation for field_name, field in new.model_fields.items()}
    fields |= more
    typed = {
        field: kind if isinstance(kind, tuple) else (kind, ...)
        for field, kind in sorted(fields.items(), key=lambda item: isinstance(item[1], tuple))
    }
    meanings = {name: worded(field).meaning for name, field in new.model_fields.items()}
    fields = {
        field: (as_described(kind, meanings.get(field, "")), default)
        for field, (kind, default) in typed.items()
    }
    called = name or f"{new.__name__.removeprefix('New')}Record"
    return create_model(called, __base__=Answer, __module__=__name__, __doc__=doc, **fields)


def values_of(body: type[Body], request: Request) -> Values:
    """Return the fields that were sent, checked; raise BadQueryError with sentences by field."""
    content = cast("dict[str, Any]", body_of(request))  # JsonBody takes nothing else
    if request.stream is None:
        raise ParseError("The request has no body: send a JSON object with field names as keys.")
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
        return unknown_field(cut(name), body.model_fields)
    allowed = worded(body.model_fields[name]).rule
    if kind == "missing":
        return f"“{name}” is missing: it must be {allowed}."
    if name in NOT_REPEATED:
        return f"“{name}” is not {allowed}."
    try:
        value = cut(orjson.dumps(content[name]).decode())
    except TypeError:  # it reads deeper nests than it writes
        value = "[…]"
    return f"{name} {value} is not {allowed}."
