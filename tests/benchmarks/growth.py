"""How costs grow with links and results: compares reports of `make bench` of several scales.

`python -m tests.benchmarks.growth default.json double.json tenfold.json` prints each figure at the
scales in turn, and the exponents: 1 is a cost that grows as the data does, 0 one that stays.
"""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.benchmarks.measured import figure, wide_console

# How much there was to do stands in titles, and differs from scale to scale.
COUNTS = re.compile(r"\d{1,3}(,\d{3})+")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, help="the smallest scale first")
    reports = [json.loads(path.read_text()) for path in parser.parse_args().reports]
    rows = [report["scale"]["rows"] for report in reports]
    if len(set(rows)) < 2 or rows != sorted(set(rows)):
        parser.error("give reports of two scales or more, each once, the smallest first")
    wide_console().print(table(reports))


def table(reports: list[dict[str, Any]]) -> Table:
    """Return a row for each figure of the first report that another one has, too."""
    first, *others = reports
    columns = [f"{report['scale']['rows']:,} results" for report in reports]
    powers = [f"exponent to {report['scale']['name']}" for report in others]
    found = Table("", "", *columns, *powers, title="Growth, by the fastest rounds")
    all_figures = [figures(report) for report in reports]
    for (title, name), value in all_figures[0].items():
        values = [of_one.get((title, name)) for of_one in all_figures]
        if any(values[1:]):
            found.add_row(
                title,
                name,
                *("" if one is None else figure(one) for one in values),
                *(
                    exponent(first, one, value, new)
                    for one, new in zip(others, values[1:], strict=True)
                ),
            )
    return found


def figures(report: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Return milliseconds of every contestant, and what else was measured, by title and name."""
    contests = {
        (COUNTS.sub("n", contest["title"]), f"{name}, ms"): float(spread["minimum"])
        for contest in report["contests"]
        for name, spread in contest["milliseconds"].items()
    }
    facts = {
        (COUNTS.sub("n", fact["name"]), fact["unit"]): float(fact["value"])
        for fact in report["facts"]
    }
    return contests | facts


def exponent(
    small: dict[str, Any], large: dict[str, Any], before: float, after: float | None
) -> str:
    """Return the power of the number of results with which a figure grows."""
    if not after or before <= 0:
        return ""
    times = large["scale"]["rows"] / small["scale"]["rows"]
    return f"{math.log(after / before) / math.log(times):.2f}"


if __name__ == "__main__":
    main()
