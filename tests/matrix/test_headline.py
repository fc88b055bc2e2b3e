"""The answer of a matrix in one line, for every way in which its links can be."""

import re
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from django.http import QueryDict
from django.test import Client

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import Headline, Tally
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from sonar.models import Schedule
from tests.matrix.world import HOUR, World, transfers

END = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)


# What is said of all links, of those that filters have chosen, and of a window of the past.
OF_ALL = [
    (Tally(), "No links to show yet"),
    (
        Tally(12, failing=3, slower=5, usual=4),
        "3 links failing with large files, 5 slower than usual",
    ),
    (Tally(12, failing=1, usual=11), "1 link failing with large files"),
    (Tally(12, slower=1, usual=11), "1 link slower than usual with large files"),
    (Tally(12, slower=2, usual=10), "2 links slower than usual with large files"),
    (
        Tally(12, failed=2, slower=1, usual=9),
        "2 links without a success with large files, 1 slower than usual",
    ),
    (Tally(12, failing=12), "All links failing with large files"),
    (Tally(12, failing=10, down=2), "All links failing with large files"),
    (Tally(1, failing=1), "1 link failing with large files"),
    (Tally(2000, failing=1200, usual=800), "1\u202f200 links failing with large files"),
    (Tally(12, usual=12), "Everything as usual with large files"),
    (Tally(12, usual=10, down=2), "Everything as usual with large files"),
    (Tally(12, usual=10, faster=2), "No link failing or slower than usual with large files"),
    (Tally(12, usual=10, unknown=2), "No link failing or slower than usual with large files"),
    (Tally(12, usual=10, stale=2), "No link failing or slower than usual with large files"),
    (Tally(12, usual=10, partly=2), "No link failing or slower than usual with large files"),
    (Tally(12, usual=10, untested=2), "No link failing or slower than usual with large files"),
    (Tally(12, unknown=12), "No usual rates with large files known yet"),
    (
        Tally(12, unknown=2, untested=10),
        "10 of 12 links untested with large files, no usual rates known yet",
    ),
    (
        Tally(12, usual=5, stale=7),
        "7 of 12 links stale with large files, none failing or slower than usual",
    ),
    (
        Tally(12, faster=4, stale=1, untested=4, down=3),
        "5 of 12 links stale or untested with large files, none failing or slower than usual",
    ),
    # Half of those that could have a result is not most of them.
    (
        Tally(12, usual=4, stale=4, down=4),
        "No link failing or slower than usual with large files",
    ),
    (Tally(12, failing=1, stale=11), "1 link failing with large files"),
    (Tally(12, failing=2, unknown=10), "2 links failing with large files"),
    (Tally(12, untested=12), "Nothing measured with large files in this window"),
    (Tally(12, untested=10, down=2), "Nothing measured with large files in this window"),
    (Tally(12, down=12), "Nothing measured with large files in this window"),
    (Tally(12, stale=12), "All results with large files are stale"),
    (Tally(12, stale=2, untested=10), "All results with large files are stale"),
    (
        Tally(12, usual=3, untested=9, pooled=True),
        "9 of 12 cells untested with large files, none failing or slower than usual",
    ),
    # Cells of several links: how many links they pool is not counted.
    (Tally(2, failing=30, failed=1, pooled=True), "30 links failing with large files"),
    (Tally(2, failing=2, pooled=True), "2 links failing with large files"),
    (Tally(2, usual=2, pooled=True), "No link failing or slower than usual with large files"),
    (Tally(2, unknown=2, pooled=True), "No usual rates with large files known yet"),
]
NARROWED = [
    (Tally(), "No link matches these filters"),
    (
        Tally(12, failing=3, slower=5),
        "3 of these links failing with large files, 5 slower than usual",
    ),
    (Tally(12, failing=1), "1 of these links failing with large files"),
    (Tally(12, failing=12), "All these links failing with large files"),
    (Tally(12, usual=12), "All these links as usual with large files"),
    (
        Tally(12, usual=10, stale=2),
        "None of these links failing or slower than usual with large files",
    ),
    (Tally(12, unknown=12), "No usual rates with large files known yet"),
    (
        Tally(12, usual=2, stale=10),
        "10 of these 12 links stale with large files, none failing or slower than usual",
    ),
]
PAST = [
    (
        Tally(12, failing=3, slower=5),
        "3 links were failing with large files, 5 slower than usual at 19 Nov 20:00 UTC",
    ),
    (Tally(12, failing=1, usual=11), "1 link was failing with large files at 19 Nov 20:00 UTC"),
    (Tally(12, failing=12), "All links were failing with large files at 19 Nov 20:00 UTC"),
    (Tally(12, usual=12), "Everything was as usual with large files at 19 Nov 20:00 UTC"),
    (
        Tally(12, unknown=12),
        "No usual rates with large files were known yet at 19 Nov 20:00 UTC",
    ),
    (Tally(12, stale=12), "All results with large files were stale at 19 Nov 20:00 UTC"),
    (
        Tally(12, usual=11, faster=1),
        "No link was failing or slower than usual with large files at 19 Nov 20:00 UTC",
    ),
    (
        Tally(342, usual=28, stale=314),
        "314 of 342 links were stale with large files, none failing or slower than usual "
        "at 19 Nov 20:00 UTC",
    ),
    (Tally(12, untested=12), "Nothing measured with large files in this window"),
]
BOTH = [
    (
        Tally(12, failing=1, slower=2),
        "1 of these links was failing with large files, 2 slower than usual at 19 Nov 20:00 UTC",
    ),
    (Tally(12, usual=12), "All these links were as usual with large files at 19 Nov 20:00 UTC"),
]
SAID = [
    ({}, OF_ALL),
    ({"narrowed": True}, NARROWED),
    ({"end": END}, PAST),
    ({"narrowed": True, "end": END}, BOTH),
    # To the second where it has one.
    (
        {"end": END.replace(second=7)},
        [(Tally(2, failing=1), "1 link was failing with large files at 19 Nov 20:00:07 UTC")],
    ),
]


@pytest.mark.parametrize(
    ("facts", "tally", "words"), [(facts, *row) for facts, rows in SAID for row in rows]
)
def test_the_answer_says_what_is_wrong_and_what_is_not_known(facts, tally, words):
    assert Headline(tally, "large", **facts).words() == words


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
    return small_world


def answer(client: Client, text: str = "") -> tuple[str, dict[str, int]]:
    context = client.get(f"/{text}", follow=True).context
    headline = ", ".join(part.label for part in context["answer"]) + context["tail"]
    return headline, {entry.name: entry.count for entry in context["counts"]}


def test_the_page_counts_its_links_and_leads_to_those_of_a_kind(client, in_trouble):
    headline, counts = answer(client)
    assert headline == "1 link failing with large files, 1 slower than usual"
    assert counts == {"as usual": 1, "faster": 1, "with no usual rate yet": 1}
    assert (
        answer(client, "?source_site=RAL")[0]
        == "1 of these links failing with large files, 1 slower than usual"
    )
    expected = ("All these links as usual with large files", {"as usual": 1})
    assert answer(client, "?source_site=Glasgow") == expected
    assert answer(client, "?source_site=DESY")[0] == (
        "None of these links failing or slower than usual with large files"
    )
    # What is drawn of them does not change how they are.
    assert answer(client, "?only=faster")[0] == headline
    rail = {kind.kind: items for kind, items in client.get("/").context["rail"]}
    assert [item.text for item in rail["failing"]] == ["from RAL_DATADISK to Glasgow_DATADISK"]
    assert [item.figure for item in rail["slower"]] == ["0.30×"]


def test_every_part_of_the_heading_shows_those_that_it_counts(client, in_trouble):
    context = client.get("/").context
    parts = [(part.label, part.url, part.chosen) for part in context["answer"]]
    assert parts == [
        ("1 link failing with large files", "/?only=failing", False),
        ("1 slower than usual", "/?stat=vs_usual&only=slower", False),
    ]
    urls = {entry.name: entry.url for entry in context["counts"]}
    assert urls == {
        "as usual": "/?only=usual",
        "faster": "/?stat=vs_usual&only=faster",
        "with no usual rate yet": "/?only=unknown",
    }
    counts = [1, 1, *(entry.count for entry in context["counts"])]
    for number, url in zip(counts, [*(url for _, url, _ in parts), *urls.values()], strict=True):
        shown = client.get(url)
        assert (shown.status_code, in_focus(shown.context["grid"], url)) == (200, number), url
        again = [part for part in shown.context["answer"] if part.chosen]
        again += [entry for entry in shown.context["counts"] if entry.chosen]
        assert [entry.url for entry in again] == [url.partition("only=")[0].rstrip("?&")], url
    html = client.get("/?stat=vs_usual&only=slower").content.decode()
    heading = re.findall("<h1.*?</h1>", html, re.DOTALL)[0]
    assert re.findall(r'href="([^"]*)"(?:\s+(aria-current="true"))?', heading) == [
        ("/?stat=vs_usual&amp;only=failing", ""),
        ("/?stat=vs_usual", 'aria-current="true"'),
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
    assert preset["Only slower than usual"] == more["slower"]
    compared = client.get("/?window=24h&compare=previous").context
    changes = {entry.state: entry.url for entry in compared["legend"]}
    assert changes["measured"] == "/?window=24h&compare=previous&only=measured"
    both = client.get("/?window=24h&compare=previous&only=measured&only=slower").context
    changes = {entry.state: entry.url for entry in both["legend"]}
    assert changes["measured"] == "/?window=24h&compare=previous&only=slower"


def test_cells_of_several_links_are_answered_for_by_their_links(client, in_trouble):
    headline, counts = answer(client, "?rows=cloud&columns=cloud")
    assert headline == "1 link failing with large files, 1 slower than usual"
    assert counts["as usual"] == 1
    assert counts["faster"] == 1
    assert all(not name.startswith("stale") for name in counts)


def test_windows_of_the_past_and_places_without_links_are_told_as_such(client, in_trouble):
    past = "?from=2026-11-20T00:00:00Z&to=2026-11-20T11:45:00Z"
    assert answer(client, past)[0] == (
        "1 link was failing with large files, 1 slower than usual at 20 Nov 11:45 UTC"
    )
    assert answer(client, "?cloud=FR")[0] == "No link matches these filters"
    assert answer(client, "?size=small")[0] == "No links to show yet"
    long_ago = "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
    assert answer(client, long_ago)[0] == "Nothing measured with large files in this window"


def test_a_young_installation_says_that_nothing_is_known_to_be_usual(client, at_noon, small_world):
    with transfers() as tests:
        for source, destination in permutations(small_world.endpoints, 2):
            tests.add(source, destination, 10.0)
    expected = ("No usual rates with large files known yet", {"with no usual rate yet": 12})
    assert answer(client) == expected
