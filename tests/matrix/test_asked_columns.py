"""Columns of the link table for who asks: quantiles, and both sides of a comparison."""

import json
import math
import random
import re
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client

from matrix.answers.table import link_table, table_query
from matrix.answers.table.link_table import COLUMNS, COMPARED
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.comparison import Comparison
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import Window
from tests.matrix import moderated, responses, world
from tests.matrix.test_link_table import fill, names
from tests.matrix.test_table_page import heads, look, rows
from tests.matrix.world import HOUR, NOW, World, transfer

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
        ("quantiles=p95&quantiles=median", "“quantiles” is given 2 times: give it only once."),
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
    (line,) = responses.csv_rows(client, f"/api/v1/links/?{ends}&quantiles={name}&format=csv")
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
    assert 'title="large files: 95th percentile of the rates of individual transfers (MB/s)' in head
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


DAY = timedelta(days=1)
BEFORE = MatrixQuery(window="24h", compare=Comparison("previous"))
COMPARED_PAGE = "?window=24h&compare=previous"
WHOLE_PAGE = f"{COMPARED_PAGE}&constant=1"


@pytest.fixture
def changed(small_world: World) -> World:
    """One link at half its rate, one as it was, one that has too few results."""
    made, draws, added = small_world, random.Random(5), world.Transfers()
    for link, now, before, count in (
        ((made.ral, made.glasgow), 40.0, 80.0, 12),
        ((made.glasgow, made.ral), 20.0, 20.0, 12),
        ((made.desy, made.ral), 20.0, 20.0, 2),
    ):
        for number in range(count):
            ago = (1 + number) * HOUR
            added.add(*link, now * draws.lognormvariate(0, 0.05), ago=ago)
            added.add(*link, before * draws.lognormvariate(0, 0.05), ago=DAY + ago)
    added.store()
    return made


def rates(source: str, destination: str, window: Window) -> list[float]:
    done = Transfer.objects.filter(
        source__name=source,
        destination__name=destination,
        size_class__name="large",
        state="done",
        started_at__gte=window.start,
        started_at__lt=window.end,
    )
    # As they are kept: in four bytes.
    return [float(np.float32(one.bytes / one.seconds)) / 1e6 for one in done]


@pytest.mark.parametrize("of", ["median", "mean"])
def test_each_link_has_what_numpy_and_scipy_make_of_both_sides(small_world, of: str):
    fill(small_world, 600, 3)
    compare = Comparison("previous", of=of)
    query = MatrixQuery(window="", start=NOW - 4 * DAY, end=NOW, compare=compare)
    table = link_table.build(query, NOW)
    here = query.window_at(NOW)
    there = query.other(NOW).window_at(NOW)
    columns = {name: table.column(f"large.{name}") for name in COMPARED}
    centre = np.median if of == "median" else np.mean
    compared = 0
    sides = [[rates(*link, window) for window in (here, there)] for link in names(table)]
    prior = moderated.prior(sides)
    for row, (own, other) in enumerate(sides):
        assert columns["other_ok"][row] == len(other)
        for name, sample in (("this_mb_s", own), ("other_mb_s", other)):
            wanted = centre(sample) if sample else np.nan
            np.testing.assert_allclose(columns[name][row], wanted, rtol=1e-6)
        if min(len(own), len(other)) < 3:
            assert np.isnan(columns["compared_ratio"][row])
            assert np.isnan(columns["compared_p"][row])
            continue
        compared += 1
        ratio = columns["compared_ratio"][row]
        np.testing.assert_allclose(ratio, centre(own) / centre(other), rtol=1e-6)
        expected = moderated.expected(own, other, prior, of)
        for name, wanted in expected._asdict().items():
            np.testing.assert_allclose(columns[f"compared_{name}"][row], wanted, rtol=1e-4)
    assert compared >= 5


def test_links_are_paired_with_their_opposite_direction(changed):
    table = link_table.build(MatrixQuery(window="24h", compare=Comparison(reverse=True)), NOW)
    this, other = (
        dict(zip(names(table), table.column(f"large.{name}").tolist(), strict=True))
        for name in ("this_mb_s", "other_mb_s")
    )
    ends = changed.ral.name, changed.glasgow.name
    assert other[ends] == this[ends[::-1]]
    assert other[ends[::-1]] == this[ends]


def test_a_row_has_both_sides_the_ratio_its_interval_and_p(client, changed):
    page = look(client, f"{WHOLE_PAGE}&source.has=RAL&destination.has=Glasgow")
    (row,) = rows(page)
    assert re.fullmatch(r"[34]\d\.\d n = 12", row[9])
    assert re.fullmatch(r"[78]\d\.\d n = 12", row[10])
    assert re.fullmatch(r"0\.\d\d× \(0\.\d\d–0\.\d\d\)", row[11])
    assert row[12] == "< 0.001"
    assert page.parts("table.links td.number.slower")
    assert [
        word
        for word in heads(page).split()
        if word in ("this", "other", "ratio", "now", "baseline")
    ] == [*("this", "other", "ratio")]
    other = (
        "large files: median rate on the other side of the comparison: the 24 hours before (MB/s)"
    )
    assert other in page.titles()
    assert "large files compared with the 24 hours before" in page


def test_a_link_of_too_few_results_says_so(client, changed):
    page = look(client, f"{WHOLE_PAGE}&source.has=DESY_DATA&destination.has=RAL")
    (row,) = rows(page)
    assert row[9].endswith("n = 2")
    assert row[11:13] == ["–", "–"]
    assert "fewer than 3 successful tests on one side of the comparison" in page.titles()


def test_columns_of_a_comparison_order_and_filter(client, changed):
    first = rows(look(client, f"{COMPARED_PAGE}&ordering=large.compared_p"))[0]
    assert first[0].startswith("RAL_DATADISK")
    few = look(client, f"{COMPARED_PAGE}&large.compared_ratio.max=0.7")
    assert len(rows(few)) == 1
    assert "large ratio of this side to the other at most 0.7" in few
    slower = look(client, f"{COMPARED_PAGE}&only=slower")
    assert [row[0].split()[0] for row in rows(slower)] == ["RAL_DATADISK"]
    assert "1 significantly slower" in slower


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("large.compared_ratio.max=0.7", "large.compared_ratio.max"),
        ("compare=previous&small.compared_p.max=0.7", "small.compared_p.max"),
    ],
)
def test_a_condition_on_nothing_that_is_compared_is_refused(client, changed, text: str, name: str):
    response = client.get(f"/table/?{text}")
    assert response.status_code == 400
    assert f"{name} requires a comparison" in response.content.decode()
    order = client.get("/table/?ordering=large.compared_p")
    assert order.status_code == 400


def test_what_was_asked_of_a_comparison_goes_with_it(client, changed):
    text = (
        f"{COMPARED_PAGE}&ordering=-large.compared_ratio&large.compared_p.max=0.05&large.ok.min=3"
    )
    page = look(client, text)
    chips = {chip.words: chip["href"] for chip in page.parts("a.chip")}
    (compared,) = [url for words, url in chips.items() if words.startswith("compared with")]
    assert compared == "/table/?window=24h&large.ok.min=3"
    small = page.part('[aria-label^="size class"]').link("small")
    assert small == "/table/?size=small&window=24h&compare=previous&large.ok.min=3"
    assert client.get(small).status_code == 200


def test_what_is_certain_is_told_among_all_links_whichever_are_shown(small_world):
    made, added = small_world, world.Transfers()
    # Of this one alone p is 0.03, which one test among four is not enough for.
    here, there = (10.0, 11.0, 12.0, 13.0, 14.7), (12.0, 14.0, 15.0, 16.0, 17.0)
    alike = ((made.ral, made.desy), (made.desy, made.ral), (made.glasgow, made.desy))
    for rates_of, ago in ((here, HOUR), (there, DAY + HOUR)):
        for number, rate in enumerate(rates_of):
            added.add(made.ral, made.glasgow, rate, ago=ago + number * HOUR)
            for link in alike:
                added.add(*link, 10.0 + number, ago=ago + number * HOUR)
    added.store()
    query = BEFORE.replace(filters=(Filter("destination_site", "Glasgow"),))
    every, only = (link_table.build(one, NOW) for one in (BEFORE, query))
    assert 0.0125 < float(only.column("large.compared_p")[0]) < 0.05
    flags = [table.of_change("large", "slower") for table in (every, only)]
    assert [flag.sum() for flag in flags if flag is not None] == [0, 0]


def test_nothing_is_compared_where_nothing_is_asked(changed):
    table = link_table.build(MatrixQuery(window="24h"), NOW)
    assert table.of_change("large", "slower") is None
    with pytest.raises(KeyError):
        table.column("large.compared_p")


def test_new_results_of_the_other_side_make_a_new_version(changed):
    first = link_table.version(BEFORE, NOW)
    plain = link_table.version(BEFORE.replace(compare=None), NOW)
    assert link_table.version(BEFORE, NOW) == first != plain
    transfer(changed.ral, changed.glasgow, 5.0, ago=DAY + HOUR)
    assert link_table.version(BEFORE, NOW) != first
    sizes = BEFORE.replace(compare=Comparison(size="small"))
    before = link_table.version(sizes, NOW)
    transfer(changed.ral, changed.glasgow, 5.0, size="small")
    assert link_table.version(sizes, NOW) != before
