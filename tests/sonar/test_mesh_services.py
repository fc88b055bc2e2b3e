"""The service that a mesh names: who may be asked, who is given which token, and what is undone."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from sonar import scheduler
from sonar.credentials import rules
from sonar.models import Credential, Endpoint, Leftover, Mesh, Probe, Schedule, SizeClass, Transfer
from sonar.movers.base import MoverError, Where
from sonar.movers.catalogue import kept
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.ordering import request_probes
from sonar.ordering.request_probes import ProbeRequest, RefusedError
from sonar.people.roles import Role
from sonar.registry import compatibility, redacted
from sonar.registry import file as registry_file
from sonar.work import cleanup, probes, transfer_request
from tests.accounts import account
from tests.credentials import bind
from tests.movers.scripted import scripted, status
from tests.ports import free_port
from tests.sonar.world import NOW, endpoint, mesh
from tests.storage.fts import fts_server
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db
URL = "https://fts.example:8446"
HOSTS = ["fts.example:8446"]


@pytest.fixture
def tokens(settings, tmp_path: Path) -> Path:
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    for name in ("fts", "a", "b", "a-lent", "b-lent"):
        (tmp_path / name).write_text(f"token-of-{name}\n")
    return tmp_path


def two_ends(*, lend: bool = True) -> tuple[Endpoint, Endpoint]:
    ends = [endpoint(name, base_url=f"https://{name.lower()}.example/data") for name in "AB"]
    for end, name in zip(ends, "ab", strict=True):
        bind(end, name, lent=f"{name}-lent" if lend else "")
    return ends[0], ends[1]


def served(name: str = "by-fts", **values: object) -> Mesh:
    known_by, _ = Credential.objects.get_or_create(name="fts", defaults={"hosts": HOSTS})
    fields = {"mover": "fts3", "service": URL, "service_credential": known_by} | values
    return mesh(name, **fields)


def queued(source: Endpoint, destination: Endpoint, of: Mesh | None = None) -> Probe:
    small = SizeClass.objects.get(name="small")
    fields = {"size_class": small, "bytes": small.test_bytes, "mover": "fts3", "mesh": of}
    times = dict.fromkeys(("requested_at", "sent_at"), timezone.now())
    return Probe.objects.create(source=source, destination=destination, **fields, **times)


# Who saves


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"service": ""}, "service", "needs a service: “service” must be a URL"),
        ({"service": "ftp://fts.example/"}, "service", "must have the form https://host"),
        ({"service": "https://me:pw@fts.example/"}, "service", "without a user"),
        ({"service": "https://fts.example/?x=1"}, "service", "without a user"),
        ({"service": "https://fts.example:99999"}, "service", "must have the form https://host"),
        ({"service": "http://fts.example:8446"}, "service", "must begin with https://"),
        ({"service": "https://169.254.1.1/"}, "service", "must have a valid host"),
        ({"service": "https://fts.example:8446/../x"}, "service", "not contain . or .."),
        (
            {"service": "https://fts.example:8443"},
            "service_credential",
            "is not valid for the host",
        ),
        ({"service_credential": None}, "service_credential", "refuses requests without a token"),
        ({"tcp_buffer_bytes": 65536}, "tcp_buffer_bytes", "must be left empty"),
        ({"mover": "http-tpc"}, "service", "uses no service: “service” must be left empty"),
        ({"mover": "http-tpc"}, "service_credential", "“service_credential” must be left empty"),
        ({"mode": "push"}, "mode", "“mode” must be pull"),
    ],
)
def test_a_mesh_names_a_service_that_fits(values: dict[str, str], field: str, words: str):
    good = Mesh(name="x", mover="fts3", service=URL)
    good.service_credential = Credential.objects.create(name="fts", hosts=HOSTS)
    good.full_clean()
    for name, value in values.items():
        setattr(good, name, value)
    with pytest.raises(ValidationError) as caught:
        good.full_clean()
    assert words in " ".join(caught.value.message_dict[field])


def test_a_service_on_this_machine_may_be_known_by_nothing():
    """A real FTS refuses everybody without a token, with 403."""
    for url in ("http://127.0.0.1:1/", "http://[::1]:8/x"):
        assert rules.service_problems(kept("fts3"), url, None) == {}
    for url in ("https://fts.example", "https://127.0.0.1:8446"):
        assert list(rules.service_problems(kept("fts3"), url, None)) == ["service_credential"]


def test_no_mesh_of_a_service_has_files_of_root():
    """FTS looks every 2.5 s whether a copy over root:// is done: its rates were 100 times wrong."""
    ends = [endpoint(name, base_url=f"root://{name.lower()}.example//data") for name in "AB"]
    why = compatibility.mesh_problem("by-fts", "fts3", "pull", [ends, ends])
    assert "supports the URL schemes dav, davs, http, https, not those of A_DATADISK (root)" in why


def test_a_credential_stays_for_the_services_that_know_us_by_it():
    served()
    known_by = Credential.objects.get()
    known_by.hosts = ["elsewhere.example"]
    assert "the hosts of these meshes, which use it: by-fts" in compatibility.hosts_problem(
        known_by
    )


REGISTRY = """
credentials: [{name: fts, hosts: ["fts.example:8446"]}]
sites: [{name: A}]
endpoints: [{name: A_DISK, site: A, base_url: "https://a.example/data"}]
meshes:
  - {name: x, mover: fts3, service: "https://fts.example:8446", service_credential: fts,
     every: {small: 1h}}
"""


def test_a_registry_file_names_services_and_their_credentials():
    assert registry_file.load(REGISTRY).added["meshes"] == ["x"]
    assert Mesh.objects.get().service_credential == Credential.objects.get()
    assert registry_file.load(REGISTRY).left["meshes"] == ["x"]
    for good, wrong, words in (
        (
            "service_credential: fts",
            "service_credential: nope",
            "credential 'nope' is not registered",
        ),
        ('service: "https://fts.example:8446", ', 'service: "", ', "needs a service"),
    ):
        with pytest.raises(registry_file.RegistryError, match=words):
            registry_file.load(REGISTRY.replace(good, wrong))


def test_by_rest_services_are_named_and_seen_by_operators_alone(client: Client):
    endpoint("A", base_url="https://a.example/data")
    endpoint("B", base_url="https://b.example/data")
    Credential.objects.create(name="fts", hosts=HOSTS)
    body = {"name": "x", "mover": "fts3", "service": URL, "every": {"small": 3600}}
    client.force_login(account(Role.OPERATOR, name="op"))

    def posted(**more: str) -> tuple[int, dict[str, object]]:
        answer = client.post("/api/v1/meshes/", body | more, content_type="application/json")
        return answer.status_code, answer.json()

    code, said = posted(service="https://me:secret@fts.example/")
    assert (code, list(said["errors"])) == (400, ["service"])
    assert "secret" not in str(said)
    assert posted(service_credential="nope")[0] == 400
    code, said = posted()
    assert (code, list(said["errors"])) == (400, ["service_credential"])
    code, said = posted(service_credential="fts")
    assert (code, said["service"], said["service_credential"]) == (201, URL, "fts")
    client.logout()
    shown = client.get("/api/v1/meshes/x/").json()
    assert not {"service", "service_credential"} & set(shown)
    assert "fts.example" not in client.get("/api/v1/meshes/?format=csv").content.decode()


def test_in_the_admin_a_mesh_is_saved_with_its_service_and_the_credential_says_whose_it_is(
    client: Client,
):
    made = served()
    endpoint("A", base_url="https://a.example/data")
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    path = f"/admin/sonar/mesh/{made.pk}/change/"
    fields = {"name": "by-fts", "mover": "fts3", "mode": "pull", "streams": 1, "priority": 5}
    inlines = {f"intervals-{name}_FORMS": 0 for name in ("TOTAL", "INITIAL")}
    answer = client.post(path, fields | inlines | {"service": ""})
    assert "needs a service" in answer.text
    answer = client.post(path, fields | inlines | {"service": URL})
    assert "refuses requests without a token" in answer.text
    known_by = {"service": URL, "service_credential": Credential.objects.get().pk}
    assert client.post(path, fields | inlines | known_by).status_code == 302
    assert "mesh by-fts" in client.get("/admin/sonar/credential/").text


def test_the_page_of_a_mesh_says_that_its_service_chooses_the_mode(client: Client):
    two_ends()
    served(), served("fetched", mover="http-tpc", service="", service_credential=None)
    client.force_login(account(Role.OPERATOR, name="op"))
    shown = {name: client.get(f"/meshes/{name}/").text for name in ("by-fts", "fetched")}
    assert "chosen by the transfer service" in shown["by-fts"]
    assert "pull: the destination fetches" not in shown["by-fts"]
    assert "chosen by the transfer service" not in shown["fetched"]


# Who plans and orders


def test_tests_whose_ends_do_not_both_lend_wait_for_leave():
    a, b = two_ends()
    served(), served("fetched", mover="http-tpc", service="", service_credential=None)
    Endpoint.objects.filter(pk=b.pk).update(credential_lent=None)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="credential")
    assert set(held.values_list("mesh__name", "source__name", "destination__name")) == {
        ("by-fts", a.name, b.name),
        ("by-fts", b.name, a.name),
        ("fetched", b.name, a.name),
    }


@pytest.mark.parametrize("lends", ["nothing", "a macaroon"])
def test_tests_that_a_service_can_never_carry_out_wait_with_the_reason(lends: str, tokens: Path):
    """FTS would show Sonar's token to an end that lends none, and refuses macaroons."""
    a, b = two_ends()
    if lends == "nothing":
        Endpoint.objects.filter(pk=b.pk).update(credential=None, credential_lent=None)
        words = "B_DATADISK has no credential, but the service needs one"
    else:
        Credential.objects.filter(name="b-lent").update(kind="macaroon")
        words = "the endpoint delegates a macaroon, but the service accepts only JSON Web Tokens"
    made = served()
    here = served("here", service="http://127.0.0.1:1/", service_credential=None)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="credential")
    assert set(held.values_list("mesh__name", "source__name", "destination__name")) == {
        (made.name, a.name, b.name),
        (made.name, b.name, a.name),
    }
    Probe.objects.all().delete()
    a, b = Endpoint.objects.order_by("name")
    with pytest.raises(MoverError, match=words):
        transfer_request.order_for(queued(a, b, made))
    if lends == "nothing":
        transfer_request.order_for(queued(b, a, here))


def test_a_test_that_is_ordered_asks_the_one_service_in_use_and_gives_nothing_away():
    a, b = two_ends()
    request = ProbeRequest(a, b, SizeClass.objects.get(name="small"), "fts3")

    def ordered() -> list[Probe]:
        Probe.objects.all().delete()
        return request_probes.order([request], NOW)

    with pytest.raises(RefusedError, match="no service is set for any enabled mesh"):
        ordered()
    served()
    assert ordered()
    served("same")
    assert ordered()
    served("other", service="https://other.example", service_credential=None)
    with pytest.raises(RefusedError, match="different services are set for the enabled meshes"):
        ordered()
    Mesh.objects.filter(name="other").update(enabled=False)
    assert ordered()
    request.source.credential_lent = None
    request.source.save()
    with pytest.raises(RefusedError, match="A_DATADISK delegates no credential to the service"):
        ordered()


# Who carries out


def test_the_service_gets_its_own_token_and_what_both_ends_lend(tokens: Path):
    a, b = two_ends()
    order = transfer_request.order_for(queued(a, b, served()))
    assert order.service
    assert (order.service.url, order.service.credential) == (URL, "fts")
    assert order.service.token() == "token-of-fts"
    assert (order.source.token, order.source.lent) == ("token-of-a", "token-of-a-lent")
    assert (order.destination.token, order.destination.lent) == ("token-of-b", "token-of-b-lent")
    (tokens / "fts").write_text("renewed")
    assert order.service.token() == "renewed"
    (tokens / "fts").unlink()
    with pytest.raises(MoverError, match="credential for the service does not work") as caught:
        order.service.token()
    assert caught.value.where == Where.CONTROL
    assert "token-of" not in repr(order)


def test_a_test_outside_every_mesh_asks_the_service_in_use(tokens: Path):
    probe = queued(*two_ends())
    with pytest.raises(MoverError, match="no service is set for any enabled mesh"):
        transfer_request.order_for(probe)
    served()
    order = transfer_request.order_for(probe)
    assert order.service
    assert order.service.url == URL


def test_a_row_that_was_written_past_the_forms_ends_at_the_worker(tokens: Path):
    made = served()
    probe = queued(*two_ends(), made)
    for changes, words in (
        (
            {"service": "https://evil.example"},
            "is not valid for the host and port of the service",
        ),
        ({"service": "http://fts.example:8446"}, "must begin with https"),
        ({"service": ""}, "no service is set for any enabled mesh"),
    ):
        Mesh.objects.filter(pk=made.pk).update(**changes)
        with pytest.raises(MoverError, match=words) as caught:
            transfer_request.order_for(Probe.objects.get(pk=probe.pk))
        assert caught.value.permanent
    probes.run(probe.id)  # which blames nobody
    assert Transfer.objects.get().error_where == "control"


def test_a_service_is_named_in_no_error_that_all_may_read():
    served()
    hidden = redacted.for_all("POST https://fts.example:8446/jobs: fts.example is down")
    assert "fts.example" not in hidden
    assert hidden.startswith("POST [server]")


# What is undone


def job_to(destination: Endpoint, label: str) -> dict[str, Any]:
    url = f"{destination.base_url}/{label}"
    file = {"sources": ["https://x.example/f"], "destinations": [url], "filesize": 1}
    return {"files": [file], "params": {"retry": -1, "job_metadata": {"sonar": label}}}


def left(at: Endpoint, label: str, ago: timedelta = timedelta()) -> None:
    moment = timezone.now() - ago
    Leftover.objects.create(
        endpoint=at, path=f"sonar/incoming/{label}", mover="fts3", since=moment, next_try=moment
    )


REFUSED = "FTS, GET whoami: connection refused (no server listens on this port)"


@pytest.mark.django_db(transaction=True)
def test_before_a_file_is_deleted_what_was_asked_for_it_is_cancelled():
    end = endpoint("A", base_url="http://127.0.0.1:9/data")  # nobody's: it cannot be deleted
    with fts_server(queue_seconds=60, certificate=True) as fts:
        served(service=fts.url, service_credential=None, enabled=False)
        # Each service is asked, whatever became of the others.
        served("away", service=f"http://127.0.0.1:{free_port()}", service_credential=None)
        served("not-ours", service="http://elsewhere.example", service_credential=None)
        ours, others = (fts.submit(job_to(end, label)) for label in ("1-2-3", "1-2-4"))
        left(end, "1-2-3")
        cleanup.clean(60)
        assert (ours.state, others.state) == ("CANCELED", "SUBMITTED")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_file_is_deleted_again_until_its_cancelled_job_is_over(is_known: bool):
    """FTS cancels no file in TOKEN_PREP: it was copied later, and stayed for ever."""
    with scripted(status("404 Not Found")) as server:
        end = endpoint("A", base_url=f"{server.url}/data")
        with fts_server(certificate=True) as fts:
            served(service=fts.url, service_credential=None)
            fts.token_seconds = 600
            managed = job_to(end, "1-2-3")
            managed["files"][0] |= {key: ["x"] for key in ("source_tokens", "destination_tokens")}
            job = fts.submit(managed)
            assert wait_for(lambda: job.file_state == "TOKEN_PREP", 120, 0.02)
            left(end, "1-2-3")
            if is_known:
                fts.cancel(job)
                Leftover.objects.update(remote_id=job.number)
            for turn in (1, 2):
                cleanup.clean(60)
                (row,) = Leftover.objects.all()
                assert (job.state, job.file_state) == ("CANCELED", "TOKEN_PREP")
                assert row.remote_id == job.number
                assert f"job {job.number} was cancelled" in row.error
                assert row.next_try <= timezone.now() + cleanup.FIRST_PAUSE
                assert len(server.requests) == turn
                Leftover.objects.update(next_try=timezone.now())
            job.woken.set()
            assert wait_for(lambda: job.file_state == "FAILED", 120, 0.02)
            cleanup.clean(60)
    assert not Leftover.objects.exists()


def test_the_job_of_a_run_is_remembered_with_its_file():
    a, b = two_ends()
    probe = queued(a, b, served())
    for place in cleanup.places_of(probe):
        cleanup.keep([cleanup.left_behind(place, "fts3", "stopped", timezone.now())])
    seen = Seen(remote_id="0ae3b5de-c6b5-11f0")
    left_behind = MoverError(Where.DESTINATION, "may still be written")
    outcome = Outcome(None, MoverError(Where.CONTROL, "x"), left_behind, 1.0, seen=seen)
    probes.keep_leftovers(probe, outcome)
    rows = dict(Leftover.objects.values_list("endpoint__name", "remote_id"))
    assert rows == {b.name: "0ae3b5de-c6b5-11f0", a.name: ""}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("hours", "stays"), [(1, True), (25, False)])
def test_while_a_service_cannot_be_asked_its_file_is_not_forgotten_for_a_day(
    hours: int, stays: bool
):
    with scripted(status("404 Not Found")) as server:
        end = endpoint("A", base_url=f"{server.url}/data")
        served(service=f"http://127.0.0.1:{free_port()}", service_credential=None)
        left(end, "1-2-3", timedelta(hours=hours))
        cleanup.clean(60)
    assert server.requests[0].startswith("DELETE /data/sonar/incoming/1-2-3 ")
    assert [one.error for one in Leftover.objects.all()] == [REFUSED] * stays
