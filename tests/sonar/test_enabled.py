"""An endpoint that is not enabled: nothing is tested with it, and each door begins with that."""

import pytest
from django.test import Client
from django.urls import reverse

from sonar import scheduler
from sonar.models import Endpoint, Probe, Schedule
from sonar.ordering import request_checks
from sonar.people.roles import Role
from sonar.registry import mesh_size
from sonar.registry.file.loading import load
from sonar.registry.topology.applying import apply
from sonar.registry.topology.model import EndpointFacts, SiteFacts, Topology
from tests.accounts import account, logged_in
from tests.sonar.world import NOW, reasons, request, roomy

pytestmark = pytest.mark.django_db
FILE = """
sites: [{name: DESY}]
endpoints: [{name: DESY_DATADISK, site: DESY, base_url: "davs://desy.example.org/data"%s}]
"""
SENTENCE = "GLASGOW_DATADISK is not enabled: enable it on the page of its site."


def test_nothing_is_tested_with_it_until_it_is_enabled_and_its_check_works():
    glasgow, lancs, ral = roomy()
    Endpoint.objects.filter(pk=glasgow.pk).update(enabled=False)
    assert len(scheduler.claim_due(NOW)) == 2
    assert {(p.source, p.destination) for p in Probe.objects.all()} == {(lancs, ral), (ral, lancs)}
    assert reasons() == {"not enabled": 12, "link": 4}
    with pytest.raises(scheduler.RefusedError) as refusal:
        scheduler.order_all([request(lancs, glasgow)], NOW)
    assert refusal.value.errors == {"destination": [SENTENCE]}
    assert request_checks.order(glasgow, None, NOW)
    (uk,) = {schedule.mesh for schedule in Schedule.objects.select_related("mesh")}
    assert mesh_size.words_now(uk) == (
        "all endpoints: 2 now, 2 links, 144 tests and 107 GB a day, at most 2 tests at once; "
        "1 more endpoint is not tested, because it is not enabled"
    )
    Endpoint.objects.update(enabled=True)
    assert len(scheduler.claim_due(NOW)) == 4
    assert "not enabled" not in reasons()


@pytest.mark.parametrize(("said", "enabled"), [("", True), (", enabled: false", False)])
def test_a_file_enables_what_is_new_unless_it_says_otherwise(said: str, enabled: bool):
    load(FILE % said)
    assert Endpoint.objects.get().enabled is enabled
    Endpoint.objects.update(enabled=not enabled)
    load(FILE % "")
    assert Endpoint.objects.get().enabled is not enabled
    load(FILE % ", enabled: true")
    assert Endpoint.objects.get().enabled


def test_a_topology_enables_nothing_but_what_joins():
    topology = Topology(
        source="cric-atlas",
        sites=[SiteFacts(name="DESY")],
        endpoints=[
            EndpointFacts(name="DESY_DATADISK", site="DESY", base_url="davs://desy.example/data")
        ],
    )
    apply(topology)
    assert not Endpoint.objects.get().enabled
    apply(topology, joins=True)
    assert (Endpoint.objects.get().enabled, Endpoint.objects.get().retired_at) == (True, None)


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR))


def test_one_that_is_added_in_the_admin_starts_disabled_and_actions_change_that(operator):
    glasgow, *_ = roomy()
    form = operator.get(reverse("admin:sonar_endpoint_add"))
    assert form.context["adminform"].form["enabled"].value() is False
    names = reverse("admin:sonar_endpoint_changelist")
    for action, enabled in (("disable", False), ("enable", True)):
        chosen = {"action": action, "_selected_action": [glasgow.pk]}
        page = operator.post(names, chosen, follow=True).content.decode()
        assert f"1 endpoint {action}d." in page
        assert Endpoint.objects.get(pk=glasgow.pk).enabled is enabled
