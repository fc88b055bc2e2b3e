"""Nothing that storage servers tell of tokens and of where they are is to be read anywhere.

Real tests are run by a real worker against servers that repeat all they know (tests.storage.echo).
Then every place is searched that can be read, as everybody who can read it.
"""

import csv
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from sonar import tasks
from sonar.models import (
    DowntimeSource,
    Endpoint,
    EndpointCheck,
    Leftover,
    Probe,
    Proposal,
    RefusedRedirect,
    Site,
    Transfer,
)
from sonar.ordering import request_checks
from sonar.people.roles import Role
from sonar.redaction.disguises import View, codes, letters_of
from sonar.registry.topology import proposals
from sonar.registry.topology.model import Topology
from sonar.sandbox import processes as children
from tests.accounts import account, logged_in
from tests.matrix.test_leaks import FORMATS, OF_ONE_FORMAT, content_of
from tests.rights_samples import scene
from tests.sonar import downtimes
from tests.sonar.world import queued
from tests.storage.echo import (
    ACCOUNT,
    BASE,
    CAPABILITIES,
    DECENT,
    HOST,
    STRANGER,
    STRANGERS_PORT,
    WRITTEN,
)
from tests.storage.workers import Processes
from tests.test_rights import ROWS

pytestmark = pytest.mark.usefixtures("real_commits")

# Of the decent end and of those that tell: what Sonar keeps, and what is lent to the other end.
TOKENS = {
    "good": "kQ7vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue0",
    "evil": "Nw5Xb8Jr1Kt4Zs7Mq0Pd3Gy6Cf9Vh2Lo-Ia_Ee",
}
# In addresses of sources, where no secret belongs.
OF_SOURCES = {
    "password of a source": "Qd8Wn3Xk6Tz1Rv9Mb5Hs2Jy7Lg4Pc0Fu",
    "query of a source": "Vr2Lk7Zn4Hq9Xs1Tb6Wd8Mf3Jp5Gy0Ce",
}
# Where hosts may stand: for who may see base URLs anyway.
FOR_OPERATORS = {
    ("sonar_endpoint", "base_url"),
    ("sonar_historyentry", "changes"),
    ("sonar_credential", "hosts"),
    ("sonar_credentialstate", "sentence"),
    ("sonar_leftover", "error"),
    ("sonar_transfer", "remote_connections"),
    ("sonar_transfer", "data_server"),
    ("sonar_endpointcheck", "steps"),
    ("sonar_refusedredirect", "server"),
}
WORKER = ["worker", "--pool=threads", "--loglevel=DEBUG"]
PUSHED = ("everything", "failure", "led-on")
CHECKED = ("led-on", "led-astray")
SIZE = 200_000
# Ends of lines, rows of JSON, tags of pages.
PIECES = re.compile(r"\n|(?<=\}),|(?=<)")
PORTS = re.compile(r'(?<!_bytes"):\s?(\d{4,5})(?!\d)')  # a count of bytes is no port
# Names of hosts are public: they are hidden as they are written and escaped, not in codes of them.
ESCAPED = [name for name, write in WRITTEN.items() if STRANGER in View(write(STRANGER)).text]


@dataclass(frozen=True)
class Planted:
    """What is sought: tokens for nobody, places for who may see base URLs."""

    tokens: dict[str, list[str]]
    ports: list[int]
    known: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)

    def tokens_in(self, text: str | View) -> set[str]:
        """Return whose token, or half a token, a text has in whatever writing."""
        letters = (text if isinstance(text, View) else View(text)).letters
        return {name for name, forms in self.tokens.items() if any(one in letters for one in forms)}

    def places_in(self, text: str | View) -> set[str]:
        """Return which hosts, addresses, base paths and ports with a colon a text has."""
        seen = text if isinstance(text, View) else View(text)
        found = {one for one in (HOST, BASE, STRANGER) if one in seen.text}
        said = {int(one) for one in PORTS.findall(seen.text)}
        return found | {f"port {one}" for one in said.intersection(self.ports)}

    def found_in(self, piece: str) -> tuple[set[str], set[str]]:
        if piece not in self.known:
            view = View(piece)
            self.known[piece] = self.tokens_in(view), self.places_in(view)
        return self.known[piece]


@dataclass(frozen=True)
class World:
    """All that has run, and what a search needs."""

    planted: Planted
    processes: Processes
    names: dict[str, str]
    queue: str
    said: str
    """What commands said of sources."""


def forms_of(token: str) -> list[str]:
    halves = token[: len(token) // 2], token[len(token) // 2 :]
    return [letters_of(half) for half in halves] + [one for half in halves for one in codes(half)]


def credential(name: str) -> Any:
    """Return what an endpoint refers to for this token."""
    model = apps.all_models["sonar"].get("credential")
    return name if model is None else model.objects.get_or_create(name=name, hosts=[HOST])[0]


def endpoint(name: str, port: int, token: str) -> Endpoint:
    facts: dict[str, Any] = {"credential": credential(token)}
    if "lend_credential" in {field.name for field in Endpoint._meta.get_fields()}:
        facts["lend_credential"] = True
    site, _ = Site.objects.get_or_create(name="Planted")
    url = f"http://{HOST}:{port}/{BASE}"
    caps = {"inbound_cap": 500, "outbound_cap": 500}
    return Endpoint.objects.create(name=name, site=site, base_url=url, **caps, **facts)


def ordered(source: Endpoint, destination: Endpoint, mode: str = "pull") -> Probe:
    return queued(source, destination, bytes=SIZE, mover="http-tpc", mode=mode)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    directory = tmp_path / "credentials"
    directory.mkdir()
    for name, token in TOKENS.items():
        (directory / name).write_text(token)
    started = Processes(tmp_path, {"SONAR_CREDENTIALS_DIR": str(directory)})
    yield started
    started.close()


@pytest.fixture
def world(tmp_path: Path, processes: Processes) -> Iterator[World]:
    """Run a test with every way of telling, and clean up after them."""
    with ExitStack() as stack:
        names = scene()  # one of its tests is queued, and nobody is sent it; one waits for that
        ports = start_echo(tmp_path, stack)
        order_all(ports)
        queue = everything_in_redis()
        processes.start(*WORKER, "-c", "32", "-Q", "transfers,cleanup")
        processes.wait_for(lambda: Probe.objects.count() == 2, seconds=300)
        Leftover.objects.update(next_try=timezone.now())
        tasks.clean_up.delay()
        processes.wait_for(lambda: Leftover.objects.filter(tries__gt=0).exists())
        order_checks()
        checks = EndpointCheck.objects.exclude(requested_by=None).filter(ended_at=None)
        processes.wait_for(lambda: not checks.exists(), seconds=120)
        said = ask_sources()
        tokens = {name: forms_of(one) for name, one in (TOKENS | CAPABILITIES | OF_SOURCES).items()}
        planted = Planted(tokens, [*ports.values(), STRANGERS_PORT])
        yield World(planted, processes, names, queue + everything_in_redis(), said)


def order_checks() -> None:
    """Let the worker check endpoints of some ways of telling."""
    user = account(Role.ADMINISTRATOR, name="checker")
    for end in Endpoint.objects.filter(site__name="Planted"):
        if end.name.split(".")[0] in CHECKED:
            check = request_checks.order(end, user, timezone.now())
            tasks.check_endpoint.delay(str(check.run))


def ask_sources() -> str:
    """Read topology and downtimes where addresses have secrets; return what is said of it."""
    said = []
    password, query = OF_SOURCES.values()
    with downtimes.serving() as feed:
        feed.then = f"http://me:{password}@127.0.0.1:9/?token={query}"
        for command in (
            ("topology", "propose", "--from", "cric-atlas", f"https://me:{password}@{HOST}/x"),
            ("topology", "propose", "--from", "cric-atlas", f"https://{HOST}/x?token={query}"),
            ("import_downtimes", "--from", "gocdb", f"https://me:{password}@{HOST}/?q={query}"),
            ("import_downtimes", "--from", "gocdb", feed.url),
        ):
            with pytest.raises(CommandError) as caught:
                call_command(*command)
            said.append(str(caught.value))
    proposals.keep(
        Topology(source="cric-atlas"), [f"https://cric.example/x?token={query}"], timezone.now()
    )
    return "\n".join(said)


def start_echo(place: Path, stack: ExitStack) -> dict[str, int]:
    """Start the servers that tell; return their ports by name."""
    noted, log = place / "echo.json", place / "echo-server"
    command = [sys.executable, "-m", "tests.storage.echo", "--directory", str(place)]
    process: subprocess.Popen[bytes] = children.start(command, log)
    stack.callback(children.stop, process)
    children.wait_until(noted.is_file, process, "The server that tells", log)
    ports: dict[str, int] = json.loads(noted.read_text())
    return ports


def order_all(ports: dict[str, int]) -> None:
    site = Site.objects.create(name="Strangers")
    url = f"https://{STRANGER}:{STRANGERS_PORT}/pnfs"
    Endpoint.objects.create(name="STRANGER", site=site, base_url=url)
    ends = {name: endpoint(name, port, "evil") for name, port in ports.items() if name != DECENT}
    good = endpoint(DECENT, ports[DECENT], "good")
    probes = [ordered(good, end, "pull") for end in ends.values()]
    pushed = [end for name, end in ends.items() if name.split(".")[0] in PUSHED]
    probes += [ordered(end, good, "push") for end in pushed]
    for probe in probes:
        tasks.transfer.delay(str(probe.id))


def everything_in_redis() -> str:
    """Return the names and values of all keys, whatever their types."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        found = [(key, value_of(client, key)) for key in client.scan_iter()]
    assert found
    return "\n".join(f"{key!r} {value!r}" for key, value in found)


def value_of(client: redis.Redis, key: bytes) -> object:
    kind = client.type(key)
    reading: dict[bytes, Any] = {
        b"string": client.get,
        b"list": lambda name: client.lrange(name, 0, -1),
        b"set": client.smembers,
        b"hash": client.hgetall,
        b"zset": lambda name: client.zrange(name, 0, -1, withscores=True),
    }
    return reading[kind](key)


@pytest.mark.long
def test_what_storage_servers_repeat_is_nowhere_to_be_read(world: World, tmp_path):
    """One test, as what is searched takes its time to come about."""
    assert_that_they_told(world.planted)
    found = in_text("a log", world.processes.logs, world.planted, places=False)
    found += in_text("Redis", world.queue, world.planted)
    found += in_text("a command", world.said, world.planted, places=False)
    found += in_rows(world.planted)
    found += in_exports(world.planted, tmp_path)
    found += in_answers(world)
    assert "\n".join(sorted(set(found))) == ""


def assert_that_they_told(planted: Planted) -> None:
    """Or there was nothing to be hidden: each place of telling has its errors, and half hide it."""
    errors = list(Transfer.objects.exclude(error="").values_list("error", flat=True))
    assert len(errors) > len(WRITTEN) * (len(ACCOUNT) - 2)
    # A HEAD, which comes before, has no body to tell in.
    copies = [one for one in errors if one.startswith("COPY")]
    hidden = [one for one in copies if re.search(r"\*\*\*|\[(server|address|port|base)\]", one)]
    assert len(hidden) > len(copies) / 2, copies
    assert Transfer.objects.exclude(remote_connections=[]).exists()
    assert planted.places_in(" ".join(Leftover.objects.values_list("error", flat=True)))
    astray = RefusedRedirect.objects.filter(endpoint__name__startswith="led-astray")
    assert set(astray.values_list("server", flat=True)) == {f"{STRANGER}:{STRANGERS_PORT}"}
    led_on = Transfer.objects.filter(destination__name__startswith="led-on", error__contains="500")
    assert led_on.filter(error__contains="***").count() > len(WRITTEN) / 3
    steps = EndpointCheck.objects.exclude(requested_by=None).values_list("steps", flat=True)
    assert len(steps) == len(CHECKED) * len(WRITTEN)
    assert "***" in str(list(steps))
    assert DowntimeSource.objects.exclude(error="").exists()
    assert "https://cric.example/x" in Proposal.objects.values_list("places", flat=True)


def in_text(where: str, text: str, planted: Planted, *, places: bool = True) -> list[str]:
    """Search piece by piece: most pieces of an answer stand in many others."""
    found = []
    for piece in dict.fromkeys(PIECES.split(text)):
        tokens, seen = planted.found_in(piece)
        found += [f"{where}: the token {name}" for name in tokens]
        found += [f"{where}: {one}" for one in seen if places]
    return found


def in_rows(planted: Planted) -> list[str]:
    """Search every column of every row of every table."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT to_jsonb(t) FROM {connection.ops.quote_name(table)} AS t")
            for (row,) in cursor.fetchall():
                for column, value in json.loads(row).items():
                    places = (table, column) not in FOR_OPERATORS
                    where = f"{table}.{column}"
                    found += in_text(where, json.dumps(value), planted, places=places)
    return found


def in_exports(planted: Planted, place: Path) -> list[str]:
    """Search an export of all but the column that is for operators."""
    file = place / "export.csv"
    call_command("export_results", str(file))
    with file.open(newline="") as lines:
        rows = [{**row, "data_server": ""} for row in csv.DictReader(lines)]
    assert len(rows) > len(WRITTEN)
    return in_text("export", "\n".join(",".join(row.values()) for row in rows), planted)


def readers() -> Iterator[tuple[str, Client, bool]]:
    """Give who reads, and whether they may see where the servers are.

    Who reads by an account sees what admins of other sites see, too; and in all but the admin an
    administrator sees what operators see.
    """
    mine, other = Site.objects.get(name="Planted"), Site.objects.get(name="Glasgow")
    yield "nobody", Client(), False
    yield "admin of another site", logged_in(account(Role.SITE_ADMIN, other, name="other")), False
    yield "admin of the site", logged_in(account(Role.SITE_ADMIN, mine, name="own")), True
    yield "operator", logged_in(staff(account(Role.OPERATOR))), True
    yield "administrator", logged_in(staff(account(Role.ADMINISTRATOR))), True


def staff(user: Any) -> Any:
    user.is_staff = True
    user.save()
    return user


def in_answers(world: World) -> list[str]:
    """Ask for all that there is, as everybody."""
    found = []
    every = list(addresses(world.names))
    plain = [path for path in every if "format=" not in path]  # one format of each says the same
    in_admin = [path for path in plain if path.startswith("/admin/")]
    asked = {"nobody": every, "administrator": in_admin}
    for who, client, sees_places in readers():
        for path in asked.get(who, plain):
            answer = client.get(path)
            assert answer.status_code < 500 or path.startswith("/readyz"), (who, path)
            text = content_of(answer).decode("utf-8", "replace")
            # What was asked for is repeated.
            text = text.replace(path, "").replace(path.replace("&", "&amp;"), "")
            found += in_text(f"{who} at {path}", text, world.planted, places=not sees_places)
    return found


def addresses(names: dict[str, str]) -> Iterator[str]:
    """Give the addresses of all routes, of what has run, of the admin, and searches."""
    for row in ROWS:
        if row.method == "GET" and row.route not in OF_ONE_FORMAT:  # which say nothing of results
            path = row.sample.path.format_map(names | {"key": "none"})
            yield path
            if row.route.startswith("/api/v1/"):
                yield from (f"{path}{'&' if '?' in path else '?'}{one}" for one in FORMATS if one)
    told = Transfer.objects.select_related("destination")
    one_of_each = {one.destination.name.split(".")[0]: one for one in told}
    for one in one_of_each.values():
        yield from (f"/transfers/{one.id}/", f"/api/v1/transfers/{one.id}/")
    for place in ("failure.plain", "everything.base64", "digest.plain", "cleaning.plain"):
        yield f"/links/{DECENT}/{place}/"
        yield f"/api/v1/endpoints/{place}/"
        yield f"/api/v1/series/?source={DECENT}&destination={place}"
    yield from ("/sites/Planted/", "/api/v1/sites/Planted/", "/api/v1/endpoints/?page_size=500")
    yield "/api/v1/transfers/?state=failed&state=done&state=lost&page_size=1000"
    yield f"/api/v1/transfers/{uuid.uuid4()}/"
    yield from ("/operations/topology/", "/operations/aliases/", "/api/v1/downtimes/")
    for place in ("led-on.plain", "led-on.base64", "led-astray.plain"):
        yield f"/sites/Planted/endpoints/{place}/"
        yield f"/api/v1/endpoints/{place}/check/"
    yield from of_admin()


def of_admin() -> Iterator[str]:
    """Give the lists, rows and forms of every kind of row in the admin."""
    for model in admin.site._registry:
        kind = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{kind}_changelist")
        yield reverse(f"{kind}_add")
        for key in model._default_manager.values_list("pk", flat=True)[:1]:
            yield reverse(f"{kind}_change", args=[key])
            yield reverse(f"{kind}_history", args=[key])


def test_the_search_finds_what_is_planted():
    """Or all would be well, whatever is told."""
    token = TOKENS["evil"]
    planted = Planted({name: forms_of(one) for name, one in TOKENS.items()}, [STRANGERS_PORT])
    for name, write in WRITTEN.items():
        assert planted.tokens_in(write(token)) == {"evil"}, name
        assert planted.tokens_in(write(f"it is {token[:-2]}")) == {"evil"}, name
    for name in ESCAPED:
        assert STRANGER in planted.places_in(WRITTEN[name](STRANGER)), name
    assert len(ESCAPED) > len(WRITTEN) / 2
    assert planted.places_in(f"http://{HOST}:{STRANGERS_PORT}/{BASE}") == {
        HOST,
        BASE,
        f"port {STRANGERS_PORT}",
    }
