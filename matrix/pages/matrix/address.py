"""What the URL of the matrix page says: the question, and how its answer is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from django.http import QueryDict

from matrix.pages.base import Params, QueryPage
from matrix.plots import display
from matrix.plots.display import Display
from matrix.plots.palettes import DEFAULT_PALETTE, PALETTES
from matrix.query.catalogue import VS_USUAL

# Written by static/js/matrix/palette.js.
PALETTE_COOKIE = "sonar_palette"


@dataclass(frozen=True)
class MatrixAddress(QueryPage):
    display: Display

    route = "matrix"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(*display.read(params))

    def remembering(self, cookies: Mapping[str, str]) -> Self:
        palette = cookies.get(PALETTE_COOKIE, "")
        if self.display.palette or palette not in PALETTES or palette == DEFAULT_PALETTE:
            return self
        return self.displaying(self.display.replace(palette=palette))

    def params(self) -> Params:
        return display.write(self.query, self.display)

    def displaying(self, display: Display) -> Self:
        """Return the same question, drawn otherwise."""
        return dataclasses.replace(self, display=display)

    def showing(self, only: tuple[str, ...]) -> Self:
        """Return the same view with only the cells of these looks, of any value."""
        return self.displaying(self.display.unfocused().replace(only=only)).telling_levels()

    def telling_levels(self) -> Self:
        """Show what is slower or faster than usual as such; not while comparing.

        Bounds that are in another unit are dropped.
        """
        if self.query.compare or not self.display.shows_levels or self.query.stat == VS_USUAL.name:
            return self
        unbounded = self.display.replace(**dict.fromkeys(display.BOUNDS))
        return self.asking(self.query.replace(stat=VS_USUAL.name)).displaying(unbounded)
