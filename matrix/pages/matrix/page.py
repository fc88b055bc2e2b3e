"""The matrix page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matrix.answers import grid
from matrix.answers.grid import Grid
from matrix.answers.highlights import Highlights
from matrix.pages.matrix.address import MatrixAddress
from matrix.pages.matrix.cell_links import CellLinks, ordered_table, worst_first
from matrix.pages.matrix.controls import controls_for
from matrix.pages.matrix.notices import View, notices_for
from matrix.pages.matrix.number_table import summary_for, table_for
from matrix.pages.matrix.payload import payload
from matrix.pages.share import Share
from matrix.plots.arrangement import arrange
from matrix.plots.display import STATES_TO_SEE, Display
from matrix.plots.palettes import palette_for
from matrix.query.addresses import address, table_url
from matrix.query.catalogue import STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.states import STATE_WORDS
from matrix.store import profiles
from matrix.store.data_version import DataVersion
from sonar.roles import Anyone


@dataclass(frozen=True)
class MatrixPage(MatrixAddress):
    template = "matrix.html"
    nav = "matrix"

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        answered = grid.build(self.query, now, version, whole=True)
        arranged = arrange(answered, self.display)
        cell_links = CellLinks(answered, self.display)
        known_ways = profiles.read()
        return {
            "heading": self.query.describe(),
            "grid": answered,
            "query": self.query,
            "controls": controls_for(self, answered, known_ways),
            "notices": notices_for(
                View(arranged, self.address), known_ways.among(answered.profiles), now
            ),
            "legend": self.legend(answered),
            "ramp": ", ".join(palette_for(self.display.palette, self.query.stat)),
            "picture": payload(arranged, cell_links) if arranged.rows.groups else None,
            "unit": STATISTICS[self.query.stat].unit.behind,
            "standouts": Highlights(answered, cell_links.url, self.all_of_a_kind()).all(),
            "table": table_for(arranged),
            "summary": summary_for(arranged),
            "table_url": table_url(self.query),
            "share": Share.of(self.query.url(address("api-matrix"))),
        }

    def address(self, query: MatrixQuery, display: Display) -> str:
        return self.asking(query).displaying(display).url()

    def all_of_a_kind(self) -> dict[str, str]:
        """Return where all cells are of which the first stand out."""
        focused = {
            state: self.displaying(self.display.unfocused().replace(only=(state,))).url()
            for state in ("failed", "stale")
        }
        return focused | {"worst": ordered_table(self.query, worst_first(self.query))}

    def legend(self, answered: Grid) -> list[LegendEntry]:
        """Say what each state looks like, and where only its cells are shown."""
        counts = answered.states()
        return [
            LegendEntry(
                state=state,
                name=state.replace("_", " "),
                words=words,
                count=counts[state],
                url=self.toggling(state),
                chosen=state in self.display.only,
            )
            for state, words in STATE_WORDS.items()
        ]

    def toggling(self, state: str) -> str:
        """Return the address with the focus on a state put on, or off if it is on."""
        if state not in STATES_TO_SEE:
            return ""
        chosen = {*self.display.only} ^ {state}
        only = tuple(name for name in STATES_TO_SEE if name in chosen)
        return self.displaying(self.display.replace(only=only)).url()


@dataclass(frozen=True)
class LegendEntry:
    """A state in the legend."""

    state: str
    name: str
    words: str
    count: int
    url: str
    chosen: bool
