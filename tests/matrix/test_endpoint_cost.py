"""What an endpoint would cost in a mesh, by the API and on pages, before it is enabled."""

import pytest
from django.test import Client
from django.urls import reverse

from matrix.answers.cost import noticed_by
from sonar.models import Endpoint, SizeClass
from sonar.people.roles import Role
from sonar.registry.cost.figures import ClassCost
from tests.accounts import account, logged_in
from tests.matrix import responses
from tests.matrix.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
COST = "/api/v1/endpoints/RAL_DATADISK/cost/"
PAGE = "/sites/RAL/endpoints/RAL_DATADISK/"
DAY = 86400


@pytest.fixture(autouse=True)
def tested(small_world: World) -> World:
    """Let the mesh of everything test each link with small and large files; RAL waits."""
    for size, hours in (("small", 1), ("large", 24)):
        size_class = SizeClass.objects.get(name=size)
        small_world.mesh.intervals.create(size_class=size_class, every_seconds=hours * 3600)
    Endpoint.objects.filter(name="RAL_DATADISK").update(enabled=False, budget_bytes_per_day=10**10)
    return small_world


def test_the_api_says_what_an_endpoint_would_cost_in_a_mesh(client: Client):
    answer = client.get(f"{COST}?mesh=everything").json()
    assert answer["in_words"] == "6 links, 104 of 150 tests and 10 GB a day"
    assert (answer["links_out"], answer["links_in"]) == (3, 3)
    assert answer["budget"]["share"] == pytest.approx(1.488)
    assert answer["bytes_per_day"] < answer["asked_bytes_per_day"] == 14_880_000_000
    small, large = answer["sizes"]
    assert (small["asked_in"], large["asked_out"]) == (72, 3)
    assert small["slowdown_seconds"] > 3 * 3600


@pytest.mark.parametrize(
    ("asked", "status", "sentence"),
    [
        ("", 400, "“mesh” is missing: name the mesh that the endpoint belongs to or would join."),
        ("?mesh=none", 400, "mesh “none” is not known: use the name of a registered mesh."),
        ("?mesh=everything&size=small", 400, "size"),
    ],
)
def test_what_it_cannot_answer_is_said(client: Client, asked: str, status: int, sentence: str):
    response = client.get(f"{COST}{asked}")
    assert response.status_code == status
    assert sentence in response.content.decode()
    assert client.get("/api/v1/endpoints/NOBODY/cost/?mesh=everything").status_code == 404


def test_trouble_is_noticed_after_three_tests_and_what_is_usual_known_after_five():
    hourly = ClassCost("small", 20, 3600, links_out=2, allowed_out=48.0)
    seen = noticed_by(hourly)
    assert (seen.slowdown_seconds, seen.failing_seconds) == (3 * 3600, 3 * 3600)
    assert seen.usual_seconds == 5 * 3600 + DAY
    assert noticed_by(ClassCost("small", 20, 3600, links_out=2)).failing_seconds is None


def test_who_may_enable_it_sees_the_cost_before(client: Client):
    costs = "Enabling it starts 6 links, 104 of 150 tests and 10 GB a day in mesh everything."
    admin = logged_in(account(Role.SITE_ADMIN, Endpoint.objects.get(name="RAL_DATADISK").site))
    for path in (PAGE, "/sites/RAL/"):
        assert costs in responses.page(admin, path)
        assert "Enabling it starts" not in responses.page(client, path)
    operator = logged_in(account(Role.OPERATOR))
    chosen = {
        "action": "enable",
        "_selected_action": list(
            Endpoint.objects.filter(name="RAL_DATADISK").values_list("pk", flat=True)
        ),
    }
    page = operator.post(reverse("admin:sonar_endpoint_changelist"), chosen, follow=True)
    assert "RAL_DATADISK is enabled: 6 links, 104 of 150 tests" in page.content.decode()
