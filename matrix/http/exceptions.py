"""Errors of the API: always JSON, with a sentence and, where it is about them, parameters."""

import logging
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from django.urls import resolve
from django.views.decorators.csrf import csrf_exempt
from psycopg.errors import QueryCanceled
from rest_framework.exceptions import (
    APIException,
    NotAuthenticated,
    ParseError,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from matrix.http.permissions import hidden_filters
from matrix.http.throttling import TooOften, TryLater, count
from matrix.query.forms import BadQueryError
from sonar.notation.units import format_bytes

log = logging.getLogger(__name__)

NEEDS_ACCOUNT = "This requires an account: log in, or send a token (“Authorization: Token ...”)."
LOST = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


class TooLarge(APIException):
    status_code = 413
    default_detail = "The body is too large."


class FormTooLarge(RequestDataTooBig):
    """A form of a page beyond what its view takes, in bytes."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"more than {most_bytes} bytes")
        self.most_bytes = most_bytes


class NotNow(TryLater):
    """Something else is going on that this would have to wait for."""

    status_code = 503


class LengthRequired(APIException):
    status_code = 411
    default_detail = "Send the body with a Content-Length header, not in chunks."


class Conflict(ValidationError):
    """The request is well formed, but what is there stands against it; errors by field."""

    status_code = 409


class HiddenFilter(ValidationError):
    """A filter on what the sender may not see; errors by parameter."""

    status_code = 403


def refuse_hidden_filters(request: Request) -> None:
    """Raise HiddenFilter for filters of an address that its sender may not use."""
    if hidden := hidden_filters(request):
        raise HiddenFilter(hidden)


class FaultyBody(ValidationError):
    """A 400 with many places, and one sentence that sums them up."""

    def __init__(self, summary: str, errors: dict[str, list[str]]) -> None:
        super().__init__(errors)
        self.summary = summary


def as_json(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error as {"detail": ..., "errors": {parameter: [sentence, ...]}}."""
    # What is refused before it is counted: so wrong tokens, and those that cannot be checked, count
    # for the address that they came from, and right ones go on working.
    if context["request"] is not None and isinstance(error, APIException):
        try:
            count(context["request"])
        except TooOften as more:
            error = more
    error = framework_error(error)
    response = exception_handler(error, context)
    if response is None:
        return None
    errors = response.data if isinstance(error, ValidationError) else {}
    if isinstance(errors, list):
        errors = {"detail": errors}
    response.data = {"detail": sentence(error, errors), "errors": errors}
    return response


def framework_error(error: Exception) -> Exception:
    """Turn what others raise for bad input into errors of the framework."""
    if isinstance(error, BadQueryError):
        return ValidationError(error.errors)
    if isinstance(error, RequestDataTooBig):
        return TooLarge()
    if isinstance(error, SuspiciousOperation):
        return ParseError(unreadable(error))
    return error


def unreadable(error: Exception) -> str:
    """Say why Django would not read a request."""
    if isinstance(error, DisallowedHost):
        return "The host name of this request is not allowed (SONAR_ALLOWED_HOSTS)."
    if isinstance(error, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return f"The request has more than {most:,} parameters or fields."
    if isinstance(error, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if isinstance(error, FormTooLarge):
            most = error.most_bytes
        return f"The request is larger than {format_bytes(most)}, files included."
    return "The request cannot be read."


def database_trouble(error: Exception) -> NotNow | None:
    """Return what to say of a database that is away or too slow; None for any other error."""
    if not isinstance(error, LOST):
        return None
    # The first line says what; others may show the statement.
    log.warning("The database: %s", str(error).partition("\n")[0])
    if isinstance(error, QueryCanceled) or isinstance(error.__cause__, QueryCanceled):
        seconds = settings.SONAR_STATEMENT_SECONDS
        return NotNow(
            f"The database took longer than {seconds} s: request a shorter time range or "
            "fewer links.",
            30,
        )
    return NotNow("The database is unavailable or busy: try again in a few seconds.", 5)


def sentence(error: Exception, errors: dict[str, list[str]]) -> str:
    if isinstance(error, FaultyBody):
        return error.summary
    if errors:
        return " ".join(text for texts in errors.values() for text in texts)
    if isinstance(error, NotAuthenticated):
        return NEEDS_ACCOUNT
    if isinstance(error, UnsupportedMediaType):
        return f"Send JSON with Content-Type: application/json. {error.detail}"
    return str(error.detail) if isinstance(error, APIException) else str(error)


@csrf_exempt  # else Django asks for the token of a form before it says that there is nothing
def not_found(request: HttpRequest) -> JsonResponse:
    """Answer for every path of the API that there is none."""
    path = request.path_info
    lacks_slash = not path.endswith("/") and resolve(f"{path}/").func is not not_found
    hint = ": add a slash at the end" if lacks_slash else ""
    detail = f"There is nothing at {request.path}{hint}."
    return JsonResponse({"detail": detail, "errors": {}}, status=404)
