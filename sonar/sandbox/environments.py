"""What each process of `make run` finds in its environment: no secret that it does not need."""

from __future__ import annotations

import os

# Any program needs them; Sonar's settings, and secrets of whoever started it, are not among them.
OF_THE_SYSTEM = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
# Who logs in, and what signs sessions. A file takes the place of the key where a process starts.
OF_THE_WEB = (
    *("SONAR_OIDC_", "SONAR_SECRET_KEY", "SONAR_LOGIN_ROLES", "SONAR_X509_PROXIES"),
    *("SONAR_PASSWORDS",),
)


def plain() -> dict[str, str]:
    """Return the environment of what has no settings: PostgreSQL, Redis, the storage nodes."""
    return {name: value for name, value in os.environ.items() if name in OF_THE_SYSTEM}


def of_sender() -> dict[str, str]:
    """Return that of workers and beat: all settings but those of the web."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_THE_WEB)}


def of_web() -> dict[str, str]:
    return dict(os.environ)
