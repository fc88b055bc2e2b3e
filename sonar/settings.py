"""Settings, and the only reader of the environment; docs/settings.md lists every variable.

A bad value stops the start with one sentence that names the variable and what is allowed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

PROJECT_DIR = Path(__file__).resolve().parent.parent


def envbool(name: str, default: bool) -> bool:
    text = os.environ.get(name, "").strip().lower()
    known = {"": default, "1": True, "true": True, "yes": True, "on": True}
    known |= {"0": False, "false": False, "no": False, "off": False}
    if text not in known:
        raise ImproperlyConfigured(f"{name}={text!r} is not a yes or a no: use true or false.")
    return known[text]


def envint(name: str, default: int, minimum: int = 1) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    if not text.isdecimal() or int(text) < minimum:
        raise ImproperlyConfigured(f"{name}={text!r} is not a whole number from {minimum} up.")
    return int(text)


def envlist(name: str, default: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def envsecret(name: str, default_file: Path) -> str:
    """Read a secret from the variable, from the file that NAME_FILE names, or from a default.

    Empty if there is none: Django then refuses to sign anything.
    """
    if value := os.environ.get(name):
        return value
    given = os.environ.get(f"{name}_FILE")
    path = Path(given or default_file)
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


def database(url: str, pool_size: int) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(url))
    except dj_database_url.ParseError as error:
        raise ImproperlyConfigured(
            "DATABASE_URL is not an address like postgresql://user:password@host:5432/name."
        ) from error
    if parsed["ENGINE"] != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL: postgresql://...")
    if pool_size:
        # After a restart of PostgreSQL the pool must go on trying for longer than a client waits.
        pool = {"min_size": 0, "max_size": pool_size, "timeout": 5, "reconnect_timeout": 10}
        parsed["OPTIONS"] = {**parsed.get("OPTIONS", {}), "pool": pool}
    parsed["CONN_HEALTH_CHECKS"] = True
    return parsed


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
OWN_DATABASE = not os.environ.get("DATABASE_URL")
OWN_REDIS = not os.environ.get("REDIS_URL")

DEBUG = envbool("SONAR_DEBUG", default=False)
SECRET_KEY = envsecret("SONAR_SECRET_KEY", SONAR_HOME / "secret-key")
ALLOWED_HOSTS = envlist("SONAR_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = envlist("SONAR_TRUSTED_ORIGINS", "")

# Processes with many threads (workers, the web) share this many connections; 0 is no pool,
# which suits commands that run once.
DATABASES = {"default": database(DATABASE_URL, envint("SONAR_DATABASE_POOL", 0, minimum=0))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_tables2",
    "rest_framework",
    "knox",
    "sonar",
    "matrix",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "matrix.api.compression.QuickGZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "static/"
STATIC_ROOT = SONAR_HOME / "static"
STATICFILES_DIRS = [PROJECT_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Who may read without an account; writing always needs one with rights.
SONAR_PUBLIC_READ = envbool("SONAR_PUBLIC_READ", default=True)

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    # The first one says what a 401 asks for.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "matrix.api.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["matrix.api.access.MayRead"],
    "EXCEPTION_HANDLER": "matrix.api.errors.as_json",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

# Tokens of scripts (sonar.tokens): Sonar's own table stands in for Knox's, migrations and all.
KNOX_TOKEN_MODEL = "sonar.Token"  # noqa: S105 - the name of a model
REST_KNOX = {"TOKEN_PREFIX": "sonar_"}
MIGRATION_MODULES = {"knox": None}

# What movers are given: CA certificates to trust, and bearer tokens by credential name.
SONAR_CA_BUNDLE = os.environ.get("SONAR_CA_BUNDLE", "")
SONAR_CREDENTIALS_DIR = Path(os.environ.get("SONAR_CREDENTIALS_DIR") or SONAR_HOME / "credentials")

# How many transfers may be queued or running at once, over all workers.
SONAR_IN_FLIGHT = envint("SONAR_IN_FLIGHT", 100)
SONAR_PLAN_SECONDS = envint("SONAR_PLAN_SECONDS", 10)
SONAR_SWEEP_SECONDS = envint("SONAR_SWEEP_SECONDS", 30)
# A queued probe whose message has not been taken for this long is sent again.
SONAR_RESEND_SECONDS = envint("SONAR_RESEND_SECONDS", 120)

# Results are kept by the month: a month goes when it ended more than this many days ago.
SONAR_KEEP_DAYS = envint("SONAR_KEEP_DAYS", 400)
SONAR_SEAL_SECONDS = envint("SONAR_SEAL_SECONDS", 10)
# Columns of segments that each web process keeps in memory.
SONAR_CACHE_MB = envint("SONAR_CACHE_MB", 256, minimum=0)
KEEP_MONTHS_SECONDS = 3600

CELERY_BROKER_URL = celery_broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Rows are the truth and the sweep sends ids again: nothing is gained by messages that wait for
# their acknowledgement, and a restart of Redis ends a worker that holds some (kombu 5.7.0).
CELERY_BROKER_TRANSPORT_OPTIONS = {"ack_emulation": False}
CELERY_TASK_ROUTES = {"sonar.tasks.transfer": {"queue": "transfers"}}
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_BEAT_SCHEDULE = {
    "plan": {
        "task": "sonar.tasks.plan",
        "schedule": SONAR_PLAN_SECONDS,
        "options": {"expires": SONAR_PLAN_SECONDS * 2},
    },
    "sweep": {
        "task": "sonar.tasks.sweep",
        "schedule": SONAR_SWEEP_SECONDS,
        "options": {"expires": SONAR_SWEEP_SECONDS * 2},
    },
    "seal": {
        "task": "sonar.tasks.seal",
        "schedule": SONAR_SEAL_SECONDS,
        "options": {"expires": SONAR_SEAL_SECONDS},
    },
    "keep_months": {
        "task": "sonar.tasks.keep_months",
        "schedule": KEEP_MONTHS_SECONDS,
        "options": {"expires": KEEP_MONTHS_SECONDS},
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "utc": {
            "()": "sonar.log.UtcFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "utc"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
