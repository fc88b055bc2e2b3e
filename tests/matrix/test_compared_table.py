"""The columns of a comparison in the table of links, against numpy and scipy."""

import random
import re
from datetime import timedelta

import numpy as np
import pytest

from matrix.answers.table import link_table
from matrix.answers.table.columns import COMPARED
from matrix.query.comparison import Comparison
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Transfer
from sonar.notation.windows import Window
from tests.matrix import moderated, world
from tests.matrix.test_link_table import fill, names
from tests.matrix.test_table_page import heads, look, rows
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
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
        word for word in heads(page).split() if word in ("this", "other", "ratio", "now", "usual")
    ] == [*("this", "other", "ratio")]
    other = "large files: median rate of the other side, the 24 hours before (MB/s)"
    assert other in page.titles()
    assert "large files compared with the 24 hours before" in page


def test_a_link_of_too_few_results_says_so(client, changed):
    page = look(client, f"{WHOLE_PAGE}&source.has=DESY_DATA&destination.has=RAL")
    (row,) = rows(page)
    assert row[9].endswith("n = 2")
    assert row[11:13] == ["–", "–"]
    assert "fewer than 3 successful tests on one side" in page.titles()


def test_columns_of_a_comparison_order_and_filter(client, changed):
    first = rows(look(client, f"{COMPARED_PAGE}&ordering=large.compared_p"))[0]
    assert first[0].startswith("RAL_DATADISK")
    few = look(client, f"{COMPARED_PAGE}&large.compared_ratio.max=0.7")
    assert len(rows(few)) == 1
    assert "large ratio of this side to the other at most 0.7" in few
    slower = look(client, f"{COMPARED_PAGE}&only=slower")
    assert [row[0].split()[0] for row in rows(slower)] == ["RAL_DATADISK"]
    assert "1 certainly slower" in slower


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
    assert f"{name} is there only while comparing" in response.content.decode()
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
