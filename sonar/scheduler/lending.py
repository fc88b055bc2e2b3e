"""Scheduled tests for which a credential would go where it may not."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from sonar import credentials
from sonar.models import Endpoint, Mesh
from sonar.scheduler.room import either_end

IN_CLEAR = rf"^({'|'.join(credentials.IN_CLEAR)})://"


def forbidden(meshes: Collection[Mesh]) -> Q:
    """Match the schedules of these meshes that sonar.credentials holds back. One SQL query.

    By ids, without a join: see READ_AS_QUEUE.
    """
    concerned = Endpoint.objects.order_by().select_related("credential", "credential_lent")
    ends = concerned.filter(
        Q(credential__isnull=False)
        | Q(credential_lent__isnull=False)
        | Q(base_url__regex=IN_CLEAR, retired_at=None)
    )
    wrong, refusing, lending, in_clear = [], [], [], []
    for end in ends:
        if credentials.problem(end):
            wrong.append(end.id)
        if credentials.refuses_to_lend(end):
            refusing.append(end.id)
        if credentials.lends(end):
            lending.append(end.id)
        if credentials.is_in_clear(end.base_url):
            in_clear.append(end.id)
    matched = either_end(wrong)
    for mode, (passive, active) in credentials.PASSIVE_AND_ACTIVE.items():
        given_away = Q((f"{passive}__in", refusing))
        given_away |= Q((f"{passive}__in", lending), (f"{active}__in", in_clear))
        of_mode = [mesh.id for mesh in meshes if mesh.mode == mode]
        matched |= Q(mesh__in=of_mode) & given_away
    return matched
