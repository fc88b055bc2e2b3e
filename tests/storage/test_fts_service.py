"""FTS3 with the whole chain, and as a service that does not take what it knows us by."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from sonar import scheduler
from sonar.models import CredentialState, Leftover, Probe, Schedule, SizeClass, Transfer
from sonar.movers.fts3 import poll
from sonar.movers.fts3.rest import NOT_TAKEN
from sonar.registry import file
from sonar.work import cleanup, credential_checks, probes
from tests.storage.conftest import Pair
from tests.storage.fts import FtsServer, fts_server
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in
from tests.storage.test_chain import WORKER, files_left, processes
from tests.storage.workers import Processes
from tests.waiting import SOON, wait_for

__all__ = ["processes"]
pytestmark = pytest.mark.usefixtures("real_commits", "_brief_looks")

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


def tokens_of(pair: Pair) -> dict[str, str]:
    """Return the token of each credential of the registry."""
    return {
        "fts": OWN,
        "token_a": pair.source_token,
        "token_b": pair.destination_token,
        "reads_a": pair.source.macaroon("DOWNLOAD,LIST"),
        "writes_b": pair.destination.macaroon("UPLOAD,DOWNLOAD,LIST,MANAGE"),
    }


def states(fts: FtsServer) -> list[str]:
    return [job.state for job in list(fts.jobs.values())]


@pytest.mark.long
def test_a_worker_that_ends_leaves_no_job_and_no_token(guarded: Pair, processes: Processes) -> None:
    pair, place = guarded, Path(processes.env["SONAR_CREDENTIALS_DIR"])
    tokens = tokens_of(pair)
    for name, token in tokens.items():
        (place / name).write_text(token)
    bundle = str(pair.source.authority.bundle)
    processes.env["SONAR_CA_BUNDLE"] = bundle
    with fts_server(token=OWN, queue_seconds=1.0, bundle=bundle) as fts:
        register(pair, fts)
        worker = processes.start(*WORKER, "-Q", "transfers", "-n", "transfers@%h")
        processes.start(*WORKER, "-Q", "control,cleanup", "-n", "control@%h")
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
    assert done.seconds == fts.jobs[done.remote_id].seconds
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


NAMED = "{name: fts, hosts: [localhost]}"


@pytest.fixture
def fts(guarded: Pair) -> Iterator[FtsServer]:
    with fts_server(token=OWN, bundle=str(guarded.source.authority.bundle)) as made:
        yield made


@pytest.fixture
def secrets(
    guarded: Pair, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setattr(poll, "POLL_SECONDS", 0.05)
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    settings.SONAR_CA_BUNDLE = str(guarded.source.authority.bundle)
    for name, token in tokens_of(guarded).items():
        secret_in(tmp_path, name, token)
    return tmp_path


def register(pair: Pair, fts: FtsServer, known_by: str = NAMED) -> None:
    url = f"http://localhost:{fts.port}"
    text = REGISTRY.format(a=pair.source.url, b=pair.destination.url, fts=url)
    assert NAMED in text
    file.load(text.replace(NAMED, known_by))


def run_due() -> None:
    for number in scheduler.claim_due(timezone.now()):
        probes.run(number)


def run_aside() -> threading.Thread:
    """Do so in a thread, which closes its own connection."""

    def run() -> None:
        run_due()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def troubles() -> list[tuple[str, str]]:
    credential_checks.check(timezone.now(), 10)
    return [(row.place, row.sentence) for row in CredentialState.objects.all()]


def waits() -> bool:
    """Say whether the test is due, waits for its credential, and nothing was recorded of it."""
    (row,) = Schedule.objects.all()
    assert not Probe.objects.exists()
    assert not Transfer.objects.exists()
    return row.skipped_because == "credential" and row.next_due <= timezone.now()


def test_a_token_that_the_service_refuses_is_no_failure_and_the_test_runs_with_the_next_one(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    secret_in(secrets, "fts", "of-yesterday")
    run_due()
    assert waits()
    assert CredentialState.objects.get().sentence == NOT_TAKEN
    run_due()
    assert fts.counted("POST") == 1
    assert troubles() == [("by-fts", NOT_TAKEN)]
    secret_in(secrets, "fts", OWN)
    assert troubles() == []
    run_due()
    assert Transfer.objects.get().state == "done"


def test_a_token_that_is_refused_midway_leaves_no_job_and_no_failure(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    fts.queue_seconds = 600
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, SOON, 0.02)
    fts.token = "another"
    worker.join()
    assert waits()
    assert CredentialState.objects.get().sentence == NOT_TAKEN
    (job,) = fts.jobs.values()
    assert job.state == "SUBMITTED"  # who does not know us does not cancel for us
    secret_in(secrets, "fts", "another")
    assert troubles() == []
    Leftover.objects.update(next_try=timezone.now() - timedelta(seconds=1))
    cleanup.clean(10)
    assert job.state == "CANCELED"
    fts.queue_seconds = 0
    run_due()
    assert Transfer.objects.get().state == "done"


def test_a_token_that_is_away_while_a_job_waits_does_it_no_harm(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    fts.queue_seconds = 600
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, SOON, 0.02)
    (secrets / "fts").unlink()
    asked = fts.counted("GET")
    (job,) = fts.jobs.values()
    job.woken.set()
    assert wait_for(lambda: job.state == "FINISHED", SOON, 0.02)
    assert fts.counted("GET") <= asked + 1
    secret_in(secrets, "fts", OWN)
    worker.join()
    assert Transfer.objects.get().state == "done"
    assert not CredentialState.objects.exists()


def test_a_token_that_stays_away_until_the_limit_is_no_failure_either(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    SizeClass.objects.update(timeout_seconds=8)
    fts.queue_seconds = 600
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, SOON, 0.02)
    (secrets / "fts").unlink()
    worker.join()
    assert waits()
    assert CredentialState.objects.get().sentence == "No such file or directory"


def test_a_service_knows_us_by_a_token_of_an_issuer(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    issuer = Issuer(guarded.source.authority, "the-secret-of-a-client").start()
    try:
        kind = f"kind: client_credentials, issuer: {issuer.url}, client_id: {CLIENT_ID}, scope: fts"
        register(guarded, fts, f"{{name: fts, hosts: [localhost], {kind}}}")
        secret_in(secrets, "fts", issuer.secret)
        fts.token = "Bearer"  # any
        run_due()
    finally:
        issuer.stop()
    assert Transfer.objects.get().state == "done"
    (token,) = issuer.tokens
    said = [words for _, _, words in fts.heard]
    assert said
    assert all(f"Bearer {token}" in words for words in said)
    assert issuer.secret not in "".join(said)
    assert issuer.forms[0]["scope"] == "fts"
    assert issuer.forms[0]["audience"] == f"http://localhost:{fts.port}"
