"""The API: its framework, its description, its tokens, and how often one may ask."""

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from sonar.settings.environment import envtext
from sonar.settings.web import SONAR_PROXIES

PERIODS = {"s": 1, "min": 60, "h": 3600, "day": 86_400}


def envrate(name: str) -> tuple[int, int] | None:
    """Read a rate like `600/min` as (requests, seconds); None for `off`, which is the default."""
    text = envtext(name, "off")
    if text == "off":
        return None
    number, _, period = text.partition("/")
    if not re.fullmatch("[1-9][0-9]{0,8}", number) or period not in PERIODS:
        raise ImproperlyConfigured(
            f"{name}={text!r} is not a rate. Use a number per s, min, h or day, such as 600/min, "
            "or off."
        )
    return int(number), PERIODS[period]


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
        "Sonar measures the rates of test transfers between the storage endpoints of a grid. "
        "Reading may require an account; writing always requires a token or a session with the "
        "necessary rights. Times are in ISO 8601 format in UTC, rates in MB/s (10^6 bytes per "
        "second), and sizes in bytes. Unknown parameters and fields are rejected with status 400."
    ),
    "TAGS": [
        {"name": "results", "description": "Rates, results, events and incidents"},
        {
            "name": "operation",
            "description": "On-demand tests, parameter sweeps, endpoint checks and health",
        },
        {"name": "registry", "description": "Sites, endpoints, meshes, targets and other settings"},
        {"name": "about", "description": "The API itself"},
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
