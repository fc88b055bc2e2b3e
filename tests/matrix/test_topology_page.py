"""Proposed registry changes are reviewed and applied on a page."""

import json
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client

from sonar import tasks
from sonar.models import Endpoint, Proposal, Site
from sonar.people.roles import Role
from sonar.registry.topology.catalogue import SOURCES
from sonar.settings import TOPOLOGY_SOURCES, envtopology
from tests.accounts import account
from tests.html import Page
from tests.matrix.world import NOW, World
from tests.sonar import topologies

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
URL = "/operations/topology/"
GLASGOW = "UKI-SCOTGRID-GLASGOW_DATADISK"


@pytest.fixture
def operator(client: Client, small_world: World) -> User:
    user = account(Role.OPERATOR)
    client.force_login(user)
    return user


@pytest.fixture
def proposed(small_world: World, tmp_path: Path) -> None:
    documents = {"sites": topologies.cric_sites(), "ends": topologies.cric_endpoints()}
    paths = topologies.written(tmp_path, **documents)
    call_command("topology", "propose", "--from", "cric-atlas", *paths)


def page_of(client: Client) -> Page:
    return Page(client.get(URL).content.decode())


def test_it_says_how_to_propose_where_nothing_is(client, operator):
    page = page_of(client)
    assert "There are no proposed changes. To propose changes, upload documents" in page
    assert "manage.py topology propose --from" in page


def upload(client: Client, *documents: str, source: str = "cric-atlas") -> HttpResponse:
    files = [SimpleUploadedFile("ends.json", each.encode()) for each in documents]
    return client.post(f"{URL}propose/", {"source": source, "documents": files}, follow=True)


def test_what_somebody_uploads_is_proposed_and_not_applied(client, operator):
    page = Page(upload(client, json.dumps(topologies.cric_endpoints())).content.decode())
    assert "from ends.json" in page
    assert f"- {GLASGOW}: the site UKI-SCOTGRID-GLASGOW of the endpoint is not registered" in page
    assert Proposal.objects.get().places == "ends.json"
    assert not Endpoint.objects.filter(name=GLASGOW).exists()


@pytest.mark.parametrize(
    ("documents", "source", "said"),
    [
        ([], "cric-atlas", "Choose the files that contain the responses of the topology source."),
        ([""], "cric-atlas", "The submitted file is empty."),
        (["{}", "{}"], "cric-atlas", "Two documents are named ends.json. Rename one of them."),
        (['{"a": 1'], "cric-atlas", "ends.json: line 1, column 8: not JSON"),
        (["{}"], "gocdb", "gocdb is not one of the available choices."),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_field(client, operator, documents, source, said):
    response = upload(client, *documents, source=source)
    assert response.status_code == 400
    page = Page(response.content.decode())
    assert (said in page, "No changes were proposed." in page) == (True, True)
    assert not Proposal.objects.exists()


def test_documents_may_be_larger_than_other_forms_up_to_a_limit(client, operator):
    large = json.dumps(topologies.cric_endpoints()) + " " * 2_000_000
    assert upload(client, large).status_code == 200
    refused = upload(client, large + " " * 6_000_000)
    assert refused.status_code == 413
    said = (
        "The request is larger than 8 MB, files included. Nothing was changed. Go back and correct"
    )
    assert said in Page(refused.content.decode())


def test_a_proposal_is_shown_line_by_line_and_applied_once(
    client, operator, proposed, django_assert_num_queries
):
    client.get(URL)  # the rights of the account are read once
    with django_assert_num_queries(15):
        page = page_of(client)
    summary = "cric-atlas: 2 new sites, 2 new endpoints, 6 aliases"
    assert page.texts("h2") == [summary, "Propose changes from documents"]
    assert f"+ {GLASGOW}: base URL davs://ceph.example.ac.uk/atlas/datadisk" in page
    assert not Endpoint.objects.filter(name=GLASGOW).exists()
    sent = dict(page.parts("form.fields")[0].hidden())
    response = client.post(URL, sent, follow=True)
    shown = Page(response.content.decode())
    assert "Applied. cric-atlas: 2 new sites" in shown
    assert "cric-atlas: no changes" in shown
    assert "Registered but not yet in use: 2" in shown
    assert Endpoint.objects.get(name=GLASGOW).retired_at
    assert LogEntry.objects.get().user == operator
    sent = dict(shown.parts("form.fields")[0].hidden())
    client.post(URL, sent | {"join": "on"})
    assert Endpoint.objects.get(name=GLASGOW).retired_at is None


def test_nobody_applies_what_they_have_not_seen(client, operator, proposed):
    sent = dict(page_of(client).parts("form.fields")[0].hidden())
    Site.objects.create(name="BNL-ATLAS")
    response = client.post(URL, sent)
    assert response.status_code == 409
    assert "has changed. Review the changes again." in response.content.decode()
    assert not Endpoint.objects.filter(name=GLASGOW).exists()
    assert client.post(URL, sent | {"digest": "x"}).status_code == 400


def test_sources_are_read_on_a_schedule_and_one_that_breaks_keeps_its_last_proposal(
    small_world, tmp_path, settings, caplog
):
    (sites,) = topologies.written(tmp_path, sites=topologies.cric_sites())
    settings.SONAR_TOPOLOGY = {"cric-atlas": [str(sites)], "rucio": [str(tmp_path / "none")]}
    tasks.propose_topology()
    (proposal,) = Proposal.objects.all()
    assert (proposal.source, proposal.read_at) == ("cric-atlas", NOW)
    assert "rucio proposes nothing new" in caplog.text
    Path(sites).write_text("{")
    tasks.propose_topology()
    assert Proposal.objects.get().topology == proposal.topology
    assert "cric-atlas proposes nothing new" in caplog.text


@pytest.mark.parametrize(
    "text",
    ["cric", "cric-atlas", "cric-atlas=", "rucio=a, rucio=b", "x=https://me:secret@a.example/"],
)
def test_a_schedule_that_names_no_source_stops_the_start(monkeypatch, text: str):
    monkeypatch.setenv("SONAR_TOPOLOGY", text)
    with pytest.raises(ImproperlyConfigured, match=r"SONAR_TOPOLOGY: entry [12] ") as caught:
        envtopology("SONAR_TOPOLOGY")
    assert "secret" not in str(caught.value)


def test_a_schedule_names_sources_and_their_documents(monkeypatch):
    monkeypatch.setenv(
        "SONAR_TOPOLOGY", "cric-atlas=https://a.example/x https://a.example/y, srr=z"
    )
    expected = {"cric-atlas": ["https://a.example/x", "https://a.example/y"], "srr": ["z"]}
    assert envtopology("SONAR_TOPOLOGY") == expected
    assert set(TOPOLOGY_SOURCES) == set(SOURCES)
