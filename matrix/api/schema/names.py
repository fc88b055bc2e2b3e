"""Names of size classes, which are data: written into the schema when it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sonar.models import SizeClass

# Stands for the name of a size class in what `@described` says.
SIZE = "{size}"
Json = dict[str, Any]


def named(result: Json, **_: object) -> Json:
    """Put the names of size classes in place of `{size}` in parameters. One SQL query."""
    sizes = list(SizeClass.objects.values_list("name", flat=True))
    for call in (call for methods in result["paths"].values() for call in methods.values()):
        call["parameters"] = [
            variant
            for parameter in call.get("parameters", [])
            for variant in multiplied(parameter, sizes)
        ]
    return result


def multiplied(parameter: Json, sizes: Iterable[str]) -> list[Json]:
    """Return a parameter as often as there are classes if `{size}` is in its name, else once."""
    if SIZE not in parameter["name"]:
        return [parameter | {"schema": spelt_out(parameter["schema"], sizes)}]
    return [
        parameter | {name: parameter[name].replace(SIZE, size) for name in ("name", "description")}
        for size in sizes
    ]


def spelt_out(schema: Json, sizes: Iterable[str]) -> Json:
    """Return a schema with an example for each class where one of its examples has `{size}`.

    Classes are no enum: a client that is made of the schema would not know those of tomorrow.
    """
    examples = schema.get("examples", [])
    if not any(SIZE in example for example in examples):
        return schema
    texts = [example.replace(SIZE, size) for example in examples for size in sizes]
    is_a_name = examples == [SIZE]
    rest = {
        name: of for name, of in schema.items() if name != "default" or not is_a_name or of in texts
    }
    return rest | {"examples": texts or [""]}
