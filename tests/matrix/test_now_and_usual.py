"""The statistics of how links are now: on the page, on the wall, and in every format of the API."""

import csv
from typing import Any

import numpy as np
import pytest

from matrix.answers.matrix import grid
from matrix.plots import matrix as plots
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import FAILING as FAILS
from tests.conditions import stored_condition
from tests.matrix import responses
from tests.matrix.test_cells_file import decoded
from tests.matrix.world import HOUR, NOW, World, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
API = "/api/v1/matrix/"
# Now and usual of each link in MB/s. One is failing, one without a usual rate, of one all the tests
# in the window failed, and one is new.
SLOWER, FASTER, USUAL, FAILING, YOUNG, FAILED = (
    *(("RAL", "Glasgow"), ("Glasgow", "RAL"), ("RAL", "DESY")),
    *(("DESY", "RAL"), ("Glasgow", "DESY"), ("DESY", "Glasgow")),
)
RATES: dict[tuple[str, str], tuple[float | None, float | None]] = {
    SLOWER: (5.0, 20.0),
    FASTER: (40.0, 10.0),
    USUAL: (30.0, 30.0),
    FAILING: (None, 10.0),
    YOUNG: (8.0, None),
    FAILED: (None, 10.0),
}
NOW_MB_S = {SLOWER: 5.0, FASTER: 40.0, USUAL: 30.0, YOUNG: 8.0}
FACTORS = {SLOWER: 0.25, FASTER: 4.0, USUAL: 1.0}


@pytest.fixture
def rates(small_world: World) -> World:
    ends = {"RAL": small_world.ral, "Glasgow": small_world.glasgow, "DESY": small_world.desy}
    with transfers() as several:
        for link, (now, usual) in RATES.items():
            pair = ends[link[0]], ends[link[1]]
            for day in range(8, 20) if usual else ():
                several.add(*pair, usual, ago=24 * day * HOUR)
            for hour in range(1 if link == FAILED else 3):
                several.add(*pair, now, ago=(hour + 1) * HOUR)
    for link, type_ in ((FAILING, "failing"), (SLOWER, "slow"), (FASTER, "fast")):
        now, usual = RATES[link]
        pair = {"source": ends[link[0]], "destination": ends[link[1]], "since": 3 * HOUR}
        stored_condition(type_, **pair, baseline=usual * 1e6)
    return small_world


def values(document: Any, name: str = "value") -> dict[tuple[str, str], float]:
    ends = ([group["name"].partition("_")[0] for group in document[side]]
            for side in ("sources", "destinations"))  # fmt: skip
    sources, destinations = ends
    return {
        (source, destination): value
        for source, row in zip(sources, document["cells"][name], strict=True)
        for destination, value in zip(destinations, row, strict=True)
        if value is not None and source != destination
    }


@pytest.mark.parametrize(
    ("stat", "unit", "true"), [("now", "MB/s", NOW_MB_S), ("vs_usual", "×", FACTORS)]
)
def test_the_api_has_them_in_each_format(client, rates, stat, unit, true):
    document = responses.answer(client, f"{API}?stat={stat}")
    assert (document["unit"], document["query"]["stat"]) == (unit, stat)
    assert values(document) == pytest.approx(true, rel=1e-5)
    averages = [value for value in document["source_average"] if value is not None]
    mean = np.mean(averages) if stat == "now" else np.exp(np.mean(np.log(averages)))
    assert len(averages) == 2
    assert mean > 0
    field = {"now": "value_mb_s", "vs_usual": "value_times"}[stat]
    rows = responses.csv_rows(client, f"{API}?stat={stat}&format=csv")
    assert sorted(float(row[field]) for row in rows if row[field]) == pytest.approx(
        sorted(true.values()), rel=1e-5
    )
    wide = client.get(f"{API}?stat={stat}&format=csv&shape=wide").content.decode().splitlines()
    assert next(csv.reader(wide))[0] == f"from \\ to ({stat}, {unit})"


def test_it_is_the_arrays_now_and_usual_divided_of_cells_of_several_links_too(client, rates):
    asked = f"{API}?stat=vs_usual&rows=cloud&columns=cloud&fields=value,now,usual"
    document = responses.answer(client, asked)
    now, usual = values_of(document, "now"), values_of(document, "usual")
    # From DE nothing came through; from UK to UK 5 and 40, usually 20 and 10, and to DE 30 of 30.
    np.testing.assert_allclose(values_of(document)[1], (now / usual)[1], rtol=1e-5)
    assert document["cells"]["value"] == [[None, None], [1.0, 1.5]]
    # That of a rate counts what has no usual one yet.
    both = responses.answer(client, f"{API}?stat=now&rows=cloud&columns=cloud")
    assert both["cells"]["value"] == [[None, None], [19.0, 22.5]]


def values_of(document: Any, name: str = "value") -> np.ndarray:
    return np.array(document["cells"][name], dtype=float)


def test_slower_is_at_the_brown_end_and_faster_at_the_other(rates):
    answered = grid.build(MatrixQuery(stat="vs_usual"), NOW, whole=True)
    arrangement = arrange(answered, Display())
    names = [group.name.partition("_")[0] for group in answered.sources]
    codes = plots.codes(arrangement, plots.scale_of(answered, Display()))

    def code(link: tuple[str, str]) -> int:
        return int(codes[names.index(link[0]), names.index(link[1])])

    assert (code(SLOWER), code(FASTER)) == (0, plots.STEPS - 1)
    assert code(USUAL) == pytest.approx(plots.STEPS / 2, abs=1)
    assert code(FAILING) == plots.CODES[FAILS]
    assert code(YOUNG) == plots.NO_VALUE
    texts = [text for trace in plots.figure(arrangement)["data"] if trace.get("text")
             for row in trace["text"] for text in row if text]  # fmt: skip
    assert {"0.25", "1.00", "4.0", "<b>3 h</b>"} <= {*texts}


@pytest.mark.parametrize("stat", ["now", "vs_usual"])
def test_page_wall_and_card_show_them(client, rates, stat):
    for asked in (f"?stat={stat}", f"?stat={stat}&wall=1", f"?stat={stat}&rows=cloud&columns=tier",
                  f"?stat={stat}&site=RAL&transpose=1"):  # fmt: skip
        context = client.get(f"/{asked}").context
        assert context["picture"]["stat"] == stat, asked
        listed = context.get("standouts") or [highlight for highlight, _ in context["lists"]]
        kinds = [highlight.kind for highlight in listed]
        assert {"failing", "slower", "faster"} <= {*kinds}
    legend = {entry.state: entry for entry in client.get(f"/?stat={stat}").context["legend"]}
    named = {"now": "measured", "vs_usual": "¼× to 4× of the baseline"}
    assert legend["measured"].name == named[stat]
    header, arrays = decoded(client.get(f"/cells/?stat={stat}").content)
    assert header["stat"] == stat
    true = NOW_MB_S if stat == "now" else FACTORS
    drawn = arrays["value"]
    assert sorted(drawn[~np.isnan(drawn)].tolist()) == pytest.approx(sorted(true.values()))


def test_the_slowest_now_are_listed_and_lead_to_the_table_in_that_order(client, rates):
    standouts = {kind.kind: kind for kind in client.get("/?stat=now").context["standouts"]}
    assert standouts["worst"].title == "slowest now"
    reasons = [item.why for item in standouts["worst"].items]
    assert reasons == ["5.00 MB/s now, baseline 20.0", "8.00 MB/s now"]
    assert client.get(standouts["worst"].more).status_code == 200
    assert "worst" not in {kind.kind for kind in client.get("/?stat=vs_usual").context["standouts"]}


@pytest.mark.parametrize("stat", ["now", "vs_usual"])
def test_a_comparison_shows_its_ratio_whichever_is_named(client, rates, stat):
    by_name = responses.answer(client, f"{API}?stat={stat}&window=24h&compare=month")
    plain = responses.answer(client, f"{API}?window=24h&compare=month")
    assert (by_name["unit"], by_name["cells"]) == ("×", plain["cells"])
    assert by_name["description"] == plain["description"]
    context = client.get(f"/?window=24h&stat={stat}&compare=month&only=slower").context
    assert context["grid"].query.statistic.name == "ratio"
    labels = [choice.label for choice in context["controls"]["shows"]]
    assert labels == ["ratio of medians", "ratio of means"]
    # Without the comparison it is what was named again.
    chips = {chip.label: chip.url for chip in context["controls"]["chips"]}
    alone = next(url for label, url in chips.items() if label.startswith("compared with"))
    assert client.get(alone).context["grid"].query.stat == stat


@pytest.mark.parametrize("age", ["90m", "6h"])
def test_how_old_a_success_may_be_holds_for_them(client, rates, age):
    document = responses.answer(client, f"{API}?stat=vs_usual&max_age={age}")
    assert set(values(document)) == set(FACTORS)
    assert not values(responses.answer(client, f"{API}?stat=vs_usual&max_age=10m"))


def test_in_a_window_of_the_past_they_are_as_of_its_end(client, rates):
    past = "from=2026-11-11T00:00:00Z&to=2026-11-13T00:00:00Z"
    document = responses.answer(client, f"{API}?stat=now&{past}")
    usual = {link: rate for link, (_, rate) in RATES.items() if rate}
    assert values(document) == pytest.approx(usual, rel=1e-5)
