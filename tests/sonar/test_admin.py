"""The admin: the registry is edited, results are only looked at, errors are sentences."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from sonar.models import Endpoint, Mesh, SizeClass
from tests.sonar.world import three_endpoints

pytestmark = pytest.mark.django_db

REGISTRY = ["site", "endpoint", "downtime", "sizeclass", "mesh"]
RESULTS = ["probe", "transfer", "leftover"]


@pytest.fixture
def admin() -> Client:
    user = get_user_model().objects.create_superuser("admin", password="x")
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("name", [*REGISTRY, *RESULTS])
def test_every_list_opens(admin, name: str):
    three_endpoints()
    assert admin.get(reverse(f"admin:sonar_{name}_changelist")).status_code == 200


@pytest.mark.parametrize("name", REGISTRY)
def test_the_registry_can_be_added_to(admin, name: str):
    assert admin.get(reverse(f"admin:sonar_{name}_add")).status_code == 200


@pytest.mark.parametrize("name", RESULTS)
def test_results_cannot_be_added(admin, name: str):
    assert admin.get(reverse(f"admin:sonar_{name}_add")).status_code == 403


def test_an_endpoint_is_retired_never_deleted(admin):
    glasgow, _, _ = three_endpoints()
    url = reverse("admin:sonar_endpoint_delete", args=[glasgow.id])
    assert admin.post(url, {"post": "yes"}).status_code == 403
    changelist = reverse("admin:sonar_endpoint_changelist")
    admin.post(changelist, {"action": "retire", "_selected_action": [glasgow.id]})
    assert Endpoint.objects.get(id=glasgow.id).retired_at


def change(admin: Client, name: str, **values: object) -> str:
    row = SizeClass.objects.get(name=name)
    fields = ("name", "from_bytes", "test_bytes", "timeout_seconds")
    form = {key: getattr(row, key) for key in fields} | values
    return admin.post(reverse("admin:sonar_sizeclass_change", args=[row.id]), form).content.decode()


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("small", {"from_bytes": 5}, "must begin at 0 bytes"),
        ("medium", {"test_bytes": 5}, "must lie in its range"),
        ("medium", {"from_bytes": 10**9}, "begin at the same size"),
    ],
)
def test_size_classes_that_would_not_tile_are_an_error_in_the_form(admin, name, values, said):
    before = list(SizeClass.objects.values())
    assert said in change(admin, name, **values)
    assert list(SizeClass.objects.values()) == before


def test_a_boundary_can_be_moved(admin):
    change(admin, "medium", from_bytes=50 * 10**6)
    assert SizeClass.objects.get(name="medium").from_bytes == 50 * 10**6


def test_a_credential_in_a_base_url_is_an_error_in_the_form(admin):
    glasgow, _, _ = three_endpoints()
    url = reverse("admin:sonar_endpoint_change", args=[glasgow.id])
    form = {"name": glasgow.name, "site": glasgow.site_id, "inbound_cap": 2, "outbound_cap": 2}
    page = admin.post(url, form | {"base_url": "https://me:sesame@x/y"}).content.decode()
    assert "holds no user, password or query" in page


def test_half_quiet_hours_are_an_error_in_the_form(admin):
    form = {"name": "uk", "mover": "fake", "mode": "pull", "streams": 1, "priority": 5}
    form |= {"quiet_from": "01:00", "intervals-TOTAL_FORMS": 0, "intervals-INITIAL_FORMS": 0}
    page = admin.post(reverse("admin:sonar_mesh_add"), form).content.decode()
    assert "Quiet hours need two different times, or none." in page
    assert not Mesh.objects.exists()
