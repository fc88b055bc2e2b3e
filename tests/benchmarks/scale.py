"""How much data a run of the benchmarks is about, and the windows that it asks for."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import environ

from sonar.notation.windows import Window, format_time

# The data ends with the last whole day before the run, of which pages show the week; all processes
# of a run agree on it. Same seed, same rows, but for the date.
TODAY = environ.setdefault("BENCH_END", f"{datetime.now(UTC):%Y-%m-%d}")
END = datetime.fromisoformat(TODAY).replace(tzinfo=UTC)
SEED = 2011
# How far odd windows end before the data does; each cuts a day, an hour and a minute.
ODD_SHIFTS = (
    timedelta(hours=3, minutes=17, seconds=11),
    timedelta(hours=11, minutes=41, seconds=3),
    timedelta(hours=20, minutes=59, seconds=59),
)


@dataclass(frozen=True)
class Scale:
    """``rows`` over ``days`` days and all links of ``endpoints``; ``rounds`` of each contest."""

    name: str
    rows: int
    endpoints: int
    days: int
    rounds: int
    shared_buffers: str

    @property
    def is_small(self) -> bool:
        """Say whether a run is only to see that it works."""
        return self.name == "small"

    def times(self, usual: int) -> int:
        """Return how often to do what is usually done so often: once only to see that it works."""
        return 1 if self.is_small else usual

    @property
    def is_larger(self) -> bool:
        """Say whether there are more links than most goals speak of."""
        return self.rows > SCALES["default"].rows

    @property
    def links(self) -> int:
        return self.endpoints * (self.endpoints - 1)

    @property
    def start(self) -> datetime:
        return END - timedelta(days=self.days)

    def rows_of_day(self, number: int) -> int:
        """Spread the rows evenly, the last ones left over on the first days."""
        return self.rows // self.days + (number < self.rows % self.days)


SCALES = {
    scale.name: scale
    for scale in (
        Scale("small", 6_000, 20, 32, 1, "256MB"),
        Scale("default", 10_000_000, 200, 90, 9, "4GB"),
        # Twice and ten times the results and links: how costs grow (growth.py).
        Scale("double", 20_000_000, 283, 90, 5, "4GB"),
        Scale("tenfold", 100_000_000, 632, 90, 5, "4GB"),
        Scale("large", 100_000_000, 1_000, 90, 5, "4GB"),
    )
}


def aligned(days: int) -> Window:
    """Return the last whole days of the data."""
    return Window(END - timedelta(days=days), END)


def bounds(window: Window) -> dict[str, str]:
    """Return a window as parameters of an address."""
    return {"from": format_time(window.start), "to": format_time(window.end)}


def odd(days: int) -> tuple[Window, ...]:
    """Return windows of the same length with bounds at odd seconds."""
    return tuple(Window(END - shift - timedelta(days=days), END - shift) for shift in ODD_SHIFTS)
