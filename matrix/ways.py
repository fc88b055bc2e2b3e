"""The ways of measuring that there are results of: what filters on profiles can ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matrix.filters import PROFILE_FILTERS, Filter, alternatives
from matrix.profiles import PROFILE_FIELDS
from sonar.models import Profile

# What must not be pooled unknowingly. The mesh is not among them: two may measure alike.
APART = ("mover", "streams", "ip_version", "origin")


@dataclass(frozen=True)
class Ways:
    """The values of each profile filter that occur together, as text; empty for unknown."""

    combinations: tuple[dict[str, str], ...]

    def passing(self, filters: Iterable[Filter]) -> Ways:
        """Return those that pass the filters; what is unknown is never an excluded value."""
        kept = self.combinations
        for some in alternatives(one for one in filters if one.parameter in PROFILE_FILTERS):
            name, exclude = some[0].parameter, some[0].exclude
            values = {one.value for one in some}
            kept = tuple(one for one in kept if (one[name] in values) != exclude)
        return Ways(kept)

    def values(self, attribute: str) -> list[str]:
        """Return the known values of an attribute, numbers in their order."""
        found = {one[attribute] for one in self.combinations if one[attribute]}
        return sorted(found, key=lambda value: value.rjust(5) if value.isdigit() else value)


def read() -> Ways:
    """Read the ways of measuring, which are few. One SQL query."""
    rows = Profile.objects.order_by().values_list(*PROFILE_FIELDS.values()).distinct()
    return Ways(tuple(dict(zip(PROFILE_FIELDS, map(text, row), strict=True)) for row in rows))


def text(value: object) -> str:
    return "" if value is None else str(value)
