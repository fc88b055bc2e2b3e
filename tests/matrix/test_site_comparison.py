"""A site compared with another window or direction, against plain SQL and scipy."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import plotly.graph_objects as go
import pytest
from django.http import QueryDict
from scipy import stats

from matrix.answers.comparison.all_links import AROUND, CountWords, factor_words, ratios_together
from matrix.answers.matrix import grid
from matrix.answers.site import reports
from matrix.answers.site.overview import compared_question
from matrix.answers.site.site_now import EndComparison, SiteNow, site_now
from matrix.api.site_report import SiteReport
from matrix.statistics.compare.together import days_apart
from matrix.statistics.compare.two_samples import Pairs, Ratios, judged
from sonar.models import Transfer
from sonar.notation.units import format_factor
from sonar.notation.windows import Window, format_time
from tests.matrix import changed_site, responses
from tests.matrix.changed_site import CHANGED, SLOWED
from tests.matrix.responses import statements
from tests.matrix.test_site_page import figures
from tests.matrix.world import NOW
from tests.scenes import standing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture(scope="module", autouse=True)
def changed(django_db_setup, django_db_blocker) -> Iterator[None]:
    with standing(django_db_blocker, changed_site.make):
        yield


GLASGOW = "UKI-SCOTGRID-GLASGOW"
END = NOW.replace(second=0) + timedelta(minutes=1)
AFTER, BEFORE = Window(CHANGED, END), Window(CHANGED - timedelta(days=7), CHANGED)


def between(window: Window) -> str:
    return "..".join(map(format_time, (window.start, window.end)))


# After the change, and the week before it: four tests of a link against 42.
ASKED = {"from": format_time(AFTER.start), "to": format_time(AFTER.end), "compare": between(BEFORE)}


def compared(params: dict[str, str]) -> SiteNow:
    report = reports.build(GLASGOW, compared_question(QueryDict(urlencode(params))), NOW)
    return site_now(report, [], NOW)


def rates(source: str, destination: str, window: Window) -> list[float]:
    done = Transfer.objects.filter(
        source__name=source,
        destination__name=destination,
        size_class__name="large",
        state="done",
        started_at__gte=window.start,
        started_at__lt=window.end,
    )
    return [row["bytes"] / row["seconds"] / 1e6 for row in done.values("bytes", "seconds")]


def test_each_link_is_compared_as_sql_and_scipy_do():
    site = compared(ASKED)
    for end, comparison in site.comparisons.items():
        assert len(site.links[end]) == len(comparison.pairs) == 10
        tests = []
        for link, pair in zip(site.links[end], comparison.pairs, strict=True):
            here = rates(link.source, link.destination, AFTER)
            there = rates(link.source, link.destination, BEFORE)
            assert (pair.ok, pair.other_ok) == (len(here), len(there))
            if min(pair.ok, pair.other_ok) < 3:
                assert np.isnan(pair.ratio)
                continue
            assert pair.value == pytest.approx(np.median(here), rel=1e-6)
            assert pair.other == pytest.approx(np.median(there), rel=1e-6)
            assert pair.ratio == pytest.approx(np.median(here) / np.median(there), rel=1e-6)
            assert pair.low < pair.ratio < pair.high
            assert (pair.p < 0.05) == (pair.high < 1 or pair.low > 1)
            tests.append(pair)
        assert tests


def inflation(counts: np.ndarray) -> np.ndarray:
    """Return the variance of a median of so many logs in parts of that of their mean."""
    return np.pi / 2 - np.where(counts % 2, 0.68 / counts, 2.25 / (counts + 2))


class Shift(NamedTuple):
    """The mean log of the ratios of medians of links, by their tests, with all their weights."""

    log: float
    weight: float
    error: float


def shift_by_hand(own: list[list[float]], other: list[list[float]]) -> Shift:
    pairs = [pair for pair in zip(own, other, strict=True) if all(pair)]
    counts = np.array([[len(side) for side in pair] for pair in pairs])
    logs = np.array([np.log(np.median(here) / np.median(there)) for here, there in pairs])
    weights = 1 / (inflation(counts) / counts).sum(axis=1)
    mean, weight = float(np.average(logs, weights=weights)), float(weights.sum())
    squares = ((weights * (logs - mean)) ** 2).sum() * len(logs) / (len(logs) - 1)
    return Shift(mean, weight, float(np.sqrt(squares)) / weight)


def interval_by_hand(
    links: list[tuple[str, str]], own: Window, other: Window
) -> tuple[float, float, float]:
    """Return the factor of all links between two windows in a row, with its bounds.

    By the 28 days before: how far links differ from each other from one day to the next, and how
    far all of them move together, which fades within a day.
    """
    midnight = own.start.replace(hour=0, minute=0, second=0)
    days = [midnight - timedelta(days=ago) for ago in range(28, -1, -1)]
    by_day = [[rates(*link, Window(*day)) for link in links] for day in pairwise(days)]
    steps = [shift_by_hand(*pair[::-1]) for pair in pairwise(day for day in by_day if any(day))]
    single = np.mean([step.error**2 * step.weight for step in steps])
    common = max(np.mean([step.log**2 - step.error**2 for step in steps]), 0)
    shift = shift_by_hand(*([rates(*link, side) for link in links] for side in (own, other)))
    of_days = 2 * len(steps) ** 2 / (3 * len(steps) - 1)
    parts = single / shift.weight, common * days_apart(own, other)
    dof = sum(parts) ** 2 / (parts[0] ** 2 / (of_days * (len(links) - 1)) + parts[1] ** 2 / of_days)
    low, high = np.exp(stats.t(dof, shift.log, np.sqrt(sum(parts))).interval(0.95)).tolist()
    return float(np.exp(shift.log)), low, high


@pytest.mark.long
def test_all_links_together_are_as_sql_numpy_and_scipy_have_them():
    site = compared(ASKED)
    for end, comparison in site.comparisons.items():
        links = [(link.source, link.destination) for link in site.links[end]]
        own, other = ([rates(*link, side) for link in links] for side in (AFTER, BEFORE))
        found = comparison.together
        expected = interval_by_hand(links, AFTER, BEFORE)
        assert (found.ratio, found.low, found.high) == pytest.approx(expected, rel=1e-3)
        both = [pair for pair in zip(own, other, strict=True) if all(pair)]
        counts = (len(both), *(sum(len(pair[side]) for pair in both) for side in (0, 1)))
        assert (found.links, found.ok, found.other_ok) == counts
    received, sent = (site.comparisons[end].together for end in ("destination", "source"))
    # Four of ten links at 0.3, and one of ten at 1.4 of what it was in the week before.
    assert received.high < 0.3**0.4 * 1.15
    assert received.low > 0.3**0.4 / 1.15
    assert sent.low < 1.1


def test_few_tests_of_each_link_are_enough_together(client):
    """Six hours on each side: a test of a link or two, which by themselves tell nothing."""
    around = {"compare.around": format_time(NOW - timedelta(hours=6))}
    site = compared(around)
    for comparison in site.comparisons.values():
        assert not comparison.ratios.enough.any()
        assert comparison.together.links > 7
        assert not np.isnan(comparison.together.high)
    address = compared_question(QueryDict(urlencode(around))).to_params()
    page = responses.page(client, f"/sites/{GLASGOW}/?{urlencode(address, doseq=True)}")
    assert re.search(
        rf"{GLASGOW} received at [01]\.\d+× \([^)]*\), (not significant|about)", page.words
    )


@pytest.mark.long
def test_the_call_compares_as_the_page_does(client):
    site = compared(ASKED)
    url = f"/api/v1/sites/{GLASGOW}/?{urlencode(ASKED)}"
    report = responses.answer(client, url)
    SiteReport.model_validate(report)
    page = responses.page(client, f"/sites/{GLASGOW}/?{urlencode(ASKED)}")
    answer = report["comparison"]
    assert answer["description"] in page
    for end, comparison in site.comparisons.items():
        said, together = answer[f"as_{end}"], comparison.together
        assert said["ratio"] == pytest.approx(together.ratio, rel=1e-5)
        assert (said["low"], said["high"]) == pytest.approx((together.low, together.high), rel=1e-5)
        assert (said["slower"], said["compared"]) == (comparison.slower, together.links)
        assert said["sentence"] in page
        assert said["beyond"] in page
        assert [link["change"] for link in said["links"]].count("slower") == comparison.slower
        for row, link, pair in zip(said["links"], site.links[end], comparison.pairs, strict=True):
            assert (row["source"], row["destination"]) == (link.source, link.destination)
            ratio = None if np.isnan(pair.ratio) else pytest.approx(pair.ratio, rel=1e-5)
            assert row["ratio"] == ratio
            assert (row["ok"], row["other_ok"]) == (pair.ok, pair.other_ok)
    rows = responses.csv_rows(client, f"{url}&format=csv")
    assert [row["end"] for row in rows].count("source") == len(site.links["source"])
    slowed = [row["partner"] for row in rows if row["change"] == "slower"]
    assert sorted(slowed) == sorted(SLOWED)
    assert "comparison" not in responses.answer(client, f"/api/v1/sites/{GLASGOW}/")


def test_what_a_call_cannot_compare_with_is_named(client):
    for text, name in (("compare=yesterday", "compare"), ("compare.site=RAL", "compare.site")):
        refused = client.get(f"/api/v1/sites/RAL/?{text}")
        assert (refused.status_code, list(refused.json()["errors"])) == (400, [name])


def test_what_changed_is_what_the_matrix_of_all_links_says():
    site = compared(ASKED)
    whole = grid.build(compared_question(QueryDict(urlencode(ASKED))), NOW)
    places = [
        {group.name: place for place, group in enumerate(groups)}
        for groups in (whole.sources, whole.destinations)
    ]
    for end, comparison in site.comparisons.items():
        for link, changed in zip(site.links[end], comparison.ratios.sure, strict=True):
            assert whole.changed[places[0][link.source], places[1][link.destination]] == changed
    assert sum(int(each.ratios.sure.sum()) for each in site.comparisons.values()) == 5
    received, sent = (site.comparisons[end] for end in ("destination", "source"))
    assert (received.slower, received.faster, received.kind) == (4, 0, "slower")
    # NDGF-T1 is twice as fast since the middle of the week before.
    assert (sent.slower, sent.faster, sent.kind) == (0, 1, "faster")
    slowed = [
        link.partner
        for link, changed in zip(site.links["destination"], received.ratios.sure, strict=True)
        if changed
    ]
    assert sorted(slowed) == sorted(SLOWED)


def test_the_page_says_it_and_lists_what_changed_first(client):
    page = responses.page(client, f"/sites/{GLASGOW}/?{urlencode(ASKED, safe=':')}")
    assert page.source.index('id="comparison"') < page.source.index('id="answer"')
    said = page.part("#comparison").words
    start, end = BEFORE.start, BEFORE.end
    window = f"{start.day} {start:%b %H:%M} to {end.day} {end:%b %Y %H:%M} UTC"
    assert f"Compared with {window}" in said
    received = rf"{GLASGOW} received at 0\.6\d× \(0\.\d\d–0\.\d\d\), slower: "
    counts = r"\d\d tests after and 4\d\d before, on 10 links\. "
    assert re.search(received + counts + "Individually, 4 links are slower and 0 faster", said)
    assert re.search(
        rf"{GLASGOW} sent at 1\.\d+× \([^)]*\), (not significant|about the same|faster)", said
    )
    rows = page.section("as-destination").parts("table.compared-rows tbody tr")
    assert ["slower" in row["class"].split() for row in rows] == [True] * 4 + [False] * 6
    assert sorted(row.part("th").words for row in rows[:4]) == sorted(SLOWED)
    assert re.search(r"0\.\d\d× \(0\.\d\d–0\.\d\d\)", rows[0].words)
    assert f"compare={between(BEFORE)}" in rows[0].links()[0], "the link is compared, too"


@pytest.mark.long
def test_both_windows_are_drawn_relative_to_the_same_usual_rates(client):
    plain = figures(responses.page(client, f"/sites/{GLASGOW}/"))
    assert all(len(drawn["data"]) == 3 for drawn in plain)
    compared_figures = figures(responses.page(client, f"/sites/{GLASGOW}/?compare=previous"))
    for drawn in compared_figures:
        go.Figure(drawn)
        other = next(line for line in drawn["data"] if line.get("xaxis") == "x2")
        assert other["name"] == "the 7 days before: median link"
        own, above = (drawn["layout"][axis]["range"] for axis in ("xaxis", "xaxis2"))
        assert own[0] - above[0] == 7 * 86_400_000
        levels = [rate for rate in other["y"] if rate]
        assert np.median(levels) == pytest.approx(1, abs=0.15), "it was as usual then"


def test_the_opposite_direction_is_the_other_end_upside_down():
    site = compared({"compare": "reverse"})
    received, sent = (site.comparisons[end] for end in ("destination", "source"))
    back = {
        (link.source, link.destination): pair
        for link, pair in zip(site.links["source"], sent.pairs, strict=True)
    }
    for link, pair in zip(site.links["destination"], received.pairs, strict=True):
        there = back[link.destination, link.source]
        assert (there.value, there.other) == (pair.other, pair.value)
        assert there.p == pytest.approx(pair.p)
        assert there.ratio == pytest.approx(1 / pair.ratio, nan_ok=True)


@pytest.mark.long
def test_without_results_on_the_other_side_it_says_so(client):
    old = between(Window(NOW.replace(year=2020, second=0), NOW.replace(year=2021, second=0)))
    page = responses.page(client, f"/sites/{GLASGOW}/?compare={old}")
    assert f"No link to {GLASGOW} has successful tests on both sides of the" in page
    assert f"No link from {GLASGOW} has successful tests on both sides of the" in page
    empty = responses.page(client, "/sites/PIC/?size=small&window=24h&compare=week")
    assert "No link to PIC has successful tests on both sides of the" in empty


def test_filters_on_links_are_no_parameters_here(client):
    page = responses.page(client, "/sites/PIC/?compare=previous&compare.source_cloud=UK")
    assert "Ignored: compare.source_cloud" in page
    assert client.get("/sites/PIC/?compare=yesterday").status_code == 400


@pytest.mark.long
def test_a_comparison_costs_as_many_queries_however_much_there_is(client):
    counts = []
    for text in ("", "?compare=previous", "?compare=reverse"):
        responses.html(client, f"/sites/{GLASGOW}/{text}")
        counts.append(len(statements(responses.html, client, f"/sites/{GLASGOW}/{text}")))
    # The results of the other side; all links on both sides are kept for their version, which takes
    # two statements, and so is what others changed by; how far the site scatters takes one.
    assert [count - counts[0] for count in counts] == [0, 6, 3]


def ratios(value: float, other: float, counts: tuple[int, int]) -> Ratios:
    return judged(
        Pairs(
            np.array(counts)[:, None],
            np.array([[value], [other]]),
            np.array([0.04 * (sum(counts) - 2)]),
        ),
        "median",
    )[0]


def test_a_link_that_is_alone_has_its_own_interval():
    alone = ratios(5.0, 10.0, (6, 5))
    together = ratios_together(alone, "median")
    assert (together.ratio, together.links, together.ok, together.other_ok) == (0.5, 1, 6, 5)
    assert (together.low, together.high) == (float(alone.low[0]), float(alone.high[0]))
    end = EndComparison(
        "source",
        "the 7 days before",
        BEFORE,
        replace(alone, sure=np.array([True])),
        series=None,  # type: ignore[arg-type]
        together=together,
        tests=CountWords("now", "before"),
    )
    factor = format_factor(0.5, together.low, together.high)
    assert end.sentence("RAL") == (
        f"RAL sent at {factor}, slower: 6 tests now and 5 before, on 1 link. "
        "Individually, 1 link is slower and 0 faster."
    )


def test_of_one_test_on_a_side_nothing_is_certain():
    together = ratios_together(ratios(5.0, 10.0, (1, 5)), "median")
    assert (together.ratio, together.ok) == (0.5, 1)
    assert np.isnan([together.low, together.high, together.p]).all()
    assert factor_words(together, AROUND) == "0.50×, not significant: 1 test after and 5 before"


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (6.0, 0.01, 473.0, "too few tests to assess"),
        (0.5, 0.0, 2.0, "too few tests to assess"),
        (1.2, 0.5, 2.0, f"{format_factor(1.2, 0.5, 2.0)}, not significant"),
        (9.0, 2.0, 50.0, f"{format_factor(9.0, 2.0, 50.0)}, faster"),
    ],
)
def test_a_factor_that_may_be_anything_is_not_written(ratio, low, high, said):
    """It was written as 6x (0-473)."""
    tests = ratios_together(ratios(5.0, 10.0, (3, 2)), "median")
    together = replace(tests, ratio=ratio, low=low, high=high)
    assert factor_words(together, AROUND) == f"{said}: 3 tests after and 2 before"
