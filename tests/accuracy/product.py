"""The product's judge, as histories are judged with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from matrix.statistics.assessment.conditions import ClassCondition
from matrix.statistics.assessment.days import judge_day
from matrix.statistics.assessment.grid_links import DAY_MS, GridLinks, JudgedTests
from matrix.statistics.assessment.judge import BACK_DAYS
from matrix.statistics.assessment.merging import Merged, SeenTests, confirmed_by_all, grouped
from tests.accuracy.histories import History


def judge(history: History) -> Sequence[ClassCondition]:
    """Judge a history day by day, and return the conditions of all size classes together."""
    links = GridLinks(history.source, history.destination, history.site)
    by_class = {}
    for name, each in history.tests.items():
        if len(each.started):
            tests = JudgedTests(each.link, each.started, each.log_rate, each.blamed)
            start = int(each.started[0]) // DAY_MS * DAY_MS
            by_class[name] = DayByDay(links).judge(tests, start, history.now + 1)
    for name, conditions in by_class.items():
        for each in conditions:
            confirm(name, each, history, links)
    return [merged.condition() for merged in together(by_class, links)]


def confirm(name: str, condition: ClassCondition, history: History, links: GridLinks) -> None:
    """Confirm a condition of a size class by the tests of all classes, where these are enough."""
    if condition.likely_at is None or condition.confirmed_at == condition.likely_at:
        return
    end = min(condition.until, condition.since + DAY_MS)
    seen = []
    for of_class, tests in history.tests.items():
        own = links.covered(condition.subject, tests.link)
        own &= (tests.started >= condition.since) & (tests.started < end)
        seen.append(
            SeenTests(of_class == name, tests.started[own], np.isfinite(tests.log_rate[own]))
        )
    condition.confirmed_at = confirmed_by_all(condition.likely_at, condition.confirmed_at, seen)


def together(by_class: Mapping[str, Sequence[ClassCondition]], links: GridLinks) -> list[Merged]:
    """Make one condition of what several size classes say of the same, or of a part of it."""
    every = [
        (name, each)
        for name, conditions in by_class.items()
        for each in conditions
        if each.listed_at is not None
    ]
    return grouped(every, links.site)


@dataclass
class DayByDay:
    """Judges day after day; ``conditions`` are all that were found."""

    links: GridLinks
    conditions: list[ClassCondition] = field(default_factory=list)

    def judge(self, tests: JudgedTests, start: int, end: int) -> list[ClassCondition]:
        """Judge the days from ``start`` (a UTC midnight) on, up to ``end`` (Unix ms)."""
        for day in range(start, end, DAY_MS):
            oldest = day - BACK_DAYS * DAY_MS
            earlier = tests.within(oldest, day)
            kept = [each for each in self.conditions if each.until < oldest]
            recent = [each for each in self.conditions if each.until >= oldest]
            today = tests.within(day, min(day + DAY_MS, end))
            judged = judge_day(self.links, earlier.of_links, today, day, recent)
            self.conditions = [*kept, *judged]
        return self.conditions
