"""How a call says who asks: a token of a script, or the session of a person."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "matrix.http.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": (
                "`Token sonar_...`, starting with that word. Each call names the scope that it "
                "needs: `read`, `ingest` or `operate`. Where it is switched on, `Bearer ...` with "
                "a token of the identity provider has the scope `read`."
            ),
        }


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "matrix.http.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "Whoever is logged in; to write, with the header X-CSRFToken.",
        }
