"""Why a link is slow or fails, as far as its evidence tells: a rule for each cause, in order.

Of failures it says whose fault they are, and what they have in common.

A rule returns a Diagnosis with the figures that decided it, or None where these do not bear it out.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.causes.words import ELSEWHERE, VERBS, evidence_words, percent
from matrix.answers.conditions import words
from matrix.answers.diagnosis.evidence import (
    FEWEST_TESTS,
    SLOW,
    Diagnosis,
    FailureEvidence,
    LinkEvidence,
)
from matrix.answers.link.rate_profile import FEWEST_COURSES, FULL
from matrix.answers.words.advice import PAIR, SONAR
from matrix.answers.words.phrases import WHERE, shortened
from matrix.query.attributes import ENDS
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.states import PARTLY_FROM
from matrix.statistics.compare.two_samples import compare_each
from matrix.statistics.transfers.evidence import PROPORTIONAL, PeerRates
from matrix.store.transfers import CommonError, SimilarFailures
from sonar.models import Condition
from sonar.notation.units import (
    MB,
    format_bytes,
    format_count,
    format_factor,
    format_seconds,
    three_digits,
)

# So many are said of a link: the fourth guess helps nobody.
MOST_DIAGNOSES = 3
# Where it is slow is less than why.
WITHOUT_CAUSE = 0.3
# What is left to say of storage where nobody knows what more streams do.
WITHOUT_STREAMS = 0.6
# A handshake, an authorisation and the opening of a file take some four round trips: at 0.3 s,
# from one side of the earth to the other, about as much. What is below may be distance alone.
LEAST_OVERHEAD = 1.0
# Half of the time: the file is smaller than the half-rate size of its link.
LEAST_SHARE = 0.5
# How many slow servers are named, the slowest first.
MOST_SERVERS = 3
# How long XRootD's redirectors wait for answers if nothing else is set, in seconds; shorter delays
# than the least were set by nobody.
USUAL_LOOKUP_SECONDS, LEAST_DELAY = 5.0, 1.0
# A redirect is in no rate: other reasons why a link is slow come first.
WITHOUT_RATE = 0.3
# Fewer failures have no pattern.
FEWEST_FAILURES = 3
# What most failures have in common, most of them have: a cause, hours, or where they happen.
MOST_FAILURES = 2 / 3
# Hours of the day are a pattern where most failures are within so many of them, significantly.
HOURS = 6
CHANCE = 0.01
# An end is judged by its other links from so many of their tests on, and fails there, too, if so
# many of these do.
FEWEST_ELSEWHERE = 3
OFTEN = 0.5
OPPOSITE = {"source": "destination", "destination": "source"}
# Tests on the other links of an end: `from other sources to CAM`.
OTHERS = {"source": "from {} to other destinations", "destination": "from other sources to {}"}
TO_OTHERS = {"source": "to", "destination": "from"}
WORK = {"source": ("read", "sends"), "destination": ("write", "receives")}
CHECK_PATH = (
    "Check the network path: verify the route in both directions, and look for packet loss."
)
RUN_STREAMS = (
    " Run a stream sweep: it shows whether the limit is the TCP window, packet loss or the "
    "capacity."
)
DISKS_OR_CONNECTIONS = " A stream sweep shows whether the disks or the connections are the limit."


@dataclass(frozen=True)
class Fault:
    """Whose it is in one sentence, with the counts that say so, and what to check."""

    sentence: str
    advice: str


def where_of(errors: Iterable[CommonError | SimilarFailures]) -> Counter[str]:
    where: Counter[str] = Counter()
    for error in errors:
        where[error.where] += error.count
    return where


def fault_of(
    names: Mapping[str, str],
    where: Mapping[str, int],
    elsewhere: Mapping[str, tuple[int, int]],
    conditions: Mapping[str, Condition],
) -> Fault | None:
    """Say whose the failures are in one statement; None where there is nothing to tell by.

    ``where`` counts failed tests of a link by where they failed. ``names``, ``elsewhere`` and
    ``conditions`` are by end: ``elsewhere`` has how many of the tests on its other links failed,
    and how many there were; ``conditions`` make the link fail. A condition of an end says whose
    the failures are. Without one the tests on other links of both ends do.
    """
    total = sum(where.values())
    # Where most of them failed; nothing where they failed here and there.
    place = next((at for at, count in where.items() if count >= MOST_FAILURES * total > 0), "")
    if place == "control":
        return Fault("Sonar itself failed, not an endpoint.", SONAR)
    # An end that fails with others, too, is first looked for where the tests of this link fail.
    order = (place, OPPOSITE[place]) if place in ENDS else ENDS
    for end in [each for each in order if each in conditions]:
        evidence = ", ".join(words.evidence(conditions[end]))
        sentence = f"The {end} also fails on other links: {evidence}."
        return Fault(sentence, words.advice(conditions[end]))
    judged = {end for end in ENDS if elsewhere.get(end, (0, 0))[1] >= FEWEST_ELSEWHERE}
    # Where they fail in between, or here and there, both ends have to work otherwise.
    can_tell = place in ENDS or len(judged) == len(ENDS)
    looked_at = [(end, OFTEN, "other links") for end in order]
    likely_ends = order[:1] if place in ENDS else order
    looked_at += [(end, PARTLY_FROM, "some other links") for end in likely_ends if can_tell]
    for end, share, other_links in looked_at:
        bad, tests = elsewhere.get(end, (0, 0))
        if end in judged and bad >= share * tests:
            counts = f"{format_count(bad)} of {format_count(tests)} tests"
            return Fault(
                f"The {end} also fails on {other_links}: {counts} "
                f"{OTHERS[end].format(names[end])} failed.",
                f"Check {names[end]} first.",
            )
    if place in ENDS and place not in judged:
        return Fault(
            f"The {place} fails; its other links have too few tests to compare.",
            f"Check {names[place]} first.",
        )
    if not can_tell:
        return None
    # Other links work: of one end, or of both.
    first = "Only this link fails; other links of both endpoints work"
    if place in ENDS:
        first = f"The {place} refuses only this {OPPOSITE[place]}; other links of the {place} work"
    bad, tests = (sum(elsewhere[end][at] for end in likely_ends) for at in (0, 1))
    counts = f"{format_count(bad)} of {format_count(tests)} tests"
    return Fault(f"{first} ({counts} failed).", PAIR)


def failing_pattern(evidence: LinkEvidence) -> Diagnosis | None:
    """Say what the failures of a link have in common; None for few, or without a pattern."""
    failures = evidence.failures
    if failures is None or failures.failed < FEWEST_FAILURES:
        return None
    if failures.failed < PARTLY_FROM * failures.tests:
        return None
    names = {end: peer.name for end, peer in evidence.ends.items()}
    where = where_of(failures.groups)
    patterns = []
    if fault := fault_of(names, where, failures.elsewhere, evidence.failing):
        patterns.append((fault.sentence, fault.advice))
    total = sum(group.count for group in failures.groups)
    for first in failures.groups[:1]:
        if first.count >= max(FEWEST_FAILURES, MOST_FAILURES * total):
            sentence = (
                f"{format_count(first.count)} of {format_count(total)} failures have the same "
                f"error, {WHERE[first.where]}: {shortened(first.example.error)}."
            )
            patterns.append((sentence, "Start with the most frequent error."))
    patterns += same_hours(failures)
    if not patterns:
        return None
    sentences, advice = zip(*patterns, strict=True)
    failed, tests = map(format_count, (failures.failed, failures.tests))
    said = f"All {failed}" if failed == tests else f"{failed} of {tests}"
    return Diagnosis(
        "failing-pattern",
        f"{said} {evidence.size}-file tests failed.",
        sentences,
        " ".join(dict.fromkeys(advice)),
        failures.failed / failures.tests,
    )


def same_hours(failures: FailureEvidence) -> list[tuple[str, str]]:
    """Say in which hours of the day most of them were, if chance does not explain it."""
    within, of_tests = (
        np.array([np.roll(counts, -hour)[:HOURS].sum() for hour in range(24)])
        for counts in (
            np.bincount(hours, minlength=24) for hours in (failures.hours, failures.hours_of_tests)
        )
    )
    failed = failures.failed
    start = int(np.argmax(within - of_tests * failed / failures.tests))
    bad, share = int(within[start]), float(of_tests[start]) / failures.tests
    if bad < max(FEWEST_FAILURES, MOST_FAILURES * failed) or share >= 1:
        return []
    # The chance of so many or more; each of the 24 stretches may be the one that stands out.
    chance = sum(
        math.comb(failed, count) * share**count * (1 - share) ** (failed - count)
        for count in range(bad, failed + 1)
    )
    if 24 * chance > CHANCE:
        return []
    sentence = (
        f"{format_count(bad)} of {format_count(failed)} failures were between {start:02}:00 and "
        f"{(start + HOURS) % 24:02}:00 UTC, when {100 * share:.0f} % of all tests ran."
    )
    advice = "Check what runs during these hours: backups, maintenance, peak production."
    return [(sentence, advice)]


def start_limited(link: LinkEvidence) -> Diagnosis | None:
    """Say that most of the time of a file passes whatever its size."""
    line = link.overhead
    if line is None or not line.fits or line.overhead_low < LEAST_OVERHEAD:
        return None
    times = next((each for each in line.classes if each.name == link.size), None)
    share = min(line.overhead / times.seconds, 1.0) if times else 0.0
    if times is None or share < LEAST_SHARE:
        return None
    overhead = format_seconds(line.overhead, line.overhead_low, line.overhead_high)
    if math.isnan(line.bandwidth):
        rest = "; larger files take no longer."
    else:
        rest = (
            f", and their bytes then move at {three_digits(line.bandwidth)} MB/s. For files under "
            f"{format_bytes(line.half_size * MB)}, most of the transfer time is overhead."
        )
    counts = ", ".join(f"{format_count(each.ok)} {each.name}" for each in line.classes)
    return Diagnosis(
        "start-limited",
        f"Most of the time is overhead: {format_seconds(line.overhead)} of the "
        f"{format_seconds(times.seconds)} that {link.size} files take.",
        (
            f"Transfers of any file size have an overhead of {overhead}{rest}",
            f"Based on median times of {counts} files.",
        ),
        "Check what happens before the first byte and after the last byte: handshakes, "
        "authorisation, queues, opening files, checksums. More bandwidth or streams would not "
        "help.",
        share,
    )


def connection_limited(link: LinkEvidence) -> Diagnosis | None:
    """Say that each connection is held back by itself: by its window if steady, else by losses.

    Rates are uneven by a saw-tooth within transfers, or from test to test. A ceiling within them
    says nothing: samples every 5 s level out what single losses do.
    """
    streams, profile, scatter = link.streams, link.rate_profile, link.scatter
    if streams is None or not link.is_slow or not streams.helps:
        return None
    if streams.slope.high < PROPORTIONAL:
        return None
    transfers = len(profile.courses) if profile else 0
    saw = profile.counts["saw-tooth"] if profile else 0
    is_saw = transfers >= FEWEST_COURSES and 2 * saw > transfers
    if not is_saw and scatter is None:
        return None
    said = [f"{streams.words}."]
    if is_saw:
        said.append(
            f"In {format_count(saw)} of {format_count(transfers)} transfers, the rate follows a "
            "saw-tooth pattern."
        )
    if scatter:
        spread, by_loss = (three_digits(100 * of) for of in (scatter.spread, scatter.by_loss))
        said.append(
            f"The rates of identical tests vary by {spread} % (n = {format_count(scatter.n)}). "
            f"Packet loss would cause a variation of {by_loss} % or more; a small TCP window would "
            "cause less."
        )
    in_flight = []
    if link.rtt_ms is not None:
        kilobytes = three_digits(link.single * link.rtt_ms)
        in_flight.append(
            f"At a round-trip time of {three_digits(link.rtt_ms)} ms, a connection has "
            f"{kilobytes} kB in flight."
        )
    each, strength = three_digits(streams.each), min(streams.slope.exponent, 1.0)
    if scatter and scatter.is_steady and not is_saw:
        return Diagnosis(
            "window-limited",
            f"Each connection runs at the same {each} MB/s, whatever the number of streams: the "
            "TCP window is too small.",
            (*said, *in_flight),
            "Check the TCP buffers of both endpoints (net.ipv4.tcp_rmem, tcp_wmem, server "
            "settings). A buffer must be at least the target rate times the round-trip time. Until "
            "the buffers are large enough, more streams help.",
            strength,
        )
    return Diagnosis(
        "loss-limited",
        f"The rate of each connection varies around {each} MB/s, whatever the number of streams: "
        "packets are being lost.",
        (*said, *loss_words(link), *in_flight),
        "Check the path for packet loss: interface error counters, dirty optics, small switch "
        "buffers. Count retransmissions at the source (ss -ti, nstat). "
        "Until the packet loss is fixed, more streams help.",
        strength,
    )


def at_capacity(link: LinkEvidence) -> Diagnosis | None:
    """Say that the path carries no more, however many connections share it.

    Its fastest is what its sites are said to have; or streams do not help, and both ends are faster
    on their other links. But not where the network alone, tested without storage, carries more.
    """
    streams, nominal, elsewhere = link.streams, link.nominal, link.both_elsewhere
    if not link.is_slow or (streams and streams.helps):
        return None
    high = link.rate_profile.middle[2] if link.rate_profile else link.high
    if nominal is not None and high >= FULL * nominal.mb_s:
        share = high / nominal.mb_s
        return Diagnosis(
            "at-capacity",
            f"This link uses the full nominal WAN capacity of {nominal.site} "
            f"({three_digits(nominal.mb_s)} MB/s).",
            (
                f"The 95th percentile is {three_digits(high)} MB/s, {format_factor(share)} of this "
                f"capacity (n = {format_count(link.ok)}).",
                *([f"{streams.words}."] if streams else []),
            ),
            "Compare these rates with the load on the site's WAN connection during the same hours. "
            "Other traffic uses the rest of the capacity.",
            min(share, 1.0),
        )
    if not (streams and streams.is_of_no_use and link.median <= SLOW * elsewhere):
        return None
    if link.network.rate is not None and link.median <= SLOW * link.network.rate:
        return None
    return Diagnosis(
        "at-capacity",
        f"The path carries at most {three_digits(link.median)} MB/s: more streams do not help, "
        "and both endpoints are faster on other links.",
        (f"{streams.words}.", *(f"{rate_words(link, end)}." for end in ENDS)),
        "Find the bottleneck of the path. Check the route in both directions, and look for backup "
        "lines, slow interfaces and traffic limits.",
        1 - link.median / elsewhere,
    )


def storage_limited(link: LinkEvidence) -> Diagnosis | None:
    """Say that one end is slow on its other links, too, and more streams do not help."""
    streams = link.streams
    if not link.is_slow or (streams and streams.helps):
        return None
    slow = sorted((link.ends[end].rates.factor, end) for end in ENDS if is_slow_end(link, end))
    changed = [end for end in ENDS if end in link.slowed]
    if not (slow or changed):
        return None
    end = changed[0] if changed else slow[0][1]
    name, (action, verb) = link.ends[end].name, WORK[end]
    factors = [factor for factor, _ in slow] or [link.slowed[end].factor or 1.0]
    shown = []
    if streams and streams.is_of_no_use:
        shown = [f"{streams.words}: individual connections are not the limit."]
    against_peers = [
        f"Without this link, {peer.name} {VERBS[each]} at {percent(factor)} of {ELSEWHERE} "
        f"({evidence_words(peer.rates.low, peer.rates.high, peer.rates.compared)})."
        for factor, each in slow
        for peer in [link.ends[each]]
    ]
    elsewhere = []
    if link.ends[end].rates.partners and link.ok:
        own_rate = three_digits(link.median)
        elsewhere = [f"{rate_words(link, end)}; the rate of this link is {own_rate} MB/s."]
    return Diagnosis(
        "storage-limited",
        f"The {end} is the limit: {name} also {verb} slowly on its other links.",
        (
            *(words.sentence(link.slowed[each]) for each in changed),
            *against_peers,
            *elsewhere,
            *shown,
        ),
        f"At {name}, compare the disk {action} rate with the network rate. "
        "Check disk and server load and the limits of the storage system, and look for full caches."
        + ("" if shown else DISKS_OR_CONNECTIONS),
        (1 - math.prod(factors)) * (1.0 if shown else WITHOUT_STREAMS),
    )


def is_slow_end(link: LinkEvidence, end: str) -> bool:
    """Return whether a link is about as slow as the others of a slow end, the other end considered.

    A condition says whose it is that a link became slower: what an end always does is no cause of
    that. Two slow ends may make it as slow as the slower of them, or both together.
    """

    def is_slow(rates: PeerRates) -> bool:
        # Notably slower than its peers, and not by chance.
        return rates.factor <= 1 / NOTABLE and (math.isnan(rates.high) or rates.high < 1)

    rates, other = link.ends[end].rates, link.ends[OPPOSITE[end]].rates
    if not is_slow(rates) or (link.slowed and end not in link.slowed):
        return False
    return rates.rate * (other.factor if is_slow(other) else 1.0) <= NOTABLE * link.median


def slow_link(link: LinkEvidence) -> Diagnosis | None:
    """Say that its ends do not make it slow: they are faster, or slowed down less, elsewhere."""
    streams = [f"{link.streams.words}."] if link.streams else filter(None, [link.disobeyed])
    advice = RUN_STREAMS if link.wants_streams else ""
    if link.is_slow_beside and link.median <= SLOW * link.both_elsewhere:
        return Diagnosis(
            "slow-link",
            "Both endpoints are at least twice as fast on their other links.",
            (
                f"{rate_words(link, 'source')}.",
                f"{rate_words(link, 'destination')}; the rate of this link is "
                f"{three_digits(link.median)} MB/s (n = {format_count(link.ok)}).",
                *streams,
            ),
            CHECK_PATH + advice,
            WITHOUT_CAUSE * (1 - link.median / link.both_elsewhere),
        )
    if set(link.slowed) != {"link"}:
        return None
    own = link.slowed["link"]
    rates_now = "Too few of the latest tests succeeded to give a current rate."
    if not math.isnan(link.now):
        usual = "" if math.isnan(link.usual) else f", usually {three_digits(link.usual)} MB/s"
        rates_now = f"The rate of this link is {three_digits(link.now)} MB/s now{usual}."
    return Diagnosis(
        "slow-link",
        f"Only this link slowed down ({words.factor_words(own)}), {words.since(own)}: no event "
        "at its source or its destination explains the slowdown.",
        (rates_now, *streams),
        f"{CHECK_PATH} Find out what changed at that time.{advice}",
        WITHOUT_CAUSE * (1 - (own.factor or 1.0)),
    )


def slow_server(link: LinkEvidence) -> Diagnosis | None:
    """Say that of the data servers of a cluster some are notably slower than the others."""
    hosts = sorted({test.host for test in link.led if test.host})
    rates = {
        host: np.array([test.rate for test in link.led if test.host == host], dtype=np.float64)
        for host in hosts
    }
    slow = slow_hosts(rates)
    if not slow:
        return None
    by_slow = np.concatenate([rates[host] for host in slow])
    by_others = np.concatenate([rates[host] for host in rates if host not in slow])
    ratio = float(np.median(by_slow) / np.median(by_others))
    figures = {
        host: f"{three_digits(float(np.median(each)))} MB/s (n = {format_count(each.size)})"
        for host, each in [*rates.items(), ("", by_others)]
    }
    others = len(rates) - len(slow)
    where = slow[0] if len(slow) == 1 else f"{format_count(len(slow))} of the data servers"
    return Diagnosis(
        "slow-server",
        f"Transfers through {where} are slow: {percent(ratio)} of the rate of the other data "
        f"server{'s' * (others != 1)}.",
        (
            f"{'; '.join(f'{host}: {figures[host]}' for host in slow[:MOST_SERVERS])}.",
            f"{format_count(others)} other data server{'s' * (others != 1)}: {figures['']}.",
        ),
        f"Ask the site to check {slow[0]}: disks, network interface, other load. "
        "The tab “Test setup” lists the data servers and links to the results of each.",
        1 - ratio,
    )


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
        f"The redirector takes {format_seconds(wait)} to find a data server.",
        (
            f"Median over {format_count(len(waits))} {link.size} files. The rates do not include "
            "this delay.",
        ),
        "A redirector waits for its data servers to report whether they have the file. In XRootD, "
        "the directive “cms.delay lookup” sets this delay (default: 5 s). The delay affects "
        "everyone who writes small files there.",
        WITHOUT_RATE * wait / (wait + USUAL_LOOKUP_SECONDS),
    )


def rate_words(link: LinkEvidence, end: str) -> str:
    """Say what an end does on its other links: `RAL sends 41 MB/s to 3 other destinations`."""
    name, rates = link.ends[end]
    count = f"{rates.partners} other {OPPOSITE[end]}{'s' * (rates.partners != 1)}"
    return f"{name} {VERBS[end]} {three_digits(rates.rate)} MB/s {TO_OTHERS[end]} {count}"


def loss_words(link: LinkEvidence) -> list[str]:
    loss = link.network.loss
    return [] if loss is None else [f"Network tests lose {100 * loss:.2g} % of packets."]


RULES: tuple[Callable[[LinkEvidence], Diagnosis | None], ...] = (
    failing_pattern,
    start_limited,
    connection_limited,
    at_capacity,
    storage_limited,
    slow_server,
    slow_redirect,
)
# Of these a link is not slow.
NO_CAUSE = {"failing-pattern", "slow-redirect"}


def diagnose(link: LinkEvidence) -> list[Diagnosis]:
    """Return what the rules say, the strongest first; nothing of a healthy link.

    Where a link is slow is only said if no rule knows why. What tests of the network alone say is
    added to what is said of a slow link.
    """
    said = [diagnosis for rule in RULES if (diagnosis := rule(link))]
    if all(diagnosis.kind in NO_CAUSE for diagnosis in said):
        said += filter(None, [slow_link(link)])
    # How fast the path between the sites is without their storage, and what is lost there.
    of_network, network = [], link.network
    if network.rate is not None:
        rate, count = three_digits(network.rate), format_count(len(network.done))
        median = f"Network tests between the two sites have a median of {rate} MB/s (n = {count})."
        of_network.append(median)
    of_network += loss_words(link)
    if network.sockets:
        sender, receiver = map(format_bytes, network.sockets)
        windows = f"{sender} (sender) and {receiver} (receiver)"
        of_network.append(
            f"In network tests, the largest TCP windows per connection were {windows}."
        )
    strongest = sorted(said, key=lambda diagnosis: -diagnosis.strength)[:MOST_DIAGNOSES]
    return [
        diagnosis
        if diagnosis.kind in NO_CAUSE
        else replace(diagnosis, evidence=tuple(dict.fromkeys((*diagnosis.evidence, *of_network))))
        for diagnosis in strongest
    ]
