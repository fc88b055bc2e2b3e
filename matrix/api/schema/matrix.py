"""The description of matrix/."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from matrix.api.matrix_formats import FIELDS
from matrix.api.schema.describe import described
from matrix.api.schema.endpoints import GLASGOW, RAL, with_facts
from matrix.api.schema.parameters import text
from matrix.api.schema.queries import QUERY, Echo
from matrix.api.schema.schemas import Answer, CellState
from matrix.query.catalogue import UNITS

Numbers = list[list[float | None]]
Counts = list[list[int]]


class MatrixEcho(Echo):
    stat: str
    rows: str
    columns: str
    max_age: str | None


Group = with_facts(
    "Group",
    "A row or a column; what its endpoints do not share is null.",
    ("simulated",),
    shared=True,
)


class Cells(Answer):
    """Arrays of rows, of those that `fields` names: null where there is nothing."""

    value: Numbers = []
    std: Numbers = []
    ok: Counts = []
    failed: Counts = []
    last: list[list[datetime | None]] = []
    state: list[list[CellState]] = []


class Matrix(Answer):
    query: MatrixEcho
    description: str
    unit: Annotated[str, Field(json_schema_extra={"enum": list(UNITS)})]
    version: str
    simulated: bool
    sources: list[Group]  # type: ignore[valid-type]
    destinations: list[Group]  # type: ignore[valid-type]
    cells: Cells
    source_average: list[float | None]
    destination_average: list[float | None]
    average: float | None


EXAMPLE = {
    "query": {
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "stat": "mean",
        "rows": "endpoint",
        "columns": "endpoint",
        "max_age": None,
        "cloud": ["UK"],
    },
    "description": "Mean rate of large-file transfers, the last 7 days, from endpoint to endpoint",
    "unit": "MB/s",
    "version": "1f0c-9-3b1d0f9c2a77",
    "simulated": False,
    "sources": [GLASGOW, RAL],
    "destinations": [GLASGOW, RAL],
    "cells": {
        "value": [[None, 4.7], [8.1, None]],
        "std": [[None, 0.4], [None, None]],
        "ok": [[0, 3], [1, 0]],
        "failed": [[0, 1], [0, 0]],
        "last": [[None, "2026-11-20T11:30:00Z"], ["2026-11-20T04:00:00Z", None]],
        "state": [["not_applicable", "measured"], ["stale", "not_applicable"]],
    },
    "source_average": [4.7, 8.1],
    "destination_average": [8.1, 4.7],
    "average": 6.4,
}
CSV = """source,destination,value_mb_s,std_mb_s,ok,failed,last,state
Glasgow_DATADISK,RAL_DATADISK,4.7,0.4,3,1,2026-11-20T11:30:00Z,measured
RAL_DATADISK,Glasgow_DATADISK,8.1,,1,0,2026-11-20T04:00:00Z,stale
"""
FIELD_LIST = rf"^({'|'.join(FIELDS)})(,({'|'.join(FIELDS)}))*$"

MATRIX = described(
    "The whole matrix, source by destination",
    answer=Matrix,
    parameters=[
        *QUERY,
        text(
            "fields",
            "The arrays of cells that are wanted, else all.",
            "value,ok",
            pattern=FIELD_LIST,
        ),
    ],
    formats=("json", "csv"),
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
