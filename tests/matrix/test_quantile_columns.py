"""Columns of quantiles in the link table: there for who asks, on the page and in the API."""

import csv
import io
import json
import math
import re

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client

from matrix.answers.table import link_table, table_query
from matrix.answers.table.columns import COLUMNS
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from sonar.models import SizeClass
from tests.matrix import responses
from tests.matrix.test_link_table import fill, names
from tests.matrix.world import NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
SIZES = ["small", "medium", "large"]
SQL = """
    SELECT s.name, d.name, percentile_cont(%s) WITHIN GROUP (ORDER BY bytes / seconds / 1e6)
    FROM sonar_transfer t
    JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_endpoint d ON d.id = destination_id
    WHERE size_class_id = %s AND state = 'done' AND started_at >= %s AND started_at < %s
    GROUP BY 1, 2
"""


@pytest.fixture
def measured(small_world: World) -> World:
    for rate in (10.0, 20.0, 40.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    for rate in (30.0, 31.0):
        transfer(small_world.glasgow, small_world.ral, rate)
    transfer(small_world.desy, small_world.ral, None)
    return small_world


def of_three(name: str) -> float:
    """A quantile of 10, 20 and 40."""
    position = 2 * (TABLE_QUANTILES[name].quantile or 0)
    return 10 + 10 * position if position < 1 else 20 + 20 * (position - 1)


@pytest.mark.parametrize("name", TABLE_QUANTILES)
def test_a_quantile_is_that_of_sql_in_every_size_class(small_world, name: str):
    fill(small_world, 150, 3)
    query = MatrixQuery(window="7d")
    table, window = link_table.build(query, NOW, quantiles=[name]), query.window_at(NOW)
    statistic = TABLE_QUANTILES[name]
    for size, number in SizeClass.objects.values_list("name", "id"):
        with connection.cursor() as cursor:
            cursor.execute(SQL, [statistic.quantile, number, window.start, window.end])
            true = {row[:2]: row[2] for row in cursor.fetchall()}
        column = table.column(f"{size}.{statistic.field}").tolist()
        known = {
            link: value
            for link, value in zip(names(table), column, strict=True)
            if not math.isnan(value)
        }
        assert known == pytest.approx(true, rel=2e-7)


def test_what_nobody_asks_for_is_not_computed_and_nothing_else_changes(measured):
    plain = link_table.build(MatrixQuery(), NOW)
    assert plain.quantiles == ()
    with pytest.raises(KeyError):
        plain.column("large.p95_mb_s")
    table = link_table.build(MatrixQuery(), NOW, quantiles=["p95"])
    assert table.quantiles == ("p95_mb_s",)
    assert link_table.build(MatrixQuery(), NOW).quantiles == ()
    for column in COLUMNS:
        ours, theirs = (some.column(f"large.{column}") for some in (plain, table))
        assert ours.tolist() == pytest.approx(theirs.tolist(), nan_ok=True)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", []),
        ("ordering=-large.mean_mb_s", []),
        ("quantiles=p95,median", ["median", "p95"]),
        ("quantiles=+p95,", ["p95"]),
        ("ordering=-small.p05_mb_s", ["p05"]),
        ("large.median_mb_s.min=3&ordering=large.p95_mb_s", ["median", "p95"]),
    ],
)
def test_a_listing_says_which_quantiles_it_needs(text: str, columns: list[str]):
    listing = table_query.read(QueryDict(text), SIZES)[1]
    assert [one.name for one in listing.columns] == columns


def test_a_listing_without_a_quantile_is_neither_ordered_nor_filtered_by_it():
    text = "quantiles=median,p95&ordering=-large.p95_mb_s&small.p95_mb_s.min=1&large.ok.min=2"
    listing = table_query.read(QueryDict(text), SIZES)[1]
    assert listing.params() == dict(QueryDict(text).lists())
    without = listing.without_column(TABLE_QUANTILES["p95"])
    assert without.params() == {"quantiles": ["median"], "large.ok.min": ["2"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("quantiles=p98", "quantiles “p98” is not known: use median, p05"),
        ("quantiles=p95&quantiles=median", "quantiles is given 2 times: give it once."),
        ("large.p98_mb_s.min=1", "There is no parameter “large.p98_mb_s.min”"),
        ("ordering=large.max_mb_s", "ordering “large.max_mb_s” is not known"),
    ],
)
def test_a_bad_quantile_is_a_400_that_says_what_is_allowed(client, db, text: str, sentence: str):
    with pytest.raises(BadQueryError, match=r".") as caught:
        table_query.read(QueryDict(text), SIZES)
    assert sentence in str(caught.value)
    # A page ignores what it does not know.
    is_unknown = "There is no parameter" in sentence
    assert client.get(f"/table/?{text}").status_code == (200 if is_unknown else 400)
    assert client.get(f"/api/v1/links/?{text}").status_code == 400


def links(client: Client, text: str) -> list[dict]:
    found: list[dict] = responses.answer(client, f"/api/v1/links/?{text}")["links"]
    return found


@pytest.mark.parametrize("name", TABLE_QUANTILES)
def test_every_form_of_the_api_has_the_column(client, measured, name: str):
    field = TABLE_QUANTILES[name].field
    ends = "source.has=RAL&destination.has=Glasgow"
    (row,) = links(client, f"{ends}&quantiles={name}")
    assert row["large"][field] == pytest.approx(of_three(name), abs=1e-6)
    assert row["small"][field] is None
    plain = links(client, ends)[0]
    assert list(row["large"]) == [*plain["large"], field]
    body = b"".join(client.get(f"/api/v1/links/?{ends}&quantiles={name}&format=csv"))
    (line,) = csv.DictReader(io.StringIO(body.decode()))
    assert float(line[f"large.{field}"]) == row["large"][field]
    assert line[f"small.{field}"] == ""
    body = b"".join(client.get(f"/api/v1/links/?{ends}&quantiles={name}&format=ndjson"))
    assert json.loads(body)["large"][field] == row["large"][field]


@pytest.mark.parametrize("name", TABLE_QUANTILES)
def test_page_and_api_order_and_choose_links_by_it(client, measured, name: str):
    field = TABLE_QUANTILES[name].field
    text = f"ordering=-large.{field}&large.{field}.min=9"
    rows = links(client, text)
    rates = [row["large"][field] for row in rows]
    assert rates == sorted(rates, reverse=True)
    assert len(rates) == 2
    least = rates[0] - 1
    assert links(client, f"large.{field}.min={least:.3f}") == rows[:1]
    assert len(links(client, f"large.{field}.max={least:.3f}")) == 1
    html = responses.html(client, f"/table/?{text}")
    body = html.split("<tbody>")[1]
    shown = re.findall(r'title="(\S+) → (\S+), site', body)[::2]
    assert shown == [(row["source"]["name"], row["destination"]["name"]) for row in rows]
    heading = f"{TABLE_QUANTILES[name].label} (MB/s) at least 9"
    assert f"large {heading}" in " ".join(html.split())


def test_the_page_has_its_columns_where_they_are_asked_for(client, measured):
    plain = responses.html(client, "/table/")
    head = plain.split("<thead")[1].split("</thead>")[0]
    assert "percentile" not in head
    assert 'href="/table/?quantiles=p95"' in plain
    text = "quantiles=p95&source.has=RAL&destination.has=Glasgow&constant=1"
    html = responses.html(client, f"/table/?{text}")
    head, body = html.split("<thead")[1].split("</thead>")[:2]
    assert re.findall(r'<th scope="colgroup" colspan="(\d)">', head) == ["3", "3", "8", "4", "4"]
    assert 'title="large files: 95th percentile of the rates of single transfers (MB/s)' in head
    assert '<option value="large.p95_mb_s">large 95th percentile (MB/s)</option>' in html
    assert 'title="38.0 MB/s (n = 3); last result' in body
    assert '<input type="hidden" name="quantiles" value="p95">' in html
    assert "/api/v1/links/?ordering=-trouble&amp;quantiles=p95&amp;source.has=RAL" in html
    assert re.search(r'aria-current="true">95th percentile\s', html)


@pytest.mark.parametrize("name", TABLE_QUANTILES)
def test_the_worst_links_of_a_quantile_are_listed_by_it(client, measured, name: str):
    standouts = client.get(f"/?stat={name}").context["standouts"]
    worst = next(standout for standout in standouts if standout.kind == "worst")
    assert (worst.title, worst.more) == (
        "slowest",
        f"/table/?ordering=large.{TABLE_QUANTILES[name].field}",
    )


def test_a_link_without_a_success_has_a_dash_with_its_reason(client, measured):
    html = responses.html(
        client, "/table/?quantiles=median&source.has=DESY_DATA&large.failed.min=1"
    )
    cells = re.findall(
        r'<td class="number[^"]*"\s+title="the only result failed[^"]*"[^>]*>–', html
    )
    assert len(cells) == 2
