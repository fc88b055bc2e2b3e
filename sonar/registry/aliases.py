"""Sites and endpoints by their aliases, and a record of unknown aliases.

Readers of other services' documents call `find` with all names of a kind at once, and
`note_unknown` with the names that it did not find. Operators assign these on the Aliases page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction

from sonar.models import Alias, Endpoint, Site, UnknownAlias
from sonar.models.aliases import (
    BY_HAND,
    HOSTS,
    LONGEST_EXAMPLE,
    LONGEST_NAME,
    AliasKind,
    compared,
)
from sonar.notation.addresses import host_of

# Of one source; more would not be read by anybody.
MOST_KEPT = 500
# What a source has not said for so long is forgotten.
KEPT = timedelta(days=30)

Target = Site | Endpoint
Targets = tuple[Target, ...]
Name = tuple[str, str]
"""Its kind, and what is written there."""

SITES = (AliasKind.RCSITE, AliasKind.GOCDB_SITE, AliasKind.OSG_GROUP)
"""Kinds whose names sites have here too, without an alias."""

_NOTE = """
    INSERT INTO sonar_unknownalias (kind, name, source, example, times, first_at, last_at)
    SELECT kind, name, %(source)s, example, 1, %(now)s, %(now)s
    FROM unnest(%(kinds)s::text[], %(names)s::text[], %(examples)s::text[])
         AS told (kind, name, example)
    ON CONFLICT (source, kind, key) DO UPDATE SET
        times = sonar_unknownalias.times + 1,
        example = excluded.example,
        name = excluded.name,
        last_at = greatest(sonar_unknownalias.last_at, excluded.last_at)
"""


@dataclass(frozen=True)
class Unknown:
    """An unknown alias, with an example of where the source uses it."""

    kind: AliasKind
    name: str
    example: str = ""


def find(kind: AliasKind, names: Collection[str]) -> dict[str, Targets]:
    """Return the targets of names; unknown names are left out.

    That is the site or the endpoint of its alias; else the one that is called so; else, of a host,
    every endpoint in use whose base URL has it. At most two SQL queries, however many names.
    """
    return _find((kind,), names)


def find_any(names: Collection[str]) -> dict[str, Targets]:
    """Return the same for names of which nobody says what kind they are of: all that they may mean.

    At most four SQL queries, however many names.
    """
    return _find(tuple(AliasKind), names)


def _find(kinds: Collection[AliasKind], names: Collection[str]) -> dict[str, Targets]:
    targets = _by_alias(kinds, names)
    others = [name for name in names if name not in targets]
    return targets | _registered(kinds, others) if others else targets


def _by_alias(kinds: Collection[AliasKind], names: Collection[str]) -> dict[str, Targets]:
    """Return the targets of the names that are aliases. One SQL query."""
    keys = {name: [(kind, compared(kind, name)) for kind in kinds] for name in names}
    rows = Alias.objects.select_related("site", "endpoint__site").filter(
        kind__in=kinds, key__in={key for own in keys.values() for _, key in own}
    )
    by_key = {(alias.kind, alias.key): alias.target for alias in rows}
    targets = {name: [by_key[key] for key in own if key in by_key] for name, own in keys.items()}
    return {name: tuple(dict.fromkeys(each)) for name, each in targets.items() if each}


def _registered(kinds: Collection[AliasKind], names: Collection[str]) -> dict[str, Targets]:
    """Return what is here by these names without an alias. One SQL query for each kind of row."""
    targets: defaultdict[str, Targets] = defaultdict(tuple)
    rows: list[Target] = []
    if AliasKind.RSE in kinds:
        rows += Endpoint.objects.filter(name__in=names).select_related("site")
    if not set(SITES).isdisjoint(kinds):
        rows += Site.objects.filter(name__in=names)
    for row in rows:
        targets[row.name] += (row,)
    if not set(HOSTS).isdisjoint(kinds):
        at_hosts = by_host(endpoints_in_use())
        for name in names:
            targets[name] += tuple(at_hosts.get(compared(HOSTS[0], name), ()))
    return {name: each for name, each in targets.items() if each}


def endpoints_in_use() -> list[Endpoint]:
    """Return them by name, with their sites. One SQL query."""
    rows = Endpoint.objects.in_use().select_related("site")
    return list(rows.order_by("name"))


def by_host(endpoints: Iterable[Endpoint]) -> dict[str, list[Endpoint]]:
    """Return endpoints by the hosts of their base URLs."""
    users: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        users.setdefault(host_of(endpoint.base_url), []).append(endpoint)
    return users


@transaction.atomic
def note_unknown(source: str, unknown: Iterable[Unknown], now: datetime) -> None:
    """Count unknown aliases, each once for this reading of the source.

    Those that the source has not said for a month are forgotten, and of too many those said
    longest ago. Three SQL queries.
    """
    by_key = {(row.kind, compared(row.kind, row.name)): row for row in map(_fitting, unknown)}
    rows = [row for row in by_key.values() if row.name]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(
                _NOTE,
                {
                    "source": source,
                    "now": now,
                    "kinds": [row.kind.value for row in rows],
                    "names": [row.name for row in rows],
                    "examples": [row.example for row in rows],
                },
            )
    _forget_old(source, now)


def _fitting(unknown: Unknown) -> Unknown:
    """Return it as it can be kept: an alias may have any characters and any length."""
    name, example = (
        "".join(character if character.isprintable() else "�" for character in text)[:most]
        for text, most in ((unknown.name.strip(), LONGEST_NAME), (unknown.example, LONGEST_EXAMPLE))
    )
    return Unknown(unknown.kind, name, example)


def _forget_old(source: str, now: datetime) -> None:
    rows = UnknownAlias.objects.filter(source=source)
    rows.filter(last_at__lt=now - KEPT).delete()
    # What was dismissed stays longest: who is asked again has to answer again.
    newest_first = rows.order_by("-dismissed", "-last_at", "-times", "pk")
    too_many = newest_first.values_list("pk", flat=True)[MOST_KEPT:]
    rows.filter(pk__in=list(too_many)).delete()


@transaction.atomic
def assign(kind: str, name: str, target: Target, origin: str = BY_HAND) -> Alias:
    """Make a name an alias of a site or an endpoint, also if it is the alias of another one.

    The name is no longer unknown, in any source. Raises ValidationError for an invalid name.
    """
    rows = Alias.objects.select_for_update(of=("self",))
    alias = rows.filter(kind=kind, key=compared(kind, name)).first() or Alias(kind=kind)
    alias.name, alias.origin = name, origin
    alias.site = target if isinstance(target, Site) else None
    alias.endpoint = target if isinstance(target, Endpoint) else None
    alias.full_clean()
    alias.save()
    forget([(kind, name)])
    return alias


def forget(names: Iterable[Name]) -> None:
    """Take assigned names off the list of unknown aliases."""
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for kind, name in names:
        by_kind[kind].append(compared(kind, name))
    for kind, keys in by_kind.items():
        UnknownAlias.objects.filter(kind=kind, key__in=keys).delete()
