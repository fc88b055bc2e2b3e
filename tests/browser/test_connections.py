"""What is known of a transfer's connections, on its page in a real browser."""

from datetime import timedelta

from playwright.sync_api import expect

from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.matrix.sent import send
from tests.matrix.test_connections import BEGAN, UPLOAD, flow

TCP = {"rtt": 14.25, "snd_cwnd": 812, "snd_mss": 8948, "total_retrans": 7, "busy_time": 9e6}


@seen_by(LAPTOP, NARROW)
def test_reported_connections_stand_on_the_page_of_a_transfer(visit, scene):
    source, destination = scene.world.ral, scene.world.glasgow
    samples = [[5.0, 10**9], [10.0, 2 * 10**9]]
    own = send(source, destination, BEGAN, scitag=139, samples=samples, upload=UPLOAD)
    send(source, destination, BEGAN + timedelta(seconds=5), scitag=139)
    flow(source, destination, tcp=TCP | {"rwnd_limited": 4e6, "sndbuf_limited": 0})
    flow(source, destination, sent_bytes=None, ended_at=None, application="", tcp={})
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(f"/transfers/{own}/")
    part = page.get_by_role("region", name="Connections", exact=True)
    expect(part.locator("tbody tr")).to_have_count(2)
    expect(part).to_contain_text("this test or 1 other at the same time")
    expect(part).to_contain_text(
        "not at RAL_DATADISK as it should be, so Sonar’s worker sent it there"
    )
    assert by_day_and_night(page) == []
    assert fits(page)
    look(page, f"connections-{visit.reader}")
