"""What conditions are called: whose they are, what is the matter, since when, and the evidence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import Judgement
from matrix.store import conditions
from sonar.models import Condition
from tests.conditions import stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
TYPES = Condition.Type
GLASGOW, RAL = "Glasgow_DATADISK", "RAL_DATADISK"


@pytest.mark.parametrize(
    ("scope", "type_", "subject", "title", "ended"),
    [
        ("link", TYPES.SLOW, "RAL_DATADISK to Glasgow_DATADISK",
         "RAL_DATADISK to Glasgow_DATADISK runs at 0.40× (0.35–0.46)",
         "RAL_DATADISK to Glasgow_DATADISK ran at 0.40× (0.35–0.46)"),
        ("link", TYPES.FAILING, "RAL_DATADISK to Glasgow_DATADISK",
         "RAL_DATADISK to Glasgow_DATADISK fails", "RAL_DATADISK to Glasgow_DATADISK failed"),
        ("source", TYPES.FAST, "RAL_DATADISK as source",
         "RAL_DATADISK sends at 2.00× (1.80–2.20)", "RAL_DATADISK sent at 2.00× (1.80–2.20)"),
        ("destination", TYPES.SLOW, "Glasgow_DATADISK as destination",
         "Glasgow_DATADISK receives at 0.40× (0.35–0.46)",
         "Glasgow_DATADISK received at 0.40× (0.35–0.46)"),
        ("destination", TYPES.FAILING, "Glasgow_DATADISK as destination",
         "Glasgow_DATADISK fails as destination", "Glasgow_DATADISK failed as destination"),
        ("endpoint", TYPES.SILENT, "RAL_DATADISK in both directions",
         "RAL_DATADISK has no new results in both directions",
         "RAL_DATADISK had no new results in both directions"),
        ("site", TYPES.SLOW, "RAL in both directions",
         "RAL sends and receives at 0.40× (0.35–0.46)",
         "RAL sent and received at 0.40× (0.35–0.46)"),
        ("grid", TYPES.SLOW, "Sonar itself",
         "Sonar itself: most links are slow at once, at 0.40× (0.35–0.46)",
         "Sonar itself: most links were slow at once, at 0.40× (0.35–0.46)"),
        ("grid", TYPES.SILENT, "Sonar itself",
         "Sonar itself: most links have no new results at once",
         "Sonar itself: most links had no new results at once"),
    ],
)  # fmt: skip
def test_each_says_whose_it_is_and_what_is_the_matter(
    small_world: World, scope: str, type_: str, subject: str, title: str, ended: str
):
    ral, glasgow = small_world.ral, small_world.glasgow
    subjects = {
        "link": {"source": ral, "destination": glasgow},
        "source": {"source": ral},
        "destination": {"destination": glasgow},
        "endpoint": {"source": ral, "destination": ral},
        "site": {"site": ral.site},
        "grid": {},
    }
    condition = stored_condition(type_, **subjects[scope])
    assert words.subject(condition) == subject
    assert words.title(condition) == title
    assert words.title(condition) == words.title(condition, {"another": "name"})
    condition.ended_at = NOW
    assert words.title(condition) == ended


def test_names_are_short_where_a_page_shortens_them(small_world: World):
    link = stored_condition(source=small_world.ral, destination=small_world.glasgow)
    assert words.title(link, {RAL: "RAL"}) == "RAL to Glasgow_DATADISK fails"
    assert words.subject(link, {RAL: "RAL", GLASGOW: "Glasgow"}) == "RAL to Glasgow"


def test_a_beginning_is_a_moment_or_lies_between_two(small_world: World):
    began = datetime(2026, 11, 20, 1, tzinfo=UTC)
    condition = stored_condition(source=small_world.ral)
    condition.since, condition.since_low, condition.since_high = began, began - 2 * HOUR, began
    assert words.since(condition) == "since 20 Nov 01:00 UTC"
    condition.since_low = began - 6 * HOUR
    between = "some time between 19 Nov 19:00 and 20 Nov 01:00"
    assert words.since(condition) == f"since {between} UTC"
    condition.ended_at = began + 3 * HOUR
    assert words.since(condition) == f"from {between} until 20 Nov 04:00 UTC"


def test_a_sentence_has_the_evidence_and_calls_the_unconfirmed_so(small_world: World):
    ral, glasgow, desy, scratch = small_world.endpoints
    stored_condition(destination=glasgow, since=HOUR)
    stored_condition(
        TYPES.SLOW, source=desy, since=2 * HOUR, links=[(desy, ral)], of_links=3, confirmed=False,
        sizes=("small", "large"),
    )  # fmt: skip
    stored_condition(source=ral, destination=scratch, since=3 * HOUR, ended=HOUR)
    stored_condition(TYPES.SILENT, source=scratch, since=4 * HOUR)
    grid = stored_condition(TYPES.SLOW, since=5 * HOUR, ended=4 * HOUR)
    Condition.objects.filter(pk=grid.pk).update(links=0)
    assert [words.sentence(each) for each in conditions.rows()] == [
        "Glasgow_DATADISK has been failing as destination since 20 Nov 11:00 UTC, "
        "with large files, on 3 of 3 links, 30 of 30 tests failed.",
        "DESY_DATADISK has been slow as source since 20 Nov 10:00 UTC, at 0.40× (0.35–0.46) "
        "of the baseline, with small and large files, on 1 of 3 links, 20 tests, unconfirmed.",
        "RAL_DATADISK to DESY_SCRATCHDISK was failing from 20 Nov 09:00 until 20 Nov 11:00 UTC, "
        "with large files, 10 of 10 tests failed.",
        "DESY_SCRATCHDISK has had no new results as source since 20 Nov 08:00 UTC, "
        "with large files, on 3 of 3 links.",
        "Sonar itself: most links were slow from 20 Nov 07:00 until 20 Nov 08:00 UTC, "
        "at 0.40× (0.35–0.46) of the baseline, with large files, 120 tests.",
    ]


def test_a_page_says_as_of_when_and_whether_that_is_late():
    assert words.as_of(Judgement([], None, False, NOW)) == "not assessed yet"
    assert words.as_of(Judgement([], NOW, False, NOW)) == "as of 12:00 UTC"
    late = Judgement([], NOW - HOUR, True, NOW)
    assert words.as_of(late) == "not assessed since 20 Nov 11:00 UTC"


def test_results_are_doubtful_for_a_reason(small_world: World):
    grid = stored_condition(TYPES.SLOW)
    assert words.doubtful(grid) == (
        "Results have been doubtful since 20 Nov 06:00 UTC: most links are slow at once, which "
        "suggests a problem on Sonar's machine."
    )


def test_its_page_is_that_of_its_link_or_site_around_its_beginning(small_world: World):
    ral, glasgow, desy, _ = small_world.endpoints
    link = stored_condition(source=ral, destination=glasgow, sizes=("small", "medium"))
    assert words.url(link) == (
        "/links/RAL_DATADISK/Glasgow_DATADISK/?size=medium&from=2026-11-06T05:00:00Z"
        "&to=2026-11-20T12:01:00Z"
    )
    days_later = NOW + timedelta(days=20)
    assert words.url(link, days_later).endswith("to=2026-12-04T06:01:00Z")
    assert words.path(stored_condition(source=desy)) == "/sites/DESY/"
    assert words.path(stored_condition(site=ral.site)) == "/sites/RAL/"
    assert words.path(stored_condition(TYPES.SLOW)) == "/"


def test_what_to_check_first_follows_from_whose_it_is(small_world: World):
    ral, glasgow = small_world.ral, small_world.glasgow
    for condition, advice in (
        (stored_condition(source=ral, destination=glasgow), "specific to this link"),
        (stored_condition(source=ral), "Check RAL_DATADISK first"),
        (stored_condition(TYPES.SLOW, destination=glasgow), "inbound path"),
        (
            stored_condition(TYPES.SILENT, site=ral.site),
            "tests of the affected links are scheduled",
        ),
        (stored_condition(TYPES.SLOW), "Sonar's own workers"),
    ):
        assert advice in words.advice(condition)
    assert words.advice(stored_condition(TYPES.FAST, source=ral)) == ""
