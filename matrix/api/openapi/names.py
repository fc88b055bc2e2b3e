"""Names of size classes, which are data: written into the schema when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sonar.models import SizeClass

# Stands for the name of a size class in what `@described` says.
SIZE = "{size}"
Json = dict[str, Any]


def named(result: Json, **_: object) -> Json:
    """Put the names of size classes in place of `{size}` in parameters. One SQL query."""
    sizes = list(SizeClass.objects.values_list("name", flat=True))
    for call in calls(result):
        call["parameters"] = [
            one for parameter in call.get("parameters", []) for one in multiplied(parameter, sizes)
        ]
    return result


def calls(result: Json) -> Iterator[Json]:
    for methods in result["paths"].values():
        yield from methods.values()


def multiplied(parameter: Json, sizes: Iterable[str]) -> list[Json]:
    """Return a parameter as often as there are classes if `{size}` is in its name, else once."""
    if SIZE not in parameter["name"]:
        return [parameter | {"schema": spelt_out(parameter["schema"], sizes)}]
    return [
        parameter | {name: parameter[name].replace(SIZE, size) for name in ("name", "description")}
        for size in sizes
    ]


def spelt_out(schema: Json, sizes: Iterable[str]) -> Json:
    """Return a schema with a value for each class where one of its values has `{size}`."""
    if "enum" not in schema:
        return schema
    values = [
        value.replace(SIZE, size)
        for value in schema["enum"]
        for size in (sizes if SIZE in value else [""])
    ]
    known = {name: of for name, of in schema.items() if name != "default" or of in values}
    return known | {"enum": values}
