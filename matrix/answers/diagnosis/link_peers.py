"""How fast a link is against the other links of its endpoints: beside how it is against usual."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.causes.words import percent
from matrix.answers.diagnosis.evidence import FEWEST, SLOW, LinkEvidence
from matrix.answers.diagnosis.peer_words import rate_words
from sonar.notation.units import format_count, three_digits, two_digits

OTHER_LINKS = "its endpoints' other links"


@dataclass(frozen=True)
class AgainstOthers:
    """``kind`` is a level, for the colour; ``rest`` has the rates behind the first sentence."""

    kind: str
    first: str
    rest: str


def against_others(evidence: LinkEvidence) -> AgainstOthers | None:
    """Compare a link with what both its ends reach elsewhere; None where that is not known."""
    elsewhere = evidence.both_elsewhere
    if evidence.ok < FEWEST or math.isnan(elsewhere):
        return None
    part = evidence.median / elsewhere
    kind, words = level_of(part)
    low, high = (bound / elsewhere for bound in evidence.around)
    interval = "" if math.isnan(low) else f"{two_digits(100 * low)}–{percent(high)}, "
    return AgainstOthers(
        kind,
        f"{words} {OTHER_LINKS} in this window: {percent(part)} of what both reach there "
        f"({interval}{format_count(evidence.ok)} tests).",
        f"{three_digits(evidence.median)} MB/s with {evidence.size} files. "
        f"{rate_words(evidence, 'source')}. {rate_words(evidence, 'destination')}.",
    )


def level_of(part: float) -> tuple[str, str]:
    """Return the level and the words for a rate in parts of another."""
    if part <= SLOW:
        return "slower", "Slow against"
    if part * SLOW >= 1:
        return "faster", "Fast against"
    if part * NOTABLE <= 1:
        return "usual", "Somewhat slower than"
    return "usual", "Somewhat faster than" if part >= NOTABLE else "Similar to"
