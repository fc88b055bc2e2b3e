"""Files of ours at endpoints that nobody deleted: deleted later, or remembered until they are."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from sonar import movers
from sonar.models import Endpoint, Leftover
from sonar.movers.base import MoverError, Order, Where
from sonar.orders import end_at
from sonar.patience import release_connection

TRIED_AT_ONCE = 20
FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(hours=6)


def delete(endpoint: Endpoint, path: str, mover: str) -> MoverError | None:
    """Delete a file of ours; return why not, if it could not be done."""
    release_connection()
    try:
        end = end_at(Where.DESTINATION, endpoint, path)
        order = Order(end, end, bytes=1, ca_bundle=settings.SONAR_CA_BUNDLE)
        movers.get(mover).files.delete(end, order)
    except MoverError as error:
        return error
    return None


def keep(endpoint: Endpoint, path: str, mover: str, why: MoverError) -> None:
    """Remember a file that could not be deleted, for the sweep."""
    now = timezone.now()
    facts = {"mover": mover, "next_try": now + FIRST_WAIT, "error": str(why)}
    Leftover.objects.update_or_create(
        endpoint=endpoint, path=path, defaults=facts, create_defaults=facts | {"since": now}
    )


def try_again(now: datetime) -> None:
    """Try to delete the files whose time has come, after growing pauses."""
    due = Leftover.objects.select_related("endpoint").filter(next_try__lte=now)
    for leftover in due.order_by("next_try")[:TRIED_AT_ONCE]:
        why = delete(leftover.endpoint, leftover.path, leftover.mover)
        if why is None:
            leftover.delete()
            continue
        wait = min(FIRST_WAIT * 2**leftover.tries, LONGEST_WAIT)
        Leftover.objects.filter(pk=leftover.pk).update(
            tries=leftover.tries + 1, next_try=now + wait, error=str(why)
        )
