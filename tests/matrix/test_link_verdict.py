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
from sonar.models import Assessment, Condition, Downtime, SizeClass
from tests.conditions import TYPES, stored_condition
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.facts_sql import Facts
from tests.matrix.sent import MINUTE, send
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
def test_now_and_usual_are_those_of_plain_sql(small_world, seed, text):
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


def test_a_failing_link_is_told_first_with_since_count_where_and_why(client, small_world):
    ends = small_world.ral, small_world.glasgow
    hourly(small_world, 7.5, 12 * DAY, 17 * HOUR)
    hourly(small_world, 1.2, 12 * DAY, size="small")
    for number in range(16):
        error = "checksum differs" if number in (3, 9) else f"{NO_SPACE}: pool{number}.example.org"
        where = "transfer" if number in (3, 9) else "destination"
        send(*ends, NOW - (16 - number) * HOUR, error=error, error_where=where)
    stored_condition(source=ends[0], destination=ends[1], since=16 * HOUR, baseline=7.5e6)
    said = verdict(client)
    assert said.startswith(
        "Fails, with large files, 10 of 10 tests failed, since 19 Nov 20:00 UTC. Most often (14 of "
        f"16) at the destination, Glasgow_DATADISK: {NO_SPACE}"
    )
    assert "Small files still work." in said
    assert "The reverse direction was not tested in this time range." in said
    assert "The reverse direction fails, with large files, since 19 Nov 20:00" in verdict(
        client, BACK
    )
    page = responses.page(client, LINK)
    html = page.source
    assert html.index("</h1>") < html.index('id="verdict"') < html.index('id="rates"')
    failing = by_size(page)["large"]
    assert failing.startswith("fails baseline 7.50 16 of ")
    assert failing.endswith("failing since 19 Nov 20:00, last 16 failed")


def test_whose_it_is_stands_once_in_the_box_of_a_failing_link(client, small_world):
    """Each test fails at the destination, whose other links work: a ticket for this pair."""
    ral, glasgow, desy, _ = small_world.endpoints
    for hours in range(1, 7):
        send(ral, glasgow, NOW - hours * HOUR, error=NO_SPACE, error_where="destination")
        transfer(desy, glasgow, 10.0, ago=hours * HOUR)
        transfer(ral, desy, 10.0, ago=hours * HOUR)
    stored_condition(source=ral, destination=glasgow)
    said = verdict(client)
    assert (
        "The destination refuses only this source; other links of the destination work (0 of 6 "
        "tests failed). Check what is specific to this link: permissions, routing, firewalls."
        in said
    )
    page = responses.page(client, LINK).words
    assert page.count("Check what is specific to this link") == 1
    assert "have the same error" not in page
    # Where the others fail as well, it is no matter of the pair.
    for hours in range(1, 7):
        transfer(desy, glasgow, None, ago=hours * HOUR)
    assert (
        "The destination also fails on other links: 6 of 12 tests from other sources to "
        "Glasgow_DATADISK failed. Check Glasgow_DATADISK first." in verdict(client)
    )
    Condition.objects.all().delete()
    stored_condition(destination=glasgow)
    assert (
        "The destination also fails on other links: with large files, on 3 of 3 links, 30 of 30 "
        "tests failed. Check Glasgow_DATADISK first. The errors of its failed tests show"
        in verdict(client)
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
        "Slow compared with the other links of both endpoints in this time range: 12 % of their "
        "rate (12–12 %, 168 tests). 4.90 MB/s with large files. RAL_DATADISK sends 40.0 "
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
    stored_condition(source=small_world.ral, destination=small_world.glasgow, since=4 * DAY)
    said = verdict(client, f"{LINK}?window=24h")
    assert said.startswith(
        "Fails, with large files, 10 of 10 tests failed, since 16 Nov 12:00 UTC."
    )
    assert f"Each time at the destination, Glasgow_DATADISK: {NO_SPACE}." in said


def test_a_link_at_a_third_of_its_rate_is_told_with_the_hour(client, small_world):
    hourly(small_world, 7.5, 12 * DAY, 15 * HOUR)
    hourly(small_world, 2.1, 15 * HOUR)
    factors = {"factor": 0.28, "factor_low": 0.27, "factor_high": 0.29}
    ends = {"source": small_world.ral, "destination": small_world.glasgow}
    stored_condition(TYPES.SLOW, **ends, since=15 * HOUR, baseline=7.5e6, **factors)
    for text in ("", "?window=24h", "?window=1h"):
        assert verdict(client, f"{LINK}{text}").startswith(
            "Runs at 0.28× (0.27–0.29), with large files, 10 tests, since 19 Nov 21:00 UTC. Now "
            "2.10 MB/s, usually 7.50."
        ), text
    layout = responses.page(client, LINK).data("rates-data")["layout"]
    assert "at 0.28×" in [one["text"] for one in layout["annotations"]]
    band, line = (one for one in layout["shapes"] if one["name"] == "slower")
    since = (NOW - 15 * HOUR).timestamp() * 1000
    assert (band["x0"], line["x0"]) == (since, since)


def test_a_wider_condition_that_the_link_is_a_part_of_is_told_marked_and_listed(
    client, small_world
):
    hourly(small_world, 7.5, 12 * DAY, 15 * HOUR)
    hourly(small_world, 3.0, 15 * HOUR)
    stored_condition(TYPES.SLOW, destination=small_world.glasgow, since=15 * HOUR, baseline=7.5e6)
    whole = "Glasgow_DATADISK receives at 0.40× (0.35–0.46)"
    said = verdict(client)
    assert said.startswith(f"Part of: {whole}, with large files, on 3 of 3 links, 30 tests, since ")
    assert "Now 3.00 MB/s, usually 7.50." in said
    assert "Part of" not in verdict(client, BACK)
    reverse = f"The reverse direction is part of: {whole} since 19 Nov 21:00 UTC."
    assert reverse in verdict(client, BACK)
    drawn = responses.page(client, LINK).data("rates-data")["layout"]["annotations"]
    assert "at 0.40×: Glasgow_DATA…destination" in [one["text"] for one in drawn]


def test_what_is_over_is_in_the_picture_but_no_state(client, small_world):
    hourly(small_world, 7.5, 12 * DAY)
    ends = {"source": small_world.ral, "destination": small_world.glasgow}
    stored_condition(**ends, since=3 * DAY, ended=2 * DAY)
    stored_condition(TYPES.SLOW, **ends, since=DAY, confirmed=False)
    page = responses.page(client, LINK)
    assert page.part("#verdict").words.startswith("Unconfirmed: runs at 0.40× (0.35–0.46), with la")
    said = {one["text"] for one in page.data("rates-data")["layout"]["annotations"]}
    assert {"failed", "unconfirmed: at 0.40×"} <= said
    (band,) = (
        one for one in page.data("rates-data")["layout"]["shapes"] if one["name"] == "failing"
    )
    bounds = [(NOW - days * DAY).timestamp() * 1000 for days in (3, 2)]
    assert [band["x0"], band["x1"]] == bounds
    # At the end of a window that was within it, it is the state.
    past = "?from=2026-11-16T00:00:00Z&to=2026-11-18T00:00:00Z"
    assert verdict(client, f"{LINK}{past}").startswith("As of 18 Nov 00:00, failed, with large")


def test_it_is_said_when_results_were_assessed_and_that_filters_do_not_judge(client, small_world):
    hourly(small_world, 7.5, 12 * DAY)
    assert "Not assessed yet." in verdict(client)
    Assessment.objects.create(
        size_class=SizeClass.objects.get(name="large"), assessed_at=NOW - MINUTE
    )
    assert verdict(client).endswith("As of 11:59 UTC.")
    filtered = verdict(client, f"{LINK}?streams=1")
    assert filtered.endswith("As of 11:59 UTC. Filters do not affect this status.")


def test_a_window_that_is_over_is_told_as_of_its_end_and_leads_to_now(client, small_world):
    hourly(small_world, 7.5, 12 * DAY)
    path = f"{LINK}?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z"
    assert verdict(client, path).startswith(
        "As of 19 Nov 00:00, as usual: large 1.00×. Now 7.50 MB/s"
    )
    assert responses.page(client, path).link("Show current state") == LINK


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
    assert said["small"] == "1.20 baseline 1.20 1.00×"
    assert said["reverse, large"].endswith("no test in this time range")
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
    assert counts == [counts[0], 39, 39], counts


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
        "failing: the last successful tests are more than 30 h old",
        "failed: the last successful tests are from before this time range",
        *("", "", ""),
    ]
