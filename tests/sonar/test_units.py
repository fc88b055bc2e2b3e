"""Numbers, durations, ages and windows as people read and write them."""

from datetime import UTC, datetime, timedelta, timezone
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import SizeClass
from sonar.notation import units, windows
from sonar.registry import compatibility

NOW = datetime(2026, 11, 20, 4, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (4.7, "4.70"),
        (0.9996, "1.00"),
        (0.01234, "0.0123"),
        (12.34, "12.3"),
        (99.96, "100"),
        (999.4, "999"),
        (999.6, "1\u202f000"),
        (0.00009996, "0.000100"),
        (1234.5, "1\u202f230"),
        (-4.7, "-4.70"),
    ],
)
def test_three_significant_digits(value: float, written: str):
    assert units.three_digits(value) == written


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_three_digits_lose_at_most_half_of_the_third(value: float):
    written = float(units.three_digits(value).replace("\u202f", ""))
    assert abs(written - value) <= 0.0051 * value


@pytest.mark.parametrize(
    ("interval", "written"),
    [
        ((0.456,), "0.46×"),
        ((2,), "2.0×"),
        ((99.6,), "100×"),
        ((0.0003,), "0.00030×"),
        ((12.34,), "12×"),
        ((0.456, 0.38, 0.549), "0.46× (0.38–0.55)"),
        ((1.004, 0.996, 1.08), "1.00× (1.00–1.08)"),
        ((1.02,), "1.02×"),
        ((1.6, 0.94, 2.03), "1.60× (0.94–2.03)"),
        ((1.84, 1.63, 2.1), "1.84× (1.63–2.10)"),
        ((12.1, 9.8, 15), "12.1× (9.8–15.0)"),
        ((0, 0, 1234), "0× (0–1\u202f234)"),
    ],
)
def test_a_factor_has_two_digits_and_its_interval_the_same_decimals(
    interval: tuple[float, ...], written: str
):
    assert units.format_factor(*interval) == written


@pytest.mark.parametrize(
    ("interval", "written"),
    [
        ((inf,), "∞×"),
        ((0.5, 0.1, inf), "0.50× (0.10–∞)"),
        ((inf, 2.0, inf), "∞× (2.0–∞)"),
        ((inf, inf, inf), "∞× (∞–∞)"),
        ((1.0, 0.0, inf), "1.0× (0.0–∞)"),
    ],
)
def test_a_factor_without_a_bound_is_written_and_no_error(
    interval: tuple[float, ...], written: str
):
    assert units.format_factor(*interval) == written


@pytest.mark.parametrize(
    ("p", "written"),
    [(0, "p < 0.001"), (0.0123, "p = 0.012"), (0.0996, "p = 0.10"), (1, "p = 1.00")],
)
def test_a_chance_is_written_as_statisticians_do(p: float, written: str):
    assert units.format_chance(p) == written


@pytest.mark.parametrize(
    ("size", "written"),
    [(10, "10 B"), (20_000, "20 kB"), (20_040_000, "20.0 MB"), (2 * 10**9, "2 GB")],
)
def test_a_megabyte_is_a_million_bytes(size: int, written: str):
    assert units.format_bytes(size) == written
    assert units.format_rate(4_700_000) == "4.70 MB/s"


def test_short_times_are_in_milliseconds():
    assert units.format_seconds(1.61) == "1.61 s"
    assert units.format_seconds(0.000449) == "0.449 ms"
    assert units.format_seconds(0.00165, 0, 0.0052) == "1.65 ms (0–5.20)"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("6h", 21600), (" 7d ", 604800)]
)
def test_durations_are_read(text: str, seconds: int):
    assert units.parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "0m", "-1m", "1.5h", "1w", "ten m", "99999999d"])
def test_what_is_no_duration_is_said(text: str):
    with pytest.raises(ValueError, match="is not a duration: write a number and s, m, h or d"):
        units.parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(-5, "just now"), (0, "just now"), (59, "59 s ago"), (60, "1 min ago"), (3 * 3600, "3 h ago")],
)
def test_ages_are_said_as_on_shift(seconds: int, written: str):
    assert units.format_age(timedelta(seconds=seconds)) == written
    assert units.format_age(timedelta(hours=47)) == "47 h ago"
    assert units.format_age(timedelta(hours=48)) == "2 d ago"


@pytest.mark.parametrize("name", windows.PRESETS)
def test_a_preset_holds_every_result_up_to_now_and_ends_with_the_minute(name: str):
    window = windows.preset(name, NOW)
    assert window.start < NOW < window.end == NOW.replace(minute=1, second=0)
    assert window.end - window.start == units.parse_duration(name)
    assert windows.preset(name, NOW + timedelta(seconds=29)) == window


def test_times_have_one_form_and_their_year_where_it_is_another():
    assert windows.format_moment(NOW) == "20 Nov 04:00:30 UTC"
    assert windows.format_minute(NOW) == "20 Nov 04:00 UTC"
    assert windows.format_typed(NOW.replace(second=0)) == "20 Nov 04:00 UTC"
    assert windows.format_minute(NOW.replace(year=2025)) == "20 Nov 2025 04:00 UTC"
    assert windows.short_time(NOW, 2027) == "20 Nov 2026 04:00"


def test_a_window_has_its_year_whichever_it_is():
    """Who copies it into a document reads it in another year."""
    start = NOW.replace(second=0)
    day, hour = timedelta(days=1), timedelta(hours=1)
    written = windows.format_window(windows.Window(start, start + day))
    assert written == "20 Nov 04:00 to 21 Nov 2026 04:00 UTC"
    assert windows.format_window(windows.Window(start, start + hour)) == (
        "20 Nov 2026 04:00 to 05:00 UTC"
    )
    written = windows.format_window(windows.Window(start, start + 60 * day))
    assert written == "20 Nov 2026 04:00 to 19 Jan 2027 04:00 UTC"


def test_a_window_does_not_end_before_it_begins():
    with pytest.raises(ValueError, match="“from” must be before “to”"):
        windows.Window(NOW, NOW)


def test_times_are_utc_whatever_zone_they_were_written_in():
    assert windows.parse_time("2026-11-20T05:00:30+01:00") == NOW
    assert windows.parse_time("2026-11-20 04:00:30") == NOW
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert windows.format_time(east) == "2026-11-20T04:00:30Z"
    with pytest.raises(ValueError, match="is not a time: write ISO 8601"):
        windows.parse_time("yesterday")


def named(name: str, from_bytes: int, test_bytes: int) -> SizeClass:
    return SizeClass(name=name, from_bytes=from_bytes, test_bytes=test_bytes)


def test_problems_of_size_classes_are_sentences():
    problems = compatibility.size_class_problems
    small, large = named("small", 0, 20), named("large", 100, 2000)
    assert problems([large, small]) == []
    assert problems([]) == ["there must be at least one size class"]
    assert "must start at 0 bytes" in problems([large])[0]
    assert "start at the same size" in problems([small, named("other", 0, 20), large])[0]
    assert "must be in its range [0, 100)" in problems([named("small", 0, 100), large])[0]
    assert "[100, infinity)" in problems([small, named("large", 100, 99)])[0]


@pytest.mark.parametrize(
    ("size", "written"),
    [(0, "0 B"), (7, "7 B"), (1500, "1.5 kB"), (10**7, "10 MB"), (5 * 10**11, "500 GB")],
)
def test_bytes_are_written_so_that_they_are_read_the_same(size: int, written: str):
    assert units.exact_bytes(size) == written
    assert units.parse_bytes(written) == units.parse_bytes(f" {size} ") == size


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "0.5 B", "1 mb", "1e9", "1,5 GB"])
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(ValueError, match="write a number and kB, MB, GB or TB"):
        units.parse_bytes(text)


@pytest.mark.parametrize(
    ("seconds", "written"), [(90, "90s"), (600, "10m"), (3600, "1h"), (7 * 86400, "7d"), (0, "0")]
)
def test_durations_are_written_so_that_they_are_read_the_same(seconds: int, written: str):
    assert units.exact_duration(seconds) == written
    assert units.parse_seconds(written) == units.parse_seconds(str(seconds)) == seconds
