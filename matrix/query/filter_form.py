"""A form of four fields that adds one filter to a URL, for those without a script, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matrix.query.filters import ATTRIBUTES, PROFILE_FILTERS, either
from matrix.query.forms import BadQueryError

PARAMETERS = ("filter_end", "filter_on", "filter_not", "filter_value")
ALLOWED = {
    "filter_end": ("either", "source", "destination"),
    "filter_on": (*ATTRIBUTES, *PROFILE_FILTERS),
    "filter_not": ("1",),
}


def added(params: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Turn the fields into the parameter of their filter; one without a value is none.

    Raises BadQueryError for a field that is none of the form's choices. The value is for the
    filter to check.
    """
    whole = {name: list(texts) for name, texts in params.items() if name not in PARAMETERS}
    fields = {name: next(iter(params.get(name, ())), "") for name in PARAMETERS}
    if errors := problems(fields):
        raise BadQueryError(errors)
    if value := fields["filter_value"].strip():
        text = f"!{value}" if fields["filter_not"] else value
        whole.setdefault(parameter(fields), []).append(text)
    return whole


def problems(fields: Mapping[str, str]) -> dict[str, list[str]]:
    return {
        name: [f"{name} “{fields[name]}” is not known: use {either(allowed)}."]
        for name, allowed in ALLOWED.items()
        if fields[name] and fields[name] not in allowed
    }


def parameter(fields: Mapping[str, str]) -> str:
    attribute = fields["filter_on"] or "site"
    one_end = attribute in ATTRIBUTES and fields["filter_end"] in ("source", "destination")
    return f"{fields['filter_end']}_{attribute}" if one_end else attribute
