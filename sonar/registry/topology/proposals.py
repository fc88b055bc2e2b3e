"""What a source said last, kept for operators, who look at it and apply what they saw."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from sonar.models import Proposal, Version
from sonar.registry.topology import catalogue
from sonar.registry.topology.applying import apply
from sonar.registry.topology.changes import Changes
from sonar.registry.topology.comparing import compare
from sonar.registry.topology.describing import described
from sonar.registry.topology.model import Topology
from sonar.registry.topology.reading import TopologyError, shown

log = logging.getLogger(__name__)


class OutdatedError(Exception):
    """The registry, or what the source says, is another one than somebody looked at."""


@dataclass(frozen=True)
class Compared:
    """A proposal compared with the registry of now; ``digest`` is that of all that it says."""

    proposal: Proposal
    changes: Changes
    digest: str


def keep(topology: Topology, places: Iterable[str], now: datetime) -> None:
    """Keep it in the place of what this source said before."""
    values = {
        "places": "\n".join(map(shown, places)),
        "read_at": now,
        "topology": topology.model_dump(mode="json"),
    }
    Proposal.objects.update_or_create(source=topology.source, defaults=values)


def read_all(now: datetime) -> None:
    """Read the sources of SONAR_TOPOLOGY; where one cannot be read, its last proposal stays."""
    for source, places in settings.SONAR_TOPOLOGY.items():
        try:
            topology = catalogue.read(source, places, settings.SONAR_CA_BUNDLE)
        except TopologyError as error:
            log.warning("%s proposes nothing new: %s", source, "; ".join(error.problems))
        else:
            keep(topology, places, now)


def compared(proposal: Proposal) -> Compared:
    changes = compare(Topology.model_validate(proposal.topology))
    text = f"{proposal.read_at.isoformat()}\n{described(changes)}"
    return Compared(proposal, changes, hashlib.sha256(text.encode()).hexdigest())


@transaction.atomic
def accept(source: str, digest: str, *, joins: bool, retires: bool) -> Changes:
    """Apply what somebody looked at; raise OutdatedError if it would be something else by now."""
    Version.lock_registry()
    proposal = Proposal.objects.filter(source=source).first()
    if proposal is None or compared(proposal).digest != digest:
        raise OutdatedError
    topology = Topology.model_validate(proposal.topology)
    return apply(topology, joins=joins, retires=retires)
