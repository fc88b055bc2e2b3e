"""Fills the database that its environment names, as a process of its own.

`python -m tests.benchmarks.fill hourly|every_cell ENDPOINTS`, or `... year SCALE`.
"""

import sys
from datetime import timedelta

import django


def main(what: str, argument: str) -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    FILLS[what](argument)


def hourly(endpoints: str) -> None:
    """Store a sample of each link in each hour of one day."""
    from sonar.results import sealing
    from tests.benchmarks import data, load, prepare, registry

    load.load([data.hourly(int(endpoints))], registry.register(int(endpoints)), lambda _: None)
    sealing.seal(prepare.LATER)
    load.vacuum("sonar_segment", "sonar_dirtymark")


def every_cell(endpoints: str) -> None:
    """Store one result of each link, and some of one link earlier in the week."""
    from tests.benchmarks import full, scale

    full.fill(int(endpoints), scale.END - timedelta(hours=1))
    full.store_one_link(scale.END - timedelta(days=6), hours=3)


def year(scale: str) -> None:
    """Store the rows of a scale, spread over a year."""
    from tests.benchmarks import data, load, registry
    from tests.benchmarks.year import year_of

    of_year = year_of(scale)
    load.load(data.days(of_year), registry.register(of_year.endpoints), lambda _: None)
    load.vacuum("sonar_transfer")


FILLS = {"hourly": hourly, "every_cell": every_cell, "year": year}

if __name__ == "__main__":
    main(*sys.argv[1:])
