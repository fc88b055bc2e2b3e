"""A topology and the registry -> what applying it would change, what stays, and what is left out.

Nothing is deleted, and no value that people set is changed: that is one which differs from what the
source said when it was applied last, or, of a row that it never said, from the usual one. What
another source has set stays, too: so two sources do not take turns.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from sonar.credentials import rules
from sonar.models import Alias, Endpoint, Site
from sonar.models.aliases import compared
from sonar.models.fields import NAME_SENTENCE
from sonar.models.topology import SourcedValues
from sonar.notation import addresses
from sonar.registry import compatibility
from sonar.registry.topology.changes import BY_HAND, Change, Changes, Kept
from sonar.registry.topology.joining import costs
from sonar.registry.topology.model import AliasFacts, EndpointFacts, SiteFacts, Topology
from sonar.registry.topology.registered import Registered, Row, kind_of

# What a row has that nobody has said anything of.
USUAL: dict[str, dict[str, Any]] = {
    "site": {
        "cloud": "",
        "tier": 2,
        "country": "",
        "latitude": None,
        "longitude": None,
        "wan_gbit_s": None,
    },
    "endpoint": {"label": "", "software": "", "retired": False},
}
# Judged for all rows together, without a query for each.
OF_OTHERS = ("site", "credential", "credential_lent", "name", "base_url")


def compare(topology: Topology, *, joins: bool = False, retires: bool = False) -> Changes:
    """Compare, without changing anything. Ten SQL queries, and some for each moved endpoint.

    ``joins``: new endpoints are in use at once, and so are those that wait for it. ``retires``:
    endpoints that the source does not say any more are retired.
    """
    comparison = _Comparison(topology, Changes(topology.source, joins=joins, retires=retires))
    for site in topology.sites:
        comparison.see_site(site)
    for endpoint in topology.endpoints:
        comparison.see_endpoint(endpoint)
    if topology.software:
        comparison.see_software(topology.software)
    for alias in topology.aliases:
        comparison.see_alias(alias)
    if topology.endpoints:  # a document of sites alone says nothing of endpoints
        comparison.see_gone()
    changes = comparison.changes
    changes.left_out += topology.left_out
    changes.remarks += topology.remarks
    changes.costs = costs(changes)
    return changes


class _Comparison:
    def __init__(self, topology: Topology, changes: Changes) -> None:
        self.source, self.adds = topology.source, topology.adds
        self.changes = changes
        self.registered = Registered()
        # By what the source calls them.
        self._sites: dict[str, Site] = {}
        self._endpoints: dict[str, Endpoint] = {}
        # Rows that something of the source is already.
        self._taken: set[tuple[str, str]] = set()
        self._now = timezone.now()

    def see_site(self, facts: SiteFacts) -> None:
        row = self.registered.site_of(self.source, facts)
        if row is None and not self.adds:
            self.changes.unknown_sites.append(facts.name)
            return
        row = row or Site(name=facts.name)
        values = facts.model_dump(exclude={"name"}, exclude_none=True)
        if self._see(row, facts.name, values):
            self._sites[facts.name] = row

    def see_endpoint(self, facts: EndpointFacts) -> None:
        site = self._sites.get(facts.site) or self.registered.sites.get(facts.site)
        row = self.registered.endpoint_of(self.source, facts)
        if row is None and site is None:
            self._leave_out(facts.name, f"its site {facts.site} is not known")
            return
        values = facts.model_dump(exclude={"name", "site"}, exclude_none=True)
        values["retired"] = bool(facts.retired)
        if row is None:
            if facts.retired:
                self._leave_out(facts.name, "it is out of use, and was never registered here")
                return
            row = Endpoint(name=facts.name, site=site, enabled=self.changes.joins)
        if self._see(row, facts.name, values):
            self._endpoints[facts.name] = row

    def see_software(self, software: dict[str, str]) -> None:
        """Note the software of endpoints in use, by the hosts of their base URLs."""
        for row in self.registered.endpoints.values():
            words = software.get(addresses.host_of(row.base_url))
            if words and row.retired_at is None and self._see(row, row.name, {"software": words}):
                self._endpoints[row.name] = row

    def _see(self, row: Row, name: str, values: dict[str, Any]) -> bool:
        """Note what becomes of a row; say whether it is, or will be, registered."""
        if (kind_of(row), row.name) in self._taken:
            self._leave_out(name, f"{row.name} is another one of this source already")
            return False
        change, last = self._decided(row, values)
        if (change.values or change.is_new) and (sentence := self._problem(change)):
            for field, value in change.before.items():
                _set(row, field, value, self._now)
            self._leave_out(name, sentence)
            return row.pk is not None
        self._taken.add((kind_of(row), row.name))
        self._remember(row, name, last)
        if change.values or change.is_new:
            of_kind = self.changes.sites if isinstance(row, Site) else self.changes.endpoints
            of_kind.append(change)
        if isinstance(row, Endpoint):
            self.registered.places.add(row.name, row.base_url)
        return True

    def _decided(self, row: Row, values: dict[str, Any]) -> tuple[Change, dict[str, Any]]:
        """Set the values that the source may set; return them, and what it has said by now."""
        said = self.registered.said_of(row)
        last = dict(said[self.source].values) if self.source in said else {}
        change = Change(row, is_new=row.pk is None)
        if isinstance(row, Endpoint) and "retired" in values:
            values = values | {"retired": self._retired(row, values["retired"], last)}
        for field, there in values.items():
            here = _get(row, field)
            if not _same(field, here, there):
                owner = "" if change.is_new else self._owner(row, field, here, last)
                if owner:
                    self.changes.kept.append(Kept(row.name, field, here, there, owner))
                    continue
                change.values[field], change.before[field] = there, here
                _set(row, field, there, self._now)
            last[field] = there
        if isinstance(row, Endpoint) and change.values.get("retired") is False and not row.enabled:
            # Whoever lets it join has seen what that costs.
            change.values["enabled"], change.before["enabled"] = True, False
            row.enabled = True
        return change, last

    def _owner(self, row: Row, field: str, here: Any, last: dict[str, Any]) -> str:  # noqa: ANN401
        """Say who set a value: people, or another source; empty for this one, and for nobody."""
        if field in last and last[field] == here:
            return ""
        for other, said in self.registered.said_of(row).items():
            if other != self.source and said.values.get(field) == here:
                return other
        if field not in last and USUAL[kind_of(row)].get(field, here is None) == here:
            return ""
        return BY_HAND

    def _retired(self, row: Endpoint, there: bool, last: dict[str, Any]) -> bool:
        """Say whether it is to be out of use: new ones are, until somebody wants tests of them."""
        waits = row.pk is None or (row.retired_at is not None and last.get("retired") is True)
        if there or not waits or self.changes.joins:
            return there
        if row.pk is not None:
            self.changes.waiting.append(row.name)
        return True

    def _remember(self, row: Row, name: str, values: dict[str, Any]) -> None:
        said = self.registered.said_of(row).get(self.source)
        if said and (said.name, said.values) == (name, values):
            return
        said = said or SourcedValues(source=self.source, **{kind_of(row): row})
        said.name, said.values = name, values
        self.changes.said.append(said)

    def _problem(self, change: Change) -> str:
        """Say why a row cannot become so; empty if it can."""
        row = change.row
        try:
            row.clean_fields(exclude=OF_OTHERS)
        except ValidationError as error:
            field, sentences = next(iter(error.message_dict.items()))
            return f"{field}: {sentences[0]}"
        sentence = self._name_problem(row) if change.is_new else ""
        if isinstance(row, Endpoint) and "base_url" in change.values:
            sentence = sentence or self._place_problem(row, is_new=change.is_new)
        return sentence

    def _name_problem(self, row: Row) -> str:
        try:
            row._meta.get_field("name").clean(row.name, row)
        except ValidationError:
            return f"the name cannot be one here. {NAME_SENTENCE}"
        if other := self.registered.alike(row):
            return f"its name differs only in case from {other}"
        return ""

    def _place_problem(self, row: Endpoint, *, is_new: bool) -> str:
        try:
            row._meta.get_field("base_url").clean(row.base_url, row)
        except ValidationError as error:
            return error.messages[0]
        if sentence := addresses.problem(row.base_url):
            return sentence
        if other := self.registered.places.overlapping(row.base_url, row.name):
            return f"its base URL is that of {other}, or one of the two is inside the other"
        if is_new:
            return ""
        if row.credential or row.credential_lent:
            sentences = list(rules.problems(row).values())
            if sentences:
                return sentences[0]
        return compatibility.endpoint_problem(row) if compatibility.is_moved(row) else ""

    def see_alias(self, facts: AliasFacts) -> None:
        """Note a name that stands for nothing yet, or that the source says otherwise now."""
        target: Row | None = self._endpoints.get(facts.endpoint) or (
            None if facts.endpoint else self._sites.get(facts.site)
        )
        if target is None:
            return  # what it names is left out, and that was said
        key = (facts.kind.value, compared(facts.kind, facts.name))
        alias = self.registered.aliases.get(key)
        field = kind_of(target)
        if alias is None:
            alias = Alias(kind=facts.kind.value, name=facts.name, origin=self.source)
            self.registered.aliases[key] = alias
        elif _is(alias, target):
            return
        elif alias.origin != self.source:
            name = f"{facts.kind.label} {facts.name}"
            self.changes.kept.append(Kept(name, "", str(alias.target), target.name, alias.origin))
            return
        alias.site = alias.endpoint = None
        setattr(alias, field, target)
        try:
            alias.clean_fields(exclude=("site", "endpoint"))
            alias.clean()
        except ValidationError as error:
            self._leave_out(f"{facts.kind.label} {facts.name}", error.messages[0])
        else:
            self.changes.aliases.append(alias)

    def see_gone(self) -> None:
        """Note endpoints in use that the source said once; retire them if that is wanted."""
        names = {row.name for row in self._endpoints.values()}
        for row in self.registered.endpoints.values():
            said = self.registered.said_of(row).get(self.source)
            if row.name in names or row.retired_at or said is None:
                continue
            self.changes.gone.append(row.name)
            if self.changes.retires:
                row.retired_at = self._now
                change = Change(row, False, {"retired": True}, {"retired": False})
                self.changes.endpoints.append(change)
                self._remember(row, said.name, said.values | {"retired": True})

    def _leave_out(self, name: str, sentence: str) -> None:
        self.changes.left_out.append(f"{name}: {sentence}")


def _get(row: Row, field: str) -> Any:  # noqa: ANN401 - of whichever column
    return row.retired_at is not None if field == "retired" else getattr(row, field)  # type: ignore[union-attr]


def _set(row: Row, field: str, value: Any, now: Any) -> None:  # noqa: ANN401 - likewise
    if field == "retired":
        row.retired_at = now if value else None  # type: ignore[union-attr]
    else:
        setattr(row, field, value)


def _same(field: str, here: Any, there: Any) -> bool:  # noqa: ANN401 - likewise
    if field == "base_url" and here:
        return bool(addresses.place_of(here) == addresses.place_of(there))
    return bool(here == there)


def _is(alias: Alias, target: Row) -> bool:
    here = alias.site or alias.endpoint
    return here is not None and (kind_of(here), here.pk, here.name) == (
        kind_of(target),
        target.pk,
        target.name,
    )
