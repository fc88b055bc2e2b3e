"""Filters: which links and which transfers a query speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ATTRIBUTES = ("site", "cloud", "tier", "country", "label", "endpoint")
LINK_FILTERS = tuple(
    f"{end}{attribute}" for attribute in ATTRIBUTES for end in ("", "source_", "destination_")
)
PROFILE_FILTERS = ("mover", "mode", "streams", "ip_version", "origin", "mesh", "beside")
# Whether others of Sonar's tests ran at its ends meanwhile.
ALONE, IN_COMPANY, NOT_NOTED = "0", "some", "unknown"
BESIDE_WORDS = {
    ALONE: "alone at both ends",
    IN_COMPANY: "in company",
    NOT_NOTED: "without a note of what ran beside",
}
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


def words_of(filters: Sequence[Filter]) -> str:
    """Say alternatives of one parameter: `only from cloud UK or DE`, `not to site RAL`."""
    first = filters[0]
    sign = "not" if first.exclude else "only"
    if first.parameter == "beside":
        return f"{sign} measured {either([BESIDE_WORDS[one.value] for one in filters])}"
    preposition = {"source": "from ", "destination": "to "}.get(first.end, "")
    if not preposition:
        preposition = "from or to " if first.parameter in LINK_FILTERS else "with "
    name = "IP version" if first.parameter == "ip_version" else first.attribute
    values = either([one.value for one in filters])
    return f"{sign} {preposition}{name} {values}"


def by_parameter(filters: Iterable[Filter]) -> dict[str, list[str]]:
    """Return filters as they stand in a URL: texts by parameter."""
    found: dict[str, list[str]] = {}
    for one in filters:
        found.setdefault(one.parameter, []).append(one.text)
    return found


def alternatives(filters: Iterable[Filter]) -> list[list[Filter]]:
    """Put filters of one parameter together: any of them may hold, or none if they exclude."""
    together: dict[tuple[str, bool], list[Filter]] = {}
    for one in filters:
        together.setdefault((one.parameter, one.exclude), []).append(one)
    return list(together.values())


def either(options: Sequence[str]) -> str:
    """Write `a`, `a or b`, `a, b or c`."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last
