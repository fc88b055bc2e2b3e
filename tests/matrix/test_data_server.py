"""Which server moved the bytes: exact, for operators on pages and in the API, for nobody else."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from django.db import connection
from django.test import Client

from matrix.query.filters import Filter
from matrix.store import runs
from sonar.models import Transfer
from sonar.notation.windows import Window
from sonar.people.roles import Role
from sonar.results import sealing
from tests.accounts import account, logged_in
from tests.matrix import world
from tests.matrix.responses import statements
from tests.matrix.sent import send
from tests.matrix.world import HOUR, NOW, World, profile
from tests.scenes import standing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
FAST, SLOW = "st-047.example.org:8443", "st-048.example.org:8443"
URL = "/api/v1/transfers/"
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def moved(django_db_setup, django_db_blocker) -> Iterator[World]:
    """Send by two servers and by some that nobody told of, in sealed days and hours, and now."""
    with standing(django_db_blocker, make_moved) as made:
        yield made


@pytest.fixture
def untested(moved) -> World:
    """The same without a result."""
    Transfer.objects.all().delete()
    return moved


def make_moved() -> World:
    made = world.make()
    ends = made.ral, made.glasgow
    sweep = profile(purpose="sweep").id
    for number in range(40):
        at = NOW - timedelta(minutes=7) - number * HOUR
        server, seconds = [(FAST, 10.0), (SLOW, 40.0), ("", 20.0)][number % 3]
        failed = {"error": "503", "data_server": server} if number % 10 == 7 else {}
        send(*ends, at, **({"seconds": seconds, "data_server": server} | failed))
    send(*ends, NOW - HOUR, data_server=SLOW, profile_id=sweep)
    sealing.seal(NOW - HOUR)
    return made


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR))


@pytest.mark.parametrize(
    "filters",
    [
        [Filter("data_server", SLOW)],
        [Filter("data_server", SLOW), Filter("data_server", FAST)],
        [Filter("data_server", SLOW, exclude=True)],
        [Filter("data_server", SLOW), Filter("purpose", "sweep")],
        [Filter("data_server", "nobody.example.org:1")],
    ],
)
def test_the_filter_is_exact_over_segments_and_rows(moved, filters):
    window = Window(NOW - 2 * DAY, NOW)
    kept = runs.read("large", window, filters, sizes=True, failures=True)
    servers = {option.value for option in filters if option.parameter == "data_server"}
    rows = Transfer.objects.filter(started_at__gte=window.start)
    if filters[0].exclude:
        rows = rows.exclude(data_server__in=servers)
    else:
        rows = rows.filter(data_server__in=servers)
    of_sweeps = rows.filter(profile__purpose="sweep")
    is_asked = len(filters) > 1 and filters[1].parameter == "purpose"
    rows = of_sweeps if is_asked else rows.exclude(profile__purpose="sweep")
    expected = [
        np.float32(one.bytes / one.seconds if one.state == "done" else -1.0) for one in rows
    ]
    rates = [(run.keys & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32) for run in kept]
    assert sorted(np.concatenate([*rates, np.empty(0, np.float32)])) == sorted(expected)


def test_few_rows_of_a_server_are_found_by_its_index(moved):
    rows = Transfer.objects.filter(data_server__in=[SLOW], started_at__gte=NOW - DAY)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "data_server" in rows.values("id").explain()


def test_operators_read_it_in_every_form(moved, operator):
    text = f"?data_server={SLOW}"
    rows = operator.get(f"{URL}{text}").json()
    assert {row["data_server"] for row in rows["transfers"]} == {SLOW}
    assert rows["query"]["data_server"] == [SLOW]
    csv = b"".join(operator.get(f"{URL}{text}&format=csv").streaming_content).decode().split()
    assert csv[0].endswith(",verified,data_server")
    assert all(line.endswith(f",{SLOW}") for line in csv[1:])
    lines = b"".join(operator.get(f"{URL}{text}&format=ndjson").streaming_content).decode()
    assert lines.count(f'"data_server":"{SLOW}"') == len(csv) - 1
    one = rows["transfers"][0]["id"]
    assert operator.get(f"{URL}{one}/").json()["data_server"] == SLOW
    page = operator.get(f"/transfers/{one}/").content.decode()
    assert f"<dd>{SLOW}</dd>" in page


def test_nobody_else_reads_it(moved):
    one = Transfer.objects.filter(data_server=SLOW)[0].id
    paths = [URL, f"{URL}?format=csv", f"{URL}?format=ndjson", f"{URL}{one}/"]
    paths += [f"{URL}{one}/?format=csv", f"/transfers/{one}/"]
    paths.append("/links/RAL_DATADISK/Glasgow_DATADISK/")
    for client in (Client(), logged_in(account())):
        for path in paths:
            response = client.get(path)
            body = b"".join(response.streaming_content) if response.streaming else response.content
            assert b"st-04" not in body
            assert b"data_server" not in body or path.endswith("/RAL_DATADISK/")
            assert response.status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("parameter", ["data_server", "compare.data_server"])
def test_a_page_refuses_its_filter_to_others(moved, operator, parameter):
    others = (Client(), logged_in(account()))
    pages = ("/", "/table/", "/sites/RAL/", "/links/RAL_DATADISK/Glasgow_DATADISK/")
    for path in (*pages, "/cells/", "/cells/codes/"):
        text = f"{path}?{parameter}={FAST}"
        for client in others:
            response = client.get(text)
            assert response.status_code == 403, path
            assert f"“{parameter}” contains host names" in response.content.decode()
        assert operator.get(text, follow=True).status_code in (200, 400), path


@pytest.mark.parametrize(
    "path",
    [
        "matrix/?data_server",
        "links/?size=large&data%5Fserver",
        "transfers/?data_server",
        "sites/RAL/?d%61ta_server",
    ],
)
def test_the_api_refuses_its_filter_to_others(moved, operator, path):
    text = f"/api/v1/{path}={FAST}"
    for client in (Client(), logged_in(account())):
        response = client.get(text)
        assert response.status_code == 403
        assert "only operators" in response.json()["errors"]["data_server"][0]
    assert operator.get(text).status_code == 200


def test_a_wall_does_not_ask_for_it_either(moved, operator):
    text = f"/?wall=1&views={quote(f'data_server={FAST}')}"
    assert Client().get(text).status_code == 403
    assert operator.get(text, follow=True).status_code == 200


def test_a_server_is_written_with_its_port(moved, operator):
    response = operator.get(f"{URL}?data_server=st-048.example.org")
    assert response.status_code == 400
    assert "a host and its port" in response.json()["errors"]["data_server"][0]


@pytest.mark.long
def test_ways_of_measuring_have_a_row_for_each_server(moved, operator):
    path = "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h"
    assert "data server" not in Client().get(path).content.decode()
    operator.get(path)
    sent = statements(operator.get, path)
    assert sum("percentile_cont" in statement for statement in sent) == 1
    page = operator.get(path).content.decode()
    section = page[page.index("Data servers that sent or received") :].partition("</table>")[0]
    assert section.index(SLOW) < section.index(FAST)  # that of the sweep, too
    assert "200" in section
    assert "50.0" in section
    assert f"data_server={SLOW}" in section


def test_a_matrix_of_one_server_has_its_rates(moved, operator):
    text = f"/api/v1/matrix/?window=24h&stat=median&source_site=RAL&data_server={SLOW}"
    answer = operator.get(text).json()
    values = {value for row in answer["cells"]["value"] for value in row if value is not None}
    assert values == {50.0}
    assert f"only with data server {SLOW}" in answer["description"]


def diagnosed(client: Client, moved: World) -> dict[str, dict[str, Any]]:
    """Return what the API says of the link, by its kind."""
    ends = {"source": moved.ral.name, "destination": moved.glasgow.name}
    answer = client.get("/api/v1/diagnosis/", ends | {"window": "7d", "size": "large"}).json()
    return {each["kind"]: each for each in answer["diagnoses"]}


def test_the_slow_server_is_named_to_those_who_may_see_machines(moved, operator, client):
    said = diagnosed(operator, moved)["slow-server"]
    assert said["headline"] == (
        "Transfers through st-048.example.org are slow: 25 % of the rate of the other data server."
    )
    assert said["evidence"] == [
        "st-048.example.org: 50.0 MB/s (n = 12).",
        "1 other data server: 200 MB/s (n = 13).",
    ]
    page = f"/links/{moved.ral.name}/{moved.glasgow.name}/?window=7d&size=large"
    assert "are slow: " in operator.get(page, follow=True).content.decode()
    assert "slow-server" not in diagnosed(client, moved)
    assert "st-048" not in client.get(page, follow=True).content.decode()


def test_servers_as_fast_as_each_other_are_not_named(untested, operator):
    rng = np.random.default_rng(34)
    for number in range(40):
        seconds, server = rng.lognormal(3, 0.1), (FAST, SLOW)[number % 2]
        at = NOW - timedelta(minutes=7) - number * HOUR
        send(untested.ral, untested.glasgow, at, seconds=seconds, data_server=server)
    assert "slow-server" not in diagnosed(operator, untested)


@pytest.mark.parametrize(("seconds", "is_told"), [(5.04, True), (0.4, False)])
def test_how_long_a_redirector_took_is_told_to_all_readers(untested, client, seconds, is_told):
    for number in range(4):
        at = NOW - timedelta(minutes=7) - number * HOUR
        send(untested.ral, untested.glasgow, at, redirect_seconds=seconds, data_server=FAST)
    said = diagnosed(client, untested)
    assert ("slow-redirect" in said) == is_told
    if is_told:
        assert said["slow-redirect"]["headline"] == (
            "The redirector takes 5.04 s to find a data server."
        )
