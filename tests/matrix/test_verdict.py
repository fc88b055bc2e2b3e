"""How a link is, in words: every case, as somebody on shift reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from matrix.answers.link.class_words import LONGEST_ERROR, join
from matrix.answers.link.directions import Direction
from matrix.answers.link.verdict import LinkNow, verdict_of
from matrix.statistics.axes import EndpointInfo
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


def test_as_usual_has_the_rates_of_all_classes() -> None:
    assert said() == (
        "usual",
        "As usual: 1.20 MB/s with small files (usual 1.20), 9.60 with medium (9.60) and "
        "7.50 with large (7.50).",
        "The reverse direction is as usual.",
    )


def test_failing_says_since_when_how_many_where_and_why_and_what_still_works() -> None:
    kind, headline, rest = said({"large": FAILING}, errors={"large": [NO_SPACE]})
    assert kind == "failing"
    assert headline == (
        "Failing since 2026-11-20 15:06 UTC: the last 16 tests with large files failed, "
        "14 of them at the destination, BNL: 507 Insufficient Storage."
    )
    assert rest == "Small and medium files still work. The reverse direction is as usual."


def test_several_classes_that_fail_are_one_sentence_since_the_first_of_them() -> None:
    earlier = FAILING | {"streak": 20, "since": EVENING}
    errors = {"large": [NO_SPACE], "medium": [CommonError(3, "source", "timeout")]}
    _, headline, rest = said({"medium": earlier, "large": FAILING}, errors=errors)
    assert headline == (
        "Failing since 2026-11-19 20:15 UTC: the last 36 tests with medium and large files failed, "
        "14 of them at the destination, BNL: 507 Insufficient Storage."
    )
    assert rest.startswith("Small files still work.")
    _, headline, rest = said(every(FAILING), errors=errors)
    assert "the last 48 tests with small, medium and large files failed" in headline
    assert rest == "The reverse direction is as usual."


def test_an_error_is_counted_over_all_classes_and_that_of_the_newest_test_is_told() -> None:
    def error(count: int, where: str, text: str, hour: int) -> CommonError:
        return CommonError(count, where, text, text, NOW.replace(hour=hour))

    errors = {
        "large": [error(9, "destination", "507 Insufficient Storage", 9)],
        "medium": [
            error(8, "destination", "507 Insufficient Storage", 10),
            error(3, "source", "too many transfers", 11),
        ],
    }
    _, headline, _ = said({"medium": FAILING, "large": FAILING}, errors=errors)
    assert headline.endswith(
        "the last 32 tests with medium and large files failed, 17 of them at the destination, BNL: "
        "507 Insufficient Storage; the newest at the source, TRIUMF: too many transfers."
    )


def test_of_a_long_error_the_reason_stays() -> None:
    """As HTTP third-party copies say it: what was asked for first, and why it failed last."""
    path = "CAM_DATADISK/sonar/incoming/682914db-df7f-47d0-9034-a73be7bb3a02"
    text = f"the active end says: failure: COPY {path} refused: HTTP 403 Permission refused"
    _, headline, _ = said({"large": FAILING}, errors={"large": [CommonError(16, "source", text)]})
    assert headline.endswith(
        "the active end says: failure: COPY CAM_DATADISK/… refused: HTTP 403 Permission refused."
    )
    text = f"{'words ' * 30}why"
    _, headline, _ = said({"large": FAILING}, errors={"large": [CommonError(16, "source", text)]})
    assert headline.endswith("words why.")
    assert " … " in headline


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            CommonError(16, "source", "403 Forbidden."),
            ", all of them at the source, TRIUMF: 403 Forbidden.",
        ),
        (CommonError(2, "transfer", "no bytes\nfor 60 s"), ", 2 of them during the transfer: no b"),
        (CommonError(9, "control", "no worker"), ", 9 of them in Sonar itself: no worker."),
        (CommonError(9, "source", "x" * 200), f"{'x' * 30} … {'x' * (LONGEST_ERROR - 33)}."),
        (None, "with large files failed."),
    ],
)
def test_errors_are_said_in_one_line_with_where(error: CommonError | None, words: str) -> None:
    _, headline, _ = said({"large": FAILING}, errors={"large": [error]} if error else {})
    assert words in headline
    assert "\n" not in headline


def test_a_class_that_is_slower_while_another_fails_is_said_after_it() -> None:
    _, _, rest = said({"large": FAILING, "medium": SLOWER})
    assert rest == (
        "Medium files are slower than usual: 2.10 MB/s, 9.60 usual (0.22×). "
        "Small files still work. The reverse direction is as usual."
    )


def test_slower_says_now_usual_the_factor_and_since_when() -> None:
    kind, headline, rest = said({"large": SLOWER})
    assert (kind, headline) == (
        "slower",
        "Slower than usual: 2.10 MB/s now with large files, 7.50 usual (0.28×), since "
        "2026-11-19 20:15 UTC.",
    )
    assert rest == "Small and medium files are as usual. The reverse direction is as usual."


def test_several_slower_classes_are_one_sentence() -> None:
    later = SLOWER | {"since": SINCE, "now": 3.2}
    _, headline, _ = said({"large": SLOWER, "medium": later})
    assert headline == (
        "Slower than usual: 3.20 MB/s now with medium files, 9.60 usual (0.33×); 2.10 with "
        "large files, 7.50 usual (0.28×); the first since 2026-11-19 20:15 UTC."
    )


def test_slower_is_said_of_stale_classes_too_as_their_newest_tests_were() -> None:
    kind, _, rest = said({"large": SLOWER | {"state": "stale"}})
    assert kind == "slower"
    assert "Small and medium files are as usual." in rest


def test_faster_says_the_same_the_other_way_round() -> None:
    kind, headline, _ = said({"small": {"level": "faster", "now": 258.0, "since": EVENING}})
    assert (kind, headline) == (
        "faster",
        "Faster than usual: 258 MB/s now with small files, 1.20 usual (215×), since "
        "2026-11-19 20:15 UTC.",
    )


def test_what_is_slower_comes_before_what_is_faster() -> None:
    kind, _, rest = said({"small": {"level": "faster", "now": 3.0}, "large": SLOWER})
    assert kind == "slower"
    assert "Small files are faster than usual: 3.00 MB/s, 1.20 usual (2.5×)." in rest


def test_single_failures_of_a_link_that_works_are_counted() -> None:
    _, _, rest = said({"large": {"ok": 76, "failed": 9}, "small": {"ok": 83, "failed": 8}})
    assert "9 of 85 tests with large files failed in this window." in rest
    assert "small" not in rest, "less than one in ten"


def test_usual_that_is_not_known_yet_is_said_so_with_what_there_is() -> None:
    kind, headline, rest = said(every(NEW), every(NEW))
    assert (kind, headline) == (
        "unknown",
        "The usual rate is not known yet: fewer than 5 successful tests in the 28 days before "
        "this window.",
    )
    assert rest == (
        "Now: 1.20 MB/s with small files, 9.60 MB/s with medium files and 7.50 MB/s with large "
        "files. The usual rate in the reverse direction is not known yet."
    )
    _, headline, rest = said({"small": NEW})
    assert headline.startswith("As usual: 9.60 MB/s with medium files")
    assert "The usual rate with small files is not known yet." in rest


def test_one_or_two_tests_that_failed_are_no_failing_link_but_said() -> None:
    error = CommonError(1, "transfer", "checksum differs")
    kind, headline, rest = said({"large": FAILED}, errors={"large": [error]})
    assert (kind, headline) == (
        "failed",
        "Failed in this window: the one test with large files, during the transfer: "
        "checksum differs.",
    )
    assert rest.startswith("Small and medium files are as usual.")
    two = FAILED | {"failed": 2}
    _, headline, _ = said({"large": two}, errors={"large": [replace(error, count=2)]})
    assert "all 2 tests with large files, all of them during the transfer" in headline


def test_stale_says_since_when_there_was_no_test_and_how_it_was() -> None:
    late = {"state": "stale", "last": (NOW - 5 * HOUR).timestamp()}
    none = UNTESTED | {"state": "not_applicable"}
    kind, headline, rest = said({"small": none, "medium": none, "large": late})
    assert (kind, headline) == (
        "stale",
        "Stale: no test since 2026-11-20 15:00 UTC (5 h), more than two intervals of its mesh.",
    )
    assert rest == "Then: 7.50 MB/s with large files. The reverse direction is as usual."
    kind, _, rest = said({"large": late})
    assert kind == "usual"
    assert "Large files have not been tested recently." in rest


def test_down_says_whose_downtime_until_when_and_why() -> None:
    site = Site(name="BNL")
    long = Downtime(site=site, starts_at=NOW - HOUR, ends_at=NOW + 12 * HOUR, reason="new disks.")
    short = Downtime(site=site, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="network")
    down = every({"state": "down"})
    kind, headline, rest = said(down, down, downtimes=[short, long])
    assert (kind, headline) == (
        "down",
        "Down: BNL is in a declared downtime until 2026-11-21 08:00 UTC: new disks.",
    )
    assert rest == (
        "Before the downtime: 1.20 MB/s with small files, 9.60 MB/s with medium files and 7.50 "
        "MB/s with "
        "large files."
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
            "No test in this window: the last one was 3 d ago, at 2026-11-17 20:00 UTC.",
        ),
        (
            {"is_filtered": True},
            "Not known: no result of this link in this window matches the filters.",
        ),
    ],
)
def test_a_link_without_a_test_says_why(changes: dict[str, Any], headline: str) -> None:
    assert said(every(UNTESTED), every(UNTESTED), **changes) == (
        "untested",
        headline,
        "The reverse direction has no test in this window.",
    )


def test_what_fails_since_before_the_window_fails() -> None:
    kind, _, _ = said({"small": UNTESTED, "medium": UNTESTED, "large": FAILING | {"failed": 0}})
    assert kind == "failing"


def test_a_window_that_is_over_is_spoken_of_as_of_its_end() -> None:
    _, headline, _ = said({"large": FAILING}, is_past=True)
    assert headline.startswith("As of 2026-11-20 20:00 UTC: failing since 2026-11-20 15:06 UTC:")
    _, headline, _ = said(every(UNTESTED), last=NOW - 72 * HOUR, is_past=True)
    assert "the last one before its end was 3 d earlier, at 2026-11-17 20:00 UTC" in headline
    _, headline, _ = said(every(UNTESTED), last=NOW + HOUR, is_past=True, is_scheduled=False)
    assert headline == "As of 2026-11-20 20:00 UTC: no test in this window."


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
def test_the_reverse_direction_is_one_sentence(
    there: dict[str, Any], back: dict[str, Any], words: str
) -> None:
    assert words in said(there, back)[2]


def test_parts_are_joined_as_in_a_sentence() -> None:
    assert [join("abc"[:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
