"""What a report is made of, whatever it is written as: sections of sentences, rows and pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matrix.answers.report.question import ReportQuestion
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.states import States
from sonar.notation.units import DASH

# Of a row: texts, counts, and numbers in the unit that their column says, by name of the column.
Record = Mapping[str, Any]


@dataclass(frozen=True)
class ReportColumn:
    """``head`` names it; ``write`` writes a value that is there, with its bounds.

    ``bounds`` name the two values of a row that are the interval of this one.
    """

    name: str
    head: str
    unit: str = ""
    write: Callable[..., str] = str
    is_number: bool = False
    bounds: Sequence[str] = ()

    @property
    def title(self) -> str:
        return f"{self.head} ({self.unit})" if self.unit else self.head

    def text(self, row: Record) -> str:
        value, *bounds = (present(row[name]) for name in (self.name, *self.bounds))
        return DASH if value is None else self.write(value, *bounds)


def present(value: Any) -> Any:  # noqa: ANN401 - of any column
    """Return a value of a row, None for what there is none of."""
    is_nan = isinstance(value, float) and not math.isfinite(value)
    return None if is_nan or value == "" else value


@dataclass(frozen=True)
class ReportTable:
    """A row may have a ``url`` beside its columns: the page of what it is about."""

    columns: Sequence[ReportColumn]
    rows: Sequence[Record]

    def texts(self) -> list[list[str]]:
        return [[column.text(row) for column in self.columns] for row in self.rows]


@dataclass(frozen=True)
class HeatTable:
    """Rates in MB/s of files from each of ``rows`` to each of ``columns``, NaN for none.

    ``corner`` says what rows and columns are, ``short`` has names that take less room, and
    ``state`` indexes STATES. Of a ``site`` rows are its partners, and there are two columns: what
    it sends to each, and what it receives.
    """

    title: str
    corner: str
    rows: Sequence[str]
    columns: Sequence[str]
    short: Mapping[str, str]
    value: Floats
    state: States
    site: str = ""

    def ends(self, row: int, column: int) -> tuple[str, str]:
        """Return from where to where the files of a cell go."""
        if not self.site:
            return self.rows[row], self.columns[column]
        ends = self.site, self.rows[row]
        return ends[::-1] if column else ends


@dataclass(frozen=True)
class ReportSection:
    """A part of a report. ``name`` is for scripts; ``sentences`` stand above picture and table."""

    name: str
    title: str
    sentences: Sequence[str] = ()
    pictures: Sequence[HeatTable] = ()
    table: ReportTable | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class PeriodReport:
    """``summary`` are the sentences that matter; ``simulated`` says that endpoints are made up."""

    question: ReportQuestion
    summary: Sequence[str]
    sections: Sequence[ReportSection]
    simulated: str

    # In a cache: some hundred short texts.
    nbytes: ClassVar[int] = 200_000
