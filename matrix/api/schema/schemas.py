"""Shapes of bodies and answers: pydantic models, lists of them, JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent
from pydantic import BaseModel, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, model_json_schema

from matrix.answers.comparison.changes import KINDS
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES

Direction = Literal["request", "response"]
Json = dict[str, Any]

MODES: dict[Direction, JsonSchemaMode] = {"request": "validation", "response": "serialization"}
PLACE = "#/components/schemas/{model}"
NEXT: Json = {
    "type": ["string", "null"],
    "description": "The address of the next page; null on the last page.",
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
    """A list of rows and nothing around it."""

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


# The state of a cell or a link; the words are those of the pages.
CellState = Annotated[str, Field(json_schema_extra={"enum": list(STATES)})]


# How it is beside that, against what is usual.
CellLevel = Annotated[str, Field(json_schema_extra={"enum": list(LEVELS)})]


# How it differs from the other side of a comparison, beyond chance.
CellChange = Annotated[str, Field(json_schema_extra={"enum": list(KINDS)})]


class Error(Answer):
    """The response to every call that was refused or failed."""

    detail: str
    errors: dict[str, list[str]]


class Untitled(GenerateJsonSchema):
    """Leaves out titles of fields, which say their names again."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401
        return False


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
            rows = {"type": "array", "items": self.of(shape.row, direction)}
            fields = {**shape.also, shape.plural: rows, "next": NEXT}
            return {
                "type": "object",
                "properties": {**fields, **shape.optional},
                "required": list(fields),
                "additionalProperties": False,
            }
        if not isinstance(shape, type):
            return dict(shape)
        for name, schema in components(shape, direction).items():
            component = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema, object=name)
            if component in self.registry and self.registry[component].schema != schema:
                raise ValueError(f"Two shapes of the API are called {name}: rename one of them.")
            self.registry.register_on_missing(component)
        return {"$ref": PLACE.format(model=shape.__name__)}
