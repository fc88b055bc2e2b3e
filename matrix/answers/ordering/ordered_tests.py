"""Tests that people ordered on a link lately, beside what the link gave before and usually."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Self, TypeVar

import numpy as np

from matrix.answers.link import samples
from matrix.answers.link.directions import runs_of
from matrix.answers.link.link_profiles import but_streams, streams_of, without_sweeps
from matrix.answers.link.samples import Results
from matrix.answers.ordering.sweeps import one_number_words
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import PairRatio
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import UsualRates
from matrix.statistics.compare import two_samples
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.store import probes
from matrix.store.probes import ProbeProgress
from matrix.store.transfers import rate_of
from sonar.models import Probe, Profile, SizeClass, Transfer
from sonar.models.transfer import MADE_HERE
from sonar.movers.catalogue import kept
from sonar.notation.units import MB, format_count, three_digits
from sonar.notation.windows import Window

LATELY = timedelta(hours=24)
BEFORE = timedelta(days=7)
# Of each group; older ones are on the page of the link.
MOST_RESULTS = 10
Ends = tuple[EndpointInfo, EndpointInfo]
Row = TypeVar("Row")


class GroupKey(NamedTuple):
    """What ordered tests are listed by; ends are ids, streams as they were asked for."""

    source: int
    destination: int
    size_class: int
    mode: str
    streams: int

    @classmethod
    def of(cls, test: Probe | Transfer, settings: Probe | Profile) -> Self:
        ends = test.source_id, test.destination_id
        mode = kept(settings.mover).known_mode(settings.mode)
        return cls(*ends, test.size_class_id, mode, settings.streams)


@dataclass(frozen=True)
class Scatter:
    """Successful tests of a time: mean and standard deviation (n - 1) in MB/s, NaN for none."""

    mean: float
    std: float
    count: int


@dataclass(frozen=True)
class ProbeGroup:
    """Tests of one direction, size class, mode and number of streams; ``results`` oldest first.

    ``streams`` are as they were asked for, ``used`` the numbers that successes used, None among
    them where nobody can tell. ``before`` are the tests of the seven days before them that used as
    many, whoever ordered them; ``usual`` is what statistics.standing calls so, in MB/s or NaN.
    """

    source: EndpointInfo
    destination: EndpointInfo
    size_class: SizeClass
    mode: str
    streams: int
    open: Sequence[ProbeProgress]
    results: Sequence[Transfer]
    before: Scatter
    usual: float

    @property
    def used(self) -> list[int | None]:
        """Return the numbers of streams in ascending order, None first."""
        return used_by(self.results)

    @property
    def shown(self) -> Sequence[Transfer]:
        """Return the newest of the results, oldest first."""
        return self.results[-MOST_RESULTS:]


def groups(ends: Ends, now: datetime) -> list[ProbeGroup]:
    """Return the groups of a link, both ways, this direction first. Six SQL queries at most."""
    ids = [endpoint.id for endpoint in ends]
    rows = probes.rows().filter(mesh=None, source__in=ids, destination__in=ids)
    not_ended = probes.progress_of(list(rows.order_by(*probes.ORDER)), now)
    open_by_key = by_key(not_ended, lambda row: GroupKey.of(row.probe, row.probe))
    results_by_key = by_key(recent(ends, now), lambda row: GroupKey.of(row, row.profile))
    keys = {**open_by_key, **results_by_key}
    if not keys:
        return []
    window = Window(standing.days_before(now - LATELY).start, now)
    history = samples.read(ends, window, (), sweeps=True)
    profiles = Profile.objects.in_bulk(np.unique(history.profiles).tolist()).values()
    sizes = SizeClass.objects.in_bulk()
    places = {endpoint.id: endpoint for endpoint in ends}
    lines = []

    def rank(key: GroupKey) -> tuple[bool, int, str, int]:
        is_back, size = key.source != ends[0].id, sizes[key.size_class].from_bytes
        return is_back, size, key.mode, key.streams

    for key in sorted(keys, key=rank):
        results = results_by_key.get(key, [])[::-1]
        since = (results[0].started_at if results else now).replace(microsecond=0)
        link = places[key.source], places[key.destination]
        of_class = history.of_class(key.size_class)
        before = of_class.of_link(*link).during(Window(since - BEFORE, since))
        used = {number or key.streams for number in used_by(results)} or {key.streams}
        alike = (profile for profile in profiles if streams_of(profile) in used)
        lines.append(
            ProbeGroup(
                *link,
                size_class=sizes[key.size_class],
                mode=key.mode,
                streams=key.streams,
                open=open_by_key.get(key, []),
                results=results,
                before=scatter(before.of_profiles(alike)),
                usual=usual(without_sweeps(of_class, profiles, ()), link, since),
            )
        )
    return lines


def used_by(results: Iterable[Transfer]) -> list[int | None]:
    """Return the numbers of streams that those used that succeeded, None first for unknown."""
    done = (transfer for transfer in results if transfer.state == Transfer.State.DONE)
    numbers = {transfer.profile.streams_used for transfer in done}
    return sorted(numbers, key=lambda number: number or 0)


def by_key(rows: Iterable[Row], key_of: Callable[[Row], GroupKey]) -> dict[GroupKey, list[Row]]:
    grouped: dict[GroupKey, list[Row]] = {}
    for row in rows:
        grouped.setdefault(key_of(row), []).append(row)
    return grouped


def recent(ends: Ends, now: datetime) -> Iterable[Transfer]:
    """Return what was ordered here in the last 24 hours and has ended, no imports; newest first."""
    ids = [endpoint.id for endpoint in ends]
    rows = Transfer.objects.filter(
        MADE_HERE,
        source__in=ids,
        destination__in=ids,
        started_at__gte=now - LATELY,
        profile__purpose__in=[Profile.Purpose.ORDERED, Profile.Purpose.SWEEP],
    )
    return rows.select_related("profile", "size_class").order_by("-started_at", "-id")


def scatter(results: Results) -> Scatter:
    values = results.successes
    mean = float(values.mean()) if values.size else np.nan
    std = float(values.std(ddof=1)) if values.size > 1 else np.nan
    return Scatter(mean, std, values.size)


def usual(results: Results, link: Ends, since: datetime) -> float:
    """Return what is usual for a link at a moment, in MB/s; NaN where that is unknown."""
    of_usual = results.during(standing.days_before(since))
    places = tuple(sorted(link, key=lambda endpoint: endpoint.id))
    rates = UsualRates.of(runs_of(of_usual), LinkIndex(places).numbering)
    return float(rates.median[places.index(link[0]), places.index(link[1])]) / MB


@dataclass(frozen=True)
class StreamsStatement:
    """``headline`` says what streams do, or why nobody can tell; ``rest`` on which tests."""

    headline: str
    rest: str


def statements(groups: Iterable[ProbeGroup]) -> list[StreamsStatement]:
    """Return what tests say that differ in their streams alone, as they were used."""
    alike: dict[object, list[tuple[ProbeGroup, Transfer]]] = {}
    for group in groups:
        same = group.source.id, group.destination.id, group.size_class.id
        for transfer in group.results:
            if transfer.state == Transfer.State.DONE:
                key = *same, *but_streams(transfer.profile)
                alike.setdefault(key, []).append((group, transfer))
    said = []
    for pairs in alike.values():
        group, tests = pairs[0][0], [transfer for _, transfer in pairs]
        by_number: dict[int, list[Transfer]] = {}
        for test in tests:
            by_number.setdefault(streams_of(test.profile), []).append(test)
        link = f"from {group.source.name} to {group.destination.name}"
        where = ", ".join(filter(None, (link, group.size_class.name, group.mode)))
        least, *others = sorted(by_number)
        said += [compared(by_number, number, least, where) for number in others]
        if not others and len({test.profile.streams for test in tests}) > 1:
            said.append(StreamsStatement(one_number_words(least, len(tests)), f"{where}."))
    return said


def compared(
    by_number: Mapping[int, Sequence[Transfer]], number: int, least: int, where: str
) -> StreamsStatement:
    """Compare the tests that used so many streams with those that used the fewest."""
    several, few = by_number[number], by_number[least]
    rates, others = ([rate_of(test) for test in tests] for tests in (several, few))
    pair = PairRatio.at(two_samples.compare(rates, others))
    counts = f"{format_count(pair.ok)} and {format_count(pair.other_ok)} tests"
    medians = f"median {three_digits(pair.value)} MB/s instead of {three_digits(pair.other)} MB/s"
    names = named(number, several), named(least, few)
    if not pair.kind:
        return StreamsStatement(
            f"{names[0]} and {names[1]}: {counts}, too few to compare.",
            f"{where}: {medians}; a comparison needs {FEWEST_TESTS} successful tests with each "
            "number of streams.",
        )
    significance = "significant" if pair.sure else "not significant"
    return StreamsStatement(
        f"{names[0]}: {pair.factor_words} the rate of {names[1]}, {significance}: {counts}.",
        f"{where}: {medians}.",
    )


def named(number: int, tests: Iterable[Transfer]) -> str:
    """Say so many streams; `requested` where nobody can tell how many some tests used."""
    are_counted = all(test.profile.streams_used for test in tests)
    return counted(number, "stream") + ("" if are_counted else " requested")
