"""Fills the database that its environment names with a full matrix.

Runs as a process of its own: `python -m tests.benchmarks.full_database ENDPOINTS`.
"""

import sys
from datetime import timedelta

import django


def main(endpoints: int) -> None:
    django.setup()
    from django.core.management import call_command

    from tests.benchmarks import full, scale

    call_command("migrate", verbosity=0)
    full.fill(endpoints, scale.END - timedelta(hours=1))
    full.store_one_link(scale.END - timedelta(days=6), hours=3)


if __name__ == "__main__":
    main(int(sys.argv[1]))
