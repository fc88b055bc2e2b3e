"""What became of a sweep: its tests by value, how far they are, and what they show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.db.models import Count, QuerySet

from matrix.answers.words.phrases import counted, join
from matrix.statistics.arrays import Floats
from matrix.statistics.compare import two_samples
from matrix.statistics.transfers.evidence import Slope, fit_slope, least_as_good
from matrix.store import probes
from matrix.store.probes import ProbeProgress
from matrix.store.transfers import rate_of
from sonar.models import SizeClass, Sweep, SweepStep, Transfer
from sonar.notation.units import format_chance, format_count, format_factor, three_digits

# For how long tests say whether servers obey a number of streams.
LATELY = timedelta(days=28)


@dataclass(frozen=True)
class Step:
    """One test of a sweep: before its end a ``probe``, then a ``transfer``.

    Neither is there if it was cancelled, or if its result is no longer kept.
    """

    step: SweepStep
    probe: ProbeProgress | None
    transfer: Transfer | None

    @property
    def state(self) -> str:
        """Return waiting, queued, running, done, failed, lost or gone."""
        if self.probe:
            return self.probe.probe.state
        return self.transfer.state if self.transfer else "gone"

    @property
    def rate(self) -> float:
        """Return its rate in MB/s; NaN for none."""
        return rate_of(self.transfer) if self.transfer else np.nan

    @property
    def streams_in_use(self) -> int | None:
        """Return how many streams its servers used; None where nobody can tell."""
        return self.transfer.profile.streams_used if self.transfer else None


class StepTally:
    """How many of some tests are open, succeeded, failed, or are gone."""

    steps: Sequence[Step]

    @property
    def open(self) -> int:
        return sum(step.probe is not None for step in self.steps)

    @property
    def done(self) -> int:
        return sum(not np.isnan(step.rate) for step in self.steps)

    @property
    def failed(self) -> int:
        return self.count(Transfer.State.FAILED, Transfer.State.LOST)

    @property
    def gone(self) -> int:
        return self.count("gone")

    def count(self, *states: str) -> int:
        return sum(step.state in states for step in self.steps)


@dataclass(frozen=True)
class ValueResults(StepTally):
    """The tests of one value, in the order in which they ran; ``number`` is what to plot it at.

    That is the number of streams, the bytes of the size class, or the place of pull and push.
    """

    value: str
    number: float
    steps: Sequence[Step]

    @cached_property
    def rates(self) -> Floats:
        """Return the rates of those that succeeded, in MB/s."""
        rates = np.array([step.rate for step in self.steps], dtype=np.float64)
        return rates[~np.isnan(rates)]

    @property
    def streams_in_use(self) -> list[float]:
        """Return the number of streams of those that succeeded: as used or, unknown, as asked."""
        done = (step for step in self.steps if not np.isnan(step.rate))
        return [float(step.streams_in_use or self.number) for step in done]

    @property
    def median(self) -> float:
        return float(np.median(self.rates)) if self.rates.size else np.nan


@dataclass(frozen=True)
class SweepReport(StepTally):
    """A sweep at a moment; ``values`` ascend."""

    sweep: Sweep
    steps: Sequence[Step]
    values: Sequence[ValueResults]

    @property
    def ends(self) -> tuple[int, int]:
        return self.sweep.source_id, self.sweep.destination_id

    @property
    def is_of_streams(self) -> bool:
        return self.sweep.variable == Sweep.Variable.STREAMS

    @property
    def ended(self) -> bool:
        return not self.open

    @property
    def share(self) -> float:
        """Return how much of all tests has been done, from 0 to 1."""
        parts = (step.probe.share if step.probe else 1.0 for step in self.steps)
        return sum(parts) / len(self.steps)

    @property
    def numbers(self) -> Floats:
        """Return for each test that succeeded its value of the variable; of streams, as used."""
        if self.is_of_streams:
            return np.array([number for value in self.values for number in value.streams_in_use])
        return np.concatenate([np.full(value.rates.size, value.number) for value in self.values])

    @property
    def rates(self) -> Floats:
        return np.concatenate([value.rates for value in self.values])

    @property
    def measured(self) -> list[ValueResults]:
        return [value for value in self.values if value.rates.size]

    @property
    def is_of_one_number(self) -> bool:
        """Say whether tests of several values all used as many streams: servers need not obey."""
        return len(self.measured) > 1 and float(np.ptp(self.numbers)) == 0

    @property
    def slope(self) -> Slope | None:
        """Return how the rate goes with the variable, where that is a number."""
        if self.sweep.variable == Sweep.Variable.MODE:
            return None
        return fit_slope(self.numbers, self.rates)

    @property
    def enough(self) -> ValueResults | None:
        """Return the least value that is as good as the best, if any test succeeded."""
        number = least_as_good(
            [value.number for value in self.values], [value.median for value in self.values]
        )
        return next((value for value in self.values if value.number == number), None)


def rows() -> QuerySet[Sweep]:
    return Sweep.objects.select_related(
        "source__site", "destination__site", "size_class", "requested_by"
    )


def reports(sweeps: Sequence[Sweep], now: datetime) -> list[SweepReport]:
    """Return what became of each. Five SQL queries for however many, none for none."""
    if not sweeps:
        return []
    steps = list(SweepStep.objects.filter(sweep__in=sweeps))
    ids = [step.test_id for step in steps]
    # First those that are open: one that ends in between is then there as a transfer.
    open_probes = probes.progress_of(list(probes.rows().filter(id__in=ids)), now)
    progress = {each.probe.id: each for each in open_probes}
    oldest = min(sweep.requested_at for sweep in sweeps)
    results = Transfer.objects.filter(id__in=ids, started_at__gte=oldest)
    transfers = results.select_related("profile", "size_class").in_bulk()
    test_bytes = dict(SizeClass.objects.values_list("name", "test_bytes"))
    steps_of: dict[UUID, list[Step]] = {sweep.id: [] for sweep in sweeps}
    for step in steps:
        probe = None if step.test_id in transfers else progress.get(step.test_id)
        steps_of[step.sweep_id].append(Step(step, probe, transfers.get(step.test_id)))
    return [
        SweepReport(
            sweep,
            steps_of[sweep.id],
            values_of(sweep, steps_of[sweep.id], test_bytes),
        )
        for sweep in sweeps
    ]


def values_of(
    sweep: Sweep, steps: Sequence[Step], test_bytes: Mapping[str, int]
) -> list[ValueResults]:
    """Put the tests together by value, in ascending order."""
    by_value: dict[str, list[Step]] = {}
    for step in steps:
        by_value.setdefault(step.step.value, []).append(step)
    results = []
    for value, of_value in by_value.items():
        if sweep.variable == Sweep.Variable.SIZE:
            # What was sent says it also where the class is gone, or has another size by now.
            sent = [step.transfer.bytes for step in of_value if step.transfer]
            number = float(sent[0] if sent else test_bytes.get(value, 0))
        else:
            is_mode = sweep.variable == Sweep.Variable.MODE
            number = float(value == "push" if is_mode else value)
        results.append(ValueResults(value, number, of_value))
    return sorted(results, key=lambda value: value.number)


def newest_reports(source: int, destination: int, now: datetime, most: int) -> list[SweepReport]:
    of_ends = rows().filter(source=source, destination=destination)
    return reports(list(of_ends[:most]), now)


def with_streams(pairs: Iterable[tuple[int, int]], now: datetime) -> list[SweepReport]:
    """Return the newest sweep with streams of each link, given by the ids of its ends."""
    sources, destinations = zip(*pairs, strict=True)
    newest = (
        rows()
        .filter(variable=Sweep.Variable.STREAMS)
        .filter(source__in=sources, destination__in=destinations)
        .order_by("source_id", "destination_id", "-requested_at", "-id")
        .distinct("source_id", "destination_id")
    )
    return reports(list(newest), now)


def report_of(sweep_id: UUID, now: datetime) -> SweepReport | None:
    sweep = rows().filter(id=sweep_id).first()
    return reports([sweep], now)[0] if sweep else None


Variable = Sweep.Variable
# The verdict of two medians is only told beyond chance.
CHANCE = 0.05


@dataclass(frozen=True)
class SweepFinding:
    """``trend`` names what was found, ``headline`` says it with its figures, ``advice`` is next."""

    trend: str
    headline: str
    advice: str = ""

    @property
    def words(self) -> str:
        return f"{self.headline} {self.advice}".strip()


def title(report: SweepReport) -> str:
    """Name what was varied: `1, 2, 4, 8 and 16 streams with large files`."""
    sweep = report.sweep
    nouns = {Variable.STREAMS: " streams", Variable.SIZE: " files"}
    values = join(value.value for value in report.values) + nouns.get(Variable(sweep.variable), "")
    size = sweep.size_class.name if sweep.size_class else ""
    in_common = [
        f"{size} files" if size else "",
        counted(sweep.streams, "stream") if sweep.streams else "",
        sweep.mode,
    ]
    shown = ", ".join(filter(None, in_common))
    return f"{values} with {shown}" if size else f"{values}, {shown}"


def conclusion(report: SweepReport) -> SweepFinding:
    """Say what the tests show so far; beside it pages say how many are still to come."""
    if not report.done:
        return nothing_done(report)
    if report.sweep.variable == Variable.MODE:
        return pull_and_push(report)
    slope, measured = report.slope, report.measured
    if report.is_of_one_number:
        size_class, sizes = report.sweep.size_class, SizeClass.test_sizes()
        is_largest = not size_class or size_class.test_bytes >= max(sizes.values(), default=0)
        advice = NONE_LARGER if is_largest else TRY_LARGER
        headline = one_number_words(int(report.numbers[0]), report.done)
        return SweepFinding("unclear", headline, advice)
    if slope is None:
        tests = counted(report.done, "successful test")
        return SweepFinding("unclear", f"{tests}: too few to draw a conclusion yet.")
    wording = (OF_STREAMS if report.is_of_streams else OF_SIZES)[slope.trend]
    low, high = (value_name(value, report) for value in (measured[0], measured[-1]))
    factor = format_factor(slope.factor, *slope.interval)
    enough, greatest = report.enough, measured[-1]
    is_less = enough is not None and enough.value != greatest.value
    best = f" {enough.value} are about as fast as {greatest.value}." if enough and is_less else ""
    headline = wording.headline.format(
        effect=f"{high} give {factor} the rate of {low} (n = {format_count(slope.n)})",
        each=three_digits(float(np.median(report.rates / report.numbers))),
        best=best,
    )
    return SweepFinding(slope.trend, headline, wording.advice)


def nothing_done(report: SweepReport) -> SweepFinding:
    if report.open:
        return SweepFinding("", "No test has succeeded yet.")
    if report.failed:
        return SweepFinding(
            "failed",
            "No test succeeded, so no rates can be compared.",
            "Check the error of each test.",
        )
    return SweepFinding(
        "gone", "No results are left: the tests were cancelled, or their results were deleted."
    )


TRY_LARGER = "Some servers use several streams only for larger files: try a larger size class."
NONE_LARGER = (
    "The servers of this link ignore the number of streams, even for the largest size class."
)


def streams_ignored(source: int, destination: int, now: datetime) -> str:
    """Say before a sweep that several streams were asked for lately and none was used.

    Empty where they were used, or not asked for. One SQL query.
    """
    several = Transfer.objects.filter(
        source=source,
        destination=destination,
        started_at__gte=now - LATELY,
        state=Transfer.State.DONE,
        profile__streams__gt=1,
        profile__streams_used__isnull=False,
    )
    counts = dict(several.order_by().values_list("profile__streams_used").annotate(Count("id")))
    if counts.keys() != {1}:
        return ""
    tests = counted(counts[1], "test")
    return (
        f"{tests} in the last 28 days requested several streams but used only 1. A stream sweep "
        "is likely to show no effect."
    )


def one_number_words(number: int, count: int) -> str:
    """Say that ``count`` tests of several numbers of streams all used the same number."""
    return (
        f"Every transfer used {counted(number, 'stream')}, however many were requested "
        f"(n = {format_count(count)}), so the effect of streams is unknown."
    )


def value_name(value: ValueResults, report: SweepReport) -> str:
    """Name a value, with the streams in use where these are not as many as were asked for."""
    used = sorted(set(value.streams_in_use))
    if not report.is_of_streams or used in ([], [value.number]):
        return value.value
    return f"{value.value} ({' or '.join(f'{number:.0f}' for number in used)} in use)"


class Wording(NamedTuple):
    """What is said of a trend; {effect}, {each} and {best} stand for what conclusion() knows."""

    headline: str
    advice: str


OF_STREAMS = {
    "flat": Wording(
        "More streams make no difference: {effect}.",
        "Neither the TCP window nor packet loss is the limit. Check the disks and servers of "
        "both endpoints, and the capacity of the link.",
    ),
    "proportional": Wording(
        "The rate grows in proportion to the number of streams: {effect}, about {each} MB/s for "
        "each stream.",
        "Each connection has its own limit: its TCP window is too small, or packets are lost. "
        "Check the TCP buffers of both endpoints first.",
    ),
    "rising": Wording(
        "More streams increase the rate, but not in proportion: {effect}.{best}",
        "Each connection is partly limited on its own. A shared resource (the link or a server) "
        "also limits all connections together.",
    ),
    "falling": Wording(
        "More streams reduce the rate: {effect}.",
        "Parallel connections interfere with each other. Check the disks and the queue at the "
        "bottleneck of the network path, and test with fewer streams.",
    ),
    "unclear": Wording(
        "The rates of the tests vary too much to show the effect of streams: {effect}.",
        "Repeat the sweep with more tests for each number of streams.",
    ),
}
LARGER_ARE_FASTER = Wording(
    "Larger files are faster: {effect}.",
    "Each transfer has an overhead or starts slowly, which affects small files most. Check the "
    "set-up time of transfers, not the network.",
)
OF_SIZES = {
    "flat": Wording(
        "Files of every size move at the same rate: {effect}.",
        "The overhead of each transfer has no effect here.",
    ),
    "proportional": LARGER_ARE_FASTER,
    "rising": LARGER_ARE_FASTER,
    "falling": Wording(
        "Larger files are slower: {effect}.",
        "Transfers begin fast and slow down. Look for a cache or buffer that fills, and for limits "
        "on long transfers.",
    ),
    "unclear": Wording(
        "The rates of the tests vary too much to show the effect of the file size: {effect}.",
        "Repeat the sweep with more tests in each size class.",
    ),
}


def pull_and_push(report: SweepReport) -> SweepFinding:
    by_mode = {value.value: value for value in report.values}
    pull, push = by_mode["pull"].rates, by_mode["push"].rates
    counts = f"n = {format_count(pull.size)} and {format_count(push.size)}"
    ratios = two_samples.compare(push, pull, "median")
    if not ratios.enough:
        return SweepFinding(
            "unclear", f"Too few tests succeeded to compare pull and push ({counts})."
        )
    factor = format_factor(float(ratios.ratio), float(ratios.low), float(ratios.high))
    figures = f"push gives {factor} the rate of pull, {counts}, {format_chance(float(ratios.p))}"
    if ratios.p > CHANCE:
        return SweepFinding("flat", f"Pull and push do not differ significantly: {figures}.")
    faster, slower = ("Push", "pull") if ratios.ratio > 1 else ("Pull", "push")
    end = "destination" if slower == "pull" else "source"
    return SweepFinding(
        "rising" if ratios.ratio > 1 else "falling",
        f"{faster} is faster than {slower}: {figures}.",
        f"In {slower} mode, the {end} moves the file. Check how its server copies files.",
    )
