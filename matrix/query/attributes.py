"""The attributes that links and transfers are chosen by, rows and columns grouped by, once each.

Those of endpoints are described in sonar.notation.endpoint_attributes, where meshes find them, too.
Whatever else has to do with them is derived from here: filters and their sentences, forms, SQL
and masks, columns of tables, fields of answers, parameters of the API and its schema. A new one
is an entry, and a column of a model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sonar.movers.catalogue import CLOCKS, Clock
from sonar.notation.csv_text import DATA_SERVER, MOVER
from sonar.notation.endpoint_attributes import (
    ENDPOINT_ATTRIBUTES,
    OF_ENDPOINTS,
    Attribute,
    EndpointAttribute,
    Value,
    texts_of,
)

ENDS = ("source", "destination")
# How links are said to touch what has an attribute: at one end, or at either.
PREPOSITIONS = {"": "from or to", "source": "from", "destination": "to"}


@dataclass(frozen=True, kw_only=True)
class ProfileAttribute(Attribute):
    """An attribute of how a transfer was measured.

    It has one column; ``stored`` says what is there for each value, where that is not the value
    itself, and ``words`` how a value is said, behind ``says`` or its label. ``mesh`` is the column
    of a mesh that promises it, ``promised`` the value that all tests of meshes have. ``apart`` says
    that transfers that differ in it are not pooled without a notice. ``default`` is the value of
    the results that count where no filter names the attribute, and ``every`` the value of a filter
    that all of them pass (filters.counted). ``choice`` completes the sentence `Only transfers ...`
    of the schema.
    """

    choice: str
    stored: Mapping[str, str | int | None] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    says: str = ""
    mesh: str = ""
    promised: str = ""
    apart: bool = False
    default: str = ""
    every: str = ""

    def text(self, stored: Any) -> str:  # noqa: ANN401 - a column of some type
        """Return the value that a filter has for what is in the column; empty for unknown."""
        if self.stored:
            return next(text for text, value in self.stored.items() if value == stored)
        return "" if stored is None else str(stored)


@dataclass(frozen=True, kw_only=True)
class ResultAttribute(ProfileAttribute):
    """An attribute of how a transfer was measured that is kept with each result.

    There are too many values of it for profiles (docs/decisions.md), so that segments do not have
    it: where it is asked for, results are read row by row. Only who may see the names of machines
    may ask for an ``internal`` one.
    """

    internal: bool = False


# Whether other Sonar tests ran at the source or destination at the same time.
NONE_CONCURRENT, SOME_CONCURRENT, NOT_NOTED = "none", "some", "unknown"
# Where a result comes from. Tests alone count where no filter names an origin: filters.counted.
ORIGIN = "origin"
# Why a transfer was made. Sweeps count only where they are asked for: filters.counted.
SCHEDULED, ORDERED, SWEEP = "scheduled", "ordered", "sweep"

PROFILE_ATTRIBUTES: tuple[ProfileAttribute, ...] = (
    ProfileAttribute(
        name="mover",
        columns=("mover",),
        choice="made with this transfer tool, for example, http-tpc",
        pattern=MOVER,
        rule="1 to 20 letters, digits, dots, dashes and underscores, for example, http-tpc",
        mesh="mover",
        apart=True,
    ),
    ProfileAttribute(
        name="mode",
        columns=("mode",),
        choice="that the destination fetched (`pull`), or that the source sent (`push`)",
        mesh="mode",
        apart=True,
    ),
    ProfileAttribute(
        name="streams",
        columns=("streams",),
        choice="for which this number of TCP streams was requested",
        pattern="[1-9][0-9]{0,3}",
        rule="a whole number from 1 to 9999",
        mesh="streams",
        apart=True,
    ),
    ProfileAttribute(
        name="ip_version",
        label="IP version",
        columns=("ip_version",),
        choice="over this IP version",
        allowed=("4", "6"),
        apart=True,
    ),
    ProfileAttribute(
        name="clock",
        columns=("clock",),
        choice="timed from Sonar's request (`request`), while the transfer program ran (`tool`), "
        "or by the transfer service (`service`)",
        allowed=tuple(sorted(CLOCKS)),
        words={
            Clock.REQUEST: "from Sonar's request",
            Clock.TOOL: "from the start to the end of the transfer program",
            Clock.SERVICE: "by the service that moved the files",
        },
        says="timed",
        apart=True,
    ),
    ProfileAttribute(
        name=ORIGIN,
        columns=("origin",),
        choice="of this origin, or of all origins (`all`). Default: `test`; in `transfers/`, `all`",
        allowed=("all", "external", "production", "test"),
        promised="test",
        apart=True,
        default="test",
        every="all",
    ),
    # Two meshes may measure alike.
    ProfileAttribute(
        name="mesh", columns=("mesh__name",), choice="of this mesh", registered=True, mesh="name"
    ),
    # Where this has told, matrix.statistics.transfers.evidence says so with the numbers.
    ProfileAttribute(
        name="concurrent",
        label="concurrent tests",
        columns=("concurrent",),
        choice=(
            "without concurrent Sonar tests (`none`), with concurrent tests (`some`), or without "
            "a record of concurrent tests (`unknown`)"
        ),
        allowed=(NONE_CONCURRENT, SOME_CONCURRENT, NOT_NOTED),
        stored={NONE_CONCURRENT: 0, SOME_CONCURRENT: 1, NOT_NOTED: None},
        words={
            NONE_CONCURRENT: "without concurrent tests",
            SOME_CONCURRENT: "with concurrent tests",
            NOT_NOTED: "without a record of concurrent tests",
        },
        says="measured",
        promised=NONE_CONCURRENT,
    ),
    ProfileAttribute(
        name="purpose",
        columns=("purpose",),
        choice=(
            "with this purpose: `scheduled`, `ordered` (on demand), `sweep` (parameter sweep) or "
            "`unknown`. Default: all purposes except `sweep`; in `transfers/`, all purposes"
        ),
        allowed=(SWEEP, ORDERED, SCHEDULED, NOT_NOTED),
        stored={**{name: name for name in (SCHEDULED, ORDERED, SWEEP)}, NOT_NOTED: ""},
        words={
            SCHEDULED: "on a schedule",
            ORDERED: "on demand",
            SWEEP: "as parameter sweeps",
            NOT_NOTED: "for reasons not recorded",
        },
        says="made",
        promised=SCHEDULED,
    ),
)

RESULT_ATTRIBUTES: tuple[ResultAttribute, ...] = (
    ResultAttribute(
        name="data_server",
        label="data server",
        columns=("data_server",),
        choice="whose bytes were sent or received by this data server (host:port). Requires the "
        "right to see host names",
        pattern=DATA_SERVER,
        rule="a host and its port, for example, st-048.example.org:8443",
        longest=260,
        internal=True,
    ),
)

OF_PROFILES = {attribute.name: attribute for attribute in PROFILE_ATTRIBUTES}
OF_RESULTS = {attribute.name: attribute for attribute in RESULT_ATTRIBUTES}
BY_NAME: dict[str, EndpointAttribute | ProfileAttribute] = {
    **OF_ENDPOINTS,
    **OF_PROFILES,
    **OF_RESULTS,
}
INTERNAL = tuple(name for name, attribute in OF_RESULTS.items() if attribute.internal)
# What forms offer to everybody.
OFFERED = tuple(name for name in BY_NAME if name not in INTERNAL)
DEFAULT_GROUPING = "endpoint"
GROUPINGS = tuple(
    sorted(
        (name for name, attribute in OF_ENDPOINTS.items() if attribute.row),
        key=lambda name: name != DEFAULT_GROUPING,
    )
)
# By what records and tables call them: what an endpoint is called, and what it has beside.
NAME = "name"
FACTS = {attribute.key: attribute for attribute in ENDPOINT_ATTRIBUTES if attribute.key != NAME}
BY_KEY = {NAME: OF_ENDPOINTS[DEFAULT_GROUPING], **FACTS}
# What is said of a site by one value, beside its name, and by several.
OF_SITES = {key: attribute for key, attribute in FACTS.items() if attribute.site_columns}
SITE_FACTS = {key: own for key, own in OF_SITES.items() if not (own.many or own.finds)}
SITE_LISTS = {key: own for key, own in OF_SITES.items() if own.many}


def search_text(values: Iterable[tuple[EndpointAttribute, Value]]) -> str:
    """Return what a search looks into, in lower case: a tier is found as `2`, `T2`, `Tier 2`."""
    return "\n".join(
        words.format(text)
        for attribute, value in values
        for text in texts_of(value)
        for words in attribute.search
    ).casefold()
