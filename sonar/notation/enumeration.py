"""What may be written instead, as sentences have it."""

from collections.abc import Iterable, Sequence


def either(options: Sequence[str]) -> str:
    """Write `a`, `a or b`, `a, b or c`."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last


def not_registered(field: str, name: str, kind: str) -> str:
    """Say of a name in a field that no row of a kind has it, without a full stop."""
    return f"{field} “{name}” is not known: use the name of a registered {kind}"


def first_twice(names: Iterable[str]) -> str | None:
    """Return the first name that repeats an earlier one; None if all differ. Linear in time."""
    seen = set[str]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
