"""Names that Sonar had before its first release, for errors that say what they are called now."""

from collections.abc import Collection

NAMES = {
    "beside": "concurrent",
    "beside_destination": "concurrent_at_destination_mean",
    "beside_destination_max": "concurrent_at_destination_max",
    "beside_source": "concurrent_at_source_mean",
    "beside_source_max": "concurrent_at_source_max",
    "beyond_chance": "significant",
    "certain": "significant",
    "condition": "type",
    "conditions": "incident_types",
    "door": "channel",
    "experiment": "sweep",
    "experiments": "sweeps",
    "expectation": "target",
    "expectations": "targets",
    "floor": "floor_mb_s",
    "kind": "type",
    "level": "scope",
    "levels": "incident_scopes",
    "sure": "significant",
}
"""Parameters, fields, columns and sections by what replaced them."""
VALUES = {
    "0": ("none",),
    "expectation": ("vs_target", "target"),
    "expected": ("predicted", "target"),
    "experiment": ("sweep",),
    "new normal": ("baseline",),
    "residual": ("vs_predicted",),
}
"""Values of parameters and fields by what replaced them, depending on the parameter."""


def new_name(name: str, allowed: Collection[str]) -> str:
    """Return what a parameter, field, column or section is called now, if that is allowed here.

    A parameter of the other side of a comparison keeps its prefix: `compare.`.
    """
    prefix, dot, last = name.rpartition(".")
    now = f"{prefix}{dot}{NAMES.get(last, '')}"
    return now if now in allowed else ""


def new_value(value: str, allowed: Collection[str]) -> str:
    """Return what a value of a parameter or field is called now, if that is allowed here."""
    return next((now for now in VALUES.get(value, ()) if now in allowed), "")
