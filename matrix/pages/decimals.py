"""Numbers below one head, written so that their points stand in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

FRACTION = re.compile(r"\d(\.\d+)?(?!\d)")


def pads(texts: Sequence[str]) -> list[str]:
    """Return the point and the digits that each number needs to be as long as the longest.

    Pages take the room of these, and show nothing there. A text without a number needs none.
    """
    fractions = [(match[1] or "") if (match := FRACTION.search(text)) else None for text in texts]
    longest = max((len(fraction) for fraction in fractions if fraction is not None), default=0)
    zeros = f".{'0' * (longest - 1)}" if longest else ""
    return ["" if fraction is None else zeros[len(fraction) :] for fraction in fractions]
