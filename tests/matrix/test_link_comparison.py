"""The link page compared with another window, direction, size class or way of testing."""

import json
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import plotly.graph_objects as go
import pytest
from django.test import Client

from matrix.statistics.estimates.moderation import Prior
from sonar.models import Endpoint
from tests.html import Page
from tests.matrix import moderated, responses, world
from tests.matrix.test_link_page import figure
from tests.matrix.world import HOUR, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
SERIES = "/api/v1/series/?source=RAL_DATADISK&destination=Glasgow_DATADISK"
NOW_RATES, OLD_RATES = [11.0, 12.0, 12.5, 13.0, 14.5], [20.0, 24.0, 25.0, 26.0, 29.0, 31.0]


def look(client: Client, text: str = "", path: str = LINK) -> Page:
    return responses.page(client, f"{path}{text}")


def send(
    ends: Sequence[Endpoint], rates: Sequence[float | None], ago: timedelta, size: str = "large"
) -> None:
    with world.transfers() as some:
        for number, rate in enumerate(rates):
            some.add(*ends, rate, ago=ago + number * HOUR, size=size)


@pytest.fixture
def slower(small_world: World) -> World:
    """Return a world in which a link has half of the rate that it had the week before."""
    ends = small_world.ral, small_world.glasgow
    send(ends, NOW_RATES, HOUR)
    send(ends, OLD_RATES, 8 * DAY)
    return small_world


def comparison(page: Page) -> str:
    return page.part("section#comparison").words


def test_a_sentence_has_both_rates_the_ratio_its_interval_n_and_p(client, slower):
    said = comparison(look(client, "?compare=previous"))
    assert "Large files: slower than the 7 days before" in said
    assert (
        "Large files from RAL_DATADISK to Glasgow_DATADISK: median 12.5 MB/s in the last 7 days, "
        "25.5 MB/s for the 7 days before. Ratio 0.49× (0."
    ) in said
    assert "n = 5 and 6, p < 0.001." in said


def test_without_a_comparison_nothing_is_said_of_one(client, slower):
    page = look(client)
    assert not page.parts("section#comparison")
    assert "Grey:" not in page.words


def test_all_size_classes_stand_in_a_table_and_lead_to_their_picture(client, slower):
    send((slower.ral, slower.glasgow), [3.0, 3.1, 3.2], HOUR, "small")
    page = look(client, "?compare=previous")
    said = comparison(page)
    assert "small 3.10 (3) – (0) – – too few results" in said
    assert "large 12.5 (5) 25.5 (6) 0.49×" in said
    assert f"{LINK}?size=small&compare=previous" in page.links()


def test_too_few_results_on_a_side_have_no_ratio(client, slower):
    send((slower.glasgow, slower.ral), [5.0, 6.0], HOUR)
    said = comparison(look(client, "?compare=reverse"))
    assert "Large files: too few results to compare with the opposite direction" in said
    assert (
        "5 successful transfers in the last 7 days, 2 successful transfers for the opposite "
        "direction; a ratio needs at least 3 on each side."
    ) in said
    assert "×" not in said.partition("2 successful")[0]


def test_chance_is_called_so(client, small_world):
    ends = small_world.ral, small_world.glasgow
    send(ends, [10.0, 12.0, 14.0, 16.0], HOUR)
    send(ends, [11.0, 12.5, 13.5, 16.5], 8 * DAY)
    said = comparison(look(client, "?compare=previous"))
    assert "no significant difference from the 7 days before" in said


def test_both_windows_are_drawn_over_each_other_from_their_beginnings(client, slower):
    page = look(client, "?compare=previous")
    drawn = figure(page)
    go.Figure(drawn)
    own, other = (drawn["layout"][axis]["range"] for axis in ("xaxis", "xaxis2"))
    week = 7 * 86_400_000
    assert (own[1] - own[0], own[0] - other[0], other[1]) == (week, week, own[0])
    lines = {line["name"]: line for line in drawn["data"]}
    points = lines["the 7 days before: each test"]
    assert points["xaxis"] == "x2"
    assert sorted(points["y"]) == OLD_RATES
    assert all(other[0] <= moment < other[1] for moment in points["x"])
    assert sorted(lines["each test"]["y"]) == NOW_RATES
    assert points["marker"]["opacity"] < lines["each test"]["marker"]["opacity"]
    assert points["marker"]["symbol"] != lines["each test"]["marker"]["symbol"]
    assert "Grey: the 7 days before (times on the upper axis)." in page.words
    assert "directions shown" not in page.source, "the reverse direction would be a third line"


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("compare=2026-11-13T00:00:00Z..2026-11-15T00:00:00Z", (2, 2)),
        ("compare=2026-11-18T12:00:00Z..2026-11-19T00:00:00Z", (1, 1)),
        ("compare=2026-11-01T00:00:00Z..2026-11-15T00:00:00Z", (1, 14)),
        ("compare=month", (1, 30)),
    ],
)
def test_a_window_has_the_same_scale_unless_it_is_much_longer(client, slower, text, days):
    layout = figure(look(client, f"?window=24h&{text}"))["layout"]
    ranges = (np.diff(layout[axis]["range"])[0] / 86_400_000 for axis in ("xaxis", "xaxis2"))
    assert tuple(ranges) == days


def test_the_opposite_direction_has_the_same_times(client, slower):
    send((slower.glasgow, slower.ral), [50.0, 51.0, 52.0, None], 2 * HOUR)
    drawn = figure(look(client, "?compare=reverse"))
    assert "xaxis2" not in drawn["layout"]
    lines = {line["name"]: line for line in drawn["data"]}
    assert sorted(lines["the opposite direction: each test"]["y"]) == [50.0, 51.0, 52.0]
    assert len(lines["the opposite direction: failed"]["x"]) == 1


def test_distribution_and_tables_have_both_sides(client, slower):
    page = look(client, "?compare=previous")
    shapes = figure(page, "distribution")["data"]
    assert [sum(shape["y"]) for shape in shapes] == [5, 6]
    tables = page.words
    assert tables.count("large RAL_DATADISK → Glasgow_DATADISK, the 7 days before 1 0") == 6
    assert "large RAL_DATADISK → Glasgow_DATADISK, the 7 days before 20.0 25.1 3" in tables


def test_another_size_class_stands_beside_that_of_the_page_alone(client, slower):
    send((slower.ral, slower.glasgow), [2.4, 2.5, 2.6], HOUR, "small")
    page = look(client, "?compare.size=small")
    assert (
        "12.5 MB/s in the last 7 days, 2.50 MB/s for small-file transfers. Ratio 5.0×"
        in comparison(page)
    )
    assert not page.parts("#compared")
    assert f"{LINK}?size=small&compare.size=large" in page.links(), "they change places"
    assert "small RAL_DATADISK → Glasgow_DATADISK, small-file transfers 1 0" in page.words


def test_ways_of_testing_are_compared(client, slower):
    ends, four = (slower.ral, slower.glasgow), world.profile(streams=4)
    with world.transfers() as some:
        for number, rate in enumerate((36.0, 37.0, 38.0, 39.0)):
            some.add(*ends, rate, ago=number * HOUR, made=four)
    said = comparison(look(client, "?streams=1&compare.streams=4"))
    assert (
        "12.5 MB/s in the last 7 days, 37.5 MB/s for transfers only with streams 4. Ratio 0.33×"
        in said
    )
    said = comparison(look(client, "?streams=4&compare.streams="))
    assert "37.5 MB/s in the last 7 days" in said
    assert "for transfers whatever the streams" in said


def test_means_are_compared_where_they_are_asked_for(client, slower):
    said = comparison(look(client, "?compare=previous&compare.of=mean"))
    means = np.mean(NOW_RATES), np.mean(OLD_RATES)
    assert f"mean {means[0]:.1f} MB/s in the last 7 days, {means[1]:.1f} MB/s for the 7" in said


def test_it_is_taken_back_with_one_click_and_calls_know_no_comparison(client, slower):
    page = look(client, "?window=30d&compare=previous")
    assert f"{LINK}?window=30d" in page.links("a.chip")
    assert page.links('a[href^="/api/v1/transfers/?window=30d&source_endpoint"]')
    url = f"{LINK}?compare=previous&reverse=1"
    assert client.get(url).headers["Location"] == f"{LINK}?compare=previous"


def test_too_long_a_window_is_refused_on_either_side(client, slower):
    text = "?window=24h&compare=1971-01-01T00:00:00Z..2020-01-01T00:00:00Z"
    assert client.get(f"{LINK}{text}").status_code == 200
    text = "?window=24h&compare=1971-01-01T00:00:00Z..2070-01-01T00:00:00Z"
    answer = client.get(f"{LINK}{text}")
    assert answer.status_code == 400
    assert "compare must be at most 30,000 days before the end" in answer.text


@pytest.mark.long
def test_a_comparison_costs_as_many_queries_however_much_there_is(client, slower):
    counts = []
    for text in ("", "?compare=reverse", "?compare=previous", "?window=24h&compare=week"):
        look(client, text)
        counts.append(len(responses.statements(look, client, text)))
    # The results of the other side; for each size class, all links on both sides are kept for their
    # version, which takes two statements; and so is what others changed by.
    assert [count - counts[0] for count in counts] == [0, 7, 9, 9]


def test_the_series_has_both_sides_in_the_same_buckets(client, slower):
    answer = responses.answer(client, f"{SERIES}&compare=previous&bucket=1d&points=1")
    own, other = answer["query"], answer["other"]["query"]
    assert (other["start"], other["end"]) == ("2026-11-06T12:01:00Z", own["start"])
    assert other["source"] == "RAL_DATADISK"
    bounds = f"&from={other['start']}&to={other['end']}&bucket=1d&points=1"
    alone = responses.answer(client, f"{SERIES}{bounds}")
    for part in ("bucket", "buckets", "points"):
        assert answer["other"][part] == alone[part]
    pair = answer["comparison"]
    assert pair["description"] == "the 7 days before"
    assert (pair["ok"], pair["other_ok"]) == (5, 6)
    assert pair["rate"] == np.median(NOW_RATES)
    assert pair["other"] == np.median(OLD_RATES)
    assert pair["ratio"] == pytest.approx(12.5 / 25.5, rel=1e-5)
    assert pair["low"] < pair["ratio"] < pair["high"] < 1
    expected = moderated.expected(NOW_RATES, OLD_RATES, Prior(0, 0))
    assert pair["p"] == pytest.approx(expected.p, rel=1e-4)
    assert (pair["low"], pair["high"]) == pytest.approx((expected.low, expected.high), rel=1e-4)


def test_the_series_of_the_opposite_direction_and_of_too_few(client, slower):
    answer = responses.answer(client, f"{SERIES}&compare=reverse")
    assert answer["other"]["query"]["source"] == "Glasgow_DATADISK"
    assert answer["comparison"]["ratio"] is answer["comparison"]["p"] is None
    assert answer["comparison"]["other_ok"] == 0


def test_a_series_as_csv_tells_the_sides_apart(client, slower):
    lines = responses.csv_rows(client, f"{SERIES}&compare=previous&points=1&format=csv")
    sides = [line["side"] for line in lines]
    assert sides == ["this"] * 5 + ["other"] * 6
    assert sorted(float(line["rate_mb_s"]) for line in lines[5:]) == OLD_RATES
    bare = client.get(f"{SERIES}&points=1&format=csv").content.decode()
    assert bare.startswith("started_at,state")


def test_a_late_result_on_the_other_side_is_a_new_answer(client, slower):
    url = f"{SERIES}&compare=previous"
    tag = client.get(url).headers["ETag"]
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 304
    send((slower.ral, slower.glasgow), [99.0], 10 * DAY)
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("&compare=yesterday", "compare “yesterday” is not known"),
        ("&compare.size=tiny", "compare.size “tiny” is not known"),
        ("&compare.source_cloud=UK", "There is no parameter “compare.source_cloud”"),
        ("&compare.size=large", "compare.size is already part of the query"),
        (
            "&window=1h&bucket=5m&compare=2000-01-01..2026-01-01",
            "at most 30000 buckets can be shown",
        ),
    ],
)
def test_a_bad_comparison_is_a_400_that_names_the_parameter(client, slower, text, sentence):
    answer = client.get(f"{SERIES}{text}")
    assert answer.status_code == 400
    assert sentence in json.dumps(answer.json(), ensure_ascii=False)
