"""The dashboard for Grafana: each of its queries, sent to a live Sonar and read as Grafana does."""

import csv
import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
import requests

from tests.examples.conftest import EXAMPLES
from tests.matrix.world import NOW

DASHBOARD = json.loads((EXAMPLES / "grafana_dashboard.json").read_text())
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"}
TYPES = {"string": str, "number": float, "timestamp": str}


def grafana_time(moment: Any) -> str:
    """Write a time as `${__from:date:iso}` does, with milliseconds."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"))


VALUES = {
    "__from:date:iso": grafana_time(NOW - timedelta(days=7)),
    "__to:date:iso": grafana_time(NOW),
    "size": "large",
    "source": "Glasgow_DATADISK",
    "destination": "RAL_DATADISK",
}


def rows(url: str, target: dict[str, Any]) -> list[dict[str, Any]]:
    """Send the query of a panel and return its rows by the titles of the columns.

    Selectors are names of one level, which all parsers of the Infinity data source read alike.
    """
    assert target["parser"] == "backend"  # alerts need it
    path = re.sub(
        r"\$\{([^}]+)\}",
        lambda found: VALUES[found[1].removesuffix(":percentencode")],
        target["url"],
    )
    answer = requests.get(url + path, timeout=120)
    assert answer.status_code == 200, answer.text
    if target["type"] == "csv":
        found: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(answer.text)))
    else:
        found = answer.json()[target["root_selector"]]
    return [{one["text"]: row[one["selector"]] for one in target["columns"]} for row in found]


def of_panel(url: str, title: str) -> list[dict[str, Any]]:
    (target,) = PANELS[title]["targets"]
    return rows(url, target)


def test_the_variables_offer_size_classes_and_endpoints(url):
    offered = {
        name: {row["__value"] for row in rows(url, one["query"]["infinityQuery"])}
        for name, one in VARIABLES.items()
    }
    assert offered["size"] == {"small", "medium", "large"}
    assert offered["source"] == offered["destination"]
    assert "Glasgow_DATADISK" in offered["source"]


def test_the_table_has_the_rate_of_each_link(url):
    found = of_panel(url, "Rates of ${size} files, slowest first")
    rates = {(row["Source"], row["Destination"]): row["Mean rate"] for row in found}
    assert rates["Glasgow_DATADISK", "RAL_DATADISK"] == "52.0"
    assert rates["DESY_DATADISK", "RAL_DATADISK"] == "2.6"


def test_the_line_of_one_link_has_its_rates_over_time(url):
    found = of_panel(url, "${source} → ${destination}, ${size} files")
    medians = [float(row["Median"]) for row in found if row["Median"]]
    assert medians == pytest.approx([50.0])
    assert all(row["Time"].endswith("Z") for row in found)


def test_links_are_counted_by_state(url, known_world):
    found = of_panel(url, "Links by state, the last 24 hours")
    large = next(row for row in found if row["Size class"] == "large")
    assert (large["Measured"], large["Stale"], large["Failing"]) == (2, 1, 1)


def test_open_incidents_are_listed(url, known_world):
    from tests.sonar import alarms

    alarms.incident(known_world.ral, type="failing")
    (row,) = of_panel(url, "Open incidents")
    assert "RAL" in row["Incident"]
    assert row["Since"].endswith("Z")
