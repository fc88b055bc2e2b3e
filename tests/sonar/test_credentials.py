"""Where credentials may go: the rules, who writes them, who plans by them, and who uses them."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from sonar import scheduler
from sonar.credentials import rules
from sonar.models import Credential, Endpoint, Probe, Schedule, Transfer, Version
from sonar.movers.base import MoverError, Where
from sonar.obstacles.catalogue import CredentialFails, CredentialGivenAway
from sonar.obstacles.obstacle import RunConditions
from sonar.ordering import request_probes
from sonar.people.roles import Role
from sonar.registry import file
from sonar.work import probes, transfer_request
from tests.accounts import account
from tests.credentials import bind, credential
from tests.sonar.world import NOW, endpoint, held_links, mesh, queued, request, three_endpoints

pytestmark = pytest.mark.django_db

HOSTS = ["a.example", "b.example:1094", "[2001:db8::1]:443", "192.0.2.7"]


@pytest.fixture
def tokens(settings, tmp_path: Path) -> Path:
    """Files of two credentials: what writes at Glasgow, and what only reads there."""
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "glasgow").write_text("writes\n")
    (tmp_path / "glasgow-read").write_text("reads\n")
    return tmp_path


@pytest.mark.parametrize(
    "base_url",
    [
        "https://a.example/data",
        "https://A.Example:8443/data",
        "davs://b.example:1094",
        "root://b.example//data",
        "https://[2001:DB8:0::1]/data",
        "https://192.0.2.7:443/",
    ],
)
def test_a_credential_is_for_the_hosts_and_ports_that_it_names(base_url: str):
    assert rules.names(HOSTS, base_url)


@pytest.mark.parametrize(
    "base_url",
    [
        "https://evil.example/",
        "https://a.example.evil.example/",
        "https://xa.example/",
        "https://sub.a.example/",
        "https://b.example/",
        "https://b.example:10940/",
        "https://[2001:db8::1]:444/",
        "https://[2001:db8::2]/",
        "https://a.example\\.evil.example/",
        "https://a.example:443:80/",
        "https://evil.example\\a.example/",
        "https://\N{FULLWIDTH LATIN SMALL LETTER A}.example/",
        "https://a.example%2fevil/",
        "ftp://[",
    ],
)
def test_a_credential_is_for_no_other_host_however_it_is_written(base_url: str):
    assert not rules.names(HOSTS, base_url)


@pytest.mark.parametrize(
    ("base_url", "in_clear"),
    [
        ("http://a.example/", True),
        ("dav://a.example/", True),
        ("http://127.0.0.1.example/", True),
        ("http://128.0.0.1/", True),
        ("http://0.0.0.0/", True),
        ("http://[::ffff:127.0.0.1]/", False),
        ("http://localhost:80:80/", True),
        ("http://localhost:8080/", False),
        ("http://127.0.0.1/", False),
        ("http://127.9.9.9:1/", False),
        ("dav://[::1]:1094/", False),
        ("https://a.example/", False),
        ("davs://a.example/", False),
    ],
)
def test_what_goes_to_another_machine_without_tls_goes_in_clear(base_url: str, in_clear: bool):
    assert rules.is_in_clear(base_url) is in_clear


@pytest.mark.parametrize(
    "host",
    [
        "https://a.example",
        "a.example/data",
        "*.example",
        "A.example",
        "a.example:0",
        "a.example:65536",
        "a.example:",
        ".example",
        "2001:db8::1",
        "[2001:db8::1",
        "[2001:db8:::1]",
        "a b",
        "user@a.example",
        "\N{KELVIN SIGN}.example",
        "",
    ],
)
def test_what_is_no_host_of_a_credential_is_refused_with_a_sentence(host: str):
    with pytest.raises(ValidationError) as caught:
        Credential(name="a", hosts=[host]).full_clean()
    (sentence,) = caught.value.message_dict["hosts"]
    assert "that port: storage.example.org" in sentence or "blank" in sentence


def test_a_credential_has_a_host_and_a_name_that_is_a_file():
    with pytest.raises(ValidationError, match="blank"):
        Credential(name="a", hosts=[]).full_clean()
    for name in ("../a", ".a", "", "a/b"):
        with pytest.raises(ValidationError) as caught:
            Credential(name=name, hosts=["a.example"]).full_clean()
        assert list(caught.value.message_dict) == ["name"]
    for values in ({"hosts": []}, {"name": "../a"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Credential.objects.create(**({"name": "a", "hosts": ["a.example"]} | values))


def test_every_change_of_a_credential_is_one_of_the_registry():
    def version() -> int:
        return Version.objects.get(name="registry").value

    endpoint("GLASGOW")
    before = version()
    made = credential("glasgow", endpoint("RAL"))
    assert version() > before
    before = version()
    Credential.objects.filter(pk=made.pk).update(hosts=["a.example"])
    assert version() > before


def test_an_endpoint_keeps_a_credential_only_for_its_own_host():
    glasgow = bind(endpoint("GLASGOW"), "glasgow")
    glasgow.base_url = "https://evil.example/data"
    with pytest.raises(ValidationError) as caught:
        glasgow.full_clean()
    assert caught.value.message_dict == {
        "credential": [
            "The credential of GLASGOW_DATADISK is not valid for the host and port of its base "
            "URL. Administrators set the hosts for which a credential is valid."
        ]
    }


def test_a_credential_is_not_kept_where_it_would_be_sent_in_clear():
    glasgow = endpoint("GLASGOW", base_url="http://glasgow.example:1094/data")
    with pytest.raises(ValidationError, match="would be sent unencrypted"):
        bind(glasgow, "glasgow")
    glasgow.base_url = "http://127.0.0.1:1094/data"
    bind(glasgow, "near")


def test_what_is_lent_is_bound_too_and_is_another_credential():
    glasgow, ral = endpoint("GLASGOW"), endpoint("RAL")
    with pytest.raises(ValidationError) as caught:
        bind(glasgow, "glasgow", lent="glasgow")
    assert "is the endpoint's own credential" in caught.value.message_dict["credential_lent"][0]
    bind(glasgow, "glasgow", lent="glasgow", lend=True)
    glasgow.credential_lent = credential("ral", ral)
    with pytest.raises(ValidationError) as caught:
        glasgow.full_clean()
    assert "is not valid for the host" in caught.value.message_dict["credential_lent"][0]


def test_what_stood_there_before_may_stay_while_other_things_change():
    glasgow = bind(endpoint("GLASGOW"), "glasgow")
    Credential.objects.update(hosts=["elsewhere.example"])
    glasgow = Endpoint.objects.get()
    glasgow.inbound_cap = 7
    glasgow.full_clean()
    glasgow.retired_at = timezone.now()
    glasgow.full_clean()
    glasgow.save()
    glasgow.retired_at = None
    with pytest.raises(ValidationError, match="is not valid for the host"):
        glasgow.full_clean()


# The admin


@pytest.fixture
def administrator(client: Client) -> Client:
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    return client


def test_administrators_say_for_which_hosts_a_credential_is(administrator: Client):
    bind(endpoint("GLASGOW"), "glasgow")
    bind(endpoint("RAL", retired_at=NOW), "glasgow")
    path = f"/admin/sonar/credential/{Credential.objects.get().pk}/change/"
    form = {"name": "glasgow", "kind": "file"}
    answer = administrator.post(path, form | {"hosts": "elsewhere.example"})
    assert "of these endpoints, which use it: GLASGOW_DATADISK" in answer.text
    assert Credential.objects.get().hosts == ["glasgow", "ral"]
    answer = administrator.post(path, form | {"hosts": "glasgow, more.example:1"})
    assert answer.status_code == 302
    assert Credential.objects.get().hosts == ["glasgow", "more.example:1"]
    assert "GLASGOW_DATADISK" in administrator.get("/admin/sonar/credential/").text


def test_an_operator_looks_at_credentials_and_only_chooses_among_them(client):
    client.force_login(account(Role.OPERATOR, name="op"))
    glasgow = endpoint("GLASGOW")
    other = credential("ral", endpoint("RAL"))
    path = f"/admin/sonar/credential/{other.pk}/change/"
    assert client.get("/admin/sonar/credential/").status_code == 200
    assert client.get(path).status_code == 200
    assert client.post(path, {"name": "ral", "hosts": "glasgow"}).status_code == 403
    assert client.post("/admin/sonar/credential/add/", {}).status_code == 403
    assert client.post(path.replace("change", "delete"), {"post": "yes"}).status_code == 403
    form = {
        "name": glasgow.name,
        "site": glasgow.site_id,
        "base_url": glasgow.base_url,
        "inbound_cap": 2,
        "outbound_cap": 2,
        "credential": other.pk,
    }
    answer = client.post(f"/admin/sonar/endpoint/{glasgow.pk}/change/", form)
    assert "The credential of GLASGOW_DATADISK is not valid for the host" in answer.text
    assert not Endpoint.objects.filter(credential=other).exists()
    own = credential("glasgow", glasgow)
    form["credential"] = own.pk
    assert client.post(f"/admin/sonar/endpoint/{glasgow.pk}/change/", form).status_code == 302
    assert Endpoint.objects.get(credential=own) == glasgow


# By REST


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(account(Role.OPERATOR, name="op"))
    return client


def patched(operator: Client, change: dict[str, object]) -> tuple[int, dict[str, object]]:
    path = "/api/v1/endpoints/GLASGOW_DATADISK/"
    answer = operator.patch(path, change, content_type="application/json")
    return answer.status_code, answer.json()


def test_an_operator_points_no_endpoint_with_a_credential_elsewhere(operator: Client):
    bind(endpoint("GLASGOW", base_url="https://glasgow.example/data"), "glasgow")
    for base_url in ("https://evil.example/data", "https://glasgow.example:444/data"):
        status, said = patched(operator, {"base_url": base_url})
        assert status == 400
        assert list(said["errors"]) == ["credential"]
        assert (
            "is not valid for the host and port of its base URL" in said["errors"]["credential"][0]
        )
        assert "evil" not in str(said)
    status, said = patched(operator, {"base_url": "http://glasgow.example:443/data"})
    assert (status, "unencrypted" in str(said["errors"])) == (400, True)
    assert Endpoint.objects.get().base_url == "https://glasgow.example/data"
    assert patched(operator, {"base_url": "https://glasgow.example/other"})[0] == 200


def test_an_operator_chooses_credentials_by_name_and_takes_them_away(operator: Client):
    glasgow = endpoint("GLASGOW", base_url="https://glasgow.example/data")
    credential("glasgow", glasgow)
    credential("glasgow-read", glasgow)
    credential("ral", endpoint("RAL"))
    assert patched(operator, {"credential": "ral"})[0] == 400
    assert patched(operator, {"credential_lent": "ral"})[0] == 400
    whole = {"credential": "glasgow", "credential_lent": "glasgow-read", "lend_credential": True}
    status, said = patched(operator, whole)
    assert (status, {name: said[name] for name in whole}) == (200, whole)
    none = {"credential": "", "credential_lent": "", "lend_credential": False}
    status, said = patched(operator, none)
    assert (status, {name: said[name] for name in none}) == (200, none)
    glasgow.refresh_from_db()
    assert (glasgow.credential, glasgow.credential_lent) == (None, None)


def test_caps_of_an_endpoint_change_whose_credential_is_not_bound_any_more(operator: Client):
    bind(endpoint("GLASGOW", base_url="https://glasgow.example/data"), "glasgow")
    Credential.objects.update(hosts=["elsewhere.example"])
    assert patched(operator, {"inbound_cap": 7})[0] == 200
    assert patched(operator, {"retired": True})[0] == 200
    assert patched(operator, {"retired": False})[0] == 400


# The registry file

FILE = """\
sites: [{name: GLASGOW}]
credentials:
  - {name: glasgow, hosts: ["glasgow.example:1094"]}
  - {name: glasgow-read, hosts: [glasgow.example]}
endpoints:
  - name: GLASGOW_DATADISK
    site: GLASGOW
    base_url: https://glasgow.example:1094/data
    credential: glasgow
    credential_lent: glasgow-read
"""


def wrong(text: str) -> str:
    with pytest.raises(file.RegistryError) as caught:
        file.load(text)
    return str(caught.value)


def test_a_registry_file_has_credentials_with_their_hosts():
    changes = file.load(FILE)
    assert changes.added["credentials"] == ["glasgow", "glasgow-read"]
    glasgow = Endpoint.objects.get()
    assert (glasgow.credential.name, glasgow.credential_lent.name) == ("glasgow", "glasgow-read")
    assert not glasgow.lend_credential
    again = file.load(FILE)
    assert (again.added, again.changed) == ({}, {})


def test_a_registry_file_that_binds_nothing_is_refused_at_its_line():
    said = wrong(FILE.replace("credential: glasgow\n", "credential: ral\n"))
    assert "endpoints[0].credential (line 9): credential 'ral' is not registered" in said
    said = wrong(FILE.replace('["glasgow.example:1094"]', '["https://glasgow.example"]'))
    assert "credentials[0].hosts (line 3): Item 1 in the array did not validate" in said
    said = wrong(FILE.replace("https://glasgow.example:1094", "https://evil.example"))
    refused = "endpoints[0].credential (line 9): The credential of GLASGOW_DATADISK is not valid"
    assert refused in said
    assert "endpoints[0].credential_lent (line 10): The delegated credential of" in said
    assert not Credential.objects.exists()


def test_a_registry_file_moves_an_endpoint_and_its_credential_together_or_not_at_all():
    file.load(FILE)
    moved = FILE.replace("glasgow.example", "new.example")
    alone = moved.partition("endpoints:")[0]
    for half in (alone, moved.replace("https://new", "https://glasgow")):
        assert wrong(half).splitlines()[0] == (
            "credentials[0].hosts (line 3): The credential glasgow would not be valid for the "
            "hosts of these endpoints, which use it: GLASGOW_DATADISK. Add the hosts, or first "
            "assign another credential to the endpoints."
        )
    assert Credential.objects.get(name="glasgow").hosts == ["glasgow.example:1094"]
    file.load(moved)
    assert Endpoint.objects.get().base_url == "https://new.example:1094/data"


# Who uses them


def test_an_end_gets_its_own_token_and_the_other_what_is_lent(tokens):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lent="glasgow-read")
    pull = transfer_request.order_for(queued(glasgow, lancs))
    assert (pull.source.token, pull.source.lent) == ("writes", "reads")
    push = transfer_request.order_for(queued(lancs, glasgow, mode="push"))
    assert (push.destination.token, push.destination.lent) == ("writes", "reads")
    assert (push.source.token, push.source.lent) == ("", "")


def test_the_active_end_lends_nothing(tokens):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lent="missing", lend=True)
    for order in (
        transfer_request.order_for(queued(lancs, glasgow)),
        transfer_request.order_for(queued(glasgow, lancs, mode="push")),
    ):
        assert {order.source.lent, order.destination.lent} == {""}


def test_an_endpoint_that_says_so_lends_its_own(tokens):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    assert transfer_request.order_for(queued(glasgow, lancs)).source.lent == "writes"


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_no_worker_lends_what_an_endpoint_does_not_lend(tokens, mode: str):
    ends = three_endpoints()[:2]
    bind(ends[0], "glasgow")
    source, destination = ends if mode == "pull" else reversed(ends)
    with pytest.raises(MoverError, match="GLASGOW_DATADISK delegates no credential") as caught:
        transfer_request.order_for(queued(source, destination, mode=mode))
    assert (caught.value.where, caught.value.permanent) == (Where.CONTROL, True)


def test_nothing_is_lent_in_clear(tokens):
    glasgow = endpoint("GLASGOW", base_url="https://glasgow.example/data")
    lancs = endpoint("LANCS", base_url="http://lancs.example/data")
    bind(glasgow, "glasgow", lent="glasgow-read")
    with pytest.raises(MoverError, match="sent unencrypted to LANCS_DATADISK"):
        transfer_request.order_for(queued(glasgow, lancs, mover="http-tpc"))
    Endpoint.objects.filter(pk=lancs.pk).update(base_url="http://127.0.0.1:8080/data")
    lancs.refresh_from_db()
    Probe.objects.all().delete()
    order = transfer_request.order_for(queued(glasgow, lancs, mover="http-tpc"))
    assert order.source.lent == "reads"


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (Endpoint, {"base_url": "https://evil.example/data"}),
        (Credential, {"hosts": ["evil.example"]}),
    ],
)
def test_a_row_that_was_written_past_the_forms_ends_at_the_worker_without_a_token_sent(
    tokens, model, change
):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    probe = queued(glasgow, lancs)
    model.objects.filter(name__istartswith="glasgow").update(**change)
    probes.run(probe.id)
    transfer = Transfer.objects.get()
    assert (transfer.state, transfer.error_where) == ("failed", "control")
    assert transfer.error_is_permanent
    assert transfer.error.startswith("The credential of GLASGOW_DATADISK is not valid for the host")
    assert "evil" not in transfer.error


def test_a_worker_asks_the_database_nothing_about_credentials(tokens, django_assert_num_queries):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lent="glasgow-read")
    probe = probes.claim(queued(glasgow, lancs).id, timezone.now())
    with django_assert_num_queries(0):
        assert transfer_request.order_for(probe).source.lent == "reads"


# Who plans and orders


def all_links() -> set[tuple[str, str]]:
    return set(Schedule.objects.values_list("source__site__name", "destination__site__name"))


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_tests_that_would_lend_without_leave_wait_and_others_run(mode: str):
    glasgow = three_endpoints()[0]
    bind(glasgow, "glasgow")
    mesh(mode=mode)
    scheduler.claim_due(NOW)
    away = {("GLASGOW", "LANCS"), ("GLASGOW", "RAL")}
    assert held_links() == (away if mode == "pull" else {link[::-1] for link in away})
    probes = set(Probe.objects.values_list("source__site__name", "destination__site__name"))
    assert probes == all_links() - held_links()
    Endpoint.objects.filter(pk=glasgow.pk).update(lend_credential=True)
    Probe.objects.all().delete()
    scheduler.claim_due(NOW)
    assert held_links() == set()


def test_each_mesh_is_judged_by_its_own_mode():
    bind(three_endpoints()[0], "glasgow")
    pulls, pushes = mesh("pulls"), mesh("pushes", mode="push")
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="credential")
    assert set(held.filter(mesh=pulls).values_list("source__site__name", flat=True)) == {"GLASGOW"}
    sent = held.filter(mesh=pushes).values_list("destination__site__name", flat=True)
    assert set(sent) == {"GLASGOW"}


def test_all_tests_of_an_end_whose_credential_is_not_bound_wait():
    bind(three_endpoints()[0], "glasgow", lent="glasgow-read")
    mesh()
    Credential.objects.filter(name="glasgow-read").update(hosts=["elsewhere.example"])
    scheduler.claim_due(NOW)
    assert held_links() == {link for link in all_links() if "GLASGOW" in link}


def test_tests_towards_an_active_end_in_clear_wait_where_something_is_lent():
    glasgow = endpoint("GLASGOW", base_url="https://glasgow.example/data")
    endpoint("LANCS", base_url="http://lancs.example/data")
    endpoint("RAL", base_url="https://ral.example/data")
    endpoint("NEAR", base_url="http://127.0.0.1:1094/data")
    bind(glasgow, "glasgow", lent="glasgow-read")
    mesh(mover="http-tpc")
    scheduler.claim_due(NOW)
    assert held_links() == {("GLASGOW", "LANCS")}


def test_the_claim_asks_three_times_about_credentials_and_joins_nothing(django_assert_num_queries):
    bind(three_endpoints()[0], "glasgow")
    mesh()
    mesh("pushes", mode="push")
    scheduler.follow_registry(NOW)
    conditions = RunConditions(NOW)
    assert conditions.meshes
    with django_assert_num_queries(3):
        held = [CredentialGivenAway().filter(conditions), CredentialFails().filter(conditions)]
    assert "JOIN" not in str(Schedule.objects.filter(held[0]).query)
    assert "JOIN" not in str(Schedule.objects.exclude(held[0]).exclude(held[1]).query)


def test_an_order_that_would_lend_without_leave_is_refused_and_says_why():
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow")
    with pytest.raises(request_probes.RefusedError) as caught:
        request_probes.order([request(glasgow, lancs)] * 3, NOW)
    assert caught.value.errors == {
        "source": [
            "GLASGOW_DATADISK delegates no credential, but LANCS_DATADISK needs one to read there: "
            "set “lend_credential” to delegate its own credential, or set "
            "“credential_lent”."
        ]
    }
    assert not Probe.objects.exists()
    assert len(request_probes.order([request(lancs, glasgow)], NOW)) == 1


def test_by_rest_such_an_order_is_a_409_with_the_sentence(operator: Client):
    glasgow = endpoint("GLASGOW", base_url="https://glasgow.example/data")
    endpoint("LANCS", base_url="https://lancs.example/data")
    bind(glasgow, "glasgow")
    asked = {"source": "GLASGOW_DATADISK", "destination": "LANCS_DATADISK", "sizes": ["small"]}
    answer = operator.post("/api/v1/probes/", asked, content_type="application/json")
    assert answer.status_code == 409
    assert answer.json()["errors"]["source"][0].startswith(
        "GLASGOW_DATADISK delegates no credential"
    )
    pushed = operator.post("/api/v1/probes/", asked | {"mode": "push"}, "application/json")
    assert pushed.status_code == 202, pushed.text


def test_an_order_of_an_end_whose_credential_is_not_bound_is_refused():
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    Credential.objects.update(hosts=["elsewhere.example"])
    with pytest.raises(request_probes.RefusedError, match="is not valid for the host") as caught:
        request_probes.order([request(lancs, glasgow)], NOW)
    assert list(caught.value.errors) == ["destination"]


def test_an_ordered_test_that_waits_goes_on_waiting_while_it_would_give_something_away():
    glasgow, lancs, ral = three_endpoints()
    Endpoint.objects.filter(pk=lancs.pk).update(inbound_cap=1)
    bind(glasgow, "glasgow", lend=True)
    request_probes.order([request(ral, lancs)], NOW)
    request_probes.order([request(glasgow, lancs)], NOW)
    Endpoint.objects.filter(pk=glasgow.pk).update(lend_credential=False)
    Probe.objects.exclude(state="waiting").delete()
    scheduler.start_waiting(NOW)
    probe = Probe.objects.get()
    assert probe.state == "waiting"
    assert probe.waits_because.startswith("GLASGOW_DATADISK delegates no credential")


def test_what_waits_for_leave_keeps_no_place_from_others():
    glasgow, lancs, ral = three_endpoints()
    bind(glasgow, "glasgow", lend=True)
    Endpoint.objects.filter(pk=glasgow.pk).update(outbound_cap=1)
    Endpoint.objects.filter(pk=lancs.pk).update(inbound_cap=1)
    request_probes.order([request(glasgow, ral, mode="push")], NOW)
    (held,) = request_probes.order([request(glasgow, lancs)], NOW)
    assert held.state == "waiting"
    Endpoint.objects.filter(pk=glasgow.pk).update(lend_credential=False)
    mesh()
    scheduler.claim_due(NOW)
    assert Probe.objects.get(pk=held.pk).waits_because.startswith("GLASGOW_DATADISK delegates no")
    assert Probe.objects.filter(source=ral, destination=lancs, state="queued").exists()


def given_away(source: Endpoint, destination: Endpoint) -> str:
    probe = Probe(source=source, destination=destination, mode="pull", mover="http-tpc")
    return next(CredentialGivenAway().blocks(RunConditions(NOW), probe)).sentence


def test_the_longest_sentence_fits_where_tests_wait():
    site = endpoint("GLASGOW").site
    ends = [
        Endpoint(name=letter * 80, site=site, base_url=f"https://{letter}.example/{letter}")
        for letter in "ab"
    ]
    source, destination = ends
    source.credential = Credential(pk=1, name="c", hosts=["elsewhere.example"])
    found = [given_away(source, destination)]
    source.credential.hosts = ["a.example"]
    found.append(given_away(source, destination))
    source.lend_credential = True
    destination.base_url = "http://b.example/"
    found.append(given_away(source, destination))
    source.base_url = "http://a.example/"
    found.append(given_away(source, destination))
    assert len(set(found)) == 4
    longest = Probe._meta.get_field("waits_because").max_length
    assert max(map(len, found)) <= longest


# The command


def listed() -> str:
    out = StringIO()
    call_command("credentials", stdout=out)
    return out.getvalue()


def test_without_credentials_the_command_says_so():
    assert listed() == "No credentials are registered.\n"


def test_the_command_lists_credentials_and_never_what_is_in_their_files(tokens):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow", lent="glasgow-read")
    bind(lancs, "glasgow", lend=True)
    assert listed().splitlines() == [
        "NAME          KIND  HOSTS          OWN                              LENT              "
        "FILE",
        "glasgow       file  glasgow,lancs  GLASGOW_DATADISK,LANCS_DATADISK  LANCS_DATADISK    "
        "readable",
        "glasgow-read  file  glasgow                                         GLASGOW_DATADISK  "
        "readable",
    ]
    assert "writes" not in listed()


def test_the_command_ends_as_failed_and_says_what_is_wrong(tokens):
    glasgow, lancs, _ = three_endpoints()
    bind(glasgow, "glasgow")
    bind(lancs, "lancs", lend=True)
    Credential.objects.filter(name="lancs").update(hosts=["elsewhere.example"])
    credential("empty", lancs)
    (tokens / "empty").write_text("\n")
    credential("binary", lancs)
    (tokens / "binary").write_bytes(b"\xff\xfe")
    out = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("credentials", stdout=out)
    said = str(caught.value).splitlines()
    assert said == [
        "Problems with credentials:",
        "  The file of the credential binary cannot be used: the secret is not text.",
        "  The file of the credential empty cannot be used: the secret is empty.",
        "  The file of the credential lancs cannot be used: No such file or directory.",
        "  The credential of LANCS_DATADISK is not valid for the host and port of its base "
        "URL. Administrators set the hosts for which a credential is valid.",
    ]
    assert "elsewhere.example" in out.getvalue()
    assert "GLASGOW_DATADISK has no credential to delegate. Tests that need" in out.getvalue()
