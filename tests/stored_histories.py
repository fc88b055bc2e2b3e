"""Simulated histories (tests.accuracy.histories) as the results of a Sonar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import numpy as np

from sonar.models import Endpoint, Site, SizeClass, Transfer
from sonar.results import store
from sonar.results.store import Result
from tests.accuracy import histories
from tests.accuracy.histories import (
    DAY,
    DESTINATION,
    HOUR,
    MIDNIGHT,
    SOURCE,
    Fault,
    Grid,
    History,
    Noise,
)
from tests.matrix.world import SIZES, endpoints

State, Where = Transfer.State, Transfer.Where
WHERE = {SOURCE: Where.SOURCE, DESTINATION: Where.DESTINATION}


NOW = MIDNIGHT + 15 * HOUR
# Rates scatter little, so that nothing but the faults is found.
QUIET = Noise(failed=0.0, scatter=0.15, scatter_sd=0.0, day_sd=0.02, flaky_links=0.0)


def moment(unix_ms: int) -> datetime:
    return datetime.fromtimestamp(unix_ms / 1000, UTC)


@dataclass(frozen=True)
class StoredHistory:
    """A history whose endpoints are registered; ``ends`` are they in the order of its places."""

    history: History
    ends: Sequence[Endpoint]

    @classmethod
    def of(cls, history: History) -> StoredHistory:
        """Register its endpoints; no result is stored yet."""
        names = [f"S{number:02}" for number in range(int(history.site.max()) + 1)]
        sites = Site.objects.bulk_create(Site(name=name) for name in names)
        ends = endpoints(
            (f"E{place:02}", sites[site]) for place, site in enumerate(history.site.tolist())
        )
        return cls(history, list(ends.values()))

    def store(self, start: int = 0, end: int = 1 << 62, share: Sequence[float] = (0, 1)) -> None:
        """Store the tests that started within these moments (Unix ms).

        Or a share of them, the same each time: (0, 0.9) and (0.9, 1) are all.
        """
        store.store(self.results(start, end, share), ids_are_new=True)

    def results(self, start: int, end: int, share: Sequence[float]) -> Iterator[Result]:
        profile = store.Profiles().id_of(mover="http-tpc", purpose="")
        classes = dict(SizeClass.objects.values_list("name", "id"))
        for name, tests in self.history.tests.items():
            drawn = np.random.default_rng(len(tests.link)).random(len(tests.link))
            chosen = (tests.started >= start) & (tests.started < end)
            chosen &= (drawn >= share[0]) & (drawn < share[1])
            for at in np.flatnonzero(chosen).tolist():
                link, rate = int(tests.link[at]), float(np.exp(tests.log_rate[at]))
                failed = not np.isfinite(rate)
                yield Result(
                    id=uuid4(),
                    source_id=self.ends[int(self.history.source[link])].id,
                    destination_id=self.ends[int(self.history.destination[link])].id,
                    size_class_id=classes[name],
                    profile_id=profile,
                    state=State.FAILED if failed else State.DONE,
                    started_at=moment(int(tests.started[at])),
                    seconds=10.0 if failed else SIZES[name] / rate,
                    bytes=SIZES[name],
                    error="Connection refused" if failed else "",
                    error_where=WHERE.get(int(tests.blamed[at]), Where.TRANSFER) if failed else "",
                )


def history_of(
    faults: Callable[[Grid], list[Fault]],
    *,
    days: int = 12,
    endpoints: int = 6,
    every_hours: dict[str, int] | None = None,
    noise: Noise | None = None,
) -> StoredHistory:
    """Register a grid with these faults, each endpoint at a site of its own; nothing is stored."""
    rng = np.random.default_rng(7)
    grid = histories.make_grid(rng, endpoints, site_sizes=(1,))
    every = {name: hours * 3600 for name, hours in (every_hours or {"large": 3}).items()}
    history = histories.simulate(
        rng, grid, NOW - days * DAY, NOW, every, faults(grid), noise or QUIET
    )
    return StoredHistory.of(history)
