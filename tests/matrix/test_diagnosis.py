"""Rules on a link: each says its figure, and is silent where that does not bear it out."""

import dataclasses
import math
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from matrix.answers.diagnosis.evidence import (
    NOBODY,
    DirectedLink,
    FailureEvidence,
    LinkEvidence,
    effect_of,
)
from matrix.answers.diagnosis.link_diagnosis import LinkDiagnosis
from matrix.answers.diagnosis.rules import Fault, diagnose, fault_of
from matrix.answers.link.overhead import ClassTime, Overhead
from matrix.answers.link.rate_profile import NominalCapacity
from matrix.statistics.transfers.evidence import (
    ANYWAY,
    AlikeTests,
    PeerRates,
    RateScatter,
    beside,
    least_by_loss,
    scatter,
)
from sonar.models import Condition, Endpoint, Site, Transfer
from tests.conditions import TYPES, stored_condition
from tests.matrix import responses, world
from tests.matrix.responses import words
from tests.matrix.world import HOUR, transfer

STREAMS = np.array([1.0, 1, 1, 4, 4, 4])
FLAT = effect_of(STREAMS, np.array([10, 10.1, 9.9, 10.2, 9.9, 10]), "tests in this time range")
LINEAR = effect_of(STREAMS, np.array([10, 10.1, 9.9, 40.2, 39.9, 40]), "tests in this time range")
FAST = PeerRates(80.0, 4, 1.0, 0.9, 1.1, 4)
SLOW = PeerRates(10.5, 4, 0.13, 0.1, 0.17, 4)


def evidence(**changed: Any) -> LinkEvidence:
    """Return a slow link: 10 MB/s where both ends have 80 elsewhere; nothing says why."""
    healthy_but_slow = LinkEvidence(
        source="RAL",
        destination="DESY",
        size="large",
        ok=8,
        median=10.0,
        high=10.5,
        level="unknown",
        usual=math.nan,
        now=math.nan,
        single=10.0,
        scatter=None,
        streams=None,
        overhead=None,
        rate_profile=None,
        sending=FAST,
        receiving=FAST,
        nominal=None,
        failures=None,
    )
    return dataclasses.replace(healthy_but_slow, **changed)


def line(overhead: float, bandwidth: float, fit: str = "line") -> Overhead:
    classes = tuple(
        ClassTime(name, size, overhead + size / bandwidth, 0.0, 0.0, 5, 0.0, math.nan)
        for name, size in (("small", 20.0), ("large", 2000.0))
    )
    around = (0.95 * overhead, 1.05 * overhead, bandwidth, 0.95 * bandwidth, 1.05 * bandwidth)
    return Overhead(overhead, *around, overhead * bandwidth, fit, classes)


def kinds(**changed: Any) -> list[str]:
    return [diagnosis.kind for diagnosis in diagnose(evidence(**changed))]


def test_of_a_link_as_fast_as_its_peers_nothing_is_said():
    for streams in (None, FLAT, LINEAR):
        assert kinds(median=79.0, streams=streams, scatter=RateScatter(0.01, 0.06, 20)) == []
    # One end alone is slower elsewhere: that is the peer's matter.
    assert kinds(median=79.0, receiving=SLOW) == []


def test_where_nothing_says_why_only_where_is_said():
    (said,) = diagnose(evidence())
    assert said.kind == "slow-link"
    assert said.evidence == (
        "RAL sends 80.0 MB/s to 4 other destinations.",
        "DESY receives 80.0 MB/s from 4 other sources; the rate of this link is 10.0 MB/s (n = 8).",
    )
    assert "Run a stream sweep" in said.next
    (said,) = diagnose(evidence(disobeyed="Every transfer used 1 stream."))
    assert said.evidence[2:] == ("Every transfer used 1 stream.",)
    assert "sweep" not in said.next


def test_a_link_with_too_few_results_is_not_slow():
    assert kinds(ok=2) == []


@pytest.mark.parametrize("end", ["sending", "receiving"])
def test_an_end_without_other_links_says_nothing(end):
    for level in ("slower", "unknown"):
        assert kinds(level=level, usual=80.0, streams=FLAT, **{end: NOBODY}) == []


def test_a_window_is_proportional_and_steady_and_loss_is_not_steady():
    assert kinds(streams=LINEAR, scatter=RateScatter(0.012, 0.06, 12)) == ["window-limited"]
    assert kinds(streams=LINEAR, scatter=RateScatter(0.15, 0.06, 12)) == ["loss-limited"]
    assert kinds(streams=LINEAR) == ["slow-link"]
    (said,) = diagnose(evidence(streams=LINEAR, scatter=RateScatter(0.012, 0.06, 12)))
    assert "the same 10.0 MB/s" in said.headline
    assert said.evidence[0].startswith("4 streams give 4.0× (")
    assert said.evidence[1] == (
        "The rates of identical tests vary by 1.20 % (n = 12). Packet loss would cause a variation "
        "of 6.00 % or more; a small TCP window would cause less."
    )


def test_a_saw_tooth_within_transfers_is_loss_and_a_ceiling_there_says_nothing():
    shapes = dict.fromkeys(("stalls", "saw-tooth", "ramps", "slows", "ceiling", "uneven"), 0)
    saw = SimpleNamespace(courses=[None] * 5, counts=shapes | {"saw-tooth": 4, "ceiling": 1})
    even = SimpleNamespace(courses=[None] * 5, counts=shapes | {"ceiling": 5})
    for profile, spread in ((saw, 0.01), (even, 0.2)):
        scattered = RateScatter(spread, 0.06, 9)
        assert kinds(streams=LINEAR, scatter=scattered, rate_profile=profile) == ["loss-limited"]


def network(
    rate: float | None = None, loss: float | None = None, sockets: tuple[int, int] | None = None
) -> SimpleNamespace:
    """Return what twelve tests of the network alone say."""
    return SimpleNamespace(rate=rate, loss=loss, sockets=sockets, done=range(12))


def test_the_network_alone_is_told_and_a_way_that_carries_more_is_not_narrow():
    assert kinds(streams=FLAT, network=network(15.0)) == ["at-capacity"]
    assert kinds(streams=FLAT, network=network(20.0)) == ["slow-link"]
    (said,) = diagnose(evidence(network=network(40.0, 0.0012, (217_200, 108_000))))
    assert said.evidence[2:] == (
        "Network tests between the two sites have a median of 40.0 MB/s (n = 12).",
        "Network tests lose 0.12 % of packets.",
        "In network tests, the largest TCP windows per connection were 217 kB (sender) and "
        "108 kB (receiver).",
    )


def test_known_round_trip_and_loss_are_told():
    (said,) = diagnose(
        evidence(streams=LINEAR, scatter=RateScatter(0.01, 0.06, 9), rtt_ms=90.0, single=0.7)
    )
    assert "At a round-trip time of 90.0 ms, a connection has 63.0 kB in flight." in said.evidence
    (said,) = diagnose(
        evidence(streams=LINEAR, scatter=RateScatter(0.2, 0.06, 9), network=network(loss=0.012))
    )
    assert "Network tests lose 1.2 % of packets." in said.evidence


def test_a_narrow_way_carries_no_more_with_more_streams():
    (said,) = diagnose(evidence(streams=FLAT))
    assert (said.kind, "carries at most 10.0 MB/s" in said.headline) == ("at-capacity", True)


def test_a_nominal_capacity_that_is_reached_is_named():
    nominal = NominalCapacity("DESY", 11.0)
    said = diagnose(evidence(nominal=nominal))[0]
    assert (said.kind, "capacity of DESY (11.0 MB/s)" in said.headline) == ("at-capacity", True)
    assert said.evidence == ("The 95th percentile is 10.5 MB/s, 0.95× of this capacity (n = 8).",)
    assert kinds(nominal=nominal, streams=LINEAR) == ["slow-link"]
    assert kinds(nominal=NominalCapacity("DESY", 12.0)) == ["slow-link"]


@pytest.mark.parametrize(
    ("end", "name", "does"),
    [("sending", "source", "RAL sends"), ("receiving", "destination", "DESY receives")],
)
def test_an_end_that_is_slow_elsewhere_too_is_the_limit(end, name, does):
    (said,) = diagnose(evidence(streams=FLAT, **{end: SLOW}))
    assert said.kind == "storage-limited"
    assert said.headline.startswith(f"The {name} is the limit")
    assert said.evidence[0].startswith(
        f"Without this link, {does} at 13 % of the rate of its partners on other links (10–17 %, 4"
    )
    (unsure,) = diagnose(evidence(**{end: SLOW}))
    assert unsure.strength < said.strength
    assert "A stream sweep shows whether the disks" in unsure.next


def test_two_slow_ends_together_explain_what_neither_does():
    # At a half and a third of their peers: 13 MB/s of 80.
    half, third = (
        dataclasses.replace(SLOW, rate=80 * factor, factor=factor, high=factor)
        for factor in (1 / 2, 1 / 3)
    )
    said = diagnose(evidence(median=13.0, streams=FLAT, sending=half, receiving=third))[0]
    assert (said.kind, said.strength) == ("storage-limited", pytest.approx(5 / 6))
    assert said.headline.startswith("The destination is the limit")
    assert said.evidence[0].startswith("Without this link, DESY receives at 33 % of the rate o")
    assert said.evidence[1].startswith("Without this link, RAL sends at 50 % of the rate of its")
    assert kinds(median=13.0, streams=FLAT, sending=half) == ["at-capacity"]
    # As slow as the slower end alone, or nearly.
    said = diagnose(evidence(median=20.0, streams=FLAT, sending=half, receiving=third))[0]
    assert said.kind == "storage-limited"


def slow_condition(scope: str, **changes: Any) -> Condition:
    """Make one that nothing is stored of: what counts is whose it is."""
    ends = {"source": "RAL_DISK", "destination": "DESY_DISK"}
    source, destination = (
        Endpoint(name=name, site=Site(name=name)) if scope in (end, "link") else None
        for end, name in ends.items()
    )
    figures: dict[str, Any] = dict.fromkeys(("since", "since_low", "since_high"), world.NOW)
    figures |= {"factor": 0.4, "factor_low": 0.35, "factor_high": 0.46, "links": 12, "of_links": 17}
    return Condition(
        scope=scope, source=source, destination=destination, size_classes=["large"],
        confirmed_at=world.NOW, **figures | {"type": "slow"} | changes,
    )  # fmt: skip


def test_a_link_that_became_slower_alone_is_not_blamed_on_what_its_ends_always_do():
    # Its source is slow on all of its links, as ever; this one was as fast as they are.
    newly = {"level": "slower", "usual": 10.0, "now": 4.0, "sending": SLOW, "receiving": FAST}
    own = slow_condition("link")
    (said,) = diagnose(evidence(**newly, slowed={"link": own}))
    assert said.headline == (
        "Only this link slowed down (0.40× (0.35–0.46)), since 20 Nov 12:00 UTC: no event at "
        "its source or its destination explains the slowdown."
    )
    assert said.evidence == ("The rate of this link is 4.00 MB/s now, usually 10.0 MB/s.",)
    assert "Find out what changed at that time." in said.next
    # Without a condition, what its source always does explains it.
    assert [said.kind for said in diagnose(evidence(**newly))] == ["storage-limited"]


@pytest.mark.parametrize(
    ("end", "name", "verb"), [("source", "RAL", "sends"), ("destination", "DESY", "receives")]
)
def test_an_end_with_a_condition_of_its_own_is_the_limit(end, name, verb):
    wide = slow_condition(end)
    newly = {"level": "slower", "usual": 80.0, "now": 32.0, "median": 60.0}
    (said,) = diagnose(evidence(**newly, slowed={end: wide}))
    assert said.kind == "storage-limited"
    assert said.headline == (
        f"The {end} is the limit: {name} also {verb} slowly on its other links."
    )
    assert said.evidence[0] == (
        f"{name}_DISK has been slow as {end} since 20 Nov 12:00 UTC, at 0.40× (0.35–0.46) "
        "of the baseline, with large files, on 12 of 17 links."
    )
    # What remains of the link beyond that is no matter of this link alone.
    also = diagnose(evidence(**newly, slowed={end: wide, "link": slow_condition("link")}))
    assert [each.kind for each in also] == ["storage-limited"]


def test_an_end_that_is_no_limit_is_not_called_one():
    # Streams help: no disk does that.
    steady = RateScatter(0.01, 0.06, 9)
    assert kinds(sending=SLOW, streams=LINEAR, scatter=steady) == ["window-limited"]
    # Its other links are faster than this one by far: it does not explain this one.
    assert kinds(sending=dataclasses.replace(SLOW, rate=40.0)) == ["slow-link"]
    # It may be chance.
    assert kinds(sending=dataclasses.replace(SLOW, high=1.2)) == []


def test_most_of_the_time_may_pass_before_the_bytes_do():
    (said,) = diagnose(evidence(median=79.0, overhead=line(60.0, 100.0)))
    assert said.kind == "start-limited"
    assert "60.0 s of the 80.0 s that large files take" in said.headline
    overhead = "Transfers of any file size have an overhead of 60.0 s (57.0–63.0)"
    assert said.evidence[0].startswith(overhead)


@pytest.mark.parametrize(
    "overhead",
    [line(5.0, 100.0), line(60.0, 100.0, "bent"), line(0.9, 10_000.0)],
    ids=["a fifth of the time", "no line", "the distance may be all"],
)
def test_a_small_part_of_the_time_or_a_short_one_is_no_reason(overhead):
    assert kinds(median=79.0, overhead=overhead) == []


def failures(hours: list[int], tests: list[int], **changed: Any) -> FailureEvidence:
    counts = {"source": (0, 50), "destination": (0, 50)}
    fields = {"groups": (), "elsewhere": counts} | changed
    return FailureEvidence(len(tests), np.array(hours), np.array(tests), **fields)


def test_failures_within_some_hours_of_the_day_are_a_pattern():
    every_hour = [*range(24)] * 4
    said = diagnose(
        evidence(median=79.0, failures=failures([1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 2, 4], every_hour))
    )[0]
    assert said.kind == "failing-pattern"
    assert said.evidence[-1] == (
        "12 of 12 failures were between 00:00 and 06:00 UTC, when 25 % of all tests ran."
    )
    spread = [0, 5, 10, 15, 20, 2, 7, 12, 17, 22, 11, 23]
    other = failures(spread, every_hour, elsewhere={})
    assert kinds(median=79.0, failures=other) == []


def test_one_cause_and_the_end_that_fails_elsewhere_are_a_pattern():
    group = SimpleNamespace(where="source", count=9, example=SimpleNamespace(error="No such file"))
    both = {"source": (30, 40), "destination": (1, 40)}
    (said,) = diagnose(
        evidence(median=79.0, failures=failures([1] * 10, [1] * 12, groups=[group], elsewhere=both))
    )
    assert said.headline == "10 of 12 large-file tests failed."
    assert said.evidence == (
        "The source also fails on other links: 30 of 40 tests from RAL to other destinations "
        "failed.",
        "9 of 9 failures have the same error, at the source: No such file.",
    )
    assert said.next == "Check RAL first. Start with the most frequent error."


def test_few_failures_have_no_pattern():
    assert kinds(median=79.0, failures=failures([1, 1], [1] * 4)) == []
    assert kinds(median=79.0, failures=failures([1] * 5, [1] * 100)) == []


def test_peers_are_those_without_the_link_itself():
    # By row a source: the first is at a third of what others send to the same destinations.
    rates = np.array([[1.0, 10, 20, 5], [30, 30, 60, 15], [30, 30, 60, 15], [np.nan] * 4])
    sending = beside(rates, 0, 0)
    assert (sending.rate, sending.partners, sending.compared) == (10.0, 3, 3)
    assert (sending.factor, sending.low, sending.high) == pytest.approx((1 / 3,) * 3)
    nobody = beside(rates, 3, 0)
    assert (nobody.partners, math.isnan(nobody.factor)) == (0, True)
    single = beside(rates[:, :2], 0, 0)
    assert (single.factor, math.isnan(single.low)) == (pytest.approx(1 / 3), True)


def test_scatter_is_that_within_groups():
    rng = np.random.default_rng(3)
    groups = [
        AlikeTests(level * np.exp(0.1 * rng.standard_normal(2000)), size)
        for level, size in ((1.0, 1e6), (50.0, 4e6))
    ]
    pooled = scatter(groups, 1.0)
    by_loss = (least_by_loss(1e6, 1.0) + least_by_loss(4e6, 1.0)) / 2
    expected = pytest.approx(by_loss, rel=1e-3)
    assert pooled == RateScatter(pytest.approx(0.1, rel=0.05), expected, 4000)
    few = [AlikeTests(np.array([1.0, 2, 3]), 1e6), AlikeTests(np.array([5.0]), 1e6)]
    assert scatter(few, 1.0) is None
    assert scatter(groups, math.nan) is None


def test_one_test_that_took_long_does_not_make_a_link_uneven():
    alike = [
        AlikeTests(np.array(rates), 4e6)
        for rates in ([1.0, 1.01, 0.99], [2.0, 2.02, 0.4], [1.5, 1.52, 1.49])
    ]
    pooled = scatter(alike, 1.0)
    assert (pooled.is_steady, pooled.spread) == (True, pytest.approx(0.0125, rel=0.1))
    twice = [*alike, AlikeTests(np.array([1.0, 1.01, 0.2]), 4e6)]
    assert not scatter(twice, 1.0).is_steady


def test_lost_packets_make_rates_scatter_the_less_the_more_are_lost():
    # One of 20 at most: 35 of the 690 packets of a file of 1 MB.
    assert least_by_loss(1e6, 0.5) == pytest.approx(0.5 / math.sqrt(690.6 * 0.05), rel=1e-3)
    # At 10 MB/s there are 35 packets or more under way over 5 ms: 1 of 795 is lost, or fewer.
    assert least_by_loss(1e8, 10.0) == pytest.approx(0.5 / math.sqrt(69_061 / 795), rel=1e-2)
    assert least_by_loss(1e10, 1.0) == ANYWAY


SEGMENT = 1448
RENO, FRIENDLY_CUBIC = (1.0, 0.5), (0.53, 0.7)


@pytest.mark.parametrize("law", [RENO, FRIENDLY_CUBIC], ids=["reno", "cubic"])
@pytest.mark.parametrize("rtt_ms", [10, 100])
@pytest.mark.parametrize(
    ("loss", "packets"), [(0.001, 11_000), (0.003, 11_000), (0.01, 2_800), (0.01, 23_000)]
)
def test_where_packets_are_lost_rates_are_not_steady(law, rtt_ms, loss, packets):
    """TCP that shrinks its window after each loss: 10 to 230 losses a file."""
    rng = np.random.default_rng(5)
    rates = SEGMENT / (rtt_ms * 1e3) * np.array([aimd(rng, loss, packets, law) for _ in range(100)])
    lossy = scatter([AlikeTests(rates, packets * SEGMENT)], float(np.median(rates)))
    assert not lossy.is_steady


def test_a_window_is_steady_though_each_test_starts_and_ends_with_a_delay():
    """64 kB for each round trip of 90 ms, and 0.1 s more or less."""
    rng = np.random.default_rng(6)
    rate = 65_535 / 0.09
    groups = [
        AlikeTests(size / (size / rate + 0.5 + 0.1 * rng.standard_normal(100)) / 1e6, size)
        for size in (1e6, 4e6, 33.6e6)
    ]
    pooled = scatter(groups, rate / 1e6)
    assert pooled.spread < 0.7 * pooled.by_loss


def aimd(rng: np.random.Generator, loss: float, packets: int, law: tuple[float, float]) -> float:
    """Return packets per round trip of a transfer; the window grows and shrinks by a law."""
    more, part = law
    window, sent, rounds = 10.0, 0, 0
    while sent < packets:
        sent, rounds = sent + int(window), rounds + 1
        lost = rng.random() < 1 - (1 - loss) ** int(window)
        window = max(window * part, 2.0) if lost else window + more
    return sent / rounds


@pytest.fixture
def four_sites(db: None) -> list[Endpoint]:
    """Register endpoints of four sites, all links between them with 80 MB/s and one with 10."""
    rng = np.random.default_rng(1)
    sites = Site.objects.bulk_create(Site(name=name, tier=2) for name in "ABCD")
    endpoints = list(world.endpoints([(f"{site.name}_DISK", site) for site in sites]).values())
    with world.transfers() as some:
        for source, destination in permutations(endpoints, 2):
            slow = (source.name, destination.name) == ("A_DISK", "B_DISK")
            level = (10.0 if slow else 80.0) * rng.uniform(0.97, 1.03)
            for rate in (0.99, 1.0, 1.01):
                some.add(source, destination, level * rate)
    return endpoints


def test_page_and_api_say_the_same(client, four_sites, at_noon):
    link = {"source": "A_DISK", "destination": "B_DISK"}
    answer = client.get("/api/v1/diagnosis/", link).json()
    (said,) = answer["diagnoses"]
    assert (said["kind"], answer["silence"]) == ("slow-link", "")
    assert answer["evidence"]["source"]["elsewhere_mb_s"] == pytest.approx(80, rel=0.05)
    html = words(responses.html(client, "/links/A_DISK/B_DISK/"))
    for sentence in (said["headline"], *said["evidence"], said["next"]):
        assert sentence in html
    healthy = words(responses.html(client, "/links/B_DISK/A_DISK/"))
    assert "Diagnosis No problem stands out with large files." in healthy


def test_the_call_has_the_open_conditions_of_the_link_its_own_first(client, four_sites, at_noon):
    a, b, *_ = four_sites
    wide = stored_condition(TYPES.SLOW, destination=b, confirmed=False)
    own = stored_condition(source=a, destination=b, sizes=["small"])
    stored_condition(source=a, destination=b, type_=TYPES.SLOW, since=9 * HOUR, ended=HOUR)
    stored_condition(source=b)
    link = {"source": "A_DISK", "destination": "B_DISK"}
    answer = client.get("/api/v1/diagnosis/", link).json()
    said = [(each["condition"], each["scope"], each["type"]) for each in answer["conditions"]]
    assert said == [(own.pk, "link", "failing"), (wide.pk, "destination", "slow")]
    first, second = answer["conditions"]
    assert (first["tests"], first["failed"], first["factor"]) == (10, 10, None)
    assert (second["factor"], second["confirmed_at"]) == (0.4, None)
    assert "since 20 Nov 06:00 UTC" in second["sentence"]
    assert second["sentence"].endswith(", unconfirmed.")
    assert first["since"] == "2026-11-20T06:00:30Z"
    # Unconfirmed ones decide nothing.
    assert (answer["evidence"]["level"], answer["diagnoses"][0]["kind"]) == ("unknown", "slow-link")


def test_where_streams_would_tell_more_an_sweep_with_them_is_one_click_away(
    client, admin_client, at_noon, four_sites
):
    address = "/links/A_DISK/B_DISK/sweeps/?variable=streams&amp;size=large"
    offer = f'<a href="{address}">Run a stream sweep</a>'
    assert offer in responses.html(admin_client, "/links/A_DISK/B_DISK/")
    assert offer not in responses.html(admin_client, "/links/B_DISK/A_DISK/")  # is not slow
    assert offer not in responses.html(client, "/links/A_DISK/B_DISK/")  # may not order
    form = responses.html(admin_client, address.replace("&amp;", "&"))
    assert '<option value="streams" selected>' in form
    assert '<option value="large" selected>' in form


def test_failures_are_those_of_the_size_class(client, four_sites, at_noon):
    link = {"source": "A_DISK", "destination": "B_DISK"}
    for number in range(4):
        transfer(*four_sites[:2], None, ago=number * world.HOUR, size="small")
    for number in range(5):
        transfer(*four_sites[:2], None, ago=number * world.HOUR)
    large_failures = Transfer.objects.filter(size_class__name="large", state="failed")
    large_failures.update(error="No such file", error_where="source")

    def told(size: str) -> list[str]:
        said = client.get("/api/v1/diagnosis/", {**link, "size": size}).json()["diagnoses"]
        return [" ".join([each["headline"], *each["evidence"]]) for each in said[:1]]

    (large,), (small,) = told("large"), told("small")
    assert large.startswith("5 of 8 large-file tests failed.")
    assert "5 of 5 failures have the same error, at the source: No such file" in large
    assert small.startswith("All 4 small-file tests failed.")
    assert "No such file" not in small
    assert told("medium") == []


@pytest.mark.parametrize(
    ("changed", "wants"),
    [
        ({}, True),
        ({"streams": FLAT}, False),
        ({"disobeyed": "Every transfer used 1 stream."}, False),
        ({"median": 79.0}, False),
        ({"overhead": line(60.0, 100.0)}, False),
    ],
    ids=["slow", "streams known", "streams refused", "not slow", "its start takes the time"],
)
def test_an_sweep_is_offered_where_it_would_tell_more(changed, wants):
    current = evidence(**changed)
    assert LinkDiagnosis(current, diagnose(current)).wants_streams == wants


def test_whose_a_condition_is_as_a_link_sees_it(four_sites, at_noon):
    a, b, c, _ = four_sites
    others = {
        ("A", "B"): stored_condition(TYPES.SLOW, source=a, destination=b),
        ("A", ""): stored_condition(TYPES.SLOW, source=a),
        ("", "B"): stored_condition(TYPES.SLOW, destination=b, confirmed=False),
        ("B", "B"): stored_condition(TYPES.SLOW, source=b, destination=b, sizes=["small"]),
        ("C", "C"): stored_condition(TYPES.SLOW, source=c, destination=c),
        ("site", "B"): stored_condition(TYPES.SLOW, site=b.site),
        ("B", "A"): stored_condition(TYPES.SLOW, source=b, destination=a),
        ("", ""): stored_condition(TYPES.SLOW),
    }
    ends = [
        SimpleNamespace(id=each.id, name=each.name, site=each.site.name) for each in four_sites[:2]
    ]
    direction = DirectedLink(*ends, "large", "slower", 80.0, 20.0, list(others.values()))
    expected = {"link": ("A", "B"), "source": ("A", ""), "destination": ("site", "B")}
    assert direction.by_side("slow") == {
        side: others[key] for side, key in (expected | {"grid": ("", "")}).items()
    }
    assert direction.by_side("failing") == {}


def test_more_streams_are_seen_in_the_tests_of_the_window(client, four_sites, at_noon):
    for rate in (9.95, 10.0, 10.05):
        transfer(*four_sites[:2], rate)
    for rate in (39.0, 40.0, 41.0):
        transfer(*four_sites[:2], rate, made=world.profile(streams=4))
    said = client.get("/api/v1/diagnosis/?source=A_DISK&destination=B_DISK").json()
    assert said["diagnoses"][0]["kind"] == "window-limited"
    assert said["evidence"]["streams"]["trend"] == "proportional"


def test_without_results_nothing_is_judged(client, small_world, at_noon):
    html = words(responses.html(client, "/links/RAL_DATADISK/DESY_DATADISK/"))
    assert "There are no results for large files to diagnose in this time range." in html


def test_a_site_has_its_slowest_links_with_the_strongest_that_is_said(client, four_sites, at_noon):
    (said,) = client.get("/api/v1/sites/A/").json()["diagnoses"]
    assert (said["source"], said["destination"], said["kind"]) == ("A_DISK", "B_DISK", "slow-link")
    html = words(responses.html(client, "/sites/A/"))
    assert f"{said['headline']} {said['evidence'][0]}" in html
    assert client.get("/api/v1/sites/C/").json()["diagnoses"] == []
    assert "slowest and failing links" not in responses.html(client, "/sites/C/")


def test_a_site_has_its_failing_links_first(client, four_sites, at_noon):
    for number in range(6):
        transfer(four_sites[0], four_sites[2], None, ago=number * world.HOUR)
    said = client.get("/api/v1/sites/A/").json()["diagnoses"]
    assert [(link["destination"], link["kind"]) for link in said] == [
        ("C_DISK", "failing-pattern"),
        ("B_DISK", "slow-link"),
    ]


NAMES = {"source": "LANCS", "destination": "CAM"}
PAIR = "Check what is specific to this link: permissions, routing, firewalls."
FINE, SOME, OFTEN, FEW = (1, 50), (10, 50), (30, 40), (2, 2)


def said(
    where: dict[str, int], source: tuple[int, int] = FINE, destination: tuple[int, int] = FINE
) -> Any:
    return fault_of(NAMES, where, {"source": source, "destination": destination}, {})


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (
            {"destination": 16},
            "The destination refuses only this source; other links of the destination work (1 of",
        ),
        (
            {"source": 16},
            "The source refuses only this destination; other links of the source work (1 of 50",
        ),
        ({"transfer": 16}, "Only this link fails; other links of both endpoints work (2 of 100"),
        ({"source": 8, "destination": 8}, "Only this link fails; other links of both endpoints"),
    ],
)
def test_what_fails_on_this_link_alone_is_a_matter_of_the_pair(where, sentence):
    found = said(where)
    assert found.sentence.startswith(sentence)
    assert found.advice == PAIR


@pytest.mark.parametrize("where", ["destination", "source", "transfer"])
def test_an_end_that_fails_with_others_is_named_wherever_the_tests_fail(where):
    assert said({where: 9}, destination=OFTEN) == Fault(
        "The destination also fails on other links: 30 of 40 tests from other sources to CAM "
        "failed.",
        "Check CAM first.",
    )


def test_of_two_ends_that_fail_with_others_that_is_named_at_which_the_tests_fail():
    assert said({"source": 9}, source=OFTEN) == Fault(
        "The source also fails on other links: 30 of 40 tests from LANCS to other destinations "
        "failed.",
        "Check LANCS first.",
    )
    for end, name in NAMES.items():
        assert said({end: 9}, OFTEN, OFTEN).advice == f"Check {name} first."


@pytest.mark.parametrize("where", ["destination", "transfer"])
def test_an_end_that_fails_with_some_others_is_named(where):
    assert said({where: 9}, destination=SOME) == Fault(
        "The destination also fails on some other links: 10 of 50 tests from other sources to CAM "
        "failed.",
        "Check CAM first.",
    )


def test_without_other_links_nothing_is_said_of_others():
    assert said({"destination": 9}, destination=FEW) == Fault(
        "The destination fails; its other links have too few tests to compare.",
        "Check CAM first.",
    )
    assert said({"transfer": 9}, source=FEW) is None
    assert fault_of(NAMES, {}, {}, {}) is None


def test_sonar_itself_is_no_endpoint():
    found = said({"control": 9}, source=OFTEN, destination=OFTEN)
    assert found.sentence == "Sonar itself failed, not an endpoint."


def test_the_condition_of_an_end_says_whose_it_is_that_a_link_fails():
    """Whatever few tests of the window on the other links say."""
    failing = slow_condition("destination", type="failing", factor=None)
    vars(failing).update(tests=48, failed=48)
    for where in ("source", "destination", "transfer"):
        assert fault_of(NAMES, {where: 9}, {}, {"destination": failing}) == Fault(
            "The destination also fails on other links: with large files, on 12 of 17 links, 48 "
            "of 48 tests failed.",
            "Check DESY_DISK first. The errors of its failed tests show the reason.",
        )
