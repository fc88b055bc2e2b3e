"""The table of meshes: what each tests now."""

from __future__ import annotations

from typing import Any

from matrix.answers import meshes
from matrix.answers.meshes import MeshLine
from matrix.pages.parts.matrix_address import MatrixAddress
from matrix.plots.display import Display
from matrix.query.filters import Filter
from matrix.query.forms import DEFAULT_SIZE
from matrix.query.matrix_query import MatrixQuery

MOST_LISTED = 100


def table() -> dict[str, Any]:
    lines, count = meshes.build(MOST_LISTED)
    return {"lines": [(line, None) for line in lines], "count": count}


def matrix_of(line: MeshLine) -> str:
    """Return the address of the matrix with its results, of the usual size class if it has that."""
    sizes = line.sizes
    size = DEFAULT_SIZE if DEFAULT_SIZE in sizes or not sizes else sizes[-1]
    query = MatrixQuery(size=size, filters=(Filter("mesh", line.mesh.name),))
    return MatrixAddress(query, Display()).url()
