"""Settings, and the only reader of the environment; docs/settings.md lists every variable.

A bad value stops the start with one sentence that names the variable and what is allowed.
"""

import json
import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from whitenoise.compress import Compressor

from sonar.notation.addresses import HOST, is_web_service
from sonar.people.role_rules import RoleRules
from sonar.people.role_rules import read as read_rules

PROJECT_DIR = Path(__file__).resolve().parents[2]


def envtext(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def envbool(name: str, default: bool) -> bool:
    text = envtext(name).lower()
    known = {"": default, "1": True, "true": True, "yes": True, "on": True}
    known |= {"0": False, "false": False, "no": False, "off": False}
    if text not in known:
        raise ImproperlyConfigured(f"{name}={text!r} is not a yes or a no: use true or false.")
    return known[text]


def envint(name: str, default: int, minimum: int = 1, maximum: int | None = None) -> int:
    text = envtext(name, str(default))
    number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
    if number < minimum or (maximum is not None and number > maximum):
        allowed = f"from {minimum} {'up' if maximum is None else f'to {maximum}'}"
        raise ImproperlyConfigured(f"{name}={text!r} is not a whole number {allowed}.")
    return number


def envlist(name: str, default: str) -> list[str]:
    text = envtext(name, default)
    return [part.strip() for part in text.split(",") if part.strip()]


LONGEST_ISSUER = 200  # characters of a column of allauth's
SHORTEST_KEY = 50  # characters, as `check --deploy` wants it
LONGEST_KEPT_DAYS = 36_500  # a time that is as long ago is still one
PERIODS = {"s": 1, "min": 60, "h": 3600, "day": 86_400}


def envrate(name: str) -> tuple[int, int] | None:
    """Read a rate like `600/min` as (requests, seconds); None for `off`, which is the default."""
    text = envtext(name, "off")
    if text == "off":
        return None
    number, _, period = text.partition("/")
    if not re.fullmatch("[1-9][0-9]{0,8}", number) or period not in PERIODS:
        raise ImproperlyConfigured(
            f"{name}={text!r} is not a rate like 600/min (s, min, h, day) or off."
        )
    return int(number), PERIODS[period]


def envorigins(name: str) -> list[str]:
    """Read origins as browsers send them: scheme and host, no path."""
    origins = envlist(name, "")
    for origin in origins:
        if not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", origin):
            raise ImproperlyConfigured(
                f"{name}: {origin!r} is not an origin like https://portal.example.org."
            )
    return origins


RETIRED = {"SONAR_STORAGE_HOSTS": "declare data_hosts of the endpoints (docs/registry.md)"}
"""What was a setting once, and what to do instead."""


def refuse_retired_settings() -> None:
    for name, advice in RETIRED.items():
        if os.environ.get(name):
            raise ImproperlyConfigured(f"{name} is read no more: {advice}, and unset it.")


def envcontact(name: str) -> str:
    """Read whom to tell, an e-mail address or an https address, as a link to it; or nothing."""
    text = envtext(name)
    if re.fullmatch(rf"[A-Za-z0-9._%+-]+@({HOST})", text, re.IGNORECASE):
        return f"mailto:{text}"
    if text and not re.fullmatch(r"https://[A-Za-z0-9][^\s<>\"\\]*", text):
        raise ImproperlyConfigured(
            f"{name}={text!r} is neither an e-mail address like grid-help@example.org nor an "
            "address like https://help.example.org/sonar."
        )
    return text


def envpath(name: str) -> str | None:
    """Read the path below which Sonar is served, like /sonar; None at the root of its host."""
    text = envtext(name).rstrip("/")
    if text and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", text):
        raise ImproperlyConfigured(f"{name}={text!r} is not a path like /sonar.")
    return text or None


def envissuer(name: str) -> str:
    """Read the address of an OpenID Connect issuer, without a slash at its end; or nothing."""
    text = envtext(name).rstrip("/")
    if text and not is_web_service(text):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not the address of an issuer, like https://iam.example.org "
            "(http only on this machine)."
        )
    if len(text) > LONGEST_ISSUER:
        raise ImproperlyConfigured(f"{name} may have {LONGEST_ISSUER} characters at most.")
    return text


def envsource(name: str) -> str:
    """Read where downtimes come from: the address of a service, or the path of a file."""
    text = envtext(name)
    if text and not (is_web_service(text) or (text.startswith("/") and text.isprintable())):
        raise ImproperlyConfigured(
            f"{name} is neither an address like https://goc.egi.eu/gocdbpi/public/ nor the path of "
            "a file like /etc/sonar/downtimes.xml. An address has no user and no query, and http "
            "only on this machine."
        )
    return text


TOPOLOGY_SOURCES = ("cric-atlas", "cric-wlcg", "rucio", "srr")


def envtopology(name: str) -> dict[str, list[str]]:
    """Read which sources propose sites and endpoints, and the documents of each."""
    documents: dict[str, list[str]] = {}
    for part in envlist(name, ""):
        source, _, places = part.partition("=")
        if source not in TOPOLOGY_SOURCES or source in documents or not places.split():
            raise ImproperlyConfigured(
                f"{name}: {part!r} is not a source once, with its files or https URLs: write "
                "cric-atlas=URL URL, rucio=URL. Sources are " + ", ".join(TOPOLOGY_SOURCES) + "."
            )
        documents[source] = places.split()
    return documents


def envnetworks(name: str, default: str = "") -> list[IPv4Network | IPv6Network]:
    """Read IP addresses and networks."""
    found = []
    for text in envlist(name, default):
        try:
            found.append(ip_network(text))
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: {text!r} is not an IP address or network like 192.0.2.7 or 192.0.2.0/28."
            ) from None
    return found


def envrules(name: str) -> RoleRules:
    """Read the file with the rules that give roles to groups; none if no file is named."""
    text = envtext(name)
    try:
        return read_rules(Path(text)) if text else RoleRules()
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={text!r}: {error}.") from error


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
        raise ImproperlyConfigured(f"{name}_FILE={given!r} is not a file.")
    return ""


SONAR_HOME = Path(os.environ.get("SONAR_HOME") or PROJECT_DIR / ".sonar").resolve()


def running_services() -> dict[str, str]:
    """Return the addresses that a running `make run` noted for commands in other terminals."""
    path = SONAR_HOME / "services.json"
    noted: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return noted


def database(
    url: str, pool_size: int, statement_seconds: int, idle_seconds: int = 0
) -> dict[str, Any]:
    """Return what Django needs to know of the database; 0 is no pool, and no timeout."""
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(url))
    except dj_database_url.ParseError as error:
        raise ImproperlyConfigured(
            "DATABASE_URL is not an address like postgresql://user:password@host:5432/name."
        ) from error
    if parsed["ENGINE"] != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL: postgresql://...")
    parsed["ENGINE"] = "sonar.database"
    options = parsed.setdefault("OPTIONS", {})
    for name, seconds in (
        ("statement_timeout", statement_seconds),
        ("idle_in_transaction_session_timeout", idle_seconds),
    ):
        if seconds:
            # Said as the connection opens: it costs no round trip.
            options["options"] = f"{options.get('options', '')} -c {name}={seconds}s".strip()
    # Of planned cursors alone: Django's own send values within the statement.
    options["prepare_threshold"] = 0
    if pool_size:
        # After a restart of PostgreSQL the pool must go on trying for longer than a client waits.
        pool = {"min_size": 0, "max_size": pool_size, "timeout": 5, "reconnect_timeout": 10}
        options["pool"] = pool
    parsed["CONN_HEALTH_CHECKS"] = True
    return parsed


def provider_problem(
    oidc: dict[str, str], missing: list[str], scopes: list[str], audience: str
) -> str | None:
    """Say which settings of a provider do not fit each other; None if all do."""
    # With an issuer and an audience alone, scripts read and people log in by passwords.
    if missing and missing != list(oidc) and not (audience and missing == list(oidc)[1:]):
        return f"{' and '.join(missing)} must be set, too, for people to log in at a provider."
    if audience and "SONAR_OIDC_ISSUER" in missing:
        return "SONAR_OIDC_ISSUER must be set for tokens of SONAR_OIDC_AUDIENCE."
    if audience and audience == oidc["SONAR_OIDC_CLIENT_ID"]:
        return "SONAR_OIDC_AUDIENCE must not be SONAR_OIDC_CLIENT_ID: ID tokens are for that."
    if "openid" not in scopes:
        return "SONAR_OIDC_SCOPES must have openid among its scopes."
    return None


def login_problem(
    *,
    oidc: dict[str, str],
    scopes: list[str],
    audience: str,
    certificates: bool,
    rules: RoleRules,
    passwords: bool,
) -> str | None:
    """Say which settings of the log-in do not fit each other; None if all do."""
    missing = [name for name, value in oidc.items() if not value]
    if sentence := provider_problem(oidc, missing, scopes, audience):
        return sentence
    kinds = {"group"} if not missing else set()
    kinds |= {"certificate"} if certificates else set()
    if kinds and not any(rule.kind in kinds for rule in rules.rules):
        word = " or ".join(f"a {kind}" for kind in sorted(kinds))
        return f"SONAR_LOGIN_ROLES must name a file that gives a role to {word}: else none gets in."
    if not passwords and not rules.makes_administrators(kinds):
        return (
            "SONAR_PASSWORDS=false would leave no way in for administrators. First let a rule of "
            "SONAR_LOGIN_ROLES make some, by OIDC or by a certificate."
        )
    return None


def celery_broker(url: str) -> str:
    """Return the address as Celery spells it: unix:// is redis+socket:// there."""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured("REDIS_URL must begin with redis://, rediss:// or unix://.")
    return url.replace("unix://", "redis+socket://", 1)


_noted = running_services()
DATABASE_URL = os.environ.get("DATABASE_URL") or _noted.get("database_url", "postgresql:///sonar")
REDIS_URL = os.environ.get("REDIS_URL") or _noted.get("redis_url", "redis://localhost:6379/0")

# What `make run` is to do: where to listen, and which registry to load instead of the sandbox.
PORT = envint("PORT", 8000)
SONAR_REGISTRY = os.environ.get("SONAR_REGISTRY", "")
SONAR_PAST = envbool("SONAR_PAST", default=True)
OWN_DATABASE = not os.environ.get("DATABASE_URL")
OWN_REDIS = not os.environ.get("REDIS_URL")

# Read by numpy as it is loaded, which is after this. Requests are worked on in threads already
# (matrix/statistics/arrays.py): those of its linear algebra only wait for each other. On two
# busy cores a two-way model of 200 x 200 took 46 ms with one of them, 410 ms with two.
os.environ["OPENBLAS_NUM_THREADS"] = str(envint("OPENBLAS_NUM_THREADS", 1))

DEBUG = envbool("SONAR_DEBUG", default=False)
SECRET_KEY = envsecret("SONAR_SECRET_KEY", SONAR_HOME / "secret-key")
ALLOWED_HOSTS = envlist("SONAR_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = envlist("SONAR_TRUSTED_ORIGINS", "")

# How many proxies stand in front and add to X-Forwarded-For: with 0 it is not believed.
SONAR_PROXIES = envint("SONAR_PROXIES", 0, minimum=0)
# Whether people come by https, by a proxy that ends it.
SONAR_HTTPS = envbool("SONAR_HTTPS", default=False)
if SONAR_HTTPS and 0 < len(SECRET_KEY) < SHORTEST_KEY:
    raise ImproperlyConfigured(
        f"SONAR_SECRET_KEY must have {SHORTEST_KEY} characters or more with SONAR_HTTPS."
    )

# How long a statement may take: sonar/wsgi.py says it for the web; commands and workers take
# their time. A stream of results has a time of its own.
SONAR_STATEMENT_SECONDS = envint("SONAR_STATEMENT_SECONDS", 0, minimum=0)
SONAR_STREAM_SECONDS = envint("SONAR_STREAM_SECONDS", 3600, minimum=0)
# Streams of each web process at once, so that slow readers leave threads and connections.
SONAR_STREAMS = envint("SONAR_STREAMS", 4)

# Processes with many threads share this many connections: sonar/celery.py says it for workers,
# sonar/wsgi.py for the web. 0 is no pool, which suits commands that run once.
DATABASES = {
    "default": database(
        DATABASE_URL,
        envint("SONAR_DATABASE_POOL", 0, minimum=0),
        SONAR_STATEMENT_SECONDS,
        envint("SONAR_IDLE_SECONDS", 0, minimum=0),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "sonar.admin.site.SonarAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_tables2",
    "csp",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "allauth.account",
    "allauth.socialaccount",
    "sonar",
    "matrix",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "matrix.http.compression.QuickGZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "matrix.http.page_rights.RightsFirst",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "matrix.pages.errors.ErrorAnswers",
    "matrix.http.health.CountRequests",
]
ROOT_URLCONF = "sonar.urls"
WSGI_APPLICATION = "sonar.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
# The first one lets nobody guess for ever; accounts and rights are Django's.
AUTHENTICATION_BACKENDS = [
    "matrix.http.throttling.LimitedPasswords",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
# Who logs in elsewhere: docs/login.md. All of it is off while nothing is set.
SONAR_OIDC_ISSUER = envissuer("SONAR_OIDC_ISSUER")
SONAR_OIDC_CLIENT_ID = envtext("SONAR_OIDC_CLIENT_ID")
SONAR_OIDC_CLIENT_SECRET = envsecret("SONAR_OIDC_CLIENT_SECRET")
# What the page calls the provider, and what it is asked for.
SONAR_OIDC_NAME = envtext("SONAR_OIDC_NAME")
SONAR_OIDC_SCOPES = envlist("SONAR_OIDC_SCOPES", "openid,profile")
# Claims that may hold groups: the first one that is there counts.
SONAR_OIDC_GROUPS = envlist(
    "SONAR_OIDC_GROUPS", "wlcg.groups,groups,eduperson_entitlement,entitlements"
)
# Scripts may read with tokens of the issuer that are for this audience.
SONAR_OIDC_AUDIENCE = envtext("SONAR_OIDC_AUDIENCE")
# Front servers whose word is taken for the certificate that a browser has shown them.
SONAR_X509_PROXIES = envnetworks("SONAR_X509_PROXIES")
SONAR_LOGIN_ROLES = envrules("SONAR_LOGIN_ROLES")
# Whether names and passwords of Sonar's own are accepted.
SONAR_PASSWORDS = envbool("SONAR_PASSWORDS", default=True)
if sentence := login_problem(
    oidc={
        "SONAR_OIDC_ISSUER": SONAR_OIDC_ISSUER,
        "SONAR_OIDC_CLIENT_ID": SONAR_OIDC_CLIENT_ID,
        "SONAR_OIDC_CLIENT_SECRET": SONAR_OIDC_CLIENT_SECRET,
    },
    scopes=SONAR_OIDC_SCOPES,
    audience=SONAR_OIDC_AUDIENCE,
    certificates=bool(SONAR_X509_PROXIES),
    rules=SONAR_LOGIN_ROLES,
    passwords=SONAR_PASSWORDS,
):
    raise ImproperlyConfigured(sentence)
# Of allauth nothing but its provider is used: no e-mail, no sign-up, no page and no token kept.
SOCIALACCOUNT_ADAPTER = "matrix.pages.log_in.LogInAdapter"
SOCIALACCOUNT_ONLY = True
SOCIALACCOUNT_EMAIL_VERIFICATION = ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
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

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "matrix"

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
# Where Django writes a time by itself, as in the admin: 2026-11-24 14:20.
FORMAT_MODULE_PATH = "sonar.notation.dates"

# A proxy takes this path off, and Sonar puts it before each address that it gives.
FORCE_SCRIPT_NAME = envpath("SONAR_PATH")

STATIC_URL = "static/"
STATIC_ROOT = SONAR_HOME / "static"
STATICFILES_DIRS = [PROJECT_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "sonar.processes.static.AskedFor",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "sonar.processes.static.HashedNames"},
}
# Each is compressed once, by the name that pages ask for.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
# Source maps are half of all bytes, and only developers' tools ask for them.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")

# Whom to tell, where pages say to ask an administrator.
SONAR_CONTACT = envcontact("SONAR_CONTACT")

# Who may read without an account; writing always needs one with rights.
SONAR_PUBLIC_READ = envbool("SONAR_PUBLIC_READ", default=True)

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    # The first one says what a 401 asks for.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "matrix.http.authentication.TokenAuthentication",
        "matrix.http.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["matrix.http.permissions.MayRead"],
    "DEFAULT_SCHEMA_CLASS": "matrix.api.schema.operation.Operation",
    "DEFAULT_THROTTLE_CLASSES": ["matrix.http.throttling.RateLimit"],
    "NUM_PROXIES": SONAR_PROXIES,
    "EXCEPTION_HANDLER": "matrix.http.exceptions.as_json",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

# The description of the API: matrix/api/schema/.
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Sonar",
    "DESCRIPTION": (
        "Rates of test transfers between the storage endpoints of a grid, source by destination. "
        "Reading may need an account; writing always needs a token or a session with rights. "
        "Times are ISO 8601 in UTC, rates MB/s (10^6 bytes per second), sizes bytes. Parameters "
        "and fields that a call does not know are refused."
    ),
    "TAGS": [
        {"name": "results", "description": "measured rates"},
        {"name": "operation", "description": "what is going on now, and ordering tests"},
        {"name": "registry", "description": "sites, endpoints, and which tests run between them"},
        {"name": "about", "description": "this API"},
    ],
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SORT_OPERATION_PARAMETERS": False,
    "POSTPROCESSING_HOOKS": ["matrix.api.about.named"],
    # A test makes it and checks more; the check of the deployment needs no database so.
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": None,
}

# Tokens of scripts (sonar.people.tokens): Sonar's own table stands in for Knox's, with migrations.
KNOX_TOKEN_MODEL = "sonar.Token"  # noqa: S105 - the name of a model
REST_KNOX = {"TOKEN_PREFIX": "sonar_"}
MIGRATION_MODULES = {"knox": None}

# How often one may ask the API; sonar/wsgi.py has the web's own defaults.
SONAR_RATE_ANONYMOUS = envrate("SONAR_RATE_ANONYMOUS")
SONAR_RATE_ACCOUNT = envrate("SONAR_RATE_ACCOUNT")

# What movers are given: CA certificates to trust, and the secrets of credentials by their names.
SONAR_CA_BUNDLE = os.environ.get("SONAR_CA_BUNDLE", "")
# The iperf3:// endpoint that workers of this environment stand for: they are where it is.
SONAR_NETWORK_ENDPOINT = envtext("SONAR_NETWORK_ENDPOINT")
refuse_retired_settings()
# Where `collect_fireflies` listens by UDP, and to whom.
SONAR_FIREFLIES_LISTEN = os.environ.get("SONAR_FIREFLIES_LISTEN") or "127.0.0.1:10514"
SONAR_FIREFLIES_ALLOW = envnetworks("SONAR_FIREFLIES_ALLOW", "127.0.0.0/8,::1/128")
SONAR_CREDENTIALS_DIR = Path(os.environ.get("SONAR_CREDENTIALS_DIR") or SONAR_HOME / "credentials")
# Tokens that were asked for, until they are renewed; workers of one machine share them.
SONAR_TOKEN_CACHE_DIR = Path(os.environ.get("SONAR_TOKEN_CACHE_DIR") or SONAR_HOME / "token-cache")
# How often credentials are looked at: whether they work again, and whether they expire soon.
SONAR_CREDENTIALS_SECONDS = envint("SONAR_CREDENTIALS_SECONDS", 60)

# Where sites announce downtimes: nobody is asked unless one is set, and then so often.
SONAR_GOCDB_URL = envsource("SONAR_GOCDB_URL")
SONAR_OSG_DOWNTIMES_URL = envsource("SONAR_OSG_DOWNTIMES_URL")
SONAR_DOWNTIMES_SECONDS = envint("SONAR_DOWNTIMES_SECONDS", 600)
SONAR_DOWNTIMES_CA_BUNDLE = envtext("SONAR_DOWNTIMES_CA_BUNDLE")
# What proposes sites and endpoints to operators, and how often it is read.
SONAR_TOPOLOGY = envtopology("SONAR_TOPOLOGY")
SONAR_TOPOLOGY_SECONDS = envint("SONAR_TOPOLOGY_SECONDS", 86_400)

# How many transfers may be queued or running at once, over all workers.
SONAR_IN_FLIGHT = envint("SONAR_IN_FLIGHT", 100)
# How many bytes all tests may move within an hour; 0 for no limit.
SONAR_BYTES_PER_HOUR = envint("SONAR_BYTES_PER_HOUR", 0, minimum=0)
# So many failures in a row by one end, and its tests are spread thin (sonar.results.circuits).
SONAR_CIRCUIT_FAILURES = envint("SONAR_CIRCUIT_FAILURES", 5)
SONAR_PLAN_SECONDS = envint("SONAR_PLAN_SECONDS", 10)
SONAR_SWEEP_SECONDS = envint("SONAR_SWEEP_SECONDS", 30)
# Files that were left behind are deleted in a queue of their own: storage may not answer.
SONAR_CLEAN_SECONDS = envint("SONAR_CLEAN_SECONDS", 30)
# How long a worker that is told to stop waits for its transfers to end.
SONAR_STOP_SECONDS = envint("SONAR_STOP_SECONDS", 8)
# Then it hands back what still runs. A database that is away must not hold its end up.
LAST_WORDS_SECONDS = 3
# A queued probe whose message has not been taken for this long is sent again.
SONAR_RESEND_SECONDS = envint("SONAR_RESEND_SECONDS", 120)
# How often workers and the beat say that they live (sonar.processes.heartbeats).
SONAR_SIGN_SECONDS = envint("SONAR_SIGN_SECONDS", 10)

# Results are kept by the month: a month goes when it ended more than this many days ago.
SONAR_KEEP_DAYS = envint("SONAR_KEEP_DAYS", 400, maximum=LONGEST_KEPT_DAYS)
SONAR_SEAL_SECONDS = envint("SONAR_SEAL_SECONDS", 10)
# How often new results are searched for changes of level and outages (matrix.tasks).
SONAR_CHANGES_SECONDS = envint("SONAR_CHANGES_SECONDS", 900)
# Columns of segments that each web process keeps in memory.
SONAR_CACHE_MB = envint("SONAR_CACHE_MB", 256, minimum=0)
# Matrices, link tables and written answers that each web process keeps besides.
SONAR_ANSWERS_MB = envint("SONAR_ANSWERS_MB", 384, minimum=0)
# What is usual for each link, and how it stands, that each web process keeps besides.
SONAR_STANDINGS_MB = envint("SONAR_STANDINGS_MB", 256, minimum=0)
KEEP_MONTHS_SECONDS = 3600

CELERY_BROKER_URL = celery_broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A Redis that is full, or cannot save, is waited for as one that is away (sonar.processes.broker).
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_WORKER_CONSUMER = "sonar.processes.broker:PatientConsumer"
CELERY_BEAT_SCHEDULER = "sonar.processes.broker:PatientScheduler"
# Of tasks that are acknowledged late, of which there are none; unsaid, Celery warns each time.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
# Rows are the truth and the sweep sends ids again: nothing is gained by messages that wait for
# their acknowledgement, and a restart of Redis ends a worker that holds some (kombu 5.7.0).
CELERY_BROKER_TRANSPORT_OPTIONS = {"ack_emulation": False}
# What may wait for storage has workers of its own: plans and seals are never late for it, and
# cleaning gets its turn while every thread waits for a transfer.
CELERY_TASK_ROUTES = {
    "sonar.tasks.transfer": {"queue": "transfers"},
    "sonar.tasks.clean": {"queue": "cleaning"},
    # Issuers may not answer either.
    "sonar.tasks.check_credentials": {"queue": "cleaning"},
    "sonar.tasks.check_endpoint": {"queue": "cleaning"},
    # Seconds of computing, which plans and seals must not wait for either.
    "matrix.tasks.find_changes": {"queue": "cleaning"},
    # Nor for services of others.
    "sonar.tasks.import_downtimes": {"queue": "cleaning"},
    "sonar.tasks.propose_topology": {"queue": "cleaning"},
}
CELERY_TASK_DEFAULT_QUEUE = "control"
# How often each task is sent, and after how long one that nobody has taken is of no use.
CELERY_BEAT_SCHEDULE = {
    task.rpartition(".")[2]: {"task": task, "schedule": seconds, "options": {"expires": expires}}
    for task, seconds, expires in (
        ("sonar.tasks.plan", SONAR_PLAN_SECONDS, SONAR_PLAN_SECONDS * 2),
        ("sonar.tasks.sweep", SONAR_SWEEP_SECONDS, SONAR_SWEEP_SECONDS * 2),
        ("sonar.tasks.clean", SONAR_CLEAN_SECONDS, SONAR_CLEAN_SECONDS),
        ("sonar.tasks.check_credentials", SONAR_CREDENTIALS_SECONDS, SONAR_CREDENTIALS_SECONDS),
        ("sonar.tasks.import_downtimes", SONAR_DOWNTIMES_SECONDS, SONAR_DOWNTIMES_SECONDS),
        ("sonar.tasks.propose_topology", SONAR_TOPOLOGY_SECONDS, SONAR_TOPOLOGY_SECONDS),
        ("sonar.tasks.seal", SONAR_SEAL_SECONDS, SONAR_SEAL_SECONDS),
        ("sonar.tasks.keep_months", KEEP_MONTHS_SECONDS, KEEP_MONTHS_SECONDS),
        ("matrix.tasks.find_changes", SONAR_CHANGES_SECONDS, SONAR_CHANGES_SECONDS),
    )
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "utc": {
            "()": "sonar.processes.log.UtcFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
    },
    "filters": {
        "now_and_then": {"()": "sonar.processes.log.NowAndThen", "seconds": 60},
        "refused_in_one_line": {"()": "sonar.processes.log.RefusedInOneLine"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "utc",
            "filters": ["refused_in_one_line"],
        }
    },
    # Each second while Redis refuses what it writes, which is not needed.
    # Headers of storage servers that it cannot read it would quote, tokens that they repeat too.
    "loggers": {
        "kombu.transport.redis": {"filters": ["now_and_then"]},
        "urllib3": {"level": "ERROR"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
