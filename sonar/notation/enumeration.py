"""What may be written instead, as sentences have it."""

from collections.abc import Collection, Iterable, Sequence

from sonar.notation.renamed import new_name, new_value


def either(options: Sequence[str]) -> str:
    """Write `a`, `a or b`, `a, b or c`."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last


def not_allowed(field: str, value: str, allowed: Sequence[str]) -> str:
    """Say which values a field may have instead of this one, without a full stop."""
    if now := new_value(value, allowed):
        return f"{field} “{value}” is now called {now}"
    return f"{field} “{value}” is not known: use {either(allowed)}"


def unknown_field(name: str, fields: Collection[str]) -> str:
    """Say of a field that a body cannot have what it is called now, or which fields there are."""
    if now := new_name(name, fields):
        return f"The field “{name}” is now called {now}."
    return f"There is no field “{name}”: use {either(list(fields))}."


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
