"""A form of four fields that adds one filter to a URL, for those without a script, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matrix.query.attributes import BY_NAME, ENDPOINT_ATTRIBUTES, ENDS, OF_ENDPOINTS
from matrix.query.filters import either
from matrix.query.forms import BadQueryError

PARAMETERS = ("filter_end", "filter_on", "filter_not", "filter_value")
ALLOWED = {
    "filter_end": ("either", *ENDS),
    "filter_on": tuple(BY_NAME),
    "filter_not": ("1",),
}


def added(params: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Turn the fields into the parameter of their filter; one without a value is none.

    Raises BadQueryError for a field that is none of the form's choices. The value is for the
    filter to check.
    """
    whole = {name: list(texts) for name, texts in params.items() if name not in PARAMETERS}
    fields = {name: next(iter(params.get(name, ())), "") for name in PARAMETERS}
    errors = {
        name: [f"{name} “{fields[name]}” is not known: use {either(allowed)}."]
        for name, allowed in ALLOWED.items()
        if fields[name] and fields[name] not in allowed
    }
    if errors:
        raise BadQueryError(errors)
    if value := fields["filter_value"].strip():
        text = f"!{value}" if fields["filter_not"] else value
        end, attribute = fields["filter_end"], fields["filter_on"] or ENDPOINT_ATTRIBUTES[0].name
        of_one_end = attribute in OF_ENDPOINTS and end in ENDS
        parameter = f"{end}_{attribute}" if of_one_end else attribute
        whole.setdefault(parameter, []).append(text)
    return whole
