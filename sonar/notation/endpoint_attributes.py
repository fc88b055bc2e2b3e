"""The attributes that endpoints are chosen by, once each: by filters on links, and by meshes.

Whatever else has to do with them is derived from here, in the matrix (matrix.query.attributes has
those of transfers beside) and in filters of meshes (sonar.notation.endpoint_filters). A new one is
an entry here, and a column of a model.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sonar.notation.enumeration import not_allowed

# What an endpoint has in an attribute; one that can have several has them in order.
Value = str | int | tuple[str, ...]
# Of an endpoint: what its own column is behind, seen from there, if it is one of its site.
SITE = "site__"


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """What endpoints, and what ways of measuring, share.

    ``name`` is the parameter of its filter, ``label`` what it is called in sentences and menus;
    ``columns`` are paths from an endpoint, or from a profile, to where it is kept.
    A value is one of ``allowed``, or fits the whole of ``pattern``, which ``rule`` says in words;
    without either, or what the column itself allows, it is free text; it has at most ``longest``
    characters. It is the name of a registered row if ``registered``.
    """

    name: str
    columns: tuple[str, ...]
    label: str = ""
    allowed: tuple[str, ...] = ()
    pattern: str = ""
    rule: str = ""
    longest: int = 80
    registered: bool = False

    @property
    def title(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, kw_only=True)
class EndpointAttribute(Attribute):
    """An attribute of the endpoints of links, filtered by as `cloud`, `source_cloud` and so on.

    Of several columns all values count. ``field`` is its name in records and tables, ``kind`` the
    type of its values there, ``row`` what a row or column of it is called, if it makes any;
    ``search`` are the words that a search of a table looks into; ``finds`` says whether the
    search of all pages finds sites and endpoints by it, ``listed`` whether tables show it;
    ``example`` is a value for the docs, ``ends`` completes the sentence `Only links from or to ...`
    of the schema, where it is not `this` and the label.
    """

    ends: str = ""
    field: str = ""
    kind: Any = str
    row: str = ""
    search: tuple[str, ...] = ("{}",)
    finds: bool = False
    listed: bool = False
    example: Value = ""

    @property
    def key(self) -> str:
        """Return what records and tables call it."""
        return self.field or self.name

    @property
    def many(self) -> bool:
        """Say whether an endpoint can have several values."""
        return bool(self.kind == list[str])

    @property
    def site_columns(self) -> list[str]:
        """Return the columns that are a site's, as paths from the site."""
        return [path.removeprefix(SITE) for path in self.columns if path.startswith(SITE)]

    @property
    def is_own(self) -> bool:
        """Say whether an endpoint has it of its own, whatever its site has."""
        return len(self.site_columns) < len(self.columns)

    def value(self, columns: Sequence[Any]) -> Value:
        """Make one value of those of the columns."""
        if not self.many:
            (value,) = columns
            return value  # type: ignore[no-any-return]  # as the database has it
        return tuple(sorted({text for texts in columns for text in texts}))

    def of_site(self, site: object) -> Value:
        """Return what a site itself has, of a row of the registry."""
        return self.value([getattr(site, column) for column in self.site_columns])


ENDPOINT_ATTRIBUTES: tuple[EndpointAttribute, ...] = (
    EndpointAttribute(
        name="site", columns=("site__name",), registered=True, row="{}", finds=True, example="RAL"
    ),
    EndpointAttribute(
        name="cloud",
        ends="sites in this cloud (region)",
        columns=("site__cloud",),
        row="{}",
        listed=True,
        example="UK",
    ),
    EndpointAttribute(
        name="tier",
        ends="sites of this WLCG tier",
        columns=("site__tier",),
        kind=int,
        allowed=("0", "1", "2", "3"),
        row="Tier {}",
        search=("tier {}", "t{}"),
        listed=True,
        example=1,
    ),
    EndpointAttribute(
        name="country",
        ends="sites in this country (two-letter ISO 3166 code)",
        columns=("site__country",),
        row="{}",
        example="GB",
    ),
    EndpointAttribute(
        name="label",
        ends="endpoints with this label, for example DATADISK",
        columns=("label",),
        example="DATADISK",
    ),
    EndpointAttribute(
        name="tag",
        ends="endpoints with this tag",
        columns=("tags", "site__tags"),
        field="tags",
        kind=list[str],
        finds=True,
        example=("atlas",),
    ),
    EndpointAttribute(
        name="endpoint",
        columns=("name",),
        field="name",
        registered=True,
        row="{}",
        finds=True,
        example="RAL_DATADISK",
    ),
)

OF_ENDPOINTS = {attribute.name: attribute for attribute in ENDPOINT_ATTRIBUTES}


def texts_of(value: Value) -> tuple[str, ...]:
    """Return each of the values of an attribute as text."""
    return value if isinstance(value, tuple) else (str(value),)


def value_problem(parameter: str, attribute: Attribute, value: str, allowed: Sequence[str]) -> str:
    """Say what is wrong with a value to filter by, one of ``allowed`` if these are known.

    Empty if nothing is.
    """
    if allowed and value not in allowed:
        return f"{not_allowed(parameter, value, allowed)}."
    if attribute.pattern and not re.fullmatch(attribute.pattern, value):
        return f"{parameter} “{value}” is not {attribute.rule}."
    longest = attribute.longest
    if not value or len(value) > longest or not value.isprintable():
        return (
            f"{parameter} must be 1 to {longest} printable characters; write ! before a value to "
            "exclude it."
        )
    return ""
