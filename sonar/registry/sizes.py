"""Size classes: named ranges of file sizes. A class stores only where it begins and ends
where the next one begins, so ranges cannot overlap or leave a gap; only the first must
begin at zero, which `problems` and a trigger in the database check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class SizeRange(Protocol):
    name: str
    from_bytes: int
    test_bytes: int


def problems(classes: Iterable[SizeRange]) -> list[str]:
    """Say in sentences what keeps these ranges from tiling [0, infinity) with their tests."""
    ordered = sorted(classes, key=lambda size_class: size_class.from_bytes)
    if not ordered:
        return ["there must be at least one size class"]
    sentences = []
    if ordered[0].from_bytes != 0:
        sentences.append(f"the first size class, {ordered[0].name}, must begin at 0 bytes")
    for lower, upper in zip(ordered, [*ordered[1:], None], strict=True):
        end = upper.from_bytes if upper else None
        if end == lower.from_bytes and upper:
            sentences.append(f"{lower.name} and {upper.name} begin at the same size, {end} bytes")
        elif lower.test_bytes < lower.from_bytes or (end is not None and lower.test_bytes >= end):
            sentences.append(
                f"the test size of {lower.name}, {lower.test_bytes} bytes, must lie in its "
                f"range [{lower.from_bytes}, {'infinity' if end is None else end})"
            )
    return sentences
