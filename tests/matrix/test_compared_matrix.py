"""The matrix page while it compares: what it says, lists, marks and leaves uncoloured."""

import random
import re
from datetime import timedelta
from itertools import permutations

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import ChangeTally, Headline, read_judgement
from matrix.answers.matrix.highlights import Highlight, Highlights
from matrix.plots import cells_file
from matrix.plots import matrix as plots
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from matrix.plots.palettes import DIVERGING
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.two_samples import SMALLEST_RATIO
from sonar.models import Endpoint
from tests.conditions import TYPES, stored_condition
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.responses import statements
from tests.matrix.test_cells_file import decoded
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
COMPARED = "?window=24h&compare=previous"


@pytest.fixture
def changed(small_world) -> World:
    """Two links slower and one faster than the day before, one of too few results, one failing."""
    made, draws = small_world, random.Random(7)
    added = world.Transfers()
    links = {
        (made.ral, made.glasgow): (41.0, 82.0, 12, 12),
        (made.glasgow, made.ral): (10.0, 40.0, 9, 12),
        (made.ral, made.desy): (30.0, 10.0, 12, 12),
        (made.desy, made.ral): (20.0, 20.0, 12, 12),
        (made.desy, made.glasgow): (20.0, 5.0, 2, 12),
        (made.glasgow, made.desy): (20.0, 5.0, 12, 0),
    }
    for link, (now, before, count, count_before) in links.items():
        for number in range(count):
            added.add(*link, now * draws.lognormvariate(0, 0.05), ago=(1 + 0.2 * number) * HOUR)
        for number in range(count_before):
            ago = DAY + (1 + number) * HOUR
            added.add(*link, before * draws.lognormvariate(0, 0.05), ago=ago)
    for number in range(4):
        added.add(made.ral, made.scratch, None, ago=(1 + number) * HOUR)
    added.store()
    stored_condition(TYPES.FAILING, source=made.ral, destination=made.scratch, since=4 * HOUR)
    return made


def look(client: Client, text: str) -> Page:
    return responses.page(client, f"/{text}")


def answered(text: str) -> Grid:
    return grid.build(MatrixQuery.from_params(QueryDict(text.removeprefix("?"))), NOW, whole=True)


def found_in(compared: Grid) -> dict[str, Highlight]:
    listed = Highlights(compared, read_judgement(compared, NOW), lambda row, column: "", {})
    return {one.kind: one for one in listed.all()}


def said_of(compared: Grid) -> str:
    return Headline.of(compared, read_judgement(compared, NOW), NOW).words()


def test_the_heading_says_what_is_wrong_and_how_many_links_changed_and_against_what(
    client, changed
):
    page = look(client, COMPARED)
    assert page.part("h1").words.replace(" ,", ",") == (
        "RAL_DATADISK to DESY_SCRATCHDISK fails since 20 Nov 08:00 UTC, "
        "2 links slower, 1 faster, compared with the 24 hours before"
    )
    assert page.part("ul.counts").words == (
        "1 failing 1 without a significant difference 2 with too few results"
    )
    question = (
        "Ratio of median rates of large-file transfers, the last 24 hours, compared with the "
        "24 hours before."
    )
    assert question in page


def test_what_changed_is_listed_first_with_interval_and_counts(client, changed):
    rail = look(client, COMPARED).part("aside#rail")
    kinds = [section["class"] for section in rail.parts("section.ranked")]
    assert kinds == ["ranked failing", "ranked changed"]
    said = rail.texts("section.changed li")[:3]
    assert ["0.2" in said[0], "3.0×" in said[1], "0.5" in said[2]] == [True] * 3, said
    pattern = r"39\.\d against 8\d\.\d MB/s \(0\.4\d–0\.5\d×\), n = 12 and 12, p < 0\.001"
    assert re.search(pattern, said[2])
    assert "/?window=24h&compare=previous&only=slower&only=faster" in rail.links()
    assert "Slower than usual" not in rail
    assert "asymmetric" not in rail


def test_the_list_has_the_most_certain_first_and_of_these_the_largest(changed):
    compared = answered(COMPARED)
    ratios = compared.comparison
    found = found_in(compared)
    places = [
        (
            [group.name for group in compared.sources].index(item.source),
            [group.name for group in compared.destinations].index(item.destination),
        )
        for item in found["changed"].items
    ]
    ranked = [(ratios.p[at], -abs(np.log(ratios.ratio[at]))) for at in places]
    assert ranked == sorted(ranked)
    assert len(ranked) == found["changed"].count == compared.changed.sum() == 3


def test_cells_with_too_few_results_have_a_mark_and_no_colour(changed):
    compared = answered(COMPARED)
    figure = plots.figure(arrange(compared, Display()))
    scale = plots.scale_for(compared.query.statistic, compared.cells.value)
    drawn = plots.codes(arrange(compared, Display()), scale)
    assert (drawn == plots.TOO_FEW).sum() == compared.too_few.sum() == 2
    named = [trace for trace in figure["data"] if trace["type"] == "scatter"]
    marks = {trace["name"]: len(trace["x"]) for trace in named}
    assert marks == {"untested": 5, "too few": 2, "failing": 1, "slower": 2, "faster": 1}
    assert [colour for _, colour in figure["layout"]["coloraxis"]["colorscale"]] == list(DIVERGING)
    assert figure["layout"]["coloraxis"]["colorbar"]["title"]["text"].startswith("ratio")


def test_the_legend_counts_what_is_marked_and_shows_only_that(client, changed):
    page = look(client, COMPARED)
    legend = page.part("ul.legend")
    entries = legend.parts("li")
    counts = {
        entry.part(".swatch")["class"].removeprefix("swatch "): entry.part("b").words
        for entry in entries
    }
    expected = {"slower": "2", "faster": "1", "too_few": "2", "failing": "1"}
    assert {name: counts[name] for name in ("slower", "faster", "too_few", "failing")} == expected
    assert "partly" not in counts
    legend = f"{legend.words} {legend.titles()}"
    assert "¼× to 4× of the other side" in legend
    assert "brown is slower than the 24 hours before, teal is faster" in legend
    assert "fewer than 3 successful tests on one side of the comparison" in legend
    only = arrange(answered(COMPARED), Display(only=("slower",)))
    assert only.in_focus.sum() == 2
    # There is one palette around 1.
    assert not page.parts(".ramp")


def test_the_table_of_numbers_says_both_sides_of_each_cell(client, changed):
    table = look(client, COMPARED).part("#table table")
    measured = [cell["title"] for cell in table.parts("td.measured")]
    assert len(measured) == 4
    assert all(
        re.search(r"against .* MB/s \(.*×\), n = \d+ and 12, p ", title) for title in measured
    )
    few = table.parts("td.too_few")
    expected = ["n = 12 and 0", "n = 2 and 12"]
    assert sorted(cell["title"].split(", ", 1)[1] for cell in few) == expected
    assert all(cell.words == "– too few tests" for cell in few)
    assert "Geometric means include measured cells only." in table


def test_the_numbers_behind_the_picture_have_both_sides(changed):
    compared = answered(COMPARED)
    ratios = compared.comparison
    arrangement = arrange(compared, Display(transpose=True))
    header, arrays = decoded(cells_file.encode(arrangement))
    assert header["changes"] == ["", "slower", "faster"]
    for name, values in {
        "here": ratios.value,
        "there": ratios.other,
        "low": ratios.low,
        "p": ratios.p,
        "here_ok": ratios.ok,
        "there_ok": ratios.other_ok,
        "value": compared.cells.value,
    }.items():
        wanted = arrangement.drawn(values).astype(arrays[name].dtype)
        np.testing.assert_array_equal(arrays[name], wanted, err_msg=name)
    changes = np.take(header["changes"], arrays["change"])
    assert (changes == "slower").sum() == 2
    assert (changes == "faster").sum() == 1


def test_strips_of_one_site_have_the_changes_of_the_whole_view(changed):
    compared = answered(f"{COMPARED}&site=RAL")
    drawn = arrange(compared, Display())
    assert drawn.own is not None
    # Each link of the one site stands in one strip.
    assert drawn.grid.changed.sum() == compared.changed.sum() == 3
    assert (~np.isnan(drawn.grid.comparison.p)).sum() == (~np.isnan(compared.comparison.p)).sum()


def test_opposite_directions_are_listed_once(changed):
    compared = answered("?window=24h&compare=reverse")
    found = found_in(compared)
    pairs = [frozenset((item.source, item.destination)) for item in found["changed"].items]
    assert len(pairs) == len(set(pairs)) == found["changed"].count
    assert found["changed"].title == "what differs"
    said = said_of(compared)
    assert f"{len(pairs)} links slower" in said
    assert "faster" not in said


def test_the_wall_says_and_lists_what_changed(client, changed):
    page = look(client, f"{COMPARED}&wall=1")
    assert page.texts("h1 span") == [
        "RAL_DATADISK to DESY_SCRATCHDISK fails",
        "2 links slower",
        "1 faster",
        "compared with the 24 hours before",
    ]
    kinds = [section["class"] for section in page.parts(".wall-lists section")]
    assert kinds[:2] == ["failing", "changed"]


def test_what_is_not_certain_is_listed_as_such(client, small_world):
    """Never is nothing said of what its interval excludes."""
    made, draws, added = small_world, random.Random(2), world.Transfers()
    for link in permutations(made.endpoints, 2):
        factor = 0.75 if link == (made.ral, made.glasgow) else 1.0
        for number in range(3):
            for ago, times in ((HOUR, factor), (DAY + HOUR, 1.0)):
                rate = 10 * times * draws.lognormvariate(0, 0.1)
                added.add(*link, rate, ago=ago + number * HOUR)
    added.store()
    compared = answered(COMPARED)
    ratios = compared.comparison
    assert not compared.changed.any()
    apart = (ratios.p < 0.05) & (np.abs(np.log(ratios.ratio)) > np.log(SMALLEST_RATIO))
    assert (compared.perhaps == apart).all()
    page = look(client, COMPARED)
    assert "No significant change" in page.part("h1")
    found = found_in(compared)
    first = found["perhaps"].items[0]
    assert (first.source, first.destination) == ("RAL_DATADISK", "Glasgow_DATADISK")
    assert found["perhaps"].title in page.words.casefold()


def test_what_fails_is_neither_slow_nor_fast(changed):
    with world.transfers() as some:
        for number in range(3):
            some.add(changed.ral, changed.glasgow, None, ago=timedelta(minutes=number))
    stored_condition(TYPES.FAILING, source=changed.ral, destination=changed.glasgow)
    compared = answered(COMPARED)
    said = ChangeTally.of(compared)
    assert (said.slower, said.faster) == (1, 1)
    in_all = said.slower + said.faster + said.perhaps + said.unchanged
    # The failing link that has rates on both sides is none of these.
    assert in_all == int((~np.isnan(compared.cells.value)).sum()) - 1


def test_pooled_cells_compare_the_samples_of_all_their_links(changed):
    compared = answered(f"{COMPARED}&rows=cloud&columns=cloud")
    assert compared.comparison.ok.sum() == 59
    assert said_of(compared).split(",")[1].count("cell")


def test_comparing_asks_four_queries_more_whatever_there_is(client, changed):
    def queries(text: str, *links: tuple[Endpoint, Endpoint]) -> int:
        """Count those after new results of these links on both sides, so that nothing is kept."""
        added = world.Transfers()
        for link in links:
            added.add(*link, 12.0)
            added.add(*link, 12.0, ago=DAY + HOUR)
        added.store()
        return len(statements(look, client, text))

    one, every = (changed.ral, changed.glasgow), [*permutations(changed.endpoints, 2)]
    queries("?window=24h", one)
    plain = queries("?window=24h", one)
    queries(COMPARED, one)  # how far tests scatter is kept
    # The version and the results of the other side, a snapshot around those of both, and the
    # version of the days that say how far tests scatter: of each link, and of all together.
    assert queries(COMPARED, one) == queries(COMPARED, *every) == plain + 4


def test_the_page_carries_the_words_of_both_sides_for_the_card(client, changed):
    def sides(text: str) -> dict[str, str]:
        compared: dict[str, str] = look(client, text).data("picture-data")["compared"]
        return compared

    expected = {"here": "median, the last 24 hours", "there": "median, the 24 hours before"}
    assert sides(COMPARED) == expected
    expected = {"here": "mean, this direction", "there": "mean, the opposite direction"}
    assert sides("?compare=reverse&compare.of=mean") == expected
    assert sides("?window=24h") is None


def test_a_link_without_results_on_this_side_is_as_it_is(changed):
    transfer(changed.scratch, changed.ral, 5.0, ago=DAY + HOUR)
    compared = answered(COMPARED)
    at = (
        [group.name for group in compared.sources].index(changed.scratch.name),
        [group.name for group in compared.destinations].index(changed.ral.name),
    )
    assert not compared.too_few[at]
    assert np.isnan(compared.cells.value[at])
