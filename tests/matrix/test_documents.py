"""Tables for documents: wide CSV, Markdown and LaTeX say what JSON says, whatever the names."""

import csv
import io
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.words.documents import DOCUMENTS
from matrix.api import matrix_formats
from sonar.models import Endpoint, Site
from sonar.notation import csv_text
from sonar.notation.units import DASH, THIN_SPACE, three_digits
from tests.matrix.test_matrix_formats import filled, grids
from tests.matrix.world import HOUR, World, transfer

MATRIX, LINKS = "/api/v1/matrix/", "/api/v1/links/"
WIDE = f"{MATRIX}?format=csv&shape=wide"
NASTY = [
    r"\input{/etc/passwd}",
    "100%_of $x$ & #1 ~ ^",
    "[x] *bold* `code` | cell",
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x")',
    "--'' ?` \"quoted\"",
    "{{}",
    "line\nbreak\ttab",
]
# What is left of LaTeX when its escapes are taken out, in the order in which they are.
ESCAPES = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"{\char34}": '"',
    "{}`{}": "`",
    "{}'{}": "'",
    "{-}": "-",
    "{*}": "*",
    "{[}": "[",
    "{]}": "]",
    r"$\pm$": "±",
    "--": DASH,
    r"\,": THIN_SPACE,
    **{f"\\{sign}": sign for sign in "{}$&#%_"},
}
ESCAPE = re.compile("|".join(map(re.escape, ESCAPES)))
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.sampled_from(NASTY)


def plain_tex(text: str) -> str:
    """Read a cell back; a sign that is not escaped is none of those that TeX reads as more."""
    assert not re.search(r"[\\{}$&#%_~^<>|\"`'*\[\]]", ESCAPE.sub("", text)), text
    return ESCAPE.sub(lambda match: ESCAPES[match[0]], text)


def plain_markdown(text: str) -> str:
    assert not re.search(r"[`*_\[\]<>|~&$#\n]", re.sub(r"\\.", "", text)), text
    return re.sub(r"\\(.)", r"\1", text)


def rows_of_tex(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    return [[plain_tex(cell) for cell in line[:-3].split(" & ")] for line in lines]


def rows_of_markdown(text: str) -> list[list[str]]:
    lines = [line for line in text.split("\n") if line.startswith("| ")]
    rows = [re.split(r" (?<!\\)\| ", line[2:-2] + " ")[:] for line in lines if ":--" not in line]
    return [[plain_markdown(cell.strip()) for cell in row] for row in rows]


READ = {"markdown": rows_of_markdown, "latex": rows_of_tex}


def body(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content
    return response.getvalue().decode()


def printable(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


@given(st.lists(names, min_size=2, max_size=4))
@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_any_text_is_a_cell_and_reads_back(form, texts):
    document = DOCUMENTS[form]
    written = document.whole("a caption", texts, [texts], texts)
    rows = READ[form](written)
    assert len(rows) == 3
    if form == "latex":
        assert [[printable(cell) for cell in row] for row in rows] == [[*map(printable, texts)]] * 3
        assert written.count(r"\begin{") == written.count(r"\end{") == 2


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_stays_a_name(name):
    for form, document in DOCUMENTS.items():
        assert READ[form](document.row([name, "b"]))[0] == [printable(name), "b"]


def test_latex_has_balanced_braces_and_no_row_that_begins_with_an_option():
    written = DOCUMENTS["latex"].whole("Rates of 50 % & more", NASTY, [NASTY], NASTY)
    depth = 0
    for sign in re.sub(r"\\[\\{}]", "", written):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"^\s*[\[*]", written, re.MULTILINE)
    assert r"\caption{Rates of 50 \% \& more}" in written
    assert r"\begin{tabular}{lrrrrrrr}" in written


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


@pytest.mark.parametrize("form", ["markdown", "latex"])
@pytest.mark.parametrize("stat", ["mean", "count", "last", "success"])
def test_a_document_has_the_numbers_of_the_json_as_pages_write_them(client, measured, form, stat):
    answer = client.get(f"{MATRIX}?stat={stat}").json()
    text = body(client, f"{MATRIX}?stat={stat}&format={form}")
    rows = READ[form](text)
    head, *lines, last = rows
    tests = np.array(answer["cells"]["ok"]) + np.array(answer["cells"]["failed"])
    across, down = (np.flatnonzero(tests.any(axis)).tolist() for axis in (0, 1))
    assert (len(across), len(down)) == (2, 3)
    assert head == [r"from \ to", *(answer["destinations"][at]["name"] for at in across), "mean"]
    assert [line[0] for line in lines] == [answer["sources"][at]["name"] for at in down]
    shown_cells = (
        [[answer["cells"][name][row][at] for at in across] for row in down]
        for name in ("value", "state")
    )
    for line, values, states in zip(lines, *shown_cells, strict=True):
        for cell, value, state in zip(line[1:-1], values, states, strict=True):
            shown, _, word = cell.partition(" ")
            if state == "not_applicable":
                assert cell == ""
            elif stat == "mean":
                assert shown == (DASH if value is None else three_digits(value))
                assert word == ("" if state == "measured" else state)
            else:
                assert (shown == DASH) == (value is None)
    assert last[0] == "mean"
    unit = {"mean": ", in MB/s", "count": ", in transfers", "success": ", in %"}.get(stat, "")
    first = text.splitlines()[2 if form == "latex" else 0]
    assert f"the last 7 days{unit}. Window: 13 Nov 12:01 to 20 Nov 2026 12:01 UTC" in first.replace(
        r"\%", "%"
    )


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_a_document_leaves_out_what_has_no_result_and_uses_short_names(client, measured, form):
    Endpoint.objects.filter(pk=measured.scratch.pk).update(name="DESY-2_DATADISK", label="DATADISK")
    text = body(client, f"{MATRIX}?format={form}")
    head, *lines, _ = READ[form](text)
    assert head == [r"from \ to", "Glasgow", "RAL", "mean"]
    assert [line[0] for line in lines] == ["DESY", "Glasgow", "RAL"]
    caption = text.splitlines()[2 if form == "latex" else 0].replace("\\_", "_")
    said = "Left out without any result: 1 row and 2 columns. Names without _DATADISK."
    assert said in caption
    # What failed has a result, and so has the other side of a comparison.
    asked = "from=2026-11-20T10:00:00Z&to=2026-11-20T12:00:00Z&compare=previous"
    head, *lines, _ = READ[form](body(client, f"{MATRIX}?{asked}&format={form}"))
    assert head == [r"from \ to", "Glasgow", "RAL", "mean"]
    assert [line[0] for line in lines] == ["DESY", "Glasgow", "RAL"]
    # The machine-readable one has all, by full names.
    wide = list(csv.reader(io.StringIO(body(client, WIDE))))
    assert (len(wide), len(wide[0])) == (6, 6)
    assert "DESY-2_DATADISK" in wide[0]


def test_a_document_without_any_result_has_all_rows(client, at_noon, small_world):
    head, *lines = rows_of_markdown(body(client, f"{MATRIX}?format=markdown"))
    assert (len(head), len(lines)) == (6, 5)


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_a_document_of_links_has_the_numbers_of_the_json(client, measured, form):
    asked = "ordering=-large.mean_mb_s&large.ok.min=1&quantiles=p95"
    answer = client.get(f"{LINKS}?{asked}").json()["links"]
    head, *lines = READ[form](body(client, f"{LINKS}?{asked}&format={form}"))
    assert head[:2] == ["from", "to"]
    assert head[-6:] == [
        "large MB/s",
        "large 95th percentile (MB/s)",
        "large file size",
        "large ok",
        "large failed",
        "large state",
    ]
    assert [line[:2] for line in lines] == [
        [row["source"]["name"], row["destination"]["name"]] for row in answer
    ]
    for line, row in zip(lines, answer, strict=True):
        large = row["large"]
        spread = f" ± {three_digits(large['std_mb_s'])}" if large["ok"] > 1 else ""
        assert line[-6] == three_digits(large["mean_mb_s"]) + spread
        assert line[-5] == three_digits(large["p95_mb_s"])
        assert line[-3:] == [str(large["ok"]), str(large["failed"]), large["state"]]
        assert line[2] == DASH


def test_a_cloud_with_a_nasty_name_is_one_in_every_format(client, measured):
    name = "=1+1|&_% {x}"
    Site.objects.filter(id=measured.ral.site_id).update(cloud=name)
    pooled = f"{MATRIX}?rows=cloud&columns=cloud"
    for form in ("markdown", "latex"):
        head, *lines = READ[form](body(client, f"{pooled}&format={form}"))
        assert head.count(name) == 1
        assert [line[0] for line in lines].count(name) == 1
    wide = list(csv.reader(io.StringIO(body(client, f"{pooled}&format=csv&shape=wide"))))
    assert f"'{name}" in wide[0]
    assert f"'{name}" in [row[0] for row in wide]


def test_an_empty_matrix_is_a_table_of_its_means(client, db):
    assert body(client, WIDE) == '"from \\ to (mean, MB/s)",mean\nmean,\n'
    expected = [[r"from \ to", "mean"], ["mean", DASH]]
    assert READ["latex"](body(client, f"{MATRIX}?format=latex")) == expected
    assert len(READ["markdown"](body(client, f"{LINKS}?format=markdown"))) == 1


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("shape=wide", "shape", "shape=wide is for CSV: use format=csv, or leave it out for js"),
        ("shape=wide&format=latex", "shape", "shape=wide is for CSV"),
        ("shape=square&format=csv", "shape", "shape “square” is not known: use long or wide."),
        ("shape=wide&format=csv&fields=ok", "fields", "fields must be value, or left out"),
        ("format=markdown&fields=value,ok", "fields", "fields must be value, or left out"),
        ("format=tex", "format", "format “tex” is not known: use json, csv, markdown, latex, "),
    ],
)
def test_what_makes_no_table_is_a_400(client, db, text, name, sentence):
    response = client.get(f"{MATRIX}?{text}")
    assert response.status_code == 400
    assert response.json()["errors"][name][0].startswith(sentence)


@pytest.mark.parametrize(
    ("address", "kind", "ending"),
    [
        (f"{MATRIX}?format=markdown", "text/markdown; charset=utf-8", "md"),
        (f"{LINKS}?format=latex", "application/x-latex; charset=utf-8", "tex"),
        (WIDE, "text/csv; charset=utf-8", "csv"),
    ],
)
def test_each_says_what_it_is_and_has_an_etag_of_its_own(client, measured, address, kind, ending):
    response = client.get(address)
    assert response["Content-Type"] == kind
    assert response["Content-Disposition"].endswith(f'.{ending}"')
    response.getvalue()
    assert client.get(address, headers={"if-none-match": response["ETag"]}).status_code == 304
    other = client.get(f"{MATRIX}?format=csv")
    assert other["ETag"] != response["ETag"]


def test_a_browser_that_asks_for_markdown_by_its_type_gets_it(client, measured):
    response = client.get(MATRIX, headers={"accept": "text/markdown"})
    assert response["Content-Type"] == "text/markdown; charset=utf-8"


def test_the_numbers_of_a_large_matrix_fill_it():
    rows = rows_of_tex(matrix_formats.as_document(filled(40, 50), "latex").decode())
    assert {len(row) for row in rows} == {52}
    assert len(rows) == 42
