"""The page and the call of events, and what other pages have of them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.events.reading import EventsQuestion
from sonar.models import Annotation, Assessment, Condition, Downtime, Endpoint
from sonar.people.roles import Role
from tests.matrix import changed, responses
from tests.matrix.changed import change, outage
from tests.matrix.registry import caller
from tests.matrix.world import HOUR, NOW, World, downtime, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/events/"
DAY = timedelta(days=1)
BEGIN = "from=2026-11-18T00:00:00Z"
SLOWED = "Today: RAL_DATADISK to Glasgow_DATADISK runs at 0.50× (0.40–0.62)"
TODAY = f"{SLOWED}, RAL_DATADISK to DESY_DATADISK failed until 11:00."


@pytest.fixture
def past(small_world: World) -> World:
    """A link slower with two size classes, an endpoint faster, a recovery, and others."""
    ral, glasgow, desy = small_world.ral, small_world.glasgow, small_world.desy
    change(ral, glasgow, 0.5, 3 * HOUR, sizes=("small", "large"))
    change(glasgow, None, 2.0, 2 * DAY)
    outage(ral, desy, 5 * HOUR, HOUR)
    change(None, None, 0.7, 4 * DAY, size="small", ended=4 * DAY - 3 * HOUR)
    change(desy, ral, 0.85, 5 * DAY, confirmed=False)
    change(ral, desy, 0.4, 50 * DAY, ended=40 * DAY)
    changed.assessed()
    return small_world


def rows(client: Client, text: str = "") -> list[list[str]]:
    """Return the texts of the cells of each event, without those that are listed apart."""
    tables = responses.page(client, f"/events/{text}").parts("table.events")
    listed = [table for table in tables if "unconfirmed" not in table["class"]]
    return [row for table in listed for row in table.table("tbody tr") if len(row) > 1]


def told(client: Client, text: str = "") -> list[str]:
    return [each["sentence"] for each in responses.answer(client, f"{API}{text}")["events"]]


def test_events_stand_newest_first_by_day(client, past):
    shown = [" | ".join(row[at] for at in (0, 1, 2, 3, 4, 5, 7)) for row in rows(client)]
    assert shown == [
        "11:00 | recovered | RAL_DATADISK to DESY_DATADISK link, only large | failed for 4 h |  "
        "| – | confirmed, 10 tests failed",
        "09:00 | slower | RAL_DATADISK to Glasgow_DATADISK link, not medium | ongoing for 3 h "
        "| 0.50× "
        "| 0.40–0.62 | confirmed, 20 tests",
        "12:00 | faster | Glasgow_DATADISK source, 3 of 3 links, only large | ongoing for 2 d "
        "| 2.00× "
        "| 1.60–2.50 | confirmed, 30 tests",
        "12:00 | slower | Sonar itself grid, most links, only small | until 15:00 | 0.70× "
        "| 0.56–0.88 | confirmed, 120 tests",
    ]
    page = responses.page(client, "/events/")
    assert TODAY in page.words
    assert "Today, Fri 20 Nov" in page.words
    assert "Wed 18 Nov" in page.words
    assert "As of 12:00 UTC" in page.words
    (apart,) = page.table("table.unconfirmed tbody tr")
    assert apart[:3] == ["15 Nov 12:00", "slower", "DESY_DATADISK to RAL_DATADISK link, only large"]
    assert apart[-1] == "unconfirmed, 10 tests"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["recovered", "slower", "faster", "slower"]),
        ("?size=medium", []),
        ("?size=small", ["slower", "slower"]),
        ("?type=slower", ["slower", "slower"]),
        ("?type=recovered", ["recovered"]),
        ("?type=failing", []),
        ("?scope=source", ["faster"]),
        ("?factor=2", ["slower", "faster"]),
        ("?scope=grid", ["slower"]),
        ("?now=yes", ["slower", "faster"]),
        ("?now=no", ["recovered", "slower"]),
        ("?significant=any", ["recovered", "slower", "faster", "slower", "slower"]),
        ("?window=90d", ["recovered", "slower", "faster", "slower", "slower"]),
        # What lasts at some time of it, whenever that began.
        ("?window=1h", ["slower", "faster"]),
        ("?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z", ["faster"]),
        ("?from=2026-11-20T08:00:00Z&to=2026-11-20T10:00:00Z", ["slower", "failing", "faster"]),
        ("?since=2026-11-20T10:00:00Z", ["recovered", "slower", "faster"]),
        # Links of Glasgow as source are members of its own event alone.
        ("?source_site=RAL", ["recovered", "slower", "slower"]),
        ("?destination_site=Glasgow", ["slower", "slower"]),
        ("?site=!RAL", ["faster", "slower"]),
        ("?source_cloud=UK&destination_cloud=DE", ["recovered", "faster", "slower"]),
    ],
)
def test_page_and_call_are_narrowed_by_the_same_parameters(client, past, text, expected):
    events = responses.answer(client, f"{API}{text}")["events"]
    assert [event["type"] for event in events] == expected
    assert [row[1] for row in rows(client, text)] == expected


@pytest.mark.long
def test_json_csv_and_ndjson_have_the_same(client, past):
    answer = responses.answer(client, f"{API}?type=slower")
    first = answer["events"][0]
    assert (first["source"], first["destination"]) == ("RAL_DATADISK", "Glasgow_DATADISK")
    assert (first["sizes"], first["scope"], first["significant"]) == (
        ["small", "large"],
        "link",
        True,
    )
    assert (first["factor"], first["until"]) == (0.5, None)
    assert (first["since"], first["tests"]) == ("2026-11-20T09:00:30Z", 20)
    assert (first["earliest"], first["latest"]) == ("2026-11-20T08:00:30Z", "2026-11-20T09:00:30Z")
    assert (first["id"], first["confirmed_at"]) == (
        str(first["condition"]),
        "2026-11-20T10:00:30Z",
    )
    assert first["sentence"] == (
        "RAL_DATADISK to Glasgow_DATADISK has been slow since 20 Nov 09:00 UTC, "
        "at 0.50× (0.40–0.62) of the baseline, with small and large files, 20 tests."
    )
    assert answer["sentence"] == f"{SLOWED}."
    assert answer["assessed_at"] == "2026-11-20T12:00:30Z"
    lines = responses.csv_rows(client, f"{API}?type=slower&format=csv")
    assert [line["sizes"] for line in lines] == ["small large", "small"]
    assert list(lines[0]) == list(first)
    assert client.get(f"{API}?type=slower&format=ndjson").content.count(b"\n") == 2
    for event in responses.answer(client, f"{API}?significant=any")["events"]:
        for name in ("url", "comparison_url"):
            assert client.get(event[name]).status_code == 200


def test_nothing_changes_when_a_time_range_is_over(client, past):
    texts = {
        end: [each["id"] for each in responses.answer(client, f"{API}?{BEGIN}&to={end}")["events"]]
        for end in ("2026-11-20T12:00:31Z", "2026-11-20T12:00:29Z", "2026-11-20T11:59:30Z")
    }
    (ids,) = {tuple(each) for each in texts.values()}
    assert len(ids) == 3


def test_an_empty_page_says_when_something_can_appear(client, small_world):
    page = responses.page(client, "/events/").words
    assert "Today: no new events so far." in page
    assert "No confirmed events in this time range" in page
    assert (
        "Sonar assesses results every 1 min. It has not completed its first assessment yet." in page
    )
    assert "Not assessed yet" in page
    changed.assessed()
    assert "Show all events of the last 90 days" in responses.page(client, "/events/").words


def test_results_are_doubtful_while_the_whole_grid_is_slow(client, past):
    assert "doubtful" not in responses.page(client, "/events/").words
    change(None, None, 0.5, HOUR)
    page = responses.page(client, "/events/?type=faster").words
    assert "Results have been doubtful since 20 Nov 11:00 UTC: most links are slow at once" in page


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
    near = rows(client, "?type=slower")[0][8]
    said = "RAL_DATADISK and Glasgow_DATADISK, from 20 Nov 08:00:30 UTC until further notice"
    assert near == (
        "Note 20 Nov 09:00 UTC: TCP buffers changed "
        f"Downtime at risk, {said} (declared end: 6 Apr 2054 UTC): new switch ( GOCDB ) "
        "Downtime Glasgow_DATADISK, from 11 Nov 09:00:30 UTC to 20 Nov 06:00:30 UTC: new disks"
    )
    assert responses.page(client, "/events/?type=slower").link("GOCDB") == portal
    (seen, _) = responses.answer(caller(Role.OPERATOR), f"{API}?type=slower")["events"]
    assert any("for operators" in text for text in seen["near"])
    assert f"at risk, {said} (declared end: 6 Apr 2054 UTC): new switch (GOCDB)" in seen["near"]


def test_links_and_sites_have_their_own(client, past):
    link = responses.page(client, "/links/RAL_DATADISK/Glasgow_DATADISK/")
    # Its own, and what befell all links; what its source does elsewhere is not its own.
    assert link.texts("td.what") == ["slower", "slower"]
    assert "Unconfirmed" not in link.words
    back = responses.page(client, "/links/DESY_DATADISK/RAL_DATADISK/").part(".events-of")
    assert back.texts("tr.day") == ["Unconfirmed: may be due to chance"]
    assert back.texts("td.evidence") == ["confirmed, 120 tests", "unconfirmed, 10 tests"]
    site = responses.page(client, "/sites/Glasgow/")
    assert site.texts("td.what")[:1] == ["slower"]
    assert "Glasgow" in site


def test_pages_follow_each_other_without_gaps(client, small_world):
    for number in range(55):
        ago = (number + 1) * HOUR
        ended = ago - HOUR / 2
        change(small_world.ral, small_world.glasgow, 0.5, ago=ago, ended=ended)
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
        ("type=broken", "type", "use slower, faster, failing, silent or recovered"),
        ("scope=galaxy", "scope", "use link, source, destination, endpoint, site or grid"),
        ("significant=maybe", "significant", "use yes or any"),
        ("now=perhaps", "now", "use yes or no"),
        ("factor=0.5", "factor", "a number from 1 to 1000"),
        ("factor=much", "factor", "a number from 1 to 1000"),
        ("size=huge", "size", "use small, medium or large"),
        ("since=yesterday", "since", "ISO 8601"),
        ("since=2026-11-20T04:00:00Z&window=7d", "since", "cannot be combined with “window”"),
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
    form = responses.page(client, "/events/?type=slower").part("#more-filters form")
    sent = dict(form.sent())
    assert sent["type"] == "slower"
    assert {"filter_end", "filter_on", "filter_value"} <= sent.keys()


def test_bad_cursors_are_refused(client, small_world):
    assert "before" in client.get("/events/?before=x").content.decode()
    former = "2026-11-20T09:00:30.000000Z_slower:1-2:1795165230:large"
    for bad in ("x", former, f"{former}_3"):
        assert client.get(API, {"cursor": bad}).status_code == 400
        assert client.get("/events/", {"before": bad}).status_code == 400


def test_an_assessment_that_is_late_is_said_first(client, past):
    assert "assessment of results is late" not in responses.page(client, "/events/").source
    Assessment.objects.update(assessed_at=NOW - 9 * HOUR)
    page = responses.page(client, "/events/").words
    assert "The assessment of results is late: not assessed since 20 Nov 03:00 UTC" in page


@pytest.mark.parametrize(
    ("name", "now"), [("kind", "type"), ("level", "scope"), ("certain", "significant")]
)
def test_a_renamed_parameter_is_refused_by_its_new_name(client, small_world, name, now):
    sentence = f"The parameter “{name}” is now called {now}."
    response = client.get(f"{API}?{name}=any")
    assert (response.status_code, response.json()["errors"]) == (400, {name: [sentence]})
    assert sentence in client.get(f"/events/?{name}=any").content.decode()


def test_there_is_no_page_of_changes(client, small_world):
    assert client.get("/changes/").status_code == 404


def test_a_retired_endpoint_keeps_its_events(client, past):
    Endpoint.objects.filter(id=past.glasgow.id).update(retired_at=NOW)
    assert len(rows(client)) == 4


def test_the_front_page_says_what_happened_today_to_the_links_that_it_shows(client, past):
    def today(address: str) -> str:
        page = responses.page(client, address)
        return " ".join((page.texts(".today") + page.texts(".wall-today"))[:1])

    assert today("/?wall=1") == TODAY
    # One line is enough before a matrix.
    assert today("/") == today("/?rows=site") == f"{SLOWED} and 1 more."
    assert today("/?destination_site=Glasgow") == f"{SLOWED}."
    assert today("/?source_site=Glasgow") == "Today: no new events so far."
    assert today("/?from=2026-11-18T00:00:00Z&to=2026-11-19T00:00:00Z") == ""


def test_where_there_is_nothing_there_is_nothing_new(client, small_world):
    assert "nothing new" not in responses.page(client, "/").words
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert "Today: no new events so far." in responses.page(client, "/").words


def test_a_new_condition_is_a_new_front_page(client, small_world):
    before = client.get("/")
    assert client.get("/", headers={"If-None-Match": before["ETag"]}).status_code == 304
    change(small_world.ral, small_world.glasgow, 0.5, HOUR)
    after = client.get("/", headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert "runs at 0.50×" in after.content.decode()


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
        lasted = {"ago": (number + 30) * HOUR, "ended": (number + 29) * HOUR}
        change(past.ral, past.glasgow, 0.5 if number % 2 else 1.5, **lasted)
        outage(past.ral, past.desy, **lasted)
    for page in pages:
        client.get(page)
    assert [count(page) for page in pages] == before
    assert Condition.objects.count() > 60


QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.sampled_from(["small", "large"]),
        "type": st.sampled_from(["slower", "failing", "silent", "recovered"]),
        "scope": st.sampled_from(["link", "endpoint", "site"]),
        "factor": st.sampled_from(["1", "1.50"]),
        "now": st.sampled_from(["yes", "no"]),
        "significant": st.sampled_from(["yes", "any"]),
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
