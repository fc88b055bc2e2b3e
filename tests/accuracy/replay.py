"""A simulated year through the real code: results stored, evaluated, incidents compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from django.contrib.auth.models import User
from django.db.models import Q

from matrix.answers.incidents.messages import IncidentWords
from matrix.assessment import assessing
from sonar import scheduler
from sonar.alerting import incidents, sending
from sonar.alerting.subjects import Subject
from sonar.models import (
    Downtime,
    Endpoint,
    Incident,
    Mesh,
    MeshInterval,
    Notification,
    Profile,
    Site,
    SizeClass,
    Subscription,
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
    SizeClass.objects.all().delete()
    size_class = SizeClass.objects.create(
        name=SIZE, from_bytes=0, test_bytes=BYTES, timeout_seconds=600
    )
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
    subscribe()
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
    """Assess at each step of the year, and send what follows, as a running Sonar does."""
    moment = START + LEARNING - timedelta(days=5)
    while moment < year.end:
        assessing.assess(moment)
        incidents.follow(moment)
        while sending.send_next(IncidentWords(), lambda: moment):  # noqa: B023 - called at once
            pass
        moment += step


def subscribe() -> None:
    """Let one person be told of all incidents."""
    person = User.objects.create_user("ann", email="ann@example.org")
    Subscription.objects.create(
        owner=person, name="all", channel="email", address=person.email, confirmed_at=START
    )


@dataclass
class Score:
    """How incidents compare with the faults of a year.

    ``right`` faults of endpoints, sites and Sonar itself, of ``faults``, are one incident that
    names the right cause in time; of links it is only counted how many are ``named_links``.
    """

    faults: int = 0
    right: int = 0
    links: int = 0
    named_links: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    in_downtimes: list[str] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)

    def words(self) -> str:
        lines = [
            f"{self.right} of {self.faults} faults are one incident with the right cause in time",
            f"{self.named_links} of {self.links} faults of single links are named",
            f"{len(self.false)} false incidents, {len(self.in_downtimes)} in downtimes",
            f"{sum(self.messages)} messages to one person, {max(self.messages)} at most of a fault",
            *(f"missed: {line}" for line in self.missed),
            *(f"false: {line}" for line in (*self.false, *self.in_downtimes)),
        ]
        return "\n".join(lines)


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
    """Compare the incidents that are stored with the faults of a year."""
    result, thirds = Score(), third_tests(year)
    sites = dict(Site.objects.values_list("name", "id"))
    site_of = dict(Endpoint.objects.values_list("id", "site_id"))
    rows = list(Incident.objects.filter(merged_into=None).order_by("opened_at"))
    explained = set[int]()
    for fault in year.faults():
        # One that is over lasts for links until they were tested again.
        near = [row for row in rows if fault.lasts(row.opened_at, 4 * year.round)]
        subject = subject_of(fault, ids, sites, year)
        own = [row for row in near if is_near(Subject.of(row), subject, site_of)]
        explained |= {row.pk for row in own}
        result.messages.append(messages_of(own))
        right = [
            row
            for row in own
            if Subject.of(row) == subject
            and row.opened_at <= thirds.get(fault.start, year.end) + step
        ]
        label = f"{words_of(fault, year)}: {'; '.join(map(described, own)) or 'nothing'}"
        if fault.condition == DOWN:
            result.in_downtimes += [label] if own else []
        elif subject.scope == "link":
            result.links += 1
            result.named_links += any(Subject.of(row) == subject for row in own)
        elif fault.start < year.end - 6 * year.round:
            result.faults += 1
            result.right += len(right) == len(own) == 1
            result.missed += [label] if not len(right) == len(own) == 1 else []
    result.false = [described(row) for row in rows if row.pk not in explained]
    return result


def messages_of(rows: Sequence[Incident]) -> int:
    """Count the messages that told of some incidents, and of those that were merged into them."""
    ids = [row.pk for row in rows]
    of_them = Q(incident__in=ids) | Q(incident__merged_into__in=ids)
    told = Notification.objects.filter(of_them, state=Notification.State.SENT)
    return told.values("message").distinct().count()


def words_of(fault: FaultOfYear, year: Year) -> str:
    what = "Sonar itself" if fault.name is None else " ".join(map(str, fault.name))
    rounds = (fault.end - fault.start) / year.round
    return (
        f"{fault.start:%m-%d %H}h {what} {fault.condition} ×{fault.factor:.1f}, {rounds:.0f} rounds"
    )


def described(row: Incident) -> str:
    return f"{row} {row.type} opened {row.opened_at:%m-%d %H}h {row.links}/{row.of_links}"


def is_near(subject: Subject, other: Subject, site_of: dict[int, int]) -> bool:
    """Say whether who is called for one would look at the other: both are of one end or site."""
    if "grid" in (subject.scope, other.scope):
        return subject.scope == other.scope
    ends, others = ({each.source_id, each.destination_id} - {None} for each in (subject, other))
    parts = subject.covers(other, site_of) or other.covers(subject, site_of)
    return subject == other or parts or bool(ends & others)


def beside(year: Year) -> list[str]:
    """Return what the alarm of the grid's own dashboards says of the same year."""
    named, of, false = incumbents(year)
    return [
        f"the incumbent's rule alarms the site of {named} of {of} in time, "
        f"and sites without a fault on {false} days"
    ]


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
