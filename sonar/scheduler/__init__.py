"""Which links are due for a test and may run: claims them, and says why the others wait."""

from sonar.obstacles.capacity import Capacity
from sonar.scheduler.claims import claim_due
from sonar.scheduler.on_demand import Ordered, ProbeRequest, RefusedError, order_all
from sonar.scheduler.sync import follow_registry
from sonar.scheduler.waiting import PlannerBusyError, start_waiting

__all__ = [
    "Capacity",
    "Ordered",
    "PlannerBusyError",
    "ProbeRequest",
    "RefusedError",
    "claim_due",
    "follow_registry",
    "order_all",
    "start_waiting",
]
