"""Facts about statistics stand in the catalogue and nowhere else."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from matrix.query.catalogue import EXTRAS, STATS
from tests.imports import PROJECT, modules
from tests.recipes import block

# Two of the others are words of much else: the bounds of a column.
NAMES = EXTRAS - {"min", "max"}


def spelt_in(tree: ast.AST) -> Iterator[set[str]]:
    """Yield the statistics that one list, set, mapping, call or class spells by name."""
    for node in ast.walk(tree):
        texts: list[object] = []
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Call):
            texts = [keyword.arg for keyword in node.keywords]
        elif isinstance(node, ast.ClassDef):
            fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            texts = [field.id for field in fields if isinstance(field, ast.Name)]
        yield NAMES & {str(text).removesuffix("_mb_s") for text in texts}


def tables(source: str) -> list[set[str]]:
    if sum(name in source for name in NAMES) < 2:
        return []  # to parse all modules takes seconds
    return [names for names in spelt_in(ast.parse(source)) if len(names) > 1]


@pytest.mark.parametrize(
    "source",
    [
        "LABELS = {'p05': '5th percentile', 'p95': '95th percentile'}",
        "RATES = ('mean', 'median', 'p95')",
        "FIELDS = ['median_mb_s', 'throughput_mb_s']",
        "class Row:\n    median: float\n    p05: float",
        "row(median=1, p95=2)",
    ],
)
def test_a_table_of_statistics_is_known_when_it_is_seen(source):
    assert tables(source)


def test_no_other_module_spells_a_table_of_statistics():
    found = {name: tables(path.read_text()) for name, path in modules("matrix")}
    assert [
        name for name, spelt in found.items() if spelt and name != "matrix.query.catalogue"
    ] == []


def test_neither_templates_nor_scripts_name_a_percentile():
    files = [*PROJECT.glob("templates/**/*.html"), *PROJECT.glob("static/js/**/*.js")]
    named = re.compile(r"\bp\d\d\b|percentile")
    assert len(files) > 40
    assert [path.name for path in files if named.search(path.read_text())] == []


def test_the_documentation_of_the_page_names_every_statistic():
    row = f"| `stat` | `{' '.join(STATS)}` | `mean` |"
    assert row in (PROJECT / "docs" / "pages.md").read_text().splitlines()


# Follows the recipe of docs/extending.md, whose entry it is given; the rest says what came of it.
TOY = """
import json, sys, types
from pathlib import Path

import matrix.query

path = Path(matrix.query.__path__[0], "catalogue.py")
line = "        percentile(95, in_band=True),\\n"
source = path.read_text()
assert source.count(line) == 1
module = types.ModuleType("matrix.query.catalogue")
sys.modules[module.__name__] = matrix.query.catalogue = module
more = source.replace(line, line + f"        {sys.argv[1].strip()},\\n")
exec(compile(more, path, "exec"), vars(module))

import os
os.environ["DJANGO_SETTINGS_MODULE"] = "sonar.settings"
import django
django.setup()

import numpy as np
from matrix.answers.link import directions, series
from matrix.answers.table import column_filters, table_query
from matrix.api import links
from matrix.api import series as series_schema
from matrix.api.schema import parameters as queries
from matrix.pages.link import figures
from matrix.answers.words.numbers import number
from matrix.plots.scales import scale_for
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.samples import reduce
from sonar.notation import windows

window = windows.Window(*(windows.parse_time(f"2026-11-2{day}T00:00:00Z") for day in (0, 1)))
cut = series.cut_for(window, "1d")
started = np.full(5, cut.first)
rates = np.array([1, 2, 3, 4, 5], dtype=np.float32) * 1_000_000
print(json.dumps({
    "sentence": MatrixQuery(stat="p25").describe(),
    "control": module.STATISTICS["p25"].label,
    "purpose": module.STATISTICS["p25"].purpose,
    "written": number(12.345, module.STATISTICS["p25"]),
    "logarithmic": scale_for(module.STATISTICS["p25"], rates).logarithmic,
    "fraction": reduce.QUANTILES["p25"],
    "in a series": series.in_buckets(started, rates, cut).rates["p25"].tolist(),
    "of a direction": sorted(directions.LINK_QUANTILES),
    "columns of a link": [heading for heading, _ in figures.QUANTILE_COLUMNS],
    "columns of its buckets": figures.BUCKET_COLUMNS,
    "fields of a series": list(series_schema.Buckets.model_fields),
    "example of a series": series_schema.EXAMPLE["buckets"]["p25_mb_s"],
    "parameter": queries.STAT.type["enum"],
    "field of a link": links.OfClass.model_fields["p25_mb_s"].default,
    "ordering": "large.p25_mb_s" in table_query.orderings(["large"]),
    "conditions": [name for name in column_filters.names(["large"]) if "p25" in name],
}))
"""


@pytest.mark.long
def test_a_quantile_of_the_recipe_is_one_line():
    entry = block("A statistic", "matrix/query/catalogue.py")
    command = [sys.executable, "-c", TOY, entry]
    toy = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    assert toy.returncode == 0, toy.stderr
    found = json.loads(toy.stdout)
    files = "large-file transfers, the last 7 days"
    at = STATS.index("p95") + 1
    assert found == {
        "sentence": f"25th percentile of the rate for {files}",
        "control": "25th percentile",
        "purpose": "25 % of tests are slower",
        "written": "12.3",
        "logarithmic": True,
        "fraction": 0.25,
        "in a series": [2.0],
        "of a direction": sorted(
            [*(name for name in EXTRAS if name == "median" or name[1:].isdigit()), "p25"]
        ),
        "columns of a link": found["columns of a link"],
        "columns of its buckets": found["columns of its buckets"],
        "fields of a series": found["fields of a series"],
        "example of a series": [None, 4.5],
        "parameter": [*STATS[:at], "p25", *STATS[at:]],
        "field of a link": None,
        "ordering": True,
        "conditions": ["large.p25_mb_s.min", "large.p25_mb_s.max"],
    }
    assert "25th percentile" in found["columns of a link"]
    assert "25th percentile" in found["columns of its buckets"]
    fields = found["fields of a series"]
    assert fields.index("p05_mb_s") < fields.index("p25_mb_s") < fields.index("median_mb_s")
