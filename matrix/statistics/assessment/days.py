"""Judging day after day: each day with what the days before it ended with. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from matrix.statistics.assessment.conditions import FAILING, FAST, SLOW, ClassCondition
from matrix.statistics.assessment.grid_links import GRID, GridLinks, JudgedTests
from matrix.statistics.assessment.judge import Judge
from matrix.statistics.assessment.midnight import Midnight, Past
from matrix.statistics.assessment.targets import Targets
from matrix.statistics.assessment.trend import grid_conditions

# Returns what is kept under a key, made now unless it is there.
Keep = Callable[[str, Callable[[], Midnight]], Midnight]


def build(_: str, make: Callable[[], Midnight]) -> Midnight:
    return make()


def judge_day(
    links: GridLinks,
    past: Past,
    today: JudgedTests,
    begin: int,
    before: Sequence[ClassCondition],
    *,
    targets: Targets | None = None,
    keep: Keep = build,
) -> list[ClassCondition]:
    """Judge the tests of a day (from ``begin``, a UTC midnight in Unix ms).

    ``past`` gives tests of the 28 days before; ``before`` are the conditions that were open at
    ``begin`` or ended in these days. Return them as they are after the tests, and those that began.
    ``targets`` are what people expect of links. ``keep`` returns what the tests before the day say:
    all that is asked of it depends on nothing but ``links``, ``past``, ``before`` and ``targets``,
    so that it may be kept for the next look at the same day.
    """
    of_grid = [each for each in before if (each.scope, each.type) == (GRID, SLOW)]
    fast = [each for each in before if each.type == FAST]
    others = [each for each in before if each.type != FAST and each not in of_grid]
    # What is fast is slow with rates upside down. Each hides its tests from the other, so that it
    # is judged again where the first look did not know of it.
    midnight = keep(SLOW, lambda: Midnight.of(links, past, begin, others, fast, targets=targets))
    judge = Judge(links, midnight, today, others, fast)
    conditions = judge.run()
    faster = judge_fast(midnight, today, conditions, others, fast, links=links, keep=keep)
    if any(each.seen_at >= begin for each in faster):
        judge = Judge(links, midnight, today, others, faster)
        conditions = judge.run()
    grid = [
        *(each for each in of_grid if not each.is_open),
        *grid_conditions(judge.trend, begin, of_grid),
    ]
    # What shows while the whole grid is slow is a part of that, or shows again when it is over.
    return [
        *grid,
        *(
            each
            for each in (*conditions, *faster)
            if each.type == FAILING
            or each.seen_at < begin
            or not any(slow.since <= each.seen_at < slow.until for slow in grid)
        ),
    ]


def judge_fast(
    midnight: Midnight,
    today: JudgedTests,
    slow: Sequence[ClassCondition],
    before: Sequence[ClassCondition],
    fast: Sequence[ClassCondition],
    *,
    links: GridLinks,
    keep: Keep,
) -> list[ClassCondition]:
    """Judge what is fast; tests in other conditions of rates tell nothing of it.

    ``before`` and ``fast`` are the conditions as they were at midnight, ``slow`` those of now.
    """

    def turned(results: JudgedTests) -> JudgedTests:
        return replace(results, log_rate=-results.log_rate)

    turned_before = [each.turned(SLOW) for each in fast]
    night = keep(
        FAST,
        lambda: Midnight.of(
            links,
            lambda chosen: turned(midnight.past(chosen)),
            midnight.begin,
            turned_before,
            [each for each in before if each.type == SLOW],
            usual=replace(midnight.usual, level=-midnight.own_level),
        ),
    )
    hidden = [each for each in slow if each.type == SLOW]
    judge = Judge(links, night, turned(today), turned_before, hidden, rates_only=True)
    return [each.turned(FAST) for each in judge.run()]
