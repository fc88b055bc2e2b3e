"""What an attribution says, in sentences that can be quoted: value, interval and n."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matrix.answers.causes.attribution import (
    ENDS,
    Attribution,
    EndEffect,
    LinkRest,
    attribute,
)
from matrix.answers.grid import Grid
from matrix.query.catalogue import RATE
from matrix.statistics.two_samples import FEWEST
from matrix.statistics.two_way import TwoWay
from sonar.units import format_chance, format_count, format_factor, three_digits

# Predicted from all the others, so much of the differences between links lies at their ends.
MOSTLY_ENDS, PARTLY_ENDS = 0.6, 0.3
VERBS = {"source": "sends", "destination": "receives"}
AS = {"source": "as a source", "destination": "as a destination"}
OTHERS = {
    "source": "what its partners receive from others",
    "destination": "what its partners send to others",
}
LOOK = {
    "source": "look at its outgoing path",
    "destination": "look at its incoming path",
    "both": "look at what both directions share: its storage, its servers, its network connection",
}


@dataclass(frozen=True)
class Conclusion:
    """A sentence on a group, with its effects beyond chance; ``kind`` is `slow` or `fast`."""

    name: str
    site: str
    kind: str
    sentence: str
    effects: tuple[EndEffect, ...]


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
    notable = [
        conclusion(name, of_ends, alike=alike)
        for (name, _), of_ends in by_name.items()
        if any(effect.kind in ("slow", "fast") for effect in of_ends.values())
    ]
    return sorted(notable, key=lambda said: (said.kind != "slow", extreme(said)))


def extreme(said: Conclusion) -> float:
    """Return how far down (or up, for what is fast) its factor is, the furthest lowest."""
    factors = [effect.factor for effect in said.effects]
    return min(factors) if said.kind == "slow" else -max(factors)


def conclusion(name: str, of_ends: dict[str, EndEffect], *, alike: bool = True) -> Conclusion:
    """Say in one sentence what a group does at both ends; slow ends come first.

    ``alike`` says whether sources and destinations are of one kind.
    """
    notable = [effect for effect in of_ends.values() if effect.kind in ("slow", "fast")]
    notable.sort(key=lambda effect: (effect.kind != "slow", effect.factor))
    slow = [effect for effect in notable if effect.kind == "slow"]
    clauses = [f"{name} {at_factor(notable[0])}"]
    clauses += [f"and {at_factor(effect)}" for effect in notable[1:]]
    sentence = " ".join(clauses)
    if len(notable) == 1 and alike:
        end = "destination" if notable[0].end == "source" else "source"
        sentence += f"; {elsewhere(of_ends.get(end), end)}"
    if slow:
        sentence += f": {LOOK['both' if len(slow) > 1 else slow[0].end]}"
    site = notable[0].group.site or ""
    return Conclusion(name, site, notable[0].kind, f"{sentence}.", tuple(notable))


def at_factor(effect: EndEffect) -> str:
    """Say at which factor of its peers a group sends, or receives."""
    factor = format_factor(effect.factor, effect.low, effect.high)
    return (
        f"{VERBS[effect.end]} at {factor} of {OTHERS[effect.end]}, n = {partners(effect.partners)}"
    )


def elsewhere(effect: EndEffect | None, end: str) -> str:
    """Say how a group does at the end where nothing stands out."""
    if effect is None or math.isnan(effect.factor):
        return f"it has no results {AS[end]}"
    if effect.kind == "unknown":
        return f"{AS[end]} it has too few partners to say"
    factor = format_factor(effect.factor, effect.low, effect.high)
    normally = " normally," if effect.low <= 1 <= effect.high else ""
    return f"it {VERBS[end]}{normally} at {factor}"


def of_site(sites: Grid, name: str) -> Conclusion | None:
    """Say what stands out of a site in a matrix of sites with the extra `median`, if anything."""
    causes = attribute(sites, values=sites.cells.extras["median"])
    return next((said for said in conclusions(causes) if said.name == name), None)


def off_model(attribution: Attribution) -> str:
    """Say how many links are off what their ends explain by more than chance."""
    count, of = int(attribution.discoveries.sum()), links(attribution.model.cells)
    if not count:
        return f"None of {of} is further off than chance explains; the furthest first."
    off = f"{format_count(count)} of {of} {'is' if count == 1 else 'are'} further off than chance"
    return f"{off} explains; the furthest first."


def link_sentence(link: LinkRest, tests: int, *, ratios: bool = False) -> str:
    """Say how far a link is off what both its ends explain; of ``ratios``, how it changed."""
    rate, expected = (
        format_factor(value) if ratios else f"{three_digits(value)} {RATE.name}"
        for value in (link.rate, link.expected)
    )
    chance = "" if math.isnan(link.p) else f", {format_chance(link.p)}"
    factor = f"{format_factor(link.factor)} of the {expected} that both its ends explain"
    sentence = (
        f"From {link.source.name} to {link.destination.name}: {rate}, {factor}"
        f" (n = {format_count(tests)} test{'s' * (tests != 1)}{chance})"
    )
    is_slow = link.beyond_chance and link.factor < 1
    return f"{sentence}: look at the path between them." if is_slow else f"{sentence}."


def headline(attribution: Attribution) -> str:
    """Say how much of the differences between links both ends explain, or why that is not known."""
    model = attribution.model
    is_comparison = attribution.grid.query.compare is not None
    if is_comparison and not model.cells:
        return f"No link has {FEWEST} successful transfers on both sides to compare."
    if reason := too_few(model):
        return reason
    verb = "changed" if is_comparison else "differ"
    of_links = f"{percent(model.r2)} of how {links(model.cells)} {verb}"
    # What rounds to 0 from below is 0, without a sign.
    left_out = f"; {round(model.r2_left_out, 2) + 0.0:.2f} for a link that all the others predict"
    figures = f"R² {model.r2:.2f}{'' if math.isnan(model.r2_left_out) else left_out}"
    return f"Sources and destinations explain {of_links} ({figures})."


def meaning(model: TwoWay) -> str:
    """Say what the share means for somebody who looks for a cause."""
    if too_few(model):
        return ""
    left_out = model.r2_left_out
    spread = f"Around what they explain, links scatter by a factor of {math.exp(model.sigma):.2f}."
    if math.isnan(left_out):
        return spread
    if left_out >= MOSTLY_ENDS:
        return f"Most of what makes a link slow sits at one of its ends. {spread}"
    if left_out >= PARTLY_ENDS:
        return f"Both the ends and the paths between them make links slow. {spread}"
    return (
        "The ends of a link say little about its rate: look at single links, or at a longer window "
        f"in which rates scatter less. {spread}"
    )


def too_few(model: TwoWay) -> str:
    """Say why ends cannot be told from links; nothing if they can."""
    rows, columns = (int((of >= 0).sum()) for of in (model.row_component, model.column_component))
    if not model.cells:
        return "No link has results to compare."
    if model.cells == 1:
        return "The only link with results has nothing to be compared with."
    if min(rows, columns) < 2:
        end = ENDS[rows > 1]
        return (
            f"All {links(model.cells)} with results have one {end}: without a second {end} to "
            "compare with, nobody can say whether it is slow or its partners are."
        )
    if not model.dof or math.isnan(model.r2):
        return (
            f"Too few links have results: {format_count(model.cells)}, of {format_count(rows)} "
            f"sources and {format_count(columns)} destinations, cannot tell these apart."
        )
    return ""


def apart(model: TwoWay) -> str:
    """Say if not all groups can be compared with each other."""
    if model.components < 2:
        return ""
    return (
        f"No results connect {format_count(model.components)} parts of this matrix: factors "
        "compare sources, and destinations, of the same part only."
    )


def partners(count: int) -> str:
    return f"{format_count(count)} partner{'s' * (count != 1)}"


def links(count: int) -> str:
    return f"{format_count(count)} link{'s' * (count != 1)}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
