"""How a site does now, in one sentence: what its page says first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.utils.text import capfirst

from matrix.answers.link.class_words import join
from sonar.units import format_count, format_factor

# The worst comes first; the page is coloured by it.
KINDS = ("failing", "slower", "faster", "usual", "unknown", "untested", "down", "none")
# Links that changed within this time are said to have changed together.
TOGETHER = timedelta(hours=12)
OLD = timedelta(days=180)
# So many links that fail are named, more are counted.
MOST_NAMED = 2


class Verb(NamedTuple):
    """What a site does at one end of its links; ``partners`` and ``links`` stand behind it."""

    now: str
    then: str
    partners: str
    links: str


VERBS = {
    "source": Verb("sends", "sent", "to", "from"),
    "destination": Verb("receives", "received", "from", "to"),
}


@dataclass(frozen=True)
class Shift:
    """The links of an end that are slower, or faster, than usual.

    ``links`` is how many, ``factor`` the median of now over usual, ``sites`` how many partners
    they lead to; ``first`` and ``last`` are when the first and the last changed, in Unix s.
    """

    links: int
    factor: float
    sites: int
    first: float
    last: float


@dataclass(frozen=True)
class EndFacts:
    """What is known of the links of a site at one end; counts of links, ``sites`` of partners.

    ``tested`` have a result in the window, ``usual`` are as usual, ``failing_since`` is when the
    first of the ``failing`` began to fail, in Unix s.
    """

    end: str
    links: int = 0
    sites: int = 0
    tested: int = 0
    down: int = 0
    failing: int = 0
    failing_since: float = math.nan
    usual: int = 0
    slower: Shift | None = None
    faster: Shift | None = None

    @property
    def kind(self) -> str:
        """Return the one of KINDS that says most."""
        if not self.links:
            return "none"
        if self.down == self.links:
            return "down"
        if not self.tested and not self.failing:
            return "untested"
        if self.failing and self.failing >= self.tested:
            return "failing"
        if self.slower or self.faster:
            return "slower" if self.slower else "faster"
        return "usual" if self.usual else "unknown"


@dataclass(frozen=True)
class FailingLink:
    """A link of a site that fails: at which ends it is the site's, within the site at both.

    ``partner`` is the site at its other end, ``since`` when it began to fail, in Unix s.
    """

    ends: tuple[str, ...]
    partner: str
    since: float = math.nan

    @property
    def direction(self) -> str:
        """Say where it leads: `to OX`, `from OX`."""
        if len(self.ends) > 1:
            return "within the site"
        return f"{VERBS[self.ends[0]].partners} {self.partner}"


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
    """``kind`` is one of KINDS; ``news`` is what is most wrong, ``rest`` what else is so.

    ``others`` are the other size classes, the worst first.
    """

    kind: str
    news: str
    rest: str = ""
    others: tuple[ClassNews, ...] = ()

    @property
    def sentence(self) -> str:
        parts = self.news, self.rest, *(classes.sentence for classes in self.others)
        return " ".join(filter(None, parts))


@dataclass(frozen=True)
class Speaker:
    """Writes the sentences on a site and a size class as of a moment.

    ``is_past`` says that the window is over.
    """

    name: str
    size: str
    moment: datetime
    is_past: bool = False

    def verdict(self, ends: Sequence[EndFacts], failing: Sequence[FailingLink]) -> SiteAnswer:
        """Say how the site does, the worst first; ``failing`` has each link that fails once."""
        first, second = sorted(ends, key=lambda facts: KINDS.index(facts.kind))
        # Where all links of an end fail, that is said there.
        there = {facts.end for facts in ends if facts.kind == "failing"}
        left = [link for link in failing if there.isdisjoint(link.ends)]
        failures = f"{self.failures(left, ends)}." if left else ""
        if first.kind == second.kind and first.kind not in ("slower", "faster"):
            news, rest = f"{self.both(first.kind, failing)}.", ""
        else:
            news = f"{self.clause(first, self.name)};"
            rest = f"{self.clause(second, 'it')}."
        if not failures:
            return SiteAnswer(first.kind, self.begun(news), rest)
        if first.kind in ("failing", "slower"):
            return SiteAnswer("failing", self.begun(news), f"{rest} {failures}".lstrip())
        return SiteAnswer("failing", self.begun(failures), f"{capfirst(news)} {rest}".rstrip())

    def begun(self, news: str) -> str:
        """Begin the first sentence; of a window that is over, with as of when."""
        if not self.is_past:
            return capfirst(news)
        return f"As of {self.time(self.moment.timestamp())}: {news}"

    def failures(self, failing: Sequence[FailingLink], ends: Sequence[EndFacts]) -> str:
        """Name one or two links that fail; count more, by direction."""
        if len(failing) <= MOST_NAMED:
            named = join(f"{link.direction}{self.since(link.since, 1)}" for link in failing)
            return f"{format_count(len(failing))} link{'s' * (len(failing) != 1)} failing, {named}"
        counts = [
            (sum(facts.end in link.ends for link in failing), facts)
            for facts in sorted(ends, key=lambda facts: facts.end)
        ]
        (count, facts), *more = [pair for pair in counts if pair[0]]
        first = f"{of_all(count, facts)} links {VERBS[facts.end].links} {self.name}"
        others = [f"{of_all(count, facts)} {VERBS[facts.end].links} it" for count, facts in more]
        since = self.since(earliest(link.since for link in failing), len(failing))
        return f"{join([first, *others])} failing{since}"

    def since(self, first: float, links: int) -> str:
        """Say since when: for several links, which need not have begun together, the longest."""
        if math.isnan(first):
            return ""
        return f"{', the longest' * (links > 1)} since {self.time(first)}"

    def time(self, unix: float) -> str:
        return f"{time_words(unix, self.moment)} UTC"

    @property
    def within(self) -> str:
        return f"with {self.size} files in this window"

    def does(self, end: str) -> str:
        return VERBS[end].then if self.is_past else VERBS[end].now

    def clause(self, facts: EndFacts, subject: str) -> str:
        """Say how the site does at one end."""
        does, links = self.does(facts.end), VERBS[facts.end].links
        own = "it" if subject == "it" else self.name
        shift = facts.slower or facts.faster
        if facts.kind in ("slower", "faster") and shift:
            has = "had" if self.is_past else "has"
            return f"{subject} {has} {VERBS[facts.end].then} {self.shifted(facts, shift)}"
        if facts.kind == "failing":
            return f"{subject} {does} nothing: {self.all_failing(facts)}"
        return {
            "usual": f"{subject} {does} as usual",
            "unknown": f"the links {links} {own} have no usual rate to compare with yet",
            "untested": f"the links {links} {own} have no results {self.within}",
            "down": f"all links {links} {own} are in a declared downtime",
            "none": f"no link {links} {own} is tested with {self.size} files",
        }[facts.kind]

    def shifted(self, facts: EndFacts, shift: Shift) -> str:
        together = shift.last - shift.first <= TOGETHER.total_seconds()
        since = self.since(shift.first, 1 if together else shift.links)
        partners = (
            f"{VERBS[facts.end].partners} {format_count(shift.sites)} of {sites(facts.sites)}"
        )
        return f"{partners} at {format_factor(shift.factor)} the usual rate{since}"

    def all_failing(self, facts: EndFacts) -> str:
        since = self.since(facts.failing_since, facts.failing)
        if facts.failing == 1:
            return f"its only tested link has been failing{since}"
        return f"all {format_count(facts.failing)} tested links are failing{since}"

    def both(self, kind: str, failing: Sequence[FailingLink]) -> str:
        """Say in one clause what is the same at both ends."""
        since = self.since(earliest(link.since for link in failing), len(failing))
        doing = f"{self.does('source')} and {self.does('destination')}"
        return {
            "failing": f"{self.name} neither {self.does('source')} nor {self.does('destination')} "
            f"anything: all its {format_count(len(failing))} tested links are failing{since}",
            "usual": f"{self.name} {doing} as usual",
            "unknown": f"{self.name} {doing}, and has no usual rates to compare with yet",
            "untested": f"the links of {self.name} have no results {self.within}",
            "down": f"all links of {self.name} are in a declared downtime",
            "none": f"no link of {self.name} is tested with {self.size} files",
        }[kind]


def of_all(count: int, facts: EndFacts) -> str:
    return f"{format_count(count)} of {format_count(facts.links)}"


def earliest(moments: Iterable[float]) -> float:
    """Return the first of these moments in Unix s; NaN for none."""
    return min((moment for moment in moments if not math.isnan(moment)), default=math.nan)


def time_words(unix: float, moment: datetime) -> str:
    """Write a time (UTC) as somebody on shift says it, with the year where it is long ago."""
    then = datetime.fromtimestamp(unix, UTC)
    year = f" {then.year}" if abs(moment - then) > OLD else ""
    return f"{then:%a} {then.day} {then:%b}{year} {then:%H:%M}"


def sites(count: int) -> str:
    return f"{format_count(count)} site{'s' * (count != 1)}"
