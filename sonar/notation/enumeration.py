"""Lists of alternatives as sentences have them."""

from collections.abc import Sequence


def either(options: Sequence[str]) -> str:
    """Write `a`, `a or b`, `a, b or c`."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last
