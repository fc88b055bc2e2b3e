"""How the sandbox's file of links follows from what was published: the oracle of its test.

``python -m tests.sandbox.derive`` prints ``sonar/sandbox/data/uk_2011_links.csv`` again.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import astuple, fields
from functools import cache
from itertools import permutations
from statistics import fmean, median

from sonar.sandbox import topology
from sonar.sandbox.topology import (
    ALWAYS_FAILS,
    FAILURE_RATE,
    LARGE_MB,
    SCALE,
    SMALL_MB,
    Link,
    Pair,
    Site,
    load_sites,
)

SPREAD = 0.12

LONGEST_SETUP_SHARE = 0.25
"""Of the time of a large transfer: what a set-up time taken from another link may claim."""


TROUBLED = {
    ("TAIWAN-LCG2", "UKI-NORTHGRID-SHEF-HEP"): 0.25,
    ("NDGF-T1", "UKI-NORTHGRID-MAN-HEP"): 0.3,
    ("BNL-OSG2", "UKI-SOUTHGRID-OX-HEP"): 0.2,
    ("PIC", "TRIUMF-LCG2"): 0.25,
    ("UKI-LT2-QMUL", "UKI-NORTHGRID-LIV-HEP"): 0.2,
    ALWAYS_FAILS: 1.0,
}
"""Invented troubles, so that there is something to find; never on a published link."""


HEADER = f"""\
# How each of the 342 links of the sandbox behaves; printed by python -m tests.sandbox.derive.
# A transfer takes setup_seconds + size / bandwidth_mb_s (1 MB = 10^6 bytes, times as on the
# grid; the sandbox runs 1:{SCALE} in size and time). large_mb_s is what that gives at 2 GB.
#
# basis
# published      large_mb_s is the cell of large_t2_to_t1.csv (nine UK Tier-2s to ten Tier-1s).
# glasgow_sonar  large_mb_s is the large rate of glasgow_sonar.csv (a Tier-1 to Glasgow).
# derived        large_mb_s was never published: it is the geometric mean of how fast the source
#                sends and how fast the destination receives. A Tier-2 sends at its published
#                row average, and receives at the same figure for want of a better one. A Tier-1
#                receives at its published column average, and sends at the published grand
#                average times its large rate to Glasgow over the mean of these rates; RAL, which
#                has none, sends at its column average.
#
# setup_seconds is published for no link. For Glasgow and a Tier-1 it is fitted, in each
# direction, to the small (20 MB) and large (2 GB) rates of glasgow_sonar.csv. Links of other
# Tier-2s with that Tier-1 take that figure, all others the median of the fitted ones; what is
# taken over may claim a quarter of the time of a large transfer at most. bandwidth_mb_s follows.
# spread (coefficient of variation of single rates) and failure_rate are invented: one transfer
# in a hundred fails, but on five derived links 20-30 %, and on one derived link every one.
"""


def derive_links() -> list[Link]:
    return [_link(*ends) for ends in permutations(load_sites(), 2)]


def render(links: Iterable[Link]) -> str:
    """Return the links as the text of ``data/uk_2011_links.csv``."""
    lines = [",".join(field.name for field in fields(Link))]
    lines += [",".join(str(value) for value in astuple(link)) for link in links]
    return HEADER + "\n".join(lines) + "\n"


def _link(source: Site, destination: Site) -> Link:
    pair = (source.name, destination.name)
    if pair in _published():
        large, basis = _published()[pair], "published"
    elif pair in _glasgow("large"):
        large, basis = _glasgow("large")[pair], "glasgow_sonar"
    else:
        average = _row_average if destination.tier == 2 else _column_average
        mean = math.sqrt(_sends_at(source) * average(destination.name))
        large, basis = round(mean, 2), "derived"
    fitted = _fitted_setups()
    if (setup := fitted.get(pair)) is None:
        ends = (source, destination)
        with_glasgow = [end.name if end.tier == 1 else "UKI-SCOTGRID-GLASGOW" for end in ends]
        setup = fitted.get((with_glasgow[0], with_glasgow[1]), median(fitted.values()))
        setup = round(min(setup, LONGEST_SETUP_SHARE * LARGE_MB / large), 2)
    return Link(
        *pair,
        bandwidth_mb_s=round(LARGE_MB / (LARGE_MB / large - setup), 4),
        setup_seconds=setup,
        spread=SPREAD,
        failure_rate=TROUBLED.get(pair, FAILURE_RATE),
        large_mb_s=large,
        basis=basis,
    )


def _sends_at(site: Site) -> float:
    if site.tier == 2:
        return _row_average(site.name)
    tier1s = {each.name for each in load_sites() if each.tier == 1}
    to_glasgow = {pair[0]: rate for pair, rate in _glasgow("large").items() if pair[0] in tier1s}
    if site.name not in to_glasgow:
        return _column_average(site.name)
    return fmean(_published().values()) * to_glasgow[site.name] / fmean(to_glasgow.values())


def _row_average(source: str) -> float:
    return fmean(rate for pair, rate in _published().items() if pair[0] == source)


def _column_average(destination: str) -> float:
    return fmean(rate for pair, rate in _published().items() if pair[1] == destination)


@cache
def _fitted_setups() -> dict[Pair, float]:
    """Solve ``size / rate = setup + size / bandwidth`` for the small and large rates."""
    small, large = _glasgow("small"), _glasgow("large")
    fitted = {}
    for pair, rate in small.items():
        small_seconds = SMALL_MB / rate
        seconds_per_mb = (LARGE_MB / large[pair] - small_seconds) / (LARGE_MB - SMALL_MB)
        fitted[pair] = round(small_seconds - SMALL_MB * seconds_per_mb, 2)
    return fitted


@cache
def _published() -> dict[Pair, float]:
    """Return the 90 large rates of the matrix of February 2011, without its averages."""
    return {
        (row["source"].removesuffix("_DATADISK"), name.removesuffix("_DATADISK")): float(rate)
        for row in topology.rows("large_t2_to_t1.csv")
        for name, rate in row.items()
        if row["source"] != "Average" and name.endswith("_DATADISK")
    }


@cache
def _glasgow(size_class: str) -> dict[Pair, float]:
    """Return the mean rates of one size class of the Glasgow table, all 24 links."""
    return {
        (row["source"], row["destination"]): float(row["rate_mean_mb_s"])
        for row in topology.rows("glasgow_sonar.csv")
        if row["size_class"] == size_class
    }


if __name__ == "__main__":
    sys.stdout.write(render(derive_links()))
