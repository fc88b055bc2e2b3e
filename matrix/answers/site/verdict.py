"""How a site does now against its own past, in short sentences: what its page says first."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils.text import capfirst

from matrix.answers.words.phrases import counted, join, time_words
from matrix.statistics.cells.standing import FEWEST_SUCCESSES
from sonar.notation.units import format_count, format_factor

# The worst comes first; the page is coloured by it.
KINDS = ("failing", "slower", "faster", "usual", "unknown", "untested", "down", "none")
# Links that changed within this time are said to have changed together.
TOGETHER = timedelta(hours=12)
# So many links that fail are named, and of an end so many that shifted; more are counted.
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
class ShiftedLink:
    """A link that is slower or faster: its partner, now over usual, and since when in Unix s."""

    partner: str
    factor: float
    since: float


@dataclass(frozen=True)
class Shift:
    """The links of an end that are slower, or faster, than usual.

    ``links`` is how many, ``factor`` the median of now over usual, ``sites`` how many partners
    they lead to; ``first`` and ``last`` are when the first and the last changed, in Unix s.
    ``named`` are the links, the furthest from usual first, where they are few.
    """

    links: int
    factor: float
    sites: int
    first: float
    last: float
    named: tuple[ShiftedLink, ...] = ()


@dataclass(frozen=True)
class UsualLinks:
    """The links of an end against their usual rates: the median of ``links`` ratios.

    ``low`` to ``high`` is its 95 % interval; NaN for none.
    """

    links: int = 0
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class EndFacts:
    """What is known of the links of a site at one end; counts of links, ``sites`` of partners.

    ``tested`` have a result in the window, ``usual`` are as usual, ``failing_since`` is when the
    first of the ``failing`` began to fail, in Unix s. ``against_usual`` is of all that have both
    rates.
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
    against_usual: UsualLinks = field(default_factory=UsualLinks)

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
class LinksTested:
    """How many of the links of a site were tested in the window, and how many tests succeeded."""

    tested: int
    links: int
    ok: int
    tests: int

    @property
    def sentence(self) -> str:
        return (
            f"{of_number(self.ok, self.tests)} test{'s' * (self.tests != 1)} succeeded, on "
            f"{of_number(self.tested, self.links)} link{'s' * (self.links != 1)}."
        )


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

    def verdict(
        self,
        ends: Sequence[EndFacts],
        failing: Sequence[FailingLink],
        usual: int = 0,
        tested: LinksTested | None = None,
    ) -> SiteAnswer:
        """Say how the site does, the worst first; ``failing`` has each link that fails once.

        ``usual`` counts the links that are as usual, each once. ``tested`` are said where
        there is nothing yet to compare with.
        """
        kinds = {facts.kind for facts in ends}
        # Where all links of an end fail, that is said there.
        there = {facts.end for facts in ends if facts.kind == "failing"}
        left = [link for link in failing if there.isdisjoint(link.ends)]
        sentences = [
            *self.all_failing(ends, failing),
            *self.shifted(ends, "slower"),
            *self.failures(left, ends),
            *self.shifted(ends, "faster"),
            *self.as_usual(ends, usual, tested),
            *self.so_far(ends, tested),
            *self.nothing_known(ends),
        ]
        kind = "failing" if failing else min(kinds, key=KINDS.index)
        if self.is_past:
            sentences[0] = f"as of {self.time(self.moment.timestamp())}, {sentences[0]}"
        first, *rest = map(self.capital, sentences)
        return SiteAnswer(kind, first, " ".join(rest))

    def capital(self, sentence: str) -> str:
        """Begin with a capital letter; the name of a site stays as it is."""
        return sentence if sentence.startswith(self.name) else capfirst(sentence)

    def all_failing(
        self, ends: Sequence[EndFacts], failing: Sequence[FailingLink]
    ) -> Iterator[str]:
        """Say at which ends nothing comes through."""
        there = [facts for facts in ends if facts.kind == "failing"]
        if len(there) == len(ends):
            since = self.since(earliest(link.since for link in failing), len(failing), "")
            yield (
                f"{self.name} neither {self.does('source')} nor {self.does('destination')} "
                f"anything: all {format_count(len(failing))} tested links are failing{since}."
            )
            return
        for facts in there:
            since = self.since(facts.failing_since, facts.failing, "")
            links = f"all {format_count(facts.failing)} tested links are failing"
            if facts.failing == 1:
                links = "its only tested link is failing"
            yield f"{self.name} {self.does(facts.end)} nothing: {links}{since}."

    def shifted(self, ends: Sequence[EndFacts], level: str) -> Iterator[str]:
        """Name one or two links of an end that are slower or faster than usual; count more."""
        shifts = [(facts, getattr(facts, level)) for facts in ends if facts.kind != "failing"]
        parts = [part for facts, shift in shifts if shift for part in self.parts(facts, shift)]
        if parts:
            yield f"{level} than usual {join(parts)}."

    def parts(self, facts: EndFacts, shift: Shift) -> Iterator[str]:
        partners = VERBS[facts.end].partners
        if shift.named:
            for link in shift.named:
                since = self.since(link.since, 1)
                yield f"{partners} {link.partner} ({format_factor(link.factor)}{since})"
            return
        together = shift.last - shift.first <= TOGETHER.total_seconds()
        since = self.since(shift.first, 1 if together else shift.links)
        yield (
            f"{partners} {format_count(shift.sites)} of {counted(facts.sites, 'site')} "
            f"({format_factor(shift.factor)}{since})"
        )

    def failures(self, failing: Sequence[FailingLink], ends: Sequence[EndFacts]) -> Iterator[str]:
        """Name one or two links that fail; count more, by direction."""
        if not failing:
            return
        if len(failing) <= MOST_NAMED:
            named = join(f"{link.direction}{self.since(link.since, 1, '')}" for link in failing)
            verb = "link is" if len(failing) == 1 else "links are"
            yield f"{format_count(len(failing))} {verb} failing: {named}."
            return
        counts = [
            (sum(facts.end in link.ends for link in failing), facts)
            for facts in sorted(ends, key=lambda facts: facts.end)
        ]
        (count, facts), *more = [pair for pair in counts if pair[0]]
        first = f"{of_number(count, facts.links)} links {VERBS[facts.end].links} {self.name}"
        others = [
            f"{of_number(count, facts.links)} {VERBS[facts.end].links} it" for count, facts in more
        ]
        since = self.since(earliest(link.since for link in failing), len(failing), "")
        yield f"{join([first, *others])} are failing{since}."

    def as_usual(
        self, ends: Sequence[EndFacts], usual: int, tested: LinksTested | None
    ) -> Iterator[str]:
        """Say what is as usual: of a site without shifts at which factor, else how many links."""
        if any(facts.slower or facts.faster for facts in ends):
            links = "link is" if usual == 1 else "links are"
            if usual:
                yield f"{format_count(usual)} other {links} as usual."
            return
        there = [facts for facts in ends if facts.kind == "usual"]
        parts = [f"{self.does(facts.end)} at {self.factor(facts)}" for facts in reversed(there)]
        if parts:
            yield f"as usual: {join(parts)} of the usual rate."
            if tested and tested.links > 1:
                yield f"{of_number(usual, tested.links)} links are as usual."

    def factor(self, facts: EndFacts) -> str:
        """Write the median of the links of an end, with its interval and how many they are."""
        links = facts.against_usual
        count = counted(links.links, "link")
        if math.isnan(links.low):
            return f"{format_factor(links.ratio)} ({count})"
        factor = format_factor(links.ratio, links.low, links.high)
        return f"{factor.removesuffix(')')}, {count})"

    def so_far(self, ends: Sequence[EndFacts], tested: LinksTested | None) -> Iterator[str]:
        """Say what is known before any rate is usual."""
        kinds = {facts.kind for facts in ends}
        if tested and "unknown" in kinds and kinds <= {"unknown", "untested"}:
            yield tested.sentence

    def nothing_known(self, ends: Sequence[EndFacts]) -> Iterator[str]:
        """Say what is missing at an end, or at both."""
        kinds = [facts.kind for facts in ends]
        for kind, words in self.missing.items():
            if all(each == kind for each in kinds):
                yield words.format("to or from", self.name)
            elif kind in kinds:
                links = VERBS[ends[kinds.index(kind)].end].links
                yield words.format(links, self.name)

    @property
    def missing(self) -> dict[str, str]:
        return {
            "unknown": "the usual rates of links {} {} are not known yet: each takes "
            f"{FEWEST_SUCCESSES} successful tests before this window.",
            "untested": f"the links {{}} {{}} have no results with {self.size} files in this "
            "window.",
            "down": "all links {} {} are in a declared downtime.",
            "none": f"no link {{}} {{}} is tested with {self.size} files.",
        }

    def since(self, first: float, links: int, comma: str = ",") -> str:
        """Say since when: for several links, which need not have begun together, the longest."""
        if math.isnan(first):
            return ""
        return f"{', the longest' if links > 1 else comma} since {self.time(first)}"

    def time(self, unix: float) -> str:
        return time_words(unix, self.moment)

    def does(self, end: str) -> str:
        return VERBS[end].then if self.is_past else VERBS[end].now


def of_number(count: int, number: int) -> str:
    return f"{format_count(count)} of {format_count(number)}"


def earliest(moments: Iterable[float]) -> float:
    """Return the first of these moments in Unix s; NaN for none."""
    return min((moment for moment in moments if not math.isnan(moment)), default=math.nan)
