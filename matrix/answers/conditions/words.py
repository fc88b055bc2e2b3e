"""Conditions in words: the same ones on pages, in the API, in reports and in messages.

What has ended is described in the past tense.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from matrix.answers.conditions.reading import Judgement
from matrix.answers.words.advice import LOOK, ONLY_THIS_LINK, PAIR, SONAR
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted, join
from matrix.query.addresses import address, link_path
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Condition
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import format_minute, short_time

SCOPES, TYPES = Condition.Scope, Condition.Type
SONAR_ITSELF = "Sonar itself"
BOTH_WAYS = ("sends and receives at", "sent and received at")
# What a condition is of: its role, before a factor the verb, now and of what has ended then, and
# what to check first where it is slow.
OF_SCOPE = {
    SCOPES.LINK: ("", ("runs at", "ran at"), ONLY_THIS_LINK),
    SCOPES.SOURCE: ("as source", ("sends at", "sent at"), LOOK["source"]),
    SCOPES.DESTINATION: ("as destination", ("receives at", "received at"), LOOK["destination"]),
    SCOPES.ENDPOINT: ("in both directions", BOTH_WAYS, LOOK["both"]),
    SCOPES.SITE: ("in both directions", BOTH_WAYS, LOOK["both"]),
    SCOPES.GRID: ("", ("", ""), SONAR),
}
# What a condition is like now and, once it has ended, what it was like; of one and of most links.
STATES = {
    TYPES.FAILING: (("has been failing", "was failing"), ("have been failing", "were failing")),
    TYPES.SILENT: (
        ("has had no new results", "had no new results"),
        ("have had no new results", "had no new results"),
    ),
    TYPES.SLOW: (("has been slow", "was slow"), ("have been slow", "were slow")),
    TYPES.FAST: (("has been fast", "was fast"), ("have been fast", "were fast")),
}
# Now and then, of one subject and of most links.
VERBS = {
    TYPES.FAILING: (("fails", "failed"), ("fail", "failed")),
    TYPES.SILENT: (
        ("has no new results", "had no new results"),
        ("have no new results", "had no new results"),
    ),
    TYPES.SLOW: (("is slow", "was slow"), ("are slow", "were slow")),
    TYPES.FAST: (("is fast", "was fast"), ("are fast", "were fast")),
}
FAILING_ADVICE = "Check {} first. The errors of its failed tests show the reason."
SILENT_ADVICE = (
    "Check on the Health page whether tests of the affected links are scheduled, and what they "
    "are waiting for."
)
# A beginning that is known to within this is shown as one moment.
SHARP = timedelta(hours=2)
# The page of a condition shows this long before and after its beginning.
AROUND = timedelta(days=14)
MINUTE = timedelta(minutes=1)


def name(condition: Condition, short: Mapping[str, str] = NO_NAMES) -> str:
    """Name the link, endpoint or site; endpoints by their ``short`` names where they have some."""
    if condition.scope == SCOPES.GRID:
        return SONAR_ITSELF
    if condition.site:
        return str(condition.site.name)
    ends = (condition.source, condition.destination)
    names = [short.get(end.name, end.name) for end in ends if end]
    return " to ".join(names) if condition.scope == SCOPES.LINK else names[0]


def subject(condition: Condition, short: Mapping[str, str] = NO_NAMES) -> str:
    """Say whose it is, where nothing follows: `A to B`, `A as destination`, `Sonar itself`."""
    return f"{name(condition, short)} {role(condition)}".strip()


def role(condition: Condition) -> str:
    """Say as what an endpoint or a site is concerned: `as source`; nothing of others."""
    return OF_SCOPE[SCOPES(condition.scope)][0]


def predicate(condition: Condition) -> str:
    """Say what is the matter: `receives at 0.34x (0.30-0.38)`, `fails as source`."""
    is_over, factor = condition.ended_at is not None, factor_words(condition)
    of_one, of_many = VERBS[TYPES(condition.type)]
    if condition.scope == SCOPES.GRID:
        return f"most links {of_many[is_over]} at once{factor and f', at {factor}'}"
    if factor:
        return f"{OF_SCOPE[SCOPES(condition.scope)][1][is_over]} {factor}"
    return f"{of_one[is_over]} {role(condition)}".strip()


def title(condition: Condition, short: Mapping[str, str] = NO_NAMES) -> str:
    """Say it in a few words: `A receives at 0.34x (0.30-0.38)`, `A to B fails`."""
    colon = ":" if condition.scope == SCOPES.GRID else ""
    return f"{name(condition, short)}{colon} {predicate(condition)}"


def factor_words(condition: Condition) -> str:
    """Write its factor and its interval: `0.34x (0.30-0.38)`; nothing where it has none."""
    if condition.factor is None:
        return ""
    return format_factor(condition.factor, condition.factor_low, condition.factor_high)


def since(condition: Condition, write: Callable[[datetime], str] = short_time) -> str:
    """Say when it began, and when it ended if it has; ``write`` writes a time without UTC.

    `since 25 Nov 01:00 UTC`, `since some time between 24 Nov 19:00 and 25 Nov 01:00 UTC`, `from
    25 Nov 01:00 until 26 Nov 04:00 UTC`.
    """
    low, high = condition.since_low, condition.since_high
    began = write(condition.since)
    if high - low > SHARP:
        began = f"some time between {write(low)} and {write(high)}"
    if condition.ended_at is None:
        return f"since {began} UTC"
    return f"from {began} until {write(condition.ended_at)} UTC"


def affected_links(scope: str, links: int, of_links: int) -> str:
    """Say how many links a condition affects: `13 of 20 links`.

    The whole grid is slow by the level of all its links; few of them may be slow by their own.
    """
    if scope == SCOPES.GRID:
        return "most links"
    return f"{format_count(links)} of {counted(of_links, 'link')}"


def evidence(condition: Condition) -> list[str]:
    """Return its figures as parts of a sentence: size classes, links, tests.

    Tests are counted only for conditions that `matrix.store.conditions` has read.
    """
    parts = [f"with {join(condition.size_classes)} files"]
    if condition.scope not in (SCOPES.LINK, SCOPES.GRID) and condition.links:
        parts.append(f"on {affected_links(condition.scope, condition.links, condition.of_links)}")
    tests, failed = (vars(condition).get(each, 0) for each in ("tests", "failed"))
    if tests and condition.type == TYPES.FAILING:
        parts.append(f"{format_count(failed)} of {counted(tests, 'test')} failed")
    elif tests and condition.type != TYPES.SILENT:
        parts.append(counted(tests, "test"))
    return parts


def sentence(
    condition: Condition,
    short: Mapping[str, str] = NO_NAMES,
    write: Callable[[datetime], str] = short_time,
) -> str:
    """Give object, state, start and figures, in this order.

    `A has been slow as destination since 25 Nov 01:00 UTC, at 0.34x (0.30-0.38) of the baseline,
    with large files, on 28 of 29 links, 90 tests.`
    """
    begin = [state(condition, short), since(condition, write)]
    factor = factor_words(condition)
    figures = (
        [f"at {factor} of the baseline"] * bool(factor)
        + evidence(condition)
        + unconfirmed(condition)
    )
    return f"{', '.join([' '.join(begin), *figures])}."


def state(condition: Condition, short: Mapping[str, str] = NO_NAMES) -> str:
    """Give object and state, to be followed by the start: `A has been slow as destination`."""
    is_over = condition.ended_at is not None
    of_one, of_many = STATES[TYPES(condition.type)]
    if condition.scope == SCOPES.GRID:
        return f"{SONAR_ITSELF}: most links {of_many[is_over]}"
    return f"{name(condition, short)} {of_one[is_over]} {role(condition)}".strip()


def details(condition: Condition) -> str:
    """Give figures and start, to follow the title: `with large files, since 25 Nov 01:00 UTC.`"""
    return f"{', '.join([*evidence(condition), since(condition), *unconfirmed(condition)])}."


def unconfirmed(condition: Condition) -> list[str]:
    return ["unconfirmed"] * (condition.confirmed_at is None)


def advice(condition: Condition) -> str:
    """Return the first action to take; an empty string for what is fast."""
    where_slow = OF_SCOPE[SCOPES(condition.scope)][2]
    if condition.scope == SCOPES.GRID:
        return where_slow
    if condition.type == TYPES.SILENT:
        return SILENT_ADVICE
    if condition.type == TYPES.FAILING:
        is_link = condition.scope == SCOPES.LINK
        return PAIR if is_link else FAILING_ADVICE.format(name(condition))
    return where_slow if condition.type == TYPES.SLOW else ""


def as_of(judgement: Judgement) -> str:
    """Say when the results were last assessed: `as of 22:01 UTC`, or since when they were not."""
    if judgement.as_of is None:
        return "not assessed yet"
    if judgement.is_late:
        return f"not assessed since {format_minute(judgement.as_of)}"
    return f"as of {judgement.as_of:%H:%M} UTC"


def doubtful(condition: Condition) -> str:
    """Say that results are doubtful because of a condition of the whole grid."""
    is_over = condition.ended_at is not None
    verb = VERBS[TYPES(condition.type)][1][is_over]
    return (
        f"Results {'were' if is_over else 'have been'} doubtful {since(condition)}: most links "
        f"{verb} at once, which suggests a problem on Sonar's machine."
    )


def site_names(condition: Condition) -> list[str]:
    """Return the names of its sites in order; none for the whole grid."""
    ends = {end.site.name for end in (condition.source, condition.destination) if end}
    return sorted(ends | {condition.site.name} if condition.site else ends)


def path(condition: Condition) -> str:
    source, destination = condition.source, condition.destination
    if condition.scope == SCOPES.LINK and source and destination:
        return link_path(source.name, destination.name)
    sites = site_names(condition)
    return address("site", sites[0]) if sites else address("matrix")


def url(condition: Condition, now: datetime | None = None) -> str:
    """Return the page of its link or site, from 14 days before it began to at most 14 after that.

    With files of the largest of its size classes: overhead blurs their rates the least.
    """
    end = min(condition.since_high + AROUND, now or timezone.now())
    start, end = (
        each.replace(second=0, microsecond=0) for each in (condition.since_low - AROUND, end)
    )
    size = condition.size_classes[-1]
    return MatrixQuery(size=size, window="", start=start, end=end + MINUTE).url(path(condition))
