"""All links of a site together, before and after a note, and in both halves of a long window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.comparison.together import AROUND, factor_words, verdict
from matrix.answers.site.history import WindowPair
from matrix.answers.site.site_now import ComparedEnds, NoteEffect
from matrix.answers.site.verdict import VERBS
from matrix.pages.base import QueryPage
from matrix.pages.note_lines import around_url
from matrix.query.comparison import CUSTOM, Comparison
from matrix.statistics.compare.together import Together
from sonar.models import Annotation
from sonar.notation.units import format_factor

ENDS = ("destination", "source")


@dataclass(frozen=True)
class TogetherCell:
    """What a note's time did to all links of an end; ``factor`` is empty for no tests."""

    kind: str
    factor: str
    verdict: str
    ok: int
    other_ok: int

    @classmethod
    def of(cls, together: Together) -> TogetherCell:
        counts = together.ok, together.other_ok
        if not together.links:
            return cls("", "", "", *counts)
        bounds = () if np.isnan(together.low) else (together.low, together.high)
        factor = format_factor(together.ratio, *bounds)
        return cls(together.kind, factor, verdict(together), *counts)


@dataclass(frozen=True)
class NoteEffectLine:
    """A note, the page that compares before it with after it, and what that says by end."""

    note: Annotation
    url: str
    ends: list[TogetherCell]


def effect_lines(
    page: QueryPage, effects: Sequence[NoteEffect], now: datetime
) -> list[NoteEffectLine]:
    return [
        NoteEffectLine(
            effect.note,
            around_url(page, effect.note.starts_at, now),
            [TogetherCell.of(effect.ends[end]) for end in ENDS],
        )
        for effect in effects
    ]


@dataclass(frozen=True)
class Drift:
    """A sentence on the second half of a long window against the first, and its page."""

    sentence: str
    url: str


def drift_of(page: QueryPage, drift: ComparedEnds | None, end: str) -> Drift | None:
    """Say whether an end has drifted in the window; None for a short one, or without tests."""
    if drift is None or not drift.ends[end].links:
        return None
    factor = factor_words(drift.ends[end], AROUND)
    sentence = f"Since the middle of this window it has {VERBS[end].then} at {factor}."
    return Drift(sentence, halves_url(page, drift.sides))


def halves_url(page: QueryPage, sides: WindowPair) -> str:
    """Return the page that compares the one window with the other."""
    compare = Comparison(CUSTOM, sides.other.start, sides.other.end)
    after = page.query.replace(compare=None).during(sides.own)
    return page.asking(after.replace(compare=compare)).url()
