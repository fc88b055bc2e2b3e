"""The registry as a topology is compared with it: read once, and found by what a source says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from sonar.models import Alias, Endpoint, Site
from sonar.models.aliases import AliasKind
from sonar.models.topology import SourcedValues
from sonar.notation.addresses import Places
from sonar.registry.topology.model import EndpointFacts

Row = Site | Endpoint


class Registered:
    """Rows by name; what each source said last of them; and the aliases.

    Five SQL queries.
    """

    def __init__(self) -> None:
        self.sites = {row.name: row for row in Site.objects.all()}
        endpoints = Endpoint.objects.select_related("site", "credential", "credential_lent")
        self._keep_endpoints(endpoints)
        aliases = Alias.objects.select_related("site", "endpoint")
        self.aliases = {(row.kind, row.key): row for row in aliases}
        self._said_of: defaultdict[tuple[str, int], dict[str, SourcedValues]] = defaultdict(dict)
        self._by_source: dict[tuple[str, str, str], str] = {}
        self._by_id: dict[tuple[str, str], str] = {}
        for said in SourcedValues.objects.select_related("site", "endpoint"):
            row = said.site or said.endpoint
            if row is None:
                continue
            kind = kind_of(row)
            self._said_of[kind, row.pk][said.source] = said
            self._by_source[kind, said.source, said.name] = row.name
            if said.source_id:
                self._by_id[said.source, said.source_id] = row.name
        self._site_names = {name.casefold(): name for name in self.sites}

    def _keep_endpoints(self, rows: Iterable[Endpoint]) -> None:
        self.endpoints = {row.name: row for row in rows}
        self._endpoint_names = {name.casefold(): name for name in self.endpoints}
        self.places = Places()
        for row in self.endpoints.values():
            self.places.add(row.name, row.base_url)

    def rename(self, new_names: Mapping[str, str]) -> None:
        """Rename endpoints, all at once: they may take each other's names."""
        for old_name, name in new_names.items():
            self.endpoints[old_name].name = name
        self._keep_endpoints(self.endpoints.values())

    def said_of(self, row: Row) -> dict[str, SourcedValues]:
        """Return by source what each said last of a row."""
        return self._said_of.get((kind_of(row), row.pk), {})

    def alike(self, row: Row) -> str:
        """Return another name of its kind that only its case tells from this; empty for none."""
        names = self._site_names if isinstance(row, Site) else self._endpoint_names
        other = names.setdefault(row.name.casefold(), row.name)
        return "" if other == row.name else other

    def sites_of(self, source: str, all_names: Collection[str]) -> dict[str, Site]:
        """Return by the names of a source which sites it means.

        Its name when it was applied last counts first, then the name here and that of the WLCG
        site. A site that is known by one of these is not matched by a later one.
        """
        matches: dict[str, Site] = {}
        free = set(self.sites)

        def aliased(name: str) -> str:
            alias = self.aliases.get((AliasKind.RCSITE, name))
            return alias.site.name if alias and alias.site else ""

        for find in (
            lambda name: self._by_source.get(("site", source, name), ""),
            lambda name: name,
            aliased,
        ):
            for name in all_names:
                if name not in matches and (here := find(name)) in free:
                    matches[name] = self.sites[here]
                    free.remove(here)
        return matches

    def endpoints_of(self, source: str, all_facts: Iterable[EndpointFacts]) -> dict[str, Endpoint]:
        """Return by the names of a source which endpoints it means.

        The source's id counts first, then its name when it was applied last, an alias, the name
        here, and the place. What is known by one of these is not taken by a later one. A name does
        not make an endpoint that was known by another id the same: then its place must be, too.
        """
        matches: dict[str, Endpoint] = {}
        free = set(self.endpoints)

        def aliased(facts: EndpointFacts) -> str:
            alias = self.aliases.get((AliasKind.RSE, facts.name))
            return alias.endpoint.name if alias and alias.endpoint else ""

        def named(find: Callable[[EndpointFacts], str]) -> Callable[[EndpointFacts], str]:
            def name_of(facts: EndpointFacts) -> str:
                name = find(facts)
                before = self.said_of(self.endpoints[name]).get(source) if name in free else None
                ids = {facts.source_id, before.source_id if before else ""} - {""}
                return "" if len(ids) > 1 and self.places.at(facts.base_url) != name else name

            return name_of

        for find in (
            lambda facts: self._by_id.get((source, facts.source_id), ""),
            named(lambda facts: self._by_source.get(("endpoint", source, facts.name), "")),
            named(aliased),
            named(lambda facts: facts.name),
            lambda facts: self.places.at(facts.base_url),
        ):
            for facts in all_facts:
                if facts.name not in matches and (name := find(facts)) in free:
                    matches[facts.name] = self.endpoints[name]
                    free.remove(name)
        return matches


def kind_of(row: Row) -> str:
    return "site" if isinstance(row, Site) else "endpoint"
