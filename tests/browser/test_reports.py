"""Reports as they are chosen, read and printed."""

from tests.browser.axe import ALL, by_day_and_night, violations
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.matrix.changed_site import ChangedSite

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
