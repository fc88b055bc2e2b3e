"""Every figure of a sentence has a rule that explains it, or the sentence fails."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

# A rule finds a part of a sentence, and asserts what its figures are.
Rule = tuple[str, Callable[[re.Match[str]], object]]
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
# Figures as pages write them.
TIME = rf"\d{{1,2}} (?:{MONTHS})(?: \d{{4}})? \d\d:\d\d(?::\d\d)?(?: UTC)?"
NUMBER = r"\d(?:[\d\u202f]*\d)?(?:\.\d+)?"
COUNT = r"\d(?:[\d\u202f]*\d)?"
SIZES = "small|medium|large"
PERCENT = rf"{NUMBER} %"
SPAN = r"\d+ (?:d|h|min|s)"


def check(text: str, rules: Sequence[Rule]) -> int:
    """Let each rule assert what it finds; fail for a digit in which none did. Return the finds."""
    left, found = list(text), 0
    for pattern, assertion in rules:
        for match in re.finditer(pattern, text):
            if not any(character.isdigit() for character in left[match.start() : match.end()]):
                continue  # it has no figure, or another rule explained all it has
            assertion(match)
            found += 1
            for at in range(match.start(), match.end()):
                left[at] = "_" if left[at].isdigit() else left[at]
    unexplained = [at for at, character in enumerate(left) if character.isdigit()]
    assert not unexplained, f"no rule explains {text[max(unexplained[0] - 60, 0) :][:120]!r}"
    return found


def number(text: str) -> float:
    return float(text.replace("\u202f", "").removesuffix("%").removesuffix("×").strip())


def close(text: str, value: float) -> None:
    """Assert that a number is written as precisely as its digits are."""
    written = number(text)
    digits = text.replace("\u202f", "").removesuffix("%").removesuffix("×").strip()
    step = 10.0 ** -len(digits.partition(".")[2])
    if "." not in digits and len(digits) > 3:
        step = 10.0 ** (len(digits) - 3)
    assert abs(written - value) <= 0.5 * step * 1.001 + 3e-6 * abs(value), (text, value)


def close_all(texts: Iterable[str], values: Iterable[float]) -> None:
    for text, value in zip(texts, values, strict=True):
        close(text, value)


def same(text: str, count: int) -> None:
    assert number(text) == count, (text, count)


def at(text: str, moment: datetime) -> None:
    """Assert that a time is that of a moment, to the minute."""
    minute = moment.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)
    assert time_in(text, moment) == minute, (text, moment)


def time_in(text: str, near: datetime) -> datetime:
    """Read a time; one without a year is in that of a moment."""
    day, month, *year, clock = text.removesuffix(" UTC").split()
    return datetime.strptime(f"{day} {month} {(*year, near.year)[0]} {clock[:5]}", "%d %b %Y %H:%M")


def span(text: str, length: timedelta) -> None:
    """Assert that a span is that long, in the unit in which it is written."""
    amount, unit = text.split()
    seconds = {"d": 86400, "h": 3600, "min": 60, "s": 1}[unit]
    assert int(amount) == int(length.total_seconds() // seconds), (text, length)


def constant(*patterns: str) -> list[Rule]:
    """Return rules for figures that are the same whatever the results are."""
    return [(pattern, lambda match: None) for pattern in patterns]


def each_size(text: str) -> list[str]:
    return re.findall(SIZES, text)
