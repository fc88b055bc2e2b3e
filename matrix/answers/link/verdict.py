"""How a link is now, in words: one sentence first, then what else is worth knowing of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isnan

from django.utils.text import capfirst

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import open_sizes
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
from matrix.statistics.cells.standing import FEWEST_SUCCESSES, USUAL_DAYS, USUAL_FACTOR
from matrix.statistics.cells.states import fail_partly
from matrix.store.transfers import CommonError
from sonar.models import Condition, Downtime
from sonar.notation.units import format_count, format_span, three_digits

Scope, Type = Condition.Scope, Condition.Type
TROUBLES = (Type.FAILING, Type.SLOW, Type.SILENT)


def with_state(classes: Iterable[Direction], state: str) -> list[Direction]:
    return [each for each in classes if each.state == state]


def with_level(classes: Iterable[Direction], level: str) -> list[Direction]:
    """Return the classes of a level of which fresh tests of the window say so."""
    return [each for each in with_state(classes, "measured") if each.level == level]


def rates_now(when: str, classes: Iterable[Direction]) -> str:
    """Say the rates that are known: `Now: 3.1 MB/s with small files.` Nothing for none."""
    rated = [each for each in classes if not isnan(each.now)]
    rates = [f"{three_digits(each.now)} MB/s with {each.size} files" for each in rated]
    return f"{when}: {join(rates)}." if rates else ""


def sizes(classes: Sequence[Direction]) -> str:
    return join(each.size for each in classes)


@dataclass(frozen=True)
class LinkNow:
    """All size classes of both directions, smallest first, as of the moment ``at``.

    ``conditions`` are those that were open then with this direction as a member, in the order of
    ordered(), ``of_reverse`` those of the other direction, and ``doubtful`` is that of the grid.
    ``errors`` are those of the classes that fail, by size; ``succeeded`` is when the newest success
    of the window started, by size. ``downtimes`` stop tests at that moment, and ``obstacle`` says
    what else its tests wait for. ``last`` is when the newest result of the link started, ever.
    ``is_past`` says that the window is over.
    """

    there: Sequence[Direction]
    back: Sequence[Direction]
    conditions: Sequence[Condition]
    of_reverse: Sequence[Condition]
    doubtful: Condition | None
    errors: Mapping[str, Sequence[CommonError]]
    succeeded: Mapping[str, datetime]
    at: datetime
    is_past: bool
    downtimes: Sequence[Downtime]
    obstacle: str
    last: datetime | None
    is_scheduled: bool
    is_filtered: bool


# A sentence, and the page that has more of it.
Said = tuple[str, str]


@dataclass(frozen=True)
class Verdict:
    """``kind`` is a state or a level, for the colour; ``headline`` says it in one sentence.

    ``why`` are the errors of what fails, ``links`` texts and addresses of who says so elsewhere.
    ``condition`` is that of the headline, if it is of one; ``also`` are the other conditions of
    the link, and ``unconfirmed`` those that may be chance.
    """

    kind: str
    headline: str
    rest: str = ""
    why: str = ""
    links: tuple[Said, ...] = ()
    condition: Condition | None = None
    also: tuple[Said, ...] = ()
    unconfirmed: tuple[Said, ...] = ()


def ordered(conditions: Iterable[Condition]) -> list[Condition]:
    """Return conditions as a link tells them: its own first, the worst first, fast ones last."""
    return sorted(
        conditions,
        key=lambda each: (
            each.type == Type.FAST,
            each.scope != Scope.LINK,
            -Type.values.index(each.type),
        ),
    )


def verdict_of(link: LinkNow) -> Verdict:
    """Say how a link is: first what is wrong with it for certain, then how it is otherwise."""
    said = next(verdict for case in CASES if (verdict := case(link)))
    grid = [link.doubtful] if link.doubtful and link.doubtful != said.condition else []
    doubtful = [(words.doubtful(each), words.url(each)) for each in grid]
    also, unsure = (
        [
            (link_words(each), words.url(each))
            for each in link.conditions
            if bool(each.confirmed_at) == is_sure and each != said.condition
        ]
        for is_sure in (True, False)
    )
    headline = said.headline
    if link.is_past:
        headline = f"As of {time_words(link.at.timestamp(), link.at)}, {lower_first(headline)}"
    return replace(said, headline=headline, also=(*doubtful, *also), unconfirmed=tuple(unsure))


def down(link: LinkNow) -> Verdict | None:
    if not link.downtimes or not any(each.state == "down" for each in link.there):
        return None
    first = max(link.downtimes, key=lambda downtime: downtime.ends_at)
    headline = (
        f"Down: {first.subject} is in a declared downtime {first.until_words}: "
        f"{first.reason.rstrip('.')}."
    )
    rest = rates_now("Before the downtime", link.there)
    if first.url:
        return Verdict("down", headline, rest, links=((f"Declared in {first.source}", first.url),))
    source = f"Declared in {first.source}." if first.source else ""
    return Verdict("down", headline, f"{source} {rest}".strip())


def changed(types: Sequence[str], link: LinkNow) -> Verdict | None:
    """Speak of the first confirmed condition of one of these types."""
    sure = [each for each in link.conditions if each.confirmed_at and each.type in types]
    if not sure:
        return None
    first = sure[0]
    classes = [each for each in link.there if each.size in open_sizes(first)]
    rest = sentences(against_usual(classes), others(link, classes, first), reverse(link))
    why = error_words(link, classes) if first.type == Type.FAILING else ""
    kind = KIND_OF[first.type]
    return Verdict(kind, link_words(first), rest, why, condition=first)


def link_words(condition: Condition) -> str:
    """Say a condition of a link in a sentence: its own in short, a wider one as what it is of."""
    is_own = condition.scope == Scope.LINK
    title = words.predicate(condition) if is_own else words.title(condition)
    said = ", ".join([title, *words.evidence(condition), words.since(condition)])
    if not condition.confirmed_at:
        return f"Unconfirmed: {said}."
    return f"{capfirst(said)}." if is_own else f"Part of: {said}."


def against_usual(classes: Sequence[Direction]) -> str:
    """Say the rates behind factors: `Now 3.49 and 7.36 MB/s, usually 8.20 and 15.3.`"""
    rated = [each for each in classes if each.state != "failing" and not isnan(each.ratio)]
    if not rated:
        return ""
    now, usual = (
        join(three_digits(getattr(each, name)) for each in rated) for name in ("now", "usual")
    )
    return f"Now {now} MB/s, usually {usual}."


def failed(link: LinkNow) -> Verdict | None:
    """Speak of classes of which every test failed, too few of them to be sure of a condition."""
    classes = with_state(link.there, "failed")
    if not classes:
        return None
    counts = [
        f"{'the only test' if each.failed == 1 else f'all {format_count(each.failed)} tests'} "
        f"with {each.size} files"
        for each in classes
    ]
    headline = f"Failed in this time range: {join(counts)}."
    rest = sentences(others(link, classes), reverse(link))
    return Verdict("failed", headline, rest, error_words(link, classes))


def stale(link: LinkNow) -> Verdict | None:
    """Speak of a link whose tests are all late; of one class that is, `others` does."""
    classes = with_state(link.there, "stale")
    if not classes or with_state(link.there, "measured"):
        return None
    last = datetime.fromtimestamp(max(each.last for each in classes), UTC)
    headline = (
        f"Unknown: no test since {time_words(last.timestamp(), link.at)} "
        f"({format_span(link.at - last)} ago), which is more than two intervals of the link's mesh."
    )
    rest = sentences(waiting(link), rates_now("At that time", classes), reverse(link))
    return Verdict("stale", headline, rest)


def waiting(link: LinkNow) -> str:
    return f"Tests are waiting because of {link.obstacle}." if link.obstacle else ""


def untested(link: LinkNow) -> Verdict | None:
    if any(each.tests for each in link.there):
        return None
    if link.is_filtered:
        headline = "Unknown: no result for this link in this time range matches the filters."
    elif link.last and link.last <= link.at:
        ago = format_span(link.at - link.last)
        when = f"{ago} before its end" if link.is_past else f"{ago} ago"
        headline = (
            f"No test in this time range: the last test was {when}, at "
            f"{time_words(link.last.timestamp(), link.at)}."
        )
    elif link.last:
        headline = "No test in this time range."
    elif link.is_scheduled:
        headline = "Not tested yet: the first test has not run."
    else:
        headline = "Not tested: no mesh includes this link, and it has no results."
    return Verdict("untested", headline, reverse(link))


def doubted(link: LinkNow) -> Verdict | None:
    """Speak of measurements that are doubtful, and of what may be wrong, before calm is said."""
    first = next((each for each in link.conditions if each.type in TROUBLES), link.doubtful)
    if first is None:
        return None
    rest = sentences(against_usual(link.there), some_failed(link.there), reverse(link))
    if link.doubtful:
        return Verdict("unknown", words.doubtful(link.doubtful), rest, condition=link.doubtful)
    why = error_words(link, link.there)
    return Verdict("unknown", link_words(first), rest, why, condition=first)


def far_from_usual(link: LinkNow) -> Verdict | None:
    """Speak of newest tests that failed or are far from usual though no condition says so."""
    far = [
        each
        for each in with_level(link.there, "usual")
        if not 1 / USUAL_FACTOR < each.ratio < USUAL_FACTOR
    ]
    # The newest three tests failed, and no condition is open.
    failed = [
        each
        for each in with_level(link.there, "unknown")
        if not (isnan(each.usual) or each.condition)
    ]
    if not (far or failed):
        return None
    parts = [f"failed with {sizes(failed)} files"] if failed else []
    if far:
        factors = join(f"{each.factor} the baseline with {each.size} files" for each in far)
        parts += [f"ran at {factors}"]
    rest = sentences(
        against_usual(far), others(link, far + failed), some_failed(link.there), reverse(link)
    )
    headline = f"Unknown: the latest three tests {' and '.join(parts)}. This may be due to chance."
    return Verdict("unknown", headline, rest, error_words(link, failed))


def usual(link: LinkNow) -> Verdict | None:
    classes = with_level(link.there, "usual")
    if not classes:
        return None
    factors = ", ".join(f"{each.size} {each.factor}" for each in classes)
    rest = sentences(
        against_usual(classes), others(link, classes), some_failed(link.there), reverse(link)
    )
    return Verdict("usual", f"As usual: {factors}.", rest)


def unknown(link: LinkNow) -> Verdict:
    """Say of which size classes there are too few tests, how many, and how many it takes."""
    planned = [each for each in link.there if each.state != "not_applicable"]
    few = [each for each in planned if isnan(each.usual)]
    headline = "Unknown: too few of the latest tests succeeded."
    if few:
        counts = join(f"{format_count(each.usual_count)} with {each.size} files" for each in few)
        headline = (
            f"Unknown: no baseline yet. A baseline needs {FEWEST_SUCCESSES} successful tests in "
            f"the {USUAL_DAYS} days before this time range; there are {counts}."
        )
    now = rates_now("Now", link.there)
    rest = sentences(waiting(link), now, some_failed(link.there), reverse(link))
    return Verdict("unknown", headline, rest)


CASES = (
    *(down, partial(changed, TROUBLES), failed, stale, untested),
    *(partial(changed, (Type.FAST,)), doubted, far_from_usual, usual, unknown),
)


def others(
    link: LinkNow, said: Sequence[Direction], condition: Condition | None = None
) -> list[str]:
    """Say how the classes are that neither the headline nor another condition speaks of."""
    of_conditions = {size for each in link.conditions for size in open_sizes(each)}
    rest = [
        each
        for each in link.there
        if each not in said and each.size not in of_conditions and each.tests
    ]
    as_usual, works = with_level(rest, "usual"), list[Direction]()
    new = [each for each in with_level(rest, "unknown") if isnan(each.usual)]
    if condition and condition.type == Type.FAILING:
        since = condition.since_high
        works = [each for each in rest if link.succeeded.get(each.size, since) > since]
        as_usual, new = [], []
    groups = {
        "{files} still work.": works,
        "{files} are as usual.": as_usual,
        "There is no baseline for {sizes} files yet.": new,
        "{files} have not been tested recently.": with_state(rest, "stale"),
        "{files} failed.": with_state(rest, "failed"),
    }
    return [
        text.format(files=capfirst(f"{sizes(group)} files"), sizes=sizes(group))
        for text, group in groups.items()
        if group
    ]


def some_failed(classes: Sequence[Direction]) -> list[str]:
    """Say how many tests failed where some came through, if they are a part worth a word."""
    return [
        f"{format_count(each.failed)} of {format_count(each.tests)} tests with {each.size} files "
        "failed in this time range."
        for each in classes
        if fail_partly(each.ok, each.failed, each.state == "failing")
    ]


def reverse(link: LinkNow) -> str:
    """Say how the other direction is, in a sentence; what is down is so in both directions."""
    back, sure, unsure = link.back, list[str](), list[str]()
    for each in link.of_reverse:
        said = f"is part of: {words.title(each)}"
        if each.scope == Scope.LINK:
            said = f"{words.predicate(each)}, with {join(each.size_classes)} files,"
        (sure if each.confirmed_at else unsure).append(f"{said} {words.since(each)}")
    if sure:
        return f"The reverse direction {sure[0]}."
    if failed := with_state(back, "failed"):
        too = ", too" if with_state(link.there, "failed") else ""
        return f"The reverse direction failed{too}, with {sizes(failed)} files."
    if unsure:
        return f"Unconfirmed: the reverse direction {unsure[0]}."
    is_stale = bool(with_state(back, "stale")) and not with_state(back, "measured")
    calm = {
        "The reverse direction was not tested in this time range.": not any(
            each.tests for each in back
        ),
        "The reverse direction has not been tested recently.": is_stale,
        "The reverse direction is as usual.": bool(with_level(back, "usual")),
        "The reverse direction has no baseline yet.": bool(with_level(back, "unknown")),
    }
    return next((sentence for sentence, holds in calm.items() if holds), "")


def error_words(link: LinkNow, classes: Sequence[Direction]) -> str:
    """Say the most common error of all classes, and as a whole the newest one if it differs."""
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
    tests = sum(error.count for error in errors)
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
