"""Reports that there are, how they are found, and what is said where there is nothing."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from matrix.answers.report.question import ReportPeriod
from matrix.answers.report.sections import grouping
from matrix.statistics.cells.axes import AxisGroup
from sonar.results import sealing
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

END = datetime(2026, 11, 16, tzinfo=UTC)
PAGE = "/reports/2026-W46/"


def test_empty_and_thin_periods_say_so(client, small_world):
    page = responses.page(client, PAGE)
    assert page.texts(".report-summary li") == [
        "No tests ran in this week; 12 links are scheduled today."
    ]
    assert "there are no rates to show" in page.words
    assert "slower than usual or often" not in page.words
    transfer(small_world.ral, small_world.desy, 12.0, ago=NOW - END + HOUR)
    page = responses.page(client, PAGE)
    tests, rates, trouble = page.texts(".report-summary li")
    assert (
        "1 test ran and 100 % of them succeeded (there were no tests in the week before)" in tests
    )
    assert rates.endswith("there are no rates from the week before to compare with.")
    assert "no link was failing or slower than usual" in trouble


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "2026-W54/",
            "“2026-W54” is neither a week like 2026-W47 nor a month like 2026-10",
        ),
        ("2026-13/", "“2026-13” is neither a week like"),
        ("1999-12/", "“1999-12” is neither a week like"),
        ("2026-W47/", "The period 2026-W47 has not ended. The latest complete week is 2026-W46"),
        ("2026-11/", "The period 2026-11 has not ended. The latest complete month is 2026-10"),
        ("2026-W46/?site=Atlantis", "site “Atlantis” is not known"),
        ("2026-W46/?cloud=FR", "cloud “FR” is not known"),
        ("2026-W46/?cloud=UK&site=RAL", "Use either “cloud” or “site”"),
        ("2026-W46/?site=RAL&site=DESY", "“site” is given 2 times"),
    ],
)
def test_what_there_is_no_report_of_is_refused_with_what_is_allowed(
    client, small_world, address, sentence
):
    for path in ("/reports/", "/api/v1/reports/"):
        response = client.get(f"{path}{address}")
        assert response.status_code == 400
        assert sentence in response.content.decode()


def test_periods_follow_each_other_over_the_turn_of_years():
    week = ReportPeriod.parse("2026-W01")
    assert week.window.start == datetime(2025, 12, 29, tzinfo=UTC)
    assert (week.before.name, week.before.after) == ("2025-W52", week)
    assert ReportPeriod.parse("2027-01").before.before.name == "2026-11"
    assert ReportPeriod.parse("2028-02").window.end == datetime(2028, 3, 1, tzinfo=UTC)
    assert ReportPeriod.newest("week", END).name == "2026-W46"
    assert ReportPeriod.newest("month", END).name == "2026-10"


def test_a_report_is_found_by_its_site(client, small_world):
    transfer(small_world.ral, small_world.desy, 12.0, ago=NOW - END + HOUR)
    page = responses.page(client, "/reports/?site=RAL")
    assert page.parts('a[href="/reports/2026-W46/?site=RAL"]')
    assert responses.page(client, "/sites/RAL/").parts('a[href="/reports/?site=RAL"]')


def test_only_periods_with_results_are_listed(client, small_world):
    page = responses.page(client, "/reports/")
    assert page.parts('a[href^="/reports/20"]') == []
    assert "No complete week has results yet." in page.words
    for week in (1, 3):
        ago = NOW - END + HOUR + week * 7 * 24 * HOUR
        transfer(small_world.ral, small_world.desy, 12.0, ago=ago)
    sealing.seal(NOW)
    # This one is not sealed yet.
    transfer(small_world.ral, small_world.desy, 12.0, ago=NOW - END + HOUR + 14 * 24 * HOUR)
    listed = responses.page(client, "/reports/").links('a[href^="/reports/20"]')
    weeks = [f"/reports/2026-W{number}/" for number in (45, 44, 43)]
    assert listed == [*weeks, "/reports/2026-10/"]


def test_more_sites_than_fit_on_a_page_are_put_together():
    def group(number: int) -> AxisGroup:
        facts = {
            "site": f"S{number}",
            "cloud": f"C{number % 17}",
            "tier": number % 3,
            "country": "",
        }
        return AxisGroup(f"S{number}", facts, simulated=False)

    assert grouping(map(group, range(16)), 16) == "site"
    assert grouping(map(group, range(17)), 17) == "site"
    assert grouping(map(group, range(40)), 17) == "cloud"
    assert grouping(map(group, range(40)), 16) == "tier"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["week", "report.doc"], "must end in .pdf, .html or .md"),
        (["2026-W99", "report.md"], "“2026-W99” is neither a week like"),
        (["week", "nowhere/report.md"], "No such file or directory."),
        (["week", "report.md", "--site", "Atlantis"], "“Atlantis” is not known"),
    ],
)
def test_the_command_says_what_is_wrong(small_world, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=re.escape(sentence)):
        call_command("report", *words)
    assert list(Path(tmp_path).iterdir()) == []
