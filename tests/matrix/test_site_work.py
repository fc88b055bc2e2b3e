"""What is done for a site on its page: checked as everywhere, logged, and for its site alone."""

from datetime import UTC, datetime

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from sonar.models import Annotation, Downtime, Endpoint, Site, Version
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
SITE = "/sites/DESY/"
DECLARE = f"{SITE}downtimes/"
LIMITS = f"{SITE}endpoints/DESY_DATADISK/"
NOTES = f"{SITE}notes/"
ENABLE = f"{LIMITS}enable/"
QUIET, PAUSE = f"{SITE}quiet-hours/", f"{SITE}pause/"
NIGHT = {"quiet_from": "22:00", "quiet_until": "04:00"}
REASON = {"pause_reason": "new firewall"}
TIMES = {"starts_at": "2026-11-20 13:00", "ends_at": "2026-11-20 18:30"}
DOWNTIME = TIMES | {"reason": "new switch"}
CAPS = {
    "inbound_cap": "4",
    "outbound_cap": "2",
    "budget": "1.5",
    "label": "DATADISK",
    "software": "dCache 9.2",
}


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 20, hour, minute, tzinfo=UTC)


@pytest.fixture
def admin(small_world: World) -> Client:
    return logged_in(account(Role.SITE_ADMIN, small_world.desy.site, name="anna"))


def read(response: object) -> Page:
    return Page(response.content.decode())


def look(client: Client, path: str = SITE) -> Page:
    return responses.page(client, path)


def followed(client: Client, response: object) -> Page:
    """Return the page that an answer leads to."""
    assert response.status_code == 302, read(response)
    assert response["Location"].endswith("#site-work")
    return look(client, response["Location"].partition("#")[0])


def error(response: object, field: str) -> str:
    """Return what stands by a field of a form that was refused, whose page is whole."""
    page = read(response)
    assert response.status_code == 400
    assert "As destination" in page
    assert "Nothing was saved. Correct the errors below." in page
    return page.part(f"#{field}_error").words


def entries() -> list[tuple[str, str, str]]:
    return [
        (entry.user.username, entry.object_repr, entry.change_message)
        for entry in LogEntry.objects.order_by("id")
    ]


@pytest.mark.parametrize(
    ("sent", "severity", "sentence"),
    [
        ({}, "outage", "Declared a downtime of DESY from 20 Nov 13:00 UTC"),
        ({"severity": "outage"}, "outage", "No tests start on the affected links"),
        (
            {"severity": "warning"},
            "warning",
            "Declared DESY to be at risk from 20 Nov 13:00 UTC to 20 Nov 18:30 UTC: new switch. "
            "Tests on the affected links still run during the downtime, but their results are "
            "marked.",
        ),
    ],
)
def test_a_downtime_is_an_outage_unless_it_is_a_warning(admin, sent, severity: str, sentence: str):
    page = followed(admin, admin.post(DECLARE, DOWNTIME | sent))
    assert sentence in page
    assert Downtime.objects.get().severity == severity
    assert ("At risk soon" in page, "downtime starts soon" in page) == (
        severity == "warning",
        severity == "outage",
    )


def test_another_severity_is_refused_with_what_is_allowed(admin):
    response = admin.post(DECLARE, DOWNTIME | {"severity": "bad"})
    assert error(response, "downtime-severity") == "The severity must be outage or warning."
    assert not Downtime.objects.exists()


# Who sees the forms.


def test_only_who_may_sees_the_forms(client, admin):
    assert "site-work" not in look(client).source
    for role in (Role.READER, Role.OPERATOR):
        page = look(logged_in(account(role)))
        assert bool(page.parts("#site-work")) is (role is Role.OPERATOR)
    form = look(admin).part(f'form[action="{DECLARE}"]')
    assert {"2026-11-20 12:00", "2026-11-20 16:00"} <= {text for _, text in form.sent()}
    assert not look(admin, "/sites/RAL/").parts("#site-work")


@pytest.mark.parametrize(
    ("path", "form"),
    [
        (DECLARE, DOWNTIME),
        (f"{DECLARE}1/", {"end": ""}),
        (LIMITS, CAPS),
        (NOTES, {"text": "new switch"}),
        (QUIET, NIGHT),
        (PAUSE, {"pause_reason": "new switch"}),
        (ENABLE, {}),
    ],
)
def test_nobody_changes_another_site(client, small_world, path: str, form: dict[str, str]):
    world.downtime(id=1, site=small_world.desy.site)
    before = Version.objects.get(name="registry").value
    # After the log-in a browser comes by GET, which only endpoints have.
    after = LIMITS if path == LIMITS else "/"
    assert client.post(path, form)["Location"] == f"/login/?next={after}"
    for user in (account(), account(Role.SITE_ADMIN, small_world.ral.site)):
        assert logged_in(user).post(path, form).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.ADMINISTRATOR))
    assert strict.post(path, form).status_code == 403
    assert strict.get(path).status_code == (200 if path == LIMITS else 405)
    assert Version.objects.get(name="registry").value == before
    assert not Annotation.objects.exists()
    assert entries() == []


def test_the_path_of_the_own_site_reaches_nothing_of_another(admin, small_world):
    other = world.downtime(site=small_world.ral.site)
    assert admin.post(f"{DECLARE}{other.id}/", {"end": ""}).status_code == 404
    assert admin.post(f"{SITE}endpoints/RAL_DATADISK/", CAPS).status_code == 404
    chosen = DOWNTIME | {"endpoints": [small_world.ral.id]}
    response = admin.post(DECLARE, chosen)
    assert "This endpoint does not belong to the site." in error(response, "downtime-endpoints")
    assert Downtime.objects.get() == other
    assert Downtime.objects.get().ends_at == NOW + HOUR


# What is refused: where its form is, one that would be kept, and the button that opens it.
FORMS = {
    "downtime": (DECLARE, DOWNTIME | {"starts_at": "2026-11-20T13:00Z"}, "Declare downtime…"),
    "endpoint": (LIMITS, CAPS, "Caps and budgets…"),
    "note": (NOTES, {"text": "routed", "starts_at": "2026-11-20 10:00"}, "Add note…"),
    "quiet": (QUIET, NIGHT, "Quiet hours…"),
    "pause": (PAUSE, REASON | {"paused_until": "2026-11-20 14:00"}, "Pause tests…"),
}


def rows() -> list[object]:
    return [
        list(model.objects.order_by("pk").values())
        for model in (Site, Endpoint, Downtime, Annotation, LogEntry)
    ]


@pytest.mark.parametrize(
    ("name", "field", "text", "sentence"),
    [
        ("downtime", "starts_at", "", "Not a valid time. Use the format 2026-11-20"),
        ("downtime", "starts_at", "20/11/2026 13:00", "Not a valid time"),
        ("downtime", "ends_at", "soon", "Use the format 2026-11-20 04:00 (UTC)"),
        ("downtime", "ends_at", "2026-11-20 13:00", "must end after it starts"),
        ("downtime", "ends_at", "3026-11-20 13:00", "in the years 1970 to 2999"),
        ("downtime", "reason", "  ", "Enter a reason, for example, “new switch”."),
        ("downtime", "reason", "x" * 201, "at most 200 characters"),
        ("downtime", "reason", "a\0b", "Null characters are not allowed."),
        ("endpoint", "inbound_cap", "0", "A cap must be a whole number from 1 to 9999."),
        ("endpoint", "inbound_cap", "10000", "from 1 to 9999."),
        ("endpoint", "outbound_cap", "", "A cap must be a whole number"),
        ("endpoint", "outbound_cap", "two", "A cap must be a whole number"),
        *(
            ("endpoint", "budget", text, "Enter a limit in GB")
            for text in ("0", "-1", "1e99", "NaN", "0.0000000001")
        ),
        ("endpoint", "label", "x" * 41, "at most 40 characters"),
        ("note", "text", "", "Enter the text of the note."),
        ("note", "starts_at", "20.11.2026", "Not a valid time"),
        ("note", "ends_at", "2026-11-20 01:00", "A note must end after it starts."),
        ("quiet", "quiet_from", "10 pm", "for example, 22:30."),
        ("quiet", "quiet_from", "24:00", "from 00:00 to 23:59"),
        ("quiet", "quiet_until", "4", "Enter a time of day in UTC"),
        ("quiet", "quiet_until", "", "need a start and an end. Leave both"),
        ("quiet", "quiet_from", "", "Leave both fields empty for no quiet hours"),
        ("quiet", "quiet_until", "22:00", "at different times"),
        ("pause", "pause_reason", " ", "Enter a reason, for example, “new firewall”."),
        ("pause", "pause_reason", "x" * 201, "at most 200 characters"),
        ("pause", "paused_until", "soon", "Not a valid time"),
        ("pause", "paused_until", "2026-11-20 12:00", "must be in the future"),
        ("pause", "paused_until", "3026-11-20 12:00", "1970 to 2999"),
    ],
)
def test_what_is_wrong_stands_by_its_field_and_all_that_was_typed_is_kept(
    admin, small_world, name: str, field: str, text: str, sentence: str
):
    path, whole, button = FORMS[name]
    before, typed = rows(), whole | {field: text}
    response = admin.post(path, typed)
    of = f"endpoint-{small_world.desy.id}" if name == "endpoint" else name
    assert sentence in error(response, f"{of}-{field}")
    page = read(response)
    assert page.texts('details[name="work"][open] summary') == [button]
    shown = dict(page.part(f'form[action="{path}"]').sent())
    assert {one: shown[one] for one in typed} == typed
    assert rows() == before


def test_examples_of_quiet_hours_are_a_night_and_not_taken_for_what_is_set(admin, small_world):
    page = look(admin)
    shown = [page.part(f"input#quiet-{name}").attributes["placeholder"] for name in NIGHT]
    assert shown == ["e.g. 22:00", "e.g. 06:00"]


# Downtimes.


def test_a_downtime_of_the_site_is_declared_told_and_logged(admin, small_world):
    page = followed(admin, admin.post(DECLARE, DOWNTIME))
    row = Downtime.objects.get()
    assert (row.site, row.endpoint, row.starts_at, row.ends_at, row.reason) == (
        small_world.desy.site,
        None,
        at(13),
        at(18, 30),
        "new switch",
    )
    sentence = "Declared a downtime of DESY from 20 Nov 13:00 UTC to 20 Nov 18:30 UTC: new switch."
    assert f"{sentence} No tests start on the affected links during the downtime." in page
    assert entries() == [("anna", "DESY", sentence)]
    assert f"UTC, anna: {sentence}" in page
    history = f"/admin/sonar/site/{small_world.desy.site.id}/history/"
    assert sentence in logged_in(account(Role.OPERATOR)).get(history).content.decode()


def test_one_of_some_endpoints_is_a_row_for_each(admin, small_world):
    both = [small_world.desy.id, small_world.scratch.id]
    page = followed(admin, admin.post(DECLARE, DOWNTIME | {"endpoints": both}))
    assert set(Downtime.objects.values_list("endpoint", "site")) == {(end, None) for end in both}
    assert "Declared a downtime of DESY_DATADISK, DESY_SCRATCHDISK from" in page


def test_one_that_runs_ends_now_or_earlier_or_later(admin, small_world):
    row = world.downtime(ends=5 * HOUR, endpoint=small_world.desy)
    url = f"{DECLARE}{row.id}/"
    page = look(admin)
    assert page.parts(f'form[action="{url}"]')
    assert "End downtime now" in page
    page = followed(admin, admin.post(url, {"ends_at": "2026-11-20 14:00"}))
    assert "(disks) now lasts until 20 Nov 14:00 UTC." in page
    row.refresh_from_db()
    assert row.ends_at == at(14)
    page = followed(admin, admin.post(url, {"end": "", "ends_at": "nonsense"}))
    assert "The downtime of DESY_DATADISK (disks) has ended." in page
    row.refresh_from_db()
    assert row.ends_at == NOW
    assert "already ended at" in followed(admin, admin.post(url, {"end": ""}))
    assert len(entries()) == 2


def test_one_that_has_not_begun_is_withdrawn(admin, small_world):
    row = world.downtime(HOUR, 5 * HOUR, endpoint=small_world.desy)
    assert "Withdraw downtime" in look(admin).source
    page = followed(admin, admin.post(f"{DECLARE}{row.id}/", {"end": ""}))
    assert "was withdrawn before it started." in page
    assert not Downtime.objects.exists()
    assert admin.post(f"{DECLARE}{row.id}/", {"end": ""}).status_code == 404


def test_an_end_before_the_begin_is_refused_by_its_own_field(admin, small_world):
    row, other = (world.downtime(ends=5 * HOUR, endpoint=small_world.desy) for _ in range(2))
    response = admin.post(f"{DECLARE}{row.id}/", {"ends_at": "2026-11-20 01:00"})
    assert "must end after it starts" in error(response, f"downtime-{row.id}-ends_at")
    page = read(response)
    assert page.parts('[value="2026-11-20 01:00"]')
    assert not page.parts(f"#downtime-{other.id}-ends_at_error")
    row.refresh_from_db()
    assert row.ends_at == NOW + 5 * HOUR


# Caps and budgets.


def test_caps_and_budget_are_changed_and_told(admin):
    page = followed(admin, admin.post(LIMITS, CAPS))
    row = Endpoint.objects.get(name="DESY_DATADISK")
    assert (row.inbound_cap, row.outbound_cap, row.budget_bytes_per_day, row.software) == (
        4,
        2,
        1_500_000_000,
        "dCache 9.2",
    )
    sentence = (
        "Changed DESY_DATADISK: concurrent inbound tests from 2 to 4, daily budget from no "
        "limit to "
        "1.50 GB, software from empty to dCache 9.2."
    )
    assert f"{sentence} The changes apply to new tests" in page
    assert entries() == [("anna", "DESY", sentence)]
    page = look(admin)
    assert page.part(f'form[action="{LIMITS}"]').field("budget")["value"] == "1.5"
    assert "Nothing was changed" in followed(admin, admin.post(LIMITS, CAPS))
    assert len(entries()) == 1
    followed(admin, admin.post(LIMITS, CAPS | {"budget": ""}))
    row.refresh_from_db()
    assert row.budget_bytes_per_day is None


def test_no_more_of_an_endpoint_is_changed_than_a_site_admin_may(admin, small_world):
    more = {"base_url": "https://evil.example.org/data", "site": "1", "retired_at": "2026-01-01"}
    followed(admin, admin.post(LIMITS, CAPS | more))
    row = Endpoint.objects.get(name="DESY_DATADISK")
    assert (row.base_url, row.site_id, row.retired_at) == (
        small_world.desy.base_url,
        small_world.desy.site_id,
        None,
    )


# Notes.


def test_a_note_is_written_in_place(admin, small_world):
    page = followed(admin, admin.post(NOTES, {"text": "routed over the backup", "public": "on"}))
    note = Annotation.objects.get()
    assert (note.site, note.author.username, note.public, note.starts_at, note.ends_at) == (
        small_world.desy.site,
        "anna",
        True,
        NOW,
        None,
    )
    assert "routed over the backup. The note is visible to all readers." in page
    assert entries()[0][2].startswith("Added a note, valid from 20 Nov 12:00:30 UTC")


@pytest.mark.parametrize("text", ["New disks", "New disks.", "New disks!"])
def test_what_was_written_ends_once_before_the_next_sentence(admin, text: str):
    end = "" if text[-1] in ".!" else "."
    note = followed(admin, admin.post(NOTES, {"text": text}))
    assert f": {text}{end} The note is visible to operators and admins of the site." in note
    pause = followed(admin, admin.post(PAUSE, {"pause_reason": text}))
    assert f": {text}{end} During the pause, no tests start on the affected links" in pause
    downtime = followed(admin, admin.post(DECLARE, DOWNTIME | {"reason": text}))
    assert f": {text}{end} No tests start on the affected links" in downtime


def test_it_leads_back_to_the_view_it_was_on_and_never_elsewhere(admin):
    back = f"{SITE}?window=24h#site-work"
    assert admin.post(NOTES, {"text": "a", "next": back})["Location"] == back
    for evil in ("https://example.org/", "//example.org", "/\\example.org"):
        response = admin.post(NOTES, {"text": "a", "next": evil})
        assert response["Location"] == f"{SITE}#site-work"


def test_the_page_costs_no_query_more_for_who_may_nothing(
    client, small_world, django_assert_max_num_queries
):
    client.get(SITE)
    with django_assert_max_num_queries(40) as context:
        client.get(SITE)
    tables = " ".join(query["sql"] for query in context.captured_queries)
    assert "django_admin_log" not in tables


# Quiet hours and pauses.


def desy() -> Site:
    return Site.objects.get(name="DESY")


@pytest.mark.long
def test_quiet_hours_are_set_changed_and_taken_away(admin):
    page = followed(admin, admin.post(QUIET, NIGHT))
    assert desy().quiet_hours == "22:00-04:00"
    sentence = "Changed the quiet hours of DESY from none to 22:00-04:00 UTC."
    assert f"{sentence} The new hours apply to scheduled tests on links of the site" in page
    assert (
        "Quiet hours: no scheduled tests on links of this site start between 22:00 and 04:00 UTC."
    ) in page
    assert entries() == [("anna", "DESY", sentence)]
    page = look(admin)
    assert page.field("quiet_from")["value"] == "22:00"
    assert ("already has these quiet hours (22:00-04:00 UTC).") in followed(
        admin, admin.post(QUIET, NIGHT)
    )
    assert len(entries()) == 1
    page = followed(admin, admin.post(QUIET, {"quiet_from": "11:00", "quiet_until": "12:30"}))
    assert "Quiet hours now: no scheduled test" in page
    page = followed(admin, admin.post(QUIET, {"quiet_from": "", "quiet_until": ""}))
    assert "from 11:00-12:30 UTC to none." in page
    assert desy().quiet_hours is None
    assert 'id="quiet-hours"' not in look(admin).source


def test_tests_are_paused_without_an_end_and_resumed(admin):
    page = followed(admin, admin.post(PAUSE, REASON))
    row = desy()
    assert (row.paused_since, row.paused_until, row.pause_reason, row.paused_by.username) == (
        NOW,
        None,
        "new firewall",
        "anna",
    )
    sentence = "Paused the tests of DESY, until someone resumes them: new firewall."
    assert (
        f"{sentence} During the pause, no tests start on the affected links, not even on-demand "
        "tests. Running tests continue."
    ) in page
    banner = "DESY has paused its tests since 20 Nov 12:00 UTC (anna), until someone"
    assert banner in page
    assert "Paused now , until someone resumes them: new firewall" in page
    public = look(Client())
    assert "DESY has paused its tests since 20 Nov 12:00 UTC, until someone" in public
    page = followed(admin, admin.post(PAUSE, {"resume": "", "paused_until": "nonsense"}))
    assert "Resumed the tests of DESY, paused since 20 Nov 12:00 UTC" in page
    assert not desy().is_paused(NOW)
    assert 'id="paused"' not in look(admin).source
    assert "are not paused. Nothing was changed." in followed(
        admin, admin.post(PAUSE, {"resume": ""})
    )
    assert len(entries()) == 2


def test_a_pause_gets_another_end_and_keeps_who_began_it(admin):
    followed(admin, admin.post(PAUSE, REASON))
    Site.objects.filter(name="DESY").update(paused_since=NOW - HOUR)
    operator = logged_in(account(Role.OPERATOR))
    changed = {"pause_reason": "firewall and disks", "paused_until": "2026-11-20 14:00"}
    page = followed(operator, operator.post(PAUSE, changed))
    assert "Changed the pause of DESY, until 20 Nov 14:00 UTC: firewall and disks." in page
    row = desy()
    assert (row.paused_since, row.paused_until, row.paused_by.username) == (
        NOW - HOUR,
        at(14),
        "anna",
    )
    assert look(admin).field("paused_until")["value"] == "2026-11-20 14:00"


def test_one_that_is_over_is_not_shown_and_another_can_begin(admin):
    Site.objects.filter(name="DESY").update(
        paused_since=NOW - HOUR, paused_until=NOW, pause_reason="disks"
    )
    page = look(admin)
    assert not page.parts("#paused")
    assert "disks" not in page.source
    assert "Pause tests…" in page.texts("summary")
    followed(admin, admin.post(PAUSE, REASON))
    assert (desy().paused_since, desy().paused_until) == (NOW, None)


def test_a_reason_is_text_and_no_markup(admin):
    followed(admin, admin.post(PAUSE, {"pause_reason": "<b>disks</b>"}))
    assert "<b>disks" not in look(admin).source


def test_an_endpoint_is_enabled_and_disabled_and_says_so(client, admin):
    Endpoint.objects.filter(name="DESY_DATADISK").update(enabled=False)
    for path in (SITE, LIMITS):
        assert "DESY_DATADISK is not enabled. No tests start on its links." in look(admin, path)
    assert "Operators and the admins of DESY can enable this endpoint." in look(client, LIMITS)
    assert not look(client, LIMITS).parts(f'form[action="{ENABLE}"] button')
    page = followed(admin, admin.post(ENABLE))
    assert "Enabled DESY_DATADISK. This starts no tests, because no mesh includes" in page
    assert "is not enabled" not in page
    again = followed(admin, admin.post(ENABLE))
    assert "DESY_DATADISK is already enabled. Nothing was changed." in again
    gone = admin.post(ENABLE, {"disable": "", "next": LIMITS})
    assert gone["Location"] == LIMITS
    assert not Endpoint.objects.get(name="DESY_DATADISK").enabled
    assert [message for *_, message in entries()] == [
        "Enabled DESY_DATADISK.",
        "Disabled DESY_DATADISK.",
    ]
