"""A month of tests between sites of one endpoint each, for links that are judged by their days."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np

from sonar.models import Endpoint, Site
from tests.matrix import world

DAY = timedelta(days=1)


def month_of(
    count: int, rate: Callable[[int, int, int], float | None], per_day: int = 2
) -> list[Endpoint]:
    """Store 31 days of tests between so many sites; ``rate`` is of source, destination and day.

    Day 0 ends now. Rates scatter by x1.35.
    """
    rng = np.random.default_rng(15)
    sites = Site.objects.bulk_create(Site(name=f"S{number:02}") for number in range(count))
    places = list(world.endpoints((f"{site.name}_DISK", site) for site in sites).values())
    with world.transfers() as some:
        for row, source in enumerate(places):
            for column, destination in enumerate(places):
                for test in range(31 * per_day if row != column else 0):
                    day, part = divmod(test, per_day)
                    usual = rate(row, column, day)
                    noisy = None if usual is None else usual * float(np.exp(rng.normal(0, 0.3)))
                    ago = day * DAY + (part + 0.5) * DAY / per_day
                    some.add(source, destination, noisy, ago=ago)
    return places


def slow_link(row: int, column: int, day: int) -> float:
    """Return 20 MB/s, and a third of it from site 3 to site 5 on the last day."""
    return 20 / (3 if (row, column, day) == (3, 5, 0) else 1)
