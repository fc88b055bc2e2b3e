"""What assessments find, for tests of incidents: confirmed conditions of the small world."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from sonar.alerting.incidents import follow
from sonar.models import Condition, ConditionLink, Endpoint, Incident, IncidentEvent
from tests.conditions import Pair, stored_condition
from tests.matrix.world import HOUR, NOW

SLOW, SILENT, FAILING = Incident.Type.values
# Of what is slow: a fifth, with its interval.
SLOWNESS = {"factor": 0.2, "factor_low": 0.15, "factor_high": 0.26}


@dataclass(frozen=True)
class Found:
    """A condition as `stored_condition` takes it; ``subject`` has its ends, or its site."""

    type: str
    subject: dict[str, Any] = field(default_factory=dict)
    links: Sequence[Pair] | None = None
    of_links: int | None = None
    began: datetime = NOW - HOUR

    def store(self) -> Condition:
        """Open the condition, or change that of this subject and type which is open."""
        own = {"source": None, "destination": None, "site": None} | self.subject
        same = Condition.objects.filter(**own, type=self.type, ended_at=None).first()
        factors = SLOWNESS if self.type == SLOW else {}
        counts = {"of_links": self.of_links} if self.of_links else {}
        if same is None:
            return stored_condition(
                self.type, since=NOW - self.began, links=self.links, baseline=100e6,
                **self.subject, **factors, **counts,
            )  # fmt: skip
        if self.links is not None:
            part = same.parts.get()
            part.members.all().delete()
            ConditionLink.objects.bulk_create(
                ConditionLink(part=part, source=one, destination=other, baseline=100e6)
                for one, other in self.links
            )
            same.links = len(self.links)
            same.save()
        return same


def of_link(source: Endpoint, destination: Endpoint, type_: str = SLOW, **more: Any) -> Found:
    """Return what is wrong with one link alone, an hour before NOW on."""
    pair = (source, destination)
    return Found(type_, {"source": source, "destination": destination}, [pair], **more)


def into(
    destination: Endpoint, sources: Sequence[Endpoint], type_: str = SLOW, **more: Any
) -> Found:
    """Return what is wrong with an endpoint as a destination, from some of 20 sources."""
    links = [(source, destination) for source in sources]
    return Found(type_, {"destination": destination}, links, of_links=20, **more)


def evaluate(
    *found: Found, at: datetime = NOW, after: timedelta = timedelta()
) -> list[IncidentEvent]:
    """Let these conditions alone be open at a time, and return what happened to incidents then."""
    moment = at + after
    kept = [each.store().pk for each in found]
    others = Condition.objects.filter(ended_at=None, since__lte=moment).exclude(pk__in=kept)
    others.filter(confirmed_at__isnull=False).update(ended_at=moment)
    Condition.objects.filter(ended_at__lt=F("since")).delete()
    return follow(moment)


def opened(*found: Found, **when: datetime) -> Incident:
    """Return the incident of the first condition that is found."""
    return evaluate(*found, **when)[0].incident
