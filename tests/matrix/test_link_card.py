"""What the card of a cell fetches of its link: its week, all size classes, its last error."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from sonar.models import Condition, Site, Transfer
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.conditions import TYPES, stored_condition
from tests.matrix import responses, world
from tests.matrix.sent import send
from tests.matrix.world import HOUR, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
CARD = "/links/RAL_DATADISK/Glasgow_DATADISK/card/"
DAY = timedelta(days=1)


@pytest.fixture
def measured(small_world: World) -> World:
    """Large files fail since two hours, small ones are at a third of their usual rate."""
    ral, glasgow, *_ = small_world.endpoints
    with world.transfers() as several:
        for number in range(40):
            for size in ("small", "large"):
                several.add(ral, glasgow, 9.0 + number % 3, ago=8 * DAY + number * HOUR, size=size)
        for number in range(3):
            several.add(ral, glasgow, 3.0, ago=(number + 1) * HOUR, size="small")
            several.add(ral, glasgow, None, ago=(number / 2 + 1) * HOUR)
        several.add(ral, glasgow, 8.0, ago=3 * DAY)
    ends = {"source": ral, "destination": glasgow}
    stored_condition(**ends, since=2 * HOUR, baseline=10e6)
    stored_condition(TYPES.SLOW, **ends, since=3 * HOUR, sizes=["small"], baseline=10e6)
    return small_world


def rows(client: Client, path: str = CARD) -> list[list[str]]:
    return responses.page(client, path).table("tr")


def test_each_size_class_has_its_rate_now_its_ratio_and_its_state(client, measured):
    head, *lines = rows(client)
    assert head == ["size", "now, MB/s", "now / baseline", "state"]
    assert lines == [
        ["small", "3.00", "0.30×", "slower than usual for 3 h"],
        ["medium", "–", "–", "not tested"],
        ["large", "–", "–", "failing for 2 h"],
    ]
    world.transfer(measured.ral, measured.glasgow, 10.0)
    Condition.objects.all().delete()
    large = rows(client)[-1]
    assert large == ["large", "9.00", "0.90×", "as usual"]


def test_conditions_of_the_link_are_said_with_since_the_worst_first(client, measured):
    stored_condition(TYPES.SLOW, destination=measured.glasgow, since=9 * HOUR, confirmed=False)
    page = responses.page(client, CARD)
    ends = "RAL_DATADISK to Glasgow_DATADISK"
    assert page.texts("p.condition") == [
        f"{ends} fails since 20 Nov 10:00 UTC.",
        f"{ends} runs at 0.40× (0.35–0.46) since 20 Nov 09:00 UTC.",
        "Glasgow_DATADISK receives at 0.40× (0.35–0.46) since 20 Nov 03:00 UTC, unconfirmed.",
    ]
    stored_condition(TYPES.SLOW, since=DAY)
    assert "Results have been doubtful since 19 Nov 12:00 UTC" in responses.page(client, CARD)


def test_why_a_failing_class_has_no_rate_is_said_on_hover(client, measured):
    html = responses.html(client, CARD)
    assert html.count('title="failing: the last successful tests are more than 2 h old"') == 2


def test_the_most_common_error_since_it_fails_is_said_with_where(client, measured):
    html = responses.html(client, CARD)
    assert (
        "The same error in all 3 failed tests, at the destination: 503 Service Unavailable" in html
    )
    send(measured.ral, measured.glasgow, world.NOW, error="no worker", error_where="control")
    html = responses.html(client, CARD)
    assert "The same error in 3 of 4 failed tests, at the destination: 503 Service" in html
    assert "no worker" not in html


def test_the_last_error_is_said_with_where_and_when(client, measured):
    Condition.objects.all().delete()
    send(measured.ral, measured.glasgow, world.NOW, error="no worker", error_where="control")
    world.transfer(measured.ral, measured.glasgow, 9.0, ago=timedelta(0))
    html = responses.html(client, CARD)
    assert "Last error, 20 Nov 12:00 UTC, in Sonar itself: no worker" in html
    assert "No test with small files failed" in client.get(f"{CARD}?size=small").content.decode()


def test_markup_in_an_error_stays_text_and_a_long_one_is_cut(client, measured):
    Transfer.objects.filter(state="failed").update(error="<script>alert(1)</script>" + "x" * 500)
    html = responses.html(client, CARD)
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
    assert "x" * 200 not in html


@pytest.mark.parametrize("page", [CARD, "/sites/RAL/"])
def test_an_error_that_is_cut_keeps_its_reason(client, measured, page):
    """As HTTP third-party copies say it, why it failed stands last."""
    Condition.objects.all().delete()
    error = f"failure: COPY {'x' * 500} refused: HTTP 403 Permission refused"
    send(measured.ral, measured.glasgow, world.NOW, error=error, error_where="control")
    world.transfer(measured.ral, measured.glasgow, 9.0, ago=timedelta(0))
    html = client.get(page).content.decode()
    assert re.search(
        r">[^<]*failure: COPY …(?: x+)? refused: HTTP 403 Permission refused\s*<", html
    )


def test_the_week_is_a_line_with_ticks_for_failures(client, measured):
    # Of four tests no line is drawn.
    assert "<svg" not in responses.html(client, CARD)
    world.transfer(measured.ral, measured.glasgow, 8.0, ago=4 * DAY)
    html = responses.html(client, CARD)
    assert html.count('<line class="failed"') == 2
    assert html.count('<line class="usual"') == 1


def test_the_week_ends_with_the_window(client, measured):
    past = f"{CARD}?from=2026-11-12T00:00:00Z&to=2026-11-13T00:00:00Z"
    assert responses.page(client, past).part("polyline")["points"].count(",") > 10


def test_a_link_that_was_never_tested_has_an_empty_card(client, measured):
    _, *lines = rows(client, "/links/DESY_DATADISK/DESY_SCRATCHDISK/card/")
    assert [line[1:3] for line in lines] == [["–", "–"]] * 3
    assert [line[3] for line in lines] == ["not tested", "not tested", "untested"]


def test_it_is_kept_for_a_minute_by_its_reader_and_then_asked_for_by_its_tag(client, measured):
    response = client.get(CARD)
    assert response["Cache-Control"] == "private, max-age=60"
    assert "Cookie" in response["Vary"]
    known = {"if-none-match": response["ETag"]}
    assert len(responses.statements(client.get, CARD, headers=known)) == 3
    again = client.get(CARD, headers=known)
    assert (again.status_code, again["Cache-Control"]) == (304, "private, max-age=60")
    world.transfer(measured.ral, measured.glasgow, 5.0)
    assert client.get(CARD, headers=known).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_data(client, measured):
    client.get(CARD)
    counts = []
    for more in (0, 1, 20):
        for _ in range(more):
            world.transfer(measured.ral, measured.glasgow, 5.0)
        counts.append(len(responses.statements(client.get, CARD)))
    # What is planned and what is down, conditions, all results of both directions, the week, the
    # errors.
    assert counts == [14, 14, 14]


def test_who_may_not_read_is_led_to_the_login(client, measured, settings):
    settings.SONAR_PUBLIC_READ = False
    response = client.get(CARD)
    assert (response.status_code, response["Location"]) == (302, f"/login/?next={CARD}")
    assert "max-age" not in response.get("Cache-Control", "")


def test_only_who_may_test_it_is_offered_a_test(client, measured):
    offer = 'href="/links/RAL_DATADISK/Glasgow_DATADISK/#test-now"'
    ral, desy = (Site.objects.get(name=name) for name in ("RAL", "DESY"))
    offered = {
        name: offer in reader.get(CARD).content.decode()
        for name, reader in {
            "anyone": client,
            "reader": logged_in(account()),
            "site admin": logged_in(account(Role.SITE_ADMIN, ral, name="of-ral")),
            "site admin elsewhere": logged_in(account(Role.SITE_ADMIN, desy, name="of-desy")),
            "operator": logged_in(account(Role.OPERATOR)),
        }.items()
    }
    assert [name for name, is_offered in offered.items() if is_offered] == [
        "site admin",
        "operator",
    ]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{CARD}?size=huge", 400),
        (f"{CARD}?stat=median", 302),
        ("/links/RAL_DATADISK/NOWHERE/card/", 404),
        ("/links/RAL_DATADISK/RAL_DATADISK/card/", 404),
    ],
)
def test_what_is_no_link_or_no_question_is_refused_and_kept_by_nobody(
    client, measured, path, status
):
    response = client.get(path)
    assert response.status_code == status
    assert "max-age" not in response.get("Cache-Control", "")
