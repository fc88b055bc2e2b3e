"""Rate targets: on pages and in the matrix, and a rate that somebody accepts as baseline."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.incidents.target_counts import ClassRates, LinksNow, counted
from sonar.alerting.decisions import HELD_ON
from sonar.models import HeldLevel, HistoryEntry, SizeClass, Target
from sonar.people.roles import Role
from sonar.registry import file
from tests.matrix import responses
from tests.matrix.registry import caller, patch, post
from tests.matrix.test_cells_file import decoded
from tests.matrix.test_now_and_usual import FACTORS, NOW_MB_S, SLOWER, rates, values
from tests.matrix.world import HOUR, NOW, World

__all__ = ["rates"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
API = "/api/v1/matrix/?stat=vs_target"
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
FORM = {"floor_mb_s": "", "below": "66.67 %", "above": "80 %", "failures": "3"}
FORM |= {"silent_after": "3", "priority": "5", "enabled": "on", "save": ""}

# By hand, in SQL: the minimum rate of the target that applies to a link, else its baseline. That is
# the level that is held, or the median of the successes of 28 whole days, if there are five.
TARGET_SQL = """
    WITH ranked AS (
        SELECT *, row_number() OVER (
            PARTITION BY source_id, destination_id ORDER BY started_at DESC) AS newest
        FROM sonar_transfer WHERE state = 'done' AND size_class_id = %(size)s
    ), now AS (
        SELECT source_id, destination_id, percentile_cont(0.5) WITHIN GROUP (
            ORDER BY bytes / seconds) AS rate
        FROM ranked WHERE newest <= 3 GROUP BY 1, 2 HAVING count(*) = 3
    ), usual AS (
        SELECT source_id, destination_id, percentile_cont(0.5) WITHIN GROUP (
            ORDER BY bytes / seconds) AS rate
        FROM sonar_transfer
        WHERE state = 'done' AND size_class_id = %(size)s
            AND started_at >= %(midnight)s - interval '28 days' AND started_at < %(midnight)s
        GROUP BY 1, 2 HAVING count(*) >= 5
    )
    SELECT split_part(source.name, '_', 1), split_part(destination.name, '_', 1),
        now.rate / coalesce(
            (SELECT floor_mb_s * 1e6 FROM sonar_target AS rule
             WHERE enabled AND (rule.size_class_id IS NULL OR rule.size_class_id = %(size)s)
                 AND (rule.site_id IS NULL OR rule.site_id IN (source.site_id, destination.site_id))
             ORDER BY priority DESC, name LIMIT 1),
            (SELECT rate FROM sonar_heldlevel AS held
             WHERE held.source_id = source.id AND held.destination_id = destination.id
                 AND held.size_class_id = %(size)s),
            usual.rate)
    FROM now JOIN sonar_endpoint AS source ON source.id = source_id
        JOIN sonar_endpoint AS destination ON destination.id = destination_id
        LEFT JOIN usual USING (source_id, destination_id)
"""


@pytest.fixture
def large(rates: World) -> SizeClass:
    return SizeClass.objects.get(name="large")


@pytest.fixture
def ruled(rates: World, large: SizeClass) -> World:
    """Let DESY keep a floor, and the link from RAL to Glasgow a rate that somebody accepted."""
    site = {"site": rates.desy.site}
    Target.objects.create(name="usual-of-desy", priority=3, **site)
    Target.objects.create(name="desy", floor_mb_s=40, below=0.7, above=0.8, **site)
    Target.objects.create(name="off", enabled=False, priority=9, floor_mb_s=1)
    ends = {"source": rates.ral, "destination": rates.glasgow, "size_class": large}
    HeldLevel.objects.create(**ends, rate=7e6, since=NOW - HOUR, until=NOW + HOUR)
    return rates


def test_without_rules_it_is_the_usual_rate_and_costs_no_query_where_it_is_not_asked_for(
    client: Client, rates: World
) -> None:
    assert values(responses.answer(client, API)) == pytest.approx(FACTORS, rel=1e-5)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        responses.answer(client, "/api/v1/matrix/?stat=vs_usual")
    assert not [one for one in captured.captured_queries if "target" in one["sql"]]


def test_the_statistic_is_that_of_sql_with_floors_and_held_levels(
    client: Client, ruled: World, large: SizeClass
) -> None:
    midnight = (NOW - timedelta(days=7)).replace(hour=0, minute=0, second=0)
    with connection.cursor() as cursor:
        cursor.execute(TARGET_SQL, {"size": large.id, "midnight": midnight})
        true = {row[:2]: row[2] for row in cursor if row[2] is not None}
    document = responses.answer(client, API)
    found = values(document)
    # One is failing now, and of one nothing came through in the window.
    assert found == pytest.approx({link: true[link] for link in found}, rel=1e-5)
    assert found.keys() == NOW_MB_S.keys()
    assert found[SLOWER] == pytest.approx(5 / 7, rel=1e-5)
    assert words(document) == {
        ("RAL", "Glasgow"): "near",
        ("Glasgow", "RAL"): "above",
        ("RAL", "DESY"): "near",
        ("Glasgow", "DESY"): "below",
    }
    pooled = responses.answer(client, f"{API}&rows=cloud&columns=cloud")["cells"]
    # From UK to DE: 30 and 8 of 40 and 40; to UK 5 and 40 of 7 and 10.
    assert pooled["value"][1] == pytest.approx([38 / 80, 45 / 17], rel=1e-5)
    assert pooled["against"][1] == ["near", "above"]
    HeldLevel.objects.update(until=NOW)
    assert values(responses.answer(client, API))[SLOWER] == pytest.approx(0.25, rel=1e-5)


def words(document: Any) -> dict[tuple[str, str], str]:
    sources, destinations = (
        [group["name"].partition("_")[0] for group in document[side]]
        for side in ("sources", "destinations")
    )
    return {
        (sources[row], destinations[column]): word
        for row, line in enumerate(document["cells"]["against"])
        for column, word in enumerate(line)
        if word != "unknown"
    }


def test_legend_marks_card_and_table_say_it_without_colour(client: Client, ruled: World) -> None:
    context = client.get("/?stat=vs_target").context
    legend = {entry.state: entry for entry in context["legend"]}
    assert [(name, legend[name].count) for name in ("below", "near", "above")] == [
        ("below", 1), ("near", 2), ("above", 1),
    ]  # fmt: skip
    traces = {trace.get("name"): trace for trace in context["picture"]["figure"]["data"]}
    assert traces["below"]["meta"] == {"outline": "frame"}
    assert len(traces["near"]["x"]) == 2
    assert b"<small>below</small>" in client.get("/?stat=vs_target").content
    header, arrays = decoded(client.get("/cells/?stat=vs_target").content)
    assert header["against_words"] == ["unknown", "above", "near", "below"]
    assert sorted(arrays["against"][arrays["against"] > 0].tolist()) == [1, 2, 2, 3]
    only = client.get(legend["below"].url).context["picture"]
    assert (only["rows"]["names"], only["columns"]["names"]) == (
        ["Glasgow_DATADISK"], ["DESY_DATADISK"],
    )  # fmt: skip
    refused = client.get("/?only=below")
    assert refused.status_code == 400
    assert "The value “below” of “only” requires stat=vs_target." in refused.content.decode()
    refused = client.get("/api/v1/matrix/?fields=target")
    assert refused.status_code == 400
    assert "The field “target” requires stat=vs_target" in refused.json()["errors"]["fields"][0]


def test_what_a_target_matches_is_counted_by_the_worst_size_class(ruled: World) -> None:
    row = Target(mesh=ruled.mesh, sources_filter={"cloud": ["UK"]}, floor_mb_s=9)
    assert counted(row, ClassRates.read_all(NOW)) == LinksNow(links=6, below=1, near=0, above=3)


def test_operators_add_change_and_remove_on_pages_and_see_before_which_links_match(
    rates: World,
) -> None:
    client = caller(Role.OPERATOR)
    form = FORM | {
        "name": "uk",
        "site": "RAL",
        "sources_filter": "cloud=UK",
        "floor_mb_s": "12.5 MB/s",
    }
    shown = client.post("/targets/add/", {k: v for k, v in form.items() if k != "save"})
    assert shown.context["counts"] == LinksNow(links=4, below=1, near=0, above=2)
    assert not Target.objects.exists()
    wrong = client.post("/targets/add/", form | {"floor_mb_s": "fast", "below": "x"})
    assert {name: errors[0] for name, errors in wrong.context["form"].errors.items()} == {
        "floor_mb_s": "'fast' is not a rate: write a number and kB/s, MB/s or GB/s, for example "
        "20 MB/s.",
        "below": "“x” is not a percentage: write a percentage such as 80 %.",
    }
    wrong = client.post("/targets/add/", form | {"below": "90 %", "sources_filter": "x=1"})
    assert wrong.status_code == 400
    assert [*wrong.context["form"].errors] == ["sources_filter"]
    client.post("/targets/add/", form)
    row = Target.objects.get()
    assert (row.floor_mb_s, row.sources_filter, row.enabled) == (12.5, {"cloud": ["UK"]}, True)
    client.post("/targets/uk/", FORM | {"site": "RAL"})
    row.refresh_from_db()
    # What was left as it was written keeps its digits.
    assert (row.floor_mb_s, row.sources_filter, row.above) == (None, {}, 0.8)
    listed = client.get("/targets/")
    assert "links from or to RAL" in listed.content.decode()
    client.post("/targets/uk/delete/")
    assert not Target.objects.exists()
    kept = HistoryEntry.objects.filter(kind="target").order_by("id")
    assert list(kept.values_list("action", "channel")) == [
        ("added", "page"),
        ("changed", "page"),
        ("removed", "page"),
    ]


def test_admins_of_a_site_have_targets_of_it_alone_at_every_door(rates: World) -> None:
    own = Target.objects.create(name="own", site=rates.ral.site)
    Target.objects.create(name="others", site=rates.desy.site)
    Target.objects.create(name="all")
    client = caller(Role.SITE_ADMIN, "RAL")
    for name in ("others", "all"):
        assert client.post(f"/targets/{name}/", FORM | {"site": "RAL"}).status_code == 403
        assert client.post(f"/targets/{name}/delete/").status_code == 403
        assert patch(client, f"targets/{name}/", {"priority": 1}).status_code == 403
        assert client.delete(f"/api/v1/targets/{name}/").status_code == 403
    assert client.post("/targets/own/", FORM | {"site": "DESY"}).status_code == 403
    assert client.post("/targets/own/", FORM | {"site": ""}).status_code == 400
    for site in ("DESY", None):
        assert patch(client, "targets/own/", {"site": site}).status_code == 403
        assert post(client, "targets/", {"name": "new", "site": site}).status_code == 403
    own.refresh_from_db()
    assert own.site == rates.ral.site
    assert client.post("/targets/own/", FORM | {"site": "RAL"}).status_code == 302
    assert post(client, "targets/", {"name": "new", "site": "RAL"}).status_code == 201


def test_the_rate_of_a_link_is_accepted_by_who_may_and_stands_in_its_history(
    ruled: World, large: SizeClass
) -> None:
    other, operator = caller(Role.SITE_ADMIN, "DESY"), caller(Role.OPERATOR, name="anna")
    body = {"size": "large", "note": "another route"}
    assert other.post(f"{LINK}baseline/", body).status_code == 403
    for wrong, said in (
        ({"size": "huge"}, "size “huge” is not known: use small, medium, large."),
        ({"size": "small"}, "The link has no current rate for small files"),
        ({"note": " "}, "“note” is empty. Give the reason"),
        ({"note": "x" * 501}, "“note” has 501 characters. At most 500 are allowed."),
    ):
        refused = operator.post(f"{LINK}baseline/", body | wrong)
        assert refused.status_code == 400
        assert said in refused.content.decode()
    assert HeldLevel.objects.get().by is None
    assert operator.post(f"{LINK}baseline/", body).status_code == 302
    level = HeldLevel.objects.get()
    assert (level.rate, level.until, level.note) == (5e6, NOW + HELD_ON, "another route")
    assert level.by == User.objects.get(username="anna")
    entry = HistoryEntry.objects.get(kind="baseline")
    assert (entry.name, entry.who, entry.channel) == (
        "RAL_DATADISK → Glasgow_DATADISK, large", "anna", "page",
    )  # fmt: skip
    page = operator.get(LINK)
    line = page.context["targets"].classes[-1]
    assert (line.rate, line.now, line.against, line.row.pk) == (5e6, 5e6, "above", None)
    assert entry.changes["rate_mb_s"] == [None, 5.0]
    words = " ".join(page.content.decode().split())
    assert "anna accepted 5.00 MB/s as the baseline for large files: another route" in words


def test_link_and_site_show_the_target_and_compare_with_it(client: Client, ruled: World) -> None:
    page = client.get("/links/Glasgow_DATADISK/DESY_DATADISK/")
    line = page.context["targets"].classes[-1]
    assert (line.row.name, line.rate, line.now, line.against) == ("desy", 40e6, 8e6, "below")
    assert '<a href="/targets/#desy">desy</a>' in page.content.decode()
    site = client.get("/sites/Glasgow/")
    assert site.context["below"] == (1, 3)
    matrix = client.get(site.context["targets_url"])
    legend = {entry.state: entry.count for entry in matrix.context["legend"]}
    assert (legend["below"], legend["near"]) == (1, 1)


def test_what_a_file_says_is_answered_by_rest_and_makes_the_same_when_it_is_sent(
    small_world: World,
) -> None:
    file.load(
        "targets: [{name: uk, size_class: large, mesh: everything, site: RAL, floor: 1.5 GB/s,"
        ' sources: {cloud: UK, tag: "!tape"}, above: 0.9, enabled: false, silent_after: 2.5}]'
    )
    client = caller(Role.OPERATOR)
    record = responses.answer(client, "/api/v1/targets/uk/")
    body = {name: value for name, value in record.items() if name not in ("links", "requirement")}
    assert post(client, "targets/", body | {"name": "sent"}).status_code == 201
    of_file, sent = Target.objects.order_by("-name").values()
    assert {**of_file, "id": sent["id"], "name": "sent"} == sent
    assert sent["floor_mb_s"] == 1500


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/api/v1/matrix/?stat=expectation", "stat “expectation” is now called vs_target"),
        ("/?stat=expectation", "stat “expectation” is now called vs_target"),
        ("/api/v1/matrix/?fields=expected", "fields “expected” is now called target"),
        ("/api/v1/history/?kind=expectation", "kind “expectation” is now called target"),
    ],
)
def test_a_former_word_is_refused_with_the_current_one(
    small_world: World, address: str, sentence: str
) -> None:
    refused = caller(Role.OPERATOR).get(address)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()


def test_a_former_section_and_field_are_refused_with_the_current_ones(small_world: World) -> None:
    with pytest.raises(
        file.RegistryError, match=r"expectations \(line 1\): this key is now called targets"
    ):
        file.load("expectations: [{name: uk}]")
    refused = post(caller(Role.OPERATOR), "targets/", {"name": "uk", "floor": 2e7})
    assert refused.json()["errors"] == {"floor": ["The field “floor” is now called floor_mb_s."]}
