"""What more streams do to the rate of a link: from an experiment, or from the tests there are."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.link.link_profiles import but_streams, grouped, streams_of
from matrix.answers.link.samples import Results
from matrix.answers.ordering.experiments import ExperimentReport
from matrix.statistics.arrays import Floats
from matrix.statistics.transfers.evidence import Slope, fit_slope
from sonar.models import Profile
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import format_minute


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
        """Say whether more streams are shown to give no more."""
        return self.slope.trend in ("flat", "falling")

    @property
    def words(self) -> str:
        factor = format_factor(self.slope.factor, *self.slope.interval)
        origin = f"n = {format_count(self.slope.n)}, {self.origin}"
        return f"{self.most} streams give {factor} the rate of {self.least} ({origin})"


def effect_of(streams: Floats, rates: Floats, origin: str) -> StreamsEffect | None:
    """Fit the rate to the number of streams; None where the tests cannot tell."""
    slope = fit_slope(streams, rates)
    if slope is None:
        return None
    each = float(np.median(rates / streams))
    return StreamsEffect(slope, int(streams.min()), int(streams.max()), each, origin)


def effect_in_experiments(reports: Iterable[ExperimentReport]) -> StreamsEffect | None:
    """Return what the newest experiment with streams shows that tells anything, by those in use."""
    for report in reports:
        if not report.is_of_streams:
            continue
        steps = [step for step in report.steps if step.transfer and not math.isnan(step.rate)]
        streams = [streams_of(step.transfer.profile) for step in steps if step.transfer]
        origin = f"experiment of {format_minute(report.experiment.requested_at)}"
        rates = np.array([step.rate for step in steps])
        if effect := effect_of(np.array(streams, dtype=np.float64), rates, origin):
            return effect
    return None


def disobeyed(reports: Iterable[ExperimentReport], size: str) -> str:
    """Say when an experiment in a size class last showed that servers choose streams themselves.

    Empty if none did: they may well obey with larger files.
    """
    for report in reports:
        experiment = report.experiment
        of_class = experiment.size_class is not None and experiment.size_class.name == size
        if report.is_of_streams and of_class and report.is_of_one_number:
            used = int(report.numbers[0])
            return (
                f"The experiment of {format_minute(experiment.requested_at)} says nothing about "
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
        if effect := effect_of(streams, done.successes, "tests of this window"):
            effects.append(effect)
    return max(effects, key=lambda effect: effect.slope.n, default=None)
