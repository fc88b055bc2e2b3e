"""One condition of what several size classes say of the same subject, or of a part of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrix.statistics.assessment.conditions import FAILING, Condition
from matrix.statistics.assessment.results import DAY_MS, SIZES, Links

# What two classes show of a subject and a part of it began at the same time if it is so near.
SAME_MS = DAY_MS // 2
# From an interval of 95 % to a standard error.
NORMAL = 1.959964


@dataclass
class Merged:
    """One condition of one or several size classes: ``parts`` by the name of the class."""

    parts: list[tuple[str, Condition]]

    @property
    def main(self) -> Condition:
        """Return the part of the largest subject; of several, what was seen first."""
        return min(
            (part for _, part in self.parts), key=lambda part: (-SIZES[part.scope], part.seen_at)
        )

    def joins(self, other: Condition, links: Links) -> bool:
        """Say whether a condition of another class is the same, or a part of it."""
        main = self.main
        if other.type != main.type:
            return False
        if main.until < other.since or other.until < main.since:
            return False
        if other.subject == main.subject:
            return True
        inside = not (links.of(other.subject) & ~links.of(main.subject)).any()
        near = abs(other.since - main.since) <= SAME_MS or (
            other.since_low <= main.since_high and main.since_low <= other.since_high
        )
        return inside and near

    def condition(self) -> Condition:
        """Return what all classes say together."""
        parts = [part for _, part in self.parts]
        main = self.main
        low, high = max(part.since_low for part in parts), min(part.since_high for part in parts)
        if low > high:
            first = min(parts, key=lambda part: part.since)
            low, high = first.since_low, first.since_high
        sure = sorted(part.confirmed_at for part in parts if part.confirmed_at is not None)
        seen = sorted({name: part.seen_at for name, part in reversed(self.parts)}.values())
        if len(seen) > 1:
            sure = sorted([*sure, seen[1]])
        ends = [part.ended_at for part in parts]
        factor = {}
        rated = [
            part
            for part in parts
            if part.factor == part.factor and part.factor_high > part.factor_low > 0
        ]
        if main.type != FAILING and rated:
            logs = np.log([[part.factor, part.factor_low, part.factor_high] for part in rated])
            error = np.maximum((logs[:, 2] - logs[:, 1]) / (2 * NORMAL), 1e-6)
            weight = 1 / np.square(error)
            mean = float((weight * logs[:, 0]).sum() / weight.sum())
            wide = max(
                1.0, float((weight * np.square(logs[:, 0] - mean)).sum()) / max(len(rated) - 1, 1)
            )
            half = NORMAL * math.sqrt(wide / weight.sum())
            factor = {
                "factor": math.exp(mean),
                "factor_low": math.exp(mean - half),
                "factor_high": math.exp(mean + half),
            }
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
            **factor,
        )


def together(by_class: Mapping[str, Sequence[Condition]], links: Links) -> list[Merged]:
    """Make one condition of what several size classes say of the same, or of a part of it."""
    every = [(name, each) for name, conditions in by_class.items() for each in conditions]
    merged: list[Merged] = []
    for name, each in sorted(every, key=lambda pair: (-SIZES[pair[1].scope], pair[1].since)):
        for other in merged:
            if other.joins(each, links):
                other.parts.append((name, each))
                break
        else:
            merged.append(Merged([(name, each)]))
    return merged
