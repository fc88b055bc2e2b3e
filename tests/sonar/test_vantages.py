"""Vantages: tests, cleaning and checks go to workers of the place that their endpoint names."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from celery.app.amqp import Queues
from django.core.management import CommandError, call_command
from django.utils import timezone

from sonar import scheduler, tasks
from sonar.celery import app
from sonar.models import Credential, CredentialState, Endpoint, Leftover, Mesh, Probe, SignOfLife
from sonar.movers.catalogue import Program
from sonar.obstacles import catalogue as obstacles
from sonar.ordering import request_checks
from sonar.registry.file.loading import load
from sonar.registry.file.reading import RegistryError
from sonar.scheduler import dispatch
from sonar.work import cleanup, credential_checks, probes
from tests.sonar import world
from tests.sonar.world import NOW, held_links, queued, reasons, request, three_endpoints

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
DEAD = "No worker is running at the vantage point cern: start one there with SONAR_VANTAGE=cern."
APART = (
    "No worker can reach both endpoints: the vantage points cern and ral are set for the endpoints "
    "or for their mesh."
)


def worker(vantage: str = "", *more: str, seen_at: datetime = NOW - SECOND) -> None:
    """Let a worker live at a vantage that runs the mover fake, tests and what cleans."""
    names = ["transfers", "transfers.fake", "cleanup", *more]
    queues = [f"{name}@{vantage}" if vantage else name for name in names]
    SignOfLife.objects.create(
        name=f"w@{vantage}", kind="worker", seen_at=seen_at, every_seconds=10, queues=queues
    )


@pytest.fixture
def ends() -> tuple[Endpoint, Endpoint, Endpoint]:
    """Return three endpoints; Glasgow is reached from cern alone."""
    glasgow, lancs, ral = three_endpoints()
    glasgow.vantage = "cern"
    glasgow.save()
    return glasgow, lancs, ral


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return what is sent instead of sending it: tasks, and their queues."""
    messages: list[tuple[str, str]] = []

    def send_task(name: str, *_: object, queue: str, **__: object) -> None:
        messages.append((name.rpartition(".")[2], queue))

    monkeypatch.setattr(app, "send_task", send_task)
    return messages


def test_each_test_goes_to_the_vantage_of_its_ends_or_of_its_mesh(ends, sent):
    glasgow, lancs, ral = ends
    near = Mesh.objects.create(name="near", vantage="ral")
    made = [
        queued(glasgow, lancs, mesh=near),
        queued(lancs, glasgow, mover="iperf3"),
        queued(lancs, ral, mesh=near),
        queued(ral, lancs),
    ]
    dispatch.send([probe.id for probe in made])
    assert [queue for _, queue in sent] == [
        "transfers.fake@cern",
        "transfers.iperf3.GLASGOW_DATADISK@cern",
        "transfers.fake@ral",
        "transfers.fake",
    ]


@pytest.mark.parametrize(
    ("vantage", "asked", "taken"),
    [
        (
            "cern",
            "transfers",
            [
                "transfers.fake@cern",
                "transfers.fts3@cern",
                "transfers.http-tpc@cern",
                "transfers@cern",
            ],
        ),
        ("cern", "control,cleanup", ["cleanup@cern", "control"]),
        ("", "transfers", ["transfers", "transfers.fake", "transfers.fts3", "transfers.http-tpc"]),
        ("", "control,cleanup", ["cleanup", "control"]),
    ],
)
def test_a_worker_takes_from_the_queues_of_its_vantage_alone(
    settings, monkeypatch, vantage, asked, taken
):
    settings.SONAR_VANTAGE = vantage
    monkeypatch.setattr(Program, "missing", lambda program: f"{program.name} is not there")
    queues = Queues(create_missing_queue_type="quorum")
    queues.select(asked.split(","))
    instance = SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=queues)))
    tasks.take_what_can_run(instance)
    assert sorted(queues.consume_from) == taken
    # As who sends declares them, or RabbitMQ refuses one of both.
    assert {str(queue.queue_arguments) for queue in queues.consume_from.values()} == {
        "{'x-queue-type': 'quorum'}"
    }


def test_scheduled_tests_wait_for_a_worker_at_the_vantage_and_the_others_run(ends):
    world.mesh()
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    worker()
    assert {probe.source.name[0] for probe in _claimed()} == {"L", "R"}
    assert held_links("vantage") == {
        ("GLASGOW", "LANCS"),
        ("GLASGOW", "RAL"),
        ("LANCS", "GLASGOW"),
        ("RAL", "GLASGOW"),
    }
    assert obstacles.notice(NOW) == f"The mesh uk: {DEAD}"
    worker("cern")
    assert {probe.destination.name[0] for probe in _claimed()} == {"G", "L", "R"}
    assert obstacles.notice(NOW) == ""


def _claimed() -> list[Probe]:
    ids = scheduler.claim_due(NOW)
    return list(Probe.objects.filter(id__in=ids).select_related("source", "destination"))


def test_a_vantage_needs_a_worker_even_while_none_lives_anywhere_and_the_default_one_does_not(ends):
    world.mesh()
    scheduler.claim_due(NOW)
    assert reasons()["vantage"] == 12
    assert Probe.objects.exists()


def test_while_workers_live_at_vantages_alone_other_tests_say_so(ends):
    world.mesh()
    worker("cern")
    scheduler.claim_due(NOW)
    assert held_links("vantage") == {("LANCS", "RAL"), ("RAL", "LANCS")}
    assert "No worker without a vantage point is running: start one" in obstacles.notice(NOW)


def test_a_mover_that_is_offered_elsewhere_alone_is_not_offered_at_a_vantage(ends):
    world.mesh(mover="http-tpc", vantage="cern")
    for end in ends:
        end.base_url = f"https://{end.site.name.lower()}.example.org/data"
        end.save()
    worker("", "transfers.http-tpc")
    worker("cern")
    assert scheduler.claim_due(NOW) == []
    assert set(reasons()) == {"mover"}
    assert obstacles.notice(NOW) == (
        "The mesh uk: No worker at the vantage point cern can run the transfer tool http-tpc: a "
        "worker needs the Python package urllib3."
    )


@pytest.mark.parametrize(
    ("of_lancs", "of_mesh", "links"), [("ral", "", 2), ("", "ral", 4), ("ral", "ral", 4)]
)
def test_two_vantages_have_no_test_between_them(ends, of_lancs, of_mesh, links):
    Endpoint.objects.filter(name="LANCS_DATADISK").update(vantage=of_lancs)
    world.mesh(vantage=of_mesh)
    for vantage in ("", "cern", "ral"):
        worker(vantage)
    scheduler.claim_due(NOW)
    assert len(held_links("two vantages")) == links
    said = obstacles.notice(NOW)
    assert said.startswith(f"The mesh uk: {links} links are not tested. {APART}")
    if of_lancs:
        with pytest.raises(scheduler.RefusedError) as refused:
            scheduler.order_all([request(ends[0], Endpoint.objects.get(pk=ends[1].pk))], NOW)
        assert refused.value.errors == {"destination": [APART]}


def test_an_ordered_test_waits_with_the_sentence_until_a_worker_lives_there(ends):
    worker()
    (test,), started = scheduler.order_all([request(ends[1], ends[0])], NOW)
    assert (test.waits_because, started) == (DEAD, [])
    worker("cern")
    assert scheduler.start_waiting(NOW) == [test.id]


def test_a_test_whose_vantage_has_changed_is_left_to_the_workers_there(ends, settings):
    test = queued(ends[0], ends[1], sent_at=NOW - timedelta(days=1))
    assert probes.claim(test.id, NOW) is None
    assert probes.recover(NOW) == [test.id]
    settings.SONAR_VANTAGE = "cern"
    assert probes.claim(test.id, NOW) is not None


def test_files_are_deleted_by_workers_that_reach_them(ends, settings, sent, monkeypatch):
    now = timezone.now()
    kept = {"since": now, "next_try": now, "error": "", "tries": 0}
    Leftover.objects.create(endpoint=ends[0], path="a", mover="gridftp", **kept)
    Leftover.objects.create(endpoint=ends[1], path="b", mover="fake", **kept)
    monkeypatch.setattr(Program, "missing", lambda program: f"{program.name} is not there")
    cleaned: list[int] = []
    monkeypatch.setattr(cleanup, "clean_endpoint", lambda end, until: cleaned.append(end))
    tasks.clean_up()
    assert (cleaned, sent) == ([ends[1].id], [])  # nobody would take it
    worker("cern", seen_at=now)
    tasks.clean_up()
    assert (cleaned, sent) == ([ends[1].id] * 2, [("clean_up", "cleanup@cern")])
    settings.SONAR_VANTAGE = "cern"
    assert cleanup.due_by_vantage(now).get("cern", []) == []  # as it lacks the program
    monkeypatch.setattr(Program, "missing", lambda program: "")
    tasks.clean_up()
    assert (cleaned[2:], sent[1:]) == ([ends[0].id], [])


def test_a_credential_is_looked_at_where_its_endpoint_is_reached(ends, settings, sent, tmp_path):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    credential = Credential.objects.create(name="none", hosts=["glasgow"])
    Endpoint.objects.filter(pk=ends[0].pk).update(credential=credential)
    worker("cern", seen_at=timezone.now())
    tasks.check_credentials()
    assert sent == [("check_credentials", "cleanup@cern")]
    assert not CredentialState.objects.exists()
    settings.SONAR_VANTAGE = "cern"
    tasks.check_credentials()
    assert CredentialState.objects.get().endpoint == ends[0]
    settings.SONAR_VANTAGE = ""
    credential_checks.check(timezone.now(), 5)
    assert CredentialState.objects.exists()  # that the file is not here either says nothing


def test_a_check_goes_to_the_vantage(ends, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for end in ends[:2]:
            request_checks.order(end, None, NOW)
    assert sent == [("check_endpoint", "cleanup@cern"), ("check_endpoint", "cleanup")]


@pytest.mark.parametrize(
    "command",
    [
        ("probe", "GLASGOW_DATADISK", "LANCS_DATADISK", "small", "--mover=fake"),
        ("check_endpoint", "GLASGOW_DATADISK"),
    ],
)
def test_a_command_elsewhere_says_from_where_the_endpoint_is_reached(ends, settings, command):
    settings.SONAR_VANTAGE = "ral"
    with pytest.raises(CommandError) as refused:
        call_command(*command)
    assert str(refused.value).endswith(
        "ed: the endpoint can be reached only from the vantage point cern, but this process is at "
        "the vantage point ral (SONAR_VANTAGE)."
    )
    assert not Probe.objects.exists()


def test_a_registry_file_names_vantages_and_a_wrong_one_is_told_at_its_place(ends):
    place = "endpoints:\n  - {name: RAL_DATADISK, site: RAL, base_url: fake://ral/data"
    load(f"{place}, vantage: ral-1}}\n")
    load(f"{place}}}\n")  # what it does not say stays
    assert Endpoint.objects.get(name="RAL_DATADISK").vantage == "ral-1"
    mesh = "meshes:\n  - {name: m, every: {small: 1h}, vantage: RAL}\n"
    with pytest.raises(RegistryError) as error:
        load(f"{place}, vantage: 'r l'}}\n{mesh}")
    assert [line.partition(": ")[2] for line in error.value.problems] == [
        "The name of a vantage point has 1 to 40 lower-case letters, digits and dashes, for "
        "example cern."
    ] * 2
