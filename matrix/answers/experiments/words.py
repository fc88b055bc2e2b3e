"""What an experiment shows, in sentences that can be quoted: factor, interval, how many tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matrix.answers.experiments.report import ExperimentReport, ValueResults
from matrix.statistics.compare import two_samples
from matrix.statistics.transfers.evidence import Slope
from sonar.models import Experiment
from sonar.notation.units import format_chance, format_count, format_factor, three_digits

Variable = Experiment.Variable
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


def title(report: ExperimentReport) -> str:
    """Name what was varied: `1, 2, 4, 8 and 16 streams with large files`."""
    experiment = report.experiment
    *others, last = (value.value for value in report.values)
    values = f"{', '.join(others)} and {last}"
    if experiment.variable == Variable.STREAMS:
        values = f"{values} streams"
    elif experiment.variable == Variable.SIZE:
        values = f"{values} files"
    return f"{values}{conditions(experiment)}"


def conditions(experiment: Experiment) -> str:
    """Say what all tests have in common: ` with large files, pull`."""
    size = experiment.size_class.name if experiment.size_class else ""
    streams = experiment.streams or 0
    parts = [
        f"{size} files" if size else "",
        f"{streams} stream{'s' * (streams != 1)}" if streams else "",
        experiment.mode,
    ]
    shown = ", ".join(filter(None, parts))
    return f" with {shown}" if size else f", {shown}"


def conclusion(report: ExperimentReport) -> SweepFinding:
    """Say what the tests show so far; who reads it sees beside it how many are still to come."""
    if not report.done:
        return nothing(report)
    if report.experiment.variable == Variable.MODE:
        return of_modes(report)
    slope = report.slope
    if report.is_of_one_number:
        return all_alike(report)
    if slope is None:
        return SweepFinding("unclear", f"{tests(report.done)}: too few to say anything yet.")
    words = OF_STREAMS if report.experiment.variable == Variable.STREAMS else OF_SIZES
    wording = words[slope.trend]
    headline = wording.headline.format(
        effect=effect(report, slope), each=for_each_stream(report), best=best(report)
    )
    return SweepFinding(slope.trend, headline, wording.advice)


def nothing(report: ExperimentReport) -> SweepFinding:
    if report.open:
        return SweepFinding("", "No test has ended with a rate yet.")
    if report.failed:
        return SweepFinding(
            "failed", "No test succeeded: there is no rate to compare.", "See why each failed."
        )
    return SweepFinding(
        "gone", "No results are left: its tests were cancelled, or are no longer kept."
    )


def all_alike(report: ExperimentReport) -> SweepFinding:
    """Say that the servers did not obey: all transfers used as many streams."""
    return SweepFinding(
        "unclear",
        of_one_number(int(report.numbers[0]), report.done),
        "Some servers open more only for larger files: try a larger size class.",
    )


def of_one_number(number: int, count: int) -> str:
    """Say that ``count`` tests of several numbers of streams all used the same number."""
    streams = f"{number} stream{'s' * (number != 1)}"
    return (
        f"Every transfer used {streams}, however many were requested (n = {format_count(count)}): "
        "this says nothing about streams."
    )


def tests(count: int) -> str:
    return f"{format_count(count)} successful test{'s' * (count != 1)}"


def ends(report: ExperimentReport) -> tuple[ValueResults, ValueResults]:
    """Return the least and the greatest value of which a test succeeded."""
    values = report.measured
    return values[0], values[-1]


def effect(report: ExperimentReport, slope: Slope) -> str:
    """Say the factor from the least to the greatest value, with interval and n."""
    low, high = (named(value, report.experiment.variable) for value in ends(report))
    factor = format_factor(slope.factor, *slope.interval)
    return f"{high} give {factor} the rate of {low} (n = {format_count(slope.n)})"


def named(value: ValueResults, variable: str) -> str:
    """Name a value, with the streams in use where these are not as many as were asked for."""
    used = sorted(set(value.streams_in_use))
    if variable != Variable.STREAMS or used in ([], [value.number]):
        return value.value
    return f"{value.value} ({' or '.join(f'{number:.0f}' for number in used)} in use)"


def for_each_stream(report: ExperimentReport) -> str:
    """Say the median rate for each stream, without its unit."""
    return three_digits(float(np.median(report.rates / report.numbers)))


def best(report: ExperimentReport) -> str:
    """Name the least number that is as good as the best, unless that is the greatest."""
    enough, (_, greatest) = report.enough, ends(report)
    if enough is None or enough.value == greatest.value:
        return ""
    return f" {enough.value} are about as good as {greatest.value}."


class Wording(NamedTuple):
    """What is said of a trend; {effect}, {each} and {best} stand for what conclusion() knows."""

    headline: str
    advice: str


OF_STREAMS = {
    "flat": Wording(
        "More streams make no difference: {effect}.",
        "Neither the TCP window nor packet loss is the limit. Check disks and servers of both "
        "endpoints, and the capacity of the link.",
    ),
    "proportional": Wording(
        "The rate grows in proportion to the number of streams: {effect}, about {each} MB/s for "
        "each stream.",
        "Each connection is limited by itself: its TCP window is too small, or packets are lost. "
        "Check the TCP buffers of both endpoints first.",
    ),
    "rising": Wording(
        "More streams are faster, but not in proportion: {effect}.{best}",
        "Each connection is limited by itself to some degree. Something that they share limits "
        "them all: the link, or a server.",
    ),
    "falling": Wording(
        "More streams are slower: {effect}.",
        "Parallel connections get in each other's way. Check the disks and the queue of the "
        "narrowest link, and test with fewer streams.",
    ),
    "unclear": Wording(
        "The tests scatter too much to show the effect of streams: {effect}.",
        "Repeat it with more tests of each number.",
    ),
}
LARGER_ARE_FASTER = Wording(
    "Larger files are faster: {effect}.",
    "Each transfer has an overhead or starts slowly, which costs small files most. Check the "
    "set-up time of transfers, not the network.",
)
OF_SIZES = {
    "flat": Wording(
        "Files of every size move at the same rate: {effect}.",
        "The overhead of each transfer plays no part here.",
    ),
    "proportional": LARGER_ARE_FASTER,
    "rising": LARGER_ARE_FASTER,
    "falling": Wording(
        "Larger files are slower: {effect}.",
        "Transfers begin fast and slow down. Look for a cache or buffer that fills, and for limits "
        "on long transfers.",
    ),
    "unclear": Wording(
        "The tests scatter too much to show the effect of the file size: {effect}.",
        "Repeat it with more tests of each size.",
    ),
}


def of_modes(report: ExperimentReport) -> SweepFinding:
    """Compare the medians of pull and push."""
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
        f"With {slower} the {end} moves the file. Check how its server copies.",
    )
