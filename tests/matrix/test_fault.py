"""Whose fault it is that tests of a link fail: one statement, by where and by what others do."""

from typing import Any

import pytest

from matrix.answers.diagnosis.failures import FailureCounts, Fault, fault_of

NAMES = {"source": "LANCS", "destination": "CAM"}
PAIR = "Check what is specific to this pair: permissions, routing, firewalls."
FINE, SOME, OFTEN, FEW = (1, 50), (10, 50), (30, 40), (2, 2)


def said(
    where: dict[str, int], source: tuple[int, int] = FINE, destination: tuple[int, int] = FINE
) -> Any:
    return fault_of(FailureCounts(NAMES, where, {"source": source, "destination": destination}))


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"destination": 16}, "The destination refuses this source only; others work (1 of 50"),
        ({"source": 16}, "The source refuses this destination only; others work (1 of 50 tests"),
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
        "The destination fails with others, too: 30 of 40 tests from other sources to CAM failed.",
        "Check CAM first.",
    )


def test_of_two_ends_that_fail_with_others_that_is_named_at_which_the_tests_fail():
    assert said({"source": 9}, source=OFTEN) == Fault(
        "The source fails with others, too: 30 of 40 tests from LANCS to other destinations "
        "failed.",
        "Check LANCS first.",
    )
    for end, name in NAMES.items():
        assert said({end: 9}, OFTEN, OFTEN).advice == f"Check {name} first."


@pytest.mark.parametrize("where", ["destination", "transfer"])
def test_an_end_that_fails_with_some_others_is_named(where):
    assert said({where: 9}, destination=SOME) == Fault(
        "The destination fails with some others, too: 10 of 50 tests from other sources to CAM "
        "failed.",
        "Check CAM first.",
    )


def test_without_other_links_nothing_is_said_of_others():
    assert said({"destination": 9}, destination=FEW) == Fault(
        "The destination fails; its other links have too few tests to compare.",
        "Check CAM first.",
    )
    assert said({"transfer": 9}, source=FEW) is None
    assert fault_of(FailureCounts(NAMES, {}, {})) is None


def test_sonar_itself_is_no_endpoint():
    found = said({"control": 9}, source=OFTEN, destination=OFTEN)
    assert found.sentence == "Sonar itself failed, not an endpoint."
