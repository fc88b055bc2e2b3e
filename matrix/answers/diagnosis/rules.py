"""Why a link is slow or fails, as far as its evidence tells: a rule for each cause, in order.

A rule returns a Diagnosis with the figures that decided it, or None where these do not bear it out.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.causes.words import ELSEWHERE, VERBS, evidence_words, percent
from matrix.answers.conditions import words
from matrix.answers.diagnosis.clusters import slow_redirect, slow_server
from matrix.answers.diagnosis.evidence import SLOW, Diagnosis, LinkEvidence
from matrix.answers.diagnosis.failures import OPPOSITE, failing_pattern
from matrix.query.attributes import ENDS
from matrix.statistics.transfers.evidence import PROPORTIONAL, PeerRates
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
# So close to the nominal capacity of a site, it may be full.
FULL = 0.9
# What most courses are like counts, of so many at least.
FEWEST_COURSES = 3
# A handshake, an authorisation and the opening of a file take some four round trips: at 0.3 s,
# from one side of the earth to the other, about as much. What is below may be distance alone.
LEAST_OVERHEAD = 1.0
# Half of the time: the file is smaller than the half-rate size of its link.
LEAST_SHARE = 0.5

TO_OTHERS = {"source": "to", "destination": "from"}
WORK = {"source": ("read from", "sends"), "destination": ("written to", "receives")}
CHECK_PATH = "Check the path between them: the route in both directions, and lost packets."
RUN_STREAMS = (
    " Run a stream experiment: it shows whether the TCP window or packet loss is the limit, or the "
    "capacity."
)
DISKS_OR_CONNECTIONS = (
    " A stream experiment shows whether the disks or the connections are the limit."
)


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
        beside = "; larger ones take no longer."
    else:
        beside = (
            f", and their bytes then move at {three_digits(line.bandwidth)} MB/s. "
            f"Files under {format_bytes(line.half_size * MB)} mostly wait."
        )
    counts = ", ".join(f"{format_count(each.ok)} {each.name}" for each in line.classes)
    return Diagnosis(
        "start-limited",
        f"Most of the time is overhead: {format_seconds(line.overhead)} of the "
        f"{format_seconds(times.seconds)} that {link.size} files take.",
        (
            f"Whatever their size, files take {overhead}{beside}",
            f"From the median times of {counts} files.",
        ),
        "Check what comes before the first byte and after the last: handshakes, authorisation, "
        "queues, opening files, checksums. More bandwidth or more streams would not help.",
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
            f"The rate within {format_count(saw)} of {format_count(transfers)} transfers is a "
            "saw-tooth."
        )
    if scatter:
        spread, by_loss = (three_digits(100 * of) for of in (scatter.spread, scatter.by_loss))
        said.append(
            f"Identical tests scatter by {spread} % (n = {format_count(scatter.n)}). "
            f"Packet loss would make that {by_loss} % or more, a small window less."
        )
    in_flight = []
    if link.rtt_ms is not None:
        kilobytes = three_digits(link.single * link.rtt_ms)
        in_flight.append(
            f"At a round trip of {three_digits(link.rtt_ms)} ms that is {kilobytes} kB in flight."
        )
    each, strength = three_digits(streams.each), min(streams.slope.exponent, 1.0)
    if scatter and scatter.is_steady and not is_saw:
        return Diagnosis(
            "window-limited",
            f"Each connection runs at the same {each} MB/s, however many there are: the TCP window "
            "is too small.",
            (*said, *in_flight),
            "Check the TCP buffers of both endpoints (net.ipv4.tcp_rmem, tcp_wmem, server "
            "settings). They must hold the rate you want times the round trip. Until then, more "
            "streams help.",
            strength,
        )
    return Diagnosis(
        "loss-limited",
        f"Each connection gets about {each} MB/s with ups and downs, however many there are: "
        "packets are lost.",
        (*said, *loss_words(link), *in_flight),
        "Check the path for packet loss: error counters of interfaces, dirty optics, short queues "
        "of switches. Count retransmissions at the source (ss -ti, nstat). "
        "Until then, more streams help.",
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
            f"It fills the nominal WAN capacity of {nominal.site} "
            f"({three_digits(nominal.mb_s)} MB/s).",
            (
                f"Its 95th percentile is {three_digits(high)} MB/s, {format_factor(share)} of that "
                f"(n = {format_count(link.ok)}).",
                *([f"{streams.words}."] if streams else []),
            ),
            "Compare with the load of the site's WAN at these hours: other traffic takes the rest.",
            min(share, 1.0),
        )
    if not (streams and streams.is_of_no_use and link.median <= SLOW * elsewhere):
        return None
    if link.network.rate is not None and link.median <= SLOW * link.network.rate:
        return None
    return Diagnosis(
        "at-capacity",
        f"The path carries no more than {three_digits(link.median)} MB/s: more streams do not "
        "help, and both endpoints are faster elsewhere.",
        (f"{streams.words}.", *(f"{rate_words(link, end)}." for end in ENDS)),
        "Look for the narrowest part of the path: route in both directions, backup line, slow "
        "interface, traffic limit.",
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
        shown = [f"{streams.words}: no single connection is held back."]
    against_peers = [
        f"Without this link, {peer.name} {VERBS[each]} at {percent(factor)} of {ELSEWHERE} "
        f"({evidence_words(peer.rates.low, peer.rates.high, peer.rates.compared)})."
        for factor, each in slow
        for peer in [link.ends[each]]
    ]
    elsewhere = []
    if link.ends[end].rates.partners and link.ok:
        elsewhere = [f"{rate_words(link, end)}; this link has {three_digits(link.median)}."]
    return Diagnosis(
        "storage-limited",
        f"The {end} is the limit: {name} {verb} slowly on its other links as well.",
        (
            *(words.sentence(link.slowed[each]) for each in changed),
            *against_peers,
            *elsewhere,
            *shown,
        ),
        f"At {name}, compare the rate at which files are {action} disk with that of its network. "
        "Check the load of disks and servers, full caches, and limits of the storage system."
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
                f"{rate_words(link, 'destination')}; this link has {three_digits(link.median)} "
                f"(n = {format_count(link.ok)}).",
                *streams,
            ),
            CHECK_PATH + advice,
            WITHOUT_CAUSE * (1 - link.median / link.both_elsewhere),
        )
    if set(link.slowed) != {"link"}:
        return None
    own = link.slowed["link"]
    return Diagnosis(
        "slow-link",
        f"Only this link slowed down ({words.factor_words(own)}), {words.since(own)}: no condition "
        "of its source or its destination explains it.",
        (
            rates_now(link),
            *streams,
        ),
        f"{CHECK_PATH} What changed when it did?{advice}",
        WITHOUT_CAUSE * (1 - (own.factor or 1.0)),
    )


def rates_now(link: LinkEvidence) -> str:
    """Say its rate now and the usual one, as far as they are known."""
    if math.isnan(link.now):
        return "Too few of its newest tests succeeded to know its rate now."
    usual = "" if math.isnan(link.usual) else f", usually {three_digits(link.usual)}"
    return f"{three_digits(link.now)} MB/s now{usual}."


def rate_words(link: LinkEvidence, end: str) -> str:
    """Say what an end does on its other links: `RAL sends 41 MB/s to 3 other destinations`."""
    name, rates = link.ends[end]
    count = f"{rates.partners} other {OPPOSITE[end]}{'s' * (rates.partners != 1)}"
    return f"{name} {VERBS[end]} {three_digits(rates.rate)} MB/s {TO_OTHERS[end]} {count}"


def network_words(link: LinkEvidence) -> list[str]:
    """Say how fast the path between the sites is without their storage, what is lost there."""
    said, network = [], link.network
    if network.rate is not None:
        rate, count = three_digits(network.rate), format_count(len(network.done))
        said.append(f"Network tests between both sites have a median of {rate} MB/s (n = {count}).")
    said += loss_words(link)
    if network.sockets:
        sender, receiver = map(format_bytes, network.sockets)
        said.append(
            f"Their largest TCP windows per connection were {sender} (sender) and {receiver} "
            "(receiver)."
        )
    return said


def loss_words(link: LinkEvidence) -> list[str]:
    loss = link.network.loss
    return [] if loss is None else [f"{100 * loss:.2g} % of packets are lost."]


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
    strongest = sorted(said, key=lambda diagnosis: -diagnosis.strength)[:MOST_DIAGNOSES]
    return [
        diagnosis
        if diagnosis.kind in NO_CAUSE
        else replace(
            diagnosis, evidence=tuple(dict.fromkeys((*diagnosis.evidence, *network_words(link))))
        )
        for diagnosis in strongest
    ]
