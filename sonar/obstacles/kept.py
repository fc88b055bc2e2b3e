"""What planners need of the registry: read once, and again when that has moved."""

from datetime import UTC, datetime

from sonar.models import Downtime
from sonar.obstacles.obstacle import Restrictions, RunConditions, concerned
from sonar.registry.cache import RegistryCache

OF_REGISTRY = ("all_tests", "caps", "meshes", "vantages", "size_classes", "credentials", "lending")
"""The parts of RunConditions that are the same at every moment."""
# No downtime lasts until then: of those who rest for longer than one only.
NEVER_DOWN = datetime.max.replace(tzinfo=UTC)


class Registered(RunConditions):
    """Those parts, all read, and shared by all threads: whoever has one only reads it."""

    def __init__(self) -> None:
        super().__init__(NEVER_DOWN)
        self.concerned = list(concerned(NEVER_DOWN))
        for name in OF_REGISTRY:
            getattr(self, name)


_registered = RegistryCache(Registered)


def conditions_at(now: datetime) -> RunConditions:
    """Return the conditions of a moment. Two SQL queries at most while the registry stays."""
    conditions, registered = RunConditions(now), _registered.read()
    for name in OF_REGISTRY:
        setattr(conditions, name, getattr(registered, name))
    down = Downtime.endpoints_down(now)
    conditions.restrictions = Restrictions.of(registered.concerned, down, now)
    return conditions
