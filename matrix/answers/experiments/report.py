"""What became of an experiment: its tests by value, how far they are, and what they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

import numpy as np
from django.db.models import QuerySet

from matrix.statistics.arrays import Floats
from matrix.statistics.transfers.evidence import Slope, fit_slope, least_as_good
from matrix.store import probes
from matrix.store.probes import ProbeProgress
from matrix.store.transfers import rate_of
from sonar.models import Experiment, ExperimentStep, Probe, SizeClass, Transfer


@dataclass(frozen=True)
class Step:
    """One test of an experiment: before its end a ``probe``, then a ``transfer``.

    Neither is there if it was cancelled, or if its result is no longer kept.
    """

    step: ExperimentStep
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


@dataclass(frozen=True)
class ValueResults:
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

    @property
    def failed(self) -> int:
        return self.count(Transfer.State.FAILED) + self.count(Transfer.State.LOST)

    @property
    def open(self) -> int:
        return sum(step.probe is not None for step in self.steps)

    @property
    def gone(self) -> int:
        return self.count("gone")

    def count(self, state: str) -> int:
        return sum(step.state == state for step in self.steps)


@dataclass(frozen=True)
class ExperimentReport:
    """An experiment at a moment; ``values`` ascend."""

    experiment: Experiment
    steps: Sequence[Step]
    values: Sequence[ValueResults]

    @property
    def open(self) -> int:
        return sum(value.open for value in self.values)

    @property
    def done(self) -> int:
        return sum(value.rates.size for value in self.values)

    @property
    def failed(self) -> int:
        return sum(value.failed for value in self.values)

    @property
    def gone(self) -> int:
        return sum(value.gone for value in self.values)

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
        if self.experiment.variable == Experiment.Variable.STREAMS:
            return np.array([number for value in self.values for number in value.streams_in_use])
        return np.concatenate([np.full(value.rates.size, value.number) for value in self.values])

    @property
    def rates(self) -> Floats:
        return np.concatenate([value.rates for value in self.values])

    @property
    def measured(self) -> list[ValueResults]:
        """Return the values of which a test succeeded."""
        return [value for value in self.values if value.rates.size]

    @property
    def is_of_one_number(self) -> bool:
        """Say whether tests of several values all used as many streams: servers need not obey."""
        return len(self.measured) > 1 and float(np.ptp(self.numbers)) == 0

    @property
    def slope(self) -> Slope | None:
        """Return how the rate goes with the variable, where that is a number."""
        if self.experiment.variable == Experiment.Variable.MODE:
            return None
        return fit_slope(self.numbers, self.rates)

    @property
    def enough(self) -> ValueResults | None:
        """Return the least value that is as good as the best, if any test succeeded."""
        number = least_as_good(
            [value.number for value in self.values], [value.median for value in self.values]
        )
        return next((value for value in self.values if value.number == number), None)


def rows() -> QuerySet[Experiment]:
    return Experiment.objects.select_related(
        "source__site", "destination__site", "size_class", "requested_by"
    )


def reports(experiments: Sequence[Experiment], now: datetime) -> list[ExperimentReport]:
    """Return what became of each. Five SQL queries for however many, none for none."""
    if not experiments:
        return []
    steps = list(ExperimentStep.objects.filter(experiment__in=experiments))
    ids = [step.test_id for step in steps]
    # First those that are open: one that ends in between is then there as a transfer.
    progress = by_id(probes.progress_of(list(probes.rows().filter(id__in=ids)), now))
    oldest = min(experiment.requested_at for experiment in experiments)
    results = Transfer.objects.filter(id__in=ids, started_at__gte=oldest)
    transfers = results.select_related("profile", "size_class").in_bulk()
    test_bytes = dict(SizeClass.objects.values_list("name", "test_bytes"))
    steps_of: dict[UUID, list[Step]] = {experiment.id: [] for experiment in experiments}
    for step in steps:
        probe = None if step.test_id in transfers else progress.get(step.test_id)
        steps_of[step.experiment_id].append(Step(step, probe, transfers.get(step.test_id)))
    return [
        ExperimentReport(
            experiment,
            steps_of[experiment.id],
            values_of(experiment, steps_of[experiment.id], test_bytes),
        )
        for experiment in experiments
    ]


def by_id(progress: Iterable[ProbeProgress]) -> dict[UUID, ProbeProgress]:
    return {each.probe.id: each for each in progress}


def values_of(
    experiment: Experiment, steps: Sequence[Step], test_bytes: Mapping[str, int]
) -> list[ValueResults]:
    """Put the tests together by value, in ascending order."""
    grouped: dict[str, list[Step]] = {}
    for step in steps:
        grouped.setdefault(step.step.value, []).append(step)
    results = [
        ValueResults(value, number_of(experiment, value, of_value, test_bytes), of_value)
        for value, of_value in grouped.items()
    ]
    return sorted(results, key=lambda value: value.number)


def number_of(
    experiment: Experiment, value: str, steps: Sequence[Step], test_bytes: Mapping[str, int]
) -> float:
    """Return where a value stands on the axis of its variable."""
    if experiment.variable == Experiment.Variable.STREAMS:
        return float(value)
    if experiment.variable == Experiment.Variable.MODE:
        return float(value == "push")
    # What was sent says it also where the class is gone, or has another size by now.
    sent = [step.transfer.bytes for step in steps if step.transfer]
    return float(sent[0] if sent else test_bytes.get(value, 0))


def of_link(source: int, destination: int, now: datetime, most: int) -> list[ExperimentReport]:
    """Return the newest experiments of a link, newest first."""
    of_ends = rows().filter(source=source, destination=destination)
    return reports(list(of_ends[:most]), now)


def with_streams(pairs: Iterable[tuple[int, int]], now: datetime) -> list[ExperimentReport]:
    """Return the newest experiment with streams of each link, given by the ids of its ends."""
    sources, destinations = zip(*pairs, strict=True)
    newest = (
        rows()
        .filter(variable=Experiment.Variable.STREAMS)
        .filter(source__in=sources, destination__in=destinations)
        .order_by("source_id", "destination_id", "-requested_at")
        .distinct("source_id", "destination_id")
    )
    return reports(list(newest), now)


def report_of(experiment_id: UUID, now: datetime) -> ExperimentReport | None:
    experiment = rows().filter(id=experiment_id).first()
    return reports([experiment], now)[0] if experiment else None


def open_probes(experiment: Experiment) -> QuerySet[Probe]:
    """Return the tests of an experiment that have not ended."""
    return Probe.objects.filter(id__in=experiment.steps.values("test_id"))
