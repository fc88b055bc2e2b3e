"""No periodic task fails in a Sonar that has nothing to test yet, or nothing any more."""

from importlib import import_module
from itertools import permutations

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from sonar.celery import app
from sonar.models import CriteriaSet, Endpoint, Mesh, Site, SizeClass, Subscription, Target
from tests.matrix.world import NOW, endpoints, schedule, transfers
from tests.sonar.alarms import subscription

pytestmark = pytest.mark.django_db
TASKS = [entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()]


def nothing() -> None:
    """Leave the registry as migrations make it."""


def size_classes_alone_are_gone() -> None:
    SizeClass.objects.all().delete()


def sites_without_endpoints() -> None:
    Site.objects.bulk_create(Site(name=name) for name in "AB")


def endpoints_without_a_mesh() -> None:
    sites_without_endpoints()
    endpoints((f"{site.name}_DISK", site) for site in Site.objects.all())


def endpoints_without_size_classes() -> None:
    endpoints_without_a_mesh()
    size_classes_alone_are_gone()


def a_mesh_of_no_endpoints() -> None:
    schedule(Mesh.objects.create(name="all"))


def a_mesh_without_intervals() -> None:
    endpoints_without_a_mesh()
    Mesh.objects.create(name="all")


def a_mesh_without_results() -> None:
    endpoints_without_a_mesh()
    schedule(Mesh.objects.create(name="all"), *permutations(Endpoint.objects.all(), 2))


def a_mesh_of_one_endpoint() -> None:
    site = Site.objects.create(name="A")
    endpoints([("A_DISK", site)])
    schedule(Mesh.objects.create(name="all"))


def all_endpoints_are_retired() -> None:
    a_mesh_without_results()
    Endpoint.objects.update(retired_at=timezone.now())


def nothing_any_more() -> None:
    """Keep results of endpoints that are retired, whose mesh is deleted."""
    a_mesh_without_results()
    with transfers() as some:
        for source, destination in permutations(Endpoint.objects.all(), 2):
            some.add(source, destination, 10.0)
    Endpoint.objects.update(retired_at=timezone.now())
    Mesh.objects.all().delete()


def rules_for_nothing() -> None:
    """Register targets, criteria, a list of notifications and a report, and no endpoint."""
    small = SizeClass.objects.get(name="small")
    Target.objects.create(name="floor", floor_mb_s=20)
    figures = {"least_tests": 3, "least_mb_s": 10, "least_success_percent": 90, "least_bytes": 1}
    CriteriaSet.objects.create(name="DDT", size_class=small, period_hours=24, **figures)
    subscription()
    owner = User.objects.create_user("anna", email="anna@example.org")
    mail = {"channel": "email", "address": owner.email, "confirmed_at": timezone.now()}
    Subscription.objects.create(owner=owner, name="weekly", report="week", **mail)


def rules_for_a_mesh_without_results() -> None:
    a_mesh_without_results()
    rules_for_nothing()


STATES = (
    nothing,
    size_classes_alone_are_gone,
    sites_without_endpoints,
    endpoints_without_a_mesh,
    endpoints_without_size_classes,
    a_mesh_of_no_endpoints,
    a_mesh_without_intervals,
    a_mesh_without_results,
    a_mesh_of_one_endpoint,
    all_endpoints_are_retired,
    nothing_any_more,
    rules_for_nothing,
    rules_for_a_mesh_without_results,
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_periodic_task_ends_well(state, monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    state()
    monkeypatch.setattr(app, "send_task", lambda *args, **options: None)
    for name in TASKS:
        module, _, task = name.rpartition(".")
        # Twice: the second one finds what the first one kept.
        for _ in range(2):
            getattr(import_module(module), task)()
