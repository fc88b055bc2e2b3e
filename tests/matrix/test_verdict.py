"""How a link is and how it compares, in words: every case, as somebody on shift reads it."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from matrix.answers.link.directions import Direction
from matrix.answers.link.verdict import LinkNow, Verdict, ordered, verdict_of
from matrix.answers.words.phrases import WHOLE_ERROR, join
from matrix.answers.words.ratios import PairRatio
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.transfers import CommonError
from sonar.models import Condition, Downtime, Endpoint, Site

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SINCE = datetime(2026, 11, 20, 15, 6, 40, tzinfo=UTC)
EVENING = datetime(2026, 11, 19, 20, 15, tzinfo=UTC)
NO_SPACE = CommonError(14, "destination", "507 Insufficient Storage")
RATES = {"small": 1.2, "medium": 9.6, "large": 7.5}
FAILING = {"state": "failing", "level": "unknown", "streak": 16, "failed": 16}
SLOWER = {"level": "slower", "now": 2.1}
FACTORS = {"slow": (0.28, 0.24, 0.327), "fast": (215.0, 180.0, 257.0)}
UNTESTED: dict[str, Any] = {"state": "untested", "level": "unknown", "ok": 0, "now": np.nan}
NEW = {"level": "unknown", "usual": np.nan, "usual_count": 2}
FAILED = {"state": "failed", "level": "unknown", "ok": 0, "failed": 1, "now": np.nan}


def place(number: int, name: str) -> EndpointInfo:
    return EndpointInfo(number, name, facts={}, simulated=False, retired=False)


def direction(size: str, *, back: bool = False, **changes: Any) -> Direction:
    """Make one that is as usual, but for what is changed."""
    ends = [place(1, "TRIUMF"), place(2, "BNL")]
    source, destination = reversed(ends) if back else ends
    rate = RATES[size]
    plain = Direction(
        source=source,
        destination=destination,
        size=size,
        state="measured",
        ok=84,
        failed=0,
        mean=rate,
        std=0.1,
        quantiles={"median": rate},
        last=NOW.timestamp() - 1200,
        level="usual",
        now=rate,
        streak=0,
        since=np.nan,
        usual=rate,
        low=0.8 * rate,
        high=1.2 * rate,
        usual_count=330,
        unconfirmed="",
        condition=0,
    )
    return replace(plain, **changes)


def link(there: dict[str, Any] | None = None, back: dict[str, Any] | None = None, **changes: Any):
    """Make a link of three classes; ``there`` and ``back`` change those that they name."""
    plain = LinkNow(
        there=[direction(size, **(there or {}).get(size, {})) for size in RATES],
        back=[direction(size, back=True, **(back or {}).get(size, {})) for size in RATES],
        conditions=[],
        of_reverse=[],
        doubtful=None,
        errors={},
        succeeded=dict.fromkeys(RATES, NOW),
        at=NOW,
        is_past=False,
        downtimes=[],
        obstacle="",
        last=NOW - 20 * timedelta(minutes=1),
        is_scheduled=True,
        is_filtered=False,
    )
    return replace(plain, **changes)


ENDS = {name: Endpoint(name=name, site=Site(name=f"{name}-LCG2")) for name in ("TRIUMF", "BNL")}


def condition(
    type_: str = "failing",
    *sizes: str,
    ends: tuple[str, str] = ("TRIUMF", "BNL"),
    since: datetime = SINCE,
    confirmed: bool = True,
    tests: int = 16,
    **changes: Any,
) -> Condition:
    """Make the condition of the link, or of what of it is not empty, or of the grid."""
    scope = {
        (True, True): "link", (True, False): "source", (False, True): "destination",
        (False, False): "grid",
    }[bool(ends[0]), bool(ends[1])]  # fmt: skip
    source, destination = (ENDS[name] if name else None for name in ends)
    made = Condition(
        scope=scope, type=type_, source=source, destination=destination,
        size_classes=list(sizes) or ["large"], since=since, since_low=since, since_high=since,
        confirmed_at=since if confirmed else None, links=3, of_links=4,
        **dict(zip(("factor", "factor_low", "factor_high"), FACTORS.get(type_, ()), strict=False)),
        **changes,
    )  # fmt: skip
    vars(made).update(pk=None, tests=tests, failed=tests if type_ == "failing" else 0)
    return made


def why_large(errors: list[CommonError]) -> str:
    """Say the errors of a link that fails with large files."""
    return why({"large": FAILING}, conditions=[condition()], errors={"large": errors})


def every(changes: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(RATES, changes)


def said(*parts: Any, **changes: Any) -> tuple[str, str, str]:
    verdict = verdict_of(link(*parts, **changes))
    return verdict.kind, verdict.headline, verdict.rest


def why(*parts: Any, **changes: Any) -> str:
    return verdict_of(link(*parts, **changes)).why


def test_as_usual_has_the_factors_and_rates_of_all_classes():
    assert said() == (
        "usual",
        "As usual: small 1.00×, medium 1.00×, large 1.00×.",
        "Now 1.20, 9.60 and 7.50 MB/s, usually 1.20, 9.60 and 7.50. The reverse direction is as "
        "usual.",
    )


def test_its_own_condition_is_said_first_with_its_figures_and_what_still_works():
    parts = {"large": FAILING}
    found = verdict_of(link(parts, conditions=[condition()], errors={"large": [NO_SPACE]}))
    assert replace(found, condition=None) == Verdict(
        "failing",
        "Fails, with large files, 16 of 16 tests failed, since 20 Nov 15:06 UTC.",
        "Small and medium files still work. The reverse direction is as usual.",
        "Each time at the destination, BNL: 507 Insufficient Storage.",
    )


def test_a_wider_condition_is_said_as_what_the_link_is_a_part_of():
    wide = condition(ends=("", "BNL"), tests=48)
    found = verdict_of(link({"large": FAILING}, conditions=[wide]))
    assert (found.kind, found.headline) == (
        "failing",
        "Part of: BNL fails as destination, with large files, on 3 of 4 links, 48 of 48 tests "
        "failed, since 20 Nov 15:06 UTC.",
    )
    # Its own comes first, though the wider one is worse.
    own = condition("slow", since=EVENING)
    both = verdict_of(link({"large": SLOWER}, conditions=ordered([wide, own])))
    assert both.headline.startswith("Runs at 0.28× (0.24–0.33), with large files, 16 tests, since")
    ((said, url),) = both.also
    assert said == found.headline
    assert url.startswith("/sites/BNL-LCG2/")


def test_unconfirmed_conditions_are_apart_and_never_the_headline_of_what_is_certain():
    unsure = condition("slow", "small", confirmed=False, tests=4)
    words = (
        "Unconfirmed: runs at 0.28× (0.24–0.33), with small files, 4 tests, since 20 Nov 15:06 UTC."
    )
    found = verdict_of(link({"large": FAILING}, conditions=[condition(), unsure]))
    assert found.headline.startswith("Fails, with large files")
    assert [said for said, _ in found.unconfirmed] == [words]
    assert found.also == ()
    # Alone it keeps calm from being said.
    alone = verdict_of(link(conditions=[unsure]))
    assert (alone.kind, alone.headline, alone.unconfirmed) == ("unknown", words, ())


def test_while_measurements_are_doubtful_no_calm_is_said():
    grid = condition("slow", *RATES, ends=("", ""))
    found = verdict_of(link(doubtful=grid))
    assert found.kind == "unknown"
    assert found.headline.startswith(
        "Results have been doubtful since 20 Nov 15:06 UTC: most links"
    )
    found = verdict_of(link({"large": FAILING}, conditions=[condition()], doubtful=grid))
    assert found.headline.startswith("Fails")
    assert found.also[0][0].startswith("Results have been doubtful")


def test_newest_tests_far_from_usual_without_a_condition_are_not_called_usual():
    assert said({"large": {"now": 2.1}})[:2] == (
        "unknown",
        "Unknown: the latest three tests ran at 0.28× the baseline with large files. This may be "
        "due to chance.",
    )
    assert said({"large": {"now": 6.0}})[0] == "usual"


def test_what_works_while_others_fail_has_had_a_success_since():
    before = {"small": SINCE - HOUR, "medium": NOW}
    _, _, rest = said({"large": FAILING}, conditions=[condition()], succeeded=before)
    assert rest == "Medium files still work. The reverse direction is as usual."


def error_at(count: int, where: str, text: str, hour: int) -> CommonError:
    return CommonError(count, where, text, text, NOW.replace(hour=hour))


def test_an_error_is_counted_over_all_classes_and_that_of_the_newest_test_is_told():
    failing = {"medium": FAILING, "large": FAILING}
    of_both = [condition("failing", "medium", "large")]
    errors = {
        "large": [error_at(9, "destination", "507 Insufficient Storage", 9)],
        "medium": [
            error_at(8, "destination", "507 Insufficient Storage", 10),
            error_at(3, "source", "too many transfers", 11),
        ],
    }
    assert why(failing, conditions=of_both, errors=errors) == (
        "Most often (17 of 20) until 20 Nov 10:00: at the destination, BNL: 507 Insufficient "
        "Storage. Now: at the source, TRIUMF: too many transfers."
    )


def test_of_an_error_that_a_server_reports_the_reason_is_told():
    """Which copy that was of, and about which end it is, stands in the rest of the sentence."""
    text = (
        "COPY CAM_DATADISK/sonar/incoming/682914db-df7f-47d0-9034-a73be7bb3a02 reported about "
        'TRIUMF_DATADISK: Remote side failed with status code 403; error message: "denied "'
    )
    assert why_large([CommonError(16, "source", text)]) == (
        "Each time at the source, TRIUMF: Remote side failed with status code 403; error message: "
        '"denied".'
    )


def test_of_a_long_error_the_reason_stays():
    """As HTTP third-party copies say it: what was asked for first, and why it failed last."""
    path = "CAM_DATADISK/sonar/incoming/682914db-df7f-47d0-9034-a73be7bb3a02"
    text = f"the active end says: failure: COPY {path} refused: HTTP 403 Permission refused"
    older = [error_at(9, "source", text, 9), error_at(7, "transfer", "no bytes", 10)]
    assert (
        "the active end says: failure: COPY CAM_DATADISK/… refused: HTTP 403 Permission refused. "
        "Now: during the transfer: no bytes." in why_large(older)
    )
    # That of the newest test is said as it is.
    newest = why_large([CommonError(16, "source", text)])
    assert newest == f"Each time at the source, TRIUMF: {text}."
    long = f"{'words ' * 80}why"
    newest = why_large([CommonError(16, "source", long)])
    assert newest.endswith("words why.")
    assert " … " in newest


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ((16, "source", "403 Forbidden."), "Each time at the source, TRIUMF: 403 Forbidden."),
        ((1, "control", "no worker"), "It failed in Sonar itself: no worker."),
        (
            (2, "transfer", "no bytes\nfor 60 s"),
            "Each time during the transfer: no bytes for 60 s.",
        ),
        ((9, "source", "x" * 900), f"{'x' * 133} … {'x' * (WHOLE_ERROR - 136)}."),
    ],
)
def test_errors_are_said_in_one_line_with_where(error, words):
    found = why_large([CommonError(*error)])
    assert words in found
    assert "\n" not in found
    assert why_large([]) == ""


def test_slow_says_its_rates_and_how_other_classes_are():
    assert said({"large": SLOWER}, conditions=[condition("slow", since=EVENING)]) == (
        "slower",
        "Runs at 0.28× (0.24–0.33), with large files, 16 tests, since 19 Nov 20:15 UTC.",
        "Now 2.10 MB/s, usually 7.50. Small and medium files are as usual. The reverse direction "
        "is as usual.",
    )


def test_a_link_with_one_class_that_fails_and_one_that_is_slow_says_both():
    conditions = ordered([condition("slow", "medium"), condition()])
    found = verdict_of(link({"large": FAILING, "medium": SLOWER}, conditions=conditions))
    assert found.headline.startswith("Fails, with large files")
    assert [said for said, _ in found.also] == [
        "Runs at 0.28× (0.24–0.33), with medium files, 16 tests, since 20 Nov 15:06 UTC."
    ]
    assert found.rest == "Small files still work. The reverse direction is as usual."


def test_what_is_fast_comes_after_what_is_wrong():
    fast = condition("fast", "small")
    faster = {"small": {"level": "faster", "now": 258.0}}
    kind, headline, _ = said(faster, conditions=[fast])
    assert kind == "faster"
    assert headline.startswith("Runs at 215× (180–257), with small files")
    both = ordered([fast, condition("slow", ends=("TRIUMF", ""))])
    assert said(faster | {"large": SLOWER}, conditions=both)[0] == "slower"
    assert said(faster | {"large": FAILED}, conditions=[fast])[0] == "failed"


def test_what_is_silent_is_said_so():
    kind, headline, _ = said(every({"state": "stale"}), conditions=[condition("silent", *RATES)])
    assert kind == "silent"
    assert headline.startswith(
        "Has no new results, with small, medium and large files, since 20 Nov"
    )


def test_single_failures_of_a_link_that_works_are_counted():
    _, _, rest = said({"large": {"ok": 76, "failed": 9}, "small": {"ok": 83, "failed": 8}})
    assert "9 of 85 tests with large files failed in this time range." in rest
    assert "small" not in rest, "less than one in ten"


def test_usual_that_is_not_known_yet_is_said_so_with_what_there_is():
    assert said(every(NEW), every(NEW)) == (
        "unknown",
        "Unknown: no baseline yet. A baseline needs 5 successful tests in the 28 days before this "
        "time range; there are 2 with small files, 2 with medium files and 2 with large files.",
        "Now: 1.20 MB/s with small files, 9.60 MB/s with medium files and 7.50 MB/s with large "
        "files. The reverse direction has no baseline yet.",
    )
    _, headline, rest = said({"small": NEW})
    assert headline == "As usual: medium 1.00×, large 1.00×."
    assert "There is no baseline for small files yet." in rest


def test_one_or_two_tests_that_failed_are_no_failing_link_but_said():
    error = CommonError(1, "transfer", "checksum differs")
    found = verdict_of(link({"large": FAILED}, errors={"large": [error]}))
    only = "Failed in this time range: the only test with large files."
    assert (found.kind, found.headline) == ("failed", only)
    assert found.why == "It failed during the transfer: checksum differs."
    assert found.rest.startswith("Small and medium files are as usual.")
    two = {"large": FAILED | {"failed": 2}}
    errors = {"large": [replace(error, count=2)]}
    assert said(two, errors=errors)[1] == "Failed in this time range: all 2 tests with large files."
    assert why(two, errors=errors) == "Each time during the transfer: checksum differs."


def test_stale_says_since_when_there_was_no_test_and_how_it_was():
    late = {"state": "stale", "last": (NOW - 5 * HOUR).timestamp()}
    none = UNTESTED | {"state": "not_applicable"}
    assert said({"small": none, "medium": none, "large": late}) == (
        "stale",
        "Unknown: no test since 20 Nov 15:00 (5 h ago), which is more than two intervals of the "
        "link's mesh.",
        "At that time: 7.50 MB/s with large files. The reverse direction is as usual.",
    )
    only = {"large": late, "small": none, "medium": none}
    assert said(only, obstacle="a pause")[2].startswith("Tests are waiting because of a pause.")
    kind, _, rest = said({"large": late})
    assert kind == "usual"
    assert "Large files have not been tested recently." in rest


def test_down_says_whose_downtime_until_when_and_why():
    site = Site(name="BNL")
    long = Downtime(site=site, starts_at=NOW - HOUR, ends_at=NOW + 12 * HOUR, reason="new disks.")
    short = Downtime(site=site, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="network")
    down = every({"state": "down"})
    long.origin = "osg"
    assert said(down, down, downtimes=[short, long]) == (
        "down",
        "Down: BNL is in a declared downtime until 21 Nov 08:00 UTC: new disks.",
        "Declared in OSG Topology. Before the downtime: 1.20 MB/s with small files, 9.60 MB/s with "
        "medium files and 7.50 MB/s with large files.",
    )


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"last": None}, "Not tested yet: the first test has not run."),
        (
            {"last": None, "is_scheduled": False},
            "Not tested: no mesh includes this link, and it has no results.",
        ),
        (
            {"last": NOW - 72 * HOUR},
            "No test in this time range: the last test was 3 d ago, at 17 Nov 20:00.",
        ),
        (
            {"is_filtered": True},
            "Unknown: no result for this link in this time range matches the filters.",
        ),
    ],
)
def test_a_link_without_a_test_says_why(changes, headline):
    assert said(every(UNTESTED), every(UNTESTED), **changes) == (
        "untested",
        headline,
        "The reverse direction was not tested in this time range.",
    )


def test_a_window_that_is_over_is_spoken_of_as_of_its_end():
    _, headline, _ = said({"large": FAILING}, conditions=[condition()], is_past=True)
    assert headline.startswith("As of 20 Nov 20:00, fails, with large files, 16 of 16 tests failed")
    _, headline, _ = said(every(UNTESTED), last=NOW - 72 * HOUR, is_past=True)
    assert "the last test was 3 d before its end, at 17 Nov 20:00." in headline
    _, headline, _ = said(every(UNTESTED), last=NOW + HOUR, is_past=True, is_scheduled=False)
    assert headline == "As of 20 Nov 20:00, no test in this time range."


@pytest.mark.parametrize(
    ("back", "conditions", "words"),
    [
        (
            {"large": FAILING},
            [condition()],
            "The reverse direction fails, with large files, since 20 Nov 15:06 UTC.",
        ),
        (
            {"large": SLOWER},
            [condition("slow", ends=("", "TRIUMF"))],
            "The reverse direction is part of: TRIUMF receives at 0.28× (0.24–0.33) since 20 Nov",
        ),
        ({}, [condition(confirmed=False)], "Unconfirmed: the reverse direction fails, with large"),
        ({"large": FAILED}, [], "The reverse direction failed, with large files."),
        (every(UNTESTED), [], "The reverse direction was not tested in this time range."),
        (every({"state": "stale"}), [], "The reverse direction has not been tested recently."),
        (every(NEW), [], "The reverse direction has no baseline yet."),
    ],
)
def test_the_reverse_direction_is_one_sentence(back, conditions, words):
    assert words in said({}, back, of_reverse=conditions)[2]


def test_parts_are_joined_as_in_a_sentence():
    assert [join("abc"[:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


NAN = math.nan


def test_all_of_a_ratio_can_be_quoted():
    pair = PairRatio(41.2, 83.5, 0.4934, 0.41, 0.578, 1e-9, 1056, 58)
    assert pair.words == "0.49× (0.41–0.58), n = 1\u202f056 and 58, p < 0.001"
    bare = PairRatio(41.2, 83.5, 0.4934, NAN, NAN, NAN, 1, 58)
    assert bare.words == "0.49×, n = 1 and 58"


@pytest.mark.parametrize(
    ("ratio", "p", "kind"), [(0.5, 0.001, "slower"), (2.0, 0.001, "faster"), (NAN, NAN, "")]
)
def test_what_is_sure_is_slower_or_faster(ratio, p, kind):
    assert PairRatio(1.0, 1.0, ratio, NAN, NAN, p, 9, 9, sure=True).kind == kind


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [(0.93, 1.21, "same"), (1.02, 1.21, "perhaps"), (0.5, 0.99, "perhaps"), (1.02, 1.1, "same")],
)
def test_what_is_not_sure_may_differ_where_its_interval_leaves_out_1(low, high, kind):
    """But by a tenth at least: less is nothing that anybody would look into."""
    ratio = math.sqrt(low * high)
    assert PairRatio(1.0, 1.0, ratio, low, high, 0.029, 9, 9).kind == kind
