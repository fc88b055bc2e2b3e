"""What evaluations find, for tests of incidents: causes at endpoints of the small world."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sonar.alerting.evaluation import Evaluation, FoundCause, FoundLink
from sonar.alerting.incidents import record
from sonar.alerting.subjects import Subject
from sonar.models import Endpoint, Incident, IncidentEvent, SizeClass
from tests.matrix.world import HOUR, NOW

MB = 10**6
SLOW, SILENT, FAILING = Incident.Condition.values


def bad_link(
    source: Endpoint,
    destination: Endpoint,
    condition: str = SLOW,
    *,
    rate: float = 20.0,
    size: str = "large",
) -> FoundLink:
    """Return a link of which 100 MB/s are expected, an hour before NOW on; ``rate`` in MB/s."""
    whose = source.pk, destination.pk, SizeClass.objects.get(name=size).pk
    rates = {"expected": 100.0 * MB, "rate": rate * MB} if condition == SLOW else {}
    return FoundLink(whose, condition, NOW - HOUR, **rates)


def cause(
    level: str,
    members: Iterable[FoundLink] = (),
    condition: str = SLOW,
    *,
    of_links: int = 20,
    links: int | None = None,
    **subject: int,
) -> FoundCause:
    """Return the cause of a level with the ids that its subject has, of its links or so many."""
    found = tuple(members)
    return FoundCause(
        Subject(level, **subject),
        condition,
        NOW - HOUR,
        len(found) if links is None else links,
        of_links,
        ("large",),
        *((0.2, 0.15, 0.26) if condition == SLOW else ()),
        members=found,
    )


def of_link(source: Endpoint, destination: Endpoint, condition: str = SLOW) -> FoundCause:
    """Return what is wrong with one link alone."""
    members = [bad_link(source, destination, condition)]
    ends = {"source_id": source.pk, "destination_id": destination.pk}
    return cause("link", members, condition, of_links=1, **ends)


def into(destination: Endpoint, sources: Iterable[Endpoint], condition: str = SLOW) -> FoundCause:
    """Return what is wrong with an endpoint as a destination."""
    members = [bad_link(source, destination, condition) for source in sources]
    return cause("destination", members, condition, destination_id=destination.pk)


def evaluate(
    *causes: FoundCause,
    at: datetime = NOW,
    after: timedelta = timedelta(),
    standing: Mapping[int, FoundCause] | None = None,
) -> list[IncidentEvent]:
    """Record what an evaluation found at a time, and return what happened by that."""
    site_of = dict(Endpoint.objects.values_list("id", "site_id"))
    return record(Evaluation(at + after, causes, standing or {}, site_of))


def opened(*causes: FoundCause, **when: datetime) -> Incident:
    """Return the incident of the first cause that is recorded."""
    return evaluate(*causes, **when)[0].incident
