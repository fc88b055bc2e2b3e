"""The rate target of each link: a minimum rate or the baseline of the link."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from matrix.assessment.targets import BASELINE, matching, of_class, read, rules_of
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cell_targets import TargetRates
from sonar.alerting.subjects import Whose
from sonar.models import HeldLevel, SizeClass, Target


def read_held(moment: datetime) -> dict[Whose, float]:
    """Return the rates (bytes/s) that are held at a moment, by link. One SQL query."""
    held = HeldLevel.objects.filter(since__lte=moment).exclude(until__lte=moment)
    rows = held.values_list("source_id", "destination_id", "size_class_id", "rate")
    return {(source, destination, size): rate for source, destination, size, rate in rows}


def with_held(
    usual: Floats, held: Mapping[Whose, float], size_class: SizeClass, links: LinkIndex
) -> Floats:
    """Put the rates that are held in the place of what is usual, of shape (places, places)."""
    number = {place.id: at for at, place in enumerate(links.places)}
    own = [
        (number[source], number[destination], rate)
        for (source, destination, of_class), rate in held.items()
        if of_class == size_class.id and source in number and destination in number
    ]
    if not own:
        return usual
    rates = usual.copy()
    for source, destination, rate in own:
        rates[source, destination] = rate
    return rates


def read_target_rates(
    size_class: SizeClass, links: LinkIndex, usual: Floats, moment: datetime
) -> TargetRates:
    """Return the target of each link in a size class; ``usual`` are baselines in bytes/s."""
    rules = rules_of(size_class, read(), links)
    rates = with_held(usual, read_held(moment), size_class, links)
    floor = rules.each("floor")
    rate = np.where(np.isnan(floor), rates, floor)
    return TargetRates(rate, rules.each("below"), rules.each("above"))


def counting(
    size_class: SizeClass, rows: Sequence[Target], links: LinkIndex, at: tuple[int, int]
) -> Target:
    """Return the target that applies to one link; BASELINE, which is not stored, for none."""
    own = of_class(size_class, rows)
    return next((row for row in own if matching(row, size_class, links)[at]), BASELINE)
