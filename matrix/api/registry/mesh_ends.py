"""Which endpoints a mesh tests, as REST has it: all of them, names, or a filter."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from pydantic.fields import FieldInfo

from matrix.api.parameters import wrong
from matrix.api.registry.values import field, name_of
from matrix.api.schema.records import Json
from sonar.models import Endpoint, Mesh
from sonar.notation.endpoint_attributes import OF_ENDPOINTS, EndpointAttribute
from sonar.notation.endpoint_filters import MOST_FILTERS, FilterError
from sonar.notation.enumeration import either
from sonar.registry.mesh_filters import read_filter

ATTRIBUTES = [*OF_ENDPOINTS]
EXAMPLE = '{"cloud": "UK", "tag": ["dc27", "!tape"]}'


Names = Annotated[
    list[Annotated[str, name_of("endpoint", "Endpoint in the list.")]], Field(min_length=1)
]


def numbers(attribute: EndpointAttribute) -> list[Json]:
    allowed = [*map(int, attribute.allowed)] if attribute.kind is int else []
    return [{"type": "integer", "enum": allowed}] if allowed else []


def filter_schema() -> Json:
    """Describe a filter as far as a schema can; the registry judges the rest."""
    properties = {}
    for name, attribute in OF_ENDPOINTS.items():
        text: Json = {"type": "string", "minLength": 1, "maxLength": attribute.longest + 1}
        if attribute.allowed:
            text = {"type": "string", "pattern": f"^!?({'|'.join(attribute.allowed)})$"}
        texts = {"type": "array", "items": text, "minItems": 1, "maxItems": MOST_FILTERS}
        properties[name] = {"anyOf": [text, texts, *numbers(attribute)]}
    return {
        "type": "object",
        "description": "Filter that selects endpoints by their attributes, including endpoints "
        "that are registered later. For each attribute in the filter, an endpoint must match at "
        "least one of the listed values. A leading `!` excludes a value.",
        "properties": properties,
        "minProperties": 1,
        "additionalProperties": False,
    }


Filter = Annotated[dict[str, Any], WithJsonSchema(filter_schema())]


def without_constant(schema: Json) -> None:
    """Describe "all", names or a filter as a list, an object or a text.

    Of a constant beside a list some generators make clients that refuse every list.
    """
    constant, *others = schema.pop("anyOf")
    schema["anyOf"] = [*others, {"type": constant["type"], "pattern": f"^{constant['const']}$"}]


A_FILTER = f"a filter by at least one of {either(ATTRIBUTES)} (for example, {EXAMPLE})"


def ends(meaning: str) -> FieldInfo:
    rule = f'"all", a list of endpoint names, or {A_FILTER}'
    return field(rule, meaning, strict=None, json_schema_extra=without_constant)


def end_by_filter(meaning: str) -> FieldInfo:
    """An end that names no endpoints: all of them, or a filter."""
    rule = f'"all", or {A_FILTER}'
    return field(rule, meaning, strict=None, json_schema_extra=without_constant)


Ends = Annotated[
    Literal["all"] | list[str] | dict[str, list[str]], Field(json_schema_extra=without_constant)
]


def names(row: Mesh, end: str) -> list[str]:
    return [member.name for member in getattr(row, end).all()]


def filter_at(end: str, value: object) -> dict[str, list[str]]:
    """Return the filter of an end, empty if it is not one."""
    try:
        return read_filter(value) if isinstance(value, dict) else {}
    except FilterError as error:
        raise wrong(end, f"{end}: {error}.") from error


def members(end: str, names: object) -> list[Endpoint]:
    """Return the endpoints that an end of a mesh names: none for all of them, or by filter."""
    if not isinstance(names, list):
        return []
    endpoints = list(Endpoint.objects.filter(name__in=names))
    unknown = set(names) - {endpoint.name for endpoint in endpoints}
    if unknown:
        sentence = "use names of registered endpoints"
        raise wrong(end, f"{end} “{min(unknown)}” is not known: {sentence}, or “all”.")
    return endpoints
