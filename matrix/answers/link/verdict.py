"""How a link is now, in words: one sentence first, then what else is worth knowing of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from math import isnan

from django.utils.text import capfirst

from matrix.answers.link.directions import Direction
from matrix.answers.words.phrases import (
    LONGEST_ERROR,
    WHOLE_ERROR,
    join,
    lower_first,
    sentences,
    shortened,
    time_words,
    where_at,
)
from matrix.statistics.cells.standing import FEWEST_SUCCESSES, USUAL_DAYS
from matrix.statistics.cells.states import fail_partly
from matrix.store.transfers import CommonError
from sonar.models import Downtime
from sonar.notation.units import format_count, format_factor, format_span, three_digits

# How newest tests compare with usual is said of a class in these states, of the others what failed.
COMPARED = ("measured", "stale", "untested")


def with_state(classes: Iterable[Direction], state: str) -> list[Direction]:
    return [each for each in classes if each.state == state]


def with_level(classes: Iterable[Direction], level: str) -> list[Direction]:
    """Return the classes of a level: as usual only where fresh tests of the window say so."""
    states = COMPARED if level in ("slower", "faster") else ("measured",)
    return [each for each in classes if each.level == level and each.state in states]


def since_words(classes: Sequence[Direction], at: datetime) -> str:
    """Return the earliest moment since which one of these is as it is, as seen from ``at``."""
    return time_words(min(each.since for each in classes), at)


def rates_now(classes: Iterable[Direction]) -> str:
    """Say the rates that are known: `3.1 MB/s with small files and 33 MB/s with large files`."""
    rates = [f"{each.rate_words} with {each.size} files" for each in classes if not isnan(each.now)]
    return join(rates) if rates else ""


def files(classes: Sequence[Direction]) -> str:
    """Begin a sentence with the files of these classes: `Small and medium files`."""
    return capfirst(f"{sizes(classes)} files")


def sizes(classes: Sequence[Direction]) -> str:
    return join(each.size for each in classes)


# What is said of rates below such a part of their usual, and of those above so many times it.
PARTS = (
    (0.1, "Less than a tenth of the usual rate"),
    (0.25, "Less than a quarter of the usual rate"),
    (1 / 3, "Less than a third of the usual rate"),
    (0.5, "Less than half the usual rate"),
)
TIMES = (
    (10, "More than ten times the usual rate"),
    (4, "More than four times the usual rate"),
    (2, "More than twice the usual rate"),
)


@dataclass(frozen=True)
class LinkNow:
    """All size classes of both directions, smallest first, as of the moment ``at``.

    ``errors`` are those of the classes that fail, by size, ``downtimes`` those that stop tests at
    that moment; ``last`` is when the newest result of the link started, ever. ``is_past`` says that
    the moment is the end of a window that is over.
    """

    there: Sequence[Direction]
    back: Sequence[Direction]
    errors: Mapping[str, Sequence[CommonError]]
    at: datetime
    is_past: bool
    downtimes: Sequence[Downtime]
    last: datetime | None
    is_scheduled: bool
    is_filtered: bool


@dataclass(frozen=True)
class Verdict:
    """``kind`` is a state or a level, for the colour; ``headline`` says it in one sentence.

    ``why`` are the errors of what fails, ``links`` texts and addresses of who says so elsewhere.
    """

    kind: str
    headline: str
    rest: str = ""
    why: str = ""
    links: tuple[tuple[str, str], ...] = ()


def verdict_of(link: LinkNow) -> Verdict:
    """Say how a link is: the worst of what is true of it first."""
    said = next(verdict for case in CASES if (verdict := case(link)))
    if not link.is_past:
        return said
    headline = lower_first(said.headline)
    return replace(said, headline=f"As of {time_words(link.at.timestamp(), link.at)}, {headline}")


def down(link: LinkNow) -> Verdict | None:
    if not link.downtimes or not any(each.state == "down" for each in link.there):
        return None
    first = max(link.downtimes, key=lambda downtime: downtime.ends_at)
    headline = (
        f"Down: {first.subject} is in a declared downtime {first.until_words}: "
        f"{first.reason.rstrip('.')}."
    )
    before = rates_now(link.there)
    rest = f"Before the downtime: {before}." if before else ""
    if first.url:
        return Verdict("down", headline, rest, links=((f"Declared in {first.source}", first.url),))
    source = f"Declared in {first.source}." if first.source else ""
    return Verdict("down", headline, f"{source} {rest}".strip())


def failing(link: LinkNow) -> Verdict | None:
    classes = with_state(link.there, "failing")
    if not classes:
        return None
    tests = sum(each.streak for each in classes)
    every = all(each in classes for each in link.there if each.tests)
    of_classes = "" if every else f" with {sizes(classes)} files"
    headline = (
        f"All {format_count(tests)} tests{of_classes} have failed since "
        f"{since_words(classes, link.at)}."
    )
    rest = sentences(others(link.there, classes), reverse(link))
    return Verdict("failing", headline, rest, error_words(link, classes))


def shifted(level: str, link: LinkNow) -> Verdict | None:
    classes = with_level(link.there, level)
    if not classes:
        return None
    factors = ", ".join(f"{each.size} {format_factor(each.ratio)}" for each in classes)
    headline = f"{extent(classes, level)} since {since_words(classes, link.at)}: {factors}."
    rest = sentences(against_usual(classes), others(link.there, classes), reverse(link))
    return Verdict(level, headline, rest)


def extent(classes: Sequence[Direction], level: str) -> str:
    """Say by how much all of these classes are slower or faster: `Less than half the usual rate`.

    By the least of their factors, as they are written.
    """
    ratios = [each.ratio for each in classes]
    if level == "slower":
        words = (words for most, words in PARTS if max(ratios) < most)
    else:
        words = (words for few, words in TIMES if min(ratios) > few)
    return next(words, f"{capfirst(level)} than usual")


def against_usual(classes: Sequence[Direction]) -> str:
    """Say the rates behind factors: `Now 3.49 and 7.36 MB/s, usually 8.20 and 15.3.`"""
    now, usual = (
        join(three_digits(getattr(each, name)) for each in classes) for name in ("now", "usual")
    )
    return f"Now {now} MB/s, usually {usual}."


def failed(link: LinkNow) -> Verdict | None:
    """Speak of classes with one or two tests, all of which failed: three would be failing."""
    classes = with_state(link.there, "failed")
    if not classes:
        return None
    counts = [
        f"{'the only test' if each.failed == 1 else f'all {format_count(each.failed)} tests'} "
        f"with {each.size} files"
        for each in classes
    ]
    headline = f"Failed in this window: {join(counts)}."
    rest = sentences(others(link.there, classes), reverse(link))
    return Verdict("failed", headline, rest, error_words(link, classes))


def stale(link: LinkNow) -> Verdict | None:
    """Speak of a link whose tests are all late; of one class that is, `others` does."""
    classes = with_state(link.there, "stale")
    if not classes or with_state(link.there, "measured"):
        return None
    last = datetime.fromtimestamp(max(each.last for each in classes), UTC)
    headline = (
        f"Stale: no test since {time_words(last.timestamp(), link.at)} "
        f"({format_span(link.at - last)}), more than two intervals of its mesh."
    )
    rates = rates_now(classes)
    before = f"Then: {rates}." if rates else ""
    return Verdict("stale", headline, sentences([before], reverse(link)))


def untested(link: LinkNow) -> Verdict | None:
    if any(each.tests for each in link.there):
        return None
    if link.is_filtered:
        headline = "Not known: no result of this link in this window matches the filters."
    elif link.last and link.last <= link.at:
        ago = format_span(link.at - link.last)
        when = f"the last one before its end was {ago} earlier" if link.is_past else ""
        headline = (
            f"No test in this window: {when or f'the last one was {ago} ago'}, at "
            f"{time_words(link.last.timestamp(), link.at)}."
        )
    elif link.last:
        headline = "No test in this window."
    elif link.is_scheduled:
        headline = "Not tested yet: its first test has not run yet."
    else:
        headline = "Not tested: no mesh includes this link, and it has never had a result."
    return Verdict("untested", headline, reverse(link))


def usual(link: LinkNow) -> Verdict | None:
    classes = with_level(link.there, "usual")
    if not classes:
        return None
    factors = ", ".join(f"{each.size} {each.factor}" for each in classes)
    rest = sentences(
        against_usual(classes), others(link.there, classes), some_failed(link.there), reverse(link)
    )
    return Verdict("usual", f"As usual: {factors}.", rest)


def unknown(link: LinkNow) -> Verdict:
    rates = rates_now(link.there)
    now = f"Now: {rates}." if rates else ""
    headline = (
        f"The usual rate is not known yet: fewer than {FEWEST_SUCCESSES} successful tests in the "
        f"{USUAL_DAYS} days before this window."
    )
    return Verdict("unknown", headline, sentences([now], some_failed(link.there), reverse(link)))


CASES = (
    *(down, failing, partial(shifted, "slower"), failed, stale, untested),
    *(partial(shifted, "faster"), usual, unknown),
)


def others(classes: Sequence[Direction], said: Sequence[Direction]) -> list[str]:
    """Say how the classes are that the headline does not speak of."""
    rest = [each for each in classes if each not in said and each.tests]
    parts = [
        f"{files([each])} are {level} than usual: {each.rate_words}, usually "
        f"{three_digits(each.usual)} ({each.factor})."
        for level in ("slower", "faster")
        for each in with_level(rest, level)
    ]
    as_usual, new, works = with_level(rest, "usual"), with_level(rest, "unknown"), []
    if with_state(said, "failing"):
        as_usual, new, works = [], [], [each for each in rest if each in as_usual + new]
    groups = {
        "{files} still work.": works,
        "{files} are as usual.": as_usual,
        "The usual rate with {sizes} files is not known yet.": new,
        "{files} have not been tested recently.": with_state(rest, "stale"),
        "{files} failed.": with_state(rest, "failed"),
    }
    return parts + [
        words.format(files=files(group), sizes=sizes(group))
        for words, group in groups.items()
        if group
    ]


def some_failed(classes: Sequence[Direction]) -> list[str]:
    """Say how many tests failed where some came through, if they are a part worth a word."""
    return [
        f"{format_count(each.failed)} of {format_count(each.tests)} tests with {each.size} files "
        "failed in this window."
        for each in classes
        if fail_partly(each.ok, each.failed, each.state == "failing")
    ]


def reverse(link: LinkNow) -> str:
    """Say how the other direction is, in a sentence; what is down is so in both directions."""
    return next(chain(reverse_troubles(link), reverse_calm(link)), "")


def reverse_troubles(link: LinkNow) -> Iterator[str]:
    for state, verb in (("failing", "is failing"), ("failed", "failed")):
        if classes := with_state(link.back, state):
            too = ", too" if with_state(link.there, state) else ""
            yield f"The reverse direction {verb}{too}, with {sizes(classes)} files."
    for level in ("slower", "faster"):
        if classes := with_level(link.back, level):
            too = ", too" if with_level(link.there, level) else ""
            factors = join(f"{each.factor} with {each.size} files" for each in classes)
            yield f"The reverse direction is {level} than usual{too}: {factors}."


def reverse_calm(link: LinkNow) -> Iterator[str]:
    if not any(each.tests for each in link.back):
        yield "The reverse direction has no test in this window."
    if with_state(link.back, "stale") and not with_state(link.back, "measured"):
        yield "The reverse direction has not been tested recently."
    if with_level(link.back, "usual"):
        yield "The reverse direction is as usual."
    if with_level(link.back, "unknown"):
        yield "The usual rate in the reverse direction is not known yet."


def error_words(link: LinkNow, classes: Sequence[Direction]) -> str:
    """Say the most common error of all classes, and that of the newest test where it differs.

    Each with where it happened; the newest one as a whole, for it is what happens now.
    """
    by_cause: dict[tuple[str, str], CommonError] = {}
    for error in (error for each in classes for error in link.errors.get(each.size, ())):
        key = error.where, error.cause or error.text
        before = by_cause.get(key, replace(error, count=0))
        newest = max(before, error, key=lambda each: each.last)
        by_cause[key] = replace(newest, count=before.count + error.count)
    errors = list(by_cause.values())
    if not errors:
        return ""
    most = max(errors, key=lambda error: (error.count, error.last))
    newest = max(errors, key=lambda error: (error.last, error.count))
    tests = sum(each.streak or each.failed for each in classes)
    how_many = f"Most often ({format_count(most.count)} of {format_count(tests)})"
    if newest is not most:
        until = time_words(most.last.timestamp(), link.at)
        return (
            f"{how_many} until {until}: {cause_words(most, classes[0], LONGEST_ERROR)}. "
            f"Now: {cause_words(newest, classes[0], WHOLE_ERROR)}."
        )
    if most.count == tests:
        how_many = "Each time" if tests > 1 else "It failed"
    return f"{how_many} {cause_words(most, classes[0], WHOLE_ERROR)}."


def cause_words(error: CommonError, direction: Direction, longest: int) -> str:
    where = where_at(error.where, direction.source, direction.destination)
    return f"{where}: {shortened(error.text, longest)}"
