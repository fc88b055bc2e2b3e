"""What changed in the small world: conditions of a short past, as an assessment stores them."""

from datetime import timedelta
from typing import Any

from sonar.models import Assessment, Condition, Endpoint, SizeClass
from tests.conditions import stored_condition
from tests.matrix import world

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TYPES = Condition.Type


def change(
    source: Endpoint | None,
    destination: Endpoint | None,
    factor: float = 0.5,
    ago: timedelta = 3 * DAY,
    size: str = "large",
    **values: Any,
) -> Condition:
    """Store that a rate changed by a factor so long ago, and has stayed so."""
    factors = (round(number, 2) for number in (factor, factor * 0.8, factor * 1.25))
    figures = dict(zip(("factor", "factor_low", "factor_high"), factors, strict=True))
    return stored_condition(
        TYPES.SLOW if factor < 1 else TYPES.FAST,
        source=source,
        destination=destination,
        since=ago,
        **{"sizes": [size]} | figures | values,
    )


def outage(
    source: Endpoint | None,
    destination: Endpoint | None,
    ago: timedelta = DAY,
    ended: timedelta | None = None,
    size: str = "large",
    **values: Any,
) -> Condition:
    """Store a failure that began so long ago, and lasts or ``ended`` so long ago."""
    return stored_condition(
        TYPES.FAILING,
        source=source,
        destination=destination,
        since=ago,
        ended=ended,
        sizes=[size],
        **values,
    )


def assessed(ago: timedelta = timedelta(0)) -> None:
    """Note that each size class was assessed so long ago."""
    Assessment.objects.bulk_create(
        Assessment(size_class=size_class, assessed_at=world.NOW - ago)
        for size_class in SizeClass.objects.all()
    )
