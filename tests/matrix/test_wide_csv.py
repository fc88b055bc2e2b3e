"""The wide CSV of the matrix says what its JSON says, whatever the names."""

import csv
import io
from typing import Any

import pandas as pd
import pytest
from django.test import Client
from hypothesis import given

from matrix.api import matrix_formats
from sonar.models import Site
from sonar.notation import csv_text
from tests.matrix.test_matrix_formats import grids
from tests.matrix.world import HOUR, World, transfer

MATRIX = "/api/v1/matrix/"
WIDE = f"{MATRIX}?format=csv&shape=wide"


def body(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content
    return response.getvalue().decode()


@given(grids())
def test_wide_csv_says_what_the_grid_says(found):
    lines = list(csv.reader(io.StringIO(matrix_formats.as_wide_csv(found).decode(), newline="")))
    head, *rows, last = lines
    assert head[0] == r"from \ to (mean, MB/s)"
    assert [csv_text.unquoted(name) for name in head[1:-1]] == [
        one.name for one in found.destinations
    ]
    assert [csv_text.unquoted(row[0]) for row in rows] == [one.name for one in found.sources]
    expected = [*found.cells.value.tolist(), found.averages.column.tolist()]
    numbers = [[float(cell) if cell else None for cell in row[1:-1]] for row in [*rows, last]]
    assert numbers == [[as_number(value) for value in row] for row in expected]
    averages = [*found.averages.row.tolist(), found.averages.grand]
    assert [float(row[-1]) if row[-1] else None for row in [*rows, last]] == list(
        map(as_number, averages)
    )
    assert (head[-1], last[0]) == ("mean", "mean")


def as_number(value: float) -> Any:
    return None if value != value else pytest.approx(value, rel=1e-6, abs=0.5e-6)


@pytest.fixture
def measured(at_noon, small_world) -> World:
    for rate in (4.0, 5.0, 1234.5):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.desy, small_world.ral, 0.5, ago=3 * HOUR)
    transfer(small_world.glasgow, small_world.ral, None)
    return small_world


def test_wide_csv_is_the_json_and_pandas_reads_it(client, measured):
    answer = client.get(MATRIX).json()
    frame = pd.read_csv(io.StringIO(body(client, WIDE)), index_col=0)
    ends = [[one["name"] for one in answer[axis]] for axis in ("sources", "destinations")]
    assert [list(frame.index), list(frame.columns)] == [[*names, "mean"] for names in ends]
    assert (
        frame.iloc[:-1, :-1].astype(object).where(frame.notna(), None).values.tolist()
        == (answer["cells"]["value"])
    )
    assert frame["mean"].iloc[-1] == answer["average"]
    assert frame.iloc[-1, :-1].dropna().tolist() == [
        value for value in answer["destination_average"] if value is not None
    ]


def test_a_cloud_with_a_nasty_name_is_quoted(client, measured):
    name = "=1+1|&_% {x}"
    Site.objects.filter(id=measured.ral.site_id).update(cloud=name)
    pooled = f"{MATRIX}?rows=cloud&columns=cloud"
    wide = list(csv.reader(io.StringIO(body(client, f"{pooled}&format=csv&shape=wide"))))
    assert f"'{name}" in wide[0]
    assert f"'{name}" in [row[0] for row in wide]


def test_an_empty_matrix_is_a_table_of_its_means(client, db):
    assert body(client, WIDE) == '"from \\ to (mean, MB/s)",mean\nmean,\n'


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("shape=wide", "shape", "shape=wide requires format=csv, but the format is js"),
        ("shape=square&format=csv", "shape", "shape “square” is not known: use long or wide."),
        ("shape=wide&format=csv&fields=ok", "fields", "With shape=wide, “fields” must be omitted"),
        ("shape=wide&format=plotly", "shape", "shape=wide requires format=csv"),
        ("format=latex", "format", "format “latex” is not known: use json, csv, plotly or html."),
        ("format=markdown", "format", "format “markdown” is not known: use json, csv, plotly or"),
    ],
)
def test_what_makes_no_table_is_a_400(client, db, text, name, sentence):
    response = client.get(f"{MATRIX}?{text}")
    assert response.status_code == 400
    assert response.json()["errors"][name][0].startswith(sentence)


def test_it_is_a_file_with_an_etag_of_its_own(client, measured):
    response = client.get(WIDE)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].endswith('.csv"')
    assert client.get(WIDE, headers={"if-none-match": response["ETag"]}).status_code == 304
    assert client.get(f"{MATRIX}?format=csv")["ETag"] != response["ETag"]
