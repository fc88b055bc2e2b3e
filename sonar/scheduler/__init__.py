"""Which links are due for a test and may run: claims them, and says why the others wait."""

from sonar.scheduler.claims import claim_due
from sonar.scheduler.following import follow_registry
from sonar.scheduler.orders import (
    PlannerBusyError,
    RefusedError,
    Wish,
    order_all,
    order_now,
    refusal,
)
from sonar.scheduler.room import Room

__all__ = [
    "PlannerBusyError",
    "RefusedError",
    "Room",
    "Wish",
    "claim_due",
    "follow_registry",
    "order_all",
    "order_now",
    "refusal",
]
