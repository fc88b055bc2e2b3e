"""Simulated test histories with known faults, against which a judge of the grid is measured.

Nothing here comes from the product: a judge is measured by code that knows nothing of it. All
times are Unix milliseconds, rates are bytes/s, and links are ordered pairs of endpoints.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
# 2026-11-01 00:00 UTC: each history ends within the day after.
MIDNIGHT = 1_793_491_200_000
# Log rates of a size class relative to the level of the link: small files do not fill a link.
SIZE_CLASSES = {"small": -1.2, "medium": -0.4, "large": 0.0}
NOBODY, SOURCE, DESTINATION = 0, 1, 2


@dataclass(frozen=True)
class Noise:
    """How much the rates and failures of a healthy grid vary; logarithms of rates throughout."""

    level_mb_s: float = 30.0
    level_sd: float = 1.0
    # Single tests scatter around the level of their link by this much, each link by its own.
    scatter: float = 0.25
    scatter_sd: float = 0.35
    scatter_range: tuple[float, float] = (0.12, 0.6)
    # Each link has better and worse days, the same for all size classes.
    day_sd: float = 0.08
    # The whole machine wanders, or each endpoint of its own, with this correlation time.
    wander_sd: float = 0.0
    endpoint_wander_sd: float = 0.0
    wander_hours: float = 6.0
    failed: float = 0.01
    flaky_links: float = 0.05
    flaky_failed: tuple[float, float] = (0.05, 0.1)
    # Share of the failures of a dead endpoint whose error names it; the others name nobody.
    blaming: float = 0.7


@dataclass(frozen=True, eq=False)
class Grid:
    """Links by their source and destination (places of endpoints), and the site per endpoint."""

    source: Ints
    destination: Ints
    site: Ints


@dataclass(frozen=True)
class Fault:
    """One true fault; ``factor`` is None for failing, and ``end`` while it lasts.

    ``source``, ``destination`` and ``site`` are set as the scope needs them: an endpoint that is
    slow in both directions is both source and destination. ``ramp`` milliseconds pass until the
    whole factor is reached. ``classes`` None means all size classes.
    """

    scope: str
    type: str
    start: int
    source: int | None = None
    destination: int | None = None
    site: int | None = None
    end: int | None = None
    factor: float | None = None
    ramp: int = 0
    links: tuple[int, ...] = ()
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Tests:
    """Tests of one size class, sorted by start; ``log_rate`` is NaN where the test failed.

    ``blamed`` is the endpoint that the error names: 0 nobody, 1 the source, 2 the destination.
    """

    link: Ints
    started: Ints
    log_rate: Floats
    blamed: Ints


@dataclass(frozen=True, eq=False)
class History:
    """A grid, its tests by size class until ``now``, and the truth about its faults."""

    source: Ints
    destination: Ints
    site: Ints
    now: int
    tests: Mapping[str, Tests]
    # Seconds between two tests of one link, by size class.
    every_seconds: Mapping[str, int]
    faults: tuple[Fault, ...] = field(default=())

    def until(self, now: int) -> "History":
        """Return this history as it was at an earlier moment."""
        tests = {}
        for name, each in self.tests.items():
            count = np.searchsorted(each.started, now, side="right")
            tests[name] = Tests(
                each.link[:count], each.started[:count], each.log_rate[:count], each.blamed[:count]
            )
        faults = tuple(
            replace(fault, end=None if fault.end is None or fault.end > now else fault.end)
            for fault in self.faults
            if fault.start <= now
        )
        return replace(self, now=now, tests=tests, faults=faults)


def make_grid(
    rng: np.random.Generator,
    endpoints: int,
    *,
    missing: float = 0.0,
    site_sizes: tuple[int, ...] = (1, 2, 3),
) -> Grid:
    """Link all ordered pairs of endpoints, less a ``missing`` share, at sites of these sizes."""
    site = np.repeat(np.arange(endpoints), rng.choice(site_sizes, size=endpoints))[:endpoints]
    source, destination = np.nonzero(~np.eye(endpoints, dtype=bool))
    count = round(len(source) * (1 - missing))
    kept = np.sort(rng.permutation(len(source))[:count])
    return Grid(source[kept], destination[kept], site)


def place_fault(
    grid: Grid,
    scope: str,
    place: int | tuple[int, int] | None,
    start: int,
    *,
    factor: float | None = None,
    end: int | None = None,
    ramp: int = 0,
) -> Fault:
    """Return a fault with its ends and links; ``place`` is an endpoint, a site or a link's pair."""
    source: int | None = None
    destination: int | None = None
    site: int | None = None
    match scope, place:
        case "link", (int(source), int(destination)):
            links = (grid.source == source) & (grid.destination == destination)
        case "source", int(source):
            links = grid.source == source
        case "destination", int(destination):
            links = grid.destination == destination
        case "endpoint", int(source):
            destination = source
            links = (grid.source == source) | (grid.destination == source)
        case "site", int(site):
            links = (grid.site[grid.source] == site) | (grid.site[grid.destination] == site)
        case "grid", None:
            links = np.ones(len(grid.source), dtype=bool)
        case _:
            raise ValueError(f"No fault of scope {scope} can be at {place}")
    if not links.any():
        raise ValueError(f"No link has a fault of scope {scope} at {place}")
    kind = "failing" if factor is None else "slow" if factor < 1 else "fast"
    members = tuple(np.flatnonzero(links).tolist())
    return Fault(scope, kind, start, source, destination, site, end, factor, ramp, members)


def simulate(
    rng: np.random.Generator,
    grid: Grid,
    begin: int,
    now: int,
    every_seconds: Mapping[str, int],
    faults: Iterable[Fault] = (),
    noise: Noise | None = None,
) -> History:
    """Test each link once in each interval of a size class, at a random moment of it."""
    noise, faults, count = noise or Noise(), tuple(faults), len(grid.source)
    level = np.log(noise.level_mb_s * 1e6) + noise.level_sd * rng.normal(size=count)
    scatter = noise.scatter * np.exp(noise.scatter_sd * rng.normal(size=count))
    scatter = np.clip(scatter, *noise.scatter_range)
    days = noise.day_sd * rng.normal(size=(count, (now - begin) // DAY + 2))
    flaky = rng.random(count) < noise.flaky_links
    failing = np.where(flaky, rng.uniform(*noise.flaky_failed, size=count), noise.failed)
    endpoints = len(grid.site)
    step, wander = _wander(rng, now - begin, endpoints + 1, noise.wander_hours)
    wander *= np.append(np.full(endpoints, noise.endpoint_wander_sd), noise.wander_sd)

    tests = {}
    for name, every in every_seconds.items():
        slots = -(-(now - begin) // (every * 1000))
        moment = (np.arange(slots) + rng.random((count, slots))) * every * 1000
        link, started = np.repeat(np.arange(count), slots), begin + moment.ravel().astype(np.int64)
        order = np.argsort(started, kind="stable")
        order = order[started[order] <= now]
        link, started = link[order], started[order]
        source, destination = grid.source[link], grid.destination[link]

        rate = level[link] + SIZE_CLASSES[name] + scatter[link] * rng.normal(size=len(link))
        rate += days[link, started // DAY - begin // DAY]
        at, part = np.divmod((started - begin) / step, 1)
        at = at.astype(np.int64)
        for column in (source, destination, endpoints):
            rate += wander[at, column] * (1 - part) + wander[at + 1, column] * part

        failed = rng.random(len(link)) < failing[link]
        blamed = np.full(len(link), NOBODY)
        for fault in faults:
            if fault.classes is not None and name not in fault.classes:
                continue
            member = np.zeros(count, dtype=bool)
            member[list(fault.links)] = True
            hit = member[link] & (started >= fault.start)
            hit &= started < (now + 1 if fault.end is None else fault.end)
            if fault.factor is None:
                failed |= hit
                named = hit & (rng.random(len(link)) < noise.blaming)
                blamed = np.where(named, _at_fault(fault, grid)[link], blamed)
            else:
                reached = np.clip((started - fault.start) / max(fault.ramp, 1), 0, 1)
                rate += np.where(hit, reached * np.log(fault.factor), 0)
        tests[name] = Tests(link, started, np.where(failed, np.nan, rate), blamed)
    return History(
        grid.source, grid.destination, grid.site, now, tests, dict(every_seconds), faults
    )


def _wander(rng: np.random.Generator, span: int, count: int, hours: float) -> tuple[float, Floats]:
    """Return the step in ms, and AR(1) processes of unit variance at each step (rows)."""
    step = hours * HOUR / 12
    memory = np.exp(-1 / 12)
    values = rng.normal(size=(int(span / step) + 3, count))
    values[1:] *= np.sqrt(1 - memory**2)
    for row in range(1, len(values)):
        values[row] += memory * values[row - 1]
    return step, values


def _at_fault(fault: Fault, grid: Grid) -> Ints:
    """Return, by link, the end of it that fails: an error may name it."""
    match fault.scope:
        case "source" | "endpoint":
            ours = grid.source == fault.source
        case "destination":
            ours = np.zeros(len(grid.source), dtype=bool)
        case "site":
            ours = grid.site[grid.source] == fault.site
        case _:
            return np.full(len(grid.source), NOBODY)
    return np.where(ours, SOURCE, DESTINATION)


def lasting(rng: np.random.Generator, factor: float) -> History:
    """Slow 20 links of one endpoint for the last 3 days or so, after 25 days as usual."""
    scope = str(rng.choice(["source", "destination", "endpoint"]))
    grid = make_grid(rng, 11 if scope == "endpoint" else 21)
    now = _some_moment(rng)
    start = now - 3 * DAY - int(rng.integers(-DAY // 2, DAY // 2))
    fault = place_fault(grid, scope, _an_endpoint(rng, grid), start, factor=factor)
    return simulate(rng, grid, now - 28 * DAY, now, {"large": 21_600}, [fault])


def dead_destination(rng: np.random.Generator) -> History:
    """Let all tests to one of 41 endpoints fail for a day: one or two of each of 40 links."""
    grid = make_grid(rng, 41)
    now = _some_moment(rng)
    before = int(rng.choice([DAY // 4, DAY, 7 * DAY]))
    fault = place_fault(grid, "destination", _an_endpoint(rng, grid), now - DAY)
    return simulate(rng, grid, now - DAY - before, now, {"large": 72_000}, [fault])


def quiet(
    rng: np.random.Generator,
    endpoints: int = 19,
    days: int = 30,
    tests_a_day: float | None = None,
    noise: Noise | None = None,
) -> History:
    """Let nothing happen; with ``tests_a_day`` None, each link has 4, 6, 8 or 12 a day."""
    grid = make_grid(rng, endpoints)
    now = _some_moment(rng)
    every = round(86_400 / (tests_a_day or rng.choice([4, 6, 8, 12])))
    return simulate(rng, grid, now - days * DAY, now, {"large": every}, noise=noise)


def new_mesh(rng: np.random.Generator, endpoints: int) -> History:
    """Stop a server of a mesh that is ten minutes old, each endpoint at a site of its own."""
    grid = make_grid(rng, endpoints, site_sizes=(1,))
    begin = _some_moment(rng) // MINUTE * MINUTE
    start = begin + 10 * MINUTE + int(rng.integers(2 * MINUTE))
    fault = place_fault(grid, "endpoint", _an_endpoint(rng, grid), start)
    every = {"small": 120, "medium": 300, "large": 600}
    return simulate(rng, grid, begin, begin + 30 * MINUTE, every, [fault])


def slow_links(rng: np.random.Generator, links: int = 10) -> History:
    """Slow this many of 342 links to a third, with 6 tests of each link before and 6 since."""
    grid = make_grid(rng, 19)
    now = _some_moment(rng)
    start = now - 6 * 21_600_000
    faults = [
        place_fault(grid, "link", _pair(grid, link), start, factor=1 / 3)
        for link in rng.choice(len(grid.source), size=links, replace=False)
    ]
    return simulate(rng, grid, start - 6 * 21_600_000, now, {"large": 21_600}, faults)


def drift(rng: np.random.Generator, ramp_hours: int | None) -> History:
    """Slow a whole grid of 10 to 400 links to 0.6, over these hours; with None nothing happens."""
    grid = make_grid(rng, int(rng.integers(4, 21)), missing=rng.uniform(0, 0.2))
    now = _some_moment(rng)
    start = now - int(rng.uniform(1, 3) * DAY)
    every = {"large": 86_400 // int(rng.choice([4, 6, 8, 12]))}
    faults = []
    if ramp_hours is not None:
        ramp = ramp_hours * HOUR
        faults = [place_fault(grid, "grid", None, start, factor=0.6, ramp=ramp)]
    return simulate(rng, grid, now - 14 * DAY, now, every, faults)


def several(rng: np.random.Generator) -> History:
    """Let two endpoints, a link between others and a whole site of several be slow or fail."""
    grid = make_grid(rng, 16)
    while np.bincount(grid.site).max() < 2:
        grid = make_grid(rng, 16)
    sizes = np.bincount(grid.site)
    site = int(rng.choice(np.flatnonzero(sizes > 1)))
    others = rng.permutation(np.flatnonzero(grid.site != site)).tolist()
    now = _some_moment(rng)
    faults = []
    for scope, place in (
        (str(rng.choice(["source", "destination", "endpoint"])), others[0]),
        (str(rng.choice(["source", "destination", "endpoint"])), others[1]),
        ("link", (others[2], others[3])),
        ("site", site),
    ):
        start = now - int(rng.uniform(1.5, 3.5) * DAY)
        factor = [None, 1 / 2, 1 / 3, 1 / 4][rng.integers(4)]
        factor = 1 / 3 if scope == "link" and factor == 1 / 2 else factor
        faults.append(place_fault(grid, scope, place, start, factor=factor))
    return simulate(rng, grid, now - 21 * DAY, now, {"large": 14_400}, faults)


def slow_link_of_slow_source(rng: np.random.Generator) -> History:
    """Slow a source to a half, and one of its links to a third of that; either may be first."""
    grid = make_grid(rng, 15)
    now = _some_moment(rng)
    link = int(rng.integers(len(grid.source)))
    starts = now - (rng.uniform(2, 4, size=2) * DAY).astype(np.int64)
    faults = [
        place_fault(grid, "source", int(grid.source[link]), int(starts[0]), factor=1 / 2),
        place_fault(grid, "link", _pair(grid, link), int(starts[1]), factor=1 / 3),
    ]
    return simulate(rng, grid, now - 21 * DAY, now, {"large": 14_400}, faults)


def ended(rng: np.random.Generator, factor: float | None, hours: float) -> History:
    """Let an endpoint of 21 be slow or dead for these hours, and as usual in the last two days."""
    grid = make_grid(rng, 21)
    now = _some_moment(rng)
    end = now - int(rng.uniform(2, 3) * DAY)
    start = end - int(hours * HOUR)
    fault = place_fault(grid, "endpoint", _an_endpoint(rng, grid), start, factor=factor, end=end)
    return simulate(rng, grid, now - 21 * DAY, now, {"large": 21_600}, [fault])


def _some_moment(rng: np.random.Generator) -> int:
    return MIDNIGHT + int(rng.integers(DAY))


def _an_endpoint(rng: np.random.Generator, grid: Grid) -> int:
    return int(rng.integers(len(grid.site)))


def _pair(grid: Grid, link: int) -> tuple[int, int]:
    return int(grid.source[link]), int(grid.destination[link])
