"""*Add site* on pages: every step is kept at once, and shown again without its secret."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sonar.models import Credential, Endpoint, EndpointCheck, Mesh, Site, UploadedSecret
from sonar.notation import windows
from sonar.ordering import request_checks
from sonar.people.roles import Role
from sonar.registry import secrets
from tests.accounts import account, logged_in
from tests.credentials import bind
from tests.matrix import responses
from tests.sonar.test_credential_states import jwt
from tests.sonar.world import endpoint, mesh

pytestmark = pytest.mark.django_db
TOKEN = "gH5vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue1"
URL = "davs://se.ecdf.example:443/atlas/disk"
SITE, NEW = "/sites/ECDF", "/sites/ECDF/add-endpoint/"
SET_UP = "/sites/ECDF/endpoints/ECDF_DATADISK/set-up/"
CREDENTIAL, START = f"{SET_UP}credential/", f"{SET_UP}start/"
PLACE = {"name": "ECDF_DATADISK", "label": "DATADISK", "base_url": URL}


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_checks, "send_check", lambda *_: None)


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR))


@pytest.fixture
def ecdf() -> Site:
    return Site.objects.create(name="ECDF", tier=2, cloud="UK")


@pytest.fixture
def admin(ecdf: Site) -> Client:
    """Return the browser of the admin of the site, and of no other."""
    return logged_in(account(Role.SITE_ADMIN, ecdf))


@pytest.fixture
def disk(ecdf: Site) -> Endpoint:
    return Endpoint.objects.create(site=ecdf, **PLACE, enabled=False)


def page(answer) -> str:
    return answer.content.decode()


def upload(client: Client, text: str = TOKEN, **form: object):
    return client.post(CREDENTIAL, {"how": "upload", "kind": "file", "text": text} | form)


def test_from_nothing_to_tests(operator: Client):
    mesh()
    endpoint("RAL", base_url="davs://se.ral.example:443/atlas/disk")
    Mesh.objects.update(mover="http-tpc")
    first = operator.post("/sites/add/", {"name": "ECDF", "tier": "2", "country": "gb"})
    assert first.url == NEW
    assert "ECDF</a> <span" not in page(operator.get(NEW))
    assert operator.post(NEW, PLACE).url == SET_UP
    assert "<strong>ECDF_DATADISK</strong> is not enabled yet" in page(operator.get("/sites/"))
    assert "Cost" not in page(operator.get(SET_UP))
    file = SimpleUploadedFile("ecdf.token", jwt(3600).encode())
    answer = operator.post(
        CREDENTIAL, {"how": "upload", "kind": "file", "content": file, "lend_credential": "on"}
    )
    assert answer.url == f"{SET_UP}#check"
    assert EndpointCheck.objects.get().started_at is None
    shown = page(operator.get(SET_UP))
    assert "Cost" in shown
    assert "Adds 2 links: 1 inbound, 1 outbound." in shown
    ended = operator.post(START, {"mesh": "uk", "budget": "60", "start": ""}, follow=True)
    assert "Started testing ECDF_DATADISK: 2 links" in page(ended)
    row = Endpoint.objects.select_related("site").get(name="ECDF_DATADISK")
    assert (row.enabled, row.budget_bytes_per_day, row.site.country) == (True, 60 * 10**9, "GB")
    assert LogEntry.objects.count() == 4


def test_what_keeps_its_tests_waiting_is_said_when_they_start(operator: Client, disk: Endpoint):
    endpoint("RAL", base_url="davs://se.ral.example:443/atlas/disk")
    mesh(mover="http-tpc")
    upload(operator)
    ended = page(operator.post(START, {"mesh": "uk", "start": ""}, follow=True))
    assert "Started testing ECDF_DATADISK: 2 links" in ended
    assert (
        "ECDF_DATADISK delegates no credential, but RAL_DATADISK needs one to read there" in ended
    )


def test_what_was_uploaded_is_never_said_again(operator: Client, disk: Endpoint):
    for form in ({"kind": "x509"}, {"kind": "client_credentials"}, {"lend_credential": "on"}, {}):
        refused = form.get("kind")
        answer = upload(operator, **form)
        assert answer.status_code == (400 if refused else 302)
        assert TOKEN not in page(answer)
        assert not refused or "Nothing was saved." in page(answer)
    for path in (SET_UP, f"{SITE}/", "/operations/", f"{SITE}/endpoints/ECDF_DATADISK/"):
        assert TOKEN not in page(operator.get(path))
    log = str(list(LogEntry.objects.values_list("change_message", "object_repr")))
    assert "Uploaded credential ECDF_DATADISK" in log
    assert TOKEN not in log + str(dict(operator.session))
    assert secrets.secret_of(Credential.objects.get()) == TOKEN


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"text": ""}, "Choose a file or paste its text."),
        ({"text": "two words"}, "This is not a token."),
        ({"content": SimpleUploadedFile("x", b"t0ken")}, "not both"),
        (
            {"kind": "client_credentials"},
            "A credential of the kind client_credentials needs the issuer.",
        ),
        ({"kind": "pigeon"}, "pigeon"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_kept(
    operator: Client, disk: Endpoint, form: dict[str, object], sentence: str
):
    answer = upload(operator, **form)
    assert answer.status_code == 400
    assert sentence in page(answer)
    assert not Credential.objects.exists()


def test_two_hundred_drafts_are_one_line_that_opens(operator: Client, disk: Endpoint):
    names = [disk.name, *(f"ECDF-{number:03}" for number in range(199))]
    Endpoint.objects.bulk_create(
        Endpoint(site=disk.site, name=name, base_url=f"{URL}/{name}", enabled=False)
        for name in names[1:]
    )
    for path in ("/sites/", f"{SITE}/", "/sites/add/", NEW):
        (line,) = responses.page(operator, path).parts(".drafts")
        assert "open" not in line.attributes, path
        assert line.part("summary").words == "200 drafts are not enabled yet", path
        assert sorted(line.texts("li")) == sorted(f"Continue with {name}" for name in names), path


def test_a_site_admin_adds_endpoints_to_the_own_site_alone(admin: Client):
    Site.objects.create(name="RAL")
    assert admin.post("/sites/add/", {"name": "X", "tier": "2"}).status_code == 403
    assert admin.post("/sites/RAL/add-endpoint/", PLACE).status_code == 403
    assert admin.post(f"{SITE}/set-up/", {"tier": "0"}).status_code == 403
    hosts = {"data_hosts": "evil.example"}
    assert admin.post(NEW, PLACE | hosts).url == SET_UP
    row = Endpoint.objects.get()
    assert (row.enabled, row.data_hosts) == (False, [])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.7", "[::1]", "192.168.1.1", "[64:ff9b::a00:1]"]
)
def test_a_site_admin_sends_no_worker_into_the_network_of_sonar(
    admin: Client, operator: Client, ecdf: Site, host: str
):
    place = PLACE | {"base_url": f"davs://{host}:8443/x"}
    answer = admin.post(NEW, place)
    assert answer.status_code == 400
    assert "This address is inside Sonar’s network" in page(answer)
    assert operator.post(NEW, place).status_code == 302
    other = {"name": "ECDF_TAPE", "base_url": f"davs://{host}:8443/tape"}
    assert admin.post(NEW, PLACE | other).status_code == 302


def test_operators_say_from_which_vantage_it_is_reached_and_site_admins_do_not(
    admin: Client, operator: Client, ecdf: Site
):
    place = PLACE | {"vantage": "Campus"}
    assert "The name of a vantage point has 1 to 40 lower-case letters" in page(
        operator.post(NEW, place)
    )
    assert admin.post(NEW, place).status_code == 302
    other = {"name": "TAPE", "base_url": "davs://se.ecdf.example:443/tape", "vantage": "campus"}
    assert operator.post(NEW, PLACE | other).status_code == 302
    named = dict(Endpoint.objects.values_list("name", "vantage"))
    assert named == {"ECDF_DATADISK": "", "TAPE": "campus"}


@pytest.mark.parametrize("place", [URL, f"{URL}/inside"])
def test_a_site_admin_learns_nothing_of_where_others_are(admin: Client, place: str):
    endpoint("RAL", base_url=URL)
    answer = page(admin.post(NEW, PLACE | {"base_url": place}))
    assert "Another endpoint uses this path" in answer
    assert "RAL_DATADISK" not in answer.partition("endpoint-base_url_error")[2]


def test_another_sites_credential_is_neither_offered_nor_taken(admin: Client, disk: Endpoint):
    ral = endpoint("RAL", base_url="davs://se.ecdf.example:443/ral")
    bind(ral, "ral-secret")
    assert "ral-secret" not in page(admin.get(SET_UP))
    known = Credential.objects.get()
    answer = admin.post(CREDENTIAL, {"how": "known", "credential": known.pk})
    assert answer.status_code == 400
    assert "Choose a listed credential" in page(answer)
    named = {"how": "file", "name": "ral-secret-file", "kind": "file"}
    assert admin.post(CREDENTIAL, named).status_code == 403
    disk.refresh_from_db()
    assert disk.credential is None
    bind(disk, "ral-secret")
    assert admin.post(CREDENTIAL, {"how": "remove"}).status_code == 403


def test_an_operator_chooses_among_credentials_for_the_host_and_names_no_file(
    operator: Client, disk: Endpoint
):
    grid = Credential.objects.create(name="grid", hosts=["se.ecdf.example"])
    other = Credential.objects.create(name="other", hosts=["se.ral.example"])
    for row, status in ((other, 400), (grid, 302)):
        sent = operator.post(CREDENTIAL, {"how": "known", "credential": row.pk})
        assert sent.status_code == status
    disk.refresh_from_db()
    assert disk.credential == grid
    named = {"how": "file", "name": "new", "kind": "file"}
    assert operator.post(CREDENTIAL, named).status_code == 403
    administrator = logged_in(account(Role.ADMINISTRATOR))
    assert "The credential grid already exists" in page(
        administrator.post(CREDENTIAL, named | {"name": "grid"})
    )
    assert administrator.post(CREDENTIAL, named).status_code == 302
    assert Credential.objects.get(name="new").hosts == ["se.ecdf.example:443"]


def test_a_site_admin_lends_the_secret_that_it_uploads_and_no_other(
    admin: Client, operator: Client, disk: Endpoint
):
    upload(admin, lend_credential="on")
    disk.refresh_from_db()
    assert disk.lend_credential
    grid = Credential.objects.create(name="grid", hosts=["se.ecdf.example"])
    operator.post(CREDENTIAL, {"how": "known", "credential": grid.pk})
    disk.refresh_from_db()
    assert (disk.credential, disk.lend_credential) == (grid, False)
    for form in ({"how": "known", "credential": grid.pk}, {"how": "none"}):
        admin.post(CREDENTIAL, form | {"lend_credential": "on"})
        disk.refresh_from_db()
        assert not disk.lend_credential
    body = {"lend_credential": True}
    sent = admin.patch(f"/api/v1/endpoints/{disk.name}/", body, "application/json")
    assert sent.status_code == 403
    disk.refresh_from_db()
    assert not disk.lend_credential


def test_a_secret_does_not_go_along_to_another_server(admin: Client, disk: Endpoint):
    upload(admin, lend_credential="on")
    moved = {"label": "", "base_url": "davs://evil.example:443/x"}
    answer = admin.post(f"{SET_UP}endpoint/", moved, follow=True)
    assert "The credential ECDF_DATADISK was for the previous server" in page(answer)
    disk.refresh_from_db()
    assert (disk.credential, disk.lend_credential) == (None, False)
    assert not UploadedSecret.objects.exists()


FAILED = [{"name": "write", "state": "failed", "seen": "403", "advice": "Ask who gave it."}]
WARNED = [{"name": "write", "state": "warning", "seen": "slow", "advice": "Look."}]


@pytest.mark.parametrize(
    ("check", "said", "main"),
    [
        (None, "This endpoint has not been checked yet.", "Run check"),
        ({"started_at": None}, "The check of this endpoint has not finished yet.", ""),
        (
            {"steps": FAILED},
            "The check of this endpoint failed in a step, so its tests are likely to fail.",
            "Check again",
        ),
        (
            {"checked": {"base URL": "davs://x.example/old"}},
            "since its base URL was changed",
            "Check again",
        ),
        ({"steps": WARNED}, "", "Start testing ECDF_DATADISK"),
        ({}, "", "Start testing ECDF_DATADISK"),
    ],
)
def test_to_start_is_the_main_button_only_after_a_check_that_did_not_fail(
    admin: Client, disk: Endpoint, check: dict[str, object] | None, said: str, main: str
):
    upload(admin)
    EndpointCheck.objects.all().delete()
    if check is not None:
        now = timezone.now()
        times = {"requested_at": now, "started_at": now, "ended_at": now} | check
        times["ended_at"] = times["started_at"]
        EndpointCheck.objects.create(endpoint=disk, **times)
    (start,) = responses.page(admin, SET_UP).parts("#start")
    assert said in start.words
    assert [button.words for button in start.parts(".btn-primary")] == [main] * bool(main)
    assert ("Start testing anyway" in start.words) is bool(said)
    assert start.parts('button[name="start"]')


def test_a_check_again_that_is_refused_says_so_at_the_check(admin: Client, disk: Endpoint):
    upload(admin)
    check = SET_UP.replace("set-up", "check")
    answer = admin.post(check, {"next": f"{SET_UP}#check"})
    assert answer.url == f"{SET_UP}#check"
    (shown,) = responses.page(admin, SET_UP).parts("#check")
    assert "was checked less than a minute ago" in shown.words
    # Another secret is checked at once, if that may be.
    upload(admin)
    (shown,) = responses.page(admin, SET_UP).parts("#check")
    assert "The check was not repeated. ECDF_DATADISK was checked less than a minute" in shown.words


def test_where_a_tested_endpoint_is_is_not_changed_here(operator: Client, disk: Endpoint):
    Endpoint.objects.update(enabled=True)
    moved = PLACE | {"base_url": "davs://x.example/z"}
    assert ("because the endpoint is enabled or retired") in page(
        operator.post(f"{SET_UP}endpoint/", moved, follow=True)
    )
    disk.refresh_from_db()
    assert disk.base_url == URL
    assert upload(operator).status_code == 302


def test_without_a_script_the_cost_is_asked_for_and_nothing_is_kept(
    operator: Client, disk: Endpoint
):
    mesh()
    Mesh.objects.update(mover="http-tpc")
    endpoint("RAL", base_url="davs://se.ral.example:443/atlas/disk")
    operator.post(CREDENTIAL, {"how": "none"})
    asked = {"mesh": "uk", "budget": "0.5", "quiet_from": "", "quiet_until": ""}
    answer = operator.post(START, asked)
    assert answer.url == f"{SET_UP}?{urlencode(asked)}#mesh"
    assert "of 500 MB" in page(operator.get(answer.url))
    half = asked | {"quiet_from": "22:00"}
    assert "Quiet hours need a start and an end. Leave both" in page(
        operator.get(f"{SET_UP}?{urlencode(half)}")
    )
    assert operator.post(START, half | {"start": ""}).status_code == 400
    disk.refresh_from_db()
    assert (disk.budget_bytes_per_day, disk.enabled) == (None, False)
    later = operator.post(START, asked | {"later": ""}, follow=True)
    assert "No tests are running yet." in page(later)
    disk.refresh_from_db()
    assert (disk.budget_bytes_per_day, disk.enabled) == (500_000_000, False)


def test_an_operator_lets_it_join_a_mesh_that_names_its_endpoints(
    operator: Client, admin: Client, disk: Endpoint
):
    ral = endpoint("RAL", base_url="davs://se.ral.example:443/atlas/disk")
    named = mesh(mover="http-tpc")
    named.sources.set([ral])
    named.destinations.set([ral])
    operator.post(CREDENTIAL, {"how": "none"})
    assert "No enabled mesh can test this endpoint" in page(admin.get(SET_UP))
    assert "uk (adds the endpoint)" in page(operator.get(SET_UP))
    assert "Adds 2 links" in page(operator.get(SET_UP))
    operator.post(START, {"mesh": "uk", "start": ""})
    assert disk in named.sources.all()
    assert disk in named.destinations.all()


def test_no_site_is_called_like_the_page_that_adds_them(operator: Client):
    answer = operator.post("/sites/add/", {"name": "add", "tier": "2", "wan_gbit_s": "fast"})
    assert answer.status_code == 400
    assert "The name add is reserved. Choose another name for the site." in page(answer)
    assert "Enter the capacity in Gbit/s" in page(answer)


def test_the_draft_says_until_when_its_credential_is_valid(
    operator: Client, disk: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    upload(operator, jwt(7200))
    end = UploadedSecret.objects.get().expires_at
    assert end
    assert abs(end - datetime.now(UTC) - timedelta(hours=2)) < timedelta(minutes=5)
    # Of another year, the page would name it, too: on New Year's Eve this token ends in one.
    monkeypatch.setattr(windows, "this_year", lambda: end.year)
    assert f"valid until {end:%-d %b %H:%M} UTC" in page(operator.get(SET_UP))
    assert ("A credential file with the same name on the workers is ignored.") in page(
        operator.get(SET_UP)
    )
    operator.post(CREDENTIAL, {"how": "remove"})
    assert "secret removed" in page(operator.get(SET_UP))


@pytest.mark.parametrize(
    "issuer", ["https://127.0.0.1:8443/", "https://[fd00::1]/", "https://10.1.2.3/o"]
)
def test_the_issuer_of_a_site_admins_client_is_not_inside_the_network_of_sonar(
    issuer, admin, operator, disk
):
    """A worker would ask it: who names it reaches what only Sonar's machines reach."""
    client = {"kind": "client_credentials", "issuer": issuer, "client_id": "ecdf"}
    refused = upload(admin, "a-client-secret", **client)
    assert (refused.status_code, "inside Sonar’s network" in page(refused)) == (400, True)
    assert not UploadedSecret.objects.exists()
    assert upload(operator, "a-client-secret", **client).status_code == 302


def queries_of(client: Client) -> dict[str, int]:
    found = {}
    for path in ("/sites/add/", NEW, f"{SET_UP}endpoint/", SET_UP):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200, path
        found[path] = len(captured)
    return found


def test_the_number_of_queries_is_the_same_for_little_and_for_much(operator, disk):
    mesh()
    queries_of(operator)  # what is read once for a process
    few = queries_of(operator)
    for number in range(6):
        other = endpoint(f"S{number}", base_url=f"davs://se{number}.example:443/disk")
        bind(other, f"of-s{number}")
        Endpoint.objects.create(
            site=disk.site, name=f"D{number}", base_url=f"{URL}{number}", enabled=False
        )
        mesh(name=f"m{number}")
    assert queries_of(operator) == few
    # Two of a new endpoint: whether the site is tested, and which names are taken.
    assert list(few.values()) == [6, 10, 8, 16]


def test_the_steps_of_a_site_that_is_tested_are_not_called_adding_one(operator: Client):
    operator.post("/sites/add/", {"name": "ECDF", "tier": "2"})
    assert "<h1>Add site: ECDF</h1>" in page(operator.get(NEW))
    assert 'value="ECDF_DATADISK"' in page(operator.get(NEW))
    operator.post(NEW, PLACE)
    assert "<h1>Add site: ECDF</h1>" in page(operator.get(SET_UP))
    Endpoint.objects.update(enabled=True)
    for path, heading in ((SET_UP, "Set up ECDF"), (f"{SITE}/set-up/", "Set up ECDF")):
        shown = " ".join(page(operator.get(path)).split())
        assert f"<h1>{heading}</h1>" in shown
        assert "Changes apply immediately." in shown
    another = " ".join(page(operator.get(NEW)).split())
    assert "<h1>Add endpoint to ECDF</h1>" in another
    assert "Tests start only after the last step." in another
    assert 'value="ECDF_DATADISK"' not in another
    assert 'value="ECDF_"' in another
