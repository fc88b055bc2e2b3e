"""What servers of storage are trusted by and shown, and who tells Sonar of flows."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from sonar.settings.environment import (
    SONAR_HOME,
    envint,
    envnetworks,
    envsecret,
    envtext,
    envvantage,
)

# What movers are given: CA certificates to trust, and the secrets of credentials by their names.
SONAR_CA_BUNDLE = os.environ.get("SONAR_CA_BUNDLE", "")
# The iperf3:// endpoint that workers of this environment stand for: they are where it is.
SONAR_NETWORK_ENDPOINT = envtext("SONAR_NETWORK_ENDPOINT")
# The place whose tests, checks and clean-up workers of this environment take, and no others.
SONAR_VANTAGE = envvantage("SONAR_VANTAGE")
# Where `collect_fireflies` listens by UDP, and to whom.
SONAR_FIREFLIES_LISTEN = os.environ.get("SONAR_FIREFLIES_LISTEN") or "127.0.0.1:10514"
SONAR_FIREFLIES_ALLOW = envnetworks("SONAR_FIREFLIES_ALLOW", "127.0.0.0/8,::1/128")
SONAR_CREDENTIALS_DIR = Path(os.environ.get("SONAR_CREDENTIALS_DIR") or SONAR_HOME / "credentials")
# What uploaded secrets are encrypted with; without it that is SONAR_SECRET_KEY.
SHORTEST_CREDENTIALS_KEY = 32  # characters
SONAR_CREDENTIALS_KEY = envsecret("SONAR_CREDENTIALS_KEY")
if 0 < len(SONAR_CREDENTIALS_KEY) < SHORTEST_CREDENTIALS_KEY:
    raise ImproperlyConfigured(
        f"SONAR_CREDENTIALS_KEY must have {SHORTEST_CREDENTIALS_KEY} characters or more."
    )
# Tokens that were asked for, until they are renewed; workers of one machine share them.
SONAR_TOKEN_CACHE_DIR = Path(os.environ.get("SONAR_TOKEN_CACHE_DIR") or SONAR_HOME / "token-cache")
# How often credentials are looked at: whether they work again, and whether they expire soon.
SONAR_CREDENTIALS_SECONDS = envint("SONAR_CREDENTIALS_SECONDS", 60)
