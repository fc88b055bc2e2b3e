"""All that the rules know of one direction of a link in one size class."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import numpy as np

from matrix.answers.conditions.reading import open_sizes
from matrix.answers.link.link_profiles import but_streams, grouped, streams_of
from matrix.answers.link.network import NetworkTests
from matrix.answers.link.overhead import Overhead
from matrix.answers.link.rate_profile import NominalCapacity, TransferProfiles, lowest
from matrix.answers.link.samples import Results
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.ordering.sweeps import SweepReport
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.cells import within_sites
from matrix.statistics.samples.quantiles import median_interval
from matrix.statistics.transfers.evidence import (
    AlikeTests,
    PeerRates,
    RateScatter,
    Slope,
    beside,
    fit_slope,
    scatter,
)
from matrix.store.transfers import LedTest, SimilarFailures
from sonar.models import Condition, Profile, Site
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import format_minute

# From so many successful tests on, the median of a link is compared with those of others.
FEWEST_TESTS = 3
# A link is slow beside others if it has at most this part of what one of its ends does elsewhere.
SLOW = 0.5
UNTESTED = NetworkTests((), ())
NOBODY = PeerRates(np.nan, 0, np.nan, np.nan, np.nan, 0)


Kind = Literal[
    "failing-pattern",
    "start-limited",
    "window-limited",
    "loss-limited",
    "at-capacity",
    "storage-limited",
    "slow-server",
    "slow-redirect",
    "slow-link",
]


@dataclass(frozen=True)
class Diagnosis:
    """``evidence`` are sentences with figures, ``next`` is what to look at.

    ``strength`` goes from 0 to 1: how much of the trouble the figures explain.
    """

    kind: Kind
    headline: str
    evidence: tuple[str, ...]
    next: str
    strength: float


@dataclass(frozen=True)
class StreamsEffect:
    """How the rate goes with the number of streams in use, from ``least`` to ``most``.

    ``each`` is the median rate of a stream in MB/s; ``origin`` says which tests these are.
    """

    slope: Slope
    least: int
    most: int
    each: float
    origin: str

    @property
    def helps(self) -> bool:
        return self.slope.trend in ("proportional", "rising")

    @property
    def is_of_no_use(self) -> bool:
        return self.slope.trend in ("flat", "falling")

    @property
    def words(self) -> str:
        factor = format_factor(self.slope.factor, *self.slope.interval)
        origin = f"n = {format_count(self.slope.n)}, {self.origin}"
        return f"{self.most} streams give {factor} the rate of {self.least} ({origin})"


@dataclass(frozen=True)
class DirectedLink:
    """One direction of a link in one size class, and the open conditions that may be its own."""

    source: EndpointInfo
    destination: EndpointInfo
    size: str
    level: str
    usual: float
    now: float
    conditions: Sequence[Condition] = ()

    def by_side(self, type_: str) -> dict[str, Condition]:
        """Return its confirmed conditions of a type in its size class, by whose they are.

        Its own is `link`, those of its ends, or of their sites, are `source` and `destination`,
        and one of all links is `grid`.
        """
        of_type = [
            each
            for each in self.conditions
            if each.confirmed_at and each.type == type_ and self.size in open_sizes(each)
        ]
        return {side: each for each in of_type for side in self.sides(each)}

    def sides(self, condition: Condition) -> Sequence[str]:
        ids = {"source": condition.source_id, "destination": condition.destination_id}
        ends = {"source": self.source, "destination": self.destination}
        if condition.scope == Condition.Scope.GRID:
            return ["grid"]
        if condition.scope == Condition.Scope.LINK:
            return ["link"] if all(ids[end] == place.id for end, place in ends.items()) else []
        if site := condition.site:
            return [end for end, place in ends.items() if place.site == site.name]
        return [end for end, place in ends.items() if place.id == ids[end]]

    def place_in(self, links: Grid) -> tuple[int | None, int | None]:
        ends = (links.sources, self.source), (links.destinations, self.destination)
        row, column = (
            next((at for at, group in enumerate(groups) if group.name == end.name), None)
            for groups, end in ends
        )
        return row, column


@dataclass(frozen=True)
class FailureEvidence:
    """How tests of one size class failed: ``hours`` (0 to 23, UTC) of each that did.

    ``groups`` are failures by cause, the most first. ``elsewhere`` has, by end, how many of the
    tests on its other links in that class failed, and how many there were.
    """

    tests: int
    hours: Integers
    hours_of_tests: Integers
    groups: Sequence[SimilarFailures]
    elsewhere: Mapping[str, tuple[int, int]]

    @property
    def failed(self) -> int:
        return len(self.hours)


class PeerEnd(NamedTuple):
    """An end of a link, as lists call it, and what it does on its other links."""

    name: str
    rates: PeerRates


@dataclass(frozen=True)
class LinkEvidence:
    """Rates are in MB/s, NaN where there is none.

    Source and destination are called as in lists. ``ok`` successes have the ``median``, within the
    95 % interval ``around`` it, and 95 % of them at most the rate ``high``; ``level``, ``usual``
    and ``now`` are those of a Direction. ``slowed`` and ``failing`` are conditions by whose they
    are: see DirectedLink.by_side. ``single`` is the median of the tests with the fewest streams,
    ``scatter`` how much tests scatter that were made alike. ``sending`` is the source on its other
    links, ``receiving`` the destination. ``disobeyed`` says which sweep with streams was of no
    use. ``rtt_ms`` is of tests of the network, or else of what servers reported of connections.
    ``led`` are tests that were led on to a data server, named only for those who may see it.
    """

    source: str
    destination: str
    size: str
    ok: int
    median: float
    high: float
    level: str
    usual: float
    now: float
    single: float
    scatter: RateScatter | None
    streams: StreamsEffect | None
    overhead: Overhead | None
    rate_profile: TransferProfiles | None
    sending: PeerRates
    receiving: PeerRates
    nominal: NominalCapacity | None
    failures: FailureEvidence | None
    network: NetworkTests = UNTESTED
    slowed: Mapping[str, Condition] = field(default_factory=dict)
    failing: Mapping[str, Condition] = field(default_factory=dict)
    rtt_ms: float | None = None
    disobeyed: str = ""
    around: tuple[float, float] = (np.nan, np.nan)
    led: Sequence[LedTest] = ()

    @property
    def ends(self) -> dict[str, PeerEnd]:
        return {
            "source": PeerEnd(self.source, self.sending),
            "destination": PeerEnd(self.destination, self.receiving),
        }

    @property
    def wants_streams(self) -> bool:
        """Say whether nothing is known of what more streams do, and a sweep could tell."""
        return self.streams is None and not self.disobeyed

    @property
    def is_slow(self) -> bool:
        """Say whether it is slower than usual, or than what its ends do on other links."""
        return self.level == "slower" or self.is_slow_beside

    @property
    def both_elsewhere(self) -> float:
        """Return the rate that both ends have on their other links; NaN unless both have any."""
        return float(np.minimum(self.sending.rate, self.receiving.rate))

    @property
    def is_slow_beside(self) -> bool:
        elsewhere = float(np.fmax(self.sending.rate, self.receiving.rate))
        return self.ok >= FEWEST_TESTS and self.median <= SLOW * elsewhere


def link_evidence(
    link: DirectedLink,
    links: Grid,
    results: Results,
    of_class: Results,
    profiles: Sequence[Profile],
    *,
    tests: Results,
    reports: Sequence[SweepReport],
    capacities: Mapping[str, float],
    overhead: Overhead | None,
    profile: TransferProfiles | None = None,
    failures: Sequence[SimilarFailures] = (),
    network: NetworkTests = UNTESTED,
    reported_round_trip_ms: float | None = None,
    led: Sequence[LedTest] = (),
) -> LinkEvidence:
    """Put together what is known; ``links`` are those of all endpoints in the same class.

    ``results`` are those of the direction in all classes and ``tests`` those in its own,
    sweeps too, of which ``of_class`` count; ``profiles`` and ``capacities`` may have more than
    theirs. ``reports`` are the newest sweeps of the link, newest first.
    """
    rates = of_class.successes
    row, column = link.place_in(links)
    peer_rates = medians(links)
    used = set(np.unique(results.profiles).tolist())
    own = [each for each in profiles if each.origin == Profile.Origin.TEST]
    fewest = min((streams_of(each) for each in own if each.id in used), default=0)
    least = [each for each in own if each.id in used and streams_of(each) == fewest]
    single = median(tests.of_profiles(least).successes)
    # That of the newest sweep that tells anything, else of the tests of the window.
    effects = map(effect_in_sweep, (each for each in reports if each.is_of_streams))
    effect = next(filter(None, effects), None) or effect_in_samples(tests, profiles)
    short, sites = links.short_names(), {link.source.site, link.destination.site}
    failed, is_failed = None, ~of_class.ok
    if is_failed.any():
        started = of_class.started.tolist()
        hours = np.array([datetime.fromtimestamp(at / 1000, UTC).hour for at in started])
        groups = [
            replace(each, by_class={link.size: count})
            for each in failures
            if (count := each.by_class.get(link.size))
        ]
        groups.sort(key=lambda group: -group.count)
        elsewhere = failed_elsewhere(links, link)
        failed = FailureEvidence(len(of_class), hours[is_failed], hours, groups, elsewhere)
    return LinkEvidence(
        source=short.get(link.source.name, link.source.name),
        destination=short.get(link.destination.name, link.destination.name),
        size=link.size,
        ok=rates.size,
        median=median(rates),
        high=float(np.quantile(rates, 0.95)) if rates.size else np.nan,
        level=link.level,
        usual=link.usual,
        now=link.now,
        single=single,
        scatter=scatter(made_alike(own, results), single / fewest) if least else None,
        streams=effect,
        disobeyed=disobeyed(reports, link.size),
        overhead=overhead,
        rate_profile=profile,
        sending=NOBODY if row is None else beside(peer_rates, row, column),
        receiving=NOBODY if column is None else beside(peer_rates.T, column, row),
        nominal=lowest({site: wan for site, wan in capacities.items() if site in sites}),
        slowed=link.by_side(Condition.Type.SLOW),
        failing=link.by_side(Condition.Type.FAILING),
        failures=failed,
        network=network,
        rtt_ms=reported_round_trip_ms if network.rtt_ms is None else network.rtt_ms,
        around=median_interval(rates),
        led=led,
    )


def made_alike(profiles: Sequence[Profile], results: Results) -> Iterator[AlikeTests]:
    """Yield groups of tests that differ at most in their concurrent tests."""
    done = results.taken(results.ok)
    for alike in grouped(profiles, lambda each: (*but_streams(each), streams_of(each))).values():
        of_group = done.of_profiles(alike)
        for size in np.unique(of_group.sizes).tolist():
            tests = of_group.of_class(size)
            yield AlikeTests(tests.successes, float(np.median(tests.bytes)))


def failed_elsewhere(links: Grid, link: DirectedLink) -> dict[str, tuple[int, int]]:
    """Return by end the failed tests on its other links, and all; nothing if it is no cell."""
    row, column = link.place_in(links)
    if row is None or column is None:
        return {}
    failed = links.cells.failed
    (out, every_out), (into, every_into) = (
        [int(of[taken].sum()) - int(of[row, column]) for of in (failed, failed + links.cells.ok)]
        for taken in ((row, slice(None)), (slice(None), column))
    )
    return {"source": (out, every_out), "destination": (into, every_into)}


def medians(links: Grid) -> Floats:
    """Return the median rates of links that have enough successes, and lead to another site."""
    is_judged = ~within_sites(links.sources, links.destinations) & (links.cells.ok >= FEWEST_TESTS)
    return np.where(is_judged, links.cells.value, np.nan)


def median(rates: Floats) -> float:
    """Return the median of some rates, NaN for none."""
    return float(np.median(rates)) if rates.size else np.nan


def nominal_capacities(sites: Collection[str]) -> dict[str, float]:
    """Return the nominal WAN capacities of sites in Gbit/s, where registered. One SQL query."""
    registered = Site.objects.filter(name__in=sites).values_list("name", "wan_gbit_s")
    return {name: wan for name, wan in registered if wan}


def beside_query(query: MatrixQuery) -> MatrixQuery:
    """Return the question to the matrix whose cells a link is compared with: medians of links."""
    return query.replace(stat="median", rows="endpoint", columns="endpoint", compare=None)


def effect_of(streams: Floats, rates: Floats, origin: str) -> StreamsEffect | None:
    """Fit the rate to the number of streams; None where the tests cannot tell."""
    slope = fit_slope(streams, rates)
    if slope is None:
        return None
    each = float(np.median(rates / streams))
    return StreamsEffect(slope, int(streams.min()), int(streams.max()), each, origin)


def effect_in_sweep(report: SweepReport) -> StreamsEffect | None:
    """Return what a sweep with streams shows, by those in use."""
    steps = [step for step in report.steps if step.transfer and not math.isnan(step.rate)]
    streams = [streams_of(step.transfer.profile) for step in steps if step.transfer]
    origin = f"sweep of {format_minute(report.sweep.requested_at)}"
    rates = np.array([step.rate for step in steps])
    return effect_of(np.array(streams, dtype=np.float64), rates, origin)


def disobeyed(reports: Iterable[SweepReport], size: str) -> str:
    """Say when a sweep in a size class last showed that servers choose streams, if so."""
    for report in reports:
        sweep = report.sweep
        of_class = sweep.size_class is not None and sweep.size_class.name == size
        if report.is_of_streams and of_class and report.is_of_one_number:
            used = int(report.numbers[0])
            return (
                f"The sweep of {format_minute(sweep.requested_at)} does not show the effect of "
                f"streams: every transfer used {used}, however many were requested."
            )
    return ""


def effect_in_samples(results: Results, profiles: Sequence[Profile]) -> StreamsEffect | None:
    """Return what tests of a window show that differ in streams only, of the most alike ones."""
    effects = []
    for alike in grouped(profiles, but_streams).values():
        done = results.taken(results.ok).of_profiles(alike)
        used = {profile.id: streams_of(profile) for profile in alike}
        streams = np.array([used[key] for key in done.profiles.tolist()], dtype=np.float64)
        if effect := effect_of(streams, done.successes, "tests in this time range"):
            effects.append(effect)
    return max(effects, key=lambda effect: effect.slope.n, default=None)
