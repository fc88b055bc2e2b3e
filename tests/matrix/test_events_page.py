"""The page and the call of events, and what other pages have of them."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.events.questions import EventsQuestion
from sonar.models import Annotation, Change, ChangeSearch, Downtime, Endpoint, Outage
from sonar.people.roles import Role
from tests.matrix import changed, responses
from tests.matrix.changed import change, outage
from tests.matrix.registry import caller
from tests.matrix.world import HOUR, NOW, World, downtime, transfer, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/events/"
DAY = timedelta(days=1)
TODAY = (
    "Today: RAL_DATADISK → Glasgow_DATADISK slowed to 0.50×, "
    "RAL_DATADISK → DESY_DATADISK recovered."
)
COURSE = [*[1.0] * 12, *[0.5] * 12]


@pytest.fixture
def past(small_world: World) -> World:
    """A link slower with two size classes, an endpoint faster, a recovery, and others."""
    ral, glasgow, desy = small_world.ral, small_world.glasgow, small_world.desy
    change(ral, glasgow, 0.5, 2 * HOUR, course=COURSE)
    change(ral, glasgow, 0.5, 3 * HOUR, size="small")
    change(glasgow, None, 2.0, 2 * DAY)
    outage(ral, desy, 5 * HOUR, HOUR)
    change(None, None, 0.7, 4 * DAY, size="small")
    change(None, None, 1.4, 4 * DAY - 3 * HOUR, size="small")
    change(desy, ral, 0.85, 5 * DAY, sure=False, chance=0.008)
    change(ral, desy, 0.4, 50 * DAY)
    changed.searched()
    return small_world


def rows(client: Client, text: str = "") -> list[list[str]]:
    """Return the texts of the cells of each event."""
    table = responses.page(client, f"/events/{text}").table("table.events tbody tr")
    return [row for row in table if len(row) > 1]


def told(client: Client, text: str = "") -> list[str]:
    return [each["sentence"] for each in responses.answer(client, f"{API}{text}")["events"]]


def test_events_stand_newest_first_by_day(client, past):
    shown = [" | ".join(row[at] for at in (0, 1, 2, 4, 5, 6, 8)) for row in rows(client)]
    assert shown == [
        "11:00 | recovered | RAL_DATADISK → DESY_DATADISK link, only large | failed for 4 h |  | – "
        "| 5 tests failed",
        "09:00 | slower | RAL_DATADISK → Glasgow_DATADISK link, not medium | now, for 3 h | 0.50× "
        "| 0.43–0.59 | certain, 116 tests",
        "12:00 | faster | Glasgow_DATADISK sends, only large | now, for 2 d | 2.00× | 1.60–2.50 "
        "| certain, 58 tests",
        "12:00 | slower | The whole grid all links, only small | until 15:00 | 0.70× | 0.56–0.88 "
        "| certain, 58 tests",
    ]
    page = responses.page(client, "/events/").words
    assert TODAY in page
    assert "Today, Fri 20 Nov" in page
    assert "Wed 18 Nov" in page
    assert "1 more that is not certain" in page
    assert "Searched 20 min ago" in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["recovered", "slower", "faster", "slower"]),
        ("?size=medium", []),
        ("?size=small", ["slower", "slower"]),
        ("?kind=slower", ["slower", "slower"]),
        ("?kind=recovered", ["recovered"]),
        ("?level=source", ["faster"]),
        ("?level=grid", ["slower"]),
        ("?now=yes", ["slower", "faster"]),
        ("?now=no", ["recovered", "slower"]),
        ("?certain=any", ["recovered", "slower", "faster", "slower", "slower"]),
        ("?window=90d", ["recovered", "slower", "faster", "slower", "slower"]),
        ("?window=1h", []),
        ("?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z", ["faster"]),
        ("?since=2026-11-20T10:00:00Z", ["recovered"]),
        ("?source_site=RAL", ["recovered", "slower", "slower"]),
        ("?destination_site=Glasgow", ["slower", "slower"]),
        ("?site=!RAL", ["faster", "slower"]),
    ],
)
def test_page_and_call_are_narrowed_by_the_same_parameters(client, past, text, expected):
    events = responses.answer(client, f"{API}{text}")["events"]
    assert [event["kind"] for event in events] == expected
    assert [row[1] for row in rows(client, text)] == expected


@pytest.mark.long
def test_json_csv_and_ndjson_have_the_same(client, past):
    answer = responses.answer(client, f"{API}?kind=slower")
    first = answer["events"][0]
    assert (first["source"], first["destination"]) == ("RAL_DATADISK", "Glasgow_DATADISK")
    assert (first["sizes"], first["level"], first["certain"]) == (["small", "large"], "link", True)
    assert (first["factor"], first["until"]) == (0.5, None)
    assert (first["since"], first["tests"]) == ("2026-11-20T09:00:30Z", 116)
    assert first["sentence"] == "RAL_DATADISK → Glasgow_DATADISK slowed to 0.50×."
    assert answer["sentence"] == "Today: RAL_DATADISK → Glasgow_DATADISK slowed to 0.50×."
    lines = responses.csv_rows(client, f"{API}?kind=slower&format=csv")
    assert [line["sizes"] for line in lines] == ["small large", "small"]
    assert list(lines[0]) == list(first)
    assert client.get(f"{API}?kind=slower&format=ndjson").content.count(b"\n") == 2
    for event in responses.answer(client, f"{API}?certain=any")["events"]:
        for name in ("url", "comparison_url"):
            assert client.get(event[name]).status_code == 200


def test_a_link_that_fails_now_is_an_event_before_any_search(client, small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    with transfers() as some:
        for ago in (5, 4):
            some.add(ral, glasgow, 40, ago=ago * HOUR)
        for ago in (3, 2, 1):
            some.add(ral, glasgow, None, ago=ago * HOUR)
    (event,) = responses.answer(client, API)["events"]
    assert (event["kind"], event["since"], event["tests"]) == ("failing", "2026-11-20T09:00:30Z", 3)
    assert "Today: RAL_DATADISK → Glasgow_DATADISK fails." in responses.page(client, "/").words
    # The search knows since when, and that it goes on; the matrix how many tests there were since.
    outage(ral, glasgow, 3 * HOUR, tests=2)
    (event,) = responses.answer(client, API)["events"]
    assert (event["kind"], event["tests"], event["earliest"]) == (
        *("failing", 3),
        "2026-11-20T08:00:30Z",
    )


def test_a_success_after_the_search_ends_an_outage(client, small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    outage(ral, glasgow, 5 * HOUR)
    assert told(client) == []
    with transfers() as some:
        some.add(ral, glasgow, 40, ago=HOUR)
    assert told(client) == ["RAL_DATADISK → Glasgow_DATADISK recovered."]
    (event,) = responses.answer(client, API)["events"]
    assert event["until"] == "2026-11-20T11:00:30Z"


def test_an_empty_page_says_when_something_can_appear(client, small_world):
    page = responses.page(client, "/events/").words
    assert "Today: nothing new so far." in page
    assert "No certain event in this window" in page
    assert "after three failed tests" in page
    # The mesh tests every ten minutes at least.
    assert re.search(r"three failed tests: \d+ (h|min)", page)


def test_what_lasts_from_before_the_window_is_counted(client, past):
    page = responses.page(client, "/events/")
    url = page.link("Still going on from before: 1 slower")
    assert len(rows(client, url.removeprefix("/events/"))) == 3


def test_notes_and_downtimes_near_an_event_stand_beside_it(client, past):
    at = NOW - 3 * HOUR
    site = past.ral.site
    Annotation.objects.create(site=site, text="TCP buffers changed", starts_at=at, public=True)
    Annotation.objects.create(site=site, text="for operators", starts_at=at, public=False)
    Downtime.objects.create(
        endpoint=past.glasgow, starts_at=at - 9 * DAY, ends_at=at - 3 * HOUR, reason="new disks"
    )
    portal = "https://goc.example/7"
    elsewhere = {"severity": "warning", "origin": "gocdb", "key": "7G0", "url": portal}
    for endpoint in (past.ral, past.glasgow):
        downtime(-4 * HOUR, 9999 * DAY, reason="new switch", endpoint=endpoint, **elsewhere)
    near = rows(client, "?kind=slower")[0][9]
    said = "RAL_DATADISK and Glasgow_DATADISK, from 20 Nov 08:00:30 UTC until further notice (ends"
    assert near == (
        "Note 20 Nov 09:00 UTC: TCP buffers changed "
        f"Downtime at risk, {said} 6 Apr 2054 UTC): new switch ( GOCDB ) "
        "Downtime Glasgow_DATADISK, from 11 Nov 09:00:30 UTC to 20 Nov 06:00:30 UTC: new disks"
    )
    assert responses.page(client, "/events/?kind=slower").link("GOCDB") == portal
    (seen, _) = responses.answer(caller(Role.OPERATOR), f"{API}?kind=slower")["events"]
    assert any("for operators" in text for text in seen["near"])
    assert f"at risk, {said} 6 Apr 2054 UTC): new switch (GOCDB)" in seen["near"]


def test_links_and_sites_have_their_own(client, past):
    link = responses.page(client, "/links/RAL_DATADISK/Glasgow_DATADISK/")
    # Its own, and what befell all links; what its source does elsewhere is not its own.
    assert link.texts("td.what") == ["slower", "slower"]
    site = responses.page(client, "/sites/Glasgow/")
    assert site.texts("td.what")[:1] == ["slower"]
    assert "Glasgow" in site


def test_pages_follow_each_other_without_gaps(client, small_world):
    for number in range(55):
        ago = (number + 1) * HOUR
        change(small_world.ral, small_world.glasgow, 0.5 if number % 2 else 1.4, ago=ago)
    everything = told(client, "?page_size=1000")
    assert len(everything) > 50
    seen: list[str] = []
    url = f"{API}?page_size=7"
    while url:
        answer = responses.answer(client, url)
        seen += [each["id"] for each in answer["events"]]
        url = answer["next"]
    assert len(seen) == len(set(seen)) == len(everything)
    assert len(rows(client)) == 50
    earlier = responses.page(client, "/events/").link("Earlier events")
    further = rows(client, earlier.removeprefix("/events/"))
    assert len(further) == len(everything) - 50


@pytest.mark.parametrize(
    ("text", "parameter", "allowed"),
    [
        ("kind=broken", "kind", "use slower, faster, failing or recovered"),
        ("level=galaxy", "level", "use link, source, destination, endpoint, site or grid"),
        ("certain=maybe", "certain", "use yes or any"),
        ("now=perhaps", "now", "use yes or no"),
        ("size=huge", "size", "use small, medium or large"),
        ("since=yesterday", "since", "ISO 8601"),
        ("since=2026-11-20T04:00:00Z&window=7d", "since", "exclude each other"),
        ("window=2d", "window", "1h, 6h, 24h, 7d, 30d or 90d"),
        ("source_site=Nowhere", "source_site", "Nowhere"),
        ("mover=http-tpc", "mover", "There is no parameter"),
    ],
)
def test_bad_parameters_are_named(client, small_world, text, parameter, allowed):
    response = client.get(f"{API}?{text}")
    assert response.status_code == 400
    assert list(response.json()["errors"]) == [parameter]
    assert allowed in response.json()["errors"][parameter][0]
    if parameter != "mover":
        assert client.get(f"/events/?{text}").status_code == 400


def test_a_filter_is_added_by_the_form(client, small_world):
    asked = "/events/?filter_end=source&filter_on=site&filter_value=Glasgow"
    assert client.get(asked)["Location"] == "/events/?source_site=Glasgow"
    form = responses.page(client, "/events/?kind=slower").part("#more-filters form")
    sent = dict(form.sent())
    assert sent["kind"] == "slower"
    assert {"filter_end", "filter_on", "filter_value"} <= sent.keys()


def test_bad_cursors_are_refused(client, small_world):
    assert "before" in client.get("/events/?before=x").content.decode()
    assert client.get(f"{API}?cursor=x").status_code == 400


def test_a_search_that_is_late_is_said_first(client, past):
    assert "search for events is late" not in responses.page(client, "/events/").source
    ChangeSearch.objects.update(searched_at=NOW - 9 * HOUR)
    assert "The search for events is late." in responses.page(client, "/events/")


def test_former_addresses_lead_on_with_the_same_question(client, past):
    response = client.get("/changes/?level=slower&kind=link&sure=any&window=30d&factor=2&site=RAL")
    assert response.status_code == 302
    assert response["Location"] == (
        "/events/?kind=slower&level=link&certain=any&window=30d&site=RAL"
    )
    assert client.get(response["Location"], follow=True).status_code == 200
    assert client.get("/changes/")["Location"] == "/events/"


def test_a_retired_endpoint_keeps_its_events(client, past):
    Endpoint.objects.filter(id=past.glasgow.id).update(retired_at=NOW)
    assert len(rows(client)) == 4


def test_the_front_page_says_what_happened_today_to_the_links_that_it_shows(client, past):
    def today(address: str) -> str:
        page = responses.page(client, address)
        return " ".join((page.texts(".today") + page.texts(".wall-today"))[:1])

    assert today("/?wall=1") == TODAY
    # One line is enough before a matrix.
    assert today("/") == today("/?rows=site") == f"{TODAY.partition(',')[0]} and 1 more."
    assert (
        today("/?destination_site=Glasgow")
        == "Today: RAL_DATADISK → Glasgow_DATADISK slowed to 0.50×."
    )
    assert today("/?source_site=Glasgow") == "Today: nothing new so far."
    assert today("/?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z") == ""


def test_where_there_is_nothing_there_is_nothing_new(client, small_world):
    assert "nothing new" not in responses.page(client, "/").words
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert "Today: nothing new so far." in responses.page(client, "/").words


def test_a_new_search_is_a_new_front_page(client, small_world):
    before = client.get("/")
    assert client.get("/", headers={"If-None-Match": before["ETag"]}).status_code == 304
    change(small_world.ral, small_world.glasgow, 0.5, HOUR)
    changed.searched()
    after = client.get("/", headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert "slowed to 0.50×" in after.content.decode()


@pytest.mark.long
def test_the_number_of_queries_does_not_grow(client, past):
    def count(address: str) -> int:
        with CaptureQueriesContext(connection) as context:
            client.get(address)
        return len(context)

    pages = ("/events/", API, "/", "/links/RAL_DATADISK/DESY_DATADISK/", "/sites/RAL/")
    for page in pages:
        client.get(page)
    before = [count(page) for page in pages]
    for number in range(30):
        change(past.ral, past.glasgow, 0.5 if number % 2 else 1.5, ago=(number + 30) * HOUR)
        outage(past.ral, past.desy, (number + 30) * HOUR, (number + 29) * HOUR)
    assert [count(page) for page in pages] == before
    assert Change.objects.count() + Outage.objects.count() > 60


QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.sampled_from(["small", "large"]),
        "kind": st.sampled_from(["slower", "failing", "recovered"]),
        "level": st.sampled_from(["link", "endpoint", "site"]),
        "now": st.sampled_from(["yes", "no"]),
        "certain": st.sampled_from(["yes", "any"]),
        "window": st.sampled_from(["7d", "30d", "90d"]),
        "source_site": st.sampled_from(["RAL", "!DESY"]),
    },
)


@given(params=QUESTIONS)
def test_an_address_and_its_question_say_the_same(small_world, params):
    question = EventsQuestion.read({name: [text] for name, text in params.items()})
    assert EventsQuestion.read(question.to_params()) == question
    again = QueryDict(mutable=True)
    for name, texts in question.to_params().items():
        again.setlist(name, texts)
    assert EventsQuestion.read(dict(again.lists())).describe() == question.describe()


def test_a_dash_where_nothing_was_written_is_not_on_a_phone(client, past):
    page = responses.page(client, "/events/")
    near = page.parts("table.events td.wide")
    assert near
    assert all(("nothing" in cell["class"].split()) == ("–" in cell) for cell in near)


def test_an_empty_list_says_what_was_searched_and_from_when(client, small_world):
    page = responses.page(client, "/events/")
    assert "Results are searched every 15 min; the first search is still to come." in page
    assert "manage.py" not in page.source
    changed.searched()
    page = responses.page(client, "/events/?window=1h")
    assert re.search(r"Searched 20 min ago: results of .*, from \d+ \w+ 2026 on\.", page.words)
