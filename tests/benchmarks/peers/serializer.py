"""The usual way to answer: a DRF serializer over one object for each link."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer

from matrix.answers.matrix.grid_cells import Grid
from matrix.statistics.cells.states import STATES

# As many digits as Sonar sends, of a value and of a deviation. The usual serializer sends all of
# them.
DIGITS, DIGITS_OF_STD = 7, 5


@dataclass(frozen=True, slots=True)
class Link:
    source: str
    destination: str
    value: float | None
    std: float | None
    ok: int
    failed: int
    last: datetime | None
    state: str


class LinkSerializer(serializers.Serializer[list[Link]]):
    source = serializers.CharField()  # type: ignore[assignment]  # a field called as one of its own
    destination = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    std = serializers.FloatField(allow_null=True)
    ok = serializers.IntegerField()
    failed = serializers.IntegerField()
    last = serializers.DateTimeField(allow_null=True, format="%Y-%m-%dT%H:%M:%SZ")
    state = serializers.CharField()


def links_of(grid: Grid, *, rounded: bool = False) -> list[Link]:
    """Return the cells of a grid as objects, without those of an endpoint to itself."""
    cells = grid.cells
    return [
        Link(
            source.name,
            destination.name,
            number(cells.value[row, column], DIGITS if rounded else None),
            number(cells.std[row, column], DIGITS_OF_STD if rounded else None),
            int(cells.ok[row, column]),
            int(cells.failed[row, column]),
            moment(cells.last[row, column]),
            STATES[cells.state[row, column]],
        )
        for row, source in enumerate(grid.sources)
        for column, destination in enumerate(grid.destinations)
        if source != destination
    ]


def number(value: float, digits: int | None) -> float | None:
    if np.isnan(value):
        return None
    return float(value) if digits is None else float(f"{value:.{digits}g}")


def moment(unix: float) -> datetime | None:
    return None if np.isnan(unix) else datetime.fromtimestamp(int(unix), UTC)


def answer(links: list[Link]) -> bytes:
    """Render the links; their objects are made before, which costs as much again."""
    rendered: bytes = JSONRenderer().render(LinkSerializer(links, many=True).data)
    return rendered
