"""Filters that choose endpoints, as meshes keep them: `{"cloud": ["UK", "DE"], "tag": ["!tape"]}`.

They mean what the same parameters of the matrix mean at one end of its links: of several values
of an attribute one is enough, `!` excludes, and all attributes must fit.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from sonar.notation.endpoint_attributes import OF_ENDPOINTS, EndpointAttribute, value_problem
from sonar.notation.enumeration import either

# Texts by the name of an attribute; each with ! before it if it excludes.
EndpointFilter = Mapping[str, Sequence[str]]
NOT = "!"
# As many values as there may be of all filters of a question or a mesh.
MOST_FILTERS = 50
# Of a key that is none, as much is repeated.
LONGEST_KEY = 40


class FilterError(ValueError):
    """What is no filter; ``attribute`` is the key that is wrong, empty for the whole of it."""

    def __init__(self, attribute: str, sentence: str) -> None:
        super().__init__(sentence)
        self.attribute = attribute


def tidied(values: Mapping[Any, object]) -> dict[str, list[str]]:
    """Return a filter as it is kept, in the order of the attributes; raise FilterError.

    A value is a text, a whole number or a list of these.
    """
    for key in values:
        if key not in OF_ENDPOINTS:
            name = str(key)[:LONGEST_KEY]
            sentence = f"“{name}” is not an attribute of endpoints"
            raise FilterError(name, f"{sentence}: use {either([*OF_ENDPOINTS])}")
    if not values:
        raise FilterError("", f"a filter must have at least one of {either([*OF_ENDPOINTS])}")
    kept = {name: _texts(name, values[name]) for name in OF_ENDPOINTS if name in values}
    if (count := sum(map(len, kept.values()))) > MOST_FILTERS:
        sentence = f"{count} values were given, but a filter can have at most {MOST_FILTERS}"
        raise FilterError(max(kept, key=lambda name: len(kept[name])), sentence)
    return kept


def _texts(name: str, value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise FilterError(name, f"“{name}” has no value: enter a value, or remove “{name}”")
    texts = {_text(name, each) for each in values}
    return sorted(texts, key=lambda text: (text.startswith(NOT), text))


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise FilterError(
            name,
            f'“{name}” must be a string or a list of strings: put words such as "NO" in quotes',
        )
    text, attribute = str(value), OF_ENDPOINTS[name]
    if len(text.removeprefix(NOT)) > attribute.longest:  # which is not repeated
        raise FilterError(
            name, f"a value of “{name}” can have at most {attribute.longest} characters"
        )
    if sentence := value_problem(name, attribute, text.removeprefix(NOT), attribute.allowed):
        raise FilterError(name, sentence.removesuffix("."))
    return text


def from_query(text: str) -> dict[str, list[str]]:
    """Read `cloud=UK&label=DATADISK&tag=!tape`, as an address has it; raise FilterError."""
    try:
        pairs = parse_qsl(
            text.strip().removeprefix("?"), keep_blank_values=True, strict_parsing=True
        )
    except ValueError:
        sentence = (
            "this is not a filter: use the same notation as in page addresses, for example "
            "cloud=UK&label=DATADISK&tag=!tape"
        )
        raise FilterError("", sentence) from None
    values = {
        name: [value for _, value in group]
        for name, group in groupby(sorted(pairs, key=lambda pair: pair[0]), lambda pair: pair[0])
    }
    return tidied(values)


def as_query(chosen: EndpointFilter) -> str:
    """Write a filter as an address has it."""
    return urlencode(_ordered(chosen), doseq=True, safe=NOT, quote_via=quote)


def fits(chosen: EndpointFilter, texts: Callable[[str], Collection[str]]) -> bool:
    """Say whether an endpoint passes a filter; ``texts`` gives its values of an attribute."""
    return all(
        any(value in texts(attribute.name) for value in values) is not excluded
        for attribute, excluded, values in _conditions(chosen)
    )


def words(chosen: EndpointFilter) -> str:
    """Say a filter behind a noun: `of cloud UK with label DATADISK, without tag tape`."""
    said = [
        (excluded, *_said(attribute, excluded, values))
        for attribute, excluded, values in _conditions(chosen)
    ]
    included = [(before, values) for excluded, before, values in said if not excluded]
    parts = [
        f"{before} {' and '.join(values for _, values in group)}"
        for before, group in groupby(included, lambda part: part[0])
    ]
    excluding = [f"{before} {values}" for excluded, before, values in said if excluded]
    return ", ".join(filter(None, (" ".join(parts), *excluding)))


def _said(attribute: EndpointAttribute, excluded: bool, values: Sequence[str]) -> tuple[str, str]:
    """Return a preposition and what follows it."""
    own = "without" if excluded else "with"
    sites = "not of" if excluded else "of"
    # An endpoint is called by its name, as records have it.
    noun = attribute.title if attribute.many else attribute.key
    return (own if attribute.is_own else sites), f"{noun} {either(values)}"


def _conditions(
    chosen: EndpointFilter,
) -> Iterator[tuple[EndpointAttribute, bool, list[str]]]:
    """Yield attribute, whether it excludes, and the values, of which one is enough for that."""
    for name, texts in _ordered(chosen).items():
        for excluded in (False, True):
            values = list(_values(texts, excluded))
            if values:
                yield OF_ENDPOINTS[name], excluded, values


def _ordered(chosen: EndpointFilter) -> dict[str, Sequence[str]]:
    """Return a filter in the order of the attributes, which the database does not keep."""
    return {name: chosen[name] for name in sorted(chosen, key=[*OF_ENDPOINTS].index)}


def _values(texts: Iterable[str], excluded: bool) -> Iterator[str]:
    return (text.removeprefix(NOT) for text in texts if text.startswith(NOT) is excluded)
