"""Scheduled tests for which a credential would go where it may not, or does not work."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Q, QuerySet

from sonar.credentials import rules
from sonar.models import Credential, Endpoint, Mesh
from sonar.movers.catalogue import asks_service, shows_one_proxy
from sonar.notation import base_urls
from sonar.obstacles import credential_states
from sonar.scheduler.capacity import either_end

IN_CLEAR = rf"^({'|'.join(base_urls.IN_CLEAR)})://"


def forbidden(meshes: Collection[Mesh]) -> Q:
    """Match the schedules of these meshes that credentials hold back. Three SQL queries.

    By the rules of sonar.credentials.rules, or as they do not work (credential_states).
    By ids, without a join: see READ_AS_QUEUE. It costs 0.1 ms for each endpoint that has one.
    """
    credentials_by_id = Credential.objects.in_bulk()
    if not credentials_by_id:
        return either_end([])
    wrong, refusing, lending, in_clear = [], [], [], []
    failing, ends = credential_states.failing(), list(_concerned())
    for end in ends:
        end.credential = credentials_by_id.get(end.credential_id)
        end.credential_lent = credentials_by_id.get(end.credential_lent_id)
        if rules.problem(end) or credential_states.own_fails(end, failing):
            wrong.append(end.id)
        if rules.refuses_to_lend(end) or credential_states.lent_fails(end, failing):
            refusing.append(end.id)
        if rules.lends(end):
            lending.append(end.id)
        if rules.is_in_clear(end.base_url):
            in_clear.append(end.id)
    matched = either_end(wrong)
    two_ended = [mesh for mesh in meshes if not asks_service(mesh.mover)]
    for mode, (passive, active) in rules.PASSIVE_AND_ACTIVE.items():
        given_away = Q((f"{passive}__in", refusing))
        given_away |= Q((f"{passive}__in", lending), (f"{active}__in", in_clear))
        of_mode = [mesh.id for mesh in two_ended if mesh.mode == mode]
        matched |= Q(mesh__in=of_mode) & given_away
    by_service = [mesh.id for mesh in meshes if asks_service(mesh.mover)]
    unknown = [mesh.id for mesh in meshes if credential_states.service_fails(mesh, failing)]
    matched |= Q(mesh__in=by_service) & either_end(refusing) | Q(mesh__in=unknown)
    with_one_proxy = [mesh.id for mesh in meshes if shows_one_proxy(mesh.mover)]
    return matched | Q(mesh__in=with_one_proxy) & _two_proxies(ends)


def _two_proxies(ends: Iterable[Endpoint]) -> Q:
    """Match links whose ends have not the same X.509 proxy, nor both of them none."""
    having: dict[int, list[int]] = {}
    for end in ends:
        if proxy := rules.proxy_of(end):
            having.setdefault(proxy, []).append(end.id)
    each = [end for group in having.values() for end in group]
    matched = Q(destination__in=each) & ~Q(source__in=each)
    for group in having.values():
        matched |= Q(source__in=group) & ~Q(destination__in=group)
    return matched


def _concerned() -> QuerySet[Endpoint]:
    """Return the endpoints that use a credential, and those that are given one in clear."""
    one_of_its_own = Q(credential__isnull=False) | Q(credential_lent__isnull=False)
    in_use = Endpoint.objects.filter(retired_at=None).order_by()
    return in_use.filter(one_of_its_own | Q(base_url__regex=IN_CLEAR))
