"""What a question is compared with: another window, size class, direction, or other filters.

In a URL: `compare=previous`, `week`, `month`, `reverse` or `<from>..<to>` (a window and `reverse`
may stand together), `compare.size=small`, `compare.<filter>=value` in place of the filters of that
parameter, nothing for none of them (`compare.streams=`; of the origin that are the tests), and
`compare.of=mean` for the ratio of means.
`compare.around=<moment>` stands for two windows: since the moment, and as long before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from matrix.query.attributes import BY_NAME
from matrix.query.filters import (
    FILTERS,
    PROFILE_FILTERS,
    TESTS,
    Filter,
    alternatives,
    by_parameter,
    on_profiles,
    words_of,
)
from sonar.notation import windows
from sonar.notation.windows import EARLIEST, PRESET_WORDS, Window

PREFIX = "compare."
# What may be divided by each other; the first unless it is said.
OF = ("median", "mean")
PREVIOUS, WEEK, MONTH, CUSTOM, REVERSE = "previous", "week", "month", "custom", "reverse"
WINDOWS = (PREVIOUS, WEEK, MONTH)
A_WEEK, A_MONTH = timedelta(days=7), timedelta(days=30)
BETWEEN = ".."
OPPOSITE = {"source": "destination", "destination": "source"}
OF_FILTERS = tuple(f"{PREFIX}{name}" for name in FILTERS)
OF_SIZE, OF_OF, OF_AROUND = (f"{PREFIX}{name}" for name in ("size", "of", "around"))
PARAMETERS = ("compare", OF_SIZE, OF_OF, OF_AROUND, *OF_FILTERS)
# Those that mean something where the links are given.
OF_A_LINK = (
    *("compare", OF_SIZE, OF_OF, OF_AROUND),
    *(f"{PREFIX}{name}" for name in PROFILE_FILTERS),
)
# What a question has of the filters that it does not name.
DEFAULTS = {condition.parameter: condition for condition in TESTS}
# Longer ago other things have changed, too.
LONGEST_AROUND = timedelta(days=7)
FIRST_AROUND = EARLIEST + LONGEST_AROUND


@dataclass(frozen=True)
class Comparison:
    """What differs on the other side; all else is as the question has it.

    ``window`` is empty for the same, `previous` (as long, ends as the first begins), `week` (as
    long, a week earlier), `month` (the 30 days that end as the first begins) or `custom`, between
    ``start`` and ``end``. ``reverse`` pairs each link with that of the opposite direction.
    ``filters`` stand in place of those of the same parameters, and parameters that are ``dropped``
    have none. ``of`` is what is divided.
    """

    window: str = ""
    start: datetime | None = None
    end: datetime | None = None
    reverse: bool = False
    size: str = ""
    filters: tuple[Filter, ...] = ()
    dropped: tuple[str, ...] = ()
    of: str = OF[0]

    @property
    def is_of_time(self) -> bool:
        """Say whether the window is all that is different on the other side."""
        return bool(self.window) and self == Comparison(
            self.window, self.start, self.end, of=self.of
        )

    @property
    def differs(self) -> bool:
        return bool(self.window or self.reverse or self.size or self.filters or self.dropped)

    def narrowed(
        self,
        size: str,
        filters: tuple[Filter, ...],
        bounds: Window | None,
        groupings: tuple[str, str],
    ) -> Comparison | None:
        """Leave out what a question has already; None if that leaves nothing.

        ``bounds`` are those of its window, if it names no preset. Cells have an opposite direction
        only where rows and columns are of one kind.
        """
        reverse = self.reverse and groupings[0] == groupings[1]
        is_window = bounds is not None and (self.start, self.end) == (bounds.start, bounds.end)
        present = by_parameter(turned(filters) if reverse else filters)
        others, defaults = by_parameter(self.filters), by_parameter(TESTS)
        effective = defaults | present
        rest = Comparison(
            window="" if is_window else self.window,
            start=None if is_window else self.start,
            end=None if is_window else self.end,
            reverse=reverse,
            size="" if self.size == size else self.size,
            filters=tuple(
                condition
                for condition in self.filters
                if others[condition.parameter] != effective.get(condition.parameter)
            ),
            dropped=tuple(
                name for name in self.dropped if effective.get(name) != defaults.get(name)
            ),
            of=self.of,
        )
        return rest if rest.differs else None

    def on_profiles(self) -> Comparison | None:
        """Leave out the filters that choose links; None if that leaves nothing."""
        dropped = tuple(name for name in self.dropped if name in PROFILE_FILTERS)
        rest = replace(self, filters=tuple(on_profiles(self.filters)), dropped=dropped)
        return rest if rest.differs else None

    def window_of(self, window: Window) -> Window:
        if self.start and self.end:
            return Window(self.start, self.end)
        if self.window == MONTH:
            return Window(window.start - A_MONTH, window.start)
        length = {PREVIOUS: window.end - window.start, WEEK: A_WEEK}
        back = length.get(self.window, timedelta(0))
        return Window(window.start - back, window.end - back)

    def is_possible(self, window: Window) -> bool:
        """Say whether the other side of a window lies in a time that can be asked for."""
        try:
            return self.window_of(window).start >= EARLIEST
        except OverflowError:
            return False

    def filters_of(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        """Return the filters of the other side, in their order in a URL."""
        replaced = {condition.parameter for condition in self.filters}.union(self.dropped)
        present = turned(filters) if self.reverse else tuple(filters)
        together = [*self.filters, *(own for own in present if own.parameter not in replaced)]
        return in_order(together)

    def to_params(self) -> dict[str, list[str]]:
        """Return the URL parameters, defaults left out."""
        between = ""
        if self.start and self.end:
            between = BETWEEN.join(map(windows.format_time, (self.start, self.end)))
        compared = [between or self.window, REVERSE if self.reverse else ""]
        params = {
            "compare": [text for text in compared if text],
            OF_SIZE: [self.size] if self.size else [],
            OF_OF: [self.of] if self.of != OF[0] else [],
        }
        texts = by_parameter(self.filters) | {name: [""] for name in self.dropped}
        params |= {f"{PREFIX}{name}": texts[name] for name in FILTERS if name in texts}
        return {name: values for name, values in params.items() if values}

    def words(self, window: str, own: Window | None) -> str:
        """Say the other side, to stand behind `compared with`.

        ``window`` is the preset of the question, or else ``own`` its window.
        """
        when = self._when(window, own)
        files = f"{self.size}-file transfers" if self.size else ""
        subject = " of ".join(part for part in (files, when) if part)
        if self.reverse:
            subject = (
                f"{subject} in the opposite direction" if subject else "the opposite direction"
            )
        conditions = [words_of(group) for group in alternatives(self.filters)]
        for dropped in (Filter(name, "") for name in self.dropped):
            # `whatever the source cloud`
            title = f"{dropped.end} {BY_NAME[dropped.attribute].title}".strip()
            default = DEFAULTS.get(dropped.parameter)
            conditions.append(default.words() if default else f"whatever the {title}")
        if not subject:
            subject, *conditions = f"transfers {conditions[0]}", *conditions[1:]
        return ", ".join([subject, *conditions])

    def _when(self, preset: str, own: Window | None) -> str:
        if self.start and self.end:
            return windows.format_window(Window(self.start, self.end))
        if not self.window:
            return ""
        if own:
            return windows.format_window(self.window_of(own))
        if self.window == MONTH:
            return f"the {A_MONTH.days} days before"
        length = PRESET_WORDS[preset].removeprefix("the last ")
        return (
            f"the {length} before"
            if self.window == PREVIOUS
            else f"the same {length} a week earlier"
        )


def in_order(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return filters in the order that a URL has them in."""
    place = FILTERS.index
    return tuple(sorted(filters, key=lambda own: (place(own.parameter), own.exclude, own.value)))


def turned(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return the filters that links pass whose opposite direction passes these."""
    return tuple(
        Filter(f"{OPPOSITE[own.end]}_{own.attribute}", own.value, own.exclude) if own.end else own
        for own in filters
    )


def around(
    moment: datetime, now: datetime, before: timedelta | None = None
) -> tuple[Window, Window]:
    """Return the window that begins with a moment, and the one that ends with it.

    Up to now, but at most LONGEST_AROUND, and as long ``before`` if that is not said. Raises
    ValueError with a sentence for a moment without both.
    """
    moment = moment.replace(microsecond=0)
    end = windows.preset("1h", now).end
    if moment > now:
        raise ValueError(f"{windows.format_typed(moment)} is in the future")
    if moment < FIRST_AROUND:
        raise ValueError(f"{windows.format_typed(moment)} is too early: no results are that old")
    length = min(end - moment, LONGEST_AROUND)
    return Window(moment, moment + length), Window(moment - (before or length), moment)
