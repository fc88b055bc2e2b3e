"""One condition of what several size classes say of the same subject, or of a part of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.assessment.conditions import ClassCondition
from matrix.statistics.assessment.grid_links import (
    DAY_MS,
    DESTINATION,
    ENDPOINT,
    GRID,
    LINK,
    SITE,
    SIZES,
    SOURCE,
    Subject,
)
from matrix.statistics.assessment.judge import FEWEST_TESTS

# The site of each endpoint, by its place or its id.
Sites = Mapping[int, int] | Integers
# What two classes show of a subject and a part of it began at the same time if it is so near.
SAME_MS = DAY_MS // 2
# From an interval of 95 % to a standard error.
NORMAL = 1.959964
LEAST_ERROR = 1e-3


@dataclass
class Merged:
    """One condition of one or several size classes: ``parts`` by the name of the class."""

    parts: list[tuple[str, ClassCondition]]

    @property
    def main(self) -> ClassCondition:
        """Return the part of the largest subject; of several, what was seen first."""
        return min(
            (part for _, part in self.parts), key=lambda part: (-SIZES[part.scope], part.seen_at)
        )

    def joins(self, other: ClassCondition) -> bool:
        """Say whether a condition of another class is the same, or a part of it.

        Their types are the same, and the other one has no links but those of this one.
        """
        main = self.main
        if main.until < other.since or other.until < main.since:
            return False
        if other.subject == main.subject:
            return True
        return abs(other.since - main.since) <= SAME_MS or (
            other.since_low <= main.since_high and main.since_low <= other.since_high
        )

    def condition(self) -> ClassCondition:
        """Return what all classes say together."""
        parts = [part for _, part in self.parts]
        main = self.main
        low, high = max(part.since_low for part in parts), min(part.since_high for part in parts)
        if low > high:
            first = min(parts, key=lambda part: part.since)
            low, high = first.since_low, first.since_high
        sure = sorted(part.confirmed_at for part in parts if part.confirmed_at is not None)
        by_class: dict[str, int] = {}
        for name, part in self.parts:
            by_class[name] = min(part.seen_at, by_class.get(name, part.seen_at))
        seen = sorted(by_class.values())
        if len(seen) > 1:
            sure = sorted([*sure, seen[1]])
        ends = [part.ended_at for part in parts]
        factor, factor_low, factor_high = mean_factor(parts)
        return replace(
            main,
            seen_at=min(part.seen_at for part in parts),
            since=min(max(min(part.since for part in parts), low), high),
            since_low=low,
            since_high=high,
            confirmed_at=sure[0] if sure else None,
            ended_at=None if None in ends else max(end for end in ends if end is not None),
            tests=sum(part.tests for part in parts),
            failed=sum(part.failed for part in parts),
            links=tuple(sorted({link for part in parts for link in part.links})),
            factor=factor,
            factor_low=factor_low,
            factor_high=factor_high,
        )


class SeenTests(NamedTuple):
    """Tests of one size class of the links of a condition since it began: when each started
    (Unix ms), and whether it succeeded. ``is_own`` says whether the condition is of this class."""

    is_own: bool
    started: Integers
    ok: Flags


def confirmed_by_all(
    likely_at: int, confirmed_at: int | None, tests: Sequence[SeenTests]
) -> int | None:
    """Return when something that fails was confirmed, by the tests of its own class or of all.

    From ``likely_at`` on its own tests are enough evidence, but perhaps too few: ``confirmed_at``
    is when they were enough by themselves. Other classes count while most of their tests fail.
    """
    started = np.concatenate([each.started for each in tests])
    ok = np.concatenate([each.ok for each in tests])
    is_other = np.repeat([not each.is_own for each in tests], [len(each.ok) for each in tests])
    order = np.argsort(started, kind="stable")
    started, failed = started[order], ~ok[order]
    balance = np.cumsum(np.where(is_other[order], np.where(failed, 1, -1), 0))
    sure = (np.cumsum(failed) >= FEWEST_TESTS) & (balance > 0) & (started >= likely_at)
    moments = [confirmed_at, int(started[sure.argmax()]) if sure.any() else None]
    return min((each for each in moments if each is not None), default=None)


def mean_factor(parts: Sequence[ClassCondition]) -> tuple[float, float, float]:
    """Return the mean factor of parts, each weighted by how exactly it is known, with its interval.

    Where they differ by more than their intervals say, it is wider by as much (Birge 1932).
    """
    factors = np.log([[part.factor, part.factor_low, part.factor_high] for part in parts])
    factors = factors[np.isfinite(factors).all(axis=1)]
    if not len(factors):
        return math.nan, math.nan, math.nan
    error = np.maximum((factors[:, 2] - factors[:, 1]) / (2 * NORMAL), LEAST_ERROR)
    weight = 1 / np.square(error)
    mean = float((weight * factors[:, 0]).sum() / weight.sum())
    spread = float((weight * np.square(factors[:, 0] - mean)).sum()) / max(len(factors) - 1, 1)
    half = NORMAL * math.sqrt(max(1.0, spread) / weight.sum())
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def covering(subject: Subject, site_of: Sites) -> Iterator[Subject]:
    """Yield the subjects that have all links of this one, itself included."""
    yield Subject(GRID)
    ends = [end for end in (subject.source, subject.destination) if end is not None]
    yield from {Subject(SITE, site=int(site_of[end])) for end in ends} - {subject}
    if subject.scope in (LINK, SOURCE, DESTINATION):
        yield from (Subject(ENDPOINT, end, end) for end in ends)
    if subject.scope == LINK:
        yield Subject(SOURCE, source=subject.source)
        yield Subject(DESTINATION, destination=subject.destination)
    if subject.scope != GRID:
        yield subject


def grouped(every: Iterable[tuple[str, ClassCondition]], site_of: Sites) -> list[Merged]:
    """Make one condition of what several size classes say of the same, or of a part of it.

    ``every`` has the conditions with the names of their classes.
    """
    merged: list[Merged] = []
    by_subject: dict[tuple[str, Subject], list[int]] = {}
    for name, each in sorted(
        every,
        key=lambda pair: (-SIZES[pair[1].scope], pair[1].since, pair[0], repr(pair[1].subject)),
    ):
        near = [
            number
            for subject in covering(each.subject, site_of)
            for number in by_subject.get((each.type, subject), ())
        ]
        for number in sorted(near):
            other = merged[number]
            # What a class tells apart stays apart.
            is_of_another = all(of != name for of, part in other.parts if part is other.main)
            if is_of_another and other.joins(each):
                other.parts.append((name, each))
                break
        else:
            by_subject.setdefault((each.type, each.subject), []).append(len(merged))
            merged.append(Merged([(name, each)]))
    return merged
