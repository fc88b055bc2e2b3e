"""Reports as they are chosen, read and printed."""

import pytest
from playwright.sync_api import expect

from matrix.answers.report import build
from matrix.answers.report.question import ReportPeriod, ReportQuestion
from matrix.plots.report.mail import ReportMail
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night, violations
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.matrix import world
from tests.matrix.changed_site import ChangedSite
from tests.sonar.alarms import of_person

REPORT = "/reports/2026-W46/"


@seen_by(LAPTOP, NARROW)
def test_a_report_is_chosen_read_and_printed(visit: Visit, changed: ChangedSite, reader):
    page = visit.open("/sites/UKI-SCOTGRID-GLASGOW/")
    page.get_by_role("link", name="Reports on").click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Reports on site UKI")
    assert fits(page)
    assert by_day_and_night(page, ALL) == []
    look(page, f"reports-{reader}")
    page.get_by_role("link", name="Week 46").click()
    page.wait_for_url("**/reports/2026-W46/?site=UKI-SCOTGRID-GLASGOW")
    for path in (REPORT, f"{REPORT}?site=UKI-SCOTGRID-GLASGOW", f"{REPORT}?cloud=UK"):
        visit.open(path)
        assert fits(page)
        assert by_day_and_night(page, ALL) == []
        name = f"report-{path.partition('?')[2][:4]}-{reader}"
        look(page, name)
        page.emulate_media(color_scheme="dark")
        look(page, f"{name}-dark")
        page.emulate_media(color_scheme="light", media="print")
        assert violations(page) == []
        look(page, f"{name}-print")
        page.emulate_media(media="null")


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_a_report_is_subscribed_to_and_reads_well_as_e_mail(
    visit: Visit, changed, reader, settings
):
    settings.SONAR_URL, settings.EMAIL_HOST = "https://sonar.example.org", "mail.example.org"
    operator = account(Role.OPERATOR, name="olga")
    operator.email = "olga@example.org"
    operator.save()
    failing = {"failing_since": world.NOW, "answer": "mail.example.org answers 550 nobody."}
    of_person("anna", report="month", title="monthly report on cloud UK", cloud="UK", **failing)
    visit.log_in(operator)
    page = visit.open("/reports/?site=UKI-SCOTGRID-GLASGOW")
    page.get_by_role("button", name="Subscribe to reports on").click()
    expect(page.locator(".notice[role=status]")).to_contain_text("now subscribed")
    assert "23 Nov 06:00" in page.locator("#mail").inner_text()
    assert fits(page)
    assert by_day_and_night(page, ALL) == []
    look(page, f"report-subscriptions-{reader}")
    page.emulate_media(color_scheme="dark")
    look(page, f"report-subscriptions-{reader}-dark")
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Send latest report").click()
    expect(page.locator("#deliveries")).to_contain_text("waiting")
    assert fits(page)
    assert by_day_and_night(page, ALL) == []
    look(page, f"report-subscription-{reader}")
    for name, scope in {
        "grid": {},
        "site": {"site": "UKI-SCOTGRID-GLASGOW"},
        "cloud": {"cloud": "UK"},
    }.items():
        question = ReportQuestion(ReportPeriod.parse("2026-W46"), **scope)
        mail = ReportMail.of(build.build(question), "weekly report")
        print(name, len(mail.html), len(mail.text))
        page.set_content(mail.html)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            look(page, f"report-mail-{name}-{reader}-{scheme}")
            assert fits(page)
