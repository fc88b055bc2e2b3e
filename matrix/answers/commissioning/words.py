"""Criteria sets in words: which links they judge, and what they ask of them."""

from sonar.models import CriteriaSet
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import words
from sonar.notation.units import format_bytes, format_count, three_digits


def ends_words(row: CriteriaSet) -> str:
    """Say which links: `from endpoints of tier 0 or 1 to every endpoint`."""
    if not (row.sources_filter or row.destinations_filter):
        return "of every link"
    sources, destinations = (
        f"endpoints {words(chosen)}" if (chosen := row.filter_of(end)) else "every endpoint"
        for end in ENDS
    )
    return f"from {sources} to {destinations}"


def asked_words(row: CriteriaSet) -> str:
    """Say what: `at least 20.0 MB/s over 24 hours, with large files and at least 6 tests`."""
    parts = []
    if row.least_mb_s:
        parts.append(f"{three_digits(row.least_mb_s)} MB/s")
    if row.least_success_percent:
        parts.append(f"{row.least_success_percent:g} % successes")
    if row.least_bytes:
        parts.append(f"{format_bytes(row.least_bytes)} moved")
    *others, last = parts
    least = f"{', '.join(others)} and {last}" if others else last
    days, rest = divmod(row.period_hours, 24)
    hours = f"{row.period_hours} hour{'' if row.period_hours == 1 else 's'}"
    period = hours if rest or days == 1 else f"{days} days"
    noun = "test" if row.least_tests == 1 else "tests"
    tests = f"{format_count(row.least_tests)} {noun}"
    return f"at least {least} over {period}, with {row.size_class.name} files and at least {tests}"
