"""Documents in which an element that cannot be read is left out, and the others are kept.

`Each` marks the lists and objects of a shape whose elements may be left out. Whoever imports the
report of a storage cannot correct what its software writes of itself.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import TypeAdapter, ValidationError, ValidationInfo, WrapValidator
from pydantic.functional_validators import ModelWrapValidatorHandler

from sonar.registry.topology.reading import TopologyError, wrong_places

Shape = TypeVar("Shape")
Step = int | str


class _LeftOut:
    """What is left out so far, and how to name it: the document and the path to what is read."""

    def __init__(self, name: str) -> None:
        self.name, self.path, self.sentences = name, list[Step](), list[str]()


def _each(value: object, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:  # noqa: ANN401 - a list or a dict
    """Read the elements one by one; each must be the only one of its own list or object."""
    left_out = info.context
    if not isinstance(left_out, _LeftOut):
        raise TypeError("use shaped_elements")
    if isinstance(value, list):
        elements: list[tuple[Step, Any]] = [(at, [each]) for at, each in enumerate(value)]
    elif isinstance(value, dict):
        elements = [(key, {key: each}) for key, each in value.items()]
    else:
        return handler(value)
    readable = []
    start = [info.field_name] if info.field_name else []
    for step, element in elements:
        depth = len(left_out.path)
        left_out.path += [*start, step]
        try:
            readable.append(handler(element))
        except ValidationError as error:
            place = tuple(left_out.path)
            left_out.sentences.append(wrong_places(left_out.name, error, place)[0])
        finally:
            del left_out.path[depth:]
    if isinstance(value, list):
        return [each for part in readable for each in part]
    return {key: each for part in readable for key, each in part.items()}


Each = Annotated[Shape, WrapValidator(_each)]


def shaped_elements(shape: Any, value: object, name: str) -> tuple[Any, list[str]]:  # noqa: ANN401 - a type
    """Return a decoded value as its type, and a sentence for each element that is left out.

    Raises TopologyError, with places, if the value itself is of another type, or if none of the
    elements of an object can be read.
    """
    left_out = _LeftOut(name)
    try:
        read = TypeAdapter(shape).validate_python(value, context=left_out)
    except ValidationError as error:
        raise TopologyError(wrong_places(name, error)) from None
    if left_out.sentences and not read:
        raise TopologyError(left_out.sentences)
    return read, left_out.sentences
