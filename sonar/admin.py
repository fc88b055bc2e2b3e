"""The Django admin: the registry is edited there, tests and results are only looked at."""

from sonar.administration import accounts, notes, registry, results  # noqa: F401 - as they register
