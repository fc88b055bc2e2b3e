"""What GOCDB and OSG write of downtimes, read: samples of theirs, and bad input of every kind."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.models.aliases import AliasKind
from sonar.registry.downtimes import gocdb, osg
from sonar.registry.downtimes.announcement import NO_REASON, AffectedService, Answer
from sonar.registry.downtimes.document import BadAnswer
from tests.sonar import downtimes as written

NOW = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
BOMB = b"""<?xml version="1.0"?><!DOCTYPE results [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><results><DOWNTIME>&b;</DOWNTIME></results>"""


def test_the_sample_of_gocdb_is_read_downtime_by_downtime():
    announcements = {
        each.key: each for each in gocdb.read(written.GOCDB_SAMPLE.read_bytes()).announcements
    }
    assert {key: len(each.services) for key, each in announcements.items()} == {
        "46867G0": 3,
        "81249G0": 3,
        "44938G0": 2,
        "54470G0": 1,
    }
    network = announcements["46867G0"]
    assert network.services[2] == AffectedService(
        "dpm.lhep.unibe.ch", "SRM", "UNIBE-LHEP", AliasKind.GOCDB_SITE
    )
    assert (network.severity, network.reason) == ("outage", "Network upgrade")
    assert network.starts_at == datetime(2011, 5, 25, 8, tzinfo=UTC)
    assert network.ends_at == datetime(2011, 5, 26, 17, 30, tzinfo=UTC)
    assert network.url.startswith("https://testing.host.com/portal/index.php?Page_Type=View_Object")
    assert announcements["54470G0"].severity == "warning"


def test_the_sample_of_osg_is_read_with_its_odd_clock():
    announcements = osg.read(written.OSG_SAMPLE.read_bytes()).announcements
    by_key = {each.key: each for each in announcements}
    assert Counter(each.severity.value for each in announcements) == {"outage": 5, "warning": 3}
    sprace = by_key["2375539491"]
    assert sprace.starts_at == datetime(2026, 3, 3, 16, tzinfo=UTC)
    assert sprace.services == (
        AffectedService("osg-se.sprace.org.br", "SRMv2", "SPRACE-SE", AliasKind.OSG_RESOURCE),
    )
    assert [each.key for each in announcements if not each.is_ever_in_force] == ["1803422265"]


def test_a_page_whose_address_has_a_password_is_left_out():
    page = {"GOCDB_PORTAL_URL": "https://me:sesame@goc.example.org/7"}
    downtime = written.gocdb_downtime("7G0", "disk.example.org", NOW, NOW + HOUR, **page)
    (announcement,) = gocdb.read(written.gocdb(downtime)).announcements
    assert announcement.url == ""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Oct 31, 2023 14:00 PM UTC", datetime(2023, 10, 31, 14, tzinfo=UTC)),
        ("Oct 31, 2023 00:30 AM UTC", datetime(2023, 10, 31, 0, 30, tzinfo=UTC)),
        ("Oct 31, 2023 12:00 PM UTC", datetime(2023, 10, 31, 12, tzinfo=UTC)),
        ("Mar 7, 2017 03:00 -0530", datetime(2017, 3, 7, 8, 30, tzinfo=UTC)),
    ],
)
def test_a_time_of_osg_is_of_24_hours_whatever_am_and_pm_say(text: str, moment: datetime):
    content = written.osg(
        written.osg_downtime(1, "se.example.org", NOW, NOW, StartTime=text, EndTime=text)
    )
    assert osg.read(content).announcements[0].starts_at == moment


def of_gocdb(**others: object) -> bytes:
    fields: dict[str, object] = {"key": "7G0", "host": "se.example.org"}
    times = {"starts_at": NOW, "ends_at": NOW + HOUR}
    return written.gocdb(written.gocdb_downtime(**(fields | times | others)))  # type: ignore[arg-type]


def of_osg(**others: str) -> bytes:
    return written.osg(written.osg_downtime(7, "se.example.org", NOW, NOW + HOUR, **others))


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (gocdb.read, b"", "not valid XML: no element found: line 1, column 0"),
        (gocdb.read, of_gocdb()[:-20], "not valid XML: "),
        (
            gocdb.read,
            b"<html><body>Log in</body></html>",
            "the root element is <html> instead of <results>",
        ),
        (gocdb.read, BOMB, "the XML has a document type or entities"),
        (osg.read, BOMB, "the XML has a document type or entities"),
        (
            gocdb.read,
            b"<results><error>Invalid scope</error></results>",
            "the source reports an error: “Invalid scope”",
        ),
        (gocdb.read, b"<error>Down</error>", "the source reports an error: “Down”"),
        (osg.read, of_gocdb(), "the root element is <results> instead of <Downtimes>"),
        # Not one element of it can be read.
        (gocdb.read, of_gocdb(START_DATE="soon"), "START_DATE: “soon” is not a whole number"),
        (osg.read, of_osg(ID="seven"), "Downtime 1, ID: “seven” is not a whole number"),
    ],
)
def test_an_answer_that_is_none_is_refused(
    read: Callable[[bytes], Answer], content: bytes, sentence: str
):
    with pytest.raises(BadAnswer) as caught:
        read(content)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


GOOD_GOCDB = written.gocdb_downtime("1G0", "good.example.org", NOW, NOW + HOUR)
GOOD_OSG = written.osg_downtime(1, "good.example.org", NOW, NOW + HOUR)


@pytest.mark.parametrize(
    ("key", "others", "sentence"),
    [
        ("7G0", {"HOSTNAME": ""}, "DOWNTIME 2 (7G0), HOSTNAME: missing or empty"),
        (
            "7G0",
            {"HOSTNAME": "https://se.example.org/"},
            "HOSTNAME: 'https://se.example.org/' is not a host name",
        ),
        ("7G0", {"SERVICE_TYPE": ""}, "SERVICE_TYPE: missing or empty"),
        ("7G0", {"START_DATE": "soon"}, "START_DATE: “soon” is not a whole number"),
        ("7G0", {"END_DATE": "9" * 17}, "END_DATE: the time is outside the years 1970"),
        ("7G0", {"END_DATE": 5}, "DOWNTIME 2 (7G0), END_DATE: the downtime ends before it starts"),
        (
            "7G0",
            {"SEVERITY": "Bad"},
            "DOWNTIME 2 (7G0), SEVERITY: “Bad” is not allowed: use OUTAGE or WARNING",
        ),
        ("7G0", {"SEVERITY": ""}, "DOWNTIME 2 (7G0), SEVERITY: missing or empty"),
        ("", {"key": "8" * 101}, "PRIMARY_KEY: 101 characters, but at most 100 are allowed"),
        (
            "7G0",
            {"DESCRIPTION": "a" * 30_000},
            "DESCRIPTION: 30,000 characters, but at most 20,000 are allowed",
        ),
        ("", {"PRIMARY_KEY": "8G0"}, "PRIMARY_KEY: “8G0” differs from the attribute, “7G0”"),
    ],
)
def test_an_odd_element_of_gocdb_is_left_out_with_its_place(
    key: str, others: dict[str, object], sentence: str
):
    fields: dict[str, object] = {"key": "7G0", "host": "se.example.org"}
    times = {"starts_at": NOW, "ends_at": NOW + HOUR}
    odd = written.gocdb_downtime(**(fields | times | others))  # type: ignore[arg-type]
    answer = gocdb.read(written.gocdb(GOOD_GOCDB, odd))
    assert [each.key for each in answer.announcements] == ["1G0"]
    (left_out,) = answer.left_out
    assert left_out.key == key
    assert sentence in left_out.sentence
    assert len(left_out.sentence) < 300


def test_of_a_downtime_the_services_are_read_whose_elements_can_be():
    def of_host(host: str, **others: object) -> str:
        return written.gocdb_downtime("7G0", host, NOW, NOW + HOUR, **others)  # type: ignore[arg-type]

    other_end = written.gocdb_downtime("7G0", "c.example.org", NOW, NOW + 2 * HOUR)
    answer = gocdb.read(written.gocdb(of_host("a.example.org"), of_host(""), other_end))
    (announcement,) = answer.announcements
    assert [service.host for service in announcement.services] == ["a.example.org"]
    assert [(each.key, each.sentence) for each in answer.left_out] == [
        ("7G0", "DOWNTIME 2 (7G0), HOSTNAME: missing or empty"),
        (
            "7G0",
            "DOWNTIME 3 (7G0): an earlier element with the same PRIMARY_KEY has a different "
            "END_DATE",
        ),
    ]


@pytest.mark.parametrize(
    "others",
    [{"SEVERITY": "Outage"}, {"HOSTED_BY": ""}, {"PRIMARY_KEY": ""}, {"DESCRIPTION": ""}],
)
def test_what_means_one_thing_only_is_read(others: dict[str, object]):
    (announcement,) = gocdb.read(of_gocdb(**others)).announcements
    assert (announcement.key, announcement.severity) == ("7G0", "outage")


@pytest.mark.parametrize(
    ("key", "others", "sentence"),
    [
        ("", {"ID": "seven"}, "Downtime 2, ID: “seven” is not a whole number"),
        (
            "7",
            {"EndTime": "31.10.2023 14:00"},
            "CurrentDowntimes, Downtime 2, EndTime: “31.10.2023 14:00” is not a time such as",
        ),
        ("7", {"StartTime": "Feb 30, 2026 14:00 PM UTC"}, "is not a valid time"),
        ("7", {"StartTime": "Feb 3, 2026 14:00 PM CET"}, "is not a time such as Oct 31"),
        (
            "7",
            {"StartTime": "Feb 3, 2026 02:00 PM UTC"},
            "StartTime: PM contradicts the 24-hour time",
        ),
        (
            "7",
            {"StartTime": "Feb 3, 2026 12:30 AM UTC"},
            "StartTime: AM contradicts the 24-hour time",
        ),
        (
            "7",
            {"Severity": "Bad"},
            "Severity: “Bad” is not allowed: use Outage, Severe, Intermittent Outage or No",
        ),
        ("7", {"ResourceFQDN": ""}, "ResourceFQDN: missing or empty"),
        ("1", {"ID": "1"}, "CurrentDowntimes, Downtime 2, ID: 1 appears twice"),
    ],
)
def test_an_odd_element_of_osg_is_left_out_with_its_place(
    key: str, others: dict[str, str], sentence: str
):
    odd = written.osg_downtime(7, "se.example.org", NOW, NOW + HOUR, **others)
    answer = osg.read(written.osg(GOOD_OSG, odd))
    assert [each.key for each in answer.announcements] == ["1"]
    (left_out,) = answer.left_out
    assert left_out.key == key
    assert sentence in left_out.sentence


def test_a_service_of_osg_without_a_name_is_left_out_and_the_others_stay():
    services = "<Service><ID>3</ID></Service><Service><Name>WebDAV</Name></Service>"
    answer = osg.read(of_osg(Services=services, ResourceName=""))
    (announcement,) = answer.announcements
    assert [service.kind for service in announcement.services] == ["WebDAV"]
    (left_out,) = answer.left_out
    assert left_out.key == "7"
    assert "Downtime 1, Service 1, Name: missing or empty" in left_out.sentence


@given(
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300),
    start=st.datetimes(datetime(1970, 1, 2), datetime(2998, 1, 1)),
    minutes=st.integers(0, 100_000),
)
def test_what_is_written_is_read(text: str, start: datetime, minutes: int):
    start = start.replace(second=0, microsecond=0, tzinfo=UTC)
    times = start, start + timedelta(minutes=minutes)
    of_both = (
        gocdb.read(written.gocdb(written.gocdb_downtime("7", "s.org", *times, DESCRIPTION=text))),
        osg.read(written.osg(written.osg_downtime(7, "s.org", *times, Description=text))),
    )
    for answer in of_both:
        (announcement,) = answer.announcements
        assert (announcement.starts_at, announcement.ends_at) == times
        assert 0 < len(announcement.reason) <= 200
        assert announcement.reason.isprintable()
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        assert announcement.reason.removesuffix("…") in (words or NO_REASON)


@given(st.data())
def test_no_bytes_make_a_reader_fail_with_anything_but_a_sentence(data: st.DataObject):
    whole = data.draw(st.sampled_from([written.GOCDB_SAMPLE, written.OSG_SAMPLE])).read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    content = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
    for read in (gocdb.read, osg.read):
        with suppress(BadAnswer):
            announcements = read(content).announcements
            assert all(each.starts_at <= each.ends_at for each in announcements)
