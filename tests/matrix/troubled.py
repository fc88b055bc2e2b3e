"""Grids in all kinds of trouble over five weeks, drawn by Python's own generator."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import permutations
from random import Random
from uuid import UUID

from sonar.models import Downtime, Endpoint, Mesh, Site, SizeClass
from sonar.results import store
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, SIZES

DAY = timedelta(days=1)
# Without a figure in any name.
NAMES = ("ALPHA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT", "GOLF", "HOTEL")
KINDS = {
    "usual": 8,
    "failing": 3,
    "slower": 3,
    "faster": 2,
    "partly": 2,
    "failed": 1,
    "gone": 1,
    "new": 1,
}
# Where a test fails, and with which words.
ERRORS = (
    ("destination", "507 Insufficient Storage"),
    ("source", "too many transfers"),
    ("destination", "HTTP 403 Permission refused"),
    ("transfer", "no bytes for 60 s"),
    ("control", "no worker was free"),
)
FINE = ("", "")
EVERY = {"small": 16, "medium": 16, "large": 6}
# In how many hours before now a link begins to be what it is.
BEGINS = (26.0, 100.0)


@dataclass(frozen=True)
class Trouble:
    """What happens to a link in the size classes that it happens to, since a moment."""

    kind: str
    sizes: tuple[str, ...]
    since: datetime
    factor: float
    errors: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TroubledGrid:
    """``ends`` by name; one site sends at a part of what all others do, if ``slow`` names it."""

    ends: dict[str, Endpoint]
    slow: str
    troubles: dict[tuple[str, str], Trouble]


def make(seed: int) -> TroubledGrid:
    """Make it; what a seed gives is always the same."""
    chance = Random(seed)
    names = NAMES[: 5 + seed % 3]
    sites = Site.objects.bulk_create(Site(name=name, tier=2) for name in names)
    ends = world.endpoints((f"{site.name}_DISK", site) for site in sites)
    slow = chance.choice(sorted(ends)) if seed % 2 else ""
    troubles = {
        pair: trouble(chance, alone=pair[0] == slow) for pair in permutations(sorted(ends), 2)
    }
    world.schedule(
        Mesh.objects.create(name="everything"), *permutations(ends.values(), 2), every=6 * 3600
    )
    if seed % 4 == 3:
        Downtime.objects.create(
            site=sites[-1], starts_at=NOW - HOUR, ends_at=NOW + 5 * HOUR, reason="new disks"
        )
    store.store(history(chance, ends, slow, troubles), ids_are_new=True)
    return TroubledGrid(ends, slow, troubles)


def trouble(chance: Random, *, alone: bool) -> Trouble:
    """Draw what happens to a link; to those of the slow site nothing else does."""
    kind = "usual" if alone else chance.choices(list(KINDS), list(KINDS.values()))[0]
    sizes = tuple(SIZES) if chance.random() < 0.5 else tuple(chance.sample(list(SIZES), 2))
    factor = chance.uniform(0.15, 0.45) if kind == "slower" else chance.uniform(2.2, 6)
    begun = NOW - timedelta(hours=chance.uniform(*BEGINS))
    return Trouble(kind, sizes, begun, factor, tuple(chance.sample(ERRORS, chance.choice([1, 2]))))


def history(
    chance: Random,
    ends: dict[str, Endpoint],
    slow: str,
    troubles: dict[tuple[str, str], Trouble],
) -> Iterator[store.Result]:
    classes = dict(SizeClass.objects.values_list("name", "id"))
    profile, speed = world.profile().id, {name: chance.uniform(0.7, 1.4) for name in ends}
    for (source, destination), happens in troubles.items():
        level = 20 * speed[source] * speed[destination] * (0.3 if source == slow else 1)
        for size in SIZES:
            ago = timedelta(minutes=chance.uniform(1, 60 * EVERY[size]))
            while ago < 37 * DAY:
                at = NOW - ago
                ago += timedelta(hours=EVERY[size])
                drawn = outcome(chance, happens, size, at)
                if drawn is None:
                    continue
                state, factor, (where, error) = drawn
                rate = level * factor * chance.lognormvariate(0, 0.1)
                yield store.Result(
                    id=UUID(int=chance.getrandbits(128)),
                    source_id=ends[source].id,
                    destination_id=ends[destination].id,
                    size_class_id=classes[size],
                    profile_id=profile,
                    state=state,
                    started_at=at,
                    seconds=SIZES[size] / (rate * 1e6),
                    bytes=SIZES[size],
                    error=error,
                    error_where=where,
                )


def outcome(
    chance: Random, happens: Trouble, size: str, at: datetime
) -> tuple[str, float, tuple[str, str]] | None:
    """Draw how a test ends: its state, the factor of its rate, and its error; None for no test."""
    failed = happens.errors[0]
    if happens.kind == "new" and at < NOW - 2 * DAY:
        return None
    if at < happens.since or size not in happens.sizes:
        return by_chance(chance)
    if happens.kind == "failing":
        # One error gives way to the next half-way.
        is_late = at > happens.since + (NOW - happens.since) / 2
        return "failed", 1.0, happens.errors[-1] if is_late else failed
    if happens.kind == "gone":
        return None
    if happens.kind == "partly" and chance.random() < 0.4:
        return "failed", 1.0, failed
    if happens.kind == "failed":
        return ("failed", 1.0, failed) if at > NOW - 6 * HOUR else None
    is_shifted = happens.kind in ("slower", "faster")
    return "done", happens.factor if is_shifted else 1.0, FINE


def by_chance(chance: Random) -> tuple[str, float, tuple[str, str]]:
    """Let one of a hundred tests fail, and one be lost with its worker."""
    drawn = chance.random()
    if drawn < 0.01:
        return "lost", 1.0, ("control", "the worker was lost")
    return ("failed", 1.0, chance.choice(ERRORS)) if drawn < 0.02 else ("done", 1.0, FINE)
