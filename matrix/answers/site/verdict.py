"""What the page of a site says first: what changed there, and what is as usual.

What changed are conditions. The rest is counted of the links that they do not concern.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.text import capfirst

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KINDS, ConditionLine, of_class, worst_kind
from matrix.answers.conditions.reading import Judgement
from matrix.answers.site.reports import Report, median
from matrix.answers.site.site_links import SiteLink
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted, join, sentences
from matrix.statistics.cells.standing import FEWEST_SUCCESSES
from matrix.statistics.samples.quantiles import median_interval
from sonar.models import Condition
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import short_time

SCOPES = Condition.Scope
# As many conditions are said in full; more are counted.
MOST_SAID = 3


class Verb(NamedTuple):
    """What a site does at one end of its links, and the preposition of these."""

    now: str
    then: str
    links: str


VERBS = {
    "source": Verb("sends", "sent", "from"),
    "destination": Verb("receives", "received", "to"),
}
# Why nothing is said of the links of an end, or of both.
MISSING = {
    "unknown": "links {links} {site} have no baselines yet. A baseline needs "
    f"{FEWEST_SUCCESSES} successful tests before the time range.",
    "untested": "links {links} {site} have no results for {size} files in this time range.",
    "down": "all links {links} {site} are in declared downtimes.",
    "none": "no links {links} {site} are tested with {size} files.",
}
# What is counted of links without a condition, of one and of several.
COUNTED = {
    "usual": ("is as usual", "are as usual"),
    "unconfirmed": ("has an unconfirmed condition", "have an unconfirmed condition"),
    "unknown": ("has too few tests for an assessment", "have too few tests for an assessment"),
    "untested": ("has no tests in this time range", "have no tests in this time range"),
    "down": ("is in a declared downtime", "are in a declared downtime"),
}


def kind_of(link: SiteLink) -> str:
    """Return the one of KINDS that a link is: what conditions say of it, before all else."""
    if link.state in ("down", "failing"):
        return link.state
    if link.level in ("silent", "slower", "faster"):
        return link.level
    if not link.tests:
        return "untested"
    return "usual" if link.level == "usual" else "unknown"


@dataclass(frozen=True)
class ClassNews:
    """What is so with these size classes, in a few words; ``kind`` is one of KINDS."""

    kind: str
    words: str
    sizes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return f"{capfirst(join(self.sizes))} files: {self.words}."


@dataclass(frozen=True)
class SiteAnswer:
    """What is said of a site and a size class; ``kind`` is one of KINDS.

    ``lines`` say its own open ``conditions``, then what is as usual. Conditions of ``partners``
    that its links are members of are apart, and so are ``unconfirmed`` ones. ``others`` are the
    other size classes, the worst first.
    """

    kind: str
    lines: tuple[ConditionLine, ...]
    partners: tuple[ConditionLine, ...]
    unconfirmed: tuple[ConditionLine, ...]
    conditions: tuple[Condition, ...]
    others: tuple[ClassNews, ...] = ()

    @property
    def news(self) -> str:
        return self.lines[0].sentence

    @property
    def sentence(self) -> str:
        partners = ["Conditions at partner sites:", *(line.sentence for line in self.partners)]
        return sentences(
            [line.sentence for line in self.lines],
            partners if self.partners else "",
            [line.sentence for line in self.unconfirmed],
            [classes.sentence for classes in self.others],
        )


def is_own(condition: Condition, site: str) -> bool:
    """Say whether a condition is of a site, or an endpoint or link there, not of its partners."""
    ends = (condition.source, condition.destination)
    sites = [condition.site, *(end.site for end in ends if end)]
    return any(each is not None and each.name == site for each in sites)


def own_conditions(
    judgement: Judgement, site: str, size: str, *, confirmed: bool = True
) -> list[Condition]:
    own = of_class(judgement, size, confirmed=confirmed)
    return [each for each in own if is_own(each, site)]


def end_kind(conditions: Iterable[Condition], site: str, end: str) -> str:
    """Return the same of what a site does as source or destination, over all its links there."""
    scopes = (SCOPES.SITE, SCOPES.ENDPOINT, end)
    return worst_kind(each for each in conditions if each.scope in scopes and is_own(each, site))


def verdict_of(
    report: Report,
    ends: Mapping[str, Sequence[SiteLink]],
    judgement: Judgement,
    *,
    is_past: bool = False,
    names: Mapping[str, str] = NO_NAMES,
) -> SiteAnswer:
    """Say how a site does; a link within the site, which is at both ends, counts once.

    ``judgement`` has the conditions of its links at the end of the window. ``names`` are what
    sites and endpoints are called, where that is not their name.
    """

    def said(conditions: Sequence[Condition]) -> tuple[ConditionLine, ...]:
        lines = [ConditionLine.of(each, names) for each in conditions[:MOST_SAID]]
        if more := len(conditions) - len(lines):
            lines.append(ConditionLine(f"{counted(more, 'more condition')} on links of this site."))
        return tuple(lines)

    size = report.query.size
    own = own_conditions(judgement, report.name, size)
    partners = [each for each in of_class(judgement, size) if each not in own]
    unconfirmed = own_conditions(judgement, report.name, size, confirmed=False)
    every = {(link.source, link.destination): link for links in ends.values() for link in links}
    counts = Counter(map(kind_of, every.values()))
    is_judged = is_past or not (judgement.as_of is None or judgement.is_late)
    if own:
        kind = worst_kind(own)
    elif judgement.doubtful or unconfirmed or not is_judged or counts["unknown"] > counts["usual"]:
        kind = "unknown"
    else:
        kind = next((each for each in (*KINDS[4:], *KINDS[:4]) if counts[each]), "none")
    doubtful = judgement.doubtful and ConditionLine(words.doubtful(judgement.doubtful))
    if is_judged:
        unsure = [end for end in VERBS if end_kind(unconfirmed, report.name, end)]
        rest = ["No condition is confirmed yet."] * bool(unconfirmed and not own)
        rest += as_usual(report, ends, every.values(), unsure, names)
    else:
        has_tests = any(link.tests for link in every.values())
        rest = [f"{capfirst(words.as_of(judgement))}."]
        rest += [tests_words(every.values())] * has_tests
    lines = [*([doubtful] if doubtful else []), *said(own), *map(ConditionLine, rest)]
    first, *more = lines or [
        ConditionLine("All links of this site are affected by conditions at other sites.")
    ]
    if is_past:
        first = first._replace(title=f"At {short_time(report.moment)}: {first.title}")
    return SiteAnswer(kind, (first, *more), said(partners), said(unconfirmed), tuple(own))


def as_usual(
    report: Report,
    ends: Mapping[str, Sequence[SiteLink]],
    every: Collection[SiteLink],
    unsure: Collection[str],
    names: Mapping[str, str],
) -> Iterator[str]:
    """Say at which factor an end is as usual, and how many links are, or why that is unknown.

    An end with links that cannot be judged is not called as usual, and one that is ``unsure``.
    """
    kinds = {end: {kind_of(link) for link in ends[end]} for end in VERBS}
    missing = {
        end: min(of_end, key=KINDS.index, default="none")
        for end, of_end in kinds.items()
        if of_end <= MISSING.keys()
    }
    judged = [end for end in VERBS if end not in missing]
    parts = [
        f"{VERBS[end].now} at {factor_of(ends[end])}"
        for end in judged
        if end not in unsure and kinds[end] <= {"usual", "untested", "down"}
    ]
    if parts:
        yield f"As usual: {join(parts)} of the baseline."
    if len(set().union(*(kinds[end] for end in judged))) > 1 and (
        counts := list(count_words(every))
    ):
        yield f"{join(counts)}."
    elif not judged and "unknown" in missing.values():
        yield tests_words(every)
    for kind, text in MISSING.items():
        of_kind = [VERBS[end].links for end, why in reversed(missing.items()) if why == kind]
        if of_kind:
            site = names.get(report.name, report.name)
            sentence = text.format(links=" or ".join(of_kind), site=site, size=report.query.size)
            yield capfirst(sentence)


def tests_words(links: Collection[SiteLink]) -> str:
    """Say how many tests succeeded, and on how many links: all that is known before a judgement."""
    tests, ok = sum(link.tests for link in links), sum(link.ok for link in links)
    tested = of_number(sum(link.tests > 0 for link in links), len(links))
    return (
        f"{of_number(ok, tests)} test{'s' * (tests != 1)} succeeded, on {tested} "
        f"link{'s' * (len(links) != 1)}."
    )


def count_words(links: Collection[SiteLink]) -> Iterator[str]:
    """Count the links without a condition: `9 of 12 links are as usual`, `2 have no test ...`."""
    kinds: dict[str, list[SiteLink]] = {kind: [] for kind in (*KINDS, "unconfirmed")}
    for link in links:
        kind = kind_of(link)
        kinds["unconfirmed" if kind == "unknown" and link.unconfirmed else kind].append(link)
    of_all = f" of {counted(len(links), 'link')}"
    for kind, texts in COUNTED.items():
        if of_kind := kinds[kind]:
            failed = sum(link.failed for link in of_kind) if kind == "unknown" else 0
            failures = f" ({of_number(failed, sum(link.tests for link in of_kind))} failed)"
            text = f"{format_count(len(of_kind))}{of_all} {texts[len(of_kind) != 1]}"
            yield text + failures * bool(failed)
            of_all = ""


def factor_of(links: Iterable[SiteLink]) -> str:
    """Write the median of the links against their usual, with its interval and how many are."""
    ratios = [link.ratio for link in links if link.is_judged]
    low, high = median_interval(ratios)
    count = counted(len(ratios), "link")
    if math.isnan(low):
        return f"{format_factor(median(ratios))} ({count})"
    return f"{format_factor(median(ratios), low, high).removesuffix(')')}, {count})"


def of_number(count: int, number: int) -> str:
    return f"{format_count(count)} of {format_count(number)}"
