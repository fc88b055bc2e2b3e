"""The link page says how the link is: first of all, of all size classes, as plain SQL has it."""

import random
import re
from datetime import timedelta

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client

from matrix.answers.link.directions import Direction
from matrix.answers.words.phrases import why_no_rate
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Downtime
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.facts_sql import Facts
from tests.matrix.sent import send
from tests.matrix.test_directions import asked, of_class
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
BACK = "/links/Glasgow_DATADISK/RAL_DATADISK/"
NO_SPACE = "507 Insufficient Storage"


def large(made: World, text: str = "") -> Direction:
    return of_class(asked(made.ral, made.glasgow, text))[0]


def verdict(client: Client, path: str = LINK) -> str:
    return responses.page(client, path).part("#verdict").words


def hourly(
    made: World, rate: float, since: timedelta, until: timedelta = -HOUR, **more: str
) -> None:
    with world.transfers() as some:
        for number in range(int((since - until) / HOUR)):
            some.add(made.ral, made.glasgow, rate, ago=since - number * HOUR, **more)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("text", ["", "window=24h", "from=2026-11-17T09:00:00Z&to=2026-11-18"])
def test_now_usual_and_streak_are_those_of_plain_sql(small_world, seed, text):
    chance = random.Random(seed)
    with world.transfers() as some:
        for number in range(200):
            failed = chance.random() < (0.9 if number < 2 * seed else 0.1)
            rate = None if failed else chance.lognormvariate(2, 0.3)
            ago = chance.uniform(0, 4) * number * HOUR
            some.add(small_world.ral, small_world.glasgow, rate, ago=ago)
    facts = Facts(MatrixQuery.from_params(QueryDict(text)).window_at(NOW), NOW)
    link = small_world.ral.name, small_world.glasgow.name, "large"
    true, bounds = facts.of(*link), facts.bounds()
    of_usual = [rate for at, rate in facts.rates(*link) if bounds["first"] <= at < bounds["day"]]
    found = large(small_world, text)
    assert found.usual_count == len(of_usual)
    assert (found.now, found.usual) == pytest.approx((true.now, true.usual), nan_ok=True)
    if len(of_usual) >= 5:
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(of_usual, [5, 95])))
    assert (found.state == "failing") == true.is_failing
    if true.is_failing:
        assert found.streak == true.streak
        assert found.since == pytest.approx(true.since.timestamp(), abs=1e-3)


def test_a_failing_link_is_told_first_with_since_count_where_and_why(client, small_world):
    ends = small_world.ral, small_world.glasgow
    hourly(small_world, 7.5, 12 * DAY, 17 * HOUR)
    hourly(small_world, 1.2, 12 * DAY, size="small")
    for number in range(16):
        error = "checksum differs" if number in (3, 9) else f"{NO_SPACE}: pool{number}.example.org"
        where = "transfer" if number in (3, 9) else "destination"
        send(*ends, NOW - (16 - number) * HOUR, error=error, error_where=where)
    said = verdict(client)
    assert said.startswith(
        "All 16 tests with large files have failed since 19 Nov 20:00. Most often (14 of 16) at "
        f"the destination, Glasgow_DATADISK: {NO_SPACE}"
    )
    assert "Small files still work." in said
    assert "The reverse direction has no test in this window." in said
    assert "The reverse direction is failing, with large files." in verdict(client, BACK)
    page = responses.page(client, LINK)
    html = page.source
    assert html.index("</h1>") < html.index('id="verdict"') < html.index('id="rates"')
    failing = by_size(page)["large"]
    assert failing.startswith("fails usual 7.50 16 of ")
    assert failing.endswith("last 16 failed since 19 Nov 20:00")


def test_whose_it_is_stands_once_in_the_box_of_a_failing_link(client, small_world):
    """Each test fails at the destination, whose other links work: a ticket for this pair."""
    ral, glasgow, desy, _ = small_world.endpoints
    for hours in range(1, 7):
        send(ral, glasgow, NOW - hours * HOUR, error=NO_SPACE, error_where="destination")
        transfer(desy, glasgow, 10.0, ago=hours * HOUR)
        transfer(ral, desy, 10.0, ago=hours * HOUR)
    said = verdict(client)
    assert (
        "The destination refuses this source only; others work (0 of 6 tests failed). Check what "
        "is specific to this pair: permissions, routing, firewalls." in said
    )
    page = responses.page(client, LINK).words
    assert page.count("Check what is specific to this pair") == 1
    assert "have one cause" not in page
    # Where the others fail as well, it is no matter of the pair.
    for hours in range(1, 7):
        transfer(desy, glasgow, None, ago=hours * HOUR)
    assert (
        "The destination fails with others, too: 6 of 12 tests from other sources to "
        "Glasgow_DATADISK failed. Check Glasgow_DATADISK first." in verdict(client)
    )


def test_a_link_is_compared_with_the_other_links_of_its_ends_beside_its_own_past(
    client, small_world
):
    hourly(small_world, 4.9, 12 * DAY)
    for rate in (38.0, 40.0, 42.0):
        transfer(small_world.ral, small_world.desy, rate)
        transfer(small_world.desy, small_world.glasgow, 2 * rate)
    page = responses.page(client, LINK)
    assert page.part("#verdict").words.startswith("As usual: large 1.00×.")
    assert page.part("#against-others").words == (
        "Slow against its endpoints' other links in this window: 12 % of what both reach there "
        "(12–12 %, 168 tests). 4.90 MB/s with large files. RAL_DATADISK sends 40.0 "
        "MB/s to 1 other destination. Glasgow_DATADISK receives 80.0 MB/s from 1 other source."
    )
    assert 'id="against-others"' not in responses.html(client, BACK), "nothing to compare"


def test_the_newest_error_keeps_its_reason_however_long_it_is(client, small_world):
    long = f"failure: COPY {'x' * 500} refused: HTTP 403 Permission refused"
    for hours in (3, 2, 1):
        send(small_world.ral, small_world.glasgow, NOW - hours * HOUR, error=long)
    assert "refused: HTTP 403 Permission refused. " in verdict(client)


def test_failures_from_before_the_window_are_told_too(client, small_world):
    for days in (2, 3, 4):
        send(small_world.ral, small_world.glasgow, NOW - days * DAY, error=NO_SPACE)
    said = verdict(client, f"{LINK}?window=24h")
    assert said.startswith("All 3 tests have failed since 16 Nov 12:00.")
    assert f"Each time at the destination, Glasgow_DATADISK: {NO_SPACE}." in said


@pytest.mark.long
def test_a_link_at_a_third_of_its_rate_is_told_with_the_hour(client, small_world):
    hourly(small_world, 7.5, 12 * DAY, 15 * HOUR)
    hourly(small_world, 2.1, 15 * HOUR)
    # The day before the last hour has both rates, and so tells of some scatter.
    intervals = {"": "0.28–0.28", "?window=24h": "0.28–0.28", "?window=1h": "0.23–0.33"}
    for text, interval in intervals.items():
        assert verdict(client, f"{LINK}{text}").startswith(
            f"Less than a third of the usual rate since 19 Nov 21:00: large 0.28× ({interval}). "
            "Now 2.10 MB/s, usually 7.50."
        ), text
    figure = responses.page(client, LINK).data("rates-data")
    labels = [one["text"] for one in figure["layout"]["annotations"]]
    assert "slower since 19 Nov 21:00 UTC" in labels


def test_a_window_that_is_over_is_told_as_of_its_end_and_leads_to_now(client, small_world):
    hourly(small_world, 7.5, 12 * DAY)
    path = f"{LINK}?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z"
    assert verdict(client, path).startswith(
        "As of 19 Nov 00:00, as usual: large 1.00×. Now 7.50 MB/s"
    )
    assert responses.page(client, path).link("How it is now") == LINK


def test_a_declared_downtime_is_told_before_what_it_explains(client, small_world):
    for hours in (1, 2, 3):
        transfer(small_world.ral, small_world.glasgow, None, ago=hours * HOUR)
    Downtime.objects.create(
        site=small_world.glasgow.site, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="new disks"
    )
    assert verdict(client).startswith(
        "Down: Glasgow is in a declared downtime until 20 Nov 13:00:30 UTC: new disks."
    )


def by_size(page: Page) -> dict[str, str]:
    """Return what the rail says of each size class, and of the reverse direction."""
    name, said = "", {}
    for row in page.parts("#by-size tbody tr"):
        for head in row.texts("th"):
            # Behind its name stands the size of its files.
            name = re.sub(r" [\d.]+ \w?B$", "", head)
        said.setdefault(name, []).extend(filter(None, row.texts("td")))
    return {name: " ".join(texts) for name, texts in said.items()}


def test_rows_by_size_choose_the_class_that_is_drawn_and_keep_the_rest(client, small_world):
    hourly(small_world, 7.5, 9 * DAY)
    hourly(small_world, 1.2, 9 * DAY, size="small")
    page = responses.page(client, f"{LINK}?window=24h&reverse=1")
    rows = page.parts("#by-size tr[title]")
    assert [row["class"] for row in rows] == ["usual", "not_applicable", "usual", "untested"]
    assert [row.links("th a") for row in rows] == [
        [f"{LINK}?size=small&window=24h&reverse=1"],
        [f"{LINK}?size=medium&window=24h&reverse=1"],
        [f"{LINK}?window=24h&reverse=1"],
        [],
    ]
    assert [len(row.parts("a[aria-current]")) for row in rows] == [0, 0, 1, 0]
    said = by_size(page)
    assert said["small"] == "1.20 usual 1.20 1.00×"
    assert said["reverse, large"].endswith("no test in this window")
    assert "Small files over time" in responses.page(client, f"{LINK}?size=small").words


def test_what_fails_costs_as_many_queries_whatever_the_data(client, small_world):
    responses.html(client, LINK)
    counts = []
    for failures in (0, 3, 300):
        with world.transfers() as some:
            for number in range(failures):
                ago = number * timedelta(minutes=1)
                for size in ("small", "large"):
                    some.add(small_world.ral, small_world.glasgow, None, ago=ago, size=size)
        counts.append(len(responses.statements(responses.html, client, LINK)))
    # With the matrix that its diagnosis compares it with, which is kept until results change.
    assert counts == [counts[0], 37, 37], counts


def test_what_came_through_before_all_failed_is_no_rate_of_now(client, small_world):
    """The newest successes are from before the window: neither direction has a rate now."""
    hourly(small_world, 7.5, 12 * DAY, 2 * DAY)
    send(small_world.ral, small_world.glasgow, NOW - HOUR, error=NO_SPACE)
    for path, name in ((LINK, "large"), (BACK, "reverse, large")):
        row = by_size(responses.page(client, f"{path}?window=24h"))[name]
        assert row.startswith("failed")
        assert "1.00×" not in row


def test_a_rate_now_is_left_out_where_all_tests_since_failed():
    states = ("failing", "failed", "measured", "stale", "down")
    assert [why_no_rate(state, (NOW - 30 * HOUR).timestamp(), NOW) for state in states] == [
        "failing: its last successes are more than 30 h old",
        "failed: its last successes are from before this window",
        *("", "", ""),
    ]
