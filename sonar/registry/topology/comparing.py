"""A topology and the registry -> what applying it would change, what stays, and what is left out.

Nothing is deleted, and no value that people set is changed: that is one which differs from what the
source said when it was applied last, or, of a row that it never said, from the usual one. What
another source has set stays, too: so two sources do not take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.utils import timezone

from sonar.credentials import rules
from sonar.models import Alias, Endpoint, Site
from sonar.models.aliases import AliasKind, compared
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
# Fields of a new row that it can be registered without.
OPTIONAL = ("cloud", "tier", "country", "latitude", "longitude", "wan_gbit_s", "label", "software")
# Why an endpoint is retired on behalf of a source, kept among its values: it is new, and nobody has
# taken it into use; or it was in use until the source switched it off.
HELD, NEW, OFF = "held", "new", "off"


def compare(topology: Topology, *, joins: bool = False, retires: bool = False) -> Changes:
    """Compare, without changing anything. Ten SQL queries, and some for each moved endpoint.

    ``joins``: new endpoints are in use at once, and so are those that wait for it. ``retires``:
    endpoints that the source does not say any more are retired.
    """
    comparison = _Comparison(topology, Changes(topology.source, joins=joins, retires=retires))
    for site in topology.sites:
        comparison.see_site(site)
    comparison.see_endpoints(topology.endpoints)
    if topology.software:
        comparison.see_software(topology.software)
    for alias in topology.aliases:
        comparison.see_alias(alias)
    if topology.endpoints:  # a document of sites alone says nothing of endpoints
        comparison.see_gone({*topology.unread})
    changes = comparison.changes
    changes.left_out += topology.left_out
    changes.remarks += topology.remarks
    changes.costs = costs(changes)
    return changes


class _OccupiedError(Exception):
    """An endpoint cannot have its name or place yet: another one has it, and may give it up."""


class _Comparison:
    def __init__(self, topology: Topology, changes: Changes) -> None:
        self.source, self.adds = topology.source, topology.adds
        self.changes = changes
        self.registered = Registered()
        # By what the source calls them.
        self._sites: dict[str, Site] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._site_rows = dict(self.registered.sites)
        # Rows that something of the source is already.
        self._taken: set[tuple[str, str]] = set()
        self._now = timezone.now()
        self._is_last_time = False
        # Endpoints by the names of the source; and the names of those that have an id there.
        self._matched: dict[str, Endpoint] = {}
        self._names: set[str] = set()

    def see_site(self, facts: SiteFacts) -> None:
        row = self.registered.site_of(self.source, facts)
        if row is None and not self.adds:
            self.changes.unknown_sites.append(facts.name)
            return
        row = row or Site(name=facts.name)
        values = facts.model_dump(exclude={"name"}, exclude_none=True)
        if self._see(row, facts.name, values):
            self._sites[facts.name] = self._site_rows[row.name] = row

    def see_endpoints(self, all_facts: Sequence[EndpointFacts]) -> None:
        """Note what becomes of endpoints, each once its name and place are free.

        An endpoint may get the place, or the name, that another one of the source gives up.
        """
        self._matched = self.registered.endpoints_of(self.source, all_facts)
        self._names = {facts.name for facts in all_facts if facts.source_id}
        pending = list(all_facts)
        while pending:
            waiting: list[EndpointFacts] = []
            for facts in pending:
                try:
                    self._see_endpoint(facts)
                except _OccupiedError:
                    waiting.append(facts)
            self._is_last_time = len(waiting) == len(pending)
            pending = waiting

    def _occupied(self, sentence: str) -> str:
        """Return why an endpoint cannot have a name or place, once no other will give it up."""
        if not self._is_last_time:
            raise _OccupiedError
        return sentence

    def _see_endpoint(self, facts: EndpointFacts) -> None:
        site = self._sites.get(facts.site) or self.registered.sites.get(facts.site)
        row = self._matched.get(facts.name)
        if row is None:
            sentence = facts.unusable
            if facts.retired:
                sentence = sentence or "it is out of use, and was never registered here"
            if site is None:
                sentence = sentence or f"its site {facts.site} is not known"
            if sentence:
                self._leave_out(facts.name, sentence)
                return
            if facts.name in self.registered.endpoints:
                sentence = (
                    "another endpoint has its name here, which the source does not mean by it. "
                    "Rename that endpoint; or, if it is this one, give it this base URL"
                )
                self._leave_out(facts.name, self._occupied(sentence))
                return
            row = Endpoint(name=facts.name, site=site, enabled=self.changes.joins)
        is_in_use = row.pk is not None and row.retired_at is None
        if facts.unusable:
            begins = f"registered, in use, and now: {facts.unusable}".replace(": it is", "", 1)
            self._leave_out(facts.name, begins if is_in_use else facts.unusable)
        if self._see(row, facts.name, self._values(row, facts, site), facts.source_id):
            self._endpoints[facts.name] = row
            self.registered.places.add(row.name, row.base_url)

    def _values(self, row: Endpoint, facts: EndpointFacts, site: Site | None) -> dict[str, Any]:
        """Return what an endpoint should be; a site and a name only if it may get another one."""
        values = facts.model_dump(include={"base_url", "label", "software"}, exclude_none=True)
        if facts.unusable:
            del values["base_url"]
        elif row.pk is not None and site is not None:
            values["site"] = site.name
        if self._gives_up_its_name(row, facts):
            values["name"] = facts.name
        return values | {"retired": bool(facts.retired or facts.unusable)}

    def _gives_up_its_name(self, row: Endpoint, facts: EndpointFacts) -> bool:
        """Say whether the source, which gave an endpoint its name, has given that to another one.

        Otherwise endpoints are called here as they were, and new names are aliases.
        """
        alias = self.registered.aliases.get((AliasKind.RSE, row.name))
        return (
            row.name in self._names - {facts.name}
            and facts.source_id != ""
            and facts.name not in self.registered.endpoints
            and alias is not None
            and alias.origin == self.source
        )

    def see_software(self, software: dict[str, str]) -> None:
        """Note the software of endpoints in use, by the hosts of their base URLs."""
        for row in self.registered.endpoints.values():
            words = software.get(addresses.host_of(row.base_url))
            if words and row.retired_at is None and self._see(row, row.name, {"software": words}):
                self._endpoints[row.name] = row

    def _see(self, row: Row, name: str, values: dict[str, Any], source_id: str = "") -> bool:
        """Note what becomes of a row; say whether it is, or will be, registered.

        A value that a row cannot have is left out, with a sentence, and the others are taken; a new
        row must have all that are vital. Raises _OccupiedError, and changes nothing then.
        """
        if (kind_of(row), row.name) in self._taken:
            self._leave_out(name, f"{row.name} is another one of this source already")
            return False
        lists: tuple[list[Any], ...] = (
            self.changes.kept,
            self.changes.waiting,
            self.changes.left_out,
        )
        lengths = [len(lines) for lines in lists]
        old_name = row.name
        change, last = self._decided(row, values)
        try:
            if not self._is_possible(change, name, last):
                return False
        except _OccupiedError:
            for field, value in change.before.items():
                self._set(row, field, value)
            for lines, length in zip(lists, lengths, strict=True):
                del lines[length:]
            raise
        if row.name != old_name:
            self.registered.rename(cast(Endpoint, row), old_name)
        self._taken.add((kind_of(row), row.name))
        self._remember(row, name, source_id, last)
        if change.values or change.is_new:
            of_kind = self.changes.sites if isinstance(row, Site) else self.changes.endpoints
            of_kind.append(change)
        return True

    def _is_possible(self, change: Change, name: str, last: dict[str, Any]) -> bool:
        """Take back the values that a row cannot have; say whether it can be without them."""
        said = self.registered.said_of(change.row).get(self.source)
        while problem := self._problem(change):
            field, sentence = problem
            self._leave_out(name, sentence)
            if change.is_new and field not in OPTIONAL:
                return False
            self._set(change.row, field, change.before.pop(field))
            del change.values[field], last[field]
            if said and field in said.values:
                last[field] = said.values[field]
        return True

    def _decided(self, row: Row, values: dict[str, Any]) -> tuple[Change, dict[str, Any]]:
        """Set the values that the source may set; return them, and what it has said by now."""
        said = self.registered.said_of(row)
        last = dict(said[self.source].values) if self.source in said else {}
        change = Change(row, is_new=row.pk is None)
        for field, there in values.items():
            if isinstance(row, Endpoint) and field == "retired":
                self._decide_use(row, change, last, is_off=there)
                continue
            here = row.site.name if field == "site" else getattr(row, field)  # type: ignore[union-attr]
            if not _same(field, here, there):
                owner = "" if change.is_new else self._owner(row, field, here, last)
                if owner:
                    self.changes.kept.append(Kept(row.name, field, here, there, owner))
                    continue
                change.values[field], change.before[field] = there, here
                self._set(row, field, there)
            last[field] = there
        return change, last

    def _decide_use(
        self, row: Endpoint, change: Change, last: dict[str, Any], *, is_off: bool
    ) -> None:
        """Decide whether an endpoint is in use.

        New ones wait until somebody takes them into use. The source may retire an endpoint, and
        take into use again what it retired itself; what people or another source did is kept.
        """
        others = {
            source: said.values
            for source, said in self.registered.said_of(row).items()
            if source != self.source and "retired" in said.values
        }
        before = {"retired": None, HELD: ""} | last
        is_retired, becomes, owner = row.retired_at is not None, row.retired_at is not None, ""
        held = before[HELD] if is_retired else ""  # else somebody has taken it into use since
        if change.is_new:
            becomes, held = not self.changes.joins, "" if self.changes.joins else NEW
        elif is_off and not is_retired:
            in_use_there = [source for source, theirs in others.items() if not theirs["retired"]]
            if before["retired"] or (before["retired"] is None and in_use_there):
                owner = next(iter(in_use_there), BY_HAND)
            else:
                becomes, held = True, OFF
        elif is_retired and not is_off:
            waits = NEW in (held, *(theirs.get(HELD) for theirs in others.values()))
            owner = next((source for source, theirs in others.items() if theirs["retired"]), "")
            if not (owner or waits or held == OFF):
                owner = BY_HAND
            becomes = bool(owner or (waits and not self.changes.joins))
            change.returns = not becomes and not waits
            if becomes and not owner:
                self.changes.waiting.append(row.name)
        last |= {"retired": is_off, HELD: held if becomes else ""}
        if owner:
            self.changes.kept.append(Kept(row.name, "retired", is_retired, is_off, owner))
        self._switch(row, change, retired=becomes)

    def _switch(self, row: Endpoint, change: Change, *, retired: bool) -> None:
        """Let an endpoint be in use or not, if it is otherwise now."""
        if retired != (row.retired_at is not None):
            change.values["retired"], change.before["retired"] = retired, not retired
            self._set(row, "retired", retired)
            if not retired and not change.returns and not row.enabled:
                # Whoever lets it join has seen what that costs.
                change.values["enabled"], change.before["enabled"] = True, False
                row.enabled = True

    def _owner(self, row: Row, field: str, here: Any, last: dict[str, Any]) -> str:  # noqa: ANN401
        """Say who set a value: people, or another source; empty for this one, and for nobody."""
        if field == "name":
            return ""  # it is among the values only if the source gave it
        if field in last and last[field] == here:
            return ""
        for other, said in self.registered.said_of(row).items():
            if other != self.source and said.values.get(field) == here:
                return other
        if field not in last and USUAL[kind_of(row)].get(field, here is None) == here:
            return ""
        return BY_HAND

    def _remember(self, row: Row, name: str, source_id: str, values: dict[str, Any]) -> None:
        said = self.registered.said_of(row).get(self.source)
        source_id = source_id or (said.source_id if said else "")
        if said and (said.name, said.source_id, said.values) == (name, source_id, values):
            return
        said = said or SourcedValues(source=self.source, **{kind_of(row): row})
        said.name, said.source_id, said.values = name, source_id, values
        self.changes.said.append(said)

    def _problem(self, change: Change) -> tuple[str, str] | None:
        """Return a field that a row cannot have so, and why; None if there is none.

        Raises _OccupiedError where another endpoint has the name or the place.
        """
        if not change.values and not change.is_new:
            return None
        row = change.row
        others = {column.name for column in row._meta.fields} - {*change.values}
        try:
            row.clean_fields(exclude=[*OF_OTHERS, *(() if change.is_new else others)])
        except ValidationError as error:
            field, sentences = next(iter(error.message_dict.items()))
            return field, f"{field}: {sentences[0]}"
        if (change.is_new or "name" in change.values) and (sentence := self._name_problem(row)):
            return "name", sentence
        is_moved = isinstance(row, Endpoint) and "base_url" in change.values
        sentence = self._place_problem(change) if is_moved else ""
        return ("base_url", sentence) if sentence else None

    def _name_problem(self, row: Row) -> str:
        try:
            row._meta.get_field("name").clean(row.name, row)
        except ValidationError:
            return f"the name cannot be one here. {NAME_SENTENCE}"
        if other := self.registered.alike(row):
            return f"its name differs only in case from {other}"
        return ""

    def _place_problem(self, change: Change) -> str:
        row = cast(Endpoint, change.row)
        try:
            row._meta.get_field("base_url").clean(row.base_url, row)
        except ValidationError as error:
            return error.messages[0]
        if sentence := addresses.problem(row.base_url):
            return sentence
        if other := self.registered.places.overlapping(row.base_url, row.name):
            return self._occupied(
                f"its base URL is that of {other}, or one of the two is inside the other"
            )
        if change.is_new:
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
        key = (facts.kind.value, compared(facts.kind, facts.name))
        alias = self.registered.aliases.get(key)
        if target is None:  # what it names is left out, and that was said
            if alias and alias.origin == self.source and self._is_another(alias, facts.endpoint):
                self.changes.dropped_aliases.append(alias)
                del self.registered.aliases[key]
            return
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

    def _is_another(self, alias: Alias, name: str) -> bool:
        """Say whether the source calls the endpoint of an alias otherwise than by this name."""
        return any(
            row.pk == alias.endpoint_id for other, row in self._matched.items() if other != name
        )

    def see_gone(self, unread: set[str]) -> None:
        """Note endpoints in use that the source said once; retire them if that is wanted."""
        meant = {row.pk for row in (*self._endpoints.values(), *self._matched.values())}
        for row in self.registered.endpoints.values():
            said = self.registered.said_of(row).get(self.source)
            if row.pk in meant or row.retired_at or said is None:
                continue
            if {said.name, said.source_id} & unread:
                continue
            self.changes.gone.append(row.name)
            if self.changes.retires:
                row.retired_at = self._now
                change = Change(row, False, values={"retired": True}, before={"retired": False})
                self.changes.endpoints.append(change)
                values = said.values | {"retired": True, HELD: OFF}
                self._remember(row, said.name, said.source_id, values)

    def _set(self, row: Row, field: str, value: Any) -> None:  # noqa: ANN401 - of whichever column
        if isinstance(row, Endpoint) and field == "retired":
            row.retired_at = self._now if value else None
        elif isinstance(row, Endpoint) and field == "site":
            row.site = self._site_rows[value]
        else:
            setattr(row, field, value)

    def _leave_out(self, name: str, sentence: str) -> None:
        self.changes.left_out.append(f"{name}: {sentence}")


def _same(field: str, here: Any, there: Any) -> bool:  # noqa: ANN401 - of whichever column
    if field == "base_url" and here:
        return bool(addresses.place_of(here) == addresses.place_of(there))
    return bool(here == there)


def _is(alias: Alias, target: Row) -> bool:
    here = alias.site or alias.endpoint
    # What is new has no key yet.
    return here is not None and (kind_of(here), here.pk or here.name) == (
        kind_of(target),
        target.pk or target.name,
    )
