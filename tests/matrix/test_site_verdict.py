"""The sentences that a site's page begins with: the site against its own past."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from matrix.answers.site.verdict import (
    EndFacts,
    FailingLink,
    LinksTested,
    Shift,
    ShiftedLink,
    SiteAnswer,
    Speaker,
    UsualLinks,
)
from matrix.answers.words.phrases import time_words

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHANGED = datetime(2026, 11, 19, 20, 15, tzinfo=UTC).timestamp()
FAILS = datetime(2026, 11, 19, 15, 6, tzinfo=UTC).timestamp()
HOUR = 3600.0
SLOWER = Shift(4, 0.3, 4, CHANGED, CHANGED + 3 * HOUR)
AROUND = UsualLinks(10, 0.98, 0.91, 1.05)
USUAL = {"links": 10, "sites": 10, "tested": 10, "usual": 10, "against_usual": AROUND}
AS_USUAL = (
    "As usual: sends at 0.98× (0.91–1.05, 10 links) and receives at 0.98× (0.91–1.05, 10 links) of "
    "the usual rate."
)
UNKNOWN = (
    "The usual rates of links {} RAL are not known yet: each takes 5 successful tests before this "
    "window."
)


def said(
    received: EndFacts,
    sent: EndFacts,
    *failing: FailingLink,
    is_past: bool = False,
    usual: int = 16,
) -> SiteAnswer:
    return Speaker("RAL", "large", NOW, is_past).verdict((received, sent), failing, usual)


def to(partner: str = "OX", since: float = FAILS) -> FailingLink:
    return FailingLink(("source",), partner, since)


def coming(partner: str = "DESY", since: float = FAILS) -> FailingLink:
    return FailingLink(("destination",), partner, since)


def receiving(**facts: object) -> EndFacts:
    return EndFacts("destination", **(USUAL | facts))  # type: ignore[arg-type]


def sending(**facts: object) -> EndFacts:
    return EndFacts("source", **(USUAL | facts))  # type: ignore[arg-type]


def test_what_is_slower_comes_first_with_factor_since_when_and_from_how_many():
    found = said(receiving(slower=SLOWER), sending(), to(), coming(since=FAILS + HOUR))
    assert found.news == "Slower than usual from 4 of 10 sites (0.30×, since 19 Nov 20:15)."
    assert found.rest == (
        "2 links are failing: to OX since 19 Nov 15:06 and from DESY since 19 Nov 16:06. 16 other "
        "links are as usual."
    )
    assert found.kind == "failing"
    assert said(receiving(slower=SLOWER), sending()).kind == "slower"


def test_few_links_that_slowed_are_named_at_both_ends():
    received = Shift(1, 0.37, 1, CHANGED, CHANGED, (ShiftedLink("INFN", 0.37, CHANGED),))
    sent = Shift(1, 0.46, 1, FAILS, FAILS, (ShiftedLink("NDGF", 0.46, FAILS),))
    assert said(receiving(slower=received), sending(slower=sent), usual=34).sentence == (
        "Slower than usual from INFN (0.37×, since 19 Nov 20:15) and to NDGF (0.46×, since 19 Nov "
        "15:06). 34 other links are as usual."
    )


def test_direction_is_in_words_at_either_end():
    found = said(receiving(), sending(slower=Shift(4, 0.3, 1, CHANGED, CHANGED), sites=1), usual=1)
    assert found.sentence == (
        "Slower than usual to 1 of 1 site (0.30×, since 19 Nov 20:15). 1 other link is as usual."
    )


def test_links_that_slowed_at_different_times_are_not_said_to_have_changed_at_once():
    apart = Shift(4, 0.3, 4, CHANGED - 40 * HOUR, CHANGED)
    assert (
        "(0.30×, the longest since 18 Nov 04:15)"
        in said(receiving(slower=apart), sending()).sentence
    )


def test_faster_is_said_after_slower():
    faster = Shift(2, 1.94, 2, CHANGED, CHANGED)
    assert said(receiving(slower=SLOWER), sending(faster=faster)).sentence == (
        "Slower than usual from 4 of 10 sites (0.30×, since 19 Nov 20:15). Faster than usual to 2 "
        "of 10 sites (1.94×, since 19 Nov 20:15). 16 other links are as usual."
    )
    both = said(receiving(faster=faster), sending(slower=SLOWER))
    assert both.news.startswith("Slower than usual to 4 of 10 sites (0.30×")
    assert said(receiving(faster=faster), sending()).kind == "faster"


def test_a_site_that_is_as_usual_says_so_at_once_with_factor_interval_and_links():
    assert said(receiving(), sending()).sentence == AS_USUAL
    few = UsualLinks(2, 1.0)
    alone = said(receiving(against_usual=few), sending(links=0))
    assert alone.sentence == (
        "As usual: receives at 1.00× (2 links) of the usual rate. No link from RAL is tested with "
        "large files."
    )


def test_few_failing_links_come_before_what_is_as_usual():
    found = said(receiving(), sending(failing=1, failing_since=FAILS), to())
    assert found.sentence == f"1 link is failing: to OX since 19 Nov 15:06. {AS_USUAL}"
    assert found.kind == "failing"


def test_more_failing_links_than_two_are_counted_by_direction():
    more = [to(), to("PIC", FAILS + HOUR), to("CERN"), coming()]
    assert said(receiving(), sending(), *more).sentence == (
        "1 of 10 links to RAL and 3 of 10 from it are failing, the longest since 19 Nov 15:06. "
        f"{AS_USUAL}"
    )
    assert said(receiving(), sending(), *more[:3]).sentence.startswith(
        "3 of 10 links from RAL are failing, the longest since 19 Nov 15:06. "
    )


def test_a_failing_link_within_the_site_is_named_once():
    within = FailingLink(("destination", "source"), "RAL", FAILS)
    assert said(receiving(failing=1), sending(failing=1), within).sentence.startswith(
        "1 link is failing: within the site since 19 Nov 15:06. "
    )


def test_an_end_at_which_all_fails_says_so_and_its_links_are_not_said_again():
    received = receiving(failing=10, failing_since=FAILS, usual=0)
    sends = "As usual: sends at 0.98× (0.91–1.05, 10 links) of the usual rate."
    assert said(received, sending(), *[coming()] * 10).sentence == (
        "RAL receives nothing: all 10 tested links are failing, the longest since 19 Nov 15:06. "
        f"{sends}"
    )
    one = receiving(links=1, sites=1, tested=1, failing=1, failing_since=FAILS)
    assert said(one, sending(), coming()).news == (
        "RAL receives nothing: its only tested link is failing since 19 Nov 15:06."
    )
    more = said(received, sending(failing=1), to(), *[coming()] * 10)
    assert more.rest == f"1 link is failing: to OX since 19 Nov 15:06. {sends}"


def test_a_site_at_which_all_fails_does_neither():
    facts = {"failing": 10, "failing_since": FAILS}
    assert said(receiving(**facts), sending(**facts), *[to(), coming()] * 10).sentence == (
        "RAL neither sends nor receives anything: all 20 tested links are failing, the longest "
        "since 19 Nov 15:06."
    )


@pytest.mark.parametrize(
    ("facts", "kind", "sentence"),
    [
        ({"usual": 0}, "unknown", UNKNOWN),
        (
            {"tested": 0},
            "untested",
            "The links {} RAL have no results with large files in this window.",
        ),
        ({"down": 10}, "down", "All links {} RAL are in a declared downtime."),
        ({"links": 0}, "none", "No link {} RAL is tested with large files."),
    ],
)
def test_what_is_missing_is_said_of_the_site_or_of_an_end_behind_the_other(facts, kind, sentence):
    nothing = said(receiving(**facts), sending(**facts))
    assert (nothing.kind, nothing.sentence) == (kind, sentence.format("to or from"))
    found = said(receiving(), sending(**facts))
    assert found.news == "As usual: receives at 0.98× (0.91–1.05, 10 links) of the usual rate."
    assert found.rest == sentence.format("from")


def test_before_anything_is_usual_it_says_what_was_tested():
    ends, tested = (receiving(usual=0), sending(usual=0)), LinksTested(8, 36, 11, 12)
    found = Speaker("RAL", "large", NOW).verdict(ends, [], 0, tested)
    assert found.kind == "unknown"
    assert found.news == "11 of 12 tests succeeded, on 8 of 36 links."
    assert found.rest == UNKNOWN.format("to or from")


def test_how_many_links_are_as_usual_is_said_behind_the_factor():
    found = Speaker("RAL", "large", NOW).verdict(
        (receiving(), sending(failing=1)), [to()], 35, LinksTested(36, 36, 90, 100)
    )
    assert found.rest == f"{AS_USUAL} 35 of 36 links are as usual."


def test_a_failing_link_counts_before_untested_ones():
    """It may have failed before the window, too, and nothing is known since."""
    assert receiving(tested=0, failing=1).kind == "failing"


def test_a_window_that_is_over_is_told_as_of_its_end():
    assert said(receiving(slower=SLOWER), sending(), is_past=True).news == (
        "As of 20 Nov 12:00, slower than usual from 4 of 10 sites (0.30×, since 19 Nov 20:15)."
    )
    found = said(receiving(), sending(), is_past=True)
    assert found.news.startswith("As of 20 Nov 12:00, as usual: sent at 0.98× (")
    untested = said(receiving(tested=0), sending(tested=0), is_past=True).sentence
    assert untested.startswith("As of 20 Nov 12:00, the links to or from RAL have no")


def test_a_name_keeps_its_small_letters():
    facts = receiving(failing=10, usual=0)
    found = Speaker("ral", "large", NOW).verdict((facts, sending()), [coming()] * 10, 0)
    assert found.news.startswith("ral receives nothing")


def test_without_a_since_none_is_said():
    unknown = Shift(1, 0.5, 1, math.nan, math.nan)
    assert "1 of 10 sites (0.50×)." in said(receiving(slower=unknown), sending()).sentence


def test_no_sentence_is_long():
    more = [to(), to("PIC", FAILS + HOUR), to("CERN"), coming()]
    faster = Shift(2, 1.94, 2, CHANGED, CHANGED)
    for found in (
        said(receiving(slower=SLOWER), sending(faster=faster), *more),
        said(receiving(), sending(), *more),
        said(receiving(failing=10, usual=0), sending(), *[coming()] * 10),
    ):
        for sentence in found.sentence.split(". "):
            assert len(sentence.split()) <= 22, sentence


def test_a_time_long_ago_has_its_year():
    assert time_words(CHANGED, NOW) == "19 Nov 20:15"
    assert time_words(CHANGED, NOW + timedelta(days=200)) == "19 Nov 2026 20:15"
