"""The past of a sandbox, stored as results and judged: once, and as a whole."""

import statistics
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np
from django.core.management import call_command
from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from sonar.models import Annotation, Endpoint, Profile, Site, SizeClass, Transfer
from sonar.notation.units import format_count
from sonar.records import storing
from sonar.records.columns import EPOCH_2000, MICROSECOND, NOTHING, ROW, Batch, Rows
from sonar.results import store as door
from sonar.sandbox import past
from sonar.sandbox.stories import STORIES
from sonar.sandbox.topology import load_links, load_sites

HOUR = timedelta(hours=1)
# A sandbox whose results are older than this has a past of its own.
NEW = timedelta(days=1)
# So many tests of each size class tell how fast this machine is; without them it goes on as well.
FIRST_TESTS = 30
MOST_OVERHEAD = 1 / 4
LONGEST_WAIT_SECONDS = 60


def make(wait_seconds: float = LONGEST_WAIT_SECONDS) -> None:
    """Store a past as fast as this machine is, and judge it; pages show both at the same moment.

    Tests say how fast it is; wait for them so long at most.
    """
    until = time.monotonic() + wait_seconds
    while len(overheads := measured_overheads()) < len(past.CLASSES) and time.monotonic() < until:
        time.sleep(1)
    with transaction.atomic():
        count = store(timezone.now(), overheads)
        sys.stdout.write(f"{format_count(count)} demo results were generated.\n")
        call_command("assess")


def measured_overheads() -> dict[str, float]:
    """Return how many seconds tests took beside those of their links, by size class.

    The median of the first tests, up to a quarter of what links take: on a machine that is busier
    than that, the first tests are slow, and pages say so. Without a class of which there are too
    few.
    """
    names = {site.endpoint: site.name for site in load_sites()}
    links = {link.ends: link for link in load_links()}
    overheads = {}
    for tests in past.CLASSES:
        rows = Transfer.objects.filter(state=Transfer.State.DONE, size_class__name=tests.size_class)
        ends = rows.values_list("source__name", "destination__name", "seconds")
        own, beside = list[float](), list[float]()
        for source, destination, seconds in ends:
            own.append(tests.seconds_of(links[names[source], names[destination]]))
            beside.append(seconds - own[-1])
        if len(beside) >= FIRST_TESTS:
            most = MOST_OVERHEAD * statistics.median(own)
            overheads[tests.size_class] = max(
                past.OVERHEAD_SECONDS, min(statistics.median(beside), most)
            )
    return overheads


def is_missing(now: datetime) -> bool:
    has_old = Transfer.objects.filter(started_at__lt=now - NEW).exists()
    return not has_old and door.until() is None


@transaction.atomic
def store(now: datetime, overheads: Mapping[str, float] = past.NO_OVERHEADS) -> int:
    """Store results before the oldest, or before ``now``, and notes; return how many results.

    All of it or, where it is broken off, nothing. ``overheads`` are those of `past.results`.
    """
    door.lock_imports()
    end = Transfer.objects.aggregate(oldest=Min("started_at"))["oldest"] or now
    profile = Profile.objects.create(**door.profile_fields(end))
    accepted = storing.store_batch(batch(end, overheads), [profile.id]).accepted
    Annotation.objects.bulk_create(notes(end))
    return accepted


def batch(end: datetime, overheads: Mapping[str, float] = past.NO_OVERHEADS) -> Batch:
    names = {site.name: site.endpoint for site in load_sites()}
    endpoints = dict(Endpoint.objects.values_list("name", "id"))
    classes = dict(SizeClass.objects.values_list("name", "id"))
    rows, errors = list[Rows](), list[tuple[str, str]]()
    for drawn in past.results(overheads=overheads):
        source, destination = (endpoints.get(names[site]) for site in drawn.link.ends)
        size_class = classes.get(drawn.tests.size_class)
        if source and destination and size_class:
            of_link = np.zeros(len(drawn), ROW)
            of_link["high"], of_link["low"] = drawn.ids.T
            of_link["source"], of_link["destination"] = source, destination
            of_link["size_class"] = size_class
            before = drawn.hours_ago * (HOUR // MICROSECOND)
            of_link["started"] = (end - EPOCH_2000) // MICROSECOND - before
            of_link["seconds"], of_link["bytes"] = drawn.seconds, drawn.tests.bytes
            of_link["failed"], of_link["account"] = drawn.failed, NOTHING
            rows.append(of_link)
            errors += drawn.errors
    return Batch(np.concatenate(rows), errors, [])


def notes(end: datetime) -> list[Annotation]:
    """Return a note for each story that has one, of which everyone may know."""
    sites = Site.objects.in_bulk([story.site for story in STORIES], field_name="name")
    rows = []
    for story in STORIES:
        if story.note and story.site in sites:
            starts_at, ends_at = (end - hours * HOUR for hours in story.noted)
            place = {"site": sites[story.site], "starts_at": starts_at, "ends_at": ends_at}
            rows.append(Annotation(text=f"{story.note} (Demo data.)", public=True, **place))
    return rows
