"""What each figure of a link's sentences has to be: its verdict, diagnosis, card and tile."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import exp, log
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from sonar.models import Downtime
from sonar.notation.units import factor_and_interval
from tests.matrix.facts_sql import Facts, LinkFacts, rows
from tests.matrix.sentences import (
    COUNT,
    NUMBER,
    PERCENT,
    SIZES,
    SPAN,
    TIME,
    Rule,
    at,
    close,
    close_all,
    constant,
    each_size,
    same,
    span,
)
from tests.matrix.world import NOW

CLASSES = ("small", "medium", "large")
WHERE = {
    "at the source": "source",
    "at the destination": "destination",
    "during the transfer": "transfer",
    "in Sonar itself": "control",
}
PLACE = rf"({'|'.join(WHERE)})(?:, (\w+))?"
LIST = rf"{NUMBER}(?:(?:, | and ){NUMBER})*"
FACTOR = rf"{NUMBER}×(?: \({NUMBER}–{NUMBER}\))?"
FACTORS = rf"(?:{SIZES}) {FACTOR}(?:, (?:{SIZES}) {FACTOR})*"
RATES_OF = rf"{NUMBER} MB/s with (?:{SIZES}) files"
# A condition in words, by its figures.
DONE = r"(?:runs|ran|sends|sent|receives|received|sends and receives|sent and received)"
BEGAN = rf"(?:(?:some time )?between ({TIME}) and )?({TIME})"
CONDITION = (
    rf"(?i)(?:{DONE} at ({NUMBER})× \(({NUMBER})–({NUMBER})\)|fails|failed|"
    rf"(?:has|had) no new results)"
    rf"[a-z ]*(?:, with ([a-z, ]+?) files)?(?:, on ({COUNT}) of ({COUNT}) links?)?"
    rf"(?:, (?:({COUNT}) of )?({COUNT}) tests?(?: failed)?)?,? (?:since|from) {BEGAN}"
    rf"(?: until ({TIME}))?"
)
# The same as a whole sentence, whose start comes before its figures.
SENTENCE = (
    rf"(?i)(?:(?:has|have) (?:been|had)|was|were|had) [a-z ]+?,? (?:since|from) "
    rf"{BEGAN}(?: until ({TIME}))?(?: UTC)?"
    rf"(?:, at ({NUMBER})× \(({NUMBER})–({NUMBER})\) of the baseline)?"
    rf"(?:, with ([a-z, ]+?) files)?(?:, on ({COUNT}) of ({COUNT}) links?)?"
    rf"(?:, (?:({COUNT}) of )?({COUNT}) tests?(?: failed)?)?"
)
# All that have a link as a member, with the counts of all their size classes.
CONDITIONS = """
    SELECT c.factor, c.factor_low, c.factor_high, array_to_string(c.size_classes, ','), c.links,
           c.of_links, sum(p.failed), sum(p.tests), c.since, c.since_low, c.since_high, c.ended_at,
           c.type, c.scope
    FROM sonar_condition c JOIN sonar_conditionpart p ON p.condition_id = c.id
    WHERE EXISTS (
        SELECT FROM sonar_conditionlink m JOIN sonar_conditionpart q ON q.id = m.part_id
        JOIN sonar_endpoint s ON s.id = m.source_id
        JOIN sonar_endpoint d ON d.id = m.destination_id
        WHERE q.condition_id = c.id AND s.name = %(source)s AND d.name = %(destination)s)
    GROUP BY c.id
    ORDER BY c.scope = 'link'
"""
BASELINES = """
    SELECT baseline / 1e6 FROM sonar_conditionlink m JOIN sonar_conditionpart p ON p.id = m.part_id
    JOIN sonar_endpoint s ON s.id = m.source_id JOIN sonar_endpoint d ON d.id = m.destination_id
    JOIN sonar_sizeclass c ON c.id = p.size_class_id
    WHERE s.name = %(source)s AND d.name = %(destination)s AND c.name = %(size)s
        AND baseline IS NOT NULL
"""
# The median rate of each link of a class with at least three successes in the window.
MEDIANS = """
    SELECT s.name, d.name, percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / seconds / 1e6)
    FROM sonar_transfer t JOIN sonar_endpoint s ON s.id = source_id
    JOIN sonar_endpoint d ON d.id = destination_id
    JOIN sonar_sizeclass c ON c.id = size_class_id
    WHERE state = 'done' AND c.name = %(size)s AND started_at >= %(start)s AND started_at < %(end)s
    GROUP BY 1, 2 HAVING count(*) >= %(fewest)s
"""


def medians(facts: Facts, size: str, fewest: int = 3) -> dict[tuple[str, str], float]:
    bounds = facts.bounds()
    found = rows(MEDIANS, size=size, start=bounds["start"], end=bounds["end"], fewest=fewest)
    return {(source, destination): rate for source, destination, rate in found}


def figures_of(m: re.Match[str]) -> list[str | None]:
    """Return the figures of a match of CONDITION or of SENTENCE, in the order of CONDITION."""
    groups = list(m.groups())
    return [*groups[3:], *groups[:3]] if m.re.pattern == SENTENCE else groups


def order_statistics(values: Sequence[float]) -> tuple[float, float]:
    """Return the widest pair of values, as far in as 95 % of the binomial distribution allow."""
    cut = int(stats.binom.ppf(0.025, len(values), 0.5))
    assert stats.binom.cdf(cut - 1, len(values), 0.5) <= 0.025
    ordered = sorted(values)
    return ordered[cut - 1], ordered[-cut]


@dataclass
class LinkRules:
    """The rules for one direction; ``size`` is the class of the page."""

    facts: Facts
    source: str
    destination: str
    size: str = "large"

    def __post_init__(self) -> None:
        there, back = (self.source, self.destination), (self.destination, self.source)
        self.there = {size: self.facts.of(*there, size) for size in CLASSES}
        self.back = {size: self.facts.of(*back, size) for size in CLASSES}
        self.medians = medians(self.facts, self.size)
        self.end = self.facts.bounds()["end"]
        self.conditions = {
            ends: [Known(*row) for row in rows(CONDITIONS, source=ends[0], destination=ends[1])]
            for ends in (there, back)
        }
        # Ages are as of now, or of the end of a window that is over.
        self.moment = min(self.facts.now, self.facts.window.end)

    @property
    def own(self) -> LinkFacts:
        return self.there[self.size]

    @property
    def open(self) -> list["Known"]:
        """Return what has the link as a member at the end of the window, its own last."""
        return [
            each
            for each in self.conditions[self.source, self.destination]
            if each.is_open(self.moment)
        ]

    def failing(self) -> list[dict[str, datetime]]:
        """Return since when errors may be told of which classes: of one condition, or of all."""
        failed = [size for size in CLASSES if self.there[size].failed and not self.there[size].ok]
        since = dict.fromkeys(failed, self.facts.window.start)
        failing = [each for each in self.open if each.type == "failing"]
        for each in failing:
            since |= dict.fromkeys(each.sizes, each.high)
        groups = [failed, *(each.sizes for each in failing), since]
        return [{size: since[size] for size in group} for group in groups]

    def usuals(self, size: str, *, back: bool = False) -> list[float]:
        """Return what may be usual with a class: of the days before, or before a condition."""
        ends = (self.destination, self.source) if back else (self.source, self.destination)
        found = rows(BASELINES, source=ends[0], destination=ends[1], size=size)
        return [(self.back if back else self.there)[size].usual, *(rate for (rate,) in found)]

    def verdict(self) -> list[Rule]:
        return [
            (rf"As of ({TIME}),", lambda m: at(m[1], self.facts.window.end)),
            (CONDITION, self.condition),
            (SENTENCE, self.condition),
            (
                rf"(Most often \(({COUNT}) of ({COUNT})\)|Each time|It failed)"
                rf"(?: until ({TIME}):)? {PLACE}: (.*?)\.(?: Now: {PLACE}: (.*?)\.)?(?= |$)",
                self.errors,
            ),
            (
                rf"latest three tests (?:failed with [a-z, ]+ files and )?ran at "
                rf"((?:{NUMBER}× the baseline with (?:{SIZES}) files(?:, | and )?)+)",
                self.far,
            ),
            (rf"Now ({LIST}) MB/s, usually ({LIST})\.", self.rates_of_some),
            (
                rf"needs 5 successful tests in the 28 days before this time range; there are "
                rf"((?:{COUNT} with (?:{SIZES}) files(?:, | and )?)+)",
                self.few,
            ),
            (
                rf"(?i)as usual: ({FACTORS})\. Now ({LIST}) MB/s, usually ({LIST})\.",
                lambda m: self.factors(m[1], m[2], m[3]),
            ),
            (rf"({COUNT}) of ({COUNT}) tests with ({SIZES}) files failed", self.partly),
            (
                rf"all ({COUNT}) tests with ({SIZES}) files",
                lambda m: same(m[1], self.there[m[2]].failed),
            ),
            (rf"no test since ({TIME}) \(({SPAN}) ago\)", self.stale),
            (
                rf"(?:Now|At that time|Before the downtime): "
                rf"({RATES_OF}(?:(?:, | and ){RATES_OF})*)",
                self.rates,
            ),
            (rf"in a declared downtime until ({TIME})", self.down),
            (
                rf"the last test was ({SPAN}) (?:ago|before its end), at ({TIME})",
                self.last_one,
            ),
            (rf"next test is (?:due now|overdue[^(]*) \(({TIME})", lambda m: at(m[1], NOW)),
            *self.whose(),
            (r"As of (\d\d:\d\d)", lambda m: self.assessed(m[1])),
            *constant(
                "Compare with the previous 7 days",
                r"Show the last \d+ (?:hours|days)",
            ),
        ]

    def condition(self, m: re.Match[str]) -> None:
        """Check that a condition of the link, or of its reverse, has all these figures."""
        known = [each for of_ends in self.conditions.values() for each in of_ends]
        assert any(each.is_said(*figures_of(m)) for each in known), (m[0], known)

    def fault(self, m: re.Match[str]) -> None:
        figures = (None, None, None, *m.groups(), None, None, None)
        assert any(each.is_said(*figures) for each in self.open), (m[0], self.open)

    def far(self, m: re.Match[str]) -> None:
        for factor, size in re.findall(rf"({NUMBER})× the baseline with ({SIZES})", m[1]):
            self.is_factor(factor, size)

    def is_factor(self, text: str, size: str) -> None:
        now = self.there[size].now
        assert any(is_close(text, now / usual) for usual in self.usuals(size)), (text, size)

    def few(self, m: re.Match[str]) -> None:
        bounds = self.facts.bounds()
        for count, size in re.findall(rf"({COUNT}) with ({SIZES})", m[1]):
            tests = self.facts.rates(self.source, self.destination, size)
            same(count, sum(bounds["first"] <= started < bounds["day"] for started, _ in tests))

    def rates_of_some(self, m: re.Match[str]) -> None:
        """Check rates now; usual is that before a condition, which the judge knows."""
        for text in re.findall(NUMBER, m[1]):
            assert any(is_close(text, each.now) for each in self.there.values()), m[0]

    def assessed(self, text: str) -> None:
        (found,) = rows("SELECT min(assessed_at) FROM sonar_assessment")
        assert text == f"{found[0]:%H:%M}"

    def errors(self, m: re.Match[str]) -> None:
        """Check counts, texts, ends and times of the most common error and of the newest."""
        groups = [group for group in self.failing() if group]
        for group in groups:
            with suppress(AssertionError):
                return self.errors_of(group, m)
        return self.errors_of(groups[-1], m)

    def errors_of(self, since: dict[str, datetime], m: re.Match[str]) -> None:
        counts: Counter[tuple[str, str]] = Counter()
        newest: dict[tuple[str, str], datetime] = {}
        for size, first in since.items():
            for where, error, count, last in self.facts.errors(
                self.source, self.destination, size, since=first
            ):
                counts[where, error] += count
                newest[where, error] = max(last, newest.get((where, error), last))
        total = sum(counts.values())
        latest = max(newest, key=lambda cause: newest[cause])
        how, count, of, until, place, name, text, *now = m.groups()
        most = WHERE[place], text
        self.named(place, name)
        assert counts[most] == max(counts.values())
        if count:
            same(count, counts[most])
            same(of, total)
        else:
            assert counts[most] == total
            assert (how == "It failed") == (total == 1)
        assert (until is not None) == (now[0] is not None)
        if until:
            at(until, newest[most])
            self.named(now[0], now[1])
            assert (WHERE[now[0]], now[2]) == latest
        else:
            assert most == latest

    def named(self, place: str, name: str | None) -> None:
        end = WHERE[place]
        names = {"source": self.source, "destination": self.destination}
        assert name == names.get(end)

    def factors(self, factors: str, now: str, usual: str) -> None:
        classes = each_size(factors)
        found = [self.there[size] for size in classes]
        for text, size in zip(re.findall(rf"({NUMBER})×", factors), classes, strict=True):
            self.is_factor(text, size)
        close_all(re.findall(NUMBER, now), [each.now for each in found])
        for text, size in zip(re.findall(NUMBER, usual), classes, strict=True):
            assert any(is_close(text, rate) for rate in self.usuals(size)), (text, size)

    def partly(self, m: re.Match[str]) -> None:
        same(m[1], self.there[m[3]].failed)
        same(m[2], self.there[m[3]].tests)

    def stale(self, m: re.Match[str]) -> None:
        last = max(last for each in self.there.values() if (last := each.last))
        at(m[1], last)
        span(m[2], self.moment - last)

    def last_one(self, m: re.Match[str]) -> None:
        """Check the newest result of the link, of whichever class and way it ended."""
        found = rows(
            """SELECT max(started_at) FROM sonar_transfer
               JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_endpoint d
                   ON d.id = destination_id
               WHERE s.name = %(source)s AND d.name = %(destination)s""",
            source=self.source,
            destination=self.destination,
        )
        span(m[1], self.moment - found[0][0])
        at(m[2], found[0][0])

    def rates(self, m: re.Match[str]) -> None:
        for rate, size in re.findall(rf"({NUMBER}) MB/s with ({SIZES})", m[1]):
            close(rate, self.there[size].now)

    def down(self, m: re.Match[str]) -> None:
        at(m[1], max(Downtime.objects.values_list("ends_at", flat=True)))

    def whose(self) -> list[Rule]:
        """Count tests on the other links of the ends, in the class of the page."""
        link = self.source, self.destination, self.size

        def counted(bad: str, tests: str, *ends: str) -> None:
            counts = [self.facts.elsewhere(end, *link) for end in ends]
            for text, of_ends in zip((bad, tests), zip(*counts, strict=True), strict=True):
                same(text, sum(of_ends))

        def one_end(m: re.Match[str]) -> None:
            assert m[3] == self.source or m[4] == self.destination
            counted(m[1], m[2], "source" if m[3] else "destination")

        opposite = {"source": "destination", "destination": "source"}
        failed = rf"\(({COUNT}) of ({COUNT}) tests failed\)"
        return [
            (
                rf"({COUNT}) of ({COUNT}) tests from (?:(\w+) to other destinations|other sources "
                r"to (\w+)) failed",
                one_end,
            ),
            (
                rf"also fails on other links: with ([a-z, ]+) files, on ({COUNT}) of ({COUNT}) "
                rf"links?, ({COUNT}) of ({COUNT}) tests? failed",
                self.fault,
            ),
            (
                r"refuses only this (source|destination); other links of the "
                rf"(?:source|destination) work {failed}",
                lambda m: counted(m[2], m[3], opposite[m[1]]),
            ),
            (
                rf"other links of both endpoints work {failed}",
                lambda m: counted(m[1], m[2], *opposite),
            ),
        ]

    def against_others(self) -> list[Rule]:
        pattern = (
            rf"other links of both endpoints in this time range: ({PERCENT}) of their rate "
            rf"\((?:({NUMBER})–({PERCENT}), )?({COUNT}) tests\)\. ({NUMBER}) MB/s with ({SIZES}) "
            rf"files\. {self.rate_pattern('source')}\. {self.rate_pattern('destination')}\."
        )

        def check_all(m: re.Match[str]) -> None:
            percent, low, high, count, own, size, *others = m.groups()
            elsewhere = min(self.elsewhere("source")[0], self.elsewhere("destination")[0])
            assert size == self.size
            close(percent, 100 * self.own.median / elsewhere)
            same(count, self.own.ok)
            close(own, self.own.median)
            self.check_rates(*others)
            rates = self.in_window()
            assert (low is None) == (len(rates) < 6)
            if low:
                bounds = order_statistics(rates)
                close_all((low, high), [100 * bound / elsewhere for bound in bounds])

        return [(pattern, check_all)]

    def in_window(self) -> list[float]:
        link = self.source, self.destination, self.size
        start = self.facts.window.start
        return [rate for started, rate in self.facts.rates(*link) if started >= start]

    def rate_pattern(self, end: str) -> str:
        verb, to, other = (
            ("sends", "to", "destination") if end == "source" else ("receives", "from", "source")
        )
        return rf"(\w+) {verb} ({NUMBER}) MB/s {to} ({COUNT}) other {other}s?"

    def check_rates(self, *others: str) -> None:
        """Check what both ends, or one of them, do on their other links: name, rate and number."""
        for name, rate, count in zip(*[iter(others)] * 3, strict=True):
            end = "source" if name == self.source else "destination"
            assert name in (self.source, self.destination)
            middle, partners = self.elsewhere(end)
            close(rate, middle)
            same(count, partners)

    def elsewhere(self, end: str) -> tuple[float, int]:
        """Return the median of the medians of an end's other links, and how many they are."""
        others = self.others(end, self.medians)
        return median(others), len(others)

    def others(self, end: str, values: Mapping[tuple[str, str], Any]) -> list[Any]:
        """Return what the other links of an end have."""
        own, at_end = (self.source, self.destination), 0 if end == "source" else 1
        of_end = {link: value for link, value in values.items() if link[at_end] == own[at_end]}
        return [value for link, value in of_end.items() if link != own]

    def diagnosis(self) -> list[Rule]:
        size_files = rf"({SIZES})-file tests failed"
        return [
            (CONDITION, self.condition),
            (SENTENCE, self.condition),
            (rf"All ({COUNT}) {size_files}", self.all_of_class),
            (rf"({COUNT}) of ({COUNT}) {size_files}", self.partly),
            *self.whose(),
            (
                rf"({COUNT}) of ({COUNT}) failures have the same error, {PLACE}: (.*?)\.(?= |$)",
                self.cause,
            ),
            (
                rf"({COUNT}) of ({COUNT}) failures were between (\d\d):00 and (\d\d):00 UTC, when "
                rf"({COUNT}) % of all tests ran",
                self.hours,
            ),
            (
                rf"slowed down \(({NUMBER})× \(({NUMBER})–({NUMBER})\)\), since {BEGAN}",
                lambda m: self.slowed(*m.groups()),
            ),
            (
                rf"({NUMBER}) MB/s now, usually ({NUMBER}) MB/s\.",
                lambda m: close(m[1], self.own.now) or self.is_usual(m[2]),
            ),
            *(
                (
                    rf"{self.rate_pattern(end)}"
                    rf"(?:; the rate of this link is ({NUMBER}) MB/s(?: \(n = ({COUNT})\))?)?",
                    self.end_and_link,
                )
                for end in ("source", "destination")
            ),
            (
                rf"Without this link, (\w+) (sends|receives) at ({PERCENT}) of the rate of its "
                rf"partners on other links \((?:({NUMBER})–({PERCENT}), )?({COUNT}) partners?\)",
                self.factor,
            ),
        ]

    def all_of_class(self, m: re.Match[str]) -> None:
        assert not self.there[m[2]].ok
        same(m[1], self.there[m[2]].failed)

    def cause(self, m: re.Match[str]) -> None:
        count, of, place, name, text = m.groups()
        link = self.source, self.destination, self.size
        errors = self.facts.errors(*link, since=self.facts.window.start)
        same(
            count, sum(n for where, error, n, _ in errors if (where, error) == (WHERE[place], text))
        )
        same(of, self.own.failed)
        assert name is None

    def hours(self, m: re.Match[str]) -> None:
        same(m[2], self.own.failed)
        assert (int(m[4]) - int(m[3])) % 24 == 6
        found = rows(
            """SELECT count(*) FILTER (WHERE state = 'failed'), count(*) FROM sonar_transfer t
               JOIN sonar_endpoint s ON s.id = source_id JOIN sonar_endpoint d
                   ON d.id = destination_id JOIN sonar_sizeclass c ON c.id = size_class_id
               WHERE s.name = %(source)s AND d.name = %(destination)s AND c.name = %(size)s
                 AND state <> 'lost' AND started_at >= %(start)s AND started_at < %(end)s
                 AND (extract(hour FROM started_at AT TIME ZONE 'UTC')::int - %(hour)s + 24) %% 24
                     < 6""",
            source=self.source,
            destination=self.destination,
            size=self.size,
            start=self.facts.window.start,
            end=self.end,
            hour=int(m[3]),
        )
        same(m[1], found[0][0])
        close(m[5], 100 * found[0][1] / self.own.tests)

    def slowed(self, factor: str, low: str, high: str, first: str | None, began: str) -> None:
        figures = (factor, low, high, *[None] * 5, first, began, None)
        own = [each for each in self.open if (each.scope, each.type) == ("link", "slow")]
        assert any(each.is_said(*figures) for each in own), (factor, own)

    def is_usual(self, text: str) -> None:
        assert any(is_close(text, rate) for rate in self.usuals(self.size)), text

    def end_and_link(self, m: re.Match[str]) -> None:
        self.check_rates(*m.groups()[:3])
        if m[4]:
            close(m[4], self.own.median)
        if m[5]:
            same(m[5], self.own.ok)

    def factor(self, m: re.Match[str]) -> None:
        """Compare an end with its peers: by the middle one of the others, partner by partner."""
        name, verb, percent, low, high, count = m.groups()
        at_end = 0 if verb == "sends" else 1
        logs = []
        for link, rate in self.medians.items():
            if link[at_end] != name or link == (self.source, self.destination):
                continue
            peers = [
                other
                for each, other in self.medians.items()
                if each[1 - at_end] == link[1 - at_end] and each[at_end] != name
            ]
            logs += [log(rate / median(peers))] if peers else []
        mean = float(np.mean(logs))
        close(percent, 100 * exp(mean))
        same(count, len(logs))
        if low:
            half = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
            close_all((low, high), [100 * exp(mean - half), 100 * exp(mean + half)])

    def card(self) -> list[Rule]:
        """Return the rules for the card of a cell, but for its lines by size class."""
        return [
            *constant(r"7 days, axis from 0 MB/s"),
            (CONDITION, self.condition),
            (SENTENCE, self.condition),
            (
                rf"The same error in all ({COUNT}) failed tests, {PLACE}: (.*)",
                lambda m: self.card_error(m[1], m[1], m[2], m[4]),
            ),
            (
                rf"The same error in ({COUNT}) of ({COUNT}) failed tests, {PLACE}: (.*)",
                lambda m: self.card_error(m[1], m[2], m[3], m[5]),
            ),
            (rf"Last error, ({TIME}), {PLACE}: (.*)", self.last_error),
            (
                rf"({SIZES}) ({NUMBER}|–) ({NUMBER}×|–) ([a-z ]+?)(?: for ({SPAN}))?"
                rf"(?= (?:{SIZES}|[A-Z]\w+)\b)",
                self.card_line,
            ),
        ]

    def card_error(self, count: str, of: str, place: str, text: str) -> None:
        link, since = (self.source, self.destination, self.size), self.failing()[-1][self.size]
        errors = self.facts.errors(*link, since=since)
        counts = {(where, error): n for where, error, n, _ in errors}
        same(count, counts[WHERE[place], text])
        assert counts[WHERE[place], text] == max(counts.values())
        same(of, sum(counts.values()))

    def last_error(self, m: re.Match[str]) -> None:
        link = self.source, self.destination, self.size
        errors = self.facts.errors(*link, since=self.facts.window.start)
        where, text, _, last = max(errors, key=lambda error: error[3])
        at(m[1], last)
        assert (WHERE[m[2]], m[4]) == (where, text)

    def card_line(self, m: re.Match[str]) -> None:
        size, now, ratio, words, lasting = m.groups()
        found = self.there[size]
        if now != "–":
            close(now, found.now)
        if ratio != "–":
            self.is_factor(ratio, size)
        if lasting:
            assert words.startswith(("failing", "slower", "faster"))
            spans = [self.moment - each.since for each in self.open if size in each.sizes]
            assert any(is_span(lasting, each) for each in spans), (lasting, size)

    def sizes(self) -> list[Rule]:
        """Return the rules for the rows of the size classes, and for that of the reverse."""
        now = rf"(?:({NUMBER})|fails|failed|down|–)"
        figures = (
            rf"{now}(?: baseline ({NUMBER}))?(?: ({NUMBER})×| ({COUNT}) of ({COUNT}) (ok|failed))?"
        )
        began = rf"(?: [a-z ]+ since ({TIME}))?(?:, last ({COUNT}) failed)?"
        return [
            (rf"reverse, ({SIZES}) {figures}{began}", partial(self.of_size, back=True)),
            (rf"({SIZES}) (?:{NUMBER} [kMG]?B )?{figures}{began}", self.of_size),
        ]

    def of_size(self, m: re.Match[str], *, back: bool = False) -> None:
        size, now, usual, ratio, count, of, what, since, streak = m.groups()
        found, usuals = (self.back if back else self.there)[size], self.usuals(size, back=back)
        if now:
            close(now, found.now)
        if usual:
            assert any(is_close(usual, rate) for rate in usuals), m[0]
        if ratio:
            assert any(is_close(ratio, found.now / rate) for rate in usuals), m[0]
        if count:
            same(count, found.ok if what == "ok" else found.failed)
            same(of, found.tests)
        if streak:
            same(streak, found.streak)
        if since:
            ends = (self.destination, self.source) if back else (self.source, self.destination)
            assert any(is_at(since, each.since) for each in self.conditions[ends]), m[0]


@dataclass(frozen=True)
class Known:
    """A condition as SQL has it."""

    factor: float | None
    low: float | None
    high_factor: float | None
    names: str
    links: int
    of_links: int
    failed: int
    tests: int
    since: datetime
    low_since: datetime
    high: datetime
    ended: datetime | None
    type: str
    scope: str

    @property
    def sizes(self) -> list[str]:
        return self.names.split(",")

    def is_open(self, moment: datetime) -> bool:
        return self.since <= moment and not (self.ended and self.ended <= moment)

    def is_said(self, *said: str | None) -> bool:
        """Say whether all figures of CONDITION that are said are its own."""
        factor, low, high, sizes, links, of_links, failed, tests, first, began, ended = said
        counts = (links, self.links), (of_links, self.of_links), (failed, self.failed)
        times = (first, self.low_since), (began, self.high if first else self.since)
        if factor:
            if self.factor is None:
                return False
            own = factor_and_interval(self.factor, self.low or 0.0, self.high_factor or 0.0)
            if own != (factor, f"{low}–{high}"):
                return False
        return (
            (not sizes or each_size(sizes) == self.sizes)
            and all(is_same(text, count) for text, count in counts if text)
            and (not tests or is_same(tests, self.tests))
            and all(is_at(text, moment) for text, moment in times if text)
            and (not ended or (self.ended is not None and is_at(ended, self.ended)))
        )


def holds(assertion: Callable[..., None], *values: Any) -> bool:
    try:
        assertion(*values)
    except AssertionError:
        return False
    return True


is_close, is_same, is_at, is_span = (partial(holds, each) for each in (close, same, at, span))
