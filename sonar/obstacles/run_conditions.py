"""What the rules that can stop a test look at, read once for all tests of a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from sonar.models import Credential, Endpoint, Mesh, MeshInterval, SizeClass
from sonar.notation import base_urls
from sonar.obstacles import credential_states, worker_movers
from sonar.obstacles.capacity import Capacity
from sonar.obstacles.credential_states import CredentialUse
from sonar.obstacles.restrictions import Restrictions

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
