"""A simulated year through the real code: results stored, evaluated, incidents compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.answers.incidents import evaluate
from sonar import scheduler
from sonar.alerting.subjects import Subject
from sonar.models import (
    Downtime,
    Endpoint,
    Incident,
    Mesh,
    MeshInterval,
    Profile,
    Site,
    SizeClass,
)
from sonar.results import sealing
from tests.accuracy import incumbent
from tests.accuracy.year import DOWN, LEARNING, SILENT, START, FaultOfYear, Year, during
from tests.benchmarks import load
from tests.benchmarks.copy_rows import Ids
from tests.benchmarks.data import ROW, Day

SIZE = "medium"
BYTES = 200_000_000
LEVELS = {"both": "endpoint"}


def register(year: Year) -> Ids:
    """Make the endpoints of a year, and the schedule of their tests."""
    sites = {name: Site(name=name.replace(" ", "-")) for name in dict.fromkeys(year.grid.sites())}
    Site.objects.bulk_create(sites.values())
    endpoints = Endpoint.objects.bulk_create(
        Endpoint(
            name=f"E{place:03}",
            site=sites[site],
            base_url=f"https://e{place}.example.org/data",
        )
        for place, site in enumerate(year.grid.sites())
    )
    mesh = Mesh.objects.create(name="all", mover="http-tpc")
    size_class = SizeClass.objects.get(name=SIZE)
    seconds = round(year.round.total_seconds())
    MeshInterval.objects.create(mesh=mesh, size_class=size_class, every_seconds=seconds)
    profile = Profile.objects.create(mover="http-tpc", mode="pull", mesh=mesh)
    scheduler.follow_registry(START)
    return Ids(
        np.array([endpoint.id for endpoint in endpoints]),
        np.array([size_class.id]),
        np.array([profile.id]),
    )


def days_of(year: Year) -> Iterator[Day]:
    """Yield the rows of each day, in the order of time."""
    rows = list[np.ndarray]()
    for number, (started, rates, failed, here) in enumerate(year.rounds(), start=1):
        source, destination = np.nonzero(here)
        part = np.zeros(len(source), dtype=ROW)
        part["source"], part["destination"] = source, destination
        part["started_us"] = (started[here] * 1e6).astype(np.int64)
        part["bytes"], part["seconds"] = BYTES, BYTES / rates[here]
        part["failed"] = failed[here]
        rows.append(part)
        if number % year.tests_a_day == 0:
            day = np.concatenate(rows)
            start = START + timedelta(days=number // year.tests_a_day - 1)
            yield Day(start, day[np.argsort(day["started_us"], kind="stable")])
            rows = []


def fill(year: Year) -> Ids:
    ids = register(year)
    load.load(days_of(year), ids, lambda _: None)
    sealing.seal(year.end + timedelta(days=1))
    for fault in year.faults():
        if fault.condition == DOWN:
            Downtime.objects.create(
                endpoint_id=int(ids.endpoints[fault.name[1]]),  # type: ignore[index]
                starts_at=fault.start,
                ends_at=fault.end,
                reason="new disks",
            )
    return ids


def play(year: Year, step: timedelta) -> None:
    """Evaluate at each step of the year, as the beat does in a running Sonar."""
    moment = START + LEARNING - timedelta(days=5)
    while moment < year.end:
        evaluate.evaluate(moment)
        moment += step


@dataclass
class Score:
    """How incidents compare with the faults of a year."""

    faults: int = 0
    right: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    steps: Counter[str] = field(default_factory=Counter)


def subject_of(fault: FaultOfYear, ids: Ids, sites: dict[str, int], year: Year) -> Subject:
    if fault.name is None:
        return Subject("grid")
    kind, row, column = fault.name
    if kind == "site":
        return Subject("site", site_id=sites[year.grid.sites()[row or 0].replace(" ", "-")])
    ends = [None if end is None else int(ids.endpoints[end]) for end in (row, column)]
    return Subject(LEVELS.get(kind, kind), *ends)


def third_tests(year: Year) -> dict[datetime, datetime]:
    """Return by the start of a fault when the last of its links was tested a third time since.

    Tests in a fault of Sonar itself say nothing of another.
    """
    every = year.faults()
    counts = [np.zeros(fault.links.shape, dtype=int) for fault in every]
    thirds = dict[datetime, datetime]()
    for started, _, _, here in year.rounds():
        of_sonar = np.zeros(started.shape, dtype=bool)
        for fault in every:
            if fault.name is None:
                of_sonar |= during(fault, started)
        for number, fault in enumerate(every):
            since = fault.links & (started >= fault.start.timestamp())
            counts[number] += since & here & (~of_sonar if fault.name else True)
            if fault.start not in thirds and counts[number][fault.links & year.tested()].min() >= 3:
                thirds[fault.start] = datetime.fromtimestamp(float(started[since].max()), UTC)
    return thirds


def score(year: Year, ids: Ids, step: timedelta) -> Score:
    result, thirds = Score(), third_tests(year)
    sites = dict(Site.objects.values_list("name", "id"))
    site_of = dict(Endpoint.objects.values_list("id", "site_id"))
    rows = list(Incident.objects.filter(merged_into=None).order_by("opened_at"))
    explained = set[int]()
    for fault in year.faults():
        subject = subject_of(fault, ids, sites, year)
        # A fault is over for its links when they were tested again.
        margin = 4 * year.round
        own = [
            row
            for row in rows
            if fault.lasts(row.opened_at, margin)
            and (Subject.of(row) == subject or is_near(Subject.of(row), subject, site_of))
        ]
        explained |= {row.pk for row in own}
        label = f"{fault.condition} {subject.level} ×{fault.factor:.1f} {fault.start:%m-%d %H}h"
        label += f" for {(fault.end - fault.start) / year.round:.0f} rounds"
        if fault.condition == DOWN:
            result.extra += [f"{label}: {row} {row.condition}" for row in own]
            continue
        if subject.level == "link":
            continue
        result.faults += 1
        right = [row for row in own if Subject.of(row) == subject]
        in_time = [
            row for row in right if row.opened_at <= thirds.get(fault.start, year.end) + step
        ]
        result.right += bool(in_time) and len(own) == 1
        if not in_time or len(own) != 1:
            what = "; ".join(
                f"{row} {row.condition} opened {row.opened_at:%m-%d %H}" for row in own
            )
            result.missed.append(f"{label}: {what or 'nothing'}")
    result.false = [
        f"{row} {row.condition} {row.links}/{row.of_links} {row.factor}"
        for row in rows
        if row.pk not in explained
    ]
    return result


def is_near(subject: Subject, other: Subject, site_of: dict[int, int]) -> bool:
    """Say whether both are of one end: whoever was called for one would look at the other."""
    if "grid" in (subject.level, other.level):
        return False
    return (
        subject.covers(other, site_of)
        or other.covers(subject, site_of)
        or bool(
            {subject.source_id, subject.destination_id}
            & {other.source_id, other.destination_id} - {None}
        )
    )


def incumbents(year: Year) -> tuple[int, int, int]:
    """Return how many faults of endpoints its rule named in time, of how many, and false alarms."""
    sites = year.grid.sites()
    kept = list[np.ndarray]()
    alarms = list[tuple[datetime, set[str]]]()
    most = round(21.5 * year.tests_a_day)
    for number, (_, rates, failed, here) in enumerate(year.rounds(), start=1):
        kept = [*kept[-most + 1 :], np.where(here & ~failed, rates, np.nan)]
        moment = START + number * year.round
        if number % year.tests_a_day == 0 and moment > START + LEARNING:
            alarms.append(
                (moment, incumbent.alarmed_sites(np.stack(kept), year.tests_a_day, sites))
            )
    thirds = third_tests(year)
    named, of, blamed = 0, 0, set[tuple[datetime, str]]()
    for fault in year.faults():
        if fault.name is None or fault.name[0] == "link" or fault.condition in (DOWN, SILENT):
            continue
        site = sites[fault.name[1] if fault.name[1] is not None else fault.name[2] or 0]
        of += 1
        hits = [moment for moment, said in alarms if site in said and fault.lasts(moment)]
        named += any(hit <= thirds.get(fault.start, year.end) + timedelta(days=1) for hit in hits)
        blamed |= {(moment, site) for moment in hits}
    every = {(moment, site) for moment, said in alarms for site in said}
    return named, of, len(every - blamed)
