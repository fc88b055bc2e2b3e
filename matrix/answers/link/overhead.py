"""What a transfer of a link costs beside its bytes, from the times of all its size classes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from matrix.answers.link.samples import Results
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import FEW, FITS, ClassTimes
from sonar.notation.units import MB

# Between these lie the middle half of the times.
SPREAD = (0.25, 0.75)


@dataclass(frozen=True)
class ClassTime:
    """A size class: medians in MB and seconds, the middle half of the seconds, and how many.

    ``line`` is what the line says of its seconds, and ``off`` how many times as long it takes as
    the line through the other classes says; NaN where there is none.
    """

    name: str
    size: float
    seconds: float
    low: float
    high: float
    ok: int
    line: float
    off: float

    @property
    def size_bytes(self) -> float:
        return self.size * MB


@dataclass(frozen=True)
class Overhead:
    """The line seconds = overhead + size / bandwidth of a link, with 95 % intervals.

    Seconds, MB/s and MB; ``fit`` is one of FITS that has a line. ``bandwidth_high`` is infinite
    where it has no bound, ``bandwidth`` NaN where larger files take no longer.
    """

    overhead: float
    overhead_low: float
    overhead_high: float
    bandwidth: float
    bandwidth_low: float
    bandwidth_high: float
    half_size: float
    fit: str
    classes: tuple[ClassTime, ...]

    @property
    def fits(self) -> bool:
        return self.fit == "line"


def overhead_of(classes: Iterable[tuple[str, Results]]) -> Overhead | None:
    """Fit the line through the successes of size classes, as the matrix does; None for too few."""
    successes = [(name, results.taken(results.ok)) for name, results in classes]
    present = [(name, done) for name, done in successes if len(done)]
    if not present:
        return None
    times = [
        ClassTimes.of_groups(done.bytes.astype(np.float64), done.rates, np.array([len(done)]))
        for _, done in present
    ]
    lines = overhead.fit(times)
    if lines.fit[0] == FEW:
        return None
    values = {
        name: float(getattr(lines, name)[0])
        for quantity in ("overhead", "bandwidth")
        for name in (quantity, f"{quantity}_low", f"{quantity}_high")
    }
    class_times = []
    for (name, done), of_class, off in zip(present, times, lines.off, strict=True):
        low, high = np.quantile(done.bytes / done.rates.astype(np.float64), SPREAD).tolist()
        class_times.append(
            ClassTime(
                name=name,
                size=float(of_class.size[0]),
                seconds=float(of_class.seconds[0]),
                low=low,
                high=high,
                ok=int(of_class.ok[0]),
                line=float(lines.seconds(of_class.size)[0]),
                off=float(off[0]),
            )
        )
    half_size, fit = float(lines.half_size[0]), FITS[lines.fit[0]]
    return Overhead(**values, half_size=half_size, fit=fit, classes=tuple(class_times))
