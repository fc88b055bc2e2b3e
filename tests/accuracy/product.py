"""The product's judge, as histories are judged with it."""

from collections.abc import Sequence

from matrix.statistics.assessment.conditions import ClassCondition
from matrix.statistics.assessment.days import History as Judged
from matrix.statistics.assessment.grid_links import DAY_MS, GridLinks, JudgedTests
from matrix.statistics.assessment.merging import together
from tests.accuracy.histories import History


def judge(history: History) -> Sequence[ClassCondition]:
    """Judge a history day by day, and return the conditions of all size classes together."""
    links = GridLinks(history.source, history.destination, history.site)
    by_class = {}
    for name, each in history.tests.items():
        if len(each.started):
            tests = JudgedTests(each.link, each.started, each.log_rate, each.blamed)
            start = int(each.started[0]) // DAY_MS * DAY_MS
            by_class[name] = Judged(links).judge(tests, start, history.now + 1)
    return [merged.condition() for merged in together(by_class, links)]
