"""No secret of a credential, and no token that was given for one, is to be found anywhere.

Real workers ask an issuer and an endpoint for tokens, both of which repeat what they were shown,
and run tests at servers that repeat the tokens (tests.storage.echo). Then all that is kept, said
or shown is searched, and while they run the environments and command lines of all processes.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from sonar import tasks
from sonar.credentials import cache as token_cache
from sonar.models import Credential, CredentialState, Endpoint, Probe, Site, Transfer
from sonar.people.roles import Role
from tests.accounts import account
from tests.storage.echo import BASE, DECENT, HOST
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in
from tests.storage.serving import AnyMethod, serving
from tests.storage.test_planted import (
    Planted,
    everything_in_redis,
    forms_of,
    in_rows,
    in_text,
    of_admin,
    ordered,
    start_echo,
)
from tests.storage.workers import Processes
from tests.storage.xrootd import Authority

pytestmark = pytest.mark.usefixtures("real_commits")

SECRETS = {
    "client": "hB5wQm8sXz2Vc7Lk4Tn9Rd3Pf6Yj1Ga0Ue",
    "wrong": "Jq3xNv6Zb9Mw2Kt5Hs8Cr1Fy4Dg7Pl0Aio",
    "macaroon": "Rt8Lp2Wn5Xk1Vs9Qz4Bm7Hc3Gd6Jf0Yea",
}
# Some ways of writing; tests/storage/test_planted.py has all.
WAYS = ("plain", "base64", "hex", "escaped", "json")
TELLING = {f"failure.{way}" for way in WAYS}


class Telling(AnyMethod):
    """An endpoint that gives no macaroon and repeats who asks."""

    def serve(self) -> None:
        content = json.dumps({"macaroon": 5, "told": str(self.headers)}).encode()
        self.answer(403, {}, content, str(self.headers["Authorization"]))


@dataclass
class Run:
    """What has run: its processes, its issuer, and what was seen of processes meanwhile."""

    processes: Processes
    issuer: Issuer
    cache: Path
    queue: str
    seen: set[str]


@pytest.fixture
def telling() -> Iterator[int]:
    with serving(Telling) as server:
        yield server.server_port


@pytest.fixture
def issuer(authority: Authority) -> Iterator[Issuer]:
    started = Issuer(authority, SECRETS["client"]).start()
    yield started
    started.stop()


def credentials_of(issuer: Issuer) -> dict[str, Credential]:
    of_issuer = {"issuer": issuer.url, "client_id": CLIENT_ID, "kind": "client_credentials"}
    facts = {"client": of_issuer, "wrong": of_issuer, "macaroon": {"kind": "macaroon"}}
    return {
        name: Credential.objects.create(name=name, hosts=[HOST, "127.0.0.1"], **values)
        for name, values in facts.items()
    }


def endpoint(name: str, url: str, credential: Credential) -> Endpoint:
    site, _ = Site.objects.get_or_create(name="Planted")
    facts = {"lend_credential": True, "inbound_cap": 99, "outbound_cap": 99}
    return Endpoint.objects.create(
        name=name, site=site, base_url=url, credential=credential, **facts
    )


def order_all(issuer: Issuer, ports: dict[str, int], telling: int) -> int:
    """Order tests of every way of telling; return how many wait in the end."""
    credentials = credentials_of(issuer)
    ends = {
        name: endpoint(name, f"http://{HOST}:{port}/{BASE}", credentials["client"])
        for name, port in ports.items()
        if name == DECENT or name in TELLING
    }
    good = ends.pop(DECENT)
    url = f"http://127.0.0.1:{telling}/"
    without = [
        endpoint("NO_MACAROON", url, credentials["macaroon"]),
        endpoint("REFUSED", f"http://{HOST}:9/other", credentials["wrong"]),
    ]
    probes = [ordered(good, end) for end in (*ends.values(), *without)]
    probes += [ordered(end, good, "push") for end in ends.values()]
    for probe in probes:
        tasks.transfer.delay(str(probe.id))
    return len(without)


def watch_processes(processes: Processes, seen: set[str], over: threading.Event) -> None:
    """Note the environments and command lines of the processes of a test until it is over."""
    while not over.wait(0.05):
        for process in [*processes.running]:
            try:
                family = psutil.Process(process.pid)
                for each in (family, *family.children(recursive=True)):
                    place = Path(f"/proc/{each.pid}")
                    seen.update(
                        (place / name).read_bytes().decode(errors="replace")
                        for name in ("environ", "cmdline")
                    )
            except (psutil.Error, OSError):
                continue


@pytest.fixture
def run(
    tmp_path: Path, authority: Authority, issuer: Issuer, telling: int, settings: Any
) -> Iterator[Run]:
    settings.SONAR_CREDENTIALS_DIR = tmp_path / "credentials"
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    settings.SONAR_CREDENTIALS_DIR.mkdir()
    for name, secret in SECRETS.items():
        secret_in(settings.SONAR_CREDENTIALS_DIR, name, secret)
    places = {
        "SONAR_CREDENTIALS_DIR": str(settings.SONAR_CREDENTIALS_DIR),
        "SONAR_TOKEN_CACHE_DIR": str(settings.SONAR_TOKEN_CACHE_DIR),
        "SONAR_CA_BUNDLE": str(authority.bundle),
    }
    over, seen, processes = threading.Event(), set[str](), Processes(tmp_path, places)
    watching = threading.Thread(target=watch_processes, args=(processes, seen, over))
    with ExitStack() as stack:
        stack.callback(processes.close)
        stack.callback(over.set)
        watching.start()
        left = order_all(issuer, start_echo(tmp_path, stack), telling)
        queue = everything_in_redis()
        processes.start(
            "worker", "--pool=threads", "--loglevel=DEBUG", "-c", "16",
            "-Q", "transfers,cleanup",
        )  # fmt: skip
        waits = Probe.objects.filter(state="waiting")
        processes.wait_for(lambda: Probe.objects.count() == left == waits.count(), seconds=300)
        before = timezone.now()
        tasks.check_credentials.delay()
        states = CredentialState.objects.filter(checked_at__gt=before)
        processes.wait_for(lambda: states.count() == left)
        yield Run(processes, issuer, settings.SONAR_TOKEN_CACHE_DIR, everything_in_redis(), seen)
        assert queue


def pages() -> str:
    """Return all that an administrator, an operator and nobody read of what has run."""
    failed = Transfer.objects.exclude(error="")
    paths = [
        "/operations/", "/api/v1/status/", "/metrics", "/api/v1/endpoints/", "/sites/Planted/",
        "/api/v1/transfers/?state=failed&state=done&page_size=1000", *of_admin(),
        *(f"/transfers/{one}/" for one in failed.values_list("id", flat=True)[:5]),
        *(f"/transfers/{one}/" for one in Probe.objects.values_list("id", flat=True)),
    ]  # fmt: skip
    text = []
    for role in (None, Role.OPERATOR, Role.ADMINISTRATOR):
        client = Client()
        if role:
            client.force_login(account(role, name=role.value))
        for path in paths if role is Role.ADMINISTRATOR else paths[:6]:
            answer = client.get(path)
            assert answer.status_code < 500, path
            streamed = answer.streaming
            content = b"".join(answer.streaming_content) if streamed else answer.content
            text.append(content.decode(errors="replace"))
    return "\n".join(text)


def command() -> str:
    out = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("credentials", "--ask", stdout=out)
    return out.getvalue() + str(caught.value)


@pytest.mark.long
def test_no_secret_and_no_token_given_for_it_is_found_anywhere(run: Run):
    """One test, as what is searched takes its time to come about."""
    # A token is of no use without its signature; of what it claims nothing is a secret.
    signatures = dict.fromkeys(token.rpartition(".")[2] for token in run.issuer.tokens)
    tokens = dict(enumerate(signatures))
    assert len(tokens) > len(WAYS)
    planted = Planted(
        {str(name): forms_of(one) for name, one in ({**SECRETS, **tokens}).items()}, []
    )
    # They were told: half of all errors hide something, and the search finds it where it may be.
    errors = list(Transfer.objects.exclude(error="").values_list("error", flat=True))
    assert len(errors) >= len(WAYS)
    assert sum("***" in error for error in errors) > len(errors) / 3, errors
    assert set(CredentialState.objects.values_list("sentence", flat=True)) == {
        "the issuer did not issue a token: 401 invalid_client",
        "the endpoint did not issue a macaroon: 403",
    }
    kept = [file for file in run.cache.iterdir() if token_cache.read(file).token]
    assert planted.tokens_in("".join(file.read_text() for file in kept))
    assert {file.stat().st_mode & 0o777 for file in run.cache.iterdir()} == {0o600}
    assert any("SONAR_TOKEN_CACHE_DIR" in text for text in run.seen)
    found = in_text("a log", run.processes.logs, planted, places=False)
    found += in_text("Redis", run.queue, planted, places=False)
    found += in_text("a process", "\n".join(run.seen), planted, places=False)
    found += in_text("a page", pages(), planted, places=False)
    found += in_text("the command", command(), planted, places=False)
    found += [line for line in in_rows(planted) if "the token" in line]
    assert "\n".join(sorted(set(found))) == ""
