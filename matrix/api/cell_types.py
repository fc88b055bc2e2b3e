"""What the schema says of the arrays of cells, and of the columns of links, by their names."""

from datetime import datetime
from typing import Any

from matrix.api.matrix_formats import COUNTS, TIMES
from matrix.api.schema.schemas import CellAgainst, CellChange, CellLevel, CellMark, CellState

KINDS: dict[str, Any] = {
    "state": CellState,
    "level": CellLevel,
    "unconfirmed": CellMark,
    "change": CellChange,
    "against": CellAgainst,
}
KINDS |= dict.fromkeys(TIMES, datetime | None) | dict.fromkeys(COUNTS, int)


def kind_of(name: str) -> Any:  # noqa: ANN401 - the type of a field
    """Return what stands in an array of cells, or a column of links, by its name: else a number."""
    return KINDS.get(name, float | None)
