"""What is said of the servers behind an endpoint: some are slow, or it takes time to find one.

Clusters of XRootD, EOS and dCache lead each test on to one of many servers.
"""

import math
from collections.abc import Sequence

import numpy as np

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.causes.words import percent
from matrix.answers.diagnosis.evidence import FEWEST_TESTS, Diagnosis, LinkEvidence
from matrix.statistics.arrays import Floats
from matrix.statistics.compare.two_samples import compare_each
from matrix.store.transfers import LedTest
from sonar.notation.units import format_count, format_seconds, three_digits

# So many slow servers are named, the slowest first.
MOST_SERVERS = 3
# How long XRootD's redirectors wait for answers if nothing else is set, in seconds.
USUAL_LOOKUP_SECONDS = 5.0
# What is found sooner is no delay that anybody set.
LEAST_DELAY = 1.0
# It is in no rate: whatever makes a link slow comes first.
WITHOUT_RATE = 0.3


def slow_server(link: LinkEvidence) -> Diagnosis | None:
    """Say that of the servers behind an endpoint some are notably slower than the others."""
    rates = rates_of(link.led)
    slow = slow_hosts(rates)
    if not slow:
        return None
    by_slow = np.concatenate([rates[host] for host in slow])
    by_others = np.concatenate([rates[host] for host in rates if host not in slow])
    ratio = float(np.median(by_slow) / np.median(by_others))
    others = len(rates) - len(slow)
    where = slow[0] if len(slow) == 1 else f"{format_count(len(slow))} of the data servers"
    return Diagnosis(
        "slow-server",
        f"The slow ones ran on {where}: {percent(ratio)} of the rate of the other data "
        f"server{'s' * (others != 1)}.",
        (
            f"{'; '.join(f'{host}: {words(rates[host])}' for host in slow[:MOST_SERVERS])}.",
            f"{format_count(others)} other{'s' * (others != 1)}: {words(by_others)}.",
        ),
        f"Ask its site what is wrong with {slow[0]}: disks, network interface, what else it "
        "serves. “How it is measured” lists the data servers, and leads to the results of each.",
        1 - ratio,
    )


def rates_of(tests: Sequence[LedTest]) -> dict[str, Floats]:
    """Return the rates that each data server reached, in MB/s."""
    hosts = sorted({test.host for test in tests if test.host})
    return {
        host: np.array([test.rate for test in tests if test.host == host], dtype=np.float64)
        for host in hosts
    }


def slow_hosts(rates: dict[str, Floats]) -> list[str]:
    """Return the servers that are slower than all others together, the slowest first."""
    if len(rates) < 2:
        return []
    pairs = [
        (own, np.concatenate([other for name, other in rates.items() if name != host]))
        for host, own in rates.items()
    ]
    ratios = compare_each(pairs)
    (slow,) = np.nonzero(ratios.sure & (ratios.ratio <= 1 / NOTABLE))
    hosts = list(rates)
    return [hosts[at] for at in sorted(slow, key=lambda at: float(ratios.ratio[at]))]


def words(rates: Floats) -> str:
    return f"{three_digits(float(np.median(rates)))} MB/s (n = {format_count(rates.size)})"


def slow_redirect(link: LinkEvidence) -> Diagnosis | None:
    """Say how long a redirector looks for a data server before a copy."""
    waits = [test.redirect_seconds for test in link.led if not math.isnan(test.redirect_seconds)]
    if len(waits) < FEWEST_TESTS:
        return None
    wait = float(np.median(waits))
    if wait < LEAST_DELAY:
        return None
    return Diagnosis(
        "slow-redirect",
        f"{format_seconds(wait)} before the redirect: the lookup delay of the redirector.",
        (f"Median of {format_count(len(waits))} {link.size} files. It is not part of any rate.",),
        "A redirector waits this long for its data servers to say whether they have the file. "
        "XRootD calls it cms.delay lookup, and takes 5 s unless it is set. Everybody who writes "
        "many small files there waits, too.",
        WITHOUT_RATE * wait / (wait + USUAL_LOOKUP_SECONDS),
    )
