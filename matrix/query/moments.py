"""Before and after a moment: the time since it, and as much before it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sonar.notation import windows
from sonar.notation.windows import EARLIEST, Window

# Longer ago other things have changed, too.
LONGEST = timedelta(days=7)
FIRST = EARLIEST + LONGEST


def around(
    moment: datetime, now: datetime, before: timedelta | None = None
) -> tuple[Window, Window]:
    """Return the window that begins with a moment, and the one that ends with it.

    Up to now, but at most LONGEST, and as long ``before`` if that is not said. Raises ValueError
    with a sentence for a moment without both.
    """
    moment = moment.replace(microsecond=0)
    end = windows.preset("1h", now).end
    if moment > now:
        raise ValueError(f"{windows.format_typed(moment)} lies ahead: nothing is measured yet")
    if moment < FIRST:
        raise ValueError(f"before {windows.format_typed(moment)} nothing was measured")
    length = min(end - moment, LONGEST)
    return Window(moment, moment + length), Window(moment - (before or length), moment)
