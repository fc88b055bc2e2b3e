"""The pages of incidents: their list, one of them, decisions there, and one line elsewhere."""

from datetime import timedelta

import pytest
from django.test import Client

from matrix.answers.incidents import evidence
from sonar.alerting.incidents import follow
from sonar.models import (
    Annotation,
    Assessment,
    Condition,
    Endpoint,
    HistoryEntry,
    Incident,
    IncidentEvent,
    SizeClass,
)
from sonar.people.roles import Role
from tests import found
from tests.accounts import account, logged_in
from tests.conditions import stored_condition
from tests.found import FAILING, SILENT, SLOW
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.responses import words
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE = "/incidents/"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def looked(small_world: World) -> Assessment:
    """Say that results were assessed a minute ago."""
    size_class = SizeClass.objects.get(name="large")
    return Assessment.objects.create(size_class=size_class, assessed_at=NOW - MINUTE)


@pytest.fixture
def into_desy(small_world: World) -> Incident:
    """Return an open incident: DESY takes no files from RAL and Glasgow."""
    return found.opened(
        found.into(small_world.desy, [small_world.ral, small_world.glasgow], FAILING)
    )


def listed(client: Client, asked: str = "") -> list[str]:
    return responses.page(client, f"{PAGE}{asked}").texts("main tbody th a")


def make_several(small_world: World) -> None:
    """Open one each of a link (slow), a source (silent) and a destination, and close another."""
    ral, glasgow, desy, scratch = small_world.endpoints
    evaluate = found.evaluate
    evaluate(found.of_link(desy, scratch, began=NOW - 31 * HOUR), at=NOW - 30 * HOUR)
    evaluate(at=NOW - 29 * HOUR)
    evaluate(at=NOW - 27 * HOUR)
    silent = found.Found(SILENT, {"source": glasgow}, [(glasgow, ral)])
    evaluate(found.of_link(ral, desy), silent, found.into(scratch, [ral], FAILING))


SLOW_LINK = "RAL_DATADISK to DESY_DATADISK runs at 0.20× (0.15–0.26)"
GLASGOW = "Glasgow_DATADISK has no new results as source"
SCRATCH = "DESY_SCRATCHDISK fails as destination"
CLOSED = "DESY_DATADISK to DESY_SCRATCHDISK ran at 0.20× (0.15–0.26)"


def test_open_ones_come_first_the_worst_before_all_and_filters_leave_the_others_out(
    client: Client, small_world: World, django_assert_num_queries
):
    make_several(small_world)
    silent = GLASGOW
    with django_assert_num_queries(8):  # two for the names of endpoints
        assert listed(client) == [SCRATCH, silent, SLOW_LINK, CLOSED]
    for asked, rows in {
        "?open=yes": [SCRATCH, silent, SLOW_LINK],
        "?open=no": [CLOSED],
        "?scope=link": [SLOW_LINK, CLOSED],
        "?type=silent": [silent],
        "?site=Glasgow": [silent],
        "?site=!DESY": [silent],
        "?size=small": [],
        "?window=1h": [SCRATCH, silent, SLOW_LINK],
        "?mine=1": [],
        "?unacknowledged=1": [SCRATCH, silent, SLOW_LINK, CLOSED],
    }.items():
        assert listed(client, asked) == rows, asked
    assert client.get(f"{PAGE}?window=7d&open=").headers["Location"] == PAGE
    Incident.objects.update(opened_at=NOW - HOUR)
    found.evaluate(found.Found(SLOW, began=NOW))
    assert listed(client)[0] == "Sonar itself: most links are slow at once, at 0.20× (0.15–0.26)"
    assert listed(client, "?site=Glasgow")[0].startswith("Sonar itself")


def test_mine_are_those_that_i_am_at(small_world: World):
    make_several(small_world)
    anna = account(Role.OPERATOR, name="anna")
    number = Incident.objects.get(scope="source").pk
    logged_in(anna).post(f"{PAGE}{number}/", {"decision": "assign", "me": "1", "last": "0"})
    assert listed(logged_in(anna), "?mine=1") == [GLASGOW]
    assert listed(logged_in(anna), "?unacknowledged=1") == [SCRATCH, SLOW_LINK, CLOSED]


def test_the_list_goes_on_page_by_page_whatever_closes_meanwhile(
    client: Client, small_world: World, monkeypatch: pytest.MonkeyPatch
):
    make_several(small_world)
    monkeypatch.setattr("matrix.pages.incidents.pages.PER_PAGE", 2)
    first = responses.page(client, PAGE)
    assert len(first.texts("main tbody th a")) == 2
    further = first.link("Next incidents")
    assert responses.page(client, further).texts("main tbody th a") == [SLOW_LINK, CLOSED]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("open=maybe", "open “maybe” is not known: use yes or no."),
        ("type=bad", "type “bad” is not known: use slow, silent or failing."),
        ("condition=slow", "The parameter “condition” is now called type."),
        ("level=link", "The parameter “level” is now called scope."),
        ("mine=2", "mine “2” is not known"),
        ("before=9_x", "“before” is “9_x”, which is not a position in the list of incidents"),
        (
            "before=0_2026-11-20T12:00:00Z_x",
            "Z_x”, which is not a position in the list of incidents",
        ),
        ("site=nowhere", "site “nowhere” is not known"),
    ],
)
def test_what_is_none_is_refused_by_its_name(
    client: Client, small_world: World, wrong: str, sentence: str
):
    answer = client.get(f"{PAGE}?{wrong}")
    assert (answer.status_code, sentence in answer.content.decode()) == (400, True)


def test_an_empty_page_says_what_is_watched(client: Client, looked: Assessment):
    said = words(responses.html(client, PAGE))
    assert "No incidents." in said
    assert "Sonar monitors the links of 1 mesh: everything." in said
    assert "As of 11:59 UTC" in said
    assert "Show all incidents of the last 7 days" in words(
        responses.html(client, f"{PAGE}?open=yes")
    )


def test_one_line_on_other_pages_says_what_is_wrong_and_who_is_at_it(
    client: Client, small_world: World, looked: Assessment
):
    def line(path: str) -> str:
        return words(str(responses.page(client, path).part("#incidents-now")))

    looked.delete()
    assert line("/") == "No incident is open, not assessed yet."
    looked.save(force_insert=True)
    assert line("/") == "No incident is open, as of 11:59 UTC ."
    make_several(small_world)
    stored_condition(SLOW, source=small_world.desy, destination=small_world.ral)
    follow(NOW)
    anna = account(Role.OPERATOR, name="anna")
    number = Incident.objects.get(scope="destination").pk
    logged_in(anna).post(f"{PAGE}{number}/", {"decision": "assign", "me": "1", "last": "0"})
    for path in ("/?wall=1", "/operations/"):
        said = line(path)
        assert said.startswith(f"{SCRATCH} (for 1 h , assigned to somebody) {GLASGOW}"), said
        assert said.endswith("and 1 more"), said
    # The heading of the matrix names them.
    heading = responses.page(logged_in(anna), "/").part("#answer h1").words
    said = f"{SCRATCH} since 20 Nov 11:00 UTC (1 link) , assigned to anna , {GLASGOW} since"
    assert heading.startswith(said), heading
    assert line("/") == "4 open incidents"
    Incident.objects.filter(pk=number).update(muted_until=NOW + HOUR)
    assert line("/?wall=1").startswith(GLASGOW)
    Incident.objects.filter(pk=number).update(muted_until=None)
    # It stays open for an hour after its condition has ended, and says how long that lasted.
    Incident.objects.filter(pk=number).update(clear_since=NOW - HOUR / 2)
    assert "(lasted 30 min , assigned to somebody)" in line("/?wall=1")
    Assessment.objects.update(assessed_at=NOW - HOUR)
    assert line("/operations/").startswith("Not assessed since 20 Nov 11:00 UTC")


def test_pages_change_with_incidents_and_not_without(client: Client, small_world: World):
    tag = client.get("/").headers["ETag"]
    assert client.get("/", headers={"If-None-Match": tag}).status_code == 304
    found.evaluate(found.of_link(small_world.ral, small_world.desy))
    changed = client.get("/", headers={"If-None-Match": tag})
    assert (changed.status_code, SLOW_LINK in changed.content.decode()) == (200, True)


def test_the_page_of_one_has_its_evidence_and_a_text_for_a_ticket(
    client: Client, small_world: World, into_desy: Incident, django_assert_num_queries
):
    for hours in (3, 4, 5):
        world.transfer(small_world.ral, small_world.desy, 90.0, ago=hours * HOUR)
    world.transfer(small_world.ral, small_world.desy, None)
    text = "<b>pool 3</b>"
    note = {"starts_at": NOW - 2 * HOUR, "text": text}
    Annotation.objects.create(site=small_world.desy.site, public=True, **note)
    Annotation.objects.create(site=small_world.desy.site, **note | {"text": "private"})
    times = {"since_low": NOW - 8 * HOUR, "since_high": NOW}
    Condition.objects.update(**times)
    with django_assert_num_queries(36):
        html = responses.html(client, f"{PAGE}{into_desy.pk}/")
    page, said = Page(html), words(html)
    assert page.texts("h1") == ["DESY_DATADISK fails as destination"]
    bounds = "Since some time between 20 Nov 04:00 and 20 Nov 12:00 UTC"
    figures = f"{bounds}, with large files, on 2 of 20 links, 20 of 20 tests failed."
    assert figures in said
    assert "Check DESY_DATADISK first" in said
    assert page.texts(".members tbody th a") == [
        "RAL_DATADISK → DESY_DATADISK",
        "Glasgow_DATADISK → DESY_DATADISK",
    ]
    assert html.count('<line class="began"') == 1
    assert "1 test failed at the destination, the last at 20 Nov 11:30 UTC" in said
    assert ("&lt;b&gt;pool 3&lt;/b&gt;" in html, text in html, "private" in html) == (
        *(True, False, False),
    )
    assert "/?stat=vs_usual&amp;destination_endpoint=DESY_DATADISK" in html
    ticket = page.part(".ticket").text
    for part in (
        "Site: DESY",
        "failing as destination since some time between 2026-11-20 04:00 and 2026-11-20 12:00 UTC,",
        "20 of 20 tests failed.",
        "RAL_DATADISK      DESY_DATADISK  large       100 MB/s  -           failing",
        "1 test failed at the destination, the last at 2026-11-20 11:30 UTC: 503 Service",
        "As a source, no link was tested.",
        "Elsewhere, no link was tested.",
        f"http://testserver{PAGE}{into_desy.pk}/",
    ):
        assert part in ticket, part
    assert "example.org" not in ticket
    assert client.get(f"{PAGE}9999/").status_code == 404
    assert client.get(f"{PAGE}{into_desy.pk}/?x=1").status_code == 200


def test_what_changed_then_is_what_changed_around_its_beginning(
    small_world: World, into_desy: Incident
):
    bounds = {"since_low": NOW - 30 * HOUR, "since_high": NOW - 5 * HOUR}
    Condition.objects.update(**bounds | {"since": NOW - 6 * HOUR})
    into_desy.refresh_from_db()
    HistoryEntry.objects.all().delete()
    desy = {"kind": "endpoint", "key": small_world.desy.pk, "site": small_world.desy.site_id}
    for hours in (55, 53, 6, 4.5, 3):
        HistoryEntry.objects.create(
            **desy, name=f"{hours} h", at=NOW - hours * HOUR, action="changed", changes={}
        )
    _, changes = evidence.what_changed(into_desy, account(Role.OPERATOR))
    assert [line.entry.name for line in changes] == ["4.5 h", "6 h", "53 h"]


def test_rates_of_a_slow_link_and_what_became_a_part_of_it_are_shown(
    client: Client, small_world: World
):
    for rate, hours in ((90.0, 2), (30.0, 0.9), (20.0, 0.5), (10.0, 0.1)):
        world.transfer(small_world.ral, small_world.desy, rate, ago=hours * HOUR)
    found.evaluate(found.of_link(small_world.ral, small_world.desy))
    Condition.objects.all().delete()
    whole = found.evaluate(found.into(small_world.desy, [small_world.ral]), at=NOW + MINUTE)
    page = responses.page(client, f"{PAGE}{whole[0].incident.pk}/")
    row = page.part(".members").by_head()["RAL_DATADISK → DESY_DATADISK"]
    assert [each for each in row if each][1:4] == ["100 MB/s", "20.0 MB/s", "20 %"]
    assert page.texts("h1") == ["DESY_DATADISK receives at 0.20× (0.15–0.26)"]
    assert page.texts("[aria-labelledby=parts] a") == [SLOW_LINK.replace("runs", "ran")]
    part = Incident.objects.get(scope="link").pk
    closed = words(responses.html(client, f"{PAGE}{part}/"))
    assert f"It was merged into incident {whole[0].incident.pk}" in closed
    assert f"Merged into incident {whole[0].incident.pk}" in closed


def test_other_pages_lead_to_the_incidents_that_concern_them(
    client: Client, small_world: World, into_desy: Incident
):
    url = f"{PAGE}{into_desy.pk}/"
    concerned = [
        *("/sites/DESY/", "/links/RAL_DATADISK/DESY_DATADISK/"),
        "/sites/DESY/endpoints/DESY_DATADISK/",
    ]
    for path in concerned:
        assert url in responses.html(client, path), path
    for path in ("/sites/RAL/", "/links/RAL_DATADISK/Glasgow_DATADISK/"):
        assert url not in responses.html(client, path), path
    found.evaluate(after=HOUR)
    found.evaluate(after=3 * HOUR)
    assert "Closed incidents" in responses.html(client, concerned[0])
    assert url not in responses.html(client, concerned[2])


def test_lines_on_other_pages_have_short_names_with_the_full_title_at_hand(
    client: Client, small_world: World, looked: Assessment
):
    name = "DESY-HH-AND-DESY-ZEUTHEN_DATADISK"
    Endpoint.objects.filter(pk=small_world.desy.pk).update(name=name)
    small_world.desy.refresh_from_db()
    incident = found.opened(found.into(small_world.desy, [small_world.ral], FAILING))
    full, short = f"{name} fails as destination", "DESY-HH-AND-DESY…ATADISK fails as destination"
    paths = [f"/links/RAL_DATADISK/{name}/", f"/sites/DESY/endpoints/{name}/", "/sites/DESY/"]
    of_incident = f'main a[href="{PAGE}{incident.pk}/"]'
    for path in [*paths, "/operations/", "/?wall=1"]:
        links = responses.page(client, path).parts(of_incident)
        assert [(link.words, link["title"]) for link in links] == [(short, full)], path
    links = responses.page(client, "/").parts(of_incident)
    assert [(link.words, link["title"]) for link in links] == [("incident", "Unacknowledged")]
    found.evaluate(after=HOUR)
    found.evaluate(after=3 * HOUR)
    over = [(short.replace("fails", "failed"), full.replace("fails", "failed"))]
    links = responses.page(client, paths[2]).parts(f'main a[href="{PAGE}{incident.pk}/"]')
    assert [(link.words, link["title"]) for link in links] == over


def test_names_are_short_with_the_whole_ones_at_hand(
    client: Client, small_world: World, into_desy: Incident
):
    # Names are cut where all of them end alike.
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(name="B_DATADISK", label="DATADISK")
    page = f"{PAGE}{into_desy.pk}/"
    places = {
        "/": "#answer h1 a.failing",
        "/?wall=1": "#incidents-now a",
        PAGE: "main tbody th a",
        page: "h1",
        "/links/RAL_DATADISK/DESY_DATADISK/": f'main a[href="{page}"]',
    }
    for path, where in places.items():
        shown = responses.page(client, path).part(where)
        assert shown.words == "DESY fails as destination", path
        assert shown["title"] == "DESY_DATADISK fails as destination", path
    members = responses.page(client, page).parts(".members tbody th a")
    assert [link.words for link in members] == ["RAL → DESY", "Glasgow → DESY"]
    assert members[0]["title"] == "from RAL_DATADISK to DESY_DATADISK"


def post(client: Client, incident: Incident, decision: str, **fields: str):
    return client.post(f"{PAGE}{incident.pk}/", {"decision": decision, **fields})


def test_what_somebody_decides_is_kept_once_with_their_name(into_desy: Incident):
    anna = logged_in(account(Role.OPERATOR, name="anna"))
    account(Role.READER, name="bob")
    last = str(IncidentEvent.objects.latest("pk").pk)
    for decision, fields in {
        "acknowledge": {"text": "looking"},
        "assign": {"assignee": "bob"},
        "mute": {"length": "4"},
        "note": {"text": "disks are ordered"},
    }.items():
        for _ in range(2):  # as who presses a button twice does
            answer = post(anna, into_desy, decision, last=last, **fields)
            assert answer.status_code == 302, answer.content.decode()
    said = words(responses.html(anna, f"{PAGE}{into_desy.pk}/"))
    for sentence in (
        "anna acknowledged the incident: looking",
        "anna assigned the incident to bob.",
        "anna muted the incident until 20 Nov 16:00 UTC.",
        "anna added a note: disks are ordered",
    ):
        assert said.count(sentence) >= 1, sentence
    assert IncidentEvent.objects.exclude(by=None).count() == 4
    post(anna, into_desy, "mute", last=last, length="until", until="2026-11-21 08:00")
    assert Incident.objects.get().muted_until.isoformat() == "2026-11-21T08:00:00+00:00"
    post(anna, into_desy, "unmute", last=last)
    post(anna, into_desy, "assign", last=last, nobody="1")
    assert (Incident.objects.get().muted_until, Incident.objects.get().assignee) == (None, None)
    assert "anna unassigned the incident." in words(responses.html(anna, f"{PAGE}{into_desy.pk}/"))
    anonymous = words(responses.html(Client(), f"{PAGE}{into_desy.pk}/"))
    assert ("somebody assigned the incident to somebody" in anonymous, "anna" in anonymous) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("decision", "fields", "error", "sentence"),
    [
        (
            "assign",
            {"assignee": "nobody-here"},
            "#assign-assignee_error",
            "is not an active account",
        ),
        ("assign", {"assignee": ""}, "#assign-assignee_error", "The account field is empty"),
        ("mute", {"length": "until"}, "#mute-until_error", "The end time is empty"),
        ("mute", {"length": "until", "until": "soon"}, "#mute-until_error", "“tomorrow 08:00”"),
        (
            "mute",
            {"length": "until", "until": "2026-11-19 08:00"},
            "#mute-until_error",
            "“until” must be in the future",
        ),
        (
            "mute",
            {"length": "4", "until": "tomorrow 08:00"},
            "#mute-until_error",
            "“4 hours” and “tomorrow 08:00” are both set. Choose “until a time you enter”, or",
        ),
        ("mute", {"length": "4", "until": "soon"}, "#mute-until_error", "Not a valid time"),
        ("note", {"text": ""}, "#note-text_error", "The note is empty."),
        (
            "accept",
            {"text": "x"},
            "form .error",
            "Only the rates of an incident of the type “slow”",
        ),
    ],
)
def test_what_cannot_be_decided_is_said_at_its_field(
    into_desy: Incident, decision: str, fields: dict[str, str], error: str, sentence: str
):
    answer = post(logged_in(account(Role.OPERATOR)), into_desy, decision, **fields)
    assert answer.status_code == 400
    assert sentence in words(str(Page(answer.content.decode()).part(error)))
    assert IncidentEvent.objects.count() == 1


def test_a_decision_that_is_none_and_one_of_a_closed_incident_are_refused(
    into_desy: Incident, small_world: World
):
    anna = logged_in(account(Role.OPERATOR, name="anna"))
    assert "decision “explode” is not known" in post(anna, into_desy, "explode").content.decode()
    found.evaluate(after=HOUR)
    found.evaluate(after=3 * HOUR)
    answer = post(anna, into_desy, "acknowledge")
    assert (
        answer.status_code,
        "is closed. Closed incidents accept only notes." in answer.content.decode(),
    ) == (400, True)
    assert post(anna, into_desy, "note", text="over now").status_code == 302


def test_an_admin_of_a_site_decides_about_its_incidents_alone(
    into_desy: Incident, small_world: World
):
    of_desy = logged_in(account(Role.SITE_ADMIN, small_world.desy.site, name="of-desy"))
    of_ral = logged_in(account(Role.SITE_ADMIN, small_world.ral.site, name="of-ral"))
    buttons = 'aria-label="Actions"'
    assert buttons in responses.html(of_desy, f"{PAGE}{into_desy.pk}/")
    assert buttons not in responses.html(of_ral, f"{PAGE}{into_desy.pk}/")
    assert post(of_desy, into_desy, "acknowledge").status_code == 302
    assert post(of_ral, into_desy, "acknowledge").status_code == 403
    assert post(of_ral, Incident(pk=9999), "note").status_code == 403
    assert post(Client(), into_desy, "note").status_code == 302  # to the log-in
    assert IncidentEvent.objects.filter(by__username="of-ral").count() == 0


def test_an_incident_of_the_whole_grid_affects_most_links_however_few_are_slow_by_themselves(
    client: Client, looked: Assessment, small_world: World
) -> None:
    """Few links may be slow by their own level while the level of all links is low."""
    incident = found.opened(found.Found(SLOW, {}, [], of_links=342))
    Condition.objects.update(links=1)
    follow(NOW)
    page = responses.page(client, PAGE)
    assert page.table("main tbody tr")[0][1] == "most of 342"
    own = responses.page(client, f"{PAGE}{incident.pk}/").words
    assert "Most of 342 tested links are slow." in own
    assert "Opened: slow, most links at 0.20×." in own
    heading = responses.page(client, "/").part("#answer h1").words
    assert "a problem on Sonar's machine , incident" in heading
    assert "grid, most links" in responses.page(client, "/events/").words
