"""What happened before the first start: which links, when, and how it goes on in the nodes."""

import numpy as np
import pytest

from sonar.sandbox import stories
from sonar.sandbox.stories import PAST_HOURS, STORIES, Story
from sonar.sandbox.topology import ALWAYS_FAILS, Link, load_links, load_sites

LINKS = {(link.source, link.destination): link for link in load_links()}
FAILING = LINKS[ALWAYS_FAILS]


def course(link: Link, *hours_ago: float) -> tuple[list[float], list[float]]:
    factors, failing = stories.course(link, stories.of_link(link), np.array(hours_ago))
    return factors.tolist(), failing.tolist()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_story_is_of_sites_there_are_and_of_the_past(story: Story):
    names = {site.name for site in load_sites()}
    assert {story.source, story.destination, story.site} - {""} <= names
    assert 0 < story.ended < story.began <= PAST_HOURS
    assert story.factor != 1 or story.failure_rate is not None
    assert bool(story.note) <= bool(story.site), "a note is of a site"


def test_a_link_that_fails_today_worked_until_its_story_ended():
    assert course(FAILING, 800, 64, 63.9, 1) == ([1, 1, 1, 1], [0.01, 0.01, 1, 1])


def test_what_is_slow_today_was_faster_and_only_in_its_direction():
    forth, back = LINKS["RAL-LCG2", "TAIWAN-LCG2"], LINKS["TAIWAN-LCG2", "RAL-LCG2"]
    assert course(forth, 94, 92)[0] == [3, 1]
    assert course(back, 94, 92)[0] == [1, 1]


def test_a_site_is_slow_both_ways_for_its_time_alone():
    for link in (LINKS["FZK-LCG2", "PIC"], LINKS["PIC", "FZK-LCG2"]):
        assert course(link, 301, 300, 299, 205, 204, 203)[0] == [1, 1, 0.5, 0.5, 0.5, 1]


def test_stories_of_both_ends_come_together():
    assert course(LINKS["TRIUMF-LCG2", "TAIWAN-LCG2"], 130, 100, 1)[0] == pytest.approx(
        [3 * 0.55, 3, 1]
    )


def test_most_links_have_no_story():
    assert sum(not stories.of_link(link) for link in LINKS.values()) > len(LINKS) / 2
