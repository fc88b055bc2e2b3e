"""What may be the cause of a change: links that have something in common. Pure numpy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers, Places

Kind = Literal["source", "destination", "both", "link", "site"]
# Of an endpoint with fewer links than these, nothing can be said.
FEWEST_LINKS = 3
# For what is no row, or no column.
NONE = -1


@dataclass(frozen=True)
class Summed:
    """Values of the cells, and their sums of each row and column: those of sets follow."""

    of_cell: Floats
    of_row: Floats
    of_column: Floats


@dataclass(frozen=True)
class MatrixCells:
    """The cells of a matrix that have a value, and who their rows and columns are.

    ``row`` and ``column`` are the places of each cell; ``endpoint_of_row`` numbers the endpoint of
    each row, and so on: a row and a column with the same number are one endpoint, or one site.
    """

    row: Integers
    column: Integers
    endpoint_of_row: Integers
    endpoint_of_column: Integers
    site_of_row: Integers
    site_of_column: Integers

    @classmethod
    def of(
        cls, has_value: Flags, endpoints: Sequence[str] | None, sites: Sequence[str] | None
    ) -> Self:
        """Number endpoints and sites by their names, as name_causes() takes them."""
        rows, columns = has_value.shape
        by_place = np.arange(rows), np.arange(columns) + (0 if rows == columns else rows)
        endpoint_of = _numbered("endpoints", endpoints, rows, columns) if endpoints else by_place
        site_of = _numbered("sites", sites, rows, columns) if sites else endpoint_of
        return cls(*np.nonzero(has_value), *endpoint_of, *site_of)  # type: ignore[call-arg]

    def __len__(self) -> int:
        return len(self.row)

    def summed(self, values: Floats) -> Summed:
        """Add the values of the cells up along rows and columns."""
        of_row = np.bincount(self.row, values, len(self.endpoint_of_row))
        of_column = np.bincount(self.column, values, len(self.endpoint_of_column))
        return Summed(values, of_row.astype(float), of_column.astype(float))


def _numbered(
    parameter: str, names: Sequence[str], rows: int, columns: int
) -> tuple[Integers, Integers]:
    if rows == columns and len(names) == rows:
        names = [*names, *names]
    if len(names) != rows + columns:
        raise ValueError(f"{parameter}: {len(names)} names for {rows} rows and {columns} columns")
    number = np.unique(np.array(names, dtype=str), return_inverse=True)[1]
    return number[:rows], number[rows:]


@dataclass(frozen=True)
class CandidateSets:
    """Sets of cells of one kind: cell ``cell[k]`` is in set ``member[k]``, once.

    Set m has the row ``first_row[m]`` and the column ``first_column[m]``, and perhaps more of the
    same site. ``possible`` are those that can be told from all others. ``by_row`` and ``by_column``
    have the set of each row and column, and ``by_both`` the cells that are in theirs by either.
    """

    kind: Kind
    cell: Places
    member: Places
    first_row: Integers
    first_column: Integers
    possible: Flags
    by_row: Integers | None = None
    by_column: Integers | None = None
    by_both: Integers | None = None

    def sums(self, values: Summed) -> Floats:
        if self.kind == "link":
            return values.of_cell
        sums = np.zeros(len(self.possible))
        if self.by_row is not None:
            sums += np.bincount(self.by_row, values.of_row, len(sums))
        if self.by_column is not None:
            sums += np.bincount(self.by_column, values.of_column, len(sums))
        if self.by_both is not None:
            twice = values.of_cell[self.by_both]
            sums -= np.bincount(self.member[self.by_both], twice, len(sums))
        return sums


@dataclass(frozen=True)
class Candidate:
    """The set of cells at a place among those of its kind."""

    sets: CandidateSets
    place: int

    @property
    def row(self) -> int | None:
        """Its row, or the first of several; None where it is every row."""
        row = int(self.sets.first_row[self.place])
        return None if row == NONE else row

    @property
    def column(self) -> int | None:
        column = int(self.sets.first_column[self.place])
        return None if column == NONE else column

    @property
    def n(self) -> int:
        return int((self.sets.member == self.place).sum())

    def flags(self, cells: int) -> Floats:
        """Return 1 for each of its cells, 0 for each other."""
        flags = np.zeros(cells)
        flags[self.sets.cell[self.sets.member == self.place]] = 1
        return flags


def every_candidate(cells: MatrixCells) -> Iterator[CandidateSets]:
    """Return everything that may be the cause of a change, kind by kind."""
    number = np.arange(len(cells), dtype=np.int32)
    yield CandidateSets("link", number, number, cells.row, cells.column, number >= 0)
    yield _sets("source", cells, np.arange(len(cells.endpoint_of_row)), None)
    yield _sets("destination", cells, None, np.arange(len(cells.endpoint_of_column)))
    yield _sets("both", cells, cells.endpoint_of_row, cells.endpoint_of_column)
    out, into = cells.site_of_row, cells.site_of_column
    if all(np.bincount(groups).max(initial=0) <= 1 for groups in (out, into)):
        return
    for sides in ((out, None), (None, into), (out, into)):
        yield _sets("site", cells, *sides, fewest_endpoints=2)


def _sets(
    kind: Kind,
    cells: MatrixCells,
    by_row: Integers | None,
    by_column: Integers | None,
    *,
    fewest_endpoints: int = 1,
) -> CandidateSets:
    """Return the sets of cells whose row or column is of one group; both are numbered by it."""
    sides = ((cells.row, by_row), (cells.column, by_column))
    ends = [(place, group_of) for place, group_of in sides if group_of is not None]
    count = max(int(group_of.max(initial=NONE)) for _, group_of in ends) + 1
    groups = [group_of.astype(np.int32)[place] for place, group_of in ends]
    cell, member, by_both = np.arange(len(cells), dtype=np.int32), groups[0], None
    if len(ends) > 1:
        # A cell that is of a group by its row and by its column is in the set once.
        is_further = groups[1] != member
        by_both = np.flatnonzero(~is_further)
        cell = np.concatenate([cell, cell[is_further]])
        member = np.concatenate([member, groups[1][is_further]])
    # What has half of the cells could as well be the rest that changed the other way.
    possible = 2 * np.bincount(member, minlength=count) < len(cells)
    for group in groups:
        possible &= np.bincount(group, minlength=count) >= FEWEST_LINKS
    # How many rows or columns with values each group has.
    used = [
        np.bincount(group_of[np.flatnonzero(np.bincount(place))], minlength=count)
        for place, group_of in ends
    ]
    possible &= np.max(used, axis=0) >= fewest_endpoints
    firsts = []
    for group_of in (by_row, by_column):
        first = np.full(count, NONE)
        if group_of is not None:
            first[group_of[::-1]] = np.arange(len(group_of))[::-1]
        firsts.append(first)
    first_row, first_column = firsts
    return CandidateSets(
        kind, cell, member, first_row, first_column, possible, by_row, by_column, by_both
    )
