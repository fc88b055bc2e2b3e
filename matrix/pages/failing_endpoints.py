"""Ends by which tests keep failing, whose tests are spread thin until one succeeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from matrix.pages.notices import Notice
from matrix.query.addresses import site_url
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Circuit
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute

# Where half the grid is away, the first ones say it.
MOST_NAMED = 10


def notices(failing: Sequence[Circuit], now: datetime) -> list[Notice]:
    """Say of each end since when its tests fail and why the last did, and how many there are."""
    notices = []
    for circuit in failing[:MOST_NAMED]:
        name, site = circuit.endpoint.name, circuit.endpoint.site.name
        count = circuit.failures
        tests = "1 test" if count == 1 else f"{format_count(count)} tests in a row"
        notice = Notice(
            "circuit",
            f"{tests} failed because of {name}",
            f"since {format_minute(circuit.since)}, most recently "
            f"{format_age(now - circuit.last_at)}: its tests run less often until one succeeds. "
            f"Last error: {circuit.error}",
            ((f"Look at {site}", site_url(site, MatrixQuery())),),
        )
        notices.append(notice)
    if more := len(failing) - len(notices):
        ends = "1 more endpoint keeps" if more == 1 else f"{format_count(more)} more endpoints keep"
        sentence = "their tests run less often, too. The API lists all of them under status/."
        notices.append(Notice("circuit", f"{ends} failing:", sentence))
    return notices
