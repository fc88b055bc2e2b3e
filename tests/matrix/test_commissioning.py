"""Links pass and lose criteria as their results come, come late, and go; pages and calls of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from matrix import tasks
from matrix.answers.commissioning.search import search, search_all
from sonar.models import (
    CommissioningRecord,
    CommissioningSearch,
    CriteriaSet,
    Endpoint,
    HistoryEntry,
    SizeClass,
    Transfer,
)
from sonar.people.roles import Role
from sonar.registry.file import RegistryError, load
from sonar.results import sealing, store
from sonar.results.commissioning import NOTHING, Stored
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.registry import caller, patch, post
from tests.matrix.world import HOUR, NOW, World, downtime, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "small_world")]
DAY = timedelta(days=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DDT = {"period_hours": 6, "least_tests": 3, "least_mb_s": 20.0}


@pytest.fixture
def ddt() -> CriteriaSet:
    return CriteriaSet.objects.create(
        name="DDT", size_class=SizeClass.objects.get(name="large"), **DDT
    )


def hourly(world: World, since: timedelta, until: timedelta, rate: float | None, *more: int):
    """Test RAL to DESY each hour, from so long ago on until so long ago, at half past."""
    with transfers() as some:
        for hour in range(since // HOUR, until // HOUR, -1):
            for minute in (0, *more):
                ago = NOW - NOON + hour * HOUR - timedelta(minutes=30 + minute)
                some.add(world.ral, world.desy, rate, ago=ago)


def passes() -> list[tuple[timedelta, timedelta | None]]:
    """Return how long before noon each record passed and was lost."""
    return [
        (NOON - row.passed_at, row.lost_at and NOON - row.lost_at)
        for row in CommissioningRecord.objects.order_by("passed_at")
    ]


@pytest.mark.long
def test_a_link_passes_loses_it_and_passes_again_and_late_results_move_that(
    small_world: World, ddt: CriteriaSet
):
    hourly(small_world, 40 * HOUR, 30 * HOUR, 50.0)
    hourly(small_world, 30 * HOUR, 12 * HOUR, 2.0)
    hourly(small_world, 12 * HOUR, 4 * HOUR, 50.0)
    assert search(ddt, NOW).stored == Stored(2, 0, 0)
    found = passes()
    # Its third test ended the 38th hour; the slow ones outweigh the others from the first on.
    assert found[0] == (37 * HOUR, 24 * HOUR)
    assert found[1][1] is None
    # Three hours after three hours the same is found as in one look back.
    CommissioningSearch.objects.all().delete()
    CommissioningRecord.objects.all().delete()
    for hours in range(39, -1, -3):
        search(ddt, NOW - hours * HOUR)
    assert passes() == found
    kept = set(CommissioningRecord.objects.values_list("id", "found_at"))
    assert search(ddt, NOW + HOUR / 2).stored is None  # nothing is new
    sealing.seal(timezone.now())
    assert search(ddt, NOW).stored == NOTHING
    # Without its slow hours it never lost what it had.
    Transfer.objects.filter(seconds=1000.0).delete()
    assert search(ddt, NOW).stored == Stored(0, 1, 1)
    assert passes() == [(37 * HOUR, None)]
    assert set(CommissioningRecord.objects.values_list("id", "found_at")) < kept
    assert search(ddt, NOW + 2 * HOUR).stored == NOTHING


def test_thin_data_never_passes_and_a_declared_downtime_costs_nothing(
    small_world: World, ddt: CriteriaSet
):
    hourly(small_world, 40 * HOUR, 34 * HOUR, 50.0)
    hourly(small_world, 34 * HOUR, 20 * HOUR, None, 1, 2)
    ddt.least_success_percent = 50
    ddt.save()
    assert search(ddt, NOW).stored == Stored(1, 0, 0)
    assert passes()[0][1] is not None
    # Declared afterwards, as sites do.
    downtime(-35 * HOUR, -20 * HOUR, endpoint=small_world.desy)
    assert search(ddt, NOW).stored == Stored(0, 1, 0)
    assert passes() == [(37 * HOUR, None)]
    ddt.least_tests = 7
    ddt.save()
    assert search(ddt, NOW).stored == Stored(0, 0, 1)


@pytest.mark.long
def test_a_record_stays_when_the_results_are_dropped(
    small_world: World, ddt: CriteriaSet, settings: Any
):
    hourly(small_world, 60 * DAY, 60 * DAY - 6 * HOUR, 50.0)
    assert search(ddt, NOW).stored == Stored(1, 0, 0)
    settings.SONAR_KEEP_DAYS = 10
    assert store.drop_expired(NOW, 10)
    assert not Transfer.objects.exists()
    assert search(ddt, NOW + HOUR).stored == NOTHING
    ddt.least_mb_s = 100.0  # what was required then stays with it
    ddt.save()
    assert search(ddt, NOW + HOUR).stored == NOTHING
    (row,) = CommissioningRecord.objects.all()
    assert (row.tests, row.ok, row.required["least_mb_s"]) == (3, 3, 20.0)
    page = responses.page(Client(), "/commissioning/DDT/RAL_DATADISK/DESY_DATADISK/")
    assert "20.0 MB/s 50.0 MB/s ✓ yes" in page.words
    assert "Passed 21 Sep 2026 15:00 UTC" in page.words
    assert page.section("now").by_head()["tests"] == ["3", "0", "no, 0 % of the minimum"]


def test_the_task_judges_all_sets_and_links_that_fit_no_more_keep_their_records(
    small_world: World, ddt: CriteriaSet
):
    hourly(small_world, 9 * HOUR, 0 * HOUR, 50.0)
    tasks.judge_links()
    assert len(passes()) == 1
    CriteriaSet.objects.update(sources_filter={"site": ["DESY"]})
    tasks.judge_links()
    assert len(passes()) == 1
    said = CommissioningSearch.objects.get().counts
    assert said == {
        "passed": 0,
        "below now": 0,
        "nearly": 0,
        "on the way": 0,
        "lost": 0,
        "no data": 6,
    }
    assert settings.CELERY_BEAT_SCHEDULE["judge_links"]["task"] == tasks.judge_links.name


FORM = {
    "name": "TPC",
    "size_class": "large",
    "period_hours": "7d",
    "least_tests": "28",
    "least_mb_s": "125",
    "least_success_percent": "90",
    "least_bytes": "10 TB",
}
TYPED = {name: text for name, text in FORM.items() if name != "size_class"}


def test_operators_add_change_and_delete_a_set_and_others_read(small_world: World, client: Client):
    operator = logged_in(account(Role.OPERATOR, name="olga"))
    page = responses.page(operator, "/commissioning/add/?preset=TPC")
    assert {name: page.field(name)["value"] for name in TYPED} == TYPED
    answer = operator.post("/commissioning/add/", FORM)
    assert answer["Location"] == "/commissioning/TPC/"
    row = CriteriaSet.objects.get()
    assert (row.period_hours, row.least_bytes, row.sources_filter) == (168, 10**13, {})
    words = responses.page(operator, "/commissioning/TPC/").words
    assert "Sonar evaluates the links of this set within" in words
    assert "at least 125 MB/s, a success rate of 90 % and 10 TB transferred over 7 days" in words
    assert "12 links, not checked yet." in words
    assert "no data" not in words
    operator.post("/commissioning/TPC/change/", FORM | {"sources_filter": "cloud=UK"})
    assert "from endpoints of cloud UK to every endpoint" in responses.page(
        client, "/commissioning/"
    )
    entries = HistoryEntry.objects.filter(kind="criteria set").order_by("id")
    assert [entry.action for entry in entries] == ["added", "changed"]
    assert entries[1].changes == {"sources_filter": [None, {"cloud": ["UK"]}]}
    assert "Delete" not in responses.page(client, "/commissioning/TPC/")
    assert operator.post("/commissioning/TPC/delete/")["Location"] == "/commissioning/"
    assert "There are no criteria sets" in responses.page(client, "/commissioning/")


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        ({"name": "add"}, "name", "A criteria set cannot be named “add”"),
        ({"period_hours": "90m"}, "period_hours", "'90m' is not a whole number of hours"),
        ({"period_hours": "31d"}, "period_hours", "less than or equal to 720"),
        ({"least_mb_s": "", "least_success_percent": ""}, "least_mb_s", "Enter a minimum rate"),
        ({"sources_filter": "cluod=UK"}, "sources_filter", "“cluod” is not an attribute"),
        ({"size_class": "huge"}, "size_class", "“huge” is not a size class"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(wrong: dict[str, str], field: str, sentence: str):
    operator = logged_in(account(Role.OPERATOR))
    answer = operator.post("/commissioning/add/", FORM | wrong)
    assert answer.status_code == 400
    page = Page(answer.content.decode())
    assert sentence in page.part(f"#set-{field}_error") if field else page
    assert not CriteriaSet.objects.exists()


def test_a_registry_file_has_sets(small_world: World):
    text = """
criteria_sets:
  - {name: DDT, size: large, period_hours: 24, least_tests: 6, least_mb_s: 20, sources: {tier: 1}}
"""
    assert load(text).added == {"criteria_sets": ["DDT"]}
    assert load(text).left == {"criteria_sets": ["DDT"]}
    assert CriteriaSet.objects.get().sources_filter == {"tier": ["1"]}
    for wrong, sentence in (
        (text.replace("large", "huge"), "size (line 3): size class 'huge' is not registered"),
        (text.replace("tier: 1", "tier: 9"), "sources.tier (line 3)"),
        (
            text.replace("least_mb_s: 20", "least_mb_s: null"),
            "Enter a minimum rate or a minimum success rate",
        ),
        (text.replace("24", "0"), "period_hours (line 3)"),
    ):
        with pytest.raises(RegistryError, match="criteria_sets"):
            load(wrong)
        with pytest.raises(RegistryError) as refusal:
            load(wrong)
        assert sentence in str(refusal.value)


@pytest.mark.long
def test_the_set_is_a_matrix_on_its_page_and_lines_by_the_api(
    small_world: World, ddt: CriteriaSet, client: Client
):
    hourly(small_world, 9 * HOUR, 0 * HOUR, 50.0)
    with transfers() as some:
        for minutes in (40, 50, 60):
            some.add(small_world.glasgow, small_world.ral, 17.5, ago=timedelta(minutes=minutes))
        some.add(small_world.desy, small_world.ral, 50.0, ago=HOUR)
    CommissioningRecord.objects.create(
        criteria_set=ddt,
        source=small_world.ral,
        destination=small_world.glasgow,
        passed_at=NOON - 95 * DAY,
        lost_at=NOON - 94 * DAY,
        required=ddt.required,
        tests=3,
        ok=3,
        bytes=3,
        seconds=1.0,
        found_at=NOW,
    )
    search_all(NOW)
    rows = responses.page(client, "/commissioning/").by_head()
    assert rows["DDT"][:6] == ["1", "0", "1", "1", "1", "8"]
    responses.page(client, "/commissioning/DDT/")
    reads = [
        len(responses.statements(client.get, f"/commissioning/{path}"))
        for path in ("", "DDT/", "DDT/RAL_DATADISK/DESY_DATADISK/")
    ]
    assert reads == [1, 8, 8]
    page = responses.page(client, "/commissioning/DDT/")
    table = page.part("table.commissioning").by_head()
    assert table["RAL_DATADISK"] == ["✓", "·", "✕", ""]
    assert table["Glasgow_DATADISK"][3] == "▲ 87 %"
    assert table["DESY_DATADISK"][3] == "33 %"
    chosen = responses.page(client, "/commissioning/DDT/?source_site=RAL")
    assert list(chosen.part("table.commissioning").by_head()) == ["RAL_DATADISK"]
    assert client.get("/commissioning/DDT/?source_site=X").status_code == 400
    api = "/api/v1/commissioning/"
    (summary,) = responses.answer(client, api)["commissioning"]
    assert (summary["passed"], summary["judged_up_to"]) == (1, "2026-11-20T12:00:00Z")
    body = responses.answer(client, f"{api}DDT/?state=passed&state=nearly")
    assert [(line["source"], line["state"], line["percent"]) for line in body["links"]] == [
        ("Glasgow_DATADISK", "nearly", 87),
        ("RAL_DATADISK", "passed", 100),
    ]
    assert len(list(responses.pages(client, f"{api}DDT/?page_size=5"))) == 3
    lines = responses.csv_rows(client, f"{api}DDT/?format=csv&source_site=RAL")
    assert [line["lost_at"] != "" for line in lines] == [False, False, True]
    certificate = responses.answer(client, f"{api}DDT/RAL_DATADISK/DESY_DATADISK/")
    (record,) = certificate["records"]
    assert record["passed_at"] == "2026-11-20T06:00:00Z"
    assert [one["holds"] for one in record["criteria"]] == [True, True]
    assert client.get(f"{api}DDT/RAL_DATADISK/X/").status_code == 404
    link = responses.page(client, "/links/RAL_DATADISK/DESY_DATADISK/")
    assert "DDT : passed 20 Nov 06:00" in link.words
    # Names are cut where all of them end alike.
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(name="B_DATADISK", label="DATADISK")
    heads = responses.page(client, "/commissioning/DDT/").parts("table.commissioning th[title]")
    named = {head.words: head["title"] for head in heads}
    assert named == {name: f"{name}_DATADISK" for name in ("RAL", "Glasgow", "DESY", "B")}


@pytest.mark.parametrize(
    ("changed", "short"),
    [({}, "16.7 of 20.0 MB/s"), ({"least_success_percent": 80.0}, "50.0 of 80.0 %")],
)
def test_a_link_that_has_passed_and_is_below_now_does_not_count_as_passing(
    small_world: World, ddt: CriteriaSet, client: Client, changed: dict[str, float], short: str
):
    CriteriaSet.objects.update(**changed)
    ddt.refresh_from_db()
    hourly(small_world, 12 * HOUR, 3 * HOUR, 50.0)
    hourly(small_world, 3 * HOUR, 0 * HOUR, None if changed else 10.0)
    search_all(NOW)
    assert [lost for _, lost in passes()] == [None]
    words = f"passed on 20 Nov 2026, now below the criteria: {short}"
    assert responses.page(client, "/commissioning/").by_head()["DDT"][:2] == ["0", "1"]
    table = responses.page(client, "/commissioning/DDT/").part("table.commissioning")
    (cell,) = table.parts("td.below-now")
    assert cell.attributes["title"] == words
    assert cell.words.startswith("▼ ")
    record = responses.page(client, "/commissioning/DDT/RAL_DATADISK/DESY_DATADISK/")
    (sentence,) = record.parts(".sentence")
    said = sentence.words.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(f"now below the criteria : {short} . Passed 20 Nov 2026 03:00 UTC .")
    link = responses.page(client, "/links/RAL_DATADISK/DESY_DATADISK/").words
    assert f"DDT : passed 20 Nov 03:00, now below the criteria: {short}" in link
    api = "/api/v1/commissioning/"
    (summary,) = responses.answer(client, api)["commissioning"]
    assert (summary["passed"], summary["below_now"]) == (0, 1)
    assert responses.answer(client, f"{api}DDT/?state=passed")["links"] == []
    (line,) = responses.csv_rows(client, f"{api}DDT/?format=csv&state=below now")
    said = f"passed on 20 Nov 2026, now below the criteria: {short}"
    assert (line["state"], line["words"], line["lost_at"]) == ("below now", said, "")
    assert line["passed_at"] == "2026-11-20T03:00:00Z"


def test_a_link_that_has_passed_with_too_few_tests_since_is_not_below(
    small_world: World, ddt: CriteriaSet, client: Client
):
    hourly(small_world, 20 * HOUR, 12 * HOUR, 50.0)
    hourly(small_world, 2 * HOUR, 0 * HOUR, 10.0)
    search_all(NOW)
    assert responses.page(client, "/commissioning/").by_head()["DDT"][:2] == ["1", "0"]


def test_the_set_is_written_by_the_api(small_world: World):
    operator = caller(Role.OPERATOR)
    body: dict[str, Any] = {"name": "DDT", "size": "large", **DDT, "sources": {"tier": "1"}}
    made = post(operator, "criteria-sets/", body)
    assert made.status_code == 201, made.content
    assert made.json()["sources"] == {"tier": ["1"]}
    answer = patch(operator, "criteria-sets/DDT/", {"least_mb_s": None})
    assert answer.json()["errors"]["least_mb_s"] == [
        "Enter a minimum rate or a minimum success rate."
    ]
    assert patch(operator, "criteria-sets/DDT/", {"size": "huge"}).status_code == 400
    changed = patch(operator, "criteria-sets/DDT/", {"size": "small", "sources": "all"})
    assert (changed.json()["size"], changed.json()["sources"]) == ("small", "all")
