"""Credentials that do not work: tests wait for them, links do not fail, and operators are told."""

import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.utils import timezone

from sonar import scheduler
from sonar.credentials import kinds, rules
from sonar.models import Credential, CredentialState, Endpoint, Probe, Schedule, SizeClass, Transfer
from sonar.movers import catalogue
from sonar.movers.base import Where
from sonar.movers.catalogue import kept
from sonar.notation.addresses import CredentialKind
from sonar.obstacles import credential_states
from sonar.obstacles.credential_states import LENT, OWN, CredentialProblem, CredentialUse
from sonar.ordering import request_probes
from sonar.people.roles import Role
from sonar.registry import file
from sonar.work import credential_checks, probes, transfer_request
from tests.accounts import account
from tests.credentials import bind, credential
from tests.sonar.test_token_sources import SLACK, certificate
from tests.sonar.world import NOW, held_links, mesh, queued, request, three_endpoints
from tests.storage.issuer import secret_in, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def secrets(settings, tmp_path: Path) -> Path:
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    return tmp_path


def jwt(seconds: float, life: float = 3600) -> str:
    """Return what looks like a token that ends in so many seconds."""
    claims = f'{{"exp": {time.time() + seconds}, "iat": {time.time() + seconds - life}}}'
    return f"e30.{text_of(claims.encode())}.x"


def use(end: Endpoint, role: str = OWN) -> CredentialUse:
    found = end.credential if role == OWN else transfer_request.lent_by(end)
    return CredentialUse(found.pk, end.pk, role)


def fails(end: Endpoint, role: str = OWN, *, holds: bool = True) -> None:
    credential_states.record_failure(
        use(end, role), CredentialProblem("the secret is empty", holds), timezone.now()
    )


# Who plans


def test_scheduled_tests_of_an_end_whose_own_credential_fails_wait_and_others_run():
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    mesh()
    fails(glasgow)
    scheduler.claim_due(NOW)
    names = {"GLASGOW", "LANCS", "RAL"}
    assert held_links() == {(a, b) for a in names for b in names if a != b and "GLASGOW" in (a, b)}
    assert Probe.objects.count() == 2
    credential_states.clear(use(glasgow))
    Probe.objects.all().delete()
    scheduler.claim_due(NOW + timedelta(seconds=1))
    assert held_links() == set()


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_what_is_lent_and_fails_holds_tests_in_which_its_end_is_passive(mode: str):
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow", lent="glasgow-read")
    mesh(mode=mode)
    fails(glasgow, LENT)
    scheduler.claim_due(NOW)
    away = {("GLASGOW", "LANCS"), ("GLASGOW", "RAL")}
    assert held_links() == (away if mode == "pull" else {link[::-1] for link in away})


def test_what_still_counts_holds_nothing_and_a_credential_of_before_neither():
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    mesh()
    fails(glasgow, holds=False)
    scheduler.claim_due(NOW)
    assert held_links() == set()
    fails(glasgow)
    bind(glasgow, "another", lend=True)
    Probe.objects.all().delete()
    scheduler.claim_due(NOW + timedelta(days=1))
    assert held_links() == set()


def test_an_order_waits_with_a_sentence_for_all_readers_and_runs_when_it_works_again(secrets):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lent="glasgow-read")
    fails(glasgow, LENT)
    (probe,) = request_probes.order([request(glasgow, lancs)], NOW)
    assert (probe.state, probe.waits_because) == (
        "waiting",
        "The delegated credential of GLASGOW_DATADISK does not work, so tests that need it are "
        "waiting.",
    )
    (other,) = request_probes.order([request(lancs, glasgow)], NOW)
    assert other.state == "queued"
    other.delete()
    credential_states.clear(use(glasgow, LENT))
    assert scheduler.start_waiting(NOW) == [probe.id]


# Who runs them


def test_a_scheduled_test_whose_credential_fails_is_due_again_with_the_reason(secrets):
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    mesh()
    ids = scheduler.claim_due(NOW)
    for number in ids:
        probes.run(number)
    assert not Transfer.objects.filter(source=glasgow).exists()
    assert not Transfer.objects.filter(destination=glasgow).exists()
    assert not Probe.objects.exists()
    waits = Schedule.objects.filter(skipped_because="credential")
    assert waits.count() == 4
    assert set(waits.values_list("next_due", flat=True)) == {NOW}
    state = CredentialState.objects.get(role=OWN)
    assert (state.sentence, state.holds) == ("No such file or directory", True)
    scheduler.claim_due(NOW + timedelta(seconds=10))
    assert not Probe.objects.filter(source=glasgow).exists()
    secret_in(secrets, "glasgow", "sesame")
    credential_checks.check(timezone.now(), 10)
    assert not CredentialState.objects.exists()
    assert len(scheduler.claim_due(NOW + timedelta(seconds=20))) == 4


def test_since_when_it_fails_stays_while_it_goes_on_failing():
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow")
    for minutes in range(3):
        moment = NOW + timedelta(minutes=minutes)
        credential_states.record_failure(
            use(glasgow), CredentialProblem(f"try {minutes}", holds=True), moment
        )
    state = CredentialState.objects.get()
    assert (state.since, state.sentence) == (NOW, "try 2")
    assert state.checked_at == NOW + timedelta(minutes=2)


def test_a_test_in_the_foreground_is_not_started_and_nothing_is_recorded(secrets):
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    with pytest.raises(CommandError) as caught:
        call_command(
            "probe", "GLASGOW_DATADISK", "LANCS_DATADISK", "small", "--mover=fake",
            stdout=StringIO(),
        )  # fmt: skip
    assert str(caught.value) == (
        "Not started: The credential of GLASGOW_DATADISK does not work, so tests that need it "
        "are waiting. Nothing was recorded."
    )
    assert not Probe.objects.exists()
    assert not Transfer.objects.exists()
    assert CredentialState.objects.get().holds


def test_a_secret_that_a_sentence_repeats_is_not_kept(secrets):
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow")
    secret_in(secrets, "glasgow", "Vb7nQ2xK9mW4")
    trouble = CredentialProblem("the issuer says Vb7nQ2xK9mW4", holds=True)
    credential_states.record_failure(use(glasgow), trouble, NOW)
    assert "Vb7nQ2xK9mW4" not in CredentialState.objects.get().sentence


# Who looks from time to time


def looked(seconds: float = 10) -> dict[str, tuple[bool, str]]:
    credential_checks.check(timezone.now(), seconds)
    return {row.role: (row.holds, row.sentence) for row in CredentialState.objects.all()}


@pytest.mark.parametrize(
    ("seconds", "state"),
    [
        (1000, {}),
        (500, {"own": (True, "the secret in the credential file is about to expire")}),
        (-1, {"own": (True, "the token has expired")}),
    ],
)
def test_what_is_in_a_file_is_looked_at_before_it_expires(secrets, seconds: float, state):
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow")
    secret_in(secrets, "glasgow", jwt(seconds))
    assert looked() == state


def test_what_expires_soon_and_still_lasts_for_tests_is_said_with_when(secrets):
    SizeClass.objects.update(timeout_seconds=60)
    glasgow, *_ = three_endpoints()
    bind(glasgow, "glasgow")
    secret_in(secrets, "glasgow", jwt(800))
    assert looked() == {"own": (False, "the secret in the credential file expires soon")}
    (state,) = CredentialState.objects.all()
    assert state.expires_at
    left = (state.expires_at - timezone.now()).total_seconds()
    assert left == pytest.approx(800, abs=SLACK)
    assert transfer_request.end_at(Where.SOURCE, glasgow, "sonar/x", kept("fake"), 120).token
    secret_in(secrets, "glasgow", jwt(3500))
    assert looked() == {}


def test_notes_on_what_is_no_more_used_go(secrets):
    glasgow, lancs, _ = three_endpoints()
    for end in (glasgow, lancs):
        bind(end, "one", lend=True)
        fails(end)
        fails(end, LENT)
    secret_in(secrets, "one", "sesame")
    Endpoint.objects.filter(pk=glasgow.pk).update(retired_at=NOW)
    Endpoint.objects.filter(pk=lancs.pk).update(lend_credential=False)
    assert looked(seconds=0) == {"own": (True, "the secret is empty")}
    assert looked() == {}


def test_nobody_is_asked_for_what_has_never_been_used(secrets):
    glasgow, *_ = three_endpoints()
    made = bind(glasgow, "glasgow", lend=True).credential
    Credential.objects.update(
        kind="client_credentials", issuer="https://127.0.0.1:1/", client_id="sonar"
    )
    secret_in(secrets, "glasgow", "sesame")
    assert looked() == {}
    fails(glasgow)
    (state,) = looked().values()
    assert state[0]
    assert "the issuer is not responding" in state[1]
    assert made


# Kinds


def test_every_kind_has_a_source_and_a_label():
    assert kinds.names() == ["file", "client_credentials", "macaroon", "x509"]
    for kind in kinds.KINDS:
        assert kind.label.startswith(f"{kind.name}: ")
    with pytest.raises(ValueError, match="allowed: file, client_credentials, macaroon, x509"):
        kinds.describe("gone")


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"kind": "file"}, []),
        ({"kind": "gone"}, ["kind"]),
        ({"kind": "file", "issuer": "https://iam.example/"}, ["issuer"]),
        ({"kind": "macaroon", "client_id": "sonar", "audience": "x"}, ["audience", "client_id"]),
        ({"kind": "client_credentials"}, ["client_id", "issuer"]),
        ({"issuer": "https://iam.example/x"}, []),
        ({"issuer": "http://127.0.0.1:8080"}, []),
        ({"issuer": "http://iam.example"}, ["issuer"]),
        ({"issuer": "https://user:pass@iam.example"}, ["issuer"]),
        ({"issuer": "https://iam.example?x=1"}, ["issuer"]),
        ({"issuer": "https://iam.example/a b"}, ["issuer"]),
        ({"issuer": "https://"}, ["issuer"]),
        ({"issuer": "https://iam.example", "path_prefix": "atlas"}, ["path_prefix"]),
        ({"issuer": "https://iam.example", "path_prefix": "/a/../b"}, ["path_prefix"]),
        ({"issuer": "https://iam.example", "path_prefix": "/atlas", "audience": "a b"},
         ["audience"]),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_a_kind_are_refused_by_field(values, fields: list[str]):
    if "kind" not in values:
        values = {"kind": "client_credentials", "client_id": "sonar"} | values
    row = Credential(name="a", hosts=["a.example"], **values)
    if not fields:
        row.full_clean()
        return
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert sorted(caught.value.message_dict) == fields


FILE = """\
credentials:
  - name: iam
    hosts: [glasgow.example]
    kind: client_credentials
    issuer: https://iam.example/
    client_id: sonar
    path_prefix: /atlas
  - {name: mac, hosts: [glasgow.example], kind: macaroon}
  - {name: proxy, hosts: [glasgow.example], kind: x509}
"""


def test_a_registry_file_says_of_which_kind_a_credential_is():
    file.load(FILE)
    iam = Credential.objects.get(name="iam")
    assert (iam.kind, iam.issuer, iam.client_id) == (
        "client_credentials",
        "https://iam.example/",
        "sonar",
    )
    assert (iam.path_prefix, iam.audience) == ("/atlas", "")
    assert file.load(FILE).changed == {}
    for wrong, place in (
        (FILE.replace("kind: macaroon", "kind: oidc-agent"), "credentials[1].kind (line 8): "),
        (
            FILE.replace("client_id: sonar", 'client_id: ""'),
            "credentials[0].client_id (line 6): A cred",
        ),
    ):
        with pytest.raises(file.RegistryError) as caught:
            file.load(wrong)
        assert place in str(caught.value)


def test_administrators_choose_a_kind_in_the_admin(client):
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    form = {"name": "iam", "hosts": "glasgow.example", "kind": "client_credentials"}
    answer = client.post("/admin/sonar/credential/add/", form)
    assert answer.text.count("A credential of the kind client_credentials needs the ") == 2
    form |= {"issuer": "https://iam.example", "client_id": "sonar"}
    assert client.post("/admin/sonar/credential/add/", form).status_code == 302
    assert Credential.objects.get().client_id == "sonar"
    assert "client_credentials: the secret" in client.get("/admin/sonar/credential/").text


# Proxy certificates


@pytest.fixture
def takes_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fake mover take proxies as well."""
    both = frozenset({CredentialKind.BEARER_TOKEN, CredentialKind.X509_PROXY})
    movers = catalogue.MOVERS
    fake = catalogue.describe("fake")
    others = tuple(mover for mover in movers if mover is not fake)
    changed = type(fake)(**(vars(fake) | {"credentials": both}))
    monkeypatch.setattr(catalogue, "MOVERS", (*others, changed))


def with_proxy(*, lend: bool = False) -> list[Endpoint]:
    """Return two endpoints, the first with a proxy certificate."""
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "proxy", lend=lend)
    Credential.objects.update(kind="x509")
    glasgow.refresh_from_db()
    return [glasgow, lancs]


def test_a_mover_is_given_the_path_of_a_proxy_for_its_own_host_alone(secrets, takes_proxies):
    glasgow, lancs = with_proxy()
    secret_in(secrets, "proxy", certificate(9).decode())
    order = transfer_request.order_for(queued(glasgow, lancs))
    assert order.source.proxy == str(secrets / "proxy")
    assert (order.source.token, order.source.lent) == ("", "")
    assert (order.destination.proxy, order.destination.lent) == ("", "")
    assert str(secrets) not in repr(order)


def test_a_proxy_is_lent_to_nobody_and_needs_not_be(secrets, takes_proxies):
    glasgow, _ = with_proxy(lend=True)
    assert rules.lends(glasgow) is None
    assert not rules.refuses_to_lend(glasgow)
    mesh()
    scheduler.claim_due(NOW)
    assert held_links() == set()
    glasgow.credential_lent = credential("proxy", glasgow)
    with pytest.raises(ValidationError, match="proxy certificate, whose key Sonar never passes on"):
        glasgow.full_clean()


def test_a_mover_that_takes_no_proxies_is_given_none(secrets):
    glasgow, lancs = with_proxy()
    assert transfer_request.order_for(queued(glasgow, lancs)).source.proxy == ""


def test_the_command_says_what_is_wrong_with_each_kind_and_shows_no_content(secrets):
    glasgow, lancs, ral = three_endpoints()
    for end, kind in ((glasgow, "client_credentials"), (lancs, "macaroon"), (ral, "x509")):
        bind(end, kind, lend=True)
        Credential.objects.filter(name=kind).update(kind=kind)
    secret_in(secrets, "client_credentials", "Zt5mP8wQ")
    secret_in(secrets, "macaroon", "Lk3vN6rX")
    fails(Endpoint.objects.get(pk=glasgow.pk))
    out = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("credentials", stdout=out)
    said = str(caught.value).splitlines()
    assert said[1] == "  The file of the credential x509 cannot be used: No such file or directory."
    assert said[2].startswith("  client_credentials as own of GLASGOW_DATADISK, since ")
    assert said[2].endswith(" UTC: the secret is empty; tests wait.")
    assert len(said) == 3
    assert "client_credentials  client_credentials  glasgow" in out.getvalue()
    Credential.objects.filter(name="client_credentials").update(
        issuer="https://127.0.0.1:1", client_id="sonar"
    )
    with pytest.raises(CommandError) as asked:
        call_command("credentials", "--ask", stdout=out)
    said = str(asked.value).splitlines()
    assert any("the issuer is not responding" in line for line in said)
    assert "Zt5mP8wQ" not in out.getvalue() + str(caught.value) + str(asked.value)
