"""The bytes of an answer against the same grid written in the plainest way."""

import csv
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from matrix.answers.matrix.grid_cells import Grid
from matrix.api import matrix_formats
from matrix.query.attributes import FACTS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from matrix.statistics.samples.reduce import averages
from matrix.store.conditions import MARKS
from matrix.store.data_version import DataVersion
from sonar.notation import csv_text
from sonar.notation.windows import Window
from tests.matrix.grids import standings_of
from tests.matrix.world import NOW

NAN = math.nan
names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=8)
facts = st.fixed_dictionaries(dict.fromkeys(FACTS, st.none()) | {"site": names, "label": names})
groups = st.builds(AxisGroup, names, facts, st.booleans())
rates = st.just(NAN) | st.floats(0, 1e9) | st.integers(0, 10**9).map(float)
moments = st.just(NAN) | st.floats(1.75e9, 1.85e9)
counts = st.integers(0, 2**40)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    sources = draw(st.lists(groups, max_size=4))
    destinations = draw(st.lists(groups, min_size=1, max_size=5)) if sources else []

    def cells(kind: type, values: st.SearchStrategy[Any]) -> Any:
        shape = len(sources), len(destinations)
        return draw(arrays.arrays(kind, shape, elements=values, fill=st.nothing()))

    value = cells(float, rates)
    return grid(
        CellArrays(
            value=value,
            mean=value,
            std=cells(float, rates),
            ok=cells(np.int64, counts),
            failed=cells(np.int64, counts),
            last=cells(float, moments),
            state=cells(np.int64, st.integers(0, len(STATES) - 1)),
            **standings_of(np.zeros(value.shape, np.uint8), {})
            | {
                "level": cells(np.uint8, st.integers(0, len(LEVELS) - 1)),
                "usual": cells(float, rates),
                "now": cells(float, rates),
                "since": cells(float, moments),
                "streak": cells(np.int64, counts),
                "unconfirmed": cells(np.uint8, st.integers(0, len(MARKS) - 1)),
                "condition": cells(np.int64, counts),
            },
        ),
        sources,
        destinations,
    )


def grid(cells: CellArrays, sources: list[AxisGroup], destinations: list[AxisGroup]) -> Grid:
    return Grid(
        query=MatrixQuery(),
        window=Window(NOW - timedelta(days=7), NOW),
        moment=NOW,
        version=DataVersion("3", "abc"),
        sources=tuple(sources),
        destinations=tuple(destinations),
        cells=cells,
        averages=averages(cells.value),
        idle=(),
    )


def filled(height: int, width: int) -> Grid:
    """Return a grid of random rates and times with a blank diagonal."""
    random = np.random.default_rng(height)
    value = random.lognormal(1, 2, (height, width))
    np.fill_diagonal(value, NAN)
    tests = random.integers(0, 30, value.shape)
    last = np.where(np.isnan(value), NAN, NOW.timestamp() - random.random(value.shape) * 1e6)
    state = random.integers(0, len(STATES), value.shape)
    standings = standings_of(state, {"level": state % len(LEVELS), "since": last})
    counts = {"ok": tests, "failed": tests // 9, "last": last, "state": state}
    cells = CellArrays(value=value, mean=value, std=value / 3, **counts, **standings)
    return grid(cells, *([named(f"{n}") for n in range(size)] for size in value.shape))


def named(name: str) -> AxisGroup:
    return AxisGroup(name, dict.fromkeys(FACTS), simulated=False)


def as_read(found: Grid, fields: tuple[str, ...] = matrix_formats.PLAIN_FIELDS) -> Any:
    text = matrix_formats.as_json(found, fields).decode()
    return json.loads(text, parse_constant=pytest.fail)


def written(found: Grid, name: str) -> list[list[Any]]:
    """Return an array of cells as its JSON means it, cell by cell."""
    rows = getattr(found.cells, name).tolist()
    return [[written_cell(name, value) for value in row] for row in rows]


def written_cell(name: str, value: float) -> Any:
    words = {"state": STATES, "level": LEVELS, "unconfirmed": MARKS}
    if name in words:
        return words[name][int(value)]
    if name in ("ok", "failed", "streak", "condition"):
        return value
    if math.isnan(value):
        return None
    if name in ("last", "since"):
        return datetime.fromtimestamp(math.floor(value), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # Nobody knows a deviation better than that.
    return pytest.approx(value, rel=6.3e-5 if name == "std" else 1e-6, abs=0.5e-6)


@given(grids())
def test_the_bytes_say_what_the_grid_says(found):
    answer = as_read(found)
    assert list(answer["cells"]) == list(matrix_formats.PLAIN_FIELDS)
    for name in matrix_formats.PLAIN_FIELDS:
        assert answer["cells"][name] == written(found, name), name
    for axis in ("sources", "destinations"):
        assert [one["name"] for one in answer[axis]] == [one.name for one in getattr(found, axis)]
    for axis, values in (("source", found.averages.row), ("destination", found.averages.column)):
        expected = [written_cell("value", value) for value in values.tolist()]
        assert answer[f"{axis}_average"] == expected
    assert answer["average"] == written_cell("value", found.averages.grand)


@given(grids())
def test_csv_says_what_the_grid_says(found):
    lines = list(
        csv.reader(matrix_formats.as_csv(found, matrix_formats.PLAIN_FIELDS).decode().split("\n"))
    )
    expected = [
        [
            source.name,
            destination.name,
            *(written(found, name)[i][j] for name in matrix_formats.PLAIN_FIELDS),
        ]
        for i, source in enumerate(found.sources)
        for j, destination in enumerate(found.destinations)
        if STATES[found.cells.state[i, j]] != "not_applicable"
    ]
    assert (lines[0][:3], lines[-1]) == (["source", "destination", "value_mb_s"], [])
    assert [read_line(line) for line in lines[1:-1]] == expected


def read_line(line: list[str]) -> list[Any]:
    texts = dict(zip(("source", "destination", *matrix_formats.PLAIN_FIELDS), line, strict=True))
    values: dict[str, Any] = {name: text or None for name, text in texts.items()}
    values |= {name: csv_text.unquoted(texts[name]) for name in ("source", "destination")}
    values |= {name: int(texts[name]) for name in ("ok", "failed", "streak", "condition")}
    values["unconfirmed"] = texts["unconfirmed"]
    rates = ("value", "std", "usual", "now")
    values |= {name: float(texts[name]) for name in rates if texts[name]}
    return list(values.values())


@pytest.mark.parametrize("shape", [(1, 1), (5, 5000), (200, 200), (5000, 5)])
def test_no_row_is_lost_between_two_blocks(shape):
    found = filled(*shape)
    assert found.cells.value.size == 1 or found.cells.value.size > 3 * matrix_formats.BLOCK
    cells = as_read(found)["cells"]
    assert cells["ok"] == found.cells.ok.tolist()
    assert cells["last"] == written(found, "last")
    assert cells["state"] == written(found, "state")
    applicable = np.count_nonzero(found.cells.state != STATES.index("not_applicable"))
    assert matrix_formats.as_csv(found, ("ok",)).count(b"\n") == 1 + applicable


@given(st.floats(0, 9e6))
def test_no_number_has_more_than_seven_digits_or_six_decimals(value):
    text = b"".join(matrix_formats.blocks("value", np.array([[value]]))).decode().strip("[]")
    digits = Decimal(text).normalize().as_tuple()
    assert len(digits.digits) <= 7
    assert int(digits.exponent) >= -6
    assert len(text) <= len("1000000.0")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NAN, "null"),
        (0.0, "0.0"),
        (5.0, "5.0"),
        (0.1 + 0.2, "0.3"),
        (2 / 3, "0.666667"),
        (1000 / 3, "333.3333"),
        (16777214.6, "16777215.0"),
        (16777217.0, "16777217.0"),
        (123456789.4, "123456789.0"),
    ],
)
def test_a_number_is_written_short(value, text):
    assert [*matrix_formats.blocks("value", np.array([[value]]))] == [f"[{text}]".encode()]


def test_arrays_in_any_order_of_memory_are_written_row_by_row():
    found = filled(3, 4)
    turned = {
        name: np.asfortranarray(array)
        for name, array in vars(found.cells).items()
        if isinstance(array, np.ndarray)
    }
    assert as_read(replace(found, cells=CellArrays(**turned))) == as_read(found)


@pytest.mark.parametrize("name", matrix_formats.PLAIN_FIELDS)
def test_a_field_that_was_not_asked_is_not_looked_at(name):
    found = filled(2, 2)
    others = tuple(other for other in matrix_formats.PLAIN_FIELDS if other != name)
    without = replace(found, cells=replace(found.cells, **{name: None}))
    assert list(as_read(without, others)["cells"]) == list(others)


def test_csv_quotes_only_names_that_need_it():
    cells = CellArrays(
        value=np.array([[1.5, NAN]]),
        mean=np.array([[1.5, NAN]]),
        std=np.array([[0.25, NAN]]),
        ok=np.array([[2, 0]]),
        failed=np.array([[0, 1]]),
        last=np.array([[NOW.timestamp(), NAN]]),
        state=np.array([[STATES.index("measured"), STATES.index("failed")]]),
        **standings_of(np.zeros((1, 2), np.uint8), {"level": [[2, 0]], "usual": [[4.5, NAN]]}),
    )
    found = grid(cells, [named('a "b", c')], [named("d"), named("é")])
    assert matrix_formats.as_csv(found, matrix_formats.PLAIN_FIELDS).decode() == (
        "source,destination,value_mb_s,std_mb_s,ok,failed,last,state,level,since,streak,"
        "usual_mb_s,now_mb_s,ratio_low,ratio_high,unconfirmed,condition\n"
        '"a ""b"", c",d,1.5,0.25,2,0,2026-11-20T12:00:30Z,measured,slower,,0,4.5,,,,,0\n'
        '"a ""b"", c",é,,,0,1,,failed,unknown,,0,,,,,,0\n'
    )
