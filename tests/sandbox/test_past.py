"""The made-up past of a sandbox: drawn, stored whole and once, and never taken for measured."""

from datetime import timedelta
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from django.db.models import Max, Min, Q

from sonar.models import (
    Annotation,
    Assessment,
    Condition,
    ConditionLink,
    Endpoint,
    Profile,
    SizeClass,
    Transfer,
)
from sonar.results import store
from sonar.sandbox import first_start, past, past_store, topology
from sonar.sandbox.past import CLASSES, LinkPast, results
from sonar.sandbox.stories import PAST_HOURS, STORIES, Story
from sonar.sandbox.topology import ALWAYS_FAILS, MB, SCALE, Link
from tests.sonar.world import NOW

LINKS = {link.ends: link for link in topology.load_links()}
DRAWN = {(*drawn.link.ends, drawn.tests.size_class): drawn for drawn in past.results()}
# What is stored here: links of three sites with stories.
FEW = [
    drawn
    for (source, destination, _), drawn in DRAWN.items()
    if {source, destination} <= {*ALWAYS_FAILS, "UKI-LT2-QMUL"}
]
# Without a story and without troubles.
PLAIN = ("RAL-LCG2", "PIC")


def rates(drawn: LinkPast) -> past.Floats:
    """Return MB/s of those that came through, as multiples of what the nodes' model gives."""
    of_model = drawn.link.rate_mb_s(drawn.tests.size_mb)
    seconds = drawn.seconds - past.OVERHEAD_SECONDS
    return np.where(drawn.failed, np.nan, drawn.tests.bytes / MB / seconds / of_model)


def medians(link: tuple[str, str], *bounds: float) -> list[float]:
    """Return the medians between these hours ago, of large files."""
    drawn = DRAWN[(*link, "large")]
    return [
        float(np.nanmedian(rates(drawn)[(drawn.hours_ago < start) & (drawn.hours_ago >= end)]))
        for start, end in pairwise(bounds)
    ]


def test_what_fails_was_closed_early_or_refused_half_the_time_each():
    draws = np.random.default_rng(1)
    sides = [past.error(draws, 5)[1] for _ in range(1000)]
    assert set(sides) == {"transfer", "source"}
    assert 400 < sides.count("transfer") < 600


def test_a_seed_gives_the_same_results_and_another_one_others():
    again, others = next(past.results()), next(past.results(seed=1))
    first = next(iter(DRAWN.values()))
    for name in ("ids", "hours_ago", "seconds", "failed"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert first.errors == again.errors
    assert not np.isin(first.ids, others.ids).any()


def test_each_link_and_class_is_tested_for_five_weeks_at_its_cadence():
    assert len(DRAWN) == 342 * len(CLASSES)
    for drawn in DRAWN.values():
        every = drawn.tests.every_hours
        assert drawn.hours_ago.max() > PAST_HOURS - every
        assert past.LAST_HOURS < drawn.hours_ago.min() < past.LAST_HOURS + 1.1 * every
        assert len(drawn) == pytest.approx(PAST_HOURS / every, rel=0.03)
        assert len(drawn.errors) == drawn.failed.sum()


def test_rates_are_those_that_the_nodes_have():
    for tests in CLASSES:
        drawn = DRAWN[(*PLAIN, tests.size_class)]
        assert np.nanmedian(rates(drawn)) == pytest.approx(1, rel=0.12)
        assert np.nanstd(rates(drawn)) == pytest.approx(past.SPREAD, rel=0.25)
    lately = [
        np.nanmedian(rates(drawn)[drawn.hours_ago < 36])
        for drawn in DRAWN.values()
        if drawn.link.failure_rate < 1
    ]
    assert np.median(lately) == pytest.approx(1, rel=0.02)
    assert 0.5 < min(lately) < max(lately) < 2


def test_sizes_are_those_of_the_registry():
    registry = topology.registry({site.endpoint: "" for site in topology.load_sites()})
    sizes = {entry["name"]: entry["test_bytes"] for entry in registry["size_classes"]}
    assert {tests.size_class: tests.bytes for tests in CLASSES} == sizes
    assert {tests.bytes for tests in CLASSES} == {round(mb * MB / SCALE) for mb in (20, 200, 2000)}


def test_every_story_is_seen_in_the_results():
    assert medians(("PIC", "TAIWAN-LCG2"), PAST_HOURS, 93, 0) == pytest.approx([3, 1], rel=0.15)
    slow = medians(("UKI-SOUTHGRID-RALPP", "NDGF-T1"), PAST_HOURS, 38, 0)
    assert slow == pytest.approx([2.8, 1], rel=0.15)
    half = medians(("FZK-LCG2", "PIC"), PAST_HOURS, 300, 204, 0)
    assert half == pytest.approx([1, 0.5, 1], rel=0.15)
    jump = medians(("RAL-LCG2", "TRIUMF-LCG2"), PAST_HOURS, 120, 0)
    assert jump == pytest.approx([0.55, 1], rel=0.15)
    failing = DRAWN[(*ALWAYS_FAILS, "large")]
    assert failing.failed[failing.hours_ago < 64].all()
    assert failing.failed[failing.hours_ago >= 64].mean() < 0.05
    overheated = [drawn for ends, drawn in DRAWN.items() if "UKI-LT2-QMUL" in ends]
    for drawn in overheated:
        night = (drawn.hours_ago < 56) & (drawn.hours_ago >= 40)
        assert night.any()
        assert drawn.failed[night].all()
        assert drawn.failed[~night].mean() < 0.5


def course(link: Link, *hours_ago: float) -> tuple[list[float], list[float]]:
    factors, failing = past.course(link, np.array(hours_ago))
    return factors.tolist(), failing.tolist()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_story_is_of_sites_there_are_and_of_the_past(story: Story):
    names = {site.name for site in topology.load_sites()}
    assert {story.source, story.destination, story.site} - {""} <= names
    assert 0 < story.ended < story.began <= PAST_HOURS
    assert story.factor != 1 or story.failure_rate is not None
    assert bool(story.note) <= bool(story.site), "a note is of a site"


def test_a_link_that_fails_today_worked_until_its_story_ended():
    assert course(LINKS[ALWAYS_FAILS], 800, 64, 63.9, 1) == ([1, 1, 1, 1], [0.01, 0.01, 1, 1])


def test_what_is_slow_today_was_faster_and_only_in_its_direction():
    forth, back = LINKS["RAL-LCG2", "TAIWAN-LCG2"], LINKS["TAIWAN-LCG2", "RAL-LCG2"]
    assert course(forth, 94, 92)[0] == [3, 1]
    assert course(back, 94, 92)[0] == [1, 1]


def test_a_site_is_slow_both_ways_for_its_time_alone():
    for link in (LINKS["FZK-LCG2", "PIC"], LINKS["PIC", "FZK-LCG2"]):
        assert course(link, 301, 300, 299, 205, 204, 203)[0] == [1, 1, 0.5, 0.5, 0.5, 1]


def test_stories_of_both_ends_come_together_and_most_links_have_none():
    both = course(LINKS["TRIUMF-LCG2", "TAIWAN-LCG2"], 130, 100, 1)[0]
    assert both == pytest.approx([3 * 0.55, 3, 1])
    assert sum(not past.of_link(link) for link in LINKS.values()) > len(LINKS) / 2


@pytest.fixture
def sandbox(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry of a new sandbox, and a past of few links."""
    monkeypatch.setattr(past, "results", lambda **_: iter(FEW))
    registry = topology.registry(
        {site.endpoint: f"http://127.0.0.1/{site.name}" for site in topology.load_sites()}
    )
    first_start.file.load(first_start.yaml.safe_dump(registry, sort_keys=False))


@pytest.mark.usefixtures("sandbox")
def test_a_past_is_stored_once_says_what_it_is_and_has_its_notes():
    assert past_store.is_missing(NOW)
    count = past_store.store(NOW)
    assert count == sum(map(len, FEW)) == Transfer.objects.count()
    assert not past_store.is_missing(NOW)
    assert store.until() == NOW
    profile = Profile.objects.get()
    assert (profile.mover, profile.origin, profile.mesh) == ("fake", "test", None)
    assert store.is_made_up(profile)
    assert Transfer.objects.exclude(worker="").count() == 0
    started = Transfer.objects.aggregate(first=Min("started_at"), last=Max("started_at"))
    assert started["first"] > NOW - timedelta(hours=PAST_HOURS)
    assert started["last"] < NOW - timedelta(hours=past.LAST_HOURS)
    sizes = Transfer.objects.values_list("size_class__name", "bytes").distinct()
    assert dict(sizes) == {tests.size_class: tests.bytes for tests in CLASSES}
    failed = Transfer.objects.filter(state="failed")
    assert failed.count() == sum(drawn.failed.sum() for drawn in FEW)
    assert not failed.filter(Q(error="") | Q(error_where="")).exists()
    notes = Annotation.objects.all()
    assert len(notes) == sum(bool(story.note) for story in STORIES)
    assert all(note.public and note.text.endswith("(Demo data.)") for note in notes)


@pytest.mark.usefixtures("sandbox")
def test_a_past_ends_where_results_begin_and_is_none_of_a_sandbox_that_has_its_own():
    one, two = Endpoint.objects.all()[:2]
    result = {"source": one, "destination": two, "size_class_id": 1, "state": "done"}
    profile = Profile.objects.create(mover="http-tpc")
    result |= {"seconds": 1, "bytes": 10**7, "profile": profile}
    Transfer.objects.create(started_at=NOW - timedelta(seconds=30), **result)
    assert past_store.is_missing(NOW)
    assert not past_store.is_missing(NOW + timedelta(days=2))
    Endpoint.objects.get(site__name=ALWAYS_FAILS[1]).delete()
    others = [len(drawn) for drawn in FEW if ALWAYS_FAILS[1] not in drawn.link.ends]
    assert past_store.store(NOW) == sum(others)
    assert store.until() == NOW - timedelta(seconds=30)


@pytest.mark.usefixtures("sandbox")
def test_a_past_is_judged_as_it_is_stored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    past_store.make(wait_seconds=0)
    failing = ConditionLink.objects.filter(part__condition__type=Condition.Type.FAILING)
    names = failing.values_list("source__site__name", "destination__site__name")
    assert ALWAYS_FAILS in names
    assert Assessment.objects.filter(assessed_at=NOW).count() == SizeClass.objects.count()


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("overhead", [0.03, 2.0])
def test_a_past_is_as_fast_as_the_first_tests_unless_the_machine_is_busy(overhead: float):
    ends = {end.site.name: end for end in Endpoint.objects.select_related("site")}
    profile = Profile.objects.create(mover="http-tpc")
    for tests in CLASSES[:2]:
        size_class = SizeClass.objects.get(name=tests.size_class)
        count = past_store.FIRST_TESTS - (tests == CLASSES[1])
        for link in [*LINKS.values()][:count]:
            source, destination = (ends[name] for name in link.ends)
            seconds = tests.seconds_of(link) + overhead
            Transfer.objects.create(
                source=source,
                destination=destination,
                size_class=size_class,
                profile=profile,
                state="done",
                started_at=NOW,
                seconds=seconds,
                bytes=tests.bytes,
            )
    own = [CLASSES[0].seconds_of(link) for link in [*LINKS.values()][: past_store.FIRST_TESTS]]
    expected = min(overhead, median(own) / 4)
    assert past_store.measured_overheads() == {"small": pytest.approx(expected)}
    drawn, usual = next(results(overheads={"small": 0.05})), next(iter(DRAWN.values()))
    assert drawn.seconds == pytest.approx(usual.seconds + 0.05 - past.OVERHEAD_SECONDS, abs=1e-3)


@pytest.mark.usefixtures("sandbox")
def test_a_past_that_is_broken_off_leaves_nothing(monkeypatch: pytest.MonkeyPatch):
    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(past_store, "notes", broken_off)
    with pytest.raises(KeyboardInterrupt):
        past_store.store(NOW)
    assert not Transfer.objects.exists()
    assert past_store.is_missing(NOW)
