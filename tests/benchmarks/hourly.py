"""Makes the database of goal 7: a sample of each link in each hour of one day.

Runs as a process of its own, on the database that its environment names:
`python -m tests.benchmarks.hourly ENDPOINTS`.
"""

import sys

import django


def main(endpoints: int) -> None:
    django.setup()
    from django.core.management import call_command

    from sonar.results import sealing
    from tests.benchmarks import data, load, registry
    from tests.benchmarks.prepare import LATER

    call_command("migrate", verbosity=0)
    day = data.hourly(endpoints)
    load.load([day], registry.register(endpoints), lambda _: None)
    sealing.seal(LATER)
    load.vacuum("sonar_segment", "sonar_dirtymark")


if __name__ == "__main__":
    main(int(sys.argv[1]))
