"""What services know us by: which kinds it may be of, and what happens while it does not work."""

import json
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from sonar import scheduler
from sonar.credentials import cache
from sonar.models import (
    Credential,
    CredentialState,
    Endpoint,
    Mesh,
    Probe,
    Schedule,
    SizeClass,
    Transfer,
)
from sonar.movers.base import MoverError
from sonar.movers.fts3.rest import NOT_TAKEN
from sonar.obstacles import credential_states
from sonar.obstacles.credential_states import SERVICE, CredentialProblem, CredentialUse
from sonar.ordering import request_probes
from sonar.people.roles import Role
from sonar.registry import file
from sonar.work import credential_checks, probes, transfer_request
from sonar.work.transfer_request import CredentialWait
from tests.accounts import account
from tests.needs import needs
from tests.sonar.test_credential_states import jwt
from tests.sonar.test_mesh_services import HOSTS, URL, queued, served, two_ends
from tests.sonar.world import NOW
from tests.storage.fts import FtsServer, fts_server
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in
from tests.storage.xrootd import Authority

pytestmark = pytest.mark.django_db
SECRET = "Hq7Zt4Wm9Xc2Ln5v"
WAITS = (
    "The credential for the service of the mesh by-fts does not work, so tests that need it are "
    "waiting."
)


@pytest.fixture
def secrets(settings, tmp_path: Path) -> Path:
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    for name in ("a", "b", "a-lent", "b-lent"):
        secret_in(tmp_path, name, f"token-of-{name}")
    return tmp_path


@pytest.fixture
def fts() -> Iterator[FtsServer]:
    with fts_server(token=SECRET) as made:
        yield made


def known_at(fts: FtsServer, name: str = "by-fts") -> Mesh:
    """Return a mesh whose service is this one, which knows us by a token in a file."""
    Credential.objects.create(name="fts", hosts=["127.0.0.1"])
    return served(name, service=fts.url)


def use_of(made: Mesh) -> CredentialUse:
    assert made.service_credential_id
    return CredentialUse(made.service_credential_id, made.pk, SERVICE)


def fails(made: Mesh) -> None:
    trouble = CredentialProblem("the secret is empty", holds=True)
    credential_states.record_failure(use_of(made), trouble, timezone.now())


def checked() -> list[tuple[str, bool, str]]:
    credential_checks.check(timezone.now(), 10)
    rows = CredentialState.objects.filter(role=SERVICE)
    return [(row.place, row.holds, row.sentence) for row in rows]


def held() -> set[tuple[str, str]]:
    rows = Schedule.objects.filter(skipped_because="credential")
    return set(rows.values_list("mesh__name", "source__name"))


# Who saves


IAM = {"kind": "client_credentials", "issuer": "https://iam.example", "client_id": "sonar"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "file"}, ""),
        (IAM | {"scope": "fts"}, ""),
        (IAM | {"scope": "fts fts:submit-transfer"}, ""),
        (
            IAM,
            "has no scope: administrators set the scope that the service requires, for example "
            "fts.",
        ),
        ({"kind": "macaroon"}, "only storage endpoints issue macaroons"),
        (
            {"kind": "x509"},
            "would have to be delegated to the service, which Sonar does not support",
        ),
        ({"kind": "gone"}, "is of an unknown kind: the kind must be file"),
    ],
)
def test_a_service_can_know_us_by_tokens_that_are_for_it(values: dict[str, str], words: str):
    made = Mesh(name="x", mover="fts3", service=URL)
    made.service_credential = Credential.objects.create(name="fts", hosts=HOSTS, **values)
    if not words:
        made.service_credential.full_clean()
        made.full_clean()
        return
    with pytest.raises(ValidationError) as caught:
        made.full_clean()
    (sentence,) = caught.value.message_dict["service_credential"]
    assert words in sentence
    if "scope" not in words:
        assert "must be file or client_credentials." in sentence


@pytest.mark.parametrize(
    "scope", ["fts ", "fts  x", 'f"ts', "fts\n", "storage.read:/", "fts storage.x"]
)
def test_a_scope_is_words_of_a_service(scope: str):
    with pytest.raises(ValidationError) as caught:
        Credential(name="fts", hosts=HOSTS, scope=scope, **IAM).full_clean()
    assert list(caught.value.message_dict) == ["scope"]


def test_only_who_gets_tokens_has_a_scope():
    with pytest.raises(ValidationError, match="A credential of the kind file has no scope"):
        Credential(name="fts", hosts=HOSTS, scope="fts").full_clean()


REGISTRY = """
credentials: [{name: fts, hosts: ["fts.example:8446"], kind: KIND}]
sites: [{name: A}]
endpoints: [{name: A_DISK, site: A, base_url: "https://a.example/data"}]
meshes:
  - {name: x, mover: fts3, service: "https://fts.example:8446", service_credential: fts,
     every: {small: 1h}}
"""
OF_CLIENT = "client_credentials, issuer: https://iam.example, client_id: sonar, scope: fts"


def test_a_credential_stays_of_a_kind_that_its_services_can_know_us_by(client):
    file.load(REGISTRY.replace("KIND", OF_CLIENT))
    assert Credential.objects.get().scope == "fts"
    said = (
        r"credentials\[0\].kind .*The mesh x uses this credential for its service. The credential"
    )
    for kind in ("macaroon", OF_CLIENT.replace("scope: fts", 'scope: ""')):
        with pytest.raises(file.RegistryError, match=said):
            file.load(REGISTRY.partition("sites:")[0].replace("KIND", kind))
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    path = f"/admin/sonar/credential/{Credential.objects.get().pk}/change/"
    form = {"name": "fts", "hosts": HOSTS[0], "kind": "macaroon"}
    form |= {"issuer": "", "client_id": "", "scope": ""}
    assert "The mesh x uses this credential for its service." in client.post(path, form).text
    assert client.post(path, form | {"kind": "file"}).status_code == 302
    # What leaves the service and changes its kind in one file is fine.
    other = 'credentials: [{name: other, hosts: ["fts.example:8446"]}, '
    without = REGISTRY.replace("service_credential: fts", "service_credential: other")
    file.load(without.replace("credentials: [", other).replace("KIND", "macaroon"))
    assert Credential.objects.get(name="fts").kind == "macaroon"


def test_a_state_is_at_one_place():
    a, _ = two_ends()
    made = served()
    facts = {"credential": made.service_credential, "since": NOW, "checked_at": NOW, "holds": True}
    for place in (
        {"role": "service", "endpoint": a},
        {"role": "own", "mesh": made},
        {"role": "service", "endpoint": a, "mesh": made},
        {"role": "service"},
        {"role": "other", "mesh": made},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            CredentialState.objects.create(**facts, **place)
    for _ in range(2):
        fails(made)
    assert CredentialState.objects.get().place == "by-fts"


# Who plans and orders


def test_scheduled_tests_of_its_mesh_wait_and_others_run():
    a, b = two_ends()
    made = served()
    served("fetched", mover="http-tpc", service="", service_credential=None)
    fails(made)
    scheduler.claim_due(NOW)
    assert held() == {("by-fts", a.name), ("by-fts", b.name)}
    assert Probe.objects.exclude(mesh=made).count() == 2
    credential_states.clear(use_of(made))
    Probe.objects.all().delete()
    scheduler.claim_due(NOW + timedelta(seconds=1))
    assert held() == set()
    assert Probe.objects.filter(mesh=made).exists()


def test_an_order_waits_and_runs_when_it_works_again():
    a, b = two_ends()
    made = served()
    fails(made)
    request = request_probes.ProbeRequest(a, b, SizeClass.objects.get(name="small"), "fts3")
    (probe,) = request_probes.order([request], NOW)
    assert (probe.state, probe.waits_because) == ("waiting", WAITS)
    credential_states.clear(use_of(made))
    assert scheduler.start_waiting(NOW) == [probe.id]


# Who runs them


def test_a_scheduled_test_is_due_again_with_the_reason_and_nothing_is_recorded(secrets, fts):
    a, b = two_ends()
    known_at(fts)
    for number in scheduler.claim_due(NOW):
        probes.run(number)
    assert not Transfer.objects.exists()
    assert not Probe.objects.exists()
    waits = Schedule.objects.filter(skipped_because="credential")
    assert set(waits.values_list("next_due", flat=True)) == {NOW}
    assert checked() == [("by-fts", True, "No such file or directory")]
    since = CredentialState.objects.get().since
    secret_in(secrets, "fts", "another")
    # What there is now FTS does not take, which only it can tell.
    assert checked() == [("by-fts", True, NOT_TAKEN)]
    assert CredentialState.objects.get().since == since
    secret_in(secrets, "fts", SECRET)
    assert checked() == []
    assert {path for _, path, _ in fts.heard} == {"/whoami"}
    assert len(scheduler.claim_due(NOW + timedelta(seconds=10))) == 2
    assert {a, b}


def test_an_order_that_a_worker_has_goes_back_to_those_that_wait(secrets, fts):
    a, b = two_ends()
    known_at(fts)
    probe = queued(a, b)
    probes.run(probe.id)
    probe.refresh_from_db()
    assert (probe.state, probe.waits_because) == ("waiting", WAITS)
    assert not Transfer.objects.exists()


def test_a_test_in_the_foreground_says_so_and_ends(secrets, fts):
    two_ends()
    known_at(fts)
    with pytest.raises(CommandError) as caught:
        call_command(
            "probe", "A_DATADISK", "B_DATADISK", "small", "--mover=fts3", stdout=StringIO()
        )
    assert str(caught.value) == f"Not started: {WAITS} Nothing was recorded."
    assert not Probe.objects.exists()


def test_what_is_in_its_file_is_looked_at_before_it_expires(secrets):
    served()
    for seconds, holds, said in (
        (800, False, "the secret in the credential file expires soon"),
        (500, True, "the secret in the credential file is about to expire"),
        (-1, True, "the token has expired"),
    ):
        CredentialState.objects.all().delete()
        secret_in(secrets, "fts", jwt(seconds))
        assert checked() == [("by-fts", holds, said)]


def test_a_mesh_that_rests_needs_no_credential(secrets):
    made = served()
    fails(made)
    Mesh.objects.update(enabled=False)
    assert checked() == []


def test_while_a_service_does_not_answer_nothing_changes(secrets):
    made = served(
        service="http://127.0.0.1:9",
        service_credential=Credential.objects.create(name="fts", hosts=["127.0.0.1"]),
    )
    fails(made)
    secret_in(secrets, "fts", SECRET)
    assert checked() == [("by-fts", True, "the secret is empty")]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        *((200, ""), (404, ""), (500, "the secret is empty"), (429, "the secret is empty")),
        *((401, "FTS, GET whoami: 401 Unauthorized"), (403, "FTS, GET whoami: 403 Forbidden")),
    ],
)
def test_an_answer_is_that_of_who_knows_us_or_not_or_says_nothing(
    secrets, fts, status: int, said: str
):
    fails(known_at(fts))
    secret_in(secrets, "fts", "another")
    fts.trick = lambda _method, _path, _body: (status, {}, b"{}")
    assert [state[2] for state in checked()] == [said] * bool(said)


def test_the_command_asks_services(secrets, fts):
    known_at(fts)
    secret_in(secrets, "fts", "another")
    out = StringIO()
    call_command("credentials", stdout=out)
    assert "mesh by-fts" in out.getvalue()
    with pytest.raises(CommandError) as caught:
        call_command("credentials", "--ask", stdout=out)
    assert f"fts as service of by-fts: {NOT_TAKEN}." in str(caught.value)
    fails(Mesh.objects.get())
    with pytest.raises(
        CommandError, match=r"fts as service of by-fts, since .*: the secret is empty; tests"
    ):
        call_command("credentials", stdout=out)
    secret_in(secrets, "fts", SECRET)
    call_command("credentials", "--ask", stdout=out)
    assert SECRET not in out.getvalue()


# Tokens of an issuer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    needs("openssl")
    place = tmp_path_factory.mktemp("authority")
    yield Authority(place)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def issuer(authority: Authority, settings) -> Iterator[Issuer]:
    settings.SONAR_CA_BUNDLE = str(authority.bundle)
    started = Issuer(authority, SECRET).start()
    yield started
    started.stop()


@pytest.fixture
def given(issuer: Issuer, fts: FtsServer, secrets: Path) -> Mesh:
    """Return a mesh whose service knows us by tokens of an issuer."""
    secret_in(secrets, "fts", SECRET)
    facts = {"kind": "client_credentials", "issuer": issuer.url, "client_id": CLIENT_ID}
    made = Credential.objects.create(name="fts", hosts=["127.0.0.1"], scope="fts", **facts)
    two_ends()
    fts.token = ""
    return served(service=fts.url, service_credential=made)


def order_of(given: Mesh) -> str:
    """Return the token that the service of a mesh would be shown for a test."""
    a, b = Endpoint.objects.order_by("name")
    order = transfer_request.order_for(queued(a, b, given))
    Probe.objects.all().delete()
    return order.service.token()


def claims_of(token: str) -> dict[str, object]:
    content = token.split(".")[1]
    return json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))


def test_an_issuer_gives_a_token_for_the_origin_of_the_service_with_its_scope(given, issuer, fts):
    token = order_of(given)
    claims = claims_of(token)
    assert (claims["aud"], claims["scope"]) == (fts.url, "fts")
    assert order_of(given) == token
    assert len(issuer.tokens) == 1
    Credential.objects.filter(name="fts").update(audience="fts-of-the-grid")
    assert claims_of(order_of(Mesh.objects.get()))["aud"] == "fts-of-the-grid"


def test_an_issuer_that_grants_another_scope_is_a_trouble_of_the_credential(given, issuer):
    issuer.changes = {"token": {"scope": "openid"}}
    a, b = Endpoint.objects.order_by("name")
    with pytest.raises(MoverError) as caught:
        transfer_request.order_for(queued(a, b, given))
    wait = transfer_request.awaited(Probe.objects.get(), caught.value)
    assert isinstance(wait, CredentialWait)
    assert wait.trouble == CredentialProblem("the issuer does not grant fts", holds=True)
    assert wait.use == use_of(given)


def test_a_token_that_is_refused_is_not_kept(given, issuer, fts, monkeypatch):
    order_of(given)
    fts.token = "none of these"
    fails(given)
    for number in (1, 2):
        (state,) = checked()
        assert state[2] == NOT_TAKEN
        assert len(issuer.tokens) == number
    issuer.refuses = 400
    assert "the issuer did not issue a token" in checked()[0][2]
    monkeypatch.setattr(cache, "RETRY_SECONDS", 0)
    fts.token, issuer.refuses = "Bearer", 0  # any
    assert checked() == []
