"""Names that Sonar had before its first release, for errors that say what they are called now."""

from collections.abc import Collection

NAMES = {
    "beside": "concurrent",
    "beside_source_max": "concurrent_at_source_max",
    "certain": "significant",
    "door": "channel",
    "experiment": "sweep",
    "experiments": "sweeps",
    "expectation": "target",
    "expectations": "targets",
    "floor": "floor_mb_s",
    "kind": "type",
    "level": "scope",
    "sure": "significant",
}
"""Parameters, fields, columns and sections by what replaced them."""
VALUES = {
    "expectation": "vs_target",
    "expected": "predicted",
    "experiment": "sweep",
    "residual": "vs_predicted",
}
"""Values of parameters and fields by what replaced them."""


def new_name(name: str, allowed: Collection[str]) -> str:
    """Return what a parameter, field, column or section is called now, if that is allowed here."""
    return _now(NAMES, name, allowed)


def new_value(value: str, allowed: Collection[str]) -> str:
    """Return what a value of a parameter or field is called now, if that is allowed here."""
    return _now(VALUES, value, allowed)


def _now(renamed: dict[str, str], name: str, allowed: Collection[str]) -> str:
    now = renamed.get(name, "")
    return now if now in allowed else ""
