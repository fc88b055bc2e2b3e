"""Credentials at the ends of a link: a program shows one to both, so they must be the same."""

import pytest
from django.core.management import call_command

from sonar import scheduler
from sonar.credentials.rules import two_credentials
from sonar.models import Credential, Endpoint, Mesh, Probe, Schedule
from sonar.movers.base import MoverError
from sonar.movers.catalogue import kept
from sonar.obstacles import catalogue as obstacles
from sonar.ordering import request_probes
from sonar.ordering.request_probes import RefusedError
from sonar.people.roles import Role
from sonar.work import transfer_request
from tests.accounts import account
from tests.sonar.world import NOW, endpoint, mesh, request

pytestmark = pytest.mark.django_db
ADVICE = "Give both endpoints the same credential, or use another transfer tool."
DIFFERENT = (
    "A_DATADISK and C_DATADISK have different X.509 proxies, but xrootd uses one for both. "
    f"{ADVICE}"
)
WITHOUT = (
    "D_DATADISK has no X.509 proxy, and xrootd would send it the X.509 proxy of A_DATADISK. "
    f"{ADVICE}"
)


@pytest.fixture
def ends() -> dict[str, Endpoint]:
    """Return A and B with one proxy, C with another, D with a token, E with nothing."""
    used = {"A": "one", "B": "one", "C": "two", "D": "token"}
    made = {}
    for name in "ABCDE":
        made[name] = endpoint(name, base_url=f"root://{name.lower()}.example/data")
        if name in used:
            kind = "file" if used[name] == "token" else "x509"
            hosts = [f"{letter.lower()}.example" for letter in used]
            facts = {"kind": kind, "hosts": hosts}
            row, _ = Credential.objects.get_or_create(name=used[name], defaults=facts)
            Endpoint.objects.filter(pk=made[name].pk).update(credential=row, lend_credential=True)
            made[name].refresh_from_db()
    return made


def refusal(source: Endpoint, destination: Endpoint, mover: str = "xrootd") -> list[str]:
    """Return what an order is refused with for its mover."""
    try:
        request_probes.order([request(source, destination, mover)], NOW)
    except RefusedError as error:
        return error.errors["mover"]
    return []


def links(rows: object) -> set[str]:
    return {f"{row.source.name[0]}{row.destination.name[0]}" for row in rows}  # type: ignore[attr-defined]


def test_an_order_that_needs_two_proxies_is_refused(ends):
    assert refusal(ends["A"], ends["C"]) == [DIFFERENT]
    assert refusal(ends["A"], ends["D"]) == [WITHOUT]
    assert refusal(ends["D"], ends["A"]) == [WITHOUT]
    assert refusal(ends["A"], ends["E"], "gfal2")[0].startswith("E_DATADISK has no X.509 proxy")
    assert refusal(ends["A"], ends["B"]) == []
    Endpoint.objects.update(credential=None)
    assert refusal(ends["A"], ends["C"]) == []


def test_an_order_whose_ends_get_other_proxies_meanwhile_waits(ends):
    (ordered,) = request_probes.order([request(ends["A"], ends["B"], "xrootd")], NOW)
    Probe.objects.update(state="waiting")
    Endpoint.objects.filter(pk=ends["B"].pk).update(credential=ends["C"].credential)
    assert scheduler.start_waiting(NOW) == []
    ordered.refresh_from_db()
    assert ordered.waits_because == DIFFERENT.replace("C_", "B_")
    probe = Probe.objects.select_related("size_class").get()
    with pytest.raises(MoverError, match=r"have different X\.509 proxies") as caught:
        transfer_request.order_for(probe)
    assert caught.value.permanent


def test_the_longest_sentence_fits_where_tests_wait(ends):
    source, destination = (
        Endpoint(name=letter * 80, base_url="root://a.example/") for letter in "ab"
    )
    longest = Probe._meta.get_field("waits_because").max_length
    source.credential, source.credential_id = ends["A"].credential, ends["A"].credential_id
    for other in (None, ends["C"].credential):
        destination.credential = other
        sentence = two_credentials(source, destination, kept("xrootd"))
        assert "X.509" in sentence
        assert len(sentence) <= longest


def test_scheduled_tests_that_need_two_proxies_wait_and_others_run(ends):
    mesh("by-xrdcp", mover="xrootd")
    mesh("simulated", mover="fake")
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="credential")
    assert links(held) == {a + b for a in "AB" for b in "CDE"} | {
        b + a for a in "AB" for b in "CDE"
    } | {"CD", "CE", "DC", "EC", "DE", "ED"}
    assert {row.mesh.name for row in held} == {"by-xrdcp"}
    assert links(Probe.objects.all()) == {"AB", "BA"}


def test_who_saves_a_mesh_is_told_which_of_its_links_it_cannot_test(ends, tmp_path, capsys, client):
    made = mesh("by-xrdcp", mover="xrootd")
    assert obstacles.advice_on(made, NOW) == [f"18 links are not tested. {DIFFERENT}"]
    made.sources.set([ends["A"]])
    made.destinations.set([ends["B"], ends["D"]])
    said = f"The mesh by-xrdcp: 1 link is not tested. {WITHOUT}"
    assert obstacles.notice(NOW) == said
    file = tmp_path / "registry.yaml"
    file.write_text("sites: [{name: X}]\n")
    call_command("load_registry", str(file))
    assert said in capsys.readouterr().out
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    form = {"name": "by-xrdcp", "mover": "xrootd", "mode": "pull", "streams": 1, "priority": 5}
    form |= {"enabled": "on", "intervals-TOTAL_FORMS": 0, "intervals-INITIAL_FORMS": 0}
    form |= {"sources": [ends["A"].pk], "destinations": [ends["C"].pk]}
    answer = client.post(f"/admin/sonar/mesh/{made.pk}/change/", form, follow=True)
    # What is saved now, not what was there before.
    assert f"The mesh by-xrdcp: 1 link is not tested. {DIFFERENT}" in answer.text
    made.destinations.set([ends["B"]])
    assert obstacles.notice(NOW) == ""
    made.destinations.set([ends["D"]])
    Mesh.objects.update(enabled=False)
    assert obstacles.notice(NOW) == ""


def test_who_gives_an_end_another_proxy_in_the_admin_is_told_which_links_that_ends(ends, client):
    made = mesh("by-xrdcp", mover="xrootd")
    made.sources.set([ends["D"]])
    made.destinations.set([ends["E"]])
    client.force_login(account(Role.ADMINISTRATOR, name="root"))
    token = ends["D"].credential
    form = {"name": token.name, "hosts": ",".join(token.hosts), "kind": "x509"}
    answer = client.post(f"/admin/sonar/credential/{token.pk}/change/", form, follow=True)
    why = "E_DATADISK has no X.509 proxy, and xrootd would send it the X.509 proxy of D_DATADISK"
    assert f"The mesh by-xrdcp: 1 link is not tested. {why}" in answer.text

    columns = ("name", "label", "base_url", "software", "inbound_cap", "outbound_cap")
    form = {column: getattr(ends["E"], column) for column in columns}
    form |= {"site": ends["E"].site_id, "tags": "", "budget_bytes_per_day": ""}
    page = f"/admin/sonar/endpoint/{ends['E'].pk}/change/"
    answer = client.post(page, form | {"inbound_cap": 3}, follow=True)
    assert "was changed successfully" in answer.text
    assert "1 link is not tested" not in answer.text
    form["base_url"] = "root://e.example/other"
    answer = client.post(page, form, follow=True)
    assert f"1 link is not tested. {why}" in answer.text


def test_where_no_mover_shows_proxies_nothing_is_looked_for(ends, django_assert_num_queries):
    mesh("simulated", mover="fake")
    Endpoint.objects.update(credential=None)
    with django_assert_num_queries(2):  # the meshes, and the workers
        assert obstacles.all_advice(NOW) == []
