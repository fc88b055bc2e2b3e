"""Endpoints of records: by their own names, or by their aliases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from sonar.models import Endpoint, Site
from sonar.models.aliases import LONGEST_NAME, AliasKind
from sonar.registry import aliases
from sonar.registry.aliases import MOST_KEPT, Targets, Unknown

ENDS = ("source", "destination")
READ_IN = "results"
"""The source of unknown aliases, on the page where operators assign them."""
FEW = 3

AtSites = Mapping[int, list[Endpoint]]


@dataclass(slots=True)
class Ends:
    """Endpoints by the names that records have for them.

    ``ids`` begins with their own names, which never mean another endpoint. `learn` adds names of
    others, of which ``own_names`` says what the endpoint is called here; ``unknown`` are those that
    stand for nothing.
    """

    ids: dict[str, int]
    own_names: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, Unknown] = field(default_factory=dict, compare=False)
    _unclear: dict[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls) -> Ends:
        """Read own names. Retired endpoints too: their history may come in late. One SQL query."""
        return cls(dict(Endpoint.objects.values_list("name", "id")))

    def learn(self, names: Mapping[str, str]) -> None:
        """Find what names mean that no endpoint has, given with an example of where each stands.

        What is ambiguous is remembered up to the next call only: a file may have a million names.
        At most five SQL queries.
        """
        self._unclear.clear()
        others = {name: example for name, example in names.items() if name not in self.ids}
        if not others:
            return
        # PostgreSQL is not asked about texts that cannot be names.
        possible = [name for name in others if len(name) <= LONGEST_NAME and name.isprintable()]
        targets = aliases.find_any([name for name in possible if name])
        # The endpoints in use of all sites among them: one SQL query, or none.
        several = chain.from_iterable(targets.values())
        sites = {target.pk for target in several if isinstance(target, Site)}
        rows = Endpoint.objects.in_use().filter(site__in=sites).order_by("name")
        at_sites: defaultdict[int, list[Endpoint]] = defaultdict(list)
        for endpoint in rows if sites else ():
            at_sites[endpoint.site_id].append(endpoint)
        for name, example in others.items():
            if name in targets:
                self._keep(name, targets[name], at_sites)
            elif len(self.unknown) < MOST_KEPT:
                kind = AliasKind.SE_HOST if "." in name else AliasKind.RSE
                self.unknown[name] = Unknown(kind, name, example)

    def _keep(self, name: str, targets: Targets, at_sites: AtSites) -> None:
        """Keep the endpoint among the targets or, if there is none, that of the sites."""
        meant = [target for target in targets if isinstance(target, Endpoint)]
        meant = meant or [each for site in targets for each in at_sites.get(site.pk, ())]
        if len(meant) == 1:
            self.ids[name], self.own_names[name] = meant[0].pk, meant[0].name
        elif meant:
            few = ", ".join(sorted(endpoint.name for endpoint in meant)[:FEW])
            more = f" and {len(meant) - FEW} more" if len(meant) > FEW else ""
            sentence = f"matches {len(meant)} endpoints, {few}{more}: use the name of one of them"
            self._unclear[name] = sentence
        else:
            sites = " and ".join(site.name for site in targets)
            self._unclear[name] = f"matches {sites}, which has no endpoint in use"

    def problem(self, name: str) -> str:
        """Say of a name why it means no endpoint, as the rest of a sentence; empty if it does."""
        if name in self.ids:
            return ""
        return self._unclear.get(
            name, "is not registered: it is neither an endpoint nor an alias of one"
        )

    def own_name(self, name: str) -> str:
        return self.own_names.get(name, name)


def named_by(links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the names of the ends of links, each with an example of where it stands."""
    names: dict[str, str] = {}
    for source, destination in dict.fromkeys(links):
        names.setdefault(source, f"source of a transfer to {destination}")
        names.setdefault(destination, f"destination of a transfer from {source}")
    names.pop("", None)
    return names


def note_unknown(unknown: Collection[Unknown], now: datetime) -> None:
    """Count unknown aliases, for the page where operators assign them."""
    if unknown:
        aliases.note_unknown(READ_IN, unknown, now)
