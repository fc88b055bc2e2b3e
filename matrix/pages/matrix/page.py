"""The matrix page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matrix.answers.comparison import all_links
from matrix.answers.matrix import grid, mixed_ways
from matrix.answers.matrix.headline import headline_of
from matrix.answers.matrix.highlights import Highlights
from matrix.pages.matrix.controls import answer, controls_for, counts, legend, palettes
from matrix.pages.matrix.notices import View, notices_for
from matrix.pages.matrix.payload import (
    CellLinks,
    number_tables,
    ordered_table,
    payload,
    worst_first,
)
from matrix.pages.parts.events import todays_sentence
from matrix.pages.parts.matrix_address import MatrixAddress
from matrix.pages.parts.share import ChatCard, Share
from matrix.pages.parts.time_strip import strip_for
from matrix.plots.arrangement import Arrangement, arrange
from matrix.plots.display import Display
from matrix.plots.layout import labels_for
from matrix.plots.palettes import palette_for
from matrix.query.addresses import address, table_url
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.two_samples import CHANGES
from matrix.store import changes, profiles
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.people.roles import Anyone

# How many of a kind stand beside the matrix, if not three.
IN_RAIL = {"changed": 10, "failing": 6, "perhaps": 5, "slower": 5}


@dataclass(frozen=True)
class GridPage(MatrixAddress):
    """A page that draws a grid."""

    nav = "matrix"

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def stamp(self) -> str:
        return changes.searched()

    def address(self, query: MatrixQuery, display: Display) -> str:
        return self.asking(query).displaying(display).url()

    def drawn(self, arranged: Arrangement, cell_links: CellLinks, now: datetime) -> dict[str, Any]:
        """Return the picture, its table and what is said of it."""
        answered, statistic = cell_links.grid, self.query.statistic
        return {
            "heading": self.query.describe(),
            "unit": statistic.unit.behind,
            "grid": answered,
            "today": todays_sentence(answered, now),
            "picture": payload(arranged, cell_links) if arranged.rows.groups else None,
            "ramp": ", ".join(palette_for(self.display.palette_name, statistic)),
            "table_url": table_url(self.query),
            **number_tables(arranged),
        }


@dataclass(frozen=True)
class MatrixPage(GridPage):
    template = "matrix.html"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        answered = grid.build(self.query, now, version, whole=True)
        arranged = arrange(answered, self.display)
        cell_links = CellLinks(answered, self.display)
        known_ways = profiles.read()
        headline = headline_of(answered)
        highlights = Highlights(answered, cell_links.url, self.all_of_a_kind()).all()
        mixture = mixed_ways.mixed_in_grid(answered, known_ways)
        return {
            **self.drawn(arranged, cell_links, now),
            "card": ChatCard.of(
                self,
                address("matrix-preview"),
                self.query.describe(),
                headline.words(),
                simulated=answered.simulated,
            ),
            "answer": answer(self, headline),
            "tail": headline.tail(),
            "together": all_links.sentence(answered, now),
            "counts": list(counts(self, headline.tally)),
            "query": self.query,
            "controls": controls_for(self, answered, known_ways),
            "notices": notices_for(View(arranged, self.address), mixture, now),
            "legend": legend(self, answered),
            "palettes": palettes(self),
            "left_out": labels_for(arranged).left_out,
            "short": answered.short_names(),
            "standouts": highlights,
            "rail": [(kind, kind.items[: IN_RAIL.get(kind.kind, 3)]) for kind in highlights],
            "strip": strip_for(self, answered.window, now),
            "share": Share.of_matrix(self.query.url(address("api-matrix"))),
        }

    def test_bytes(self) -> int | None:
        """Return the size of the test files that are shown. One SQL query."""
        sizes = SizeClass.objects.filter(name=self.query.size)
        return sizes.values_list("test_bytes", flat=True).first()

    def all_of_a_kind(self) -> dict[str, str]:
        """Return where all cells are of which the first stand out."""
        looks: dict[str, tuple[str, ...]] = {
            name: (name,) for name in ("failing", "slower", "faster", "failed", "stale")
        }
        looks["changed"] = CHANGES
        ordering = worst_first(self.query)
        return {name: self.showing(only).url() for name, only in looks.items()} | (
            {"worst": ordered_table(self.query, ordering)} if ordering else {}
        )
