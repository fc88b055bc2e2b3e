"""What the API says while comparing: matrix/ and links/, in JSON, CSV and documents."""

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import read_judgement
from matrix.answers.matrix.highlights import Highlights
from matrix.answers.table import link_table
from matrix.api import matrix_formats
from matrix.query.matrix_query import MatrixQuery
from sonar.notation.windows import format_time
from tests.matrix import world

pytestmark = pytest.mark.django_db

NOW = world.NOW
DAY = timedelta(days=1)
# This side is the last day, the other the day before it.
BETWEEN = {"from": format_time(NOW - DAY), "to": format_time(NOW)}
PARAMS = f"from={BETWEEN['from']}&to={BETWEEN['to']}&compare=previous"


@pytest.fixture(autouse=True)
def two_days(small_world) -> world.World:
    """RAL to Glasgow became twice as slow, Glasgow to RAL is as it was, RAL to DESY has few."""
    rng = np.random.default_rng(1)
    links = (
        (small_world.ral, small_world.glasgow, 12, 4.0, 8.0),
        (small_world.glasgow, small_world.ral, 12, 5.0, 5.0),
        (small_world.ral, small_world.desy, 2, 5.0, 5.0),
    )
    with world.transfers() as some:
        for source, destination, count, *rates in links:
            for back, rate in enumerate(rates):
                for number in range(count):
                    noisy = rate * float(np.exp(0.1 * rng.standard_normal()))
                    ago = DAY * back + timedelta(hours=1.5 * number + 1)
                    some.add(source, destination, noisy, ago=ago)
    return small_world


def built() -> Grid:
    query = MatrixQuery.from_params({name: [text] for name, text in BETWEEN.items()} | PREVIOUS)
    return grid.build(query, NOW)


PREVIOUS = {"compare": ["previous"]}


def get(client: Client, call: str, text: str = "") -> Any:
    answer = client.get(f"/api/v1/{call}/?{PARAMS}{text}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def errors(client: Client, call: str, text: str) -> dict[str, list[str]]:
    answer = client.get(f"/api/v1/{call}/?{text}")
    assert answer.status_code == 400
    return answer.json()["errors"]


def cell(answer: Any, source: str, destination: str) -> dict[str, Any]:
    row = [group["name"] for group in answer["sources"]].index(source)
    column = [group["name"] for group in answer["destinations"]].index(destination)
    return {name: array[row][column] for name, array in answer["cells"].items()}


def test_a_matrix_that_compares_has_ratios_and_says_with_what(client):
    answer = get(client, "matrix")
    assert answer["unit"] == "×"
    assert answer["description"].startswith("Ratio of median rates of large-file transfers, ")
    assert answer["query"]["compare"] == ["previous"]
    before = {name: format_time(NOW - DAY * back) for name, back in (("start", 2), ("end", 1))}
    assert answer["comparison"] == before | {
        "description": "18 Nov 12:00:30 to 19 Nov 2026 12:00:30 UTC",
        "size": "large",
        "simulated": False,
        "filters": {},
        "compared": 2,
        "too_few": 1,
        "slower": 1,
        "faster": 0,
    }
    slower = cell(answer, "RAL_DATADISK", "Glasgow_DATADISK")
    assert slower["change"] == "slower"
    assert slower["value"] == slower["ratio"] == pytest.approx(0.5, rel=0.15)
    assert slower["ratio"] == pytest.approx(slower["rate"] / slower["other"], rel=1e-5)
    assert slower["low"] < slower["ratio"] < slower["high"] < 1
    assert slower["p"] < 1e-9
    assert (slower["ok"], slower["other_ok"]) == (12, 12)
    same = cell(answer, "Glasgow_DATADISK", "RAL_DATADISK")
    assert same["change"] == ""
    assert same["p"] > 0.05
    few = cell(answer, "RAL_DATADISK", "DESY_DATADISK")
    assert (few["value"], few["ratio"], few["p"], few["change"]) == (None, None, None, "")
    assert (few["ok"], few["other_ok"]) == (2, 2)
    assert few["rate"] is not None
    logs = np.log([slower["value"], same["value"]])
    assert answer["average"] == pytest.approx(float(np.exp(logs.mean())), rel=1e-5)


def test_csv_has_the_same_cells_as_json(client):
    answer = get(client, "matrix")
    text = client.get(f"/api/v1/matrix/?{PARAMS}&format=csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 12
    units = {"value": "value_times", "rate": "rate_mb_s", "other": "other_mb_s", "std": "std_mb_s"}
    for row in rows:
        values = cell(answer, row["source"], row["destination"])
        assert list(row)[2:] == [units.get(name, name) for name in values]
        for name, value in values.items():
            written = row[units.get(name, name)]
            assert written == ("" if value is None else str(value)) or float(written) == value


def test_a_wide_table_has_ratios_and_their_geometric_means(client):
    answer = get(client, "matrix", "&fields=value")
    text = client.get(f"/api/v1/matrix/?{PARAMS}&format=csv&shape=wide").content.decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][0] == r"from \ to (ratio, ×)"
    assert float(rows[-1][-1]) == answer["average"]


@pytest.mark.parametrize("call", ["matrix", "links"])
def test_fields_and_columns_of_a_comparison_need_one(client, call):
    if call == "matrix":
        assert errors(client, call, "fields=ratio") == {
            "fields": ["The field “ratio” requires “compare”."]
        }
        assert "change" not in client.get("/api/v1/matrix/").json()["cells"]
        assert "comparison" not in client.get("/api/v1/matrix/").json()
    else:
        assert (
            "large.compared_ratio"
            in errors(client, call, "ordering=large.compared_ratio")["ordering"][0]
        )
        assert list(errors(client, call, "large.compared_ratio.max=2")) == [
            "large.compared_ratio.max"
        ]
        (link, *_) = client.get("/api/v1/links/").json()["links"]
        assert "compared_ratio" not in link["large"]
        assert "comparison" not in client.get("/api/v1/links/").json()


@pytest.mark.parametrize("call", ["matrix", "links"])
def test_what_cannot_be_compared_is_refused_by_name(client, call):
    assert list(errors(client, call, "compare=tomorrow")) == ["compare"]
    assert list(errors(client, call, "compare.size=giant")) == ["compare.size"]
    assert list(errors(client, call, "compare.site=Atlantis")) == ["compare.site"]
    for other in ("sites", "strip", "transfers"):
        assert list(errors(client, other, "compare=previous")) == ["compare"]


def test_links_have_the_numbers_of_the_matrix_and_are_ordered_by_them(client):
    matrix = get(client, "matrix")
    answer = get(client, "links", "&ordering=large.compared_ratio")
    assert answer["query"]["compare"] == ["previous"]
    assert {name: answer["comparison"][name] for name in ("compared", "slower", "faster")} == {
        "compared": 2,
        "slower": 1,
        "faster": 0,
    }
    names = [(link["source"]["name"], link["destination"]["name"]) for link in answer["links"]]
    assert names[:2] == [("RAL_DATADISK", "Glasgow_DATADISK"), ("Glasgow_DATADISK", "RAL_DATADISK")]
    fields = {
        "this_mb_s": "rate",
        "other_mb_s": "other",
        "compared_ratio": "ratio",
        "compared_low": "low",
        "compared_high": "high",
        "compared_p": "p",
        "other_ok": "other_ok",
        "change": "change",
    }
    for ends, link in zip(names, answer["links"], strict=True):
        of_cell = cell(matrix, *ends)
        assert {name: link["large"][name] for name in fields} == {
            name: of_cell[field] for name, field in fields.items()
        }
        assert "change" not in link["small"]
        assert "compared_sure" not in link["large"]  # `change` says it


def test_links_are_chosen_by_what_is_compared_and_written_as_csv(client):
    slower = get(client, "links", "&large.compared_ratio.max=0.8&large.other_ok.min=3")
    assert slower["found"] == 1
    assert get(client, "links", "&only=slower")["links"] == slower["links"]
    text = client.get(f"/api/v1/links/?{PARAMS}&format=csv&only=slower").getvalue().decode()
    (row,) = csv.DictReader(io.StringIO(text))
    link = slower["links"][0]["large"]
    for name in ("compared_ratio", "compared_p", "other_ok", "other_mb_s"):
        assert float(row[f"large.{name}"]) == link[name]
    assert row["large.change"] == "slower"
    assert "small.change" not in row


def test_links_of_the_opposite_direction_and_of_other_classes(client):
    text = f"from={BETWEEN['from']}&to={BETWEEN['to']}"
    both = client.get(f"/api/v1/links/?{text}&compare=reverse").json()["links"]
    ratios = {
        (link["source"]["name"], link["destination"]["name"]): link["large"]["compared_ratio"]
        for link in both
    }
    forth = ratios["RAL_DATADISK", "Glasgow_DATADISK"]
    assert forth * ratios["Glasgow_DATADISK", "RAL_DATADISK"] == pytest.approx(1, rel=1e-5)
    assert forth < 1
    small = client.get(f"/api/v1/links/?{text}&compare.size=small").json()
    assert small["comparison"]["size"] == "small"
    assert small["comparison"]["compared"] == 0


def test_changes_are_listed_most_certain_first_each_in_a_sentence():
    listed = Highlights(built(), read_judgement(built(), NOW), "/{}/{}".format, {})
    changed, *_ = listed.all()
    (item,) = changed.items
    expected = ("changed", "RAL_DATADISK", "Glasgow_DATADISK")
    assert (changed.kind, item.source, item.destination) == expected
    assert item.title.startswith("large files from RAL_DATADISK to Glasgow_DATADISK: ")
    assert item.title.endswith(", n = 12 and 12, p < 0.001")
    plain = replace(listed, grid=grid.build(MatrixQuery(), NOW))
    assert "changed" not in {each.kind for each in plain.all()}
    with pytest.raises(ValueError, match="has no comparison"):
        plain.difference(0, 0)


def test_an_array_of_a_comparison_is_not_in_a_grid_without_one():
    with pytest.raises(ValueError, match="ratio requires a comparison"):
        matrix_formats.array_of(grid.build(MatrixQuery(), NOW), "ratio")


def test_the_version_of_a_table_that_compares_has_both_sides(small_world):
    params = {name: [text] for name, text in BETWEEN.items()} | PREVIOUS
    query = MatrixQuery.from_params(params)
    before = link_table.version(query, NOW)
    assert before == link_table.version(query, NOW)
    world.transfer(small_world.ral, small_world.glasgow, 5.0, ago=1.5 * DAY)
    assert link_table.version(query, NOW) != before


def test_a_window_before_all_results_compares_with_nothing(client):
    text = f"from={BETWEEN['from']}&to={BETWEEN['to']}&compare=2001-01-01..2001-02-01"
    answer = client.get(f"/api/v1/matrix/?{text}").json()
    assert answer["comparison"]["compared"] == 0
    assert answer["comparison"]["too_few"] == 3
    assert answer["average"] is None
