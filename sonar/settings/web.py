"""Who may ask, by which way, and what browsers may do with an answer: docs/security.md."""

import re
from urllib.parse import urlsplit

from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured

from sonar.notation.addresses import HOST
from sonar.settings.environment import SONAR_HOME, envbool, envint, envlist, envsecret, envtext

SHORTEST_KEY = 50  # characters, as `check --deploy` wants it


def envorigins(name: str) -> list[str]:
    """Read origins as browsers send them: scheme and host, no path."""
    origins = envlist(name, "")
    for origin in origins:
        if not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", origin):
            raise ImproperlyConfigured(
                f"{name}: {origin!r} is not an origin such as https://portal.example.org."
            )
    return origins


def envcontact(name: str) -> str:
    """Read whom to tell, an e-mail address or an https address, as a link to it; or nothing."""
    text = envtext(name)
    if re.fullmatch(rf"[A-Za-z0-9._%+-]+@({HOST})", text, re.IGNORECASE):
        return f"mailto:{text}"
    if text and not re.fullmatch(r"https://[A-Za-z0-9][^\s<>\"\\]*", text):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not a contact. Use an e-mail address such as "
            "grid-help@example.org or a URL such as https://help.example.org/sonar."
        )
    return text


def envpath(name: str) -> str | None:
    """Read the path below which Sonar is served, like /sonar; None at the root of its host."""
    text = envtext(name).rstrip("/")
    if text and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", text):
        raise ImproperlyConfigured(f"{name}={text!r} is not a path such as /sonar.")
    return text or None


def envurl(name: str, path: str | None) -> str:
    """Read the address of the front page, without a slash at its end; or nothing."""
    text = envtext(name).rstrip("/")
    if not text:
        return ""
    origin = rf"https?://({HOST})(:[0-9]{{1,5}})?(/.*)?"
    if not re.fullmatch(origin, text) or urlsplit(text).path != (path or ""):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not the URL of the front page. Use a URL such as "
            f"https://sonar.example.org{path or ''} (with SONAR_PATH at its end, if that is set)."
        )
    return text


DEBUG = envbool("SONAR_DEBUG", default=False)
SECRET_KEY = envsecret("SONAR_SECRET_KEY", SONAR_HOME / "secret-key")
# A proxy takes this path off, and Sonar puts it before each address that it gives.
FORCE_SCRIPT_NAME = envpath("SONAR_PATH")
SONAR_URL = envurl("SONAR_URL", FORCE_SCRIPT_NAME)
_front = urlsplit(SONAR_URL)
_host = re.sub(":[0-9]+$", "", _front.netloc)
ALLOWED_HOSTS = envlist("SONAR_ALLOWED_HOSTS", f"{_host},localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = envlist(
    "SONAR_TRUSTED_ORIGINS", f"{_front.scheme}://{_front.netloc}" if SONAR_URL else ""
)

# How many proxies stand in front and add to X-Forwarded-For: with 0 it is not believed.
SONAR_PROXIES = envint("SONAR_PROXIES", 0, minimum=0)
# Whether people come by https, by a proxy that ends it.
SONAR_HTTPS = envbool("SONAR_HTTPS", default=False)
if SONAR_HTTPS and 0 < len(SECRET_KEY) < SHORTEST_KEY:
    raise ImproperlyConfigured(
        f"SONAR_SECRET_KEY must have {SHORTEST_KEY} characters or more with SONAR_HTTPS=true."
    )
# Cookies, headers and what browsers may load: docs/security.md.
SESSION_COOKIE_AGE = 7 * 86_400
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SONAR_HTTPS
SECURE_HSTS_SECONDS = 365 * 86_400 if SONAR_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SONAR_HTTPS
# Whether browsers are to bring a domain as https-only is for its owner to say, not for Sonar.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
# Probes and Prometheus ask from inside, without TLS.
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SONAR_PROXIES else None
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        # Pictures and rows have their heights and colours in style attributes.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# Which scripts of other sites may use the API from a browser: with a token, never with cookies.
CORS_ALLOWED_ORIGINS = envorigins("SONAR_CORS_ORIGINS")
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_METHODS = ["GET", "HEAD", "OPTIONS", "POST"]
CORS_ALLOW_HEADERS = ["accept", "authorization", "content-type", "if-none-match"]
CORS_EXPOSE_HEADERS = ["ETag", "Retry-After", "Link"]

# What a form may send; bodies of the API have limits of their own (matrix/api/base.py).
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

# Whom to tell, where pages say to ask an administrator.
SONAR_CONTACT = envcontact("SONAR_CONTACT")

# Who may read without an account; writing always needs one with rights.
SONAR_PUBLIC_READ = envbool("SONAR_PUBLIC_READ", default=True)
