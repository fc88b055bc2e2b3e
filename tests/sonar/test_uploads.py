"""Uploaded secrets: looked at, kept encrypted, found by workers, and bound to where they belong."""

import time
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from sonar.credentials import uploads as looked_at
from sonar.credentials.sources.base import CredentialError
from sonar.credentials.uploads import UploadError
from sonar.models import Credential, CredentialState, Endpoint, UploadedSecret
from sonar.movers.base import Where
from sonar.movers.catalogue import describe
from sonar.people.roles import Role
from sonar.registry import redacted, secrets, uploads
from sonar.registry.uploads import NewSecret, Uploader
from sonar.work import credential_checks
from sonar.work.credential_secrets import UploadedSecret as OfWorker
from sonar.work.credential_secrets import directory, secret_of
from sonar.work.transfer_request import end_at
from tests.accounts import account, logged_in
from tests.credentials import bind
from tests.sonar.test_credential_states import jwt
from tests.sonar.test_token_sources import certificate
from tests.sonar.world import endpoint

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
TOKEN = "qW3vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue7"
URL = "https://se.glasgow.example:8443/atlas"


@pytest.fixture(autouse=True)
def directories(settings, tmp_path):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    return tmp_path


@pytest.fixture
def glasgow() -> Endpoint:
    return endpoint("GLASGOW", base_url=URL)


def upload(end: Endpoint, text: str = TOKEN, kind: str = "file", **by: object) -> Credential:
    """Keep a secret as an operator does, or as the account that is named with its sites."""
    content = looked_at.read(kind, text.encode(), datetime.now(UTC))
    user = by.get("user") or account(Role.OPERATOR, name=f"operator-{time.monotonic_ns()}")
    return uploads.keep(end, NewSecret(content, kind, {}), Uploader(user, by.get("sites")), NOW)


def shown_to(end: Endpoint) -> str:
    """Return the token that a worker shows to the server of an endpoint."""
    row = Endpoint.objects.select_related("credential").get(pk=end.pk)
    return end_at(Where.SOURCE, row, "sonar/x", describe("http-tpc")).token


# What is looked at


def pem(*parts: str, days: float = 2) -> str:
    """Return parts of a certificate with its key: `certificate`, `key` or `other key`."""
    whole, other = certificate(days).decode(), certificate(days).decode()
    cut = "-----BEGIN PRIVATE KEY"
    texts = {
        "certificate": whole.partition(cut)[0],
        "key": cut + whole.partition(cut)[2],
        "other key": cut + other.partition(cut)[2],
    }
    return "".join(texts[part] for part in parts)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("file", "", "The secret is empty. A token has at most"),
        ("file", "two words", "This is not a token. A token has at most"),
        ("file", pem("certificate", "key"), "This is a certificate or a key"),
        ("file", '{"access_token": "x"}', "upload only the value of “access_token”"),
        ("file", jwt(-60), "This secret expired on"),
        ("file", "x" * 64_001, "A secret must not be larger than 64 kB"),
        (
            "client_credentials",
            "two\nlines",
            "This is not a client secret. A client secret is one line",
        ),
        ("macaroon", "two words", "This is not a token."),
        ("macaroon", pem("certificate"), "The file contains no private key."),
        ("x509", TOKEN, "This is not a certificate. Upload a certificate followed by its"),
        (
            "x509",
            pem("certificate"),
            "The file contains no private key. Upload a certificate followed by",
        ),
        ("x509", pem("key"), "The file contains no certificate."),
        ("x509", pem("certificate", "other key"), "does not belong to the first certificate"),
        ("x509", pem("certificate", "key", days=-1), "This secret expired on"),
    ],
)
def test_what_cannot_be_used_is_refused_and_says_what_can(kind: str, text: str, why: str):
    with pytest.raises(UploadError) as refusal:
        looked_at.read(kind, text.encode(), datetime.now(UTC))
    assert why in str(refusal.value)
    assert not text or text.rsplit(maxsplit=1)[-1] not in str(refusal.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(UploadError, match=r"This is not text\. A token has"):
        looked_at.read("file", b"\xff\xfe", NOW)


def test_what_can_be_used_says_how_long():
    for kind, text in [("file", jwt(3600)), ("x509", pem("certificate", "key", days=1 / 24))]:
        end = looked_at.read(kind, f"{text}\n".encode(), datetime.now(UTC)).expires_at
        assert end
        assert abs(end - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=5)
    assert TOKEN not in repr(looked_at.read("file", TOKEN.encode(), NOW))


# What is kept


def test_a_secret_is_kept_encrypted_and_workers_show_it_to_its_own_server(glasgow: Endpoint):
    credential = upload(glasgow)
    assert (credential.name, credential.hosts) == (
        "GLASGOW_DATADISK",
        ["se.glasgow.example:8443"],
    )
    assert shown_to(glasgow) == TOKEN
    with connection.cursor() as cursor:
        cursor.execute("SELECT convert_from(content, 'UTF8'), * FROM sonar_uploadedsecret")
        assert TOKEN not in str(cursor.fetchall())
    rows = [*UploadedSecret.objects.all(), *Credential.objects.all(), *Endpoint.objects.all()]
    assert TOKEN not in serializers.serialize("json", rows) + str(rows)


def test_a_worker_with_another_key_says_so_and_shows_nothing(glasgow: Endpoint, settings):
    upload(glasgow)
    settings.SECRET_KEY = "another"
    credential_checks.check(NOW, 5)
    assert "a different SONAR_CREDENTIALS_KEY" in CredentialState.objects.get().sentence
    settings.SONAR_CREDENTIALS_KEY = "only for tests"
    with pytest.raises(CredentialError, match="a different SONAR_CREDENTIALS_KEY"):
        secret_of(Credential.objects.get()).read()


def test_a_row_that_is_put_at_another_credential_is_of_no_use(glasgow: Endpoint):
    upload(glasgow)
    lancs = endpoint("LANCS", base_url="https://evil.example/x")
    other = upload(lancs, "my-own-token-of-no-use")
    UploadedSecret.objects.filter(credential=other).update(
        content=UploadedSecret.objects.get(credential__name="GLASGOW_DATADISK").content
    )
    with pytest.raises(CredentialError, match="a different SONAR_CREDENTIALS_KEY"):
        secret_of(other).read()


def test_a_file_of_the_same_name_is_never_read_not_even_once_the_upload_is_removed(
    glasgow: Endpoint, directories
):
    (directories / "GLASGOW_DATADISK").write_text("kept-by-somebody-else")
    credential = upload(glasgow)
    assert shown_to(glasgow) == TOKEN
    uploads.remove(credential)
    with pytest.raises(CredentialError, match="the secret was not uploaded"):
        secret_of(credential).read()
    credential_checks.check(NOW, 5)
    assert CredentialState.objects.get().sentence.startswith("the secret was not uploaded")


def test_another_secret_takes_its_place_and_what_was_wrong_is_forgotten(glasgow: Endpoint):
    upload(glasgow, jwt(20_000, life=100_000))
    credential_checks.check(NOW, 5)
    assert CredentialState.objects.get().sentence == "the uploaded secret expires soon"
    first = Credential.objects.get().uploaded_at
    upload(glasgow)
    assert not CredentialState.objects.exists()
    assert (Credential.objects.count(), shown_to(glasgow)) == (1, TOKEN)
    assert first == NOW


def test_no_text_has_an_uploaded_secret_of_whichever_endpoint(glasgow: Endpoint):
    redacted.for_all("the registry is read")
    upload(glasgow, "sZ8vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue9")
    assert redacted.for_all("400 for sZ8vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue9") == "400 for ***"
    other = "bD4vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue2"
    upload(glasgow, other)
    assert redacted.for_operators(f"400 for {other[:20]}") == "400 for ***"


def test_programs_get_a_file_that_only_we_may_read_as_long_as_it_is_the_newest(glasgow: Endpoint):
    proxy = pem("certificate", "key")
    credential = upload(glasgow, proxy, "x509")
    path = secret_of(credential).file()
    assert path.read_text() == proxy.strip()
    assert (path.stat().st_mode & 0o777, directory().stat().st_mode & 0o777) == (0o600, 0o700)
    credential_checks.check(NOW, 5)
    assert path.exists()
    assert not CredentialState.objects.exists()
    upload(glasgow, pem("certificate", "key"), "x509")
    credential_checks.check(NOW, 5)
    assert not path.exists()


def test_a_database_that_does_not_answer_lets_the_test_wait(glasgow: Endpoint, monkeypatch):
    credential = upload(glasgow)

    def away(_: Credential) -> str:
        raise OperationalError

    monkeypatch.setattr(secrets, "secret_of", away)
    with pytest.raises(
        CredentialError, match="the database, which holds the secret, is not responding"
    ):
        OfWorker(credential).read()


# Where it may go


def test_an_endpoint_with_an_uploaded_secret_is_not_pointed_elsewhere(glasgow: Endpoint):
    upload(glasgow)
    row = Endpoint.objects.get()
    row.base_url = "https://evil.example:8443/atlas"
    with pytest.raises(ValidationError, match="is not valid for the host and port of its base URL"):
        row.full_clean()


def test_no_secret_is_sent_in_clear(glasgow: Endpoint):
    Endpoint.objects.update(base_url="http://se.glasgow.example/atlas")
    glasgow.refresh_from_db()
    with pytest.raises(ValidationError, match="would be sent unencrypted"):
        upload(glasgow)
    assert not Credential.objects.exists()
    assert not UploadedSecret.objects.exists()


def test_what_is_uploaded_takes_no_name_that_is_there_nor_the_place_of_a_file(glasgow: Endpoint):
    bind(glasgow, "GLASGOW_DATADISK")
    mine = upload(glasgow)
    assert mine.name == "GLASGOW_DATADISK-2"
    assert Credential.objects.get(name="GLASGOW_DATADISK").uploaded_at is None
    glasgow.refresh_from_db()
    assert glasgow.credential == mine


def test_a_site_admin_replaces_no_secret_that_others_use_too(glasgow: Endpoint):
    shared = upload(glasgow)
    lancs = endpoint("LANCS", base_url="https://se.glasgow.example:8443/lancs")
    lancs.credential = shared
    lancs.save()
    lancs.refresh_from_db()
    admin = account(Role.SITE_ADMIN, lancs.site)
    mine = upload(lancs, "secret-of-lancaster-alone", user=admin, sites=[lancs.site_id])
    assert (mine.name, mine.hosts) == ("LANCS_DATADISK", ["se.glasgow.example:8443"])
    assert (shown_to(glasgow), shown_to(lancs)) == (TOKEN, "secret-of-lancaster-alone")


def test_a_new_secret_goes_only_where_it_is_used_whatever_the_one_before_was_for(
    glasgow: Endpoint,
):
    credential = upload(glasgow)
    Credential.objects.update(hosts=["se.glasgow.example", "evil.example"], to_data_hosts=True)
    lancs = endpoint("LANCS", base_url="https://se.lancs.example/x")
    Endpoint.objects.filter(pk=lancs.pk).update(credential_lent=credential)
    upload(glasgow)
    credential.refresh_from_db()
    assert credential.hosts == ["se.glasgow.example:8443", "se.lancs.example:443"]
    assert not credential.to_data_hosts


def test_what_nothing_uses_any_more_is_deleted_with_its_secret(glasgow: Endpoint):
    credential = upload(glasgow)
    assert not uploads.forget_unused(credential)
    Endpoint.objects.update(credential=None)
    assert uploads.forget_unused(credential)
    assert not UploadedSecret.objects.exists()


def test_the_command_says_which_are_uploaded(glasgow: Endpoint):
    credential, out = upload(glasgow), StringIO()
    call_command("credentials", stdout=out)
    assert out.getvalue().splitlines()[1].split()[-1] == "uploaded"
    uploads.remove(credential)
    with pytest.raises(CommandError, match="The uploaded secret of the credential GLASGOW"):
        call_command("credentials", stdout=out)
    assert TOKEN not in out.getvalue()


def test_the_admin_says_where_it_is_and_never_what(glasgow: Endpoint):
    credential = upload(glasgow, jwt(3600))
    client = logged_in(account(Role.ADMINISTRATOR))
    for path in ("", f"{credential.pk}/change/"):
        answer = client.get(f"/admin/sonar/credential/{path}").content.decode()
        assert "uploaded 20 Nov 04:00 UTC by operator-" in answer
        assert "; stored encrypted" in answer
        assert UploadedSecret.objects.get().content.decode() not in answer
    uploads.remove(credential)
    assert secrets.words(Credential.objects.get()) == "removed after it was uploaded"


def test_an_uploaded_secret_does_not_follow_its_issuer_to_another_server(
    glasgow: Endpoint, tmp_path
):
    settings = {"issuer": "https://issuer.example/atlas", "client_id": "sonar"}
    content = looked_at.read("client_credentials", b"a-client-secret", NOW)
    by = Uploader(account(Role.OPERATOR), None)
    row = uploads.keep(glasgow, NewSecret(content, "client_credentials", settings), by, NOW)
    client = logged_in(account(Role.ADMINISTRATOR))
    path = f"/admin/sonar/credential/{row.pk}/change/"
    form = client.get(path).context["adminform"].form
    sent = {name: value for name, value in form.initial.items() if value is not None}
    sent |= {"hosts": ",".join(row.hosts)}
    for change in (
        {"issuer": "https://attacker.example/atlas"},
        {"issuer": "https://issuer.example:8443/atlas"},
        {"issuer": "", "client_id": "", "kind": "file"},
    ):
        answer = client.post(path, sent | change)
        assert "The uploaded secret belongs to the previous" in answer.content.decode()
        file = f"credentials: [{{name: {row.name}, hosts: {row.hosts}, kind: "
        file += (
            "file}]"
            if "kind" in change
            else (f"client_credentials, issuer: '{change['issuer']}', client_id: sonar}}]")
        )
        (tmp_path / "grid.yaml").write_text(file)
        with pytest.raises(CommandError, match="belongs to the previous kind or issuer"):
            call_command("load_registry", str(tmp_path / "grid.yaml"), stdout=StringIO())
    row.refresh_from_db()
    assert (row.issuer, row.kind) == (settings["issuer"], "client_credentials")
    row.issuer = "https://issuer.example/other"
    row.full_clean()
    # Who uploads a secret says for which issuer it is.
    moved = settings | {"issuer": "https://another.example/"}
    again = uploads.keep(glasgow, NewSecret(content, "client_credentials", moved), by, NOW)
    assert (again.pk, again.issuer) == (row.pk, "https://another.example/")
    uploads.remove(again)
    again.issuer = "https://issuer.example/"
    again.full_clean()
