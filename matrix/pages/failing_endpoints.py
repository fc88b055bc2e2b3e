"""Ends by which tests keep failing, whose tests are spread thin until one succeeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from matrix.pages.notices import Notice
from matrix.query.addresses import site_url
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Circuit
from sonar.units import format_age, format_count
from sonar.windows import format_moment

# Where half the grid is away, the first ones say it.
MOST_NAMED = 10


def notices(failing: Sequence[Circuit], now: datetime) -> list[Notice]:
    """Say of each end since when its tests fail and why the last did, and how many there are."""
    said = [of_end(one, now) for one in failing[:MOST_NAMED]]
    if more := len(failing) - len(said):
        ends = "1 more end fails" if more == 1 else f"{format_count(more)} more ends fail"
        sentence = "the tests of each are spread thin as well. status/ of the API has them all."
        said.append(Notice("circuit", f"{ends}:", sentence))
    return said


def of_end(one: Circuit, now: datetime) -> Notice:
    name, site = one.endpoint.name, one.endpoint.site.name
    tests = "1 test has" if one.failures == 1 else f"{format_count(one.failures)} tests have"
    return Notice(
        "circuit",
        f"{tests} failed by {name} in a row",
        f"since {format_moment(one.since)}, the last {format_age(now - one.last_at)}: its tests "
        f"are spread thin until one succeeds. The last error: {one.error}",
        ((f"Look at {site}", site_url(site, MatrixQuery())),),
    )
