"""What the rules that can stop a test look at, read once for all tests of a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from sonar.models import Credential, Downtime, Endpoint, Mesh, MeshInterval, SizeClass
from sonar.notation import base_urls
from sonar.obstacles import credential_states, worker_movers
from sonar.obstacles.capacity import Capacity
from sonar.obstacles.credential_states import CredentialUse

COLUMNS = [
    f"site__{name}"
    for name in ("name", "quiet_from", "quiet_until", "paused_since", "paused_until")
]


@dataclass(frozen=True)
class Restrictions:
    """The endpoints (ids) at which no test starts at a moment.

    ``paused`` has the sentence why. ``quiet`` are those whose site has its quiet hours: they hold
    back what is scheduled, not what people order.
    """

    down: Set[int]
    paused: Mapping[int, str]
    quiet: Set[int]

    @classmethod
    def at(cls, now: datetime) -> Restrictions:
        """Read them. One SQL query."""
        down: set[int] = set()
        paused: dict[int, str] = {}
        quiet: set[int] = set()
        for endpoint in _concerned(now):
            site = endpoint.site
            if endpoint.is_down:  # type: ignore[attr-defined]  # annotated
                down.add(endpoint.id)
            if site.is_paused(now):
                paused[endpoint.id] = f"{site.name} has paused its tests {site.pause_end()}."
            if site.is_quiet(now):
                quiet.add(endpoint.id)
        return cls(down, paused, quiet)


def _concerned(now: datetime) -> QuerySet[Endpoint]:
    """Return the endpoints that are down, and those of sites with quiet hours or a pause."""
    down = ExpressionWrapper(
        Q(id__in=Downtime.of_endpoints(now).order_by().values("id")), BooleanField()
    )
    of_sites = Q(site__quiet_from__isnull=False) | Q(site__paused_since__isnull=False)
    rows = Endpoint.objects.annotate(is_down=down).filter(Q(is_down=True) | of_sites).order_by()
    return rows.select_related("site").only(*COLUMNS)


T = TypeVar("T")
IN_CLEAR = rf"^({'|'.join(base_urls.IN_CLEAR)})://"


class RunConditions:
    """The registry and what is under way at one moment; each part is read when it is asked for."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.ordered_bytes: Counter[int] = Counter()
        """What tests that are being ordered together need at each endpoint, by its id."""
        self._read: dict[object, Any] = {}

    def once(self, reads: Callable[[RunConditions], T]) -> T:
        """Return what is read of these conditions by a function, which is called once."""
        if reads not in self._read:
            self._read[reads] = reads(self)
        result: T = self._read[reads]
        return result

    @cached_property
    def capacity(self) -> Capacity:
        return Capacity.left(self.now)

    @cached_property
    def restrictions(self) -> Restrictions:
        return Restrictions.at(self.now)

    @cached_property
    def meshes(self) -> list[Mesh]:
        """All meshes, those of the highest priority first."""
        return list(Mesh.objects.order_by("-priority"))

    @cached_property
    def intervals(self) -> list[MeshInterval]:
        """How often each mesh tests which size class."""
        return list(MeshInterval.objects.select_related("size_class").order_by("size_class"))

    @cached_property
    def size_classes(self) -> list[SizeClass]:
        return list(SizeClass.objects.all())

    @cached_property
    def offered(self) -> set[str] | None:
        """What living workers offer; None while no worker takes tests."""
        return worker_movers.by_living(self.now)

    @cached_property
    def failing(self) -> set[CredentialUse]:
        """The uses of credentials for which tests wait."""
        return credential_states.failing()

    @cached_property
    def credentials(self) -> dict[int, Credential]:
        """All credentials by their ids."""
        return Credential.objects.in_bulk()

    @cached_property
    def lending(self) -> list[Endpoint]:
        """The endpoints that use a credential, with it, and those that are given one in clear.

        One SQL query, by ids and without a join: see READ_AS_QUEUE.
        """
        if not self.credentials:
            return []
        ends = list(_concerned_by_credentials())
        for end in ends:
            end.credential = self.credentials.get(end.credential_id or 0)
            end.credential_lent = self.credentials.get(end.credential_lent_id or 0)
        return ends


def _concerned_by_credentials() -> QuerySet[Endpoint]:
    one_of_its_own = Q(credential__isnull=False) | Q(credential_lent__isnull=False)
    in_use = Endpoint.objects.filter(retired_at=None).order_by()
    return in_use.filter(one_of_its_own | Q(base_url__regex=IN_CLEAR))
