"""Numbers and times as pages write them; what is missing is a dash with its reason on hover.

And whom to tell, where a page says to ask an administrator.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from django import template
from django.conf import settings
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from matrix.answers.causes.attribution import EndEffect
from matrix.answers.words.glossary import BY_ANCHOR
from matrix.answers.words.phrases import WHERE, shortened
from matrix.query.addresses import address
from sonar.notation import units
from sonar.notation.windows import format_moment, format_typed, short_second, short_time

register = template.Library()

register.filter("volume", units.format_bytes)
register.filter("moment", format_moment)
register.filter("typed", format_typed)
register.filter("minute", short_time)
register.filter("second", short_second)

NO_RESULT = "no result in this time range"
# What is a time, or a figure with its unit, in the text of a page.
CLOCK = r"\d\d:\d\d(?::\d\d)?"
MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
DAY = rf"\d{{4}}-\d\d-\d\d|(?:[A-Z][a-z][a-z] )?\d\d? (?:{MONTH})\b(?: \d{{4}}\b)?"
TIME = rf"(?:{DAY})(?: {CLOCK})?(?: UTC)?|{CLOCK} UTC"
FIGURE = (
    r"(?:\d[\d.\u202f]*–)?\d[\d.,\u202f]*\s+(?:%|(?:[kMGT]?B(?:/s)?|Gbit/s|min|[dhs])\b(?: ago\b)?)"
)
# As `whole` finds it: escaped.
CHANCE = r"[np] (?:=|&lt;) \d[\d.\u202f]*"
WHOLE = re.compile(rf"(?<![\w.])\(?(?:{TIME}|{FIGURE}|{CHANCE})[.,:;)]*")
TAG = re.compile("(<[^>]*>)")
FRACTION = re.compile(r"\d(\.\d+)?(?!\d)")


@lru_cache(maxsize=256)
def dash(reason: str) -> SafeString:
    return format_html('<span title="{}">{}</span>', reason, units.DASH)


@register.filter
def whole(text: str) -> SafeString:
    """Let no line break within a time, or between a number and its unit; of text or of HTML."""
    parts = TAG.split(conditional_escape(text))
    parts[::2] = [WHOLE.sub(r'<span class="text-nowrap">\g<0></span>', part) for part in parts[::2]]
    return mark_safe("".join(parts))  # noqa: S308 - escaped above


# Filters that write a number, or a dash with its reason where there is none: rates in MB/s without
# their unit, those in bytes/s with one, and ratios, factors as lists of what stands out have them,
# bytes, times with their unit, shares in percent, and estimates.
NUMBERS: dict[str, Callable[[float], str]] = {
    "rate": units.three_digits,
    "bytes_rate": units.format_rate,
    "times": units.format_factor,
    "size": units.format_bytes,
    "seconds": units.format_seconds,
    "percent": units.format_share,
    "rough": units.format_estimate,
}


def writing(write: Callable[[float], str]) -> Callable[..., str]:
    def written(value: float | None, reason: str = NO_RESULT) -> str:
        return dash(reason) if value is None or math.isnan(value) else write(value)

    return written


NUMBERS_OR_DASHES = {name: writing(write) for name, write in NUMBERS.items()}
for name, written in NUMBERS_OR_DASHES.items():
    register.filter(name, written)


@register.filter
def chance(p: float, reason: str = NO_RESULT) -> str:
    """Write how probable something is by chance alone, below a heading that says p."""
    if math.isnan(p):
        return dash(reason)
    return units.format_chance(p).removeprefix("p = ").removeprefix("p ")


@register.filter
def factor_of(effect: EndEffect, reason: str) -> str:
    """Write the factor of a source or destination, with its interval if it has one."""
    if math.isnan(effect.low):
        return dash(reason)
    return units.format_factor(effect.factor, effect.low, effect.high)


@register.filter
def plain(value: float | None, reason: str = "") -> str:
    """Write a number that somebody has registered, as they did."""
    return dash(reason) if value is None else f"{value:g}"


@register.filter
def count(number: float) -> str:
    """Write a count; one per day, which may be no whole number, with three digits."""
    return units.format_count(int(number)) if number == int(number) else units.three_digits(number)


@register.filter
def ago(unix: float | None, now: datetime) -> str:
    """Write a Unix time as its age, and the time itself on hover."""
    if unix is None or math.isnan(unix):
        return dash(NO_RESULT)
    then = datetime.fromtimestamp(unix, UTC)
    return format_html('<span title="{}">{}</span>', format_moment(then), age_words(unix, now))


def age_words(unix: float, now: datetime) -> str:
    """Write a Unix time as its age now, whichever window it was found in."""
    return units.format_age(now - datetime.fromtimestamp(unix, UTC))


@register.filter
def where(failed_at: str) -> str:
    """Say where a test failed; nothing of one that did not."""
    return WHERE.get(failed_at, "")


@register.filter
def spread(std: float) -> str:
    """Write a standard deviation behind its mean; nothing where one result has none."""
    return "" if math.isnan(std) else f" ± {units.three_digits(std)}"


@register.filter
def nth(rank: int) -> str:
    teen = 10 < rank % 100 < 14
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{units.format_count(rank)}{ending}"


@register.filter
def or_dash(text: str, reason: str) -> str:
    return text or dash(reason)


@register.filter
def short_of(name: str, short: dict[str, str]) -> str:
    return short.get(name, name)


@register.filter
def brief(error: str, longest: int) -> str:
    """Shorten an error where it says least: the reason often stands at its end."""
    return shortened(error, longest)


def pads(texts: Sequence[str]) -> list[str]:
    """Return the point and the digits that each number needs to be as long as the longest.

    Pages take the room of these, and show nothing there. A text without a number needs none.
    """
    fractions = [(match[1] or "") if (match := FRACTION.search(text)) else None for text in texts]
    longest = max((len(fraction) for fraction in fractions if fraction is not None), default=0)
    zeros = f".{'0' * (longest - 1)}" if longest else ""
    return ["" if fraction is None else zeros[len(fraction) :] for fraction in fractions]


@register.simple_tag
def contact() -> str:
    """Link to the administrators of this Sonar; empty where none are named (SONAR_CONTACT)."""
    url = settings.SONAR_CONTACT
    return format_html('<a href="{}">{}</a>', url, url.removeprefix("mailto:")) if url else ""


@register.simple_tag
def term(anchor: str, words: str = "") -> str:
    """Link to a term of the glossary, with its meaning on hover; ``words`` are what is written."""
    explained = BY_ANCHOR[anchor]
    return format_html(
        '<a class="term" href="{}#{}" title="{}" hx-boost="false">{}</a>',
        *(address("glossary"), anchor, explained.meaning, words or explained.name.lower()),
    )
