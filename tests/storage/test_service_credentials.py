"""A service that does not take what it knows us by: tests between real servers wait for it."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from sonar import scheduler
from sonar.models import CredentialState, Leftover, Probe, Schedule, SizeClass, Transfer
from sonar.movers.fts3 import poll
from sonar.registry import file
from sonar.work import cleanup, credential_checks, probes
from tests.storage.conftest import Pair
from tests.storage.fts import FtsServer, fts_server
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in
from tests.storage.test_fts_chain import OWN, REGISTRY
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("real_commits", "_brief_looks")
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
    tokens = {
        "fts": OWN,
        "token_a": guarded.source_token,
        "token_b": guarded.destination_token,
        "reads_a": guarded.source.macaroon("DOWNLOAD,LIST"),
        "writes_b": guarded.destination.macaroon("UPLOAD,DOWNLOAD,LIST,MANAGE"),
    }
    for name, token in tokens.items():
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
    secret_in(secrets, "fts", "not-known")
    run_due()
    assert waits()
    assert (
        CredentialState.objects.get().sentence == "FTS, POST jobs: 401 Unauthorized: Invalid token"
    )
    run_due()
    assert fts.counted("POST") == 1
    assert troubles() == [("by-fts", "FTS, GET whoami: 401 Unauthorized: Invalid token")]
    secret_in(secrets, "fts", OWN)
    assert troubles() == []
    run_due()
    assert Transfer.objects.get().state == "done"


def test_a_token_that_is_refused_midway_leaves_no_job_and_no_failure(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    fts.queue_seconds = 60
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, 20, 0.02)
    fts.token = "another"
    worker.join(30)
    assert waits()
    assert "401" in CredentialState.objects.get().sentence
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
    fts.queue_seconds = 1
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, 20, 0.02)
    (secrets / "fts").unlink()
    asked = fts.counted("GET")
    assert wait_for(lambda: next(iter(fts.jobs.values())).state == "FINISHED", 20, 0.02)
    assert fts.counted("GET") <= asked + 1
    secret_in(secrets, "fts", OWN)
    worker.join(30)
    assert Transfer.objects.get().state == "done"
    assert not CredentialState.objects.exists()


def test_a_token_that_stays_away_until_the_limit_is_no_failure_either(
    guarded: Pair, fts: FtsServer, secrets: Path
) -> None:
    register(guarded, fts)
    SizeClass.objects.update(timeout_seconds=2)
    fts.queue_seconds = 60
    worker = run_aside()
    assert wait_for(lambda: fts.jobs, 20, 0.02)
    (secrets / "fts").unlink()
    worker.join(30)
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
        fts.token = ""
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
