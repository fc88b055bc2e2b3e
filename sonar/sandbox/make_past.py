"""Give a new sandbox its past, beside its first tests: ``python -m sonar.sandbox.make_past``."""

from __future__ import annotations

import os

import django

# First tests and pages, for which somebody waits, go first.
NICENESS = 10


def main() -> None:
    os.nice(NICENESS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    django.setup()
    from sonar.sandbox import past_store

    past_store.make()


if __name__ == "__main__":
    main()
