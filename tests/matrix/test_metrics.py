"""/metrics: figures for Prometheus, whatever is away."""

import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import get_resolver
from prometheus_client.parser import text_string_to_metric_families

from matrix.answers.status import figures
from sonar import settings as project
from sonar.database import tables
from sonar.models import (
    Assessment,
    Condition,
    Credential,
    CredentialState,
    Endpoint,
    Notification,
    SignOfLife,
    SizeClass,
)
from tests import refusing
from tests.conditions import stored_condition
from tests.matrix.world import NOW, of_service, transfer
from tests.sonar import alarms

pytestmark = pytest.mark.usefixtures("real_commits", "fresh_status")
URL = "/metrics"
HOST = "host-7.internal"


def samples(client: Client, **headers: str) -> dict[tuple[str, str], float]:
    """Return every sample of Sonar's own by its name and the values of its labels."""
    response = client.get(URL, headers=headers)
    assert response.status_code == 200, response.content
    assert response["Content-Type"].startswith("text/plain; version=")
    return {
        (one.name, ",".join(one.labels.values())): one.value
        for family in text_string_to_metric_families(response.content.decode())
        for one in family.samples
        if one.name.startswith("sonar_")
    }


def test_a_parameter_is_refused_with_a_sentence(client):
    """There is none to use instead, which once was a crash for anybody."""
    response = client.get(URL, {"nonsense": "1"})
    assert response.status_code == 400
    told = response.json()["errors"]["nonsense"]
    assert told == ["There is no parameter “nonsense”: no parameters are allowed here."]


def sign(name: str, kind: str, *queues: str) -> None:
    SignOfLife.objects.create(
        name=name, kind=kind, seen_at=NOW, every_seconds=10, queues=list(queues)
    )


def test_credentials_in_trouble_are_there_with_since_when_and_without_their_names(
    client, small_world
):
    credential = Credential.objects.create(name="grid-client", hosts=["ral"])
    for role, expires_at in (("own", None), ("lent", NOW + timedelta(hours=1))):
        CredentialState.objects.create(
            credential=credential,
            endpoint=small_world.ral,
            role=role,
            since=NOW,
            holds=role == "own",
            sentence="the secret is empty",
            expires_at=expires_at,
            checked_at=NOW,
        )
    of_service(credential, "by-fts")
    of_service(credential, "by-nobody", enabled=False)
    found = samples(client)
    assert "by-nobody" not in str(found)
    since = "sonar_credential_trouble_since_timestamp_seconds"
    assert found[since, "RAL_DATADISK,,own,wait"] == NOW.timestamp()
    assert found[since, "RAL_DATADISK,,lent,run"] == NOW.timestamp()
    assert found[since, ",by-fts,service,wait"] == NOW.timestamp()
    ends = {key: value for key, value in found.items() if "expires" in key[0]}
    lent = ("sonar_credential_expires_timestamp_seconds", "RAL_DATADISK,,lent,run")
    assert ends == {lent: NOW.timestamp() + 3600}
    assert "grid-client" not in str(client.get(URL).content)


def test_everything_that_one_alerts_on_is_there(client, small_world):
    sign(f"w@{HOST}", "worker", "transfers")
    sign(f"beat@{HOST}", "beat")
    sign("planner", "task")
    transfer(small_world.ral, small_world.desy, 5.0, ago=timedelta(hours=2))
    transfer(small_world.ral, small_world.desy, 5.0)
    found = samples(client)
    at = NOW.timestamp()
    assert found["sonar_last_plan_timestamp_seconds", ""] == at
    assert found["sonar_scheduler_last_timestamp_seconds", ""] == at
    assert found["sonar_task_last_timestamp_seconds", "planner"] == at
    assert found["sonar_workers", "transfers"] == 1
    assert found["sonar_workers", "control"] == 0
    assert found["sonar_probes", "queued"] == found["sonar_probes", "running"] == 0
    assert found["sonar_queue_messages", "control"] >= 0
    assert found["sonar_in_flight_limit", ""] == 100
    assert found["sonar_results_last_hour", "done"] == 1
    assert found["sonar_uncompacted_seconds", ""] == 3630
    assert found["sonar_uncompacted_buckets", ""] == 1
    assert found["sonar_scheduled_waiting", "next tick"] == 12
    assert found["sonar_coverage_links", "large,measured"] == 1
    assert found["sonar_coverage_links", "large,untested"] == 11
    assert found["sonar_up", "database"] == found["sonar_up", "redis"] == 1
    assert ("sonar_info", "0.5") in found


# Labels are written in the order of their names: of links destination, simulated, size and source;
# of endpoints end, endpoint, simulated and size.
RATES, AVERAGES = "sonar_link_rate_bytes_per_second", "sonar_endpoint_rate_bytes_per_second"


def test_the_rates_of_the_last_day_are_there_in_bytes_per_second(client, small_world):
    """Results of other days and size classes are not averaged in; simulated rates are labelled."""
    world = small_world
    Endpoint.objects.filter(pk=world.scratch.pk).update(simulated=True)
    transfer(world.ral, world.scratch, 1.0, size="medium")
    transfer(world.ral, world.desy, 5.0)
    transfer(world.ral, world.desy, 7.0)
    transfer(world.glasgow, world.desy, 2.0)
    transfer(world.glasgow, world.desy, 90.0, ago=timedelta(hours=25))
    transfer(world.glasgow, world.desy, 90.0, size="small")
    transfer(world.ral, world.glasgow, None)
    found = samples(client)
    rates = {labels: rate for (name, labels), rate in found.items() if name == RATES}
    assert rates == {
        "DESY_DATADISK,false,large,RAL_DATADISK": 6e6,
        "DESY_DATADISK,false,large,Glasgow_DATADISK": 2e6,
        "DESY_DATADISK,false,small,Glasgow_DATADISK": 90e6,
        "DESY_SCRATCHDISK,true,medium,RAL_DATADISK": 1e6,
    }
    assert found[AVERAGES, "source,RAL_DATADISK,false,large"] == 6e6
    assert found[AVERAGES, "destination,DESY_DATADISK,false,large"] == 4e6
    assert (AVERAGES, "source,DESY_DATADISK,false,large") not in found
    assert found["sonar_link_rates_omitted", "large"] == 0


@pytest.mark.parametrize(("limit", "omitted"), [(12, 0), (11, 12), (0, 12)])
def test_more_links_than_the_limit_have_no_rates_and_are_counted(
    client, small_world, settings, limit, omitted
):
    settings.SONAR_METRICS_LINKS = limit
    transfer(small_world.ral, small_world.desy, 5.0)
    found = samples(client)
    assert found["sonar_link_rates_omitted", "large"] == omitted
    assert ((RATES, "DESY_DATADISK,false,large,RAL_DATADISK") in found) == (omitted == 0)
    assert found[AVERAGES, "source,RAL_DATADISK,false,large"] == 5e6


def test_what_people_are_called_for_and_what_still_waits_is_there(client, small_world):
    row = alarms.subscription("shift", failing_since=NOW)
    alarms.incident(small_world.ral, type="failing")
    Notification.objects.update(due_at=NOW - timedelta(minutes=7))
    late = {"created_at": NOW, "due_at": NOW + timedelta(hours=8)}
    Notification.objects.create(subscription=row, kind="test", **late)
    found = samples(client)
    assert found["sonar_incidents_open", "failing"] == 1
    assert found["sonar_incidents_open", "slow"] == 0
    assert found["sonar_notifications", "waiting"] == 2
    assert found["sonar_notifications_oldest_due_seconds", ""] == 420
    assert found["sonar_subscriptions_failing", ""] == 1


OPEN, DOUBTFUL = "sonar_conditions_open", ("sonar_measurements_doubtful", "")


def test_open_conditions_are_counted_and_when_they_were_assessed(client, small_world):
    stored_condition("failing", source=small_world.ral)
    for end in (small_world.glasgow, small_world.desy):
        stored_condition("slow", source=small_world.ral, destination=end, confirmed=False)
    stored_condition("slow", site=small_world.desy.site, ended=timedelta(minutes=1))
    for number, size in enumerate(SizeClass.objects.order_by("id")):
        at = NOW - number * timedelta(minutes=1)
        Assessment.objects.create(size_class=size, assessed_at=at)
    found = samples(client)
    counts = {labels: value for (name, labels), value in found.items() if name == OPEN and value}
    # By confirmed, scope and type.
    assert counts == {"true,source,failing": 1, "false,link,slow": 2}
    assert found[OPEN, "true,site,slow"] == 0
    assert found[DOUBTFUL] == 0
    oldest = NOW.timestamp() - 120
    assert found["sonar_incidents_evaluated_timestamp_seconds", ""] == oldest


def test_a_confirmed_condition_of_the_grid_makes_results_doubtful(client, small_world):
    stored_condition("slow", confirmed=False)
    assert samples(client)[DOUBTFUL] == 0
    Condition.objects.update(confirmed_at=NOW)
    # Nobody waits for the next reading of what is dear.
    assert samples(client)[DOUBTFUL] == 1


def test_who_was_never_heard_of_has_no_sample(client, small_world):
    found = samples(client)
    assert found["sonar_notifications_oldest_due_seconds", ""] == 0
    names = {name for name, _ in found}
    assert "sonar_incidents_evaluated_timestamp_seconds" not in names
    assert not names & {
        "sonar_last_plan_timestamp_seconds",
        "sonar_scheduler_last_timestamp_seconds",
    }


def test_no_machine_is_named(client, small_world):
    sign(f"w@{HOST}", "worker", "transfers")
    sign(f"beat@{HOST}", "beat")
    assert HOST.encode() not in client.get(URL).content


def test_without_the_database_it_still_answers(client, small_world, monkeypatch):
    nowhere = {"dbname": "x", "host": "127.0.0.1", "port": 1, "connect_timeout": 2}
    monkeypatch.setattr(tables, "quickly", lambda: nowhere)
    found = samples(client)
    assert found["sonar_up", "database"] == 0
    assert found["sonar_up", "redis"] == 1
    assert not [name for name, _ in found if name == "sonar_workers"]


def test_a_database_that_goes_while_it_is_asked_is_no_500(client, small_world, monkeypatch):
    def away(*_: object) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(figures, "read", away)
    assert samples(client)["sonar_up", "database"] == 0


def test_without_redis_it_still_answers(client, small_world, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = samples(client)
    assert (found["sonar_up", "redis"], found["sonar_up", "database"]) == (0, 1)
    assert not [name for name, _ in found if name == "sonar_queue_messages"]


def test_a_redis_that_is_full_is_not_up_and_its_queues_are_counted(client, small_world):
    with refusing.full(project.REDIS_URL):
        found = samples(client)
    assert (found["sonar_up", "redis"], found["sonar_up", "database"]) == (0, 1)
    assert found["sonar_queue_messages", "control"] >= 0


def requests_counted(client: Client) -> set[tuple[str, str]]:
    """Return view and method of every request that was counted with its time."""
    families = text_string_to_metric_families(client.get(URL).content.decode())
    return {
        (one.labels["view"], one.labels["method"])
        for family in families
        for one in family.samples
        if one.name == "django_http_requests_latency_seconds_by_view_method_count"
    }


def test_requests_are_counted_by_route_and_never_by_path(client, small_world):
    before = requests_counted(client)
    for number in range(5):
        client.get(f"/sites/nowhere-{number}/")
        client.get(f"/api/v1/nothing-{number}/")
        client.get(f"/nothing-{number}/")
        client.generic(f"X{number}", "/")
    found = requests_counted(client)
    assert ("site", "GET") in found
    assert {method for _, method in found - before} <= {"GET", "<invalid method>"}
    assert len(found - before) <= 6
    routes: Any = get_resolver().reverse_dict
    assert not [view for view, _ in found if "/" in view]
    # Tests that add routes of their own may have been here before.
    for view, _ in found - before:
        assert view in routes or "." in view or ":" in view or view == "<unnamed view>", view


FORKED = """
import os, sys
import django
django.setup()
from django.test import Client
Client().get("/healthz")
if len(sys.argv) > 1:
    print(Client().get("/metrics").content.decode())
"""


@pytest.mark.long
def test_several_processes_count_together(real_commits, tmp_path):
    from django.db import connection

    url = os.environ["DATABASE_URL"].rpartition("/")[0]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "sonar.settings",
        "DATABASE_URL": f"{url}/{connection.settings_dict['NAME']}",
        "SONAR_ALLOWED_HOSTS": "testserver",
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", FORKED]
    for more in ([], ["show"]):
        told = subprocess.run(
            [*command, *more], env=environment, check=True, capture_output=True, text=True
        ).stdout
    counted = (
        'django_http_requests_latency_seconds_by_view_method_count{method="GET",view="healthz"} 2.0'
    )
    assert counted in told
    assert "sonar_up" in told


def test_who_may_not_read_is_told_so_in_json(client, settings):
    settings.SONAR_PUBLIC_READ = False
    for path in (URL, "/cells/"):
        refused = client.get(path)
        assert (refused.status_code, bool(refused.json()["detail"])) == (401, True), path
