"""A JSON document of a source -> checked values; what is wrong is said with its place.

Nothing is guessed: a document that breaks off or has a name twice in one object is refused as a
whole. Of one with a value of another type, its element is left out where `elements` reads it.
"""

import json
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, TypeAdapter
from pydantic import ValidationError as WrongShapeError

from sonar.notation.addresses import is_url
from sonar.notation.enumeration import first_twice

MOST_BYTES = 100_000_000
# Of many places that are wrong, so many are named.
MOST_NAMED = 20

Shape = TypeVar("Shape")
Steps = tuple[int | str, ...]


class TopologyError(Exception):
    """A source that cannot be read: one sentence for each place that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        more = len(problems) - MOST_NAMED
        self.problems = problems[:MOST_NAMED] + ([f"and {more:,} more"] if more > 0 else [])
        super().__init__("\n".join(self.problems))


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the text contains unprintable characters")
    return text


Text = Annotated[str, StringConstraints(max_length=255), AfterValidator(_printable)]
"""On one line, and no longer than an alias may be."""


class Shaped(BaseModel):
    """An object of a source: what is not used is passed over, what is used has its type."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


def decoded(content: bytes, name: str) -> dict[str, Any]:
    """Return the object that a document is; raise TopologyError with the line of what is wrong."""
    if len(content) > MOST_BYTES:
        raise TopologyError([f"{name}: larger than {MOST_BYTES:,} bytes"])
    try:
        value = json.loads(
            content.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise TopologyError([f"{name}: byte {error.start + 1:,} is not UTF-8"]) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno:,}, column {error.colno:,}"
        raise TopologyError([f"{name}: {place}: not JSON: {error.msg}"]) from None
    except RecursionError:
        raise TopologyError([f"{name}: nested too deeply"]) from None
    except ValueError as error:  # what the hooks raise, and a number of thousands of digits
        raise TopologyError([f"{name}: {error}"]) from None
    if not isinstance(value, dict):
        raise TopologyError([f"{name}: expected a JSON object, but found {_called(value)}"])
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = first_twice(name for name, _ in pairs) or ""
        raise ValueError(f"{twice[:80]!r} appears twice in one object")
    return values


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _called(value: object) -> str:
    return {list: "a list", str: "a string", type(None): "null"}.get(type(value), "a number")


def shaped(shape: type[Shape], value: object, name: str) -> Shape:
    """Return a decoded value as the type that it should be; raise TopologyError with places."""
    try:
        return TypeAdapter(shape).validate_python(value)
    except WrongShapeError as error:
        raise TopologyError(wrong_places(name, error)) from None


def wrong_places(name: str, error: WrongShapeError, element: Steps = ()) -> list[str]:
    """Return a sentence for each place of a document that is of another type.

    ``element`` leads from the root to the only element of what was read; without it that was the
    whole document.
    """
    sentences = []
    for wrong in error.errors(include_url=False, include_input=False):
        place = (*element, *wrong["loc"][1:]) if element else wrong["loc"]
        is_object = wrong["type"] in ("model_type", "dict_type")
        why = "Input should be an object" if is_object else wrong["msg"]
        sentences.append(f"{name}: {_place(place)}: {why.removeprefix('Value error, ')}")
    return sentences


def _place(steps: Steps) -> str:
    """Write a place as `RAL_DATADISK.aprotocols.read_wan[0]`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:80]}" for step in steps)
    return path.lstrip(".") or "the document"


def shown(place: str) -> str:
    """Return a file or URL as people may read it: without what may be secret in it."""
    if not is_url(place):
        return place
    parts = urlsplit(place)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
