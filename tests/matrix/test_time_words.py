"""Times in words: what each means, that nothing else does, and that addresses keep the moment."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from matrix.query.time_words import MONTHS, WEEKDAYS, in_iso, read_time
from matrix.store.notes import NoteForm
from sonar.notation.windows import format_time, parse_time
from tests.matrix import responses
from tests.matrix.responses import words

# A Friday.
NOW = datetime(2026, 11, 20, 12, 0, 30, 250_000, tzinfo=UTC)
moments = st.datetimes(datetime(1975, 1, 1), datetime(2990, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=0)
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("yesterday 20:15", "2026-11-19T20:15:00Z"),
        ("Yesterday at 20:15 UTC", "2026-11-19T20:15:00Z"),
        ("20:15 yesterday", "2026-11-19T20:15:00Z"),
        ("yesterday", "2026-11-19T00:00:00Z"),
        ("today 04:00", "2026-11-20T04:00:00Z"),
        ("today 23:00", "2026-11-20T23:00:00Z"),
        ("tomorrow 8:00", "2026-11-21T08:00:00Z"),
        ("20:15", "2026-11-19T20:15:00Z"),
        ("4:05", "2026-11-20T04:05:00Z"),
        ("12:00:30", "2026-11-20T12:00:30Z"),
        ("12:00:31", "2026-11-19T12:00:31Z"),
        ("20:15z", "2026-11-19T20:15:00Z"),
        ("now", "2026-11-20T12:00:30Z"),
        ("2026-11-20 04:00", "2026-11-20T04:00:00Z"),
        ("2026-11-20 04:00 UTC", "2026-11-20T04:00:00Z"),
        ("2026-11-20 4:00", "2026-11-20T04:00:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        ("2026-11-20T05:00+01:00", "2026-11-20T04:00:00Z"),
        ("20 Nov 04:00", "2026-11-20T04:00:00Z"),
        ("20 nov, 13:00", "2025-11-20T13:00:00Z"),
        ("Nov 19", "2026-11-19T00:00:00Z"),
        ("1 December", "2025-12-01T00:00:00Z"),
        ("29 Feb 01:00", "2024-02-29T01:00:00Z"),
        ("19 Nov 2024 20:15", "2024-11-19T20:15:00Z"),
        ("Thu 19 Nov 20:15", "2026-11-19T20:15:00Z"),
        ("Thu 25 Dec", "2025-12-25T00:00:00Z"),
        ("mon 12:00", "2026-11-16T12:00:00Z"),
        ("fri 12:00", "2026-11-20T12:00:00Z"),
        ("friday 13:00", "2026-11-13T13:00:00Z"),
        ("tues", "2026-11-17T00:00:00Z"),
        ("2 h ago", "2026-11-20T10:00:30Z"),
        ("2h ago", "2026-11-20T10:00:30Z"),
        ("90 minutes ago", "2026-11-20T10:30:30Z"),
        ("3 days ago", "2026-11-17T12:00:30Z"),
        ("1 week ago", "2026-11-13T12:00:30Z"),
    ],
)
def test_words_mean_one_moment(text, meant):
    assert read_time(f" {text} ", NOW) == parse_time(meant)


@pytest.mark.parametrize(
    "text",
    [
        *("", "noon", "soon", "at", "utc", "ago", "2 ago", "x h ago", "2 months ago", "-2 h ago"),
        *("20:60", "24:00", "20:15 20:16", "20:15:61", "2015", "20.15", "8pm", "1e3 h ago"),
        *("31 Nov", "32 Dec", "20 November 20", "No 20", "mo", "montag", "fri mon", "20 20"),
        *("Fri 19 Nov", "Mon 25 Dec", "Thu Thu 19 Nov", "20/11/2026", "2026-13-01 4:00"),
        *("123456 s ago", "yesterday today", "yesterday 2026", "٢ h ago", "0 Jan", "30 Feb 2024"),
    ],
)
def test_anything_else_is_no_time(text):
    with pytest.raises(ValueError):
        read_time(text, NOW)


@given(text=st.text(max_size=40), now=moments)
def test_no_text_is_anything_but_a_time_or_a_value_error(text, now):
    with suppress(ValueError):
        assert read_time(text, now).tzinfo is UTC


some_words = st.lists(
    st.one_of(
        st.sampled_from(["yesterday", "today", "ago", "at", "h", "days", "utc", ",", "now"]),
        st.sampled_from([*WEEKDAYS, *MONTHS]).flatmap(
            lambda name: st.integers(2, len(name)).map(lambda end: name[:end].title())
        ),
        st.integers(0, 40).map(str),
        st.integers(0, 9999).map(str),
        st.tuples(st.integers(0, 25), st.integers(0, 61)).map(lambda two: f"{two[0]}:{two[1]:02}"),
    ),
    max_size=5,
).map(" ".join)


@given(text=some_words, now=moments)
def test_words_at_random_are_over_if_they_leave_the_day_open(text, now):
    try:
        read = read_time(text, now)
    except ValueError:
        return
    assert read.microsecond == 0
    assert read == read_time(text.upper(), now)
    has_said = any(len(word) == 4 and word.isdecimal() for word in text.split())
    assert read <= now or has_said or "today" in text


@given(moment=moments, ago=st.timedeltas(timedelta(0), timedelta(days=360)))
def test_a_moment_is_read_back_as_pages_write_it(moment, ago):
    now = moment + ago
    without_year = f"{moment:%a} {moment.day} {moment:%b} {moment:%H:%M:%S}"
    for text in (
        format_time(moment),
        f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        f"{without_year.rsplit(' ', 1)[0]} {moment.year:04} {moment:%H:%M:%S}",
        without_year,
    ):
        assert read_time(text, now) == moment
    if now - moment < timedelta(days=6):
        assert read_time(f"{moment:%A %H:%M:%S}", now) == moment
    if now - moment < timedelta(days=1):
        assert read_time(f"{moment:%H:%M:%S}", now) == moment
    seconds = int((now - moment).total_seconds())
    if seconds < 100_000:
        assert read_time(f"{seconds} s ago", now) - moment < timedelta(seconds=1)


def test_only_words_of_times_change_in_an_address():
    text = "from=mon&to=2026-11-19&compare=week&compare=yesterday..now&site=yesterday&from=x"
    shown = in_iso(QueryDict(text), NOW)
    assert dict(shown.lists()) == {
        "from": ["2026-11-16T00:00:00Z", "x"],
        "to": ["2026-11-19"],
        "compare": ["week", "2026-11-19T00:00:00Z..2026-11-20T12:00:30Z"],
        "site": ["yesterday"],
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("at_noon")
@pytest.mark.parametrize(
    "path", ["/", "/table/", "/sites/RAL/", "/links/RAL_DATADISK/DESY_DATADISK/"]
)
def test_pages_lead_to_the_moment_and_calls_take_none(client, small_world, path):
    answer = client.get(f"{path}?from=yesterday+20:15&to=today+04:00")
    assert answer.headers["Location"] == (
        f"{path}?from=2026-11-19T20:15:00Z&to=2026-11-20T04:00:00Z"
    )
    around = client.get(f"{path}?compare.around=yesterday+20:15").headers["Location"]
    assert around == client.get(f"{path}?compare.around=2026-11-19T20:15:00Z").headers["Location"]
    assert client.get(around).status_code == 200
    for name in ("from", "compare.around"):
        refused = client.get(f"/api/v1/matrix/?{name}=yesterday+20:15")
        assert refused.status_code == 400
        assert (
            "is not a valid time. Use the format 2026-11-20 04:00 (UTC)"
            in refused.json()["errors"][name][0]
        )
    refused = client.get(f"{path}?compare.around=noonish")
    assert refused.status_code == 400
    said = words(refused.text)
    assert (
        "compare.around “noonish” is not a valid time. Use the format 2026-11-20 04:00 (UTC)"
        in said
    )
    assert "You can also enter times in words (UTC), such as “yesterday 20:15”" in said
    assert "You can also enter times" not in words(client.get(f"{path}?window=2h").text)


@pytest.mark.django_db
@pytest.mark.usefixtures("at_noon")
def test_a_note_begins_when_its_words_say(small_world):
    sent = {"site": "RAL", "text": "new switch", "starts_at": "yesterday 20:15"}
    form = NoteForm(sent)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["starts_at"] == parse_time("2026-11-19T20:15:00Z")
    assert "yesterday 20:15" in str(NoteForm(sent | {"starts_at": "soon"}).errors)


def test_forms_do_not_refuse_words_before_they_are_sent(client, small_world):
    html = responses.html(client, "/")
    for name in ("from", "to", "compare.around"):
        field = html.split(f'name="{name}"')[1].split(">")[0]
        assert "pattern" not in field
        assert "yesterday 20:15" in field
