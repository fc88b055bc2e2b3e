"""The Django admin: the registry is edited there, tests and results are only looked at."""
