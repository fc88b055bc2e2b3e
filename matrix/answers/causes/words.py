"""What an attribution says, in sentences that can be quoted: value, interval and n."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from matrix.answers.causes.attribution import (
    ENDS,
    KINDS,
    NOTABLE,
    Attribution,
    EndEffect,
    LinkRest,
    attribute,
)
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.phrases import counted, join
from matrix.query.catalogue import RATE
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.statistics.estimates.two_way import TwoWay
from sonar.notation.units import (
    format_chance,
    format_count,
    format_factor,
    format_share,
    three_digits,
    two_digits,
)

# Predicted from all the others, so much of the differences between links lies at their ends.
MOSTLY_ENDS, PARTLY_ENDS = 0.6, 0.3
VERBS = {"source": "sends", "destination": "receives"}
DOING = {"source": "Sending", "destination": "Receiving"}
ELSEWHERE = "the rate of its partners on other links"
CHANGED_ELSEWHERE = "the change in the rates of its partners on other links"
NOTABLE_KINDS = ("slow", "fast")
# How a site compares with its peers, by the kind of EndEffect that says most.
AGAINST_PEERS = {
    "slow": "Slow compared with its peers",
    "fast": "Fast compared with its peers",
    "usual": "Similar to its peers",
    "unclear": "Not significantly different from its peers",
}
UNCOMPARED = "Not compared with its peers: too few other links have results."


@dataclass(frozen=True)
class Conclusion:
    """What is so of a group, in sentences; ``kind`` is one of KINDS.

    ``first`` has what says most, ``rest`` its other end. ``effects`` are those that are notable.
    """

    name: str
    site: str
    kind: str
    first: str
    rest: str
    effects: tuple[EndEffect, ...]

    @property
    def sentence(self) -> str:
        return f"{self.first} {self.rest}".strip()


def conclusions(attribution: Attribution) -> list[Conclusion]:
    """Say what stands out at each end, what is furthest below its peers first.

    Where sources and destinations are of two kinds, nothing is at both ends.
    """
    query = attribution.grid.query
    alike = query.rows == query.columns
    by_name: dict[tuple[str, str], dict[str, EndEffect]] = {}
    for end in ENDS:
        for effect in attribution.effects[end]:
            by_name.setdefault((effect.group.name, "" if alike else end), {})[end] = effect
    short = attribution.grid.short_names()
    notable = [
        conclusion(name, of_ends, short[name], alike=alike)
        for (name, _), of_ends in by_name.items()
        if any(effect.kind in NOTABLE_KINDS for effect in of_ends.values())
    ]

    def rank(said: Conclusion) -> tuple[bool, float]:
        factors = [effect.factor for effect in said.effects]
        return said.kind != "slow", min(factors) if said.kind == "slow" else -max(factors)

    return sorted(notable, key=rank)


def conclusion(
    name: str, of_ends: dict[str, EndEffect], subject: str, *, alike: bool = True
) -> Conclusion:
    """Say what a group does at both ends, what is slow or else fast there first.

    ``subject`` begins the first sentence. ``alike`` says whether sources and destinations are of
    one kind. At least one end has a factor.
    """
    present = [effect for effect in of_ends.values() if not math.isnan(effect.factor)]
    first, *more = sorted(present, key=lambda effect: (KINDS.index(effect.kind), effect.factor))
    sentences = []
    for effect in more:
        count = counted(effect.partners, "partner")
        said = f"too few partners ({count})"
        if effect.kind != "unknown":
            evidence = evidence_words(effect.low, effect.high, effect.partners)
            said = f"{percent(effect.factor)} ({evidence})"
        sentences.append(f"{DOING[effect.end]}: {said}.")
    if alike and not more:
        sentences += [f"No results as a {end}." for end in ENDS if end != first.end]
    return Conclusion(
        name,
        first.group.site or "",
        first.kind,
        f"{subject} {VERBS[first.end]} at {percent(first.factor)} of {ELSEWHERE} "
        f"({evidence_words(first.low, first.high, first.partners)}).",
        " ".join(sentences),
        tuple(effect for effect in present if effect.kind in NOTABLE_KINDS),
    )


def evidence_words(low: float, high: float, count: int) -> str:
    """Write the interval of a factor, if it has one, and how many partners are behind it."""
    if math.isnan(low):
        return counted(count, "partner")
    return f"{two_digits(100 * low)}–{percent(high)}, {counted(count, 'partner')}"


def percent(factor: float) -> str:
    """Write a factor in percent with two digits: 4.6 %, 83 %, 128 %."""
    return f"{two_digits(100 * factor)} %"


def site_conclusion(sites: Grid, name: str) -> Conclusion:
    """Say how a site is against its peers, in a matrix of sites with the extra `median`."""
    causes = attribute(sites, values=sites.cells.extras["median"])
    of_ends = {
        end: effect
        for end in ENDS
        for effect in causes.effects[end]
        if effect.group.name == name and not math.isnan(effect.factor)
    }
    compared = [effect for effect in of_ends.values() if effect.kind != "unknown"]
    if not compared:
        return Conclusion(name, name, "unknown", UNCOMPARED, "", ())
    # A site that is far from its peers, but not significantly, is not called similar.
    is_close = all(1 / NOTABLE < effect.factor < NOTABLE for effect in compared)
    kinds = {effect.kind for effect in compared}
    notable = [kind for kind in NOTABLE_KINDS if kind in kinds]
    kind = next(iter(notable), "usual" if is_close else "unclear")
    return conclusion(name, of_ends, f"{AGAINST_PEERS[kind]}:")


def off_model(attribution: Attribution) -> str:
    """Say how many links deviate significantly from what their ends explain."""
    count, of = int(attribution.discoveries.sum()), counted(attribution.model.cells, "link")
    if not count:
        return f"None of the {of} deviates significantly. The largest deviations come first."
    deviate = f"{format_count(count)} of {of} {'deviates' if count == 1 else 'deviate'}"
    return f"{deviate} significantly. The largest deviations come first."


def link_sentence(link: LinkRest, *, ratios: bool, short: Mapping[str, str]) -> str:
    """Say how far a link is off what both its ends explain; of ``ratios``, how it changed."""
    rate, predicted = (
        format_factor(value) if ratios else f"{three_digits(value)} {RATE.name}"
        for value in (link.rate, link.predicted)
    )
    source, destination = short[link.source.name], short[link.destination.name]
    evidence = f"n = {counted(link.tests, 'test')}"
    if not math.isnan(link.p):
        evidence += f", {format_chance(link.p)}"
    factor = f"{format_factor(link.factor)} the predicted {predicted}"
    return f"{source} → {destination}: {rate}, {factor} ({evidence})."


def headline(attribution: Attribution) -> str:
    """Say what is slow and how much both ends explain, or why that is not known."""
    model = attribution.model
    is_comparison = attribution.grid.query.compare is not None
    if is_comparison and not model.cells:
        return f"No link has {FEWEST_TESTS} successful transfers on both sides of the comparison."
    if reason := too_few(model):
        return reason
    of_links = "how {} changed" if is_comparison else "the differences between {}"
    share = format_share(max(model.r2, 0.0))
    of_what = of_links.format(counted(model.cells, "link"))
    explained = f"Sources and destinations explain {share} of {of_what}."
    if is_comparison:
        return explained
    counts = {
        end: sum(effect.kind == "slow" for effect in attribution.effects[end]) for end in ENDS
    }
    parts = [counted(count, end) for end, count in counts.items() if count]
    if not parts:
        return explained
    if sum(counts.values()) == 1:
        return f"{join(parts)} is slow compared with its peers. {explained}"
    return f"{join(parts)} are slow compared with their peers. {explained}"


def r2_and_meaning(model: TwoWay) -> tuple[str, str]:
    """Say R² of a model, and that for links which it has not seen, and what it means.

    Nothing where ends cannot be told from links.
    """
    if too_few(model):
        return "", ""
    left_out = model.r2_left_out
    spread = (
        f"A typical link is within a factor of {math.exp(model.sigma):.2f} of its predicted rate."
    )
    if math.isnan(left_out):
        return f"R² {model.r2:.2f}", spread
    # What rounds to 0 from below is 0, without a sign.
    r2 = f"R² {model.r2:.2f}; {round(left_out, 2) + 0.0:.2f} for links left out of the fit"
    if left_out >= MOSTLY_ENDS:
        return r2, f"Most slow links are slow because of their source or destination. {spread}"
    if left_out >= PARTLY_ENDS:
        return r2, f"Both the endpoints and the paths between them make links slow. {spread}"
    return r2, (
        "Sources and destinations explain few of the differences. Look at individual links, or "
        f"choose a longer time range, in which rates scatter less. {spread}"
    )


def too_few(model: TwoWay) -> str:
    """Say why ends cannot be told from links; nothing if they can."""
    rows, columns = (int((of >= 0).sum()) for of in (model.row_component, model.column_component))
    if not model.cells:
        return "No link has results to compare."
    if model.cells == 1:
        return "Only one link has results, so it cannot be compared."
    if min(rows, columns) < 2:
        end = ENDS[rows > 1]
        return (
            f"All {counted(model.cells, 'link')} with results have the same {end}. A second "
            f"{end} would show whether this {end} or its partners are slow."
        )
    if not model.dof or math.isnan(model.r2):
        return (
            f"Too few links have results: {format_count(model.cells)} cannot separate "
            f"{format_count(rows)} sources from {format_count(columns)} destinations."
        )
    return ""


def apart(model: TwoWay) -> str:
    """Say if not all groups can be compared with each other."""
    if model.components < 2:
        return ""
    return (
        f"This matrix has {format_count(model.components)} parts that are not connected by any "
        "results. Factors are comparable only within one part."
    )
