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
        (gocdb.read, b"", "this is not XML: no element found: line 1, column 0"),
        (gocdb.read, of_gocdb()[:-20], "this is not XML: "),
        (
            gocdb.read,
            b"<html><body>Log in</body></html>",
            "the root is <html> instead of <results>",
        ),
        (gocdb.read, BOMB, "this XML has a document type or entities"),
        (osg.read, BOMB, "this XML has a document type or entities"),
        (gocdb.read, b"<results><error>Invalid scope</error></results>", "says: “Invalid scope”"),
        (gocdb.read, b"<error>Down for backup</error>", "the source says: “Down for backup”"),
        (gocdb.read, of_gocdb(HOSTNAME=""), "DOWNTIME 1 (7G0), HOSTNAME: it is missing or empty"),
        (
            gocdb.read,
            of_gocdb(HOSTNAME="https://se.example.org/"),
            "HOSTNAME: 'https://se.example.org/' is not the name of a host",
        ),
        (gocdb.read, of_gocdb(START_DATE="soon"), "START_DATE: “soon” is not a whole number"),
        (gocdb.read, of_gocdb(END_DATE="9" * 17), "END_DATE: it is not a time in the years 1970"),
        (gocdb.read, of_gocdb(END_DATE=5), "DOWNTIME 1 (7G0), END_DATE: it ends before it starts"),
        (
            gocdb.read,
            of_gocdb(SEVERITY="Outage"),
            "DOWNTIME 1 (7G0), SEVERITY: “Outage” is none of OUTAGE or WARNING",
        ),
        (
            gocdb.read,
            of_gocdb(key="8" * 101),
            "PRIMARY_KEY: it has 101 characters, 100 are allowed",
        ),
        (
            gocdb.read,
            of_gocdb(DESCRIPTION="a" * 10_000_000),
            "DESCRIPTION: it has 10,000,000 characters, 20,000 are allowed",
        ),
        (
            gocdb.read,
            written.gocdb(
                written.gocdb_downtime("7G0", "a.example.org", NOW, NOW + HOUR),
                written.gocdb_downtime("7G0", "b.example.org", NOW, NOW + 2 * HOUR),
            ),
            "DOWNTIME 2 (7G0): an element before it has the same PRIMARY_KEY and another END_DATE",
        ),
        (
            gocdb.read,
            of_gocdb().replace(b'PRIMARY_KEY="7G0"', b'PRIMARY_KEY="8G0"'),
            "PRIMARY_KEY: “7G0” is not that of the attribute, “8G0”",
        ),
        (osg.read, of_gocdb(), "the root is <results> instead of <Downtimes>"),
        (osg.read, of_osg(ID="seven"), "Downtime 1, ID: “seven” is not a whole number"),
        (
            osg.read,
            of_osg(EndTime="31.10.2023 14:00"),
            "CurrentDowntimes, Downtime 1, EndTime: “31.10.2023 14:00” is not a time like",
        ),
        (osg.read, of_osg(StartTime="Feb 30, 2026 14:00 PM UTC"), "is no time that there is"),
        (osg.read, of_osg(StartTime="Feb 3, 2026 14:00 PM CET"), "is not a time like Oct 31"),
        (
            osg.read,
            of_osg(StartTime="Feb 3, 2026 02:00 PM UTC"),
            "StartTime: PM contradicts the hour",
        ),
        (
            osg.read,
            of_osg(StartTime="Feb 3, 2026 12:30 AM UTC"),
            "StartTime: AM contradicts the hour",
        ),
        (
            osg.read,
            of_osg(Severity="Bad"),
            "“Bad” is none of Outage, Severe, Intermittent Outage or",
        ),
        (
            osg.read,
            of_osg(Services="<Service><ID>3</ID></Service>"),
            "Downtime 1, Service 1, Name: it is missing or empty",
        ),
        (
            osg.read,
            written.osg(*[written.osg_downtime(7, "a.example.org", NOW, NOW + HOUR)] * 2),
            "CurrentDowntimes, Downtime 2, ID: 7 is there twice",
        ),
    ],
)
def test_bad_input_is_refused_with_its_place(
    read: Callable[[bytes], Answer], content: bytes, sentence: str
):
    with pytest.raises(BadAnswer) as caught:
        read(content)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


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
