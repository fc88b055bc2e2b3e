"""Numbers and times as pages write them; what is missing is a dash with its reason on hover."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sonar.units import DASH, format_age, format_bytes, format_count, three_digits
from sonar.windows import format_moment

register = template.Library()

register.filter("volume", format_bytes)
register.filter("moment", format_moment)

NO_RESULT = "no result in this window"


def dash(reason: str) -> SafeString:
    return format_html('<span title="{}">{}</span>', reason, DASH)


@register.filter
def rate(value: float | None, reason: str = NO_RESULT) -> str:
    """Write a rate in MB/s without its unit; also for ratios."""
    return dash(reason) if value is None or math.isnan(value) else three_digits(value)


@register.filter
def percent(share: float | None, reason: str = NO_RESULT) -> str:
    """Write a share in percent: 0.012, 8.3, 83; only what is the whole is 100."""
    if share is None or math.isnan(share):
        return dash(reason)
    value = 100 * share
    if 0 < value < 0.01:
        return "< 0.01 %"
    if value < 10:
        return f"{two_digits(value)} %"
    return f"{min(round(value), 99) if value < 100 else round(value)} %"


def two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:.6f}".rstrip("0").rstrip(".") if rounded < 10 else f"{rounded:.0f}"


@register.filter
def rough(value: float | None, reason: str = NO_RESULT) -> str:
    """Write an estimate."""
    return dash(reason) if value is None or math.isnan(value) else two_digits(value)


@register.filter
def plain(value: float | None, reason: str = "") -> str:
    """Write a number that somebody has registered, as they did."""
    return dash(reason) if value is None else f"{value:g}"


@register.filter
def count(number: float) -> str:
    """Write a count; one per day, which may be no whole number, with three digits."""
    return format_count(int(number)) if number == int(number) else three_digits(number)


@register.filter
def ago(unix: float | None, now: datetime) -> str:
    """Write a Unix time as its age, and the time itself on hover."""
    if unix is None or math.isnan(unix):
        return dash(NO_RESULT)
    then = datetime.fromtimestamp(unix, UTC)
    return format_html('<span title="{}">{}</span>', format_moment(then), age_words(unix, now))


def age_words(unix: float, now: datetime) -> str:
    """Write a Unix time as its age now, whichever window it was found in."""
    return format_age(now - datetime.fromtimestamp(unix, UTC))


@register.filter
def spread(std: float) -> str:
    """Write a standard deviation behind its mean; nothing where one result has none."""
    return "" if math.isnan(std) else f" ± {three_digits(std)}"


@register.filter
def nth(rank: int) -> str:
    """Write 1st, 2nd, 3rd, 11th."""
    teen = 10 < rank % 100 < 14
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{format_count(rank)}{ending}"


@register.filter
def or_dash(text: str, reason: str) -> str:
    return text or dash(reason)
