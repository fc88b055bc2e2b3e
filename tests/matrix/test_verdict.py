"""How a link is and how it compares, in words: every case, as somebody on shift reads it."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from matrix.answers.link.directions import Direction
from matrix.answers.link.verdict import LinkNow, Verdict, verdict_of
from matrix.answers.words.phrases import WHOLE_ERROR, join
from matrix.answers.words.ratios import PairRatio
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.transfers import CommonError
from sonar.models import Downtime, Site

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SINCE = datetime(2026, 11, 20, 15, 6, 40, tzinfo=UTC).timestamp()
EVENING = datetime(2026, 11, 19, 20, 15, tzinfo=UTC).timestamp()
NO_SPACE = CommonError(14, "destination", "507 Insufficient Storage")
RATES = {"small": 1.2, "medium": 9.6, "large": 7.5}
FAILING = {"state": "failing", "level": "unknown", "streak": 16, "since": SINCE, "failed": 16}
SLOWER = {"level": "slower", "now": 2.1, "streak": 7, "since": EVENING}
SLOWER |= {"ratio_low": 0.24, "ratio_high": 0.327}
UNTESTED: dict[str, Any] = {"state": "untested", "level": "unknown", "ok": 0, "now": np.nan}
NEW = {"level": "unknown", "usual": np.nan}
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
        ratio_low=np.nan,
        ratio_high=np.nan,
    )
    return replace(plain, **changes)


def link(there: dict[str, Any] | None = None, back: dict[str, Any] | None = None, **changes: Any):
    """Make a link of three classes; ``there`` and ``back`` change those that they name."""
    plain = LinkNow(
        there=[direction(size, **(there or {}).get(size, {})) for size in RATES],
        back=[direction(size, back=True, **(back or {}).get(size, {})) for size in RATES],
        errors={},
        at=NOW,
        is_past=False,
        downtimes=[],
        last=NOW - 20 * timedelta(minutes=1),
        is_scheduled=True,
        is_filtered=False,
    )
    return replace(plain, **changes)


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


def test_failing_says_since_when_how_many_where_and_why_and_what_still_works():
    parts = {"large": FAILING}
    assert verdict_of(link(parts, errors={"large": [NO_SPACE]})) == Verdict(
        "failing",
        "All 16 tests with large files have failed since 20 Nov 15:06.",
        "Small and medium files still work. The reverse direction is as usual.",
        "Most often (14 of 16) at the destination, BNL: 507 Insufficient Storage.",
    )


def test_several_classes_that_fail_are_one_sentence_since_the_first_of_them():
    earlier = FAILING | {"streak": 20, "since": EVENING}
    errors = {"large": [NO_SPACE], "medium": [CommonError(3, "source", "timeout")]}
    _, headline, rest = said({"medium": earlier, "large": FAILING}, errors=errors)
    assert headline == "All 36 tests with medium and large files have failed since 19 Nov 20:15."
    assert rest.startswith("Small files still work.")
    _, headline, rest = said(every(FAILING), errors=errors)
    assert headline == "All 48 tests have failed since 20 Nov 15:06."
    assert rest == "The reverse direction is as usual."
    untested = every(FAILING) | {"small": UNTESTED}
    assert said(untested)[1].startswith("All 32 tests have failed")


def error_at(count: int, where: str, text: str, hour: int) -> CommonError:
    return CommonError(count, where, text, text, NOW.replace(hour=hour))


def test_an_error_is_counted_over_all_classes_and_that_of_the_newest_test_is_told():
    errors = {
        "large": [error_at(9, "destination", "507 Insufficient Storage", 9)],
        "medium": [
            error_at(8, "destination", "507 Insufficient Storage", 10),
            error_at(3, "source", "too many transfers", 11),
        ],
    }
    assert why({"medium": FAILING, "large": FAILING}, errors=errors) == (
        "Most often (17 of 32) until 20 Nov 10:00: at the destination, BNL: 507 Insufficient "
        "Storage. Now: at the source, TRIUMF: too many transfers."
    )


def test_of_an_error_that_a_server_reports_the_reason_is_told():
    """Which copy that was of, and about which end it is, stands in the rest of the sentence."""
    text = (
        "COPY CAM_DATADISK/sonar/incoming/682914db-df7f-47d0-9034-a73be7bb3a02 reported about "
        'TRIUMF_DATADISK: Remote side failed with status code 403; error message: "denied "'
    )
    assert why({"large": FAILING}, errors={"large": [CommonError(16, "source", text)]}) == (
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
        "Now: during the transfer: no bytes." in why({"large": FAILING}, errors={"large": older})
    )
    # That of the newest test is said as it is.
    newest = why({"large": FAILING}, errors={"large": [CommonError(16, "source", text)]})
    assert newest == f"Each time at the source, TRIUMF: {text}."
    long = f"{'words ' * 80}why"
    newest = why({"large": FAILING}, errors={"large": [CommonError(16, "source", long)]})
    assert newest.endswith("words why.")
    assert " … " in newest


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ((16, "source", "403 Forbidden."), "Each time at the source, TRIUMF: 403 Forbidden."),
        (
            (2, "transfer", "no bytes\nfor 60 s"),
            "(2 of 16) during the transfer: no bytes for 60 s.",
        ),
        ((9, "control", "no worker"), "Most often (9 of 16) in Sonar itself: no work"),
        ((9, "source", "x" * 900), f"{'x' * 133} … {'x' * (WHOLE_ERROR - 136)}."),
    ],
)
def test_errors_are_said_in_one_line_with_where(error, words):
    found = why({"large": FAILING}, errors={"large": [CommonError(*error)]})
    assert words in found
    assert "\n" not in found
    assert why({"large": FAILING}) == ""


def test_a_class_that_is_slower_while_another_fails_is_said_after_it():
    _, _, rest = said({"large": FAILING, "medium": SLOWER})
    assert rest == (
        "Medium files are slower than usual: 2.10 MB/s, usually 9.60 (0.22×). "
        "Small files still work. The reverse direction is as usual."
    )


def test_slower_says_the_factor_and_since_when():
    assert said({"large": SLOWER}) == (
        "slower",
        "Less than a third of the usual rate since 19 Nov 20:15: large 0.28× (0.24–0.33).",
        "Now 2.10 MB/s, usually 7.50. Small and medium files are as usual. The reverse direction "
        "is as usual.",
    )


def test_several_slower_classes_are_one_sentence():
    later = SLOWER | {"since": SINCE, "now": 4.1, "ratio_low": 0.40, "ratio_high": 0.46}
    _, headline, rest = said({"large": SLOWER, "medium": later})
    assert headline == (
        "Less than half the usual rate since 19 Nov 20:15: medium 0.43× (0.40–0.46), "
        "large 0.28× (0.24–0.33)."
    )
    assert rest.startswith("Now 4.10 and 2.10 MB/s, usually 9.60 and 7.50. Small files are as us")


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (4.9, "Slower than usual"),
        (3.74, "Less than half the usual rate"),
        (2.4, "Less than a third of the usual rate"),
        (1.8, "Less than a quarter of the usual rate"),
        (0.7, "Less than a tenth of the usual rate"),
    ],
)
def test_how_much_slower_is_true_of_the_factor(now, words):
    assert said({"large": SLOWER | {"now": now}})[1].startswith(f"{words} since")


def test_slower_is_said_of_stale_classes_too_as_their_newest_tests_were():
    kind, _, rest = said({"large": SLOWER | {"state": "stale"}})
    assert kind == "slower"
    assert "Small and medium files are as usual." in rest


def test_faster_says_the_same_the_other_way_round():
    small = {"level": "faster", "now": 258.0, "since": EVENING, "ratio_low": 180.0}
    kind, headline, _ = said({"small": small | {"ratio_high": 257.0}})
    words = "More than ten times the usual rate since 19 Nov 20:15: small 215× (180–257)."
    assert (kind, headline) == ("faster", words)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (2.3, "Faster than usual"),
        (4.7, "More than twice the usual rate"),
        (11.5, "More than four times the usual rate"),
        (12.1, "More than ten times the usual rate"),
    ],
)
def test_how_much_faster_is_true_of_the_factor(now, words):
    small = {"level": "faster", "now": now, "since": EVENING, "ratio_low": 1.5, "ratio_high": 15.0}
    assert said({"small": small})[1].startswith(f"{words} since")


def test_what_is_slower_comes_before_what_is_faster():
    kind, _, rest = said({"small": {"level": "faster", "now": 3.0}, "large": SLOWER})
    assert kind == "slower"
    assert "Small files are faster than usual: 3.00 MB/s, usually 1.20 (2.5×)." in rest


def test_single_failures_of_a_link_that_works_are_counted():
    _, _, rest = said({"large": {"ok": 76, "failed": 9}, "small": {"ok": 83, "failed": 8}})
    assert "9 of 85 tests with large files failed in this window." in rest
    assert "small" not in rest, "less than one in ten"


def test_usual_that_is_not_known_yet_is_said_so_with_what_there_is():
    assert said(every(NEW), every(NEW)) == (
        "unknown",
        "The usual rate is not known yet: fewer than 5 successful tests in the 28 days before "
        "this window.",
        "Now: 1.20 MB/s with small files, 9.60 MB/s with medium files and 7.50 MB/s with large "
        "files. The usual rate in the reverse direction is not known yet.",
    )
    _, headline, rest = said({"small": NEW})
    assert headline == "As usual: medium 1.00×, large 1.00×."
    assert "The usual rate with small files is not known yet." in rest


def test_one_or_two_tests_that_failed_are_no_failing_link_but_said():
    error = CommonError(1, "transfer", "checksum differs")
    found = verdict_of(link({"large": FAILED}, errors={"large": [error]}))
    only = "Failed in this window: the only test with large files."
    assert (found.kind, found.headline) == ("failed", only)
    assert found.why == "It failed during the transfer: checksum differs."
    assert found.rest.startswith("Small and medium files are as usual.")
    two = {"large": FAILED | {"failed": 2}}
    errors = {"large": [replace(error, count=2)]}
    assert said(two, errors=errors)[1] == "Failed in this window: all 2 tests with large files."
    assert why(two, errors=errors) == "Each time during the transfer: checksum differs."


def test_stale_says_since_when_there_was_no_test_and_how_it_was():
    late = {"state": "stale", "last": (NOW - 5 * HOUR).timestamp()}
    none = UNTESTED | {"state": "not_applicable"}
    assert said({"small": none, "medium": none, "large": late}) == (
        "stale",
        "Stale: no test since 20 Nov 15:00 (5 h), more than two intervals of its mesh.",
        "Then: 7.50 MB/s with large files. The reverse direction is as usual.",
    )
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
        ({"last": None}, "Not tested yet: its first test has not run yet."),
        (
            {"last": None, "is_scheduled": False},
            "Not tested: no mesh includes this link, and it has never had a result.",
        ),
        (
            {"last": NOW - 72 * HOUR},
            "No test in this window: the last one was 3 d ago, at 17 Nov 20:00.",
        ),
        (
            {"is_filtered": True},
            "Not known: no result of this link in this window matches the filters.",
        ),
    ],
)
def test_a_link_without_a_test_says_why(changes, headline):
    assert said(every(UNTESTED), every(UNTESTED), **changes) == (
        "untested",
        headline,
        "The reverse direction has no test in this window.",
    )


def test_what_fails_since_before_the_window_fails():
    kind, _, _ = said({"small": UNTESTED, "medium": UNTESTED, "large": FAILING | {"failed": 0}})
    assert kind == "failing"


def test_a_window_that_is_over_is_spoken_of_as_of_its_end():
    _, headline, _ = said({"large": FAILING}, is_past=True)
    assert headline.startswith("As of 20 Nov 20:00, all 16 tests with large files have failed si")
    _, headline, _ = said(every(UNTESTED), last=NOW - 72 * HOUR, is_past=True)
    assert "the last one before its end was 3 d earlier, at 17 Nov 20:00." in headline
    _, headline, _ = said(every(UNTESTED), last=NOW + HOUR, is_past=True, is_scheduled=False)
    assert headline == "As of 20 Nov 20:00, no test in this window."


@pytest.mark.parametrize(
    ("there", "back", "words"),
    [
        ({}, {"large": FAILING}, "The reverse direction is failing, with large files."),
        ({"large": FAILING}, every(FAILING), "The reverse direction is failing, too, with small, "),
        ({}, {"large": FAILED}, "The reverse direction failed, with large files."),
        ({}, {"large": SLOWER}, "The reverse direction is slower than usual: 0.28× with large fil"),
        (
            {"large": SLOWER},
            {"large": SLOWER},
            "The reverse direction is slower than usual, too: 0.28× with large files.",
        ),
        ({}, every(UNTESTED), "The reverse direction has no test in this window."),
        ({}, every({"state": "stale"}), "The reverse direction has not been tested recently."),
        ({}, every(NEW), "The usual rate in the reverse direction is not known yet."),
    ],
)
def test_the_reverse_direction_is_one_sentence(there, back, words):
    assert words in said(there, back)[2]


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
