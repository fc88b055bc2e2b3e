"""Tests that people ordered on a link lately, beside what the link gave before and usually."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import numpy as np

from matrix.answers.diagnosis.streams import streams_of
from matrix.answers.link import samples
from matrix.answers.link.directions import run_of
from matrix.answers.link.link_profiles import counted
from matrix.answers.link.samples import Results
from matrix.statistics.arrays import Floats
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import UsualRates
from matrix.store import probes
from matrix.store.probes import ProbeProgress
from sonar.models import Probe, Profile, SizeClass, Transfer
from sonar.models.transfer import MADE_HERE
from sonar.notation.units import MB
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
    open_by_key = by_key(open_probes(ends, now), lambda snapshot: probe_key(snapshot.probe))
    results_by_key = by_key(recent(ends, now), transfer_key)
    keys = {**open_by_key, **results_by_key}
    if not keys:
        return []
    window = Window(standing.days_before(now - LATELY).start, now)
    history = samples.read(ends, window, (), experiments=True)
    profiles = Profile.objects.in_bulk(np.unique(history.profiles).tolist()).values()
    sizes = SizeClass.objects.in_bulk()
    places = {endpoint.id: endpoint for endpoint in ends}
    lines = []
    for key in sorted(keys, key=lambda key: rank(key, ends, sizes)):
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
                usual=usual(counted(of_class, profiles, ()), link, since),
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


def probe_key(probe: Probe) -> GroupKey:
    return GroupKey(
        probe.source_id, probe.destination_id, probe.size_class_id, probe.mode, probe.streams
    )


def transfer_key(transfer: Transfer) -> GroupKey:
    profile = transfer.profile
    return GroupKey(
        transfer.source_id,
        transfer.destination_id,
        transfer.size_class_id,
        profile.mode,
        profile.streams,
    )


def rank(key: GroupKey, ends: Ends, sizes: dict[int, SizeClass]) -> tuple[bool, int, str, int]:
    return key.source != ends[0].id, sizes[key.size_class].from_bytes, key.mode, key.streams


def open_probes(ends: Ends, now: datetime) -> list[ProbeProgress]:
    """Return those that have not ended, in the order in which they run."""
    ids = [endpoint.id for endpoint in ends]
    rows = probes.rows().filter(mesh=None, source__in=ids, destination__in=ids)
    return probes.progress_of(list(rows.order_by(*probes.ORDER)), now)


def recent(ends: Ends, now: datetime) -> Iterable[Transfer]:
    """Return those that somebody ordered here, of the last 24 hours, and ended; newest first.

    An import is none of them, whatever it says of its purpose.
    """
    ids = [endpoint.id for endpoint in ends]
    rows = Transfer.objects.filter(
        MADE_HERE,
        source__in=ids,
        destination__in=ids,
        started_at__gte=now - LATELY,
        profile__purpose__in=[Profile.Purpose.ORDERED, Profile.Purpose.EXPERIMENT],
    )
    return rows.select_related("profile", "size_class").order_by("-started_at", "-id")


def rates(results: Results) -> Floats:
    """Return the rates of those that succeeded, in MB/s."""
    done: Floats = results.rates[results.ok].astype(np.float64) / MB
    return done


def scatter(results: Results) -> Scatter:
    values = rates(results)
    mean = float(values.mean()) if values.size else np.nan
    std = float(values.std(ddof=1)) if values.size > 1 else np.nan
    return Scatter(mean, std, values.size)


def usual(results: Results, link: Ends, since: datetime) -> float:
    """Return what is usual for a link at a moment, in MB/s; NaN where that is unknown."""
    of_usual = results.during(standing.days_before(since))
    places = tuple(sorted(link, key=lambda endpoint: endpoint.id))
    runs = [run_of(of_usual)] if len(of_usual) else []
    rates = UsualRates.of(runs, LinkIndex(places).numbering)
    return float(rates.median[places.index(link[0]), places.index(link[1])]) / MB
