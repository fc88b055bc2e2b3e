"""How a link is now, in words: one sentence first, then what else is worth knowing of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from matrix.answers.link.class_words import (
    age,
    factor,
    files,
    join,
    of_level,
    of_state,
    rate_words,
    rates_now,
    sentences,
    shortened,
    since_words,
    sizes,
)
from matrix.answers.link.directions import Direction
from matrix.answers.link.errors import where_at
from matrix.statistics.standing import DAYS, FEWEST
from matrix.statistics.states import fail_partly
from matrix.store.transfers import CommonError
from sonar.models import Downtime
from sonar.units import format_count, three_digits
from sonar.windows import format_minute


@dataclass(frozen=True)
class LinkNow:
    """All size classes of both directions, smallest first, as of the moment ``at``.

    ``errors`` are those of the classes that fail, by size, ``downtimes`` those that hold at that
    moment; ``last`` is when the newest result of the link started, ever. ``is_past`` says that the
    moment is the end of a window that is over.
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
    """``kind`` is a state or a level, for the colour; ``headline`` says it in one sentence."""

    kind: str
    headline: str
    rest: str = ""


def verdict_of(link: LinkNow) -> Verdict:
    """Say how a link is: the worst of what is true of it first."""
    said = next(verdict for case in CASES if (verdict := case(link)))
    if not link.is_past:
        return said
    headline = said.headline[0].lower() + said.headline[1:]
    return replace(said, headline=f"As of {format_minute(link.at)}: {headline}")


def down(link: LinkNow) -> Verdict | None:
    if not link.downtimes or not any(each.state == "down" for each in link.there):
        return None
    first = max(link.downtimes, key=lambda downtime: downtime.ends_at)
    headline = (
        f"Down: {first.site or first.endpoint} is in a declared downtime until "
        f"{format_minute(first.ends_at)}: {first.reason.rstrip('.')}."
    )
    before = rates_now(link.there)
    return Verdict("down", headline, f"Before the downtime: {before}." if before else "")


def failing(link: LinkNow) -> Verdict | None:
    classes = of_state(link.there, "failing")
    if not classes:
        return None
    tests = format_count(sum(each.streak for each in classes))
    headline = (
        f"Failing since {since_words(classes)}: the last {tests} tests with {sizes(classes)} files "
        f"failed{error_words(link, classes)}."
    )
    return Verdict("failing", headline, sentences(others(link.there, classes), reverse(link)))


def slower(link: LinkNow) -> Verdict | None:
    return shifted(link, "slower")


def faster(link: LinkNow) -> Verdict | None:
    return shifted(link, "faster")


def shifted(link: LinkNow, level: str) -> Verdict | None:
    classes = of_level(link.there, level)
    if not classes:
        return None
    first, *more = classes
    rates = [
        f"{three_digits(first.now)} MB/s now with {first.size} files, {three_digits(first.usual)} "
        f"usual ({factor(first)})"
    ]
    rates += [
        f"{three_digits(each.now)} with {each.size} files, {three_digits(each.usual)} usual "
        f"({factor(each)})"
        for each in more
    ]
    also = ", " if not more else "; the first "
    since = f"since {since_words(classes)}"
    headline = f"{level.capitalize()} than usual: {'; '.join(rates)}{also}{since}."
    return Verdict(level, headline, sentences(others(link.there, classes), reverse(link)))


def failed(link: LinkNow) -> Verdict | None:
    """Speak of classes with one or two tests, all of which failed: three would be failing."""
    classes = of_state(link.there, "failed")
    if not classes:
        return None
    counts = [
        f"{'the one test' if each.failed == 1 else f'all {format_count(each.failed)} tests'} "
        f"with {each.size} files"
        for each in classes
    ]
    headline = f"Failed in this window: {join(counts)}{error_words(link, classes)}."
    return Verdict("failed", headline, sentences(others(link.there, classes), reverse(link)))


def stale(link: LinkNow) -> Verdict | None:
    """Speak of a link whose tests are all late; of one class that is, `others` does."""
    classes = of_state(link.there, "stale")
    if not classes or of_state(link.there, "measured"):
        return None
    last = datetime.fromtimestamp(max(each.last for each in classes), UTC)
    headline = (
        f"Stale: no test since {format_minute(last)} ({age(link.at, last)}), more than two "
        "intervals of its mesh."
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
        ago = age(link.at, link.last)
        when = f"the last one before its end was {ago} earlier" if link.is_past else ""
        headline = (
            f"No test in this window: {when or f'the last one was {ago} ago'}, at "
            f"{format_minute(link.last)}."
        )
    elif link.last:
        headline = "No test in this window."
    elif link.is_scheduled:
        headline = "Not tested yet: its first test has not run yet."
    else:
        headline = "Not tested: no mesh includes this link, and it has never had a result."
    return Verdict("untested", headline, reverse(link))


def usual(link: LinkNow) -> Verdict | None:
    classes = of_level(link.there, "usual")
    if not classes:
        return None
    first, *more = classes
    rates = [f"{rate_words(first)} with {first.size} files (usual {three_digits(first.usual)})"]
    rates += [
        f"{three_digits(each.now)} with {each.size} ({three_digits(each.usual)})" for each in more
    ]
    rest = sentences(others(link.there, classes), some_failed(link.there), reverse(link))
    return Verdict("usual", f"As usual: {join(rates)}.", rest)


def unknown(link: LinkNow) -> Verdict:
    rates = rates_now(link.there)
    now = f"Now: {rates}." if rates else ""
    headline = (
        f"The usual rate is not known yet: fewer than {FEWEST} successful tests in the {DAYS} "
        "days before this window."
    )
    return Verdict("unknown", headline, sentences([now], some_failed(link.there), reverse(link)))


CASES = (down, failing, slower, failed, stale, untested, faster, usual, unknown)


def others(classes: Sequence[Direction], said: Sequence[Direction]) -> list[str]:
    """Say how the classes are that the headline does not speak of."""
    rest = [each for each in classes if each not in said and each.tests]
    parts = [
        f"{files([each])} are {level} than usual: {rate_words(each)}, {three_digits(each.usual)} "
        f"usual ({factor(each)})."
        for level in ("slower", "faster")
        for each in of_level(rest, level)
    ]
    as_usual, new, works = of_level(rest, "usual"), of_level(rest, "unknown"), []
    if of_state(said, "failing"):
        as_usual, new, works = [], [], [each for each in rest if each in as_usual + new]
    groups = {
        "{files} still work.": works,
        "{files} are as usual.": as_usual,
        "The usual rate with {sizes} files is not known yet.": new,
        "{files} have not been tested recently.": of_state(rest, "stale"),
        "{files} failed.": of_state(rest, "failed"),
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
    """Say how the other direction is, in a sentence."""
    return next((words for say in REVERSE if (words := say(link))), "")


def reverse_failing(link: LinkNow) -> str:
    for state, verb in (("failing", "is failing"), ("failed", "failed")):
        if classes := of_state(link.back, state):
            too = ", too" if of_state(link.there, state) else ""
            return f"The reverse direction {verb}{too}, with {sizes(classes)} files."
    return ""


def reverse_shifted(link: LinkNow) -> str:
    for level in ("slower", "faster"):
        if classes := of_level(link.back, level):
            too = ", too" if of_level(link.there, level) else ""
            factors = join(f"{factor(each)} with {each.size} files" for each in classes)
            return f"The reverse direction is {level} than usual{too}: {factors}."
    return ""


def reverse_at_rest(link: LinkNow) -> str:
    """Say it of a direction without fresh tests; what is down is so in both directions."""
    if not any(each.tests for each in link.back):
        return "The reverse direction has no test in this window."
    fresh = of_state(link.back, "measured")
    if of_state(link.back, "stale") and not fresh:
        return "The reverse direction has not been tested recently."
    return ""


def reverse_compared(link: LinkNow) -> str:
    if of_level(link.back, "usual"):
        return "The reverse direction is as usual."
    if of_level(link.back, "unknown"):
        return "The usual rate in the reverse direction is not known yet."
    return ""


REVERSE = (reverse_failing, reverse_shifted, reverse_at_rest, reverse_compared)


def error_words(link: LinkNow, classes: Sequence[Direction]) -> str:
    """Say the most common error of all classes: how many tests had it, where, and its text.

    And that of the newest test that failed, where it is another one.
    """
    errors = by_cause(error for each in classes for error in link.errors.get(each.size, ()))
    if not errors:
        return ""
    most = max(errors, key=lambda error: (error.count, error.last))
    newest = max(errors, key=lambda error: (error.last, error.count))
    tests = sum(each.streak or each.failed for each in classes)
    count = "" if tests == 1 else f"{format_count(most.count)} of them "
    if most.count == tests > 1:
        count = "all of them "
    words = f", {count}{cause_words(most, classes[0])}"
    return words if newest is most else f"{words}; the newest {cause_words(newest, classes[0])}"


def by_cause(errors: Iterable[CommonError]) -> list[CommonError]:
    """Add up the errors of several classes that have one cause."""
    whole: dict[tuple[str, str], CommonError] = {}
    for error in errors:
        key = error.where, error.cause or error.text
        before = whole.get(key, replace(error, count=0))
        newest = max(before, error, key=lambda each: each.last)
        whole[key] = replace(newest, count=before.count + error.count)
    return list(whole.values())


def cause_words(error: CommonError, direction: Direction) -> str:
    where = where_at(error.where, direction.source, direction.destination)
    return f"{where}: {shortened(error.text)}"
