"""The answer of a matrix in one line: what is wrong, and how far it is known that nothing is."""

import re
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from django.http import QueryDict
from django.test import Client

from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import ChangeTally, Headline, Tally
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from sonar.models import Condition, Schedule
from tests.conditions import TYPES, assessed_at, stored_condition
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World, transfers

END = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)
ASSESSED = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
QUIET = Judgement([], ASSESSED, is_late=False, moment=NOW)
NOTHING = ChangeTally(slower=0, faster=0, perhaps=0, unchanged=9, too_few=0)

# What is said where there is no condition: of all links, of chosen ones, and of the past.
OF_ALL = [
    (Tally(), "No links to show yet"),
    (Tally(12, usual=12), "Everything as usual with large files"),
    (Tally(12, usual=10, down=2), "Everything as usual with large files"),
    (Tally(12, usual=10, partly=2), "Everything as usual with large files"),
    (
        Tally(12, usual=10, unknown=2),
        "No problem found, but 2 of 12 links cannot be assessed with large files: "
        "too few tests (2)",
    ),
    # Half of those that could have a result is not most of them.
    (
        Tally(12, usual=4, stale=4, down=4),
        "No problem found, but 4 of 12 links cannot be assessed with large files: "
        "no result for two intervals (4)",
    ),
    (
        Tally(12, usual=3, stale=5, unknown=1, untested=2, failed=1),
        "9 of 12 links cannot be assessed with large files: too few tests (2), no result for two "
        "intervals (5) and no result in this time range (2)",
    ),
    (
        Tally(12, unknown=12),
        "12 of 12 links cannot be assessed with large files: too few tests (12)",
    ),
    (
        Tally(12, untested=9, usual=3, pooled=True),
        "9 of 12 cells cannot be assessed with large files: no result in this time range (9)",
    ),
    (Tally(12, untested=12), "No results for large files in this time range"),
    (Tally(12, untested=10, down=2), "No results for large files in this time range"),
]
NARROWED = [
    (Tally(), "No link matches these filters"),
    (Tally(12, usual=12), "All these links are as usual with large files"),
    (
        Tally(12, usual=2, stale=10),
        "10 of these 12 links cannot be assessed with large files: no result for two intervals "
        "(10)",
    ),
]
PAST = [
    (Tally(12, usual=12), "Everything as usual with large files, as of 19 Nov 20:00 UTC"),
    (
        Tally(12, stale=12),
        "12 of 12 links cannot be assessed with large files: no result for two intervals (12), "
        "as of 19 Nov 20:00 UTC",
    ),
]
SAID = [
    ({}, OF_ALL),
    ({"narrowed": True}, NARROWED),
    ({"end": END}, PAST),
    # To the second where it has one.
    (
        {"end": END.replace(second=7)},
        [(Tally(2, usual=2), "Everything as usual with large files, as of 19 Nov 20:00:07 UTC")],
    ),
]


@pytest.mark.parametrize(
    ("facts", "tally", "words"), [(facts, *row) for facts, rows in SAID for row in rows]
)
def test_where_nothing_is_wrong_it_says_how_far_that_is_known(facts, tally, words):
    assert Headline(tally, "large", QUIET, **facts).words() == words


def test_without_a_recent_assessment_nothing_is_said_to_be_usual():
    usual = Tally(12, usual=12)
    never = Headline(usual, "large", Judgement([], None, is_late=False, moment=NOW))
    assert never.words() == "Not assessed yet"
    late = Headline(usual, "large", Judgement([], ASSESSED, is_late=True, moment=NOW))
    assert late.words() == "Not assessed since 20 Nov 12:00 UTC"


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        ({"slower": 2, "faster": 1}, "2 links slower, 1 faster"),
        ({"faster": 1}, "1 link faster"),
        ({"slower": 1234}, "1\u202f234 links slower"),
        ({"perhaps": 3}, "No significant change"),
        ({}, "No significant change"),
        ({"unchanged": 0}, "Too few results to compare"),
    ],
)
def test_while_comparing_it_says_how_many_differ(tally, words):
    changes = ChangeTally(**vars(NOTHING) | tally)
    told = Headline(Tally(12), "small", QUIET, changes=changes, other="the week before")
    assert told.words() == f"{words}, compared with the week before"


DAY = timedelta(days=1)


@pytest.fixture
def in_trouble(at_noon, small_world) -> World:
    """Five weeks of a link that fails now, one that is slower, one that is faster, one as ever."""
    ral, glasgow, desy, scratch = small_world.endpoints
    shifted = {(ral, glasgow): None, (ral, desy): 3.0, (desy, ral): 30.0, (glasgow, ral): 10.0}
    with transfers() as tests:
        for ends, rate in shifted.items():
            for day in range(8, 36):
                tests.add(*ends, 10.0 + day % 3 / 10, ago=day * DAY)
            for hour in range(4):
                tests.add(*ends, rate, ago=hour * HOUR + HOUR / 2)
        tests.add(scratch, ral, 5.0)
    Schedule.objects.exclude(
        source__in=[ral, desy, glasgow], destination__in=[ral, desy, glasgow]
    ).delete()
    Schedule.objects.filter(source=glasgow, destination=desy).delete()
    Schedule.objects.filter(source=desy, destination=glasgow).delete()
    stored_condition(TYPES.FAILING, source=ral, destination=glasgow, since=4 * HOUR)
    stored_condition(TYPES.SLOW, source=ral, destination=desy, since=4 * HOUR, factor=0.36)
    stored_condition(TYPES.FAST, source=desy, destination=ral, since=4 * HOUR)
    assessed_at()
    return small_world


FAILS = "RAL_DATADISK to Glasgow_DATADISK fails since 20 Nov 08:00 UTC"
IS_SLOW = "RAL_DATADISK to DESY_DATADISK runs at 0.36× since 20 Nov 08:00 UTC"
IS_FAST = "DESY_DATADISK to RAL_DATADISK runs at 2.0× since 20 Nov 08:00 UTC"


def answer(client: Client, text: str = "") -> tuple[str, dict[str, int]]:
    context = client.get(f"/{text}", follow=True).context
    parts = context["answer"]
    headline = " ".join(f"{part.label} {part.detail}".strip() + part.stop for part in parts)
    return headline, {entry.name: entry.count for entry in context["counts"]}


def test_the_page_names_conditions_and_counts_its_links(client, in_trouble):
    headline, counts = answer(client)
    assert headline == f"{FAILS}, {IS_SLOW}, {IS_FAST}"
    assert counts == {
        "failing": 1, "slower": 1, "faster": 1, "as usual": 1, "with too few tests": 1,
    }  # fmt: skip
    assert answer(client, "?source_site=RAL")[0] == f"{FAILS}, {IS_SLOW}"
    expected = ("All these links are as usual with large files", {"as usual": 1})
    assert answer(client, "?source_site=Glasgow") == expected
    assert answer(client, "?source_site=DESY")[0] == IS_FAST
    # What is drawn of them does not change how they are.
    assert answer(client, "?only=faster")[0] == headline
    # Nor does it matter which of the tests are counted.
    assert answer(client, "?mover=http-tpc")[0] == headline
    assert "The status of a link is based on all its tests" in responses.page(
        client, "/?mover=http-tpc"
    )
    # Another size class has its own.
    assert answer(client, "?size=small")[0] == "No links to show yet"
    rail = {kind.kind: items for kind, items in client.get("/").context["rail"]}
    assert [item.text for item in rail["failing"]] == ["from RAL_DATADISK to Glasgow_DATADISK"]
    assert [item.figure for item in rail["slower"]] == ["0.36×"]


def test_one_condition_of_an_endpoint_stands_for_its_links(client, in_trouble):
    """Four conditions are too many for a heading; the unconfirmed one is in none."""
    glasgow, desy, scratch = in_trouble.glasgow, in_trouble.desy, in_trouble.scratch
    stored_condition(TYPES.SLOW, destination=scratch, since=30 * HOUR)
    stored_condition(TYPES.FAILING, source=glasgow, destination=desy, confirmed=False)
    receives = "DESY_SCRATCHDISK receives at 0.40× since 19 Nov 06:00 UTC (3 links)"
    assert answer(client)[0] == f"{FAILS}, {receives}, {IS_SLOW}, and 1 more"
    # By country or by site the same is wrong.
    for by in ("country", "site"):
        assert answer(client, f"?rows={by}&columns={by}")[0] == answer(client)[0]
    # Of links that the condition has as members, and of others.
    assert answer(client, "?source_site=Glasgow")[0] == receives
    assert answer(client, "?source_site=Glasgow&destination_site=RAL")[0].startswith("All these")


def test_doubtful_measurements_are_said_before_anything_else(client, in_trouble):
    stored_condition(TYPES.SLOW, since=5 * HOUR)
    stored_condition(TYPES.FAILING, destination=in_trouble.scratch, since=30 * HOUR)
    headline, _ = answer(client)
    assert headline == (
        "Results have been doubtful since 20 Nov 07:00 UTC: most links are slow at once, which "
        "suggests a problem on Sonar's machine. DESY_SCRATCHDISK fails as destination since "
        "19 Nov 06:00 UTC (3 links)"
    )
    # What began during it may come of it, and is not listed.
    rail = client.get("/").context["rail"]
    listed = [item.text for kind, items in rail if kind.kind in KIND_OF.values() for item in items]
    assert listed == ["DESY_SCRATCHDISK as destination"]
    Condition.objects.exclude(scope="grid").delete()
    assert answer(client)[0].endswith("Sonar's machine")


def test_parts_of_the_heading_lead_to_what_they_say_and_counts_to_their_cells(client, in_trouble):
    context = client.get("/").context
    parts = [(part.look, part.url, part.leaves) for part in context["answer"]]
    assert parts == [
        ("failing", "/links/RAL_DATADISK/Glasgow_DATADISK/", True),
        ("slower", "/links/RAL_DATADISK/DESY_DATADISK/", True),
        ("faster", "/links/DESY_DATADISK/RAL_DATADISK/", True),
    ]
    urls = {entry.name: entry.url for entry in context["counts"]}
    assert urls == {
        "failing": "/?only=failing",
        "slower": "/?stat=vs_usual&only=slower",
        "faster": "/?stat=vs_usual&only=faster",
        "as usual": "/?only=usual",
        "with too few tests": "/?only=unknown",
    }
    for entry in context["counts"]:
        shown = client.get(entry.url)
        assert (shown.status_code, in_focus(shown.context["grid"], entry.url)) == (200, entry.count)
        again = [each for each in shown.context["counts"] if each.chosen]
        assert [each.url for each in again] == [entry.url.partition("only=")[0].rstrip("?&")]
    html = client.get("/?window=24h&compare=previous").content.decode()
    heading = re.findall("<h1.*?</h1>", html, re.DOTALL)[0]
    assert re.findall('href="([^"]*)" title="[^"]*"\\s+hx-boost="false"', heading)[:2] == [
        "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h&amp;compare=previous",
        "/events/?window=24h&amp;size=large&amp;now=yes",
    ]


def in_focus(answered: Grid, url: str) -> int:
    display = Display(only=tuple(QueryDict(url.partition("?")[2]).getlist("only")))
    return int(arrange(answered, display).in_focus.sum())


@pytest.mark.parametrize("only", ["slower", "faster", "failing&only=slower"])
def test_what_is_slower_or_faster_is_shown_as_such_unless_another_statistic_is_named(
    client, in_trouble, only
):
    leads = client.get(f"/?only={only}")
    assert (leads.status_code, leads["Location"]) == (302, f"/?stat=vs_usual&only={only}")
    by_name = client.get(f"/?stat=mean&only={only}")
    assert (by_name.status_code, by_name.context["grid"].query.stat) == (200, "mean")
    wall = client.get(f"/?stat=mean&only={only}&wall=1")
    assert (wall.status_code, wall.context["grid"].query.stat) == (200, "mean")
    # The numbers behind the picture are those of the picture.
    cells = client.get(by_name.context["picture"]["cells_url"])
    assert b'"stat":"mean"' in cells.content[:2000]
    cells = client.get(f"/cells/?only={only}")
    assert b'"stat":"vs_usual"' in cells.content[:2000]


@pytest.mark.parametrize("asked", ["?only=failing", "?only=slower&above=5", "?compare=week"])
def test_nothing_else_changes_the_statistic(client, in_trouble, asked):
    response = client.get(f"/{asked}")
    assert (response.status_code, response.context["grid"].query.stat) == (200, "mean")


def test_lists_of_slower_and_faster_links_lead_to_their_colours_without_foreign_bounds(
    client, in_trouble
):
    context = client.get("/?stat=max&order=tier&high=90").context
    more = {kind.kind: kind.more for kind in context["standouts"]}
    assert more["slower"] == "/?stat=vs_usual&order=tier&only=slower"
    assert more["faster"] == "/?stat=vs_usual&order=tier&only=faster"
    assert more["failing"] == "/?stat=max&order=tier&only=failing&high=90"
    legend = {entry.state: entry.url for entry in context["legend"]}
    assert legend["slower"] == more["slower"]
    preset = {choice.label: choice.url for choice in context["controls"]["presets"]}
    assert preset["Only links slower than usual"] == more["slower"]
    compared = client.get("/?window=24h&compare=previous").context
    changes = {entry.state: entry.url for entry in compared["legend"]}
    assert changes["measured"] == "/?window=24h&compare=previous&only=measured"
    both = client.get("/?window=24h&compare=previous&only=measured&only=slower").context
    changes = {entry.state: entry.url for entry in both["legend"]}
    assert changes["measured"] == "/?window=24h&compare=previous&only=slower"


def test_cells_of_several_links_are_answered_for_by_their_links(client, in_trouble):
    headline, counts = answer(client, "?rows=cloud&columns=cloud")
    assert headline == f"{FAILS}, {IS_SLOW}, {IS_FAST}"
    links = {name: counts[name] for name in ("failing", "slower", "faster", "as usual")}
    assert set(links.values()) == {1}
    assert all(not name.startswith("stale") for name in counts)


def test_time_ranges_of_the_past_and_places_without_links_are_told_as_such(client, in_trouble):
    past = "?from=2026-11-20T00:00:00Z&to=2026-11-20T11:45:00Z"
    tail = ", as of 20 Nov 11:45 UTC"
    assert answer(client, past)[0] == f"{FAILS}, {IS_SLOW}, {IS_FAST}{tail}"
    # Before they began.
    before = "?from=2026-11-12T00:00:00Z&to=2026-11-12T18:00:00Z"
    assert answer(client, before)[0] == (
        "4 of 4 links cannot be assessed with large files: no result for two intervals (4), "
        "as of 12 Nov 18:00 UTC"
    )
    # An end a second ago, or a minute, is now.
    for second in ("12:00:29", "11:59:29"):
        ended = f"?from=2026-11-20T00:00:00Z&to=2026-11-20T{second}Z"
        assert answer(client, ended)[0] == f"{FAILS}, {IS_SLOW}, {IS_FAST}"
    assert answer(client, "?cloud=FR")[0] == "No link matches these filters"
    long_ago = "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
    assert answer(client, long_ago)[0] == "No results for large files in this time range"


def test_a_young_installation_says_that_it_cannot_judge_yet(client, at_noon, small_world):
    assessed_at()
    with transfers() as tests:
        for source, destination in permutations(small_world.endpoints, 2):
            tests.add(source, destination, 10.0)
    assert answer(client) == (
        "12 of 12 links cannot be assessed with large files: too few tests (12)",
        {"with too few tests": 12},
    )
