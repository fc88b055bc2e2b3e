"""What is asked of causes: a matrix, what stands for its cells, and how the model is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matrix.answers.causes.attribution import OF
from matrix.query.filters import either
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.estimates.two_way import FITS

OWN = ("stat", "fit")
FIT_LABELS = {"means": "means (least squares)", "polish": "medians (median polish)"}


def read(params: Mapping[str, Sequence[str]], also: Sequence[str] = ()) -> tuple[MatrixQuery, str]:
    """Return the question to the matrix and how to fit it; medians unless means are asked for."""
    query = MatrixQuery.from_params(params, also=(*OWN, *also))
    return query.replace(stat=choice(params, "stat", OF)), choice(params, "fit", FITS)


def to_params(query: MatrixQuery, fit: str) -> dict[str, list[str]]:
    """Return the URL parameters, defaults left out."""
    own: Mapping[str, tuple[str, str]] = {"stat": (query.stat, OF[0]), "fit": (fit, FITS[0])}
    params = {name: [value] for name, (value, default) in own.items() if value != default}
    return query.replace(stat=MatrixQuery.stat).to_params() | params


def choice(params: Mapping[str, Sequence[str]], name: str, allowed: Sequence[str]) -> str:
    """Return the value of a parameter that is given once, or not at all for the first one."""
    values = params.get(name, ())
    if len(values) > 1:
        raise BadQueryError({name: [f"{name} is given {len(values)} times: give it once."]})
    value = values[0] if values else ""
    if value and value not in allowed:
        sentence = f"{name} “{value}” is not known here: use {either(allowed)}."
        raise BadQueryError({name: [sentence]})
    return value or allowed[0]
