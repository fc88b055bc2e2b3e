"""Nothing that may be read shows what is internal: marked in every field, sought in all answers."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import Q
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from matrix.answers.status import figures
from sonar.alerting import decisions
from sonar.models import (
    Alias,
    Annotation,
    Credential,
    Downtime,
    Endpoint,
    EndpointCheck,
    Leftover,
    Mesh,
    Probe,
    Schedule,
    SignOfLife,
    Site,
    SizeClass,
    Sweep,
    Transfer,
)
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.notation.check_steps import STEPS, CheckStep, StepState
from sonar.people import tokens
from sonar.people.roles import Role
from sonar.results import endings
from tests import found
from tests.accounts import account, logged_in
from tests.credentials import bind
from tests.matrix.sent import probe, send
from tests.matrix.world import HOUR, NOW, World, free_link, make
from tests.rights_samples import SAMPLES
from tests.test_rights import ROWS

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
# What each is found by; every one is planted by `marked`.
MARKS = {
    "base URL": "base-url-mark",
    "credential": "credential-mark",
    "service": "service-mark",
    "credential of a service": "service-credential-mark",
    "address in why a checksum is not verified": "192.168.7.99",
    "worker of a transfer": "worker-mark-1",
    "worker of a lost transfer": "worker-mark-2",
    "worker of a probe": "worker-mark-3",
    "worker's sign of life": "worker-mark-4",
    "remote connection": "192.0.2.99",
    "data server": "data-server-mark.example.org:1094",
    "note on RAL": "note-mark-site",
    "note on a link of RAL": "note-mark-link",
    "author of notes": "author-mark",
    "orderer of a sweep": "orderer-mark",
    "who is at an incident": "at-it-mark",
    "leftover": "leftover-mark",
    "address in a check": "198.51.100.77",
    "base URL in a check": "base-url-mark.example.org/data/sonar/incoming",
    "server that a check was led to": "st-check-mark.example.org",
    "alias that is a host": "alias-mark",
    "name of a token": "token-mark",
    "e-mail of an account": "mail-mark",
    "database": "password-mark",
    "secret key": "secret-key-mark",
}
# Of these, what an account may know that is logged in, whatever its role: who wrote what.
FOR_ACCOUNTS = {"author of notes", "who is at an incident"}
FORMATS = ("", "format=json", "format=csv", "format=ndjson")
OF_ONE_FORMAT = ("/api/v1/schema/", "/api/v1/docs/")


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> dict[str, str]:
    """Plant the marks in a world with one of each kind; return the names that samples need."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    figures.forget()
    settings.DATABASE_URL = f"postgresql://sonar:{MARKS['database']}@db/sonar"
    settings.SECRET_KEY = f"{MARKS['secret key']}-{settings.SECRET_KEY}"
    made = make()
    Endpoint.objects.filter(id=made.ral.id).update(
        base_url=f"https://{MARKS['base URL']}.example.org/data"
    )
    bind(Endpoint.objects.get(id=made.ral.id), MARKS["credential"])
    served()
    not_verified(made)
    names = {"transfer": str(measured(made)), "probe": str(running()), **written(made)}
    names |= {"sweep": str(swept(made)), "incident": str(called(made))}
    lost()
    signs()
    left(made)
    checked(made)
    return names


def served() -> None:
    """Keep a mesh whose service is known by a credential."""
    host = f"{MARKS['service']}.example.org"
    known_by = Credential.objects.create(name=MARKS["credential of a service"], hosts=[host])
    Mesh.objects.create(
        name="served", mover="fts3", service=f"https://{host}", service_credential=known_by
    )


def measured(made: World) -> object:
    seen = {
        "remote_connections": [f"tcp:{MARKS['remote connection']}:1094"],
        "data_server": MARKS["data server"],
    }
    worker = MARKS["worker of a transfer"]
    failed = {"error": "503 Service Unavailable", "worker": worker}
    send(made.ral, made.desy, NOW - HOUR, **failed)
    send(made.desy, made.ral, NOW - HOUR, **failed)
    return send(made.ral, made.desy, NOW - HOUR, **seen, worker=worker)


def not_verified(made: World) -> None:
    """End a test as a worker does of which a server said in its own words why it has no checksum.

    Its operators too read it without the addresses.
    """
    marks = MARKS["base URL"], MARKS["address in why a checksum is not verified"]
    ended = probe(made.ral, made.desy, size="large", started_at=NOW - HOUR)
    ended = Probe.objects.select_related("source", "destination").get(id=ended.id)
    receipt = Receipt(bytes=2 * 10**9, seconds=10.0)
    note = "https://{}.example.org/data/x: {} is at work".format(*marks)
    outcome = Outcome(receipt, None, None, 10.0, 1.0, verified=False, verified_note=note)
    assert endings.end_probe(ended, outcome)
    assert "is at work" in Transfer.objects.get(verified=False).verified_note


def running() -> object:
    worker = MARKS["worker of a probe"]
    return probe(*free_link(), size="large", started_at=NOW - MINUTE, worker=worker).id


def swept(made: World) -> object:
    """Keep a sweep of one test, ordered by an account whose name others may not know."""
    author = account(Role.OPERATOR, name=MARKS["orderer of a sweep"])
    sweep = Sweep.objects.create(
        source=made.ral,
        destination=made.desy,
        variable="mode",
        size_class=SizeClass.objects.get(name="large"),
        mover="http-tpc",
        streams=1,
        requested_at=NOW - HOUR,
        requested_by=author,
    )
    sweep.steps.create(position=0, value="pull", test_id=uuid4())
    return sweep.id


def called(made: World) -> int:
    """Open an incident, and let somebody do with it all that they may."""
    incident = found.opened(found.of_link(made.ral, made.desy))
    person = account(Role.OPERATOR, name=MARKS["who is at an incident"])
    decisions.acknowledge(incident, person, NOW)
    decisions.assign(incident, person, NOW, person)
    decisions.note(incident, person, NOW, "disks are ordered")
    return incident.id


def lost() -> None:
    """End a test whose worker died as recovery does, in its words."""
    worker = MARKS["worker of a lost transfer"]
    dead = probe(*free_link(), size="large", started_at=NOW - HOUR, worker=worker)
    assert endings.lose_probe(dead, NOW)
    assert Transfer.objects.filter(state="lost").exists()


def written(made: World) -> dict[str, str]:
    """Write notes, of which one is public, a downtime, and a token of their author."""
    author = account(Role.OPERATOR, name=MARKS["author of notes"])
    author.email = f"{MARKS['e-mail of an account']}@example.org"
    author.save()
    tokens.create(author, MARKS["name of a token"], ["read"], 1)
    common = {"starts_at": NOW - HOUR, "author": author}
    shown = Annotation.objects.create(site=made.ral.site, text="public", public=True, **common)
    Annotation.objects.create(site=made.ral.site, text=MARKS["note on RAL"], **common)
    ends = {"source": made.ral, "destination": made.desy}
    Annotation.objects.create(text=MARKS["note on a link of RAL"], **ends, **common)
    downtime = Downtime.objects.create(
        endpoint=made.ral, starts_at=NOW + HOUR, ends_at=NOW + 2 * HOUR, reason="disks"
    )
    Schedule.objects.filter(source=made.ral).update(skipped_because="cap", skipped_since=NOW)
    alias = Alias.objects.create(kind="rcsite", name="RAL-LCG2", site=made.ral.site)
    host = f"{MARKS['alias that is a host']}.example.org"
    Alias.objects.create(kind="se_host", name=host, endpoint=made.ral)
    return {"note": str(shown.id), "downtime": str(downtime.id), "alias": str(alias.id)}


def signs() -> None:
    host = MARKS["worker's sign of life"]
    for kind, queues in (("worker", ["transfers", "control"]), ("beat", [])):
        SignOfLife.objects.create(
            name=f"{kind}@{host}", kind=kind, seen_at=NOW, every_seconds=10, queues=queues
        )


def left(made: World) -> None:
    Leftover.objects.create(
        endpoint=made.ral,
        path=f"sonar/incoming/{MARKS['leftover']}",
        mover="http-tpc",
        since=NOW,
        next_try=NOW,
        error=f"no route to {MARKS['leftover']}",
    )


def checked(made: World) -> None:
    """Keep a check that found something wrong in each step, and said where."""
    seen = (
        f"HEAD {MARKS['base URL in a check']}: 403, at {MARKS['address in a check']}, "
        f"led to {MARKS['server that a check was led to']}:8443 with "
        f"{MARKS['credential']}"
    )
    steps = [
        CheckStep(name, StepState.FAILED, text, f"See {text}").to_json()
        for name, description in STEPS.items()
        for text in [seen if description.tells_where else f"{MARKS['base URL in a check']}: 403"]
    ]
    EndpointCheck.objects.create(
        endpoint=made.ral, requested_at=NOW, started_at=NOW, ended_at=NOW, steps=steps
    )


BY_SESSION = {"reader", "admin of another site"}
BY_TOKEN = "admin of another site, by token"


def readers() -> dict[str, tuple[Client, set[str]]]:
    """Return who reads, and the marks that they may see."""
    elsewhere = account(Role.SITE_ADMIN, Site.objects.get(name="Glasgow"))
    _, text = tokens.create(elsewhere, "script", ["read"], 1)
    by_token = Client(headers={"authorization": f"Token {text}"})
    return {
        "anyone": (Client(), set()),
        "reader": (logged_in(account()), FOR_ACCOUNTS),
        "admin of another site": (logged_in(elsewhere), FOR_ACCOUNTS),
        BY_TOKEN: (by_token, FOR_ACCOUNTS),
    }


def addresses(names: dict[str, str]) -> Iterator[str]:
    """Give every address that may be read: of each route, in each format; and what says why not."""
    for row in ROWS:
        if row.method == "GET" and row.cells["anyone"] in ("yes", "public"):
            path = row.sample.path.format_map(names)
            if row.route.startswith("/api/v1/") and row.route not in OF_ONE_FORMAT:
                yield from (f"{path}{'&' if '?' in path else '?'}{form}" for form in FORMATS)
            else:
                yield path
    for one in Transfer.objects.filter(Q(state="lost") | Q(verified=False)):
        yield from (f"/transfers/{one.id}/", f"/api/v1/transfers/{one.id}/")
    yield from ("/links/DESY_DATADISK/RAL_DATADISK/?reverse=1", "/sites/DESY/")
    yield "/sites/RAL/endpoints/RAL_DATADISK/"
    for search in MARKS.values():
        yield from (f"/search/?q={search}", f"/api/v1/transfers/?error={search}")
    yield "/api/v1/transfers/?state=lost&state=failed&state=done"
    yield f"/api/v1/probes/{names['transfer']}/"
    yield f"/transfers/{names['probe']}/"


def is_walked(path: str, who: str) -> bool:
    """By a session each call gives one format: pages are of one. A token says nothing to pages."""
    if who == BY_TOKEN:
        return path.startswith("/api/")
    return who not in BY_SESSION or "format=" not in path


def content_of(response: HttpResponse) -> bytes:
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return body + str(dict(response.headers)).encode()


@pytest.mark.long
def test_no_answer_shows_what_is_internal(marked):
    found = set()
    every = list(addresses(marked))
    for who, (client, may_see) in readers().items():
        for path in [path for path in every if is_walked(path, who)]:
            body = content_of(client.get(path))
            asked = path.encode()
            for name, mark in MARKS.items():
                # What was asked for is repeated; the answer must not have it besides.
                if name not in may_see and mark.encode() in body and mark.encode() not in asked:
                    found.add(f"{who} reads the {name} at {path}")
    assert found == set()


@pytest.mark.long
def test_a_search_for_what_is_internal_finds_nothing(marked):
    """Or it would say, letter by letter, what it does not show."""
    for mark in MARKS.values():
        assert Client().get(f"/api/v1/transfers/?error={mark}").json()["transfers"] == []
        assert "No site or endpoint has" in Client().get(f"/search/?q={mark}").content.decode()
        for plural in ("endpoints", "sites", "annotations"):
            answer = Client().get(f"/api/v1/{plural}/?search={mark}")
            assert answer.status_code == 400 or answer.json()[plural] == []


@pytest.mark.long
def test_who_may_reads_each_mark_somewhere(marked):
    """Or the marks were not where the search for them looks."""
    client = logged_in(account(Role.ADMINISTRATOR))
    plain = [path for path in addresses(marked) if not any(one in path for one in MARKS.values())]
    seen = b"".join(content_of(client.get(path)) for path in plain)
    # Leftovers, tokens, accounts and settings have no route but the admin's and an own page.
    elsewhere = {"leftover", "name of a token", "e-mail of an account", "database", "secret key"}
    elsewhere.add("address in why a checksum is not verified")  # it is not even kept
    hidden = {name for name, mark in MARKS.items() if mark.encode() not in seen}
    assert hidden == elsewhere


def test_every_route_that_may_be_read_is_walked(marked):
    walked = {path.partition("?")[0] for path in addresses(marked)}
    readable = {
        (row.route, row.method)
        for row in ROWS
        if row.method == "GET" and row.cells["anyone"] != "no"
    }
    assert {SAMPLES[one].path.partition("?")[0].format_map(marked) for one in readable} <= walked
    assert len(readable) > 35
