"""Where this Sonar is for people, and by whom it sends e-mail: docs/notifications.md."""

import re

from django.core.exceptions import ImproperlyConfigured

from sonar.notation.addresses import HOST
from sonar.notation.enumeration import either
from sonar.settings.environment import envint, envnetworks, envsecret, envtext
from sonar.settings.web import SONAR_URL

SMTP_SECURITY = ("starttls", "tls", "none")


def envsender(name: str) -> str:
    """Read who sends e-mail: `sonar@example.org`, or `Sonar <sonar@example.org>`; or nothing."""
    text = envtext(name)
    address = rf"[A-Za-z0-9._%+-]+@({HOST})"
    if text and not re.fullmatch(rf"(?i){address}|[\w .-]+ <{address}>", text):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not an e-mail address such as Sonar <sonar@example.org>."
        )
    return text


EMAIL_HOST = envtext("SONAR_SMTP_HOST")
EMAIL_PORT = envint("SONAR_SMTP_PORT", 587, maximum=65_535)
EMAIL_HOST_USER = envtext("SONAR_SMTP_USER")
EMAIL_HOST_PASSWORD = envsecret("SONAR_SMTP_PASSWORD")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = envsender("SONAR_MAIL_FROM")
_security = envtext("SONAR_SMTP_SECURITY", "starttls")
if _security not in SMTP_SECURITY:
    raise ImproperlyConfigured(
        f"SONAR_SMTP_SECURITY={_security!r} is not allowed: use {either(SMTP_SECURITY)}."
    )
EMAIL_USE_TLS, EMAIL_USE_SSL = _security == "starttls", _security == "tls"
if EMAIL_HOST and not (SONAR_URL and DEFAULT_FROM_EMAIL):
    raise ImproperlyConfigured("SONAR_SMTP_HOST requires SONAR_URL and SONAR_MAIL_FROM.")
if EMAIL_HOST_USER and _security == "none":
    raise ImproperlyConfigured("SONAR_SMTP_USER requires SONAR_SMTP_SECURITY=starttls or tls.")
# In these networks services may be told by addresses that are not public, and without TLS.
SONAR_NOTIFY_NETWORKS = envnetworks("SONAR_NOTIFY_NETWORKS")
SONAR_NOTIFY_CA_BUNDLE = envtext("SONAR_NOTIFY_CA_BUNDLE")
SONAR_NOTIFY_SECONDS = envint("SONAR_NOTIFY_SECONDS", 10)
# For how long it is kept who was told what.
NOTIFICATION_DAYS = 90
