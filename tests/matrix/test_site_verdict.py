"""The sentence that a site's page begins with."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from matrix.answers.site.verdict import (
    EndFacts,
    FailingLink,
    Shift,
    SiteAnswer,
    Speaker,
    time_words,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHANGED = datetime(2026, 11, 19, 20, 15, tzinfo=UTC).timestamp()
FAILS = datetime(2026, 11, 19, 15, 6, tzinfo=UTC).timestamp()
HOUR = 3600.0
SLOWER = Shift(4, 0.3, 4, CHANGED, CHANGED + 3 * HOUR)
USUAL = {"links": 10, "sites": 10, "tested": 10, "usual": 10}


def said(
    received: EndFacts, sent: EndFacts, *failing: FailingLink, is_past: bool = False
) -> SiteAnswer:
    return Speaker("RAL", "large", NOW, is_past).verdict((received, sent), failing)


def to(partner: str = "OX", since: float = FAILS) -> FailingLink:
    return FailingLink(("source",), partner, since)


def coming(partner: str = "DESY", since: float = FAILS) -> FailingLink:
    return FailingLink(("destination",), partner, since)


def receiving(**facts: object) -> EndFacts:
    return EndFacts("destination", **(USUAL | facts))  # type: ignore[arg-type]


def sending(**facts: object) -> EndFacts:
    return EndFacts("source", **(USUAL | facts))  # type: ignore[arg-type]


def test_what_is_slower_comes_first_with_factor_since_when_and_from_how_many() -> None:
    found = said(receiving(slower=SLOWER), sending(), to(), coming(since=FAILS + HOUR))
    assert found.sentence == (
        "RAL has received from 4 of 10 sites at 0.30× the usual rate since Thu 19 Nov 20:15 UTC; "
        "it sends as usual. 2 links failing, to OX since Thu 19 Nov 15:06 UTC and from DESY since "
        "Thu 19 Nov 16:06 UTC."
    )
    assert found.kind == "failing"
    assert found.news.endswith("since Thu 19 Nov 20:15 UTC;")
    assert said(receiving(slower=SLOWER), sending()).kind == "slower"


def test_direction_is_in_words_at_either_end() -> None:
    found = said(receiving(), sending(slower=Shift(4, 0.3, 1, CHANGED, CHANGED), sites=1))
    assert found.sentence == (
        "RAL has sent to 1 of 1 site at 0.30× the usual rate since Thu 19 Nov 20:15 UTC; it "
        "receives "
        "as usual."
    )


def test_links_that_slowed_at_different_times_are_not_said_to_have_changed_at_once() -> None:
    apart = Shift(4, 0.3, 4, CHANGED - 40 * HOUR, CHANGED)
    assert (
        "usual rate, the longest since Wed 18 Nov 04:15 UTC"
        in said(receiving(slower=apart), sending()).sentence
    )


def test_faster_is_said_after_slower() -> None:
    faster = Shift(2, 1.94, 2, CHANGED, CHANGED)
    assert said(receiving(slower=SLOWER), sending(faster=faster)).sentence == (
        "RAL has received from 4 of 10 sites at 0.30× the usual rate since Thu 19 Nov 20:15 UTC; "
        "it has sent to 2 of 10 sites at 1.9× the usual rate since Thu 19 Nov 20:15 UTC."
    )
    both = said(receiving(faster=faster), sending(slower=SLOWER))
    assert both.news.startswith("RAL has sent to 4 of 10 sites at 0.30×")
    assert said(receiving(faster=faster), sending()).kind == "faster"


def test_a_site_that_is_as_usual_is_said_so_at_once() -> None:
    assert said(receiving(), sending()).sentence == "RAL sends and receives as usual."


def test_few_failing_links_come_before_what_is_as_usual() -> None:
    found = said(receiving(), sending(failing=1, failing_since=FAILS), to())
    assert found.sentence == (
        "1 link failing, to OX since Thu 19 Nov 15:06 UTC. RAL sends and receives as usual."
    )
    assert found.kind == "failing"


def test_more_failing_links_than_two_are_counted_by_direction() -> None:
    more = [to(), to("PIC", FAILS + HOUR), to("CERN"), coming()]
    assert said(receiving(), sending(), *more).sentence == (
        "1 of 10 links to RAL and 3 of 10 from it failing, the longest since Thu 19 Nov 15:06 UTC. "
        "RAL sends and receives as usual."
    )
    assert said(receiving(), sending(), *more[:3]).sentence.startswith(
        "3 of 10 links from RAL failing, the longest since Thu 19 Nov 15:06 UTC. "
    )


def test_a_failing_link_within_the_site_is_named_once() -> None:
    within = FailingLink(("destination", "source"), "RAL", FAILS)
    assert said(receiving(failing=1), sending(failing=1), within).sentence.startswith(
        "1 link failing, within the site since Thu 19 Nov 15:06 UTC. "
    )


def test_an_end_at_which_all_fails_says_so_and_its_links_are_not_said_again() -> None:
    received = receiving(failing=10, failing_since=FAILS, usual=0)
    assert said(received, sending(), *[coming()] * 10).sentence == (
        "RAL receives nothing: all 10 tested links are failing, the longest since Thu 19 Nov 15:06 "
        "UTC; it sends as usual."
    )
    one = receiving(links=1, sites=1, tested=1, failing=1, failing_since=FAILS)
    assert said(one, sending(), coming()).sentence.startswith(
        "RAL receives nothing: its only tested link has been failing since Thu 19 Nov 15:06 UTC; it"
    )
    more = said(received, sending(failing=1), to(), *[coming()] * 10).sentence
    assert more.endswith("it sends as usual. 1 link failing, to OX since Thu 19 Nov 15:06 UTC.")


def test_a_site_at_which_all_fails_does_neither() -> None:
    facts = {"failing": 10, "failing_since": FAILS}
    assert said(receiving(**facts), sending(**facts), *[to(), coming()] * 10).sentence == (
        "RAL neither sends nor receives anything: all its 20 tested links are failing, the longest "
        "since Thu 19 Nov 15:06 UTC."
    )


@pytest.mark.parametrize(
    ("facts", "kind", "sentence"),
    [
        ({"usual": 0}, "unknown", "RAL sends and receives, and has no usual rates to compare with"),
        (
            {"tested": 0},
            "untested",
            "The links of RAL have no results with large files in this window.",
        ),
        ({"down": 10}, "down", "All links of RAL are in a declared downtime."),
        ({"links": 0}, "none", "No link of RAL is tested with large files."),
    ],
)
def test_a_site_of_which_nothing_is_known_says_what_is_missing(
    facts: dict[str, int], kind: str, sentence: str
) -> None:
    found = said(receiving(**facts), sending(**facts))
    assert found.kind == kind
    assert found.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("facts", "clause"),
    [
        ({"usual": 0}, "the links from it have no usual rate to compare with yet."),
        (
            {"tested": 0},
            "the links from it have no results with large files in this window.",
        ),
        ({"down": 10}, "all links from it are in a declared downtime."),
        ({"links": 0}, "no link from it is tested with large files."),
    ],
)
def test_an_end_of_which_nothing_is_known_is_said_behind_the_other(
    facts: dict[str, int], clause: str
) -> None:
    assert said(receiving(), sending(**facts)).sentence == f"RAL receives as usual; {clause}"


def test_a_failing_link_counts_before_untested_ones() -> None:
    """It may have failed before the window, too, and nothing is known since."""
    assert receiving(tested=0, failing=1).kind == "failing"


def test_a_window_that_is_over_is_told_in_the_past_with_as_of_when() -> None:
    assert said(receiving(slower=SLOWER), sending(), is_past=True).sentence == (
        "As of Fri 20 Nov 12:00 UTC: RAL had received from 4 of 10 sites at 0.30× the usual "
        "rate since Thu 19 Nov 20:15 UTC; it sent as usual."
    )
    untested = said(receiving(tested=0), sending(tested=0), is_past=True).sentence
    assert untested.startswith("As of Fri 20 Nov 12:00 UTC: the links of RAL have no")


def test_without_a_since_none_is_said() -> None:
    unknown = Shift(1, 0.5, 1, math.nan, math.nan)
    assert "at 0.50× the usual rate; it" in said(receiving(slower=unknown), sending()).sentence


def test_a_time_long_ago_has_its_year() -> None:
    assert time_words(CHANGED, NOW) == "Thu 19 Nov 20:15"
    assert time_words(CHANGED, NOW + timedelta(days=200)) == "Thu 19 Nov 2026 20:15"
