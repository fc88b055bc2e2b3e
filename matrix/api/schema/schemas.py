"""Shapes of bodies and answers: pydantic models, lists of them, JSON schemas."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent
from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, model_json_schema
from pydantic_core.core_schema import ModelSchema

from matrix.api.schema.records import At, Number
from matrix.query.attributes import BY_KEY, NAME
from matrix.statistics.cells.cell_targets import AGAINST
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from matrix.statistics.compare.two_samples import CHANGE_KINDS
from matrix.store.conditions import MARKS

Direction = Literal["request", "response"]
Json = dict[str, Any]

MODES: dict[Direction, JsonSchemaMode] = {"request": "validation", "response": "serialization"}
PLACE = "#/components/schemas/{model}"
FIELDS = Path(__file__).parent / "fields.toml"
# Answers with the fields of another one.
SAME_FIELDS = {
    "EndpointWritten": "EndpointRecord",
    "MeshWritten": "MeshRecord",
    "RegisteredSite": "SiteRecord",
    "SizeClassWritten": "SizeClassRecord",
}
NEXT: Json = {
    "type": ["string", "null"],
    "description": "URL of the next page. Null on the last page.",
}


@dataclass(frozen=True)
class Listed:
    """A page of a list: `{"<plural>": [row, ...], "next": address or null}`, and more of it.

    ``also`` is what every page has besides, ``optional`` what some have.
    """

    plural: str
    row: type[BaseModel]
    also: Mapping[str, Json] = field(default_factory=dict)
    optional: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    row: type[BaseModel]
    least: int
    most: int


# As a JSON schema that stands as it is, a mapping.
Shape = type[BaseModel] | Listed | Many | Mapping[str, Any]


class Answer(BaseModel, extra="forbid"):
    """Base of what calls answer: the fields that it names and no others.

    A field with a default may be left out of an answer.
    """


class Body(BaseModel, extra="forbid"):
    """Base of what calls take. A field with a default may be left out."""


def word_of(allowed: Iterable[str]) -> FieldInfo:
    """Return what says that a text is one of these words."""
    info: FieldInfo = Field(json_schema_extra={"enum": list(allowed)})
    return info


# The state of a cell or a link, in the words of the pages; how it is beside that, against what is
# usual; and how it differs from the other side of a comparison, significantly.
CellState = Annotated[str, word_of(STATES)]
CellLevel = Annotated[str, word_of(LEVELS)]
CellMark = Annotated[str, word_of(MARKS)]
CellAgainst = Annotated[str, word_of(AGAINST)]
CellChange = Annotated[str, word_of(CHANGE_KINDS)]


# Results of other origins are in no figure unless they are asked for.
OtherOrigins = Annotated[
    dict[str, int],
    Field(
        description="For each origin, the number of results that are not included because the "
        "query has no filter on `origin`. Empty if all results are included."
    ),
]


class Error(Answer):
    """The response to a request that was rejected or that failed."""

    detail: str
    errors: dict[str, list[str]]


def answer_of(kind: type[Any], name: str) -> type[Answer]:
    """Return the answer that has the fields of a dataclass in their order, and its docstring."""
    kinds = get_type_hints(kind, include_extras=True)
    columns: dict[str, Any] = {field.name: (kinds[field.name], ...) for field in fields(kind)}
    return create_model(name, __base__=Answer, __module__=__name__, __doc__=getdoc(kind), **columns)


def like(kind: type[Any], names: str, **types: Any) -> type[Answer]:  # noqa: ANN401 - of fields
    """Return the base of an answer that tells, by these names, what things of a class have.

    A rate says its unit, `now_mb_s`, and a number that is none is null. ``types`` are those of
    fields that are written otherwise.
    """
    hints = get_type_hints(kind)
    columns: dict[str, Any] = {}
    for name in names.split():
        own = name.removesuffix("_mb_s")
        if (hint := types.get(name)) is None:
            hint = hints.get(own) or get_type_hints(getattr(kind, own).fget)["return"]
            hint = Annotated[Number if hint is float else hint, At(own)]
        columns[name] = (hint, ...)
    return create_model(kind.__name__, __base__=Answer, **columns)


def with_facts(
    name: str, words: str, flags: Iterable[str], *, shared: bool = False
) -> type[Answer]:
    """Return the schema of an endpoint; where several share facts, one may be null."""
    facts: dict[str, Any] = {
        key: (attribute.kind | None if shared and key != NAME else attribute.kind, ...)
        for key, attribute in BY_KEY.items()
    }
    facts |= dict.fromkeys(flags, (bool, ...))
    return create_model(name, __base__=Answer, __doc__=words, __module__=__name__, **facts)


def echo_shape(
    besides: str, optional: Iterable[str], texts: Iterable[str] = (), lists: Iterable[str] = ()
) -> Json:
    """Return the schema of the query of a list: window as two times, ``besides``, and filters.

    ``optional`` are its fields that may be null, ``texts`` those that are not, beside the times.
    """
    texts = ("start", "end", *texts)
    named: dict[str, Json] = {name: {"type": ["string", "null"]} for name in optional}
    named |= {name: {"type": "string"} for name in texts}
    named |= {name: {"type": "array", "items": {"type": "string"}} for name in lists}
    for name, schema in named.items():
        schema["description"] = field_descriptions()["Queries"][name]
    return {
        "type": "object",
        "description": "The query parameters, including default values: "
        f"time range{besides} and each filter under its name.",
        "properties": named,
        "required": [*optional, *texts, *lists],
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
    }


@cache
def field_descriptions() -> Mapping[str, Mapping[str, str]]:
    """Read fields.toml: descriptions of fields by the name of their class."""
    return tomllib.loads(FIELDS.read_text())


class Untitled(GenerateJsonSchema):
    """Leaves out titles of fields, which repeat their names, and adds their descriptions."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401
        return False

    def model_schema(self, schema: ModelSchema) -> Json:
        schema_of_model = super().model_schema(schema)
        names = [each.__name__ for each in schema["cls"].__mro__]
        described = [field_descriptions().get(SAME_FIELDS.get(each, each), {}) for each in names]
        for name, shape in schema_of_model.get("properties", {}).items():
            text = next((texts[name] for texts in described if name in texts), "")
            if text:
                shape.setdefault("description", text)
        return schema_of_model


@cache
def components(model: type[BaseModel], direction: Direction) -> Mapping[str, Json]:
    """Return the schemas of a model and of the models in it, by their names."""
    whole = model_json_schema(
        model, ref_template=PLACE, schema_generator=Untitled, mode=MODES[direction]
    )
    return {**whole.pop("$defs", {}), model.__name__: whole}


class Shapes:
    """Schemas of shapes; what has a name becomes a component of the whole schema."""

    def __init__(self, registry: ComponentRegistry) -> None:
        self.registry = registry

    def of(self, shape: Shape, direction: Direction) -> Json:
        """Return the schema of a shape; raise ValueError if two components have one name."""
        if isinstance(shape, Many):
            rows = {"type": "array", "items": self.of(shape.row, direction)}
            return rows | {"minItems": shape.least, "maxItems": shape.most}
        if isinstance(shape, Listed):
            rows = {
                "type": "array",
                "items": self.of(shape.row, direction),
                "description": "The rows of this page.",
            }
            needed = {**shape.also, shape.plural: rows, "next": NEXT}
            return {
                "type": "object",
                "properties": {**needed, **shape.optional},
                "required": list(needed),
                "additionalProperties": False,
            }
        if not isinstance(shape, type):
            return dict(shape)
        for name, schema in components(shape, direction).items():
            component = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema, object=name)
            if component in self.registry and self.registry[component].schema != schema:
                raise ValueError(f"Two schemas of the API are called {name}: rename one of them.")
            self.registry.register_on_missing(component)
        return {"$ref": PLACE.format(model=shape.__name__)}
