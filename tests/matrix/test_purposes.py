"""Sweeps count nowhere unless they are asked for, and are listed everywhere."""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client

from matrix.answers.matrix import grid
from matrix.answers.table import link_table
from matrix.query.filters import NO_SWEEPS, TESTS, Filter, counted
from matrix.store.cache import ANSWERS, STANDINGS
from sonar.models import Profile
from sonar.notation.windows import format_time
from sonar.results import sealing
from tests.matrix import world
from tests.matrix.responses import answer, html, words
from tests.matrix.sent import send
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
ENDS = "source=RAL_DATADISK&destination=Glasgow_DATADISK"
DAYS = f"from={format_time(NOW - DAY)}&to={format_time(NOW - DAY / 2)}"
# All that is made of results: whatever asks, and for whatever.
CALLS = (
    "/api/v1/matrix/?window=24h",
    "/api/v1/matrix/?window=7d&stat=p95&rows=site&columns=cloud",
    "/api/v1/matrix/?window=24h&stat=overhead",
    "/api/v1/matrix/?window=24h&compare=week",
    f"/api/v1/matrix/?{DAYS}&stat=throughput",
    "/api/v1/links/?window=24h&page_size=1000",
    "/api/v1/links/?window=24h&page_size=1000&compare=week",
    f"/api/v1/series/?{ENDS}&window=7d",
    f"/api/v1/series/?{ENDS}&window=24h&compare=week",
    "/api/v1/strip/?window=7d",
    "/api/v1/sites/?window=24h",
    "/api/v1/sites/RAL/?window=24h",
    "/api/v1/sites/RAL/?window=24h&compare=week",
    "/api/v1/causes/?window=24h",
    "/api/v1/causes/?window=24h&compare=week",
    f"/api/v1/inside/?{ENDS}&window=24h",
)


@pytest.fixture
def measured(small_world: World) -> World:
    """Five weeks of scheduled tests of all links, four a day in two classes; older ones sealed."""
    made = world.profile(
        mode="pull", streams_used=1, mesh=small_world.mesh, purpose="scheduled", ip_version=6
    )
    chance = np.random.default_rng(7)
    with world.transfers() as some:
        for at, (source, destination) in enumerate(permutations(small_world.endpoints, 2)):
            for number in range(140):
                rate = (5.0 + at) * float(chance.lognormal(0, 0.1))
                more = {"ago": number * 6 * HOUR + HOUR, "made": made, "worker": "worker-1"}
                some.add(source, destination, None if number % 29 == 3 else rate, **more)
                some.add(source, destination, rate / 3, size="small", **more)
    return small_world


def sweep(streams: int = 16) -> Profile:
    fields = {"mode": "pull", "streams": streams, "streams_used": streams, "ip_version": 6}
    return world.profile(**fields, purpose="sweep")


def try_out(made: World) -> None:
    """Store sweeps of a link: much faster, at other hours, some of which fail."""
    with world.transfers() as some:
        for number in range(60):
            rate = None if number % 4 == 0 else 500.0
            more = {"ago": number * 9 * HOUR + HOUR / 2, "made": sweep(), "worker": "w"}
            some.add(made.ral, made.glasgow, rate, **more)
            some.add(made.ral, made.glasgow, rate, size="small", **more)


def kept_answers(value: Any) -> Any:
    """Leave out the version of an answer, and diagnoses: for these sweeps are made."""
    if isinstance(value, dict):
        rest = value.keys() - {"version", "diagnoses"}
        return {name: kept_answers(value[name]) for name in rest}
    return [kept_answers(each) for each in value] if isinstance(value, list) else value


def answers(client: Client) -> dict[str, Any]:
    forget()
    return {path: kept_answers(answer(client, path)) for path in CALLS}


def forget() -> None:
    ANSWERS.forget()
    STANDINGS.forget()


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    yield
    forget()


@pytest.mark.long
@pytest.mark.parametrize("sealed", ["before", "after", ""])
def test_sweeps_change_no_answer(client, measured, sealed):
    if sealed == "before":
        sealing.seal(NOW)
    before = answers(client)
    try_out(measured)
    if sealed:
        sealing.seal(NOW)
    for _ in range(2):  # what is kept of segments by then is as good
        for path, after in answers(client).items():
            assert after == before[path], path
    assert "500" not in words(html(client, "/table/?window=24h"))


@pytest.mark.long
def test_sweeps_are_there_for_who_asks(client, measured):
    try_out(measured)
    sealing.seal(NOW)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state <> 'done')"
            " FROM sonar_transfer JOIN sonar_profile p ON p.id = profile_id"
            " JOIN sonar_sizeclass c ON c.id = size_class_id"
            " WHERE p.purpose = 'sweep' AND c.name = 'large' AND started_at >= %s",
            [NOW.replace(second=0) + timedelta(minutes=1) - 7 * DAY],
        )
        ok, failed = cursor.fetchone()
    found = answer(client, "/api/v1/matrix/?purpose=sweep")
    assert [end["name"] for end in found["sources"]] == ["RAL_DATADISK"]
    assert (found["cells"]["ok"], found["cells"]["failed"]) == ([[ok]], [[failed]])
    assert found["cells"]["value"] == [[pytest.approx(500, rel=1e-6)]]
    assert "only made as parameter sweeps" in found["description"]
    both = answer(client, "/api/v1/matrix/?purpose=sweep&purpose=scheduled&window=24h")
    row, column = (
        [end["name"] for end in both[ends]].index(name)
        for ends, name in (("sources", "RAL_DATADISK"), ("destinations", "Glasgow_DATADISK"))
    )
    assert both["cells"]["value"][row][column] > 50
    series = answer(client, f"/api/v1/series/?{ENDS}&purpose=sweep")
    assert sum(series["buckets"]["ok"]) == ok


def test_the_inside_of_sweeps_is_looked_into_for_who_asks(client, small_world):
    ends = small_world.ral, small_world.glasgow
    samples = [[second, second * 200e6] for second in range(1, 11)]
    for hour in range(3):
        send(*ends, NOW - (hour + 1) * HOUR, samples=samples, moved_bytes=2 * 10**9)
    asked = f"/api/v1/inside/?{ENDS}&window=24h"
    before = answer(client, asked)
    for hour in range(4):
        faster = [[second / 2, moved] for second, moved in samples]
        more = {"samples": faster, "moved_bytes": 2 * 10**9, "seconds": 5.0}
        send(*ends, NOW - hour * HOUR, profile_id=sweep().id, **more)
    assert answer(client, asked) == before
    tried = answer(client, f"{asked}&purpose=sweep")
    assert [each["inside"]["looked_at"] for each in (before, tried)] == [3, 4]


def test_lists_of_single_results_show_sweeps_and_say_why_each_was_made(client, measured):
    try_out(measured)
    ends = "source_endpoint=RAL_DATADISK&destination_endpoint=Glasgow_DATADISK"
    whole = answer(client, f"/api/v1/transfers/?{ends}&window=24h&page_size=1000")["transfers"]
    assert {one["purpose"] for one in whole} == {"scheduled", "sweep"}
    chosen = answer(client, f"/api/v1/transfers/?{ends}&window=24h&purpose=sweep")
    assert {one["purpose"] for one in chosen["transfers"]} == {"sweep"}
    assert len(chosen["transfers"]) == sum(one["purpose"] == "sweep" for one in whole)


@pytest.mark.long
def test_the_page_of_a_link_counts_without_sweeps_lists_them_and_leads_to_them(client, measured):
    assert 'id="left-out"' not in html(client, f"{LINK}?window=24h")
    try_out(measured)
    page = html(client, f"{LINK}?window=24h")
    notice = page.partition('id="left-out"')[2].partition("</p>")[0]
    assert (
        "6 tests with settings other than those of the mesh are not included in these numbers."
    ) in words(f"<p{notice}")
    assert 'id="mixed"' not in page
    results = words(page.partition('id="results"')[2].partition("</table>")[0])
    assert "16 streams, IPv6, sweep" in results
    methods = words(page.partition('id="methods"')[2].partition("</table>")[0])
    assert "none: sweep" in methods
    # The one of the mesh: those of sweeps are errors of no test that counts.
    failures = words(page.partition('id="failures"')[2].partition("</table>")[0])
    assert re.findall(r"large (\d+) ", failures) == ["1"]
    (address,) = re.findall(r'href="([^"]*)"', notice)
    alone = html(client, address.replace("&amp;", "&"))
    assert "purpose=sweep" in address
    assert 'id="left-out"' not in alone


@pytest.mark.long
def test_the_matrix_says_nothing_of_ways_that_only_sweeps_have(client, measured):
    try_out(measured)
    for path in ("/?window=24h", "/table/?window=24h"):
        assert "mix tests with" not in html(client, path)
        assert "mix tests" not in html(client, path)


def test_filters_on_other_purposes_let_no_sweep_in():
    ordered, not_ordered = Filter("purpose", "ordered"), Filter("purpose", "ordered", exclude=True)
    assert counted([]) == (*TESTS, NO_SWEEPS)
    assert counted([not_ordered]) == (not_ordered, *TESTS, NO_SWEEPS)
    assert counted([ordered]) == (ordered, *TESTS, NO_SWEEPS)
    asked = (Filter("purpose", "sweep"), ordered)
    assert counted(asked) == (*asked, *TESTS)


@pytest.mark.parametrize("text", ["production", "!production", "all", "test"])
def test_a_filter_on_the_origin_replaces_that_tests_alone_count(text):
    asked = Filter("origin", text.removeprefix("!"), exclude=text.startswith("!"))
    assert counted([asked]) == (asked, NO_SWEEPS)
    assert counted([asked], sweeps=True) == (asked,)


def test_a_purpose_that_there_is_not_is_refused_by_its_name(client, db):
    response = client.get("/api/v1/matrix/?purpose=fun")
    assert response.status_code == 400
    assert response.json()["errors"]["purpose"] == [
        "purpose “fun” is not known: use sweep, ordered, scheduled or unknown."
    ]


@pytest.mark.parametrize("name", ["purpose", "compare.purpose"])
def test_the_purpose_of_yesterday_is_refused_by_what_it_is_called_now(client, db, name):
    for path in ("/api/v1/matrix/", "/api/v1/transfers/", "/"):
        if (path, name) == ("/api/v1/transfers/", "compare.purpose"):
            continue
        response = client.get(f"{path}?{name}=experiment")
        assert response.status_code == 400
        assert f"{name} “experiment” is now called sweep." in response.content.decode()


@pytest.mark.long
def test_sweeps_cost_no_query_more(measured, django_assert_max_num_queries):
    sealing.seal(NOW)
    query = grid.MatrixQuery(window="24h")

    def cost() -> int:
        forget()
        with django_assert_max_num_queries(100) as captured:
            grid.compute(query, NOW, grid.version(query, NOW))
            link_table.reduce_links(query, NOW)
        return len(captured)

    cost()
    before = cost()
    try_out(measured)
    sealing.seal(NOW)
    cost()
    assert cost() == before
