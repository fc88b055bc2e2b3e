"""Give a new sandbox its past, beside its first tests: ``python -m sonar.sandbox.make_past``."""

import os

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    django.setup()
    from sonar.sandbox import past_store

    past_store.make()


if __name__ == "__main__":
    main()
