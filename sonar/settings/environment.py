"""Readers of environment variables for the other modules, and the directory of Sonar's files."""

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from sonar.notation import vantages

PROJECT_DIR = Path(__file__).resolve().parents[2]


def envtext(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def envbool(name: str, default: bool) -> bool:
    text = envtext(name).lower()
    known = {"": default, "1": True, "true": True, "yes": True, "on": True}
    known |= {"0": False, "false": False, "no": False, "off": False}
    if text not in known:
        raise ImproperlyConfigured(f"{name}={text!r} is not allowed: use true or false.")
    return known[text]


def envint(name: str, default: int, minimum: int = 1, maximum: int | None = None) -> int:
    text = envtext(name, str(default))
    number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
    if number < minimum or (maximum is not None and number > maximum):
        allowed = f"of {minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
        raise ImproperlyConfigured(f"{name}={text!r} is not a whole number {allowed}.")
    return number


def envlist(name: str, default: str) -> list[str]:
    text = envtext(name, default)
    return [part.strip() for part in text.split(",") if part.strip()]


def envnetworks(name: str, default: str = "") -> list[IPv4Network | IPv6Network]:
    """Read IP addresses and networks."""
    found = []
    for text in envlist(name, default):
        try:
            found.append(ip_network(text))
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: {text!r} is not an IP address such as 192.0.2.7, nor a network such as "
                "192.0.2.0/28."
            ) from None
    return found


def envvantage(name: str) -> str:
    """Read the name of a vantage; empty for the default one."""
    text = envtext(name)
    if text and not vantages.is_name(text):
        raise ImproperlyConfigured(f"{name}={text!r} is not allowed. {vantages.SENTENCE}")
    return text


def envnewfile(name: str) -> Path | None:
    """Read the name of a file that is to be written; None if there is none."""
    text = envtext(name)
    if text and not (Path(text).is_absolute() and Path(text).parent.is_dir()):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not the absolute path of a file in an existing directory."
        )
    return Path(text) if text else None


def envsecret(name: str, default_file: Path | None = None) -> str:
    """Read a secret from the variable, from the file that NAME_FILE names, or from a default.

    Empty if there is none: Django then refuses to sign anything.
    """
    if value := os.environ.get(name):
        return value
    given = os.environ.get(f"{name}_FILE")
    path = Path(given or default_file or "")
    if path.is_file():
        return path.read_text().strip()
    if given:
        raise ImproperlyConfigured(f"{name}_FILE={given!r} is not an existing file.")
    return ""


SONAR_HOME = Path(os.environ.get("SONAR_HOME") or PROJECT_DIR / ".sonar").resolve()


RETIRED = {
    "FIREFLIES_LISTEN": "SONAR_FIREFLIES_LISTEN",
    "HEALTH_INTERVAL": "SONAR_HEALTH_INTERVAL",
    "HTTPS_LISTEN": "SONAR_HTTPS_LISTEN",
    "HTTP_LISTEN": "SONAR_HTTP_LISTEN",
    "PAGES": "SONAR_URL",
    "SONAR_ANSWERS_MB": "SONAR_RESPONSE_CACHE_MB",
    "SONAR_CACHE_MB": "SONAR_SEGMENT_CACHE_MB",
    "SONAR_CHANGES_SECONDS": "SONAR_COMMISSIONING_SECONDS",
    "SONAR_CLEAN_SECONDS": "SONAR_CLEANUP_SECONDS",
    "SONAR_SEAL_SECONDS": "SONAR_COMPACTION_SECONDS",
    "SONAR_SIGN_SECONDS": "SONAR_HEARTBEAT_SECONDS",
    "SONAR_SITE": "SONAR_HOSTNAME",
    "SONAR_STANDINGS_MB": "SONAR_BASELINE_CACHE_MB",
    "SONAR_STORAGE_HOSTS": "",
    "SONAR_SWEEP_SECONDS": "SONAR_RECOVERY_SECONDS",
}
"""Former settings and their new names; empty for one that was removed.

Other programs use PORT, WEB_MEMORY and POSTGRES_IMAGE, so these are not here.
"""


def refuse_retired_settings() -> None:
    for name, new in RETIRED.items():
        if os.environ.get(name):
            raise ImproperlyConfigured(
                f"The setting {name} is now called {new}. Rename it."
                if new
                else f"The setting {name} was removed. Delete it, and declare “data_hosts” for "
                "the endpoints (docs/registry.md)."
            )


refuse_retired_settings()
