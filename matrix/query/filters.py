"""Filters: which links and which transfers a query speaks of."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from matrix.query.attributes import (
    BY_NAME,
    OF_PROFILES,
    OF_RESULTS,
    ORIGIN,
    PREPOSITIONS,
    SWEEP,
    ProfileAttribute,
)
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.enumeration import either

LINK_FILTERS = tuple(
    f"{end}{name}" for name in OF_ENDPOINTS for end in ("", "source_", "destination_")
)
RESULT_FILTERS = tuple(OF_RESULTS)
PROFILE_FILTERS = (*OF_PROFILES, *RESULT_FILTERS)
FILTERS = (*LINK_FILTERS, *PROFILE_FILTERS)


@dataclass(frozen=True)
class Filter:
    """One condition of the URL: `source_cloud=UK`, or `source_cloud=!UK` to exclude."""

    parameter: str
    value: str
    exclude: bool = False

    @property
    def end(self) -> str:
        """Return `source`, `destination`, or nothing: then it speaks of either end."""
        return self.parameter.rpartition("_")[0] if self.parameter in LINK_FILTERS else ""

    @property
    def attribute(self) -> str:
        return self.parameter.removeprefix(f"{self.end}_")

    @property
    def text(self) -> str:
        return f"!{self.value}" if self.exclude else self.value

    def words(self) -> str:
        return words_of([self])


def on_links(filters: Iterable[Filter]) -> list[Filter]:
    """Return the filters that choose links, and not how they were tested."""
    return [condition for condition in filters if condition.parameter in LINK_FILTERS]


def on_profiles(filters: Iterable[Filter]) -> list[Filter]:
    return [condition for condition in filters if condition.parameter in PROFILE_FILTERS]


SWEEPS = Filter("purpose", SWEEP)
NO_SWEEPS = replace(SWEEPS, exclude=True)
# What holds of each attribute that no filter names: tests alone count.
TESTS = tuple(
    Filter(name, attribute.default) for name, attribute in OF_PROFILES.items() if attribute.default
)
# What is left out of that, so that pages can say what else there is.
OTHER_ORIGINS = Filter(ORIGIN, OF_PROFILES[ORIGIN].default, exclude=True)


def counted(filters: Iterable[Filter], *, sweeps: bool = False) -> tuple[Filter, ...]:
    """Return the filters of what says how links are: tests, and no sweeps among them.

    That holds for states, rates and whatever is made of them. A filter on the origin replaces the
    first rule, one that names sweeps the second; with ``sweeps`` they always belong to
    it. Lists of single results show all that pass the filters themselves.
    """
    present = tuple(filters)
    names = {condition.parameter for condition in present}
    added = [condition for condition in TESTS if condition.parameter not in names]
    if not sweeps and not {SWEEPS, NO_SWEEPS}.intersection(present):
        added.append(NO_SWEEPS)
    return (*present, *added)


def words_of(filters: Sequence[Filter]) -> str:
    """Say alternatives of one parameter: `only from cloud UK or DE`, `not to site RAL`."""
    first = filters[0]
    attribute = BY_NAME[first.attribute]
    values = [option.value for option in filters]
    if isinstance(attribute, ProfileAttribute):
        if attribute.every and attribute.every in values:
            return f"whatever the {attribute.title}"
        before = attribute.says or f"with {attribute.title}"
        values = [attribute.words.get(value, value) for value in values]
    else:
        before = f"{PREPOSITIONS[first.end]} {attribute.title}"
    return f"{'not' if first.exclude else 'only'} {before} {either(values)}"


def by_parameter(filters: Iterable[Filter]) -> dict[str, list[str]]:
    """Return filters as they stand in a URL: texts by parameter."""
    texts: dict[str, list[str]] = {}
    for condition in filters:
        texts.setdefault(condition.parameter, []).append(condition.text)
    return texts


def alternatives(
    filters: Iterable[Filter], parameters: Container[str] = FILTERS
) -> list[list[Filter]]:
    """Put filters of one of these parameters together: any may hold, or none if they exclude."""
    together: dict[tuple[str, bool], list[Filter]] = {}
    for option in filters:
        if option.parameter in parameters:
            together.setdefault((option.parameter, option.exclude), []).append(option)
    return list(together.values())
