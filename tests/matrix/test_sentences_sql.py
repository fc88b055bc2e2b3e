"""Each figure that a sentence states is what plain SQL and numpy say of the transfers.

A digit that no rule explains fails: a new sentence with a figure needs its rule. Which links are
failing, slower or faster is taken from the stored conditions and the API: no rule says how that is
judged.
"""

import html as escapes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from math import exp, isnan, nan, sqrt
from statistics import median
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client
from scipy import stats

from matrix.answers.conditions import words as said
from matrix.pages.matrix.page import IN_RAIL
from matrix.query.matrix_query import MatrixQuery
from matrix.store import conditions as stored
from sonar.models import Condition, ConditionLink, ConditionPart
from tests.conditions import assessed_at, stored_condition
from tests.matrix import responses, troubled
from tests.matrix.facts_sql import Facts, LinkFacts, rows
from tests.matrix.link_rules import (
    BEGAN,
    CLASSES,
    CONDITIONS,
    SENTENCE,
    Known,
    LinkRules,
    figures_of,
    medians,
    order_statistics,
)
from tests.matrix.responses import words
from tests.matrix.sentences import (
    COUNT,
    NUMBER,
    PERCENT,
    SIZES,
    SPAN,
    TIME,
    Rule,
    at,
    check,
    close,
    close_all,
    constant,
    same,
    span,
    time_in,
)
from tests.matrix.troubled import TroubledGrid
from tests.matrix.world import NOW
from tests.scenes import standing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
WINDOWS = ("", "window=24h", "from=2026-11-17T09:00:00Z&to=2026-11-19T09:00:00Z")
# All windows and sizes of a grid, with a slow sender and without, in a downtime and in none.
SEEDS = (1, 2, 3)
Pair = tuple[str, str]
TYPES = {"failing": "failing", "slower": "slow", "faster": "fast"}
# What links are called by the types of conditions, the worst first.
KINDS = {type_: kind for kind, type_ in TYPES.items()}
# What a page has only where there is something to say.
OPTIONAL = ('id="against-others"', 'class="diagnosis"')


@dataclass(frozen=True)
class Asked:
    """A grid, the window in which it is looked at, and what SQL says of it."""

    client: Client
    grid: TroubledGrid
    text: str
    facts: Facts

    @property
    def end(self) -> Any:
        return self.facts.bounds()["end"]

    @property
    def moment(self) -> Any:
        return min(self.facts.now, self.facts.window.end)

    @property
    def pairs(self) -> list[Pair]:
        return sorted(self.grid.troubles)

    def page(self, path: str, **parameters: str) -> str:
        query = "&".join([*filter(None, [self.text]), *(f"{n}={v}" for n, v in parameters.items())])
        return responses.html(self.client, f"{path}?{query}".rstrip("?"), follow=True)

    def levels(self, size: str = "large") -> dict[Pair, dict[str, Any]]:
        """Return what the API calls each link."""
        path = f"/api/v1/links/?{self.text}&size={size}&page_size=1000"
        found = responses.answer(self.client, path.replace("?&", "?"))["links"]
        return {(row["source"]["name"], row["destination"]["name"]): row[size] for row in found}

    def conditions(self, size: str = "large") -> dict[Pair, Known]:
        """Return the condition of each link that has one at the end; none has more than one."""
        found = {}
        for source, destination in self.pairs:
            each = [Known(*row) for row in rows(CONDITIONS, source=source, destination=destination)]
            lasting = [known for known in each if known.is_open(self.moment)]
            assert len(lasting) <= 1
            if lasting and size in lasting[0].sizes:
                found[source, destination] = lasting[0]
        return found

    def of(self, pair: Pair, size: str = "large") -> LinkFacts:
        return self.facts.of(*pair, size)


@pytest.fixture(scope="module", params=SEEDS)
def drawn(request, django_db_setup, django_db_blocker) -> Iterator[tuple[TroubledGrid, str, Facts]]:
    """A grid of each seed, the window in which it is looked at, and what SQL says of it."""
    with standing(django_db_blocker, partial(draw, request.param)) as made:
        yield made


def draw(seed: int) -> tuple[TroubledGrid, str, Facts]:
    text = WINDOWS[seed % 3]
    window = MatrixQuery.from_params(QueryDict(text)).window_at(NOW)
    grid = troubled.make(seed)
    for (source, destination), trouble in grid.troubles.items():
        if type_ := TYPES.get(trouble.kind):
            factor = None if type_ == "failing" else trouble.factor
            stored_condition(
                type_,
                source=grid.ends[source],
                destination=grid.ends[destination],
                since=NOW - trouble.since,
                sizes=trouble.sizes,
                baseline=None,
                factor=factor,
                factor_low=factor and factor * 0.9,
                factor_high=factor and factor * 1.1,
            )
    assessed_at()
    return grid, text, Facts(window, NOW)


@pytest.fixture
def on(client, drawn) -> Asked:
    return Asked(client, *drawn)


def part(html: str, beginning: str, end: str) -> str:
    """Return the words between a mark, up to the end of its tag, and another."""
    assert beginning in html or beginning in OPTIONAL, beginning
    found = html.partition(beginning)[2].partition(">")[2].partition(end)[0]
    return escapes.unescape(words(found))


def said_levels(levels: dict[Pair, dict[str, Any]]) -> dict[Pair, str]:
    """Return the levels that count: what fails or is down is none."""
    return {
        pair: "unknown" if row["state"] in ("failing", "down") else row["level"]
        for pair, row in levels.items()
    }


@pytest.mark.long
def test_a_link_says_what_sql_says(on):
    """Its verdict, how it is among the links of its ends, its diagnosis, sizes and card."""
    kinds = set()
    for pair in chosen(on):
        kinds.add(on.grid.troubles[pair].kind)
        path, rules = f"/links/{'/'.join(pair)}/", LinkRules(on.facts, *pair)
        page = on.page(path)
        verdict = part(page, 'id="verdict"', "</div>")
        assert check(verdict, rules.verdict()) or not re.search(r"\d", verdict)
        check(part(page, 'id="against-others"', "</div>"), rules.against_others())
        check(part(page, 'class="diagnosis"', "</section>"), rules.diagnosis())
        rows = part(page, 'id="by-size"', "</table>")
        assert check(rows, rules.sizes()) >= len(CLASSES)
        if rules.open and "Down" not in verdict:
            assert re.match(r"As of .*, (part of|unc|f|r)|Part of|Unconfirmed|Fail|Run", verdict)
        assert check(card(on, path), rules.card())
    assert "failing" in kinds


def card(on: Asked, path: str) -> str:
    text = words(on.page(f"{path}card/")).replace(" UTC,", ",")
    return escapes.unescape(text)


def chosen(on: Asked) -> Iterator[Pair]:
    """Return two links of each kind of trouble at most."""
    seen: dict[str, int] = {}
    for pair in on.pairs:
        kind = on.grid.troubles[pair].kind
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 2:
            yield pair


def test_the_front_page_says_what_sql_says(on):
    page, levels, known = on.page("/"), on.levels(), on.conditions()
    assert known
    down = {pair for pair, row in levels.items() if row["state"] == "down"}
    expected = {pair: each.type for pair, each in known.items() if pair not in down}
    assert marked(levels) == expected
    heading = part(page, "<h1", "</h1>")
    named: list[Pair] = []
    check(
        heading,
        [
            (
                rf"(\w+) to (\w+) (fails|(?:runs|ran) at ({NUMBER})×) since {BEGAN}",
                lambda m: named.append(m.group(1, 2)) or is_named(known[m.group(1, 2)], m),
            ),
            (rf"and ({COUNT}) more", lambda m: same(m[1], len(known) - 3)),
            (rf"as of ({TIME})", lambda m: at(m[1], on.facts.window.end)),
        ],
    )
    assert named == worst_first(known)[:3]
    assert ("more" in heading) == (len(known) > 3)
    rail = page.partition('id="rail"')[2].partition("</aside>")[0]
    sections = {
        re.findall(r'class="ranked (\w+)"', section)[0]: section
        for section in re.findall(r"<section.*?</section>", rail, re.DOTALL)
    }
    assert {*sections} >= {KINDS[each.type] for each in known.values()}
    for kind, section in sections.items():
        check_rail(on, kind, section, levels)


def marked(levels: dict[Pair, dict[str, Any]]) -> dict[Pair, str]:
    """Return of which type the condition is that the API says of each link."""
    said_of = {
        pair: "failing" if row["state"] == "failing" else said_levels({pair: row})[pair]
        for pair, row in levels.items()
    }
    return {pair: TYPES[kind] for pair, kind in said_of.items() if kind in TYPES}


def is_named(each: Known, m: re.Match[str]) -> None:
    predicate, factor, first, began = m.groups()[2:]
    assert (predicate == "fails") == (each.type == "failing")
    is_said(each, m, *[None] * 8, first, began, None)
    if factor:
        close(factor, each.factor)


def worst_first(known: dict[Pair, Known]) -> list[Pair]:
    """Return the links of conditions by type, then the slowest and those that began last."""

    def rank(pair: Pair) -> tuple[float, ...]:
        each = known[pair]
        return [*KINDS].index(each.type), each.factor or 0, -each.since.timestamp()

    return sorted(known, key=rank)


def check_rail(on: Asked, kind: str, section: str, levels: dict[Pair, dict[str, Any]]) -> None:
    known = {pair: each for pair, each in on.conditions().items() if KINDS[each.type] == kind}
    heading = part(section, "<h2", "</h2>")
    items = re.findall(r"<li>.*?</li>", section, re.DOTALL)
    pairs = [re.findall(r'href="/links/(\w+)/(\w+)/', item)[0] for item in items]
    if kind in KINDS.values():
        assert pairs == worst_first(known)[: IN_RAIL.get(kind, 3)]
        check(heading, [(rf"({COUNT})$", lambda m: same(m[1], len(known)))])
    if kind == "failed":
        check(heading, [(rf"(?:all )?({COUNT})$", lambda m: same(m[1], failed_of(on, levels)))])
    for pair, item in zip(pairs, items, strict=True):
        link, back = on.of(pair), on.of(pair[::-1])
        text = escapes.unescape(words(item.partition("</a>")[2]))
        if pair in known:
            assert check(text, [*condition_rules(on, known[pair])]) == 2
            title = escapes.unescape(re.findall(r'class="why" title="([^"]*)"', item)[0])
            assert title.startswith("{} to {} ".format(*pair))
            assert check(title, [(SENTENCE, partial(is_condition, known[pair]))]) == 1
            continue
        check(text, [*item_rules(on, kind, link, back)])
        (last,) = re.findall(r'title="(?:[^"]*, )?last result ([^"]*) UTC"', item)
        assert link.last is None or time_in(last[:16], link.last) <= link.last.replace(tzinfo=None)


def failed_of(on: Asked, levels: dict[Pair, dict[str, Any]]) -> int:
    """Count the links that have failures only, and no condition that says so."""
    failing = [pair for pair, each in on.conditions().items() if each.type == "failing"]
    only_failed = [
        pair
        for pair in on.pairs
        if pair not in failing and on.of(pair).failed and not on.of(pair).ok
    ]
    return sum(levels[pair]["state"] == "failed" for pair in only_failed)


def condition_rules(on: Asked, each: Known) -> Iterator[Rule]:
    """Yield the rules for what the rail says of a condition: its figure, tests and beginning."""
    if each.factor is None:
        yield rf"^({SPAN})", lambda m: span(m[1], on.moment - each.since)
    else:
        yield rf"^({NUMBER})×", lambda m: close(m[1], each.factor)
    failed = rf"({COUNT}) of " if each.type == "failing" else "()"
    yield (
        rf" {failed}({COUNT}) tests?(?: failed)?, since {BEGAN}",
        lambda m: is_said(each, m, *[None] * 6, *m.groups(), None),
    )


def is_condition(each: Known, m: re.Match[str]) -> None:
    is_said(each, m, *figures_of(m))


def is_said(each: Known, m: re.Match[str], *figures: str | None) -> None:
    assert each.is_said(*figures), (m[0], each)


def item_rules(on: Asked, kind: str, link: LinkFacts, back: LinkFacts) -> Iterator[Rule]:
    """Yield the rules for what follows the names of a link in the rail."""
    if kind == "failed":
        yield rf"^({COUNT}) ", lambda m: same(m[1], link.failed)
        yield (
            rf"({COUNT}) ok, ({COUNT}) failed",
            lambda m: (same(m[1], link.ok), same(m[2], link.failed)),
        )
    if kind == "stale":
        yield rf"({SPAN})", lambda m: span(m[1], on.moment - link.last)
    if kind == "worst":
        yield rf"^({NUMBER}) ", lambda m: close(m[1], link.mean)
        yield (
            rf"({NUMBER}) MB/s, mean of ({COUNT}) tests?",
            lambda m: (close(m[1], link.mean), same(m[2], link.ok)),
        )
    if kind == "asymmetric":
        times = back.mean / link.mean
        # Whichever way round the factor is written.
        yield rf"^({NUMBER})×", lambda m: close(m[1], times if float(m[1]) > 1 else 1 / times)
        yield (
            rf"({NUMBER}) MB/s, ({NUMBER}) times slower than ({NUMBER}) MB/s",
            lambda m: close_all(m.groups(), [link.mean, times, back.mean]),
        )
        yield (
            rf"({NUMBER}) MB/s,.*?({NUMBER}) MB/s",
            lambda m: close_all(m.groups(), [link.mean, back.mean]),
        )


@pytest.mark.long
def test_a_site_says_what_sql_says(on):
    """Against its own past, against its peers, in figures, and why its links are slow."""
    levels, model = (
        {size: on.levels(size) for size in CLASSES},
        two_way(medians(on.facts, "large", 1)),
    )
    for name in sorted(on.grid.ends)[::2]:
        page, site = on.page(f"/sites/{name.removesuffix('_DISK')}/"), SiteRules(on, name, levels)
        answer = part(page, 'id="answer"', "</div>")
        assert check(answer, [*site.verdict(), *peer_rules(model, name)])
        for end in ("destination", "source"):
            figures = page.partition(f'aria-labelledby="as-{end}"')[2]
            assert check(part(figures, '<dl class="figures"', "</dl>"), site.figures(end)) >= 5
        for source, destination, text in diagnosed(page):
            check(text, LinkRules(on.facts, source, destination).diagnosis())


def diagnosed(page: str) -> Iterator[tuple[str, str, str]]:
    section = page.partition('class="diagnosis"')[2].partition("</section>")[0]
    for item in re.findall(r"<li>.*?</li>", section, re.DOTALL):
        ((source, destination),) = re.findall(r'href="/links/(\w+)/(\w+)/', item)
        yield source, destination, escapes.unescape(words(item.partition("</a>")[2]))


@dataclass
class SiteRules:
    """The rules for the answer of a site with one endpoint; ``levels`` by class."""

    on: Asked
    name: str
    levels: dict[str, dict[Pair, dict[str, Any]]]

    def pairs(self, end: str = "") -> list[Pair]:
        ends = {"source": (0,), "destination": (1,)}.get(end, (0, 1))
        return [pair for pair in self.on.pairs if any(pair[at] == self.name for at in ends)]

    def of_level(self, level: str, end: str = "", size: str = "large") -> list[Pair]:
        levels = said_levels(self.levels[size])
        return [pair for pair in self.pairs(end) if levels[pair] == level]

    def failing(self, end: str = "", size: str = "large") -> list[Pair]:
        levels = self.levels[size]
        return [pair for pair in self.pairs(end) if levels[pair]["state"] == "failing"]

    def verdict(self) -> list[Rule]:
        """Return the rules; what a condition says of itself is as the judge stored it."""
        return [
            *constant(*(pattern for each in stored.rows() for pattern in condition_words(each))),
            *constant(rf"as of {NOW:%H:%M} UTC", "Compare with the previous 7 days"),
            *constant(rf"{COUNT} more conditions?", rf"and {COUNT} more"),
            (rf"At ({TIME}):", lambda m: at(m[1], self.on.facts.window.end)),
            (
                rf"({COUNT})(?: of ({COUNT}) links?)? (?:is|are|has|have) (as usual|an unconfirmed "
                rf"condition|too few tests for an assessment|no tests? in this time range|in a "
                rf"declared downtime)(?: \(({COUNT}) of ({COUNT}) failed\))?",
                self.counted,
            ),
            (
                rf"(sends|sent|receives|received) at ({NUMBER})× "
                rf"\((?:({NUMBER})–({NUMBER}), )?({COUNT}) links?\)(?= (?:and|of the baseline))",
                self.as_usual,
            ),
            (
                rf"(?i)((?:{SIZES})(?: and (?:{SIZES}))?) files: ({COUNT}) of ({COUNT}) links as "
                "usual",
                self.class_news,
            ),
        ]

    def kind(self, pair: Pair) -> str:
        """Return how the answer counts a link without a condition; empty for one that has one."""
        row, facts = self.levels["large"][pair], self.on.of(pair)
        if row["state"] == "down":
            return "in a declared downtime"
        if row["state"] == "failing" or row["level"] in ("silent", "slower", "faster"):
            return ""
        if not facts.tests:
            return "no tests in this time range"
        return "as usual" if row["level"] == "usual" else "unknown"

    def counted(self, m: re.Match[str]) -> None:
        count, of_all, kind, failed, of_tests = m.groups()
        pairs = [*{*self.pairs("source"), *self.pairs("destination")}]
        if of_all:
            same(of_all, len(pairs))
        if kind in ("as usual", "no tests in this time range", "in a declared downtime"):
            same(count, sum(self.kind(pair) == kind for pair in pairs))
            return
        unknown = [pair for pair in pairs if self.kind(pair) == "unknown"]
        members = ConditionLink.objects.filter(
            part__in=open_parts(self.on.moment), part__condition__confirmed_at=None
        ).values_list("source__name", "destination__name")
        unsure = [pair for pair in unknown if pair in {*members}]
        shown = unsure if kind == "an unconfirmed condition" else [*{*unknown} - {*unsure}]
        same(count, len(shown))
        if failed:
            same(failed, sum(self.on.of(pair).failed for pair in shown))
            same(of_tests, sum(self.on.of(pair).tests for pair in shown))

    def ratios(self, end: str) -> list[float]:
        """Return now over usual of the links that have both, and not only failures since."""
        levels = self.levels["large"]
        found = [
            self.on.of(pair).ratio
            for pair in self.pairs(end)
            if levels[pair]["state"] not in ("failing", "failed")
        ]
        return [ratio for ratio in found if not isnan(ratio)]

    def as_usual(self, m: re.Match[str]) -> None:
        verb, ratio, low, high, count = m.groups()
        ratios = self.ratios("source" if verb.startswith("se") else "destination")
        close(ratio, median(ratios))
        same(count, len(ratios))
        assert (low is None) == (len(ratios) < 6)
        if low:
            close_all((low, high), order_statistics(ratios))

    def class_news(self, m: re.Match[str]) -> None:
        for size in re.findall(SIZES, m[1].lower()):
            same(m[2], len(self.of_level("usual", size=size)))
            same(m[3], len(self.pairs()))

    def figures(self, end: str) -> list[Rule]:
        links = [self.on.of(pair) for pair in self.pairs(end)]
        counts = {kind: len(self.of_level(kind, end)) for kind in ("slower", "faster")}
        ok, failed = sum(link.ok for link in links), sum(link.failed for link in links)
        # The rate of a link with too few tests for one of now is their mean.
        rates = [link.mean if isnan(link.now) else link.now for link in links]
        middles = [
            median([value for value in values if not isnan(value)] or [nan])
            for values in (rates, [link.usual for link in links])
        ]
        ratio = median(self.ratios(end) or [nan])
        return [
            (rf"({NUMBER})× ratio to baseline", lambda m: close(m[1], ratio)),
            (
                rf"({NUMBER}) MB/s \(median link\), baseline ({NUMBER})",
                lambda m: close_all(m.groups(), middles),
            ),
            (rf"({NUMBER}) MB/s \(median link\)", lambda m: close(m[1], middles[0])),
            (
                rf"({COUNT}) of ({COUNT}) links failing",
                lambda m: (same(m[1], len(self.failing(end))), same(m[2], len(links))),
            ),
            (rf"({COUNT}) links slower than usual", lambda m: same(m[1], counts["slower"])),
            (rf"({COUNT}) faster", lambda m: same(m[1], counts["faster"])),
            (
                rf"({COUNT}) of ({COUNT}) links? tested",
                lambda m: (
                    same(m[1], sum(link.tests > 0 for link in links)),
                    same(m[2], len(links)),
                ),
            ),
            (
                rf"({NUMBER}) % of ({COUNT}) tests? succeeded",
                lambda m: (share(m[1], ok / (ok + failed)), same(m[2], ok + failed)),
            ),
        ]


def share(text: str, value: float) -> None:
    """Assert a share in percent; only what is the whole is 100."""
    assert float(text) == (100 if value == 1 else min(round(100 * value), 99)), (text, value)


def condition_words(condition: Condition) -> Iterator[str]:
    """Yield patterns of what a condition says of itself, with its figures."""
    for text in (
        said.factor_words(condition),
        ", ".join([*said.evidence(condition), said.since(condition)]),
    ):
        if text:
            yield f"(?i){re.escape(text)}"


def open_parts(moment: Any) -> Any:
    return ConditionPart.objects.filter(stored.lasting_at(moment), size_class__name="large")


@dataclass(frozen=True)
class TwoWayFit:
    """``log rate = level + source + destination + rest``, by lstsq over dummies."""

    effects: dict[tuple[str, str], tuple[float, float]]
    partners: dict[tuple[str, str], int]
    dof: int
    sigma: float
    r2: float
    cells: int


def two_way(rates: dict[Pair, float]) -> TwoWayFit:
    """Fit the model to links that are all connected; effects are against all others of an end."""
    names = {
        end: sorted({pair[at] for pair in rates})
        for at, end in enumerate(("source", "destination"))
    }
    columns = [("source", name) for name in names["source"]]
    columns += [("destination", name) for name in names["destination"]]
    design = np.array(
        [
            [1.0, *(float(name == pair[end == "destination"]) for end, name in columns)]
            for pair in rates
        ]
    )
    logs = np.log(list(rates.values()))
    inverse = np.linalg.pinv(design.T @ design)
    solved = inverse @ design.T @ logs
    dof = len(logs) - np.linalg.matrix_rank(design)
    rest = logs - design @ solved
    sigma = sqrt(float(rest @ rest) / dof)
    effects = {}
    for end, of_end in names.items():
        own = [1 + columns.index((end, name)) for name in of_end]
        for name in of_end:
            contrast = np.zeros(len(solved))
            contrast[own] = -1 / (len(own) - 1)
            contrast[1 + columns.index((end, name))] = 1
            error = sigma * sqrt(float(contrast @ inverse @ contrast))
            effects[end, name] = float(contrast @ solved), error
    partners = {
        (end, name): sum(pair[end == "destination"] == name for pair in rates)
        for end, name in columns
    }
    spread = logs - logs.mean()
    r2 = 1 - float(rest @ rest) / float(spread @ spread)
    return TwoWayFit(effects, partners, int(dof), sigma, r2, len(logs))


def peer_rules(model: TwoWayFit, name: str) -> list[Rule]:
    """Return the rules for what a site, or an endpoint, does against its peers."""
    peers = "(?: of the rate of its partners on other links)?"
    factor = rf"({PERCENT}){peers} \((?:({NUMBER})–({PERCENT}), )?"

    def check_end(end: str, *texts: str) -> None:
        percent, low, high, count = texts
        effect, error = model.effects[end, name]
        half = stats.t.ppf(0.975, model.dof) * error
        close(percent, 100 * exp(effect))
        same(count, model.partners[end, name])
        close_all((low, high), [100 * exp(effect - half), 100 * exp(effect + half)])

    return [
        (rf"{verb} {factor}({COUNT}) partners?\)", lambda m, end=end: check_end(end, *m.groups()))
        for end, verb in (
            ("source", r"(?:sends at|Sending:)"),
            ("destination", r"(?:receives at|Receiving:)"),
        )
    ]


def test_causes_say_what_a_fit_by_numpy_says(on):
    model = two_way(medians(on.facts, "large", 1))
    page = on.page("/causes/")
    record = responses.answer(on.client, f"/api/v1/causes/?{on.text}")
    slow = {
        end: sum(effect["kind"] == "slow" for effect in record[f"{end}s"])
        for end in ("source", "destination")
    }
    check(
        part(page, "<h1", "</h1>"),
        [
            (
                rf"({COUNT}) conditions? (?:is|are) open",
                lambda m: same(m[1], open_parts(on.moment).count()),
            ),
            *(
                (rf"({COUNT}) {end}s?", lambda m, end=end: same(m[1], slow[end]))
                for end in ("source", "destination")
            ),
            (rf"explain ({COUNT}) % of", lambda m: share(m[1], model.r2)),
            (rf"between ({COUNT}) links", lambda m: same(m[1], model.cells)),
        ],
    )
    meaning = part(page, 'class="question rest"', "</p>")
    assert check(
        meaning.partition(". ")[2],
        [(rf"within a factor of ({NUMBER})", lambda m: close(m[1], exp(model.sigma)))],
    )
    findings = page.partition('aria-labelledby="findings"')[2].partition("</section>")[0]
    for sentence in re.findall(r'<p class="finding.*?</p>', findings, re.DOTALL):
        text = escapes.unescape(words(sentence))
        name = text.split()[0]
        assert check(text.removeprefix(name), peer_rules(model, name))


def test_a_table_has_the_figures_of_sql(on):
    page, levels, known = on.page("/table/", constant="1"), on.levels(), on.conditions()
    head, _, body = page.partition('<table class="links')[2].partition("<tbody")
    titles = re.findall(r"<th scope=\"col\".*?</th>", head, re.DOTALL)
    names = [words(title) for title in titles]
    lines = re.findall(r"<tr.*?</tr>", body.partition("</tbody>")[0], re.DOTALL)
    assert lines, names
    for line in lines:
        cells = [words(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", line, re.DOTALL)]
        row = dict(zip(names, cells, strict=True))
        (pair,) = set(re.findall(r'href="/links/(\w+)/(\w+)/', line))
        check_line(on, pair, row, levels[pair], known.get(pair))


def check_line(
    on: Asked, pair: Pair, row: dict[str, str], said: dict[str, Any], known: Known | None
) -> None:
    for size in CLASSES:
        link = on.of(pair, size)
        mean = re.findall(NUMBER, row[f"{size} files MB/s"])
        # The standard deviation of the other classes is only in the title of the cell.
        figures = (link.mean, link.std) if size == "large" else (link.mean,)
        close_all(mean, [value for value in figures if not isnan(value)])
        counts = re.findall(COUNT, row[f"{size} files ok {size} files + failed"])
        expected = [link.ok, link.failed] if link.failed else [link.ok] if link.ok else []
        assert list(map(int, counts)) == expected
    link = on.of(pair)
    for name, value in (("now", link.now), ("baseline", link.usual), ("ratio", link.ratio)):
        for text in re.findall(NUMBER, row[f"large files {name}"]):
            close(text, value)
    state = row["large files state large files (since)"]
    if known and said["state"] != "down":
        assert marked({pair: said}) == {pair: known.type}
        assert state.startswith(KINDS[known.type])
        began = (rf"since {BEGAN}", lambda m: is_said(known, m, *[None] * 8, *m.groups(), None))
        assert check(state, [began]) == 1
    elif not known:
        assert " since " not in state


def test_the_strip_counts_what_sql_counts(on):
    """Its titles are made of these counts by the hour: see tests/browser/test_time_strip.py."""
    strip = responses.answer(on.client, f"/api/v1/strip/?{on.text}&bucket=1h".replace("?&", "?"))
    buckets = strip["buckets"]
    counted = rows(
        """SELECT date_trunc('hour', started_at AT TIME ZONE 'UTC'), source_id, destination_id,
                  count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed')
           FROM sonar_transfer JOIN sonar_sizeclass c ON c.id = size_class_id
           WHERE c.name = 'large' AND state <> 'lost'
             AND started_at >= %(start)s AND started_at < %(end)s GROUP BY 1, 2, 3""",
        **{name: on.facts.bounds()[name] for name in ("start", "end")},
    )
    expected: dict[str, list[int]] = {}
    for hour, _, _, ok, failed in counted:
        of_hour = expected.setdefault(f"{hour:%Y-%m-%dT%H:%M:%SZ}", [0] * 5)
        added = (1, failed > 0, failed > 0 and not ok, ok, failed)
        expected[f"{hour:%Y-%m-%dT%H:%M:%SZ}"] = [
            a + b for a, b in zip(of_hour, added, strict=True)
        ]
    names = ("links", "failed_links", "all_failed_links", "ok", "failed")
    found = zip(buckets["start"], *(buckets[name] for name in names), strict=True)
    assert {start: counts for start, *counts in found if any(counts)} == expected


def test_a_figure_without_a_rule_fails():
    with pytest.raises(AssertionError, match="no rule explains"):
        check("All 3 tests failed, 4 of them twice.", [(r"All (\d+)", lambda m: same(m[1], 3))])
    for text, value in (("0.43", 0.436), ("12", 12.6), ("1.0", 1.06)):
        with pytest.raises(AssertionError):
            close(text, value)
    close("0.43", 0.4349)
    assert not check("Nothing.", [])


def test_moments_and_spans_are_read_as_they_are_written():
    at("20 Nov 12:00", NOW)
    at("20 Nov 12:00 UTC", NOW)
    span("30 h", timedelta(hours=30, minutes=59))
    with pytest.raises(AssertionError):
        at("20 Nov 12:01", NOW)
    with pytest.raises(AssertionError):
        span("30 h", timedelta(hours=31))
