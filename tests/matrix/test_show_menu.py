"""The menu of what the cells of a matrix show."""

import pytest

from matrix.query.catalogue import STATISTICS

pytestmark = pytest.mark.django_db


def test_each_statistic_is_offered_with_what_it_is_for():
    purposes = {statistic.purpose for statistic in STATISTICS.values()}
    assert all(purposes)
    assert len(purposes) == len(STATISTICS)


@pytest.mark.usefixtures("at_noon")
def test_bounds_go_along_to_statistics_in_their_unit_alone(client, small_world):
    controls = client.get("/?stat=p95&order=tier&above=2&high=9").context["controls"]
    urls = {choice.label: choice.url for choice in controls["shows"]}
    assert urls["median"] == "/?stat=median&order=tier&above=2&high=9"
    assert urls["success (%)"] == "/?stat=success&order=tier"
    assert [choice.label for choice in controls["shows"] if choice.chosen] == ["95th percentile"]
    by = {choice.label: choice.url for choice in controls["groupings"]}
    assert by["cloud"] == "/?stat=p95&rows=cloud&columns=cloud&order=tier&above=2&high=9"
    mixed = client.get("/?rows=site&columns=tier").context["controls"]
    assert (mixed["grouping"], [choice for choice in mixed["groupings"] if choice.chosen]) == (
        "site × tier", [],
    )  # fmt: skip
