"""The sentences that a site's page begins with: what changed there, and what is as usual."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from matrix.answers.conditions.reading import Judgement
from matrix.answers.site.site_links import SiteLink
from matrix.answers.site.verdict import SiteAnswer, end_kind, verdict_of
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Condition, Endpoint, Site

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CHANGED = datetime(2026, 11, 19, 20, 15, tzinfo=UTC)
TYPES = Condition.Type
ENDS = {
    name: Endpoint(id=at, name=f"{name}_DISK", site=Site(id=at, name=name))
    for at, name in enumerate(("RAL", "OX", "PIC", "DESY"), start=1)
}
RAL, OX, PIC, DESY = ENDS.values()
AS_USUAL = (
    "As usual: sends at 0.98× (0.92–1.04, 10 links) and receives at 0.98× (0.92–1.04, 10 links) of "
    "the baseline."
)
UNKNOWN = (
    "Links {} RAL have no baselines yet. A baseline needs 5 successful tests before the time range."
)


def link(number: int, end: str = "destination", **values: Any) -> SiteLink:
    """Return a link with a partner that is as usual, at 0.90 to 1.06 of its baseline."""
    ends = ("RAL_DISK", f"P{number}_DISK")
    source, destination = ends if end == "source" else ends[::-1]
    usual: dict[str, Any] = {
        "mean": 10.0, "std": 0.0, "ok": 3, "failed": 0, "last": 0.0, "state": "measured",
        "level": "usual", "now": 9.0 + 1.6 * number / 9, "usual": 10.0, "since": math.nan,
        "partly": False, "streak": 0, "unconfirmed": False,
    }  # fmt: skip
    return SiteLink(source, destination, partner=f"P{number}", **(usual | values))


def links(end: str, count: int = 10, **values: Any) -> list[SiteLink]:
    return [link(number, end, **values) for number in range(count)]


def condition(type_: str = TYPES.FAILING, **values: Any) -> Condition:
    """Return a condition with 8 of 10 links, or of one, since CHANGED."""
    ends = {values.get("source"), values.get("destination")}
    scope = "site" if "site" in values else "grid" if ends == {None} else "link"
    if scope == "link" and None in ends:
        scope = "source" if "source" in values else "destination"
    factors = dict.fromkeys(("factor", "factor_low", "factor_high"))
    if type_ in (TYPES.SLOW, TYPES.FAST):
        factors = {"factor": 0.3, "factor_low": 0.27, "factor_high": 0.33}
    since = values.pop("since", CHANGED)
    known = {
        "scope": "endpoint" if len(ends) == 1 and scope == "link" else scope,
        "size_classes": ["large"], "since": since, "since_low": since, "since_high": since,
        "confirmed_at": NOW, "links": 8, "of_links": 10,
    }  # fmt: skip
    return Condition(type=type_, **(known | factors | values))


def said(
    *conditions: Condition,
    received: Iterable[SiteLink] | None = None,
    sent: Iterable[SiteLink] | None = None,
    as_of: datetime | None = NOW,
    is_late: bool = False,
    is_past: bool = False,
) -> SiteAnswer:
    report: Any = SimpleNamespace(name="RAL", query=MatrixQuery(), moment=NOW)
    ends = {
        "destination": links("destination") if received is None else list(received),
        "source": links("source") if sent is None else list(sent),
    }
    judgement = Judgement(list(conditions), as_of, is_late, NOW)
    return verdict_of(report, ends, judgement, is_past=is_past, names={"OX_DISK": "OX"})


def test_conditions_come_first_those_of_the_site_before_those_of_its_links():
    found = said(
        condition(source=RAL, destination=OX, since=CHANGED - HOUR),
        condition(TYPES.SLOW, destination=RAL),
        sent=[*links("source", 9), link(9, "source", state="failing", level="unknown")],
        received=[link(0), *(link(at, level="slower") for at in range(1, 9))],
    )
    assert [line.sentence for line in found.lines] == [
        "RAL_DISK receives at 0.30× (0.27–0.33), with large files, on 8 of 10 links, since 19 Nov "
        "20:15 UTC.",
        "RAL_DISK to OX fails, with large files, since 19 Nov 19:15 UTC.",
        "10 of 19 links are as usual.",
    ]
    assert found.lines[0].url.startswith("/sites/RAL/?from=2026-11-05T20:15:00Z")
    assert found.lines[1].url.startswith("/links/RAL_DISK/OX_DISK/?")
    assert found.kind == "failing"
    assert said(condition(TYPES.SLOW, destination=RAL)).kind == "slower"


def test_a_destination_where_each_test_failed_says_so_first_and_is_nowhere_as_usual():
    """One test or two a link: no link could be judged alone."""
    failed = links("destination", ok=0, failed=1, level="unknown", state="failed")
    found = said(condition(destination=RAL, links=10), received=failed)
    assert found.news == (
        "RAL_DISK fails as destination, with large files, on 10 of 10 links, since 19 Nov 20:15 "
        "UTC."
    )
    assert "receives at" not in found.sentence
    before = said(received=failed)
    assert "receives at" not in before.sentence
    assert before.kind == "usual"
    mixed = said(received=[*failed[:8], link(8), link(9)])
    assert mixed.lines[1].sentence == (
        "12 of 20 links are as usual and 8 have too few tests for an assessment (8 of 8 failed)."
    )
    assert "receives" not in mixed.sentence


def test_conditions_of_partners_are_apart_and_do_not_colour_the_site():
    found = said(
        condition(destination=DESY), sent=[*links("source", 9), link(9, "source", state="failing")]
    )
    assert found.kind == "usual"
    assert found.news.startswith("As usual: receives at 0.98×")
    assert found.lines[1].sentence == "19 of 20 links are as usual."
    (line,) = found.partners
    assert line.sentence.startswith("DESY_DISK fails as destination")
    assert "Conditions at partner sites: DESY_DISK fails" in found.sentence


def test_unconfirmed_conditions_are_apart_and_nothing_is_called_well_for_them():
    found = said(
        condition(destination=RAL, confirmed_at=None), condition(source=OX, confirmed_at=None)
    )
    assert found.kind == "unknown"
    assert [line.sentence for line in found.lines] == [
        "No condition is confirmed yet.",
        "As usual: sends at 0.98× (0.92–1.04, 10 links) of the baseline.",
    ]
    (line,) = found.unconfirmed
    assert line.sentence.startswith("RAL_DISK fails as destination")
    assert found.sentence.endswith(", unconfirmed.")
    assert not found.conditions


def test_conditions_of_other_size_classes_are_not_of_this_one():
    found = said(condition(destination=RAL, size_classes=["small", "medium"]))
    assert (found.kind, found.sentence) == ("usual", AS_USUAL)


def test_many_conditions_are_counted():
    partners = [Endpoint(id=at, name=f"P{at}", site=Site(id=at, name=f"P{at}")) for at in range(9)]
    found = said(*(condition(source=RAL, destination=partner) for partner in partners))
    assert [line.sentence for line in found.lines[3:]] == [
        "6 more conditions on links of this site.",
        AS_USUAL,
    ]
    assert len(found.conditions) == 9


def test_where_measurements_are_doubtful_that_is_first_and_what_began_then_is_not_listed():
    found = said(
        condition(TYPES.SLOW, since=CHANGED),
        condition(TYPES.SLOW, destination=RAL, since=CHANGED + HOUR),
        condition(source=RAL, destination=OX, since=CHANGED - HOUR),
    )
    assert found.news.startswith("Results have been doubtful since 19 Nov 20:15 UTC")
    assert [each.scope for each in found.conditions] == ["link"]
    assert said(condition(TYPES.SLOW)).kind == "unknown"


@pytest.mark.parametrize(
    ("as_of", "is_late", "text"),
    [
        (None, False, "Not assessed yet."),
        (NOW - HOUR, True, "Not assessed since 20 Nov 11:00 UTC."),
    ],
)
def test_what_was_not_assessed_is_not_as_usual(as_of, is_late, text):
    found = said(as_of=as_of, is_late=is_late)
    assert found.kind == "unknown"
    assert found.sentence == f"{text} 60 of 60 tests succeeded, on 20 of 20 links."
    # A past is what it was judged to be.
    assert said(as_of=as_of, is_late=is_late, is_past=True).kind == "usual"


def test_a_site_that_is_as_usual_says_so_at_once_with_factor_interval_and_links():
    found = said()
    assert (found.kind, found.sentence) == ("usual", AS_USUAL)
    alone = said(received=links("destination", 2), sent=[])
    assert alone.sentence == (
        "As usual: receives at 0.91× (2 links) of the baseline. No links from RAL are tested with "
        "large files."
    )


@pytest.mark.parametrize(
    ("values", "kind", "sentence"),
    [
        ({"level": "unknown"}, "unknown", UNKNOWN),
        (
            {"ok": 0, "level": "unknown"},
            "untested",
            "Links {} RAL have no results for large files in this time range.",
        ),
        ({"state": "down"}, "down", "All links {} RAL are in declared downtimes."),
        (None, "none", "No links {} RAL are tested with large files."),
    ],
)
def test_what_is_missing_is_said_of_the_site_or_of_an_end(values, kind, sentence):
    def at(end: str) -> list[SiteLink]:
        return [] if values is None else links(end, **values)

    nothing = said(received=at("destination"), sent=at("source"))
    assert nothing.kind == kind
    assert nothing.lines[-1].sentence == sentence.format("to or from")
    found = said(sent=at("source"))
    assert found.news == "As usual: receives at 0.98× (0.92–1.04, 10 links) of the baseline."
    assert found.lines[1].sentence == sentence.format("from")


def test_before_anything_is_usual_it_says_what_was_tested():
    new = {"level": "unknown", "usual": math.nan, "now": math.nan}
    received = [link(0, ok=2, failed=1, **new), link(1, ok=0, **new)]
    found = said(received=received, sent=links("source", 1, ok=1, **new))
    assert found.kind == "unknown"
    assert found.news == "3 of 4 tests succeeded, on 2 of 3 links."


def test_all_links_are_counted_by_how_they_are():
    received = [
        *links("destination", 5),
        link(5, level="unknown", ok=1),
        link(6, level="unknown", ok=0),
        link(7, state="down"),
        link(8, level="unknown", unconfirmed=True),
    ]
    assert said(received=received).lines[1].sentence == (
        "15 of 19 links are as usual, 1 has an unconfirmed condition, 1 has too few tests for an "
        "assessment, 1 has no tests in this time range and 1 is in a declared downtime."
    )


def test_a_link_within_the_site_counts_once():
    within = SiteLink(**vars(link(0)) | {"source": "RAL_DISK", "destination": "RAL_TAPE"})
    new = SiteLink(**vars(within) | {"level": "unknown"})
    found = said(received=[link(1), new], sent=[link(1, "source"), new])
    assert "2 of 3 links are as usual and 1 has too few tests" in found.sentence


def test_a_window_that_is_over_is_as_of_its_end():
    ended = condition(TYPES.SLOW, destination=RAL, ended_at=NOW + HOUR)
    found = said(ended, is_past=True)
    assert found.news == (
        "At 20 Nov 12:00: RAL_DISK received at 0.30× (0.27–0.33), with large files, on 8 of 10 "
        "links, from 19 Nov 20:15 until 20 Nov 13:00 UTC."
    )
    assert said(is_past=True).news == f"At 20 Nov 12:00: {AS_USUAL}"


def test_an_end_has_the_level_of_its_own_condition_and_not_of_its_links():
    of_link = condition(source=RAL, destination=OX)
    assert end_kind([of_link], "RAL", "source") == ""
    both = [of_link, condition(TYPES.SLOW, destination=RAL), condition(destination=DESY)]
    assert end_kind(both, "RAL", "destination") == "slower"
    assert end_kind([*both, condition(site=RAL.site)], "RAL", "source") == "failing"
    assert end_kind([condition(source=RAL, destination=RAL)], "RAL", "source") == "failing"
