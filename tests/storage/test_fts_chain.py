"""FTS3 with the whole chain: planner, a worker that is stopped or killed, cleaning, the page."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from sonar.models import Leftover, Probe, Schedule, Transfer
from sonar.registry import file
from tests.storage.conftest import Pair
from tests.storage.fts import FtsServer, fts_server
from tests.storage.test_chain import WORKER, files_left, processes
from tests.storage.workers import Processes

__all__ = ["processes"]
pytestmark = pytest.mark.usefixtures("real_commits")

OWN = "fts-knows-us-by-this"
REGISTRY = """
size_classes: [{{name: small, from_bytes: 0, test_bytes: 2000000}}]
sites: [{{name: A, tier: 1}}, {{name: B, tier: 2}}]
credentials:
  - {{name: fts, hosts: [localhost]}}
  - {{name: token_a, hosts: [localhost]}}
  - {{name: token_b, hosts: [localhost]}}
  - {{name: reads_a, hosts: [localhost]}}
  - {{name: writes_b, hosts: [localhost]}}
endpoints:
  - {{name: A_DISK, site: A, base_url: "{a}/base", credential: token_a, credential_lent: reads_a}}
  - {{name: B_DISK, site: B, base_url: "{b}/base", credential: token_b, credential_lent: writes_b}}
meshes:
  - name: by-fts
    mover: fts3
    service: "{fts}"
    service_credential: fts
    sources: [A_DISK]
    destinations: [B_DISK]
    every: {{small: 1h}}
"""


def states(fts: FtsServer) -> list[str]:
    return [job.state for job in list(fts.jobs.values())]


def test_a_worker_that_ends_leaves_no_job_and_no_token(guarded: Pair, processes: Processes) -> None:
    pair, place = guarded, Path(processes.env["SONAR_CREDENTIALS_DIR"])
    tokens = {
        "fts": OWN,
        "token_a": pair.source_token,
        "token_b": pair.destination_token,
        "reads_a": pair.source.macaroon("DOWNLOAD,LIST"),
        "writes_b": pair.destination.macaroon("UPLOAD,DOWNLOAD,LIST,MANAGE"),
    }
    for name, token in tokens.items():
        (place / name).write_text(token)
    bundle = str(pair.source.authority.bundle)
    processes.env["SONAR_CA_BUNDLE"] = bundle
    with fts_server(token=OWN, queue_seconds=1.0, bundle=bundle) as fts:
        file.load(
            REGISTRY.format(
                a=pair.source.url, b=pair.destination.url, fts=f"http://localhost:{fts.port}"
            )
        )
        worker = processes.start(*WORKER, "-Q", "transfers", "-n", "transfers@%h")
        processes.start(*WORKER, "-Q", "control,cleaning", "-n", "control@%h")
        processes.start("beat", "--pidfile=", "--schedule", str(processes.place / "beat"))
        processes.wait_for(lambda: Transfer.objects.filter(state="done").exists())

        # Told to stop, a worker cancels its job and hands the test back.
        fts.queue_seconds = 600
        Schedule.objects.update(next_due=timezone.now())
        processes.wait_for(lambda: states(fts) == ["FINISHED", "SUBMITTED"])
        worker.terminate()
        processes.wait_for(lambda: worker.poll() is not None)
        assert states(fts) == ["FINISHED", "CANCELED"]
        assert Probe.objects.get().state == Probe.State.QUEUED

        # Killed, it cannot: its test is lost, and `clean` cancels the job.
        worker = processes.start(*WORKER, "-Q", "transfers", "-n", "transfers@%h")
        processes.wait_for(lambda: states(fts) == ["FINISHED", "CANCELED", "SUBMITTED"])
        worker.kill()
        worker.wait()
        Probe.objects.update(deadline=timezone.now() - timedelta(seconds=1))
        processes.wait_for(lambda: states(fts) == ["FINISHED", "CANCELED", "CANCELED"])
        processes.wait_for(
            lambda: not Leftover.objects.filter(next_try__lt=timezone.now()).exists()
        )
        assert Transfer.objects.filter(state="lost").count() == 1
    done = Transfer.objects.get(state="done")
    assert done.remote_id == next(iter(fts.jobs))
    assert done.queue_seconds >= 1
    assert done.seconds < 1
    assert done.profile.clock == "service"
    assert done.verified
    assert files_left(pair) == []
    said = "\n".join(words for _, _, words in fts.heard)
    assert tokens["reads_a"] in said
    assert tokens["writes_b"] in said
    assert tokens["token_a"] not in said
    assert tokens["token_b"] not in said
    page = Client().get(f"/transfers/{done.id}/").content.decode()
    assert done.remote_id in page
    for token in tokens.values():
        assert token not in processes.logs + page
