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
    comparison.see_sites(topology.sites, [facts.site for facts in topology.endpoints])
    comparison.see_endpoints(topology.endpoints)
    if topology.software:
        comparison.see_software(topology.software)
    for alias in topology.aliases:
        comparison.see_alias(alias)
    if topology.endpoints:  # a document of sites alone says nothing of endpoints
        comparison.see_gone({*topology.unread})
    elif retires:
        sentence = "The documents contain no endpoints, so no endpoints are retired"
        comparison.changes.remarks.append(sentence)
    changes = comparison.changes
    changes.left_out += topology.left_out
    changes.remarks += topology.remarks
    changes.costs = costs(changes)
    return changes


class _OccupiedError(Exception):
    """An endpoint cannot have its place yet: another one has it, and may give it up."""


class _StuckError(Exception):
    """An endpoint cannot be where the source has it; the message says why."""


class _Comparison:
    def __init__(self, topology: Topology, changes: Changes) -> None:
        self.source, self.adds = topology.source, topology.adds
        self.changes = changes
        self.registered = Registered()
        # By what the source calls them.
        self._sites: dict[str, Site] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._site_rows = dict(self.registered.sites)
        self._now = timezone.now()
        self._is_last_time = False
        # Endpoints by the names of the source; and by their keys, what renamed ones were called.
        self._matched: dict[str, Endpoint] = {}
        self._old_names: dict[int, str] = {}
        # Which endpoint of the source has the place of another one, by the name of that.
        self._claims: dict[str, str] = {}

    def see_sites(self, all_facts: Sequence[SiteFacts], others: Sequence[str]) -> None:
        """Note what becomes of sites; ``others`` are named by endpoints, and may not be described.

        All are matched together: what people renamed is no other site of the source.
        """
        names = [facts.name for facts in all_facts]
        self._sites = self.registered.sites_of(self.source, [*names, *others])
        for facts in all_facts:
            row = self._sites.pop(facts.name, None)
            if row is None and not self.adds:
                self.changes.unknown_sites.append(facts.name)
                continue
            if row is None and facts.name in self.registered.sites:
                sentence = (
                    "this name belongs to another registered site, which has a different name in "
                    "the source"
                )
                self._leave_out(facts.name, f"{sentence}. Rename that site")
                continue
            row = row or Site(name=facts.name)
            values = facts.model_dump(exclude={"name"}, exclude_none=True)
            if self._see(row, facts.name, values):
                self._sites[facts.name] = self._site_rows[row.name] = row

    def see_endpoints(self, all_facts: Sequence[EndpointFacts]) -> None:
        """Note what becomes of endpoints, each once its place is free.

        An endpoint may get the place that another one of the source gives up, and several may
        exchange theirs.
        """
        self._matched = self.registered.endpoints_of(self.source, all_facts)
        self._follow_names(all_facts)
        pending = list(all_facts)
        while pending:
            waiting: list[EndpointFacts] = []
            for facts in pending:
                try:
                    self._see_endpoint(facts)
                except _OccupiedError:
                    waiting.append(facts)
            if len(waiting) == len(pending):
                exchanging = self._exchanging(waiting)
                for name in exchanging:
                    self.registered.places.remove(self._matched[name].name)
                self._is_last_time = not exchanging
                waiting.sort(key=lambda facts: facts.name not in exchanging)
            pending = waiting

    def _follow_names(self, all_facts: Sequence[EndpointFacts]) -> None:
        """Rename endpoints, all at once, whose names are those of others in the source by now.

        That is done only with names that the source gave. Each endpoint takes its name in the
        source; where it has none, or people gave that to another endpoint, one that says how it
        was called. All other endpoints keep their names, and new names are aliases.
        """
        source_names = {facts.name for facts in all_facts if facts.source_id}
        names_there = {row.pk: name for name, row in self._matched.items() if name in source_names}
        own_names: dict[str, str] = {}
        for name in sorted(source_names & self.registered.endpoints.keys()):
            row, owner = self.registered.endpoints[name], self._matched.get(name)
            alias = self.registered.aliases.get((AliasKind.RSE, name))
            is_given = alias is not None and alias.origin == self.source
            # A new endpoint may be the one that is gone, made again: people decide that.
            if is_given and row is not owner and (owner or row.pk in names_there):
                own_names[name] = names_there.get(row.pk, "")
        if not own_names:
            return
        taken = {name.casefold() for name in self.registered.endpoints.keys() - own_names.keys()}
        in_source = {name.casefold() for name in source_names}
        new_names: dict[str, str] = {}
        for old_name, name in own_names.items():
            new_name, number = name, 0
            while not _can_be_name(new_name) or new_name.casefold() in taken:
                number += 1
                new_name = f"{old_name[:60]}.former{number if number > 1 else ''}"
                if new_name.casefold() in in_source:
                    new_name = ""
            new_names[old_name] = new_name
            taken.add(new_name.casefold())
        rows = self.registered.endpoints
        self._old_names = {rows[old_name].pk: old_name for old_name in new_names}
        self.registered.rename(new_names)

    def _exchanging(self, waiting: Sequence[EndpointFacts]) -> set[str]:
        """Return the names of registered endpoints that can all move, if they do so together.

        Of two that wait for one place, the first has it.
        """
        moving = {facts.name: facts for facts in waiting if facts.name in self._matched}
        while True:
            leaving = {self._matched[name].name for name in moving}
            new_places = addresses.Places()
            staying = []
            for name, facts in moving.items():
                url = facts.base_url
                if self.registered.places.overlapping(url, leaving) or new_places.overlapping(url):
                    staying.append(name)
                else:
                    new_places.add(name, url)
            if not staying:
                return set(moving)
            for name in staying:
                del moving[name]

    def _see_endpoint(self, facts: EndpointFacts) -> None:
        site = self._sites.get(facts.site)
        row = self._matched.get(facts.name)
        if row is None:
            if sentence := self._refusal(facts, site):
                self._leave_out(facts.name, sentence)
                return
            row = Endpoint(name=facts.name, site=site, enabled=self.changes.joins)
        is_in_use = row.pk is not None and row.retired_at is None
        values = self._values(row, facts, site)
        try:
            is_registered = self._see(row, facts.name, values, facts.source_id)
        except _StuckError as error:
            # Where it is now is the place of another one, or of none: nothing may be tested there.
            self._see_endpoint(facts.model_copy(update={"unusable": str(error)}))
            return
        if facts.unusable:
            begins = f"registered and in use, but no longer usable: {facts.unusable}"
            self._leave_out(facts.name, begins if is_in_use else facts.unusable)
        if is_registered:
            self._endpoints[facts.name] = row
            self.registered.places.add(row.name, row.base_url)

    def _refusal(self, facts: EndpointFacts, site: Site | None) -> str:
        """Say why an endpoint that is not registered is left out; empty if it may be added."""
        reasons = {
            "the endpoint is not in use and was never registered in Sonar": facts.retired,
            f"the site {facts.site} of the endpoint is not registered": site is None,
            "another registered endpoint has this name. Rename that endpoint or, if both are the "
            "same endpoint, change its base URL to the one in the source": facts.name
            in self.registered.endpoints,
        }
        return facts.unusable or next((why for why, holds in reasons.items() if holds), "")

    def _values(self, row: Endpoint, facts: EndpointFacts, site: Site | None) -> dict[str, Any]:
        """Return what an endpoint should be; a site only if it may get another one."""
        values = facts.model_dump(include={"base_url", "label", "software"}, exclude_none=True)
        if facts.unusable:
            del values["base_url"]
        elif row.pk is not None and site is not None:
            values["site"] = site.name
        return values | {"retired": bool(facts.retired or facts.unusable)}

    def see_software(self, software: dict[str, str]) -> None:
        """Note the software of endpoints in use, by the hosts of their base URLs."""
        for row in self.registered.endpoints.values():
            words = software.get(addresses.host_of(row.base_url))
            if words and row.retired_at is None and self._see(row, row.name, {"software": words}):
                self._endpoints[row.name] = row

    def _see(self, row: Row, name: str, values: dict[str, Any], source_id: str = "") -> bool:
        """Note what becomes of a row; say whether it is, or will be, registered.

        A value that a row cannot have is left out, with a sentence, and the others are taken; a new
        row must have all that are vital. Raises _OccupiedError or _StuckError, and changes nothing
        then.
        """
        lists: tuple[list[Any], ...] = (
            self.changes.kept,
            self.changes.waiting,
            self.changes.left_out,
        )
        lengths = [len(lines) for lines in lists]
        retired_at = row.retired_at if isinstance(row, Endpoint) else None
        change, last = self._decided(row, values)
        try:
            if not self._is_possible(change, name, last):
                return False
        except (_OccupiedError, _StuckError):
            for field, value in change.before.items():
                self._set(row, field, value)
            if isinstance(row, Endpoint):
                row.retired_at = retired_at  # when it was
            for lines, length in zip(lists, lengths, strict=True):
                del lines[length:]
            raise
        self._remember(row, name, source_id, last)
        self._note(change)
        return True

    def _note(self, change: Change) -> None:
        row = change.row
        if isinstance(row, Endpoint) and (old_name := self._old_names.pop(row.pk, "")):
            change.values = {"name": row.name} | change.values
            change.before["name"] = old_name
        if change.values or change.is_new:
            of_kind = self.changes.sites if isinstance(row, Site) else self.changes.endpoints
            of_kind.append(change)

    def _is_possible(self, change: Change, name: str, last: dict[str, Any]) -> bool:
        """Take back the values that a row cannot have; say whether it can be without them."""
        said = self.registered.said_of(change.row).get(self.source)
        while problem := self._problem(change):
            field, sentence = problem
            if field == "base_url" and not change.is_new:
                raise _StuckError(sentence)
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
                self.changes.waiting.append(row)
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

        Raises _OccupiedError where another endpoint has the place, and may give it up.
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
        if change.is_new and (sentence := self._name_problem(row)):
            return "name", sentence
        is_moved = isinstance(row, Endpoint) and "base_url" in change.values
        sentence = self._place_problem(change) if is_moved else ""
        return ("base_url", sentence) if sentence else None

    def _name_problem(self, row: Row) -> str:
        if not _can_be_name(row.name):
            return f"the name is not allowed. {NAME_SENTENCE}"
        if other := self.registered.alike(row):
            return f"the name differs only in case from {other}"
        return ""

    def _place_problem(self, change: Change) -> str:
        row = cast(Endpoint, change.row)
        try:
            row._meta.get_field("base_url").clean(row.base_url, row)
        except ValidationError as error:
            return error.messages[0]
        sentences = [addresses.problem(row.base_url)]
        if not change.is_new:
            if row.credential or row.credential_lent:
                sentences += rules.problems(row).values()
            if compatibility.is_moved(row):
                sentences.append(compatibility.endpoint_problem(row))
        return next(filter(None, sentences), "") or self._occupied(change.row, row.base_url)

    def _occupied(self, row: Row, base_url: str) -> str:
        """Say which other endpoint has a place, once none will give it up; empty if it is free."""
        places = self.registered.places
        other = places.overlapping(base_url, [row.name])
        if not other:
            return ""
        if not self._is_last_time:
            raise _OccupiedError
        if row.pk and places.at(base_url) == other:
            self._claims[other] = row.name
        there = self.registered.endpoints.get(other)
        is_idle = there is not None and there.retired_at is not None
        hint = f". {other} is not in use: change its base URL" if is_idle else ""
        return (
            f"the base URL is the same as that of {other}, or one of the two URLs is below the "
            f"other{hint}"
        )

    def see_alias(self, facts: AliasFacts) -> None:
        """Note a name that stands for nothing yet, or that the source says otherwise now."""
        endpoints, sites = self._endpoints, self._sites
        target = endpoints.get(facts.endpoint) if facts.endpoint else sites.get(facts.site)
        key = (facts.kind.value, compared(facts.kind, facts.name))
        alias = self.registered.aliases.get(key)
        if target is None:  # what it names is left out, and that was said
            if alias and alias.origin == self.source and self._is_another(alias, facts.endpoint):
                self._drop(alias)
            return
        if alias and _is(alias, target):
            return
        said = f"{facts.kind.label} {facts.name}"
        is_rse = facts.kind == AliasKind.RSE
        if is_rse and self.registered.endpoints.get(facts.name, target) is not target:
            # Records mean that one by it, whatever aliases there are (records.end_names).
            sentence = "results with this name belong to another registered endpoint"
            self._leave_out(said, f"{sentence}. Rename that endpoint")
            if alias and alias.origin == self.source:
                self._drop(alias)
            return
        if alias and alias.origin != self.source:
            self.changes.kept.append(Kept(said, "", str(alias.target), target.name, alias.origin))
            return
        alias = alias or Alias(kind=facts.kind.value, name=facts.name, origin=self.source)
        self.registered.aliases[key] = alias
        self._assign(alias, target, said)

    def _assign(self, alias: Alias, target: Row, said: str) -> None:
        alias.site = alias.endpoint = None
        setattr(alias, kind_of(target), target)
        try:
            alias.clean_fields(exclude=("site", "endpoint"))
            alias.clean()
        except ValidationError as error:
            self._leave_out(said, error.messages[0])
        else:
            self.changes.aliases.append(alias)

    def _drop(self, alias: Alias) -> None:
        self.changes.dropped_aliases.append(alias)
        del self.registered.aliases[alias.kind, compared(alias.kind, alias.name)]

    def _is_another(self, alias: Alias, name: str) -> bool:
        """Say whether the source calls the endpoint of an alias otherwise than by this name."""
        return any(
            row.pk == alias.endpoint_id for other, row in self._matched.items() if other != name
        )

    def see_gone(self, unread: set[str]) -> None:
        """Note endpoints in use that the source said once.

        They are retired if that is wanted, or if the source has another endpoint at their place.
        """
        meant = {row.pk for row in (*self._endpoints.values(), *self._matched.values())}
        for row in self.registered.endpoints.values():
            if row.pk in meant:
                continue
            change = Change(row, is_new=False)
            said = self.registered.said_of(row).get(self.source)
            if said and row.retired_at is None and not {said.name, said.source_id} & unread:
                self.changes.gone.append(row.name)
                claimant = self._claims.get(row.name)
                if claimant:
                    sentence = (
                        "registered and in use, but no longer usable: the base URL now belongs to "
                        f"{claimant}"
                    )
                    self._leave_out(row.name, sentence)
                if claimant or self.changes.retires:
                    row.retired_at = self._now
                    change.values["retired"], change.before["retired"] = True, False
                    values = said.values | {"retired": True, HELD: OFF}
                    self._remember(row, said.name, said.source_id, values)
            self._note(change)

    def _set(self, row: Row, field: str, value: Any) -> None:  # noqa: ANN401 - of whichever column
        if isinstance(row, Endpoint) and field == "retired":
            row.retired_at = self._now if value else None
        elif isinstance(row, Endpoint) and field == "site":
            row.site = self._site_rows[value]
        else:
            setattr(row, field, value)

    def _leave_out(self, name: str, sentence: str) -> None:
        self.changes.left_out.append(f"{name}: {sentence}")


def _can_be_name(name: str) -> bool:
    try:
        Endpoint._meta.get_field("name").clean(name, None)
    except ValidationError:
        return False
    return True


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
