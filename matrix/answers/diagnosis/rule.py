"""What a rule on a link says: with the figures that decided it, never a verdict alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "failing-pattern",
    "start-limited",
    "window-limited",
    "loss-limited",
    "at-capacity",
    "storage-limited",
    "slow-link",
]


@dataclass(frozen=True)
class Diagnosis:
    """``evidence`` are sentences with figures, ``next`` is what to look at.

    ``strength`` goes from 0 to 1: how much of the trouble the figures explain.
    """

    kind: Kind
    headline: str
    evidence: tuple[str, ...]
    next: str
    strength: float
