"""Where sites announce downtimes, and what proposes sites and endpoints."""

import re

from django.core.exceptions import ImproperlyConfigured

from sonar.notation.addresses import is_web_service
from sonar.settings.environment import envint, envlist, envtext


def envsource(name: str) -> str:
    """Read where downtimes come from: the address of a service, or the path of a file."""
    text = envtext(name)
    if text and not (is_web_service(text) or (text.startswith("/") and text.isprintable())):
        raise ImproperlyConfigured(
            f"{name} is not allowed: use a URL such as https://goc.egi.eu/gocdbpi/public/ or the "
            "path of a file such as /etc/sonar/downtimes.xml. A URL cannot contain a user "
            "name or a query string. http:// is allowed only for this machine."
        )
    return text


TOPOLOGY_SOURCES = ("cric-atlas", "cric-wlcg", "rucio", "srr")


def envtopology(name: str) -> dict[str, list[str]]:
    """Read which sources propose sites and endpoints, and the documents of each."""
    documents: dict[str, list[str]] = {}
    for number, part in enumerate(envlist(name, ""), 1):
        source, _, places = part.partition("=")
        if source not in TOPOLOGY_SOURCES or source in documents or not places.split():
            # Its text stays out of the message: an address may hold a password.
            raise ImproperlyConfigured(
                f"{name}: entry {number} is not allowed. Name each source once, with its files or "
                "https URLs, such as cric-atlas=URL URL, rucio=URL. Sources: "
                + ", ".join(TOPOLOGY_SOURCES)
                + "."
            )
        documents[source] = places.split()
    return documents


def envfilename(name: str) -> str:
    """Read the name of a file in SONAR_CREDENTIALS_DIR; empty for none."""
    text = envtext(name)
    if text and not re.fullmatch("[A-Za-z0-9_-][A-Za-z0-9._-]*", text):
        # What it is stays out of the message: it may be the token itself.
        raise ImproperlyConfigured(
            f"{name} is not the name of a file in SONAR_CREDENTIALS_DIR. A name may contain "
            "only letters, digits, dots, dashes and underscores, not a path."
        )
    return text


# Where sites announce downtimes: nobody is asked unless one is set, and then so often.
SONAR_GOCDB_URL = envsource("SONAR_GOCDB_URL")
SONAR_OSG_DOWNTIMES_URL = envsource("SONAR_OSG_DOWNTIMES_URL")
SONAR_DOWNTIMES_SECONDS = envint("SONAR_DOWNTIMES_SECONDS", 600)
SONAR_DOWNTIMES_CA_BUNDLE = envtext("SONAR_DOWNTIMES_CA_BUNDLE")
# What proposes sites and endpoints to operators, and how often it is read.
SONAR_TOPOLOGY = envtopology("SONAR_TOPOLOGY")
SONAR_TOPOLOGY_SECONDS = envint("SONAR_TOPOLOGY_SECONDS", 86_400)
# Which attribute of Rucio's RSEs names their site, and the file with a token for its server.
SONAR_RUCIO_SITE_ATTRIBUTE = envtext("SONAR_RUCIO_SITE_ATTRIBUTE", "site")
SONAR_RUCIO_CREDENTIAL = envfilename("SONAR_RUCIO_CREDENTIAL")
