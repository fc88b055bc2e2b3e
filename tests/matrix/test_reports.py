"""Reports: their figures against SQL and other answers, in all that they are written as."""

import re
import urllib.request
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Count, Q, Sum
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from matrix.answers.report import build
from matrix.answers.report.question import ReportPeriod, ReportQuestion
from matrix.http import throttling
from matrix.plots.report import document, pdf
from matrix.plots.report.mail import ReportMail
from matrix.store.cache import ANSWERS
from sonar.models import Endpoint, Transfer
from tests.matrix import changed, responses, world
from tests.matrix.changed import change, outage
from tests.matrix.sent import MARKUP
from tests.matrix.world import HOUR, NOW, World, downtime, transfer, transfers
from tests.needs import lacks
from tests.scenes import standing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

DAY = timedelta(days=1)
START, END = (datetime(2026, 11, day, tzinfo=UTC) for day in (9, 16))
OF_WEEK = Q(started_at__gte=START, started_at__lt=END)
PAGE, API = "/reports/2026-W46/", "/api/v1/reports/2026-W46/"


@pytest.fixture(scope="module")
def weeks(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with standing(django_db_blocker, make) as scene:
        yield scene


def make() -> World:
    """Five weeks: in the last, RAL sends at half its rate, and DESY to RAL fails since Saturday.

    Glasgow had a downtime then, and DESY to RAL came back on the Tuesday after it.
    """
    scene = world.make()
    ends = ral, glasgow, desy = scene.ral, scene.glasgow, scene.desy
    links = [(source, end) for source in ends for end in ends if source != end]
    with transfers() as some:
        for hours in range(0, 33 * 24, 6):
            late, ago = hours < 7 * 24, NOW - END + (hours + 1) * HOUR
            for number, (source, destination) in enumerate(links):
                rate = 40.0 * (number + 1) * (1 + hours % 5 / 20)
                rate *= 0.5 if late and source is ral else 1
                fails = hours < 36 and (source, destination) == (desy, ral)
                some.add(source, destination, None if fails else rate, ago=ago)
                if source is ral:
                    some.add(source, destination, rate / 3, ago=ago, size="small")
    change(ral, None, 0.5, 11 * DAY)
    outage(desy, ral, NOW - END + 34 * HOUR, 3 * DAY)
    downtime(-8 * DAY, -7 * DAY, site=glasgow.site, reason=f"new switch {MARKUP}")
    changed.assessed()
    return scene


def sections(client: Client, asked: str = "") -> dict[str, Any]:
    return {each["name"]: each for each in responses.answer(client, f"{API}{asked}")["sections"]}


def test_its_figures_are_those_of_the_rows(client, weeks):
    of_large = Transfer.objects.filter(OF_WEEK, size_class__name="large")
    done = Q(state="done")
    sums = of_large.aggregate(
        tests=Count("id"), failed=Count("id", filter=~done), bytes=Sum("bytes", filter=done)
    )
    links = of_large.values("source", "destination").distinct().count()
    told = sections(client)
    row = next(row for row in told["coverage"]["rows"] if row["size"] == "large")
    assert {name: row[name] for name in sums} == sums
    assert (row["planned_links"], row["tested_links"]) == (12, links)
    rates = next(row for row in told["rates"]["rows"] if row["size"] == "large")
    assert rates["success_percent"] == pytest.approx(100 * (1 - sums["failed"] / sums["tests"]))
    assert rates["mean_mb_s"] == pytest.approx(mean_of_links(of_large.filter(done)))
    before = Q(started_at__gte=START - 7 * DAY, started_at__lt=START, size_class__name="large")
    assert rates["before_mb_s"] == pytest.approx(mean_of_links(Transfer.objects.filter(before)))
    # Two of six links are at half their rate.
    assert rates["change"] == pytest.approx(0.5 ** (1 / 3), rel=0.02)
    assert rates["verdict"] == "slower"


def mean_of_links(rows: Any) -> float:
    """Return the mean of the means of links in MB/s."""
    by_link: dict[tuple[int, int], list[float]] = {}
    for source, destination, size, seconds in rows.values_list(
        "source", "destination", "bytes", "seconds"
    ):
        by_link.setdefault((source, destination), []).append(size / seconds / 1e6)
    means = [sum(rates) / len(rates) for rates in by_link.values()]
    return sum(means) / len(means)


def test_it_says_what_other_pages_say_of_the_same_time(client, weeks):
    told = sections(client)
    window = "from=2026-11-09T00:00:00Z&to=2026-11-16T00:00:00Z"
    asked = f"/api/v1/matrix/?rows=site&columns=site&{window}&fields=value,state"
    matrix = responses.answer(client, asked)
    sources, destinations = (
        [group["name"] for group in matrix[side]] for side in ("sources", "destinations")
    )
    assert len(told["matrix"]["rows"]) == 7
    for cell in told["matrix"]["rows"]:
        row, column = sources.index(cell["source"]), destinations.index(cell["destination"])
        assert cell["state"] == matrix["cells"]["state"][row][column]
        mean = matrix["cells"]["value"][row][column]
        assert cell["mean_mb_s"] == (mean and pytest.approx(mean, rel=1e-4))
    looks = [
        tuple(row[name] for name in ("look", "source", "destination", "size"))
        for row in told["worst"]["rows"]
    ]
    assert looks[0] == ("failing", "DESY_DATADISK", "RAL_DATADISK", "large")
    assert {look[0] for look in looks[1:]} == {"slow"}
    assert {look[1] for look in looks[1:]} == {"RAL_DATADISK"}
    subjects = [row["subject"] for row in told["causes"]["rows"]]
    assert any("RAL" in subject for subject in subjects)
    # It recovered on Tuesday, which is after the week.
    events = [(row["where"], row["type"], row["until"]) for row in told["events"]["rows"]]
    assert events == [
        ("DESY_DATADISK to RAL_DATADISK", "failing", None),
        ("RAL_DATADISK as source", "slower", None),
    ]


@pytest.mark.parametrize(
    ("asked", "tests", "downtimes"), [("", 224, 1), ("?site=RAL", 168, 0), ("?cloud=UK", 224, 1)]
)
def test_of_a_site_or_cloud_it_has_its_own_links_alone(client, weeks, asked, tests, downtimes):
    told = sections(client, asked)
    counts = {row["size"]: row["tests"] for row in told["coverage"]["rows"]}
    own = Q()
    if "site" in asked:
        own = Q(source__site__name="RAL") | Q(destination__site__name="RAL")
    assert sum(counts.values()) == tests == Transfer.objects.filter(OF_WEEK, own).count()
    assert len(told["downtimes"]["rows"]) == downtimes
    page = responses.page(client, f"{PAGE}{asked}")
    assert ("to partner" in page.words) == ("site" in asked)
    assert "Simulated" not in page.words


def test_the_three_sentences_say_what_was_and_what_changed(client, weeks):
    page = responses.page(client, PAGE)
    tests, rates, trouble = page.texts(".report-summary li")
    assert tests.startswith(
        "224 tests ran and 97.3 % of them succeeded (100 % in the week before);"
    )
    assert "6 of 12 planned links were tested" in tests
    assert (
        "compared link by link, that is slower than in the week before: 0.79 times the rate"
    ) in rates
    assert trouble == (
        "At the end of the week (16 Nov 00:00 UTC), 1 link was failing and 3 links were slower "
        "than "
        "usual; the worst event of the week: DESY_DATADISK to RAL_DATADISK fails."
    )
    assert MARKUP not in client.get(PAGE).content.decode()


def test_results_that_come_later_leave_it_as_it_is(client, weeks):
    first = client.get(PAGE)
    etag = {"HTTP_IF_NONE_MATCH": first["ETag"]}
    transfer(weeks.ral, weeks.desy, 12.0)
    ANSWERS.forget()
    assert client.get(PAGE, **etag).status_code == 304
    transfer(weeks.ral, weeks.desy, 12.0, ago=NOW - END + HOUR)
    assert client.get(PAGE, **etag).status_code == 200
    outage(weeks.glasgow, weeks.ral, NOW - END + 5 * HOUR)
    second = client.get(PAGE)
    assert second["ETag"] != first["ETag"]
    assert "Glasgow_DATADISK to RAL_DATADISK" in second.content.decode()
    few = responses.statements(client.get, PAGE, HTTP_IF_NONE_MATCH=second["ETag"])
    ANSWERS.forget()
    many = responses.statements(client.get, PAGE)
    assert (len(few), len(many)) == (2, 50)


@pytest.fixture
def pango() -> None:
    """Say that a test makes a PDF."""
    try:
        import weasyprint  # noqa: F401
    except OSError as error:
        lacks(f"needs Pango: {error}")


def streams(content: bytes) -> bytes:
    """Return what a PDF says in its compressed parts."""
    parts = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    return b"".join(zlib.decompress(part) for part in parts if part[:1] == b"x")


@pytest.fixture
def unfetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is fetched from anywhere."""
    fetched: list[str] = []
    monkeypatch.setattr(
        urllib.request.OpenerDirector, "open", lambda _, url, *rest, **more: fetched.append(url)
    )
    return fetched


def test_the_pdf_is_made_once_for_all(client, weeks, monkeypatch, unfetched, pango):
    calls = []
    write = pdf.written
    monkeypatch.setattr(pdf, "written", lambda html: calls.append(html) or write(html))
    responses_of = [client.get(f"{API}?format=pdf") for _ in range(2)]
    assert [response.status_code for response in responses_of] == [200, 200]
    first = responses_of[0]
    assert first["Content-Type"] == "application/pdf"
    assert first["Content-Disposition"] == 'inline; filename="sonar-report-2026-W46.pdf"'
    assert first.content.startswith(b"%PDF-")
    inside = streams(first.content)
    assert b"/StructTreeRoot" in inside
    assert b"/Count 2" in inside
    assert "Report on the whole grid, week 46".encode("utf-16-be").hex() in inside.hex() or (
        b"Report on the whole grid, week 46" in inside
    )
    assert len(calls) == 1
    assert "http://testserver/reports/2026-W46/" in calls[0]
    assert unfetched == []


def test_a_pdf_fetches_nothing(tmp_path, unfetched, pango):
    secret = tmp_path / "secret.css"
    secret.write_text("body { color: red }")
    places = [f"file://{secret}", "http://127.0.0.1:9/x", "https://example.org/x"]
    links = "".join(
        f'<link rel="stylesheet" href="{place}"><img src="{place}">'
        f'<style>@import url("{place}"); body {{ background: url("{place}") }}</style>'
        f'<svg><image href="{place}" width="9" height="9"/></svg><object data="{place}"></object>'
        f'<a rel="attachment" href="{place}">x</a>'
        for place in places
    )
    assert pdf.written(f"<html><body>{links}Report</body></html>").startswith(b"%PDF-")
    assert unfetched == []


def test_pdfs_wait_for_each_other_and_are_counted(client, weeks, monkeypatch):
    monkeypatch.setattr(pdf, "LONGEST_WAIT_SECONDS", 0.01)
    with pdf._turn:
        busy = client.get(f"{API}?format=pdf")
    assert busy.status_code == 503
    assert "Try again" in busy.json()["detail"]
    monkeypatch.setattr(throttling, "PDFS", throttling.Rate(0, 300))
    often = client.get(f"{API}?format=pdf")
    assert often.status_code == 429
    assert int(often["Retry-After"]) > 0
    assert client.get(f"{API}?format=markdown").status_code == 200


def test_markdown_and_mail_have_what_the_page_has(client, weeks, settings):
    settings.SONAR_URL = "https://sonar.example.org"
    text = client.get(f"{API}?format=markdown&site=RAL").content.decode()
    assert text.startswith("# Report on site RAL, week 46, 9 Nov to 15 Nov 2026\n")
    assert r"| failing | DESY\_DATADISK | RAL\_DATADISK | large |" in text
    question = ReportQuestion(ReportPeriod.parse("2026-W46"), site="RAL")
    mail = ReportMail.of(build.build(question), "mine")
    assert mail.subject == "Report on site RAL, week 46, 9 Nov to 15 Nov 2026"
    assert 'href="https://sonar.example.org/reports/2026-W46/?site=RAL"' in mail.html
    assert "<link" not in mail.html
    markdown, _, foot = mail.text.partition("\nReport as PDF: ")
    assert text.replace("http://testserver/", "https://sonar.example.org/") == markdown
    assert "reports/2026-W46/?format=pdf&site=RAL" in foot
    assert len(mail.html) < 100_000  # beyond that some programs show a part of it


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.sampled_from(
    ["100%_of $x$ & #1 ~ ^", "[x] *bold* `code` | cell", "<script>x</script>", "line\nbreak\ttab"]
)


@given(st.lists(names, min_size=2, max_size=4))
def test_any_text_is_a_cell_of_markdown_and_reads_back(texts):
    written = document.markdown_table(texts, [texts], [":--"] * (len(texts) - 1))
    head, rule, row = (line[2:-2] for line in written.split("\n"))
    assert rule == " | ".join([":--"] * len(texts))
    cells = re.split(r"(?<!\\) \| ", head)
    assert head == row
    assert not re.search(r"[`*_\[\]<>|~&$#\n]", re.sub(r"\\.", "", "".join(cells)))
    plain = ["".join(sign if sign.isprintable() else " " for sign in text) for text in texts]
    assert [re.sub(r"\\(.)", r"\1", cell) for cell in cells] == plain


def test_simulated_endpoints_are_named_wherever_it_is_written(client, weeks):
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    assert "Simulated." in responses.page(client, PAGE).words
    assert "**Simulated.**" in client.get(f"{API}?format=markdown").content.decode()
    assert "sandbox nodes" in responses.answer(client, API)["simulated"]


def test_the_command_writes_whole_files(weeks, tmp_path, capsys, pango):
    for ending, beginning in (
        (".pdf", b"%PDF-"),
        (".html", b"<!DOCTYPE html>"),
        (".md", b"# Report"),
    ):
        path = tmp_path / f"report{ending}"
        call_command("report", "week", path, site="RAL", url="https://sonar.example.org")
        assert path.read_bytes().lstrip().startswith(beginning)
    assert capsys.readouterr().out.count("report.") == 3
