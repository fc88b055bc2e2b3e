"""Errors of the API: always JSON, with a sentence and, where it is about them, parameters."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import (
    APIException,
    ParseError,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.response import Response
from rest_framework.views import exception_handler

from matrix.forms import BadQueryError


class TooLarge(APIException):
    status_code = 413
    default_detail = "The body is too large."


class NotNow(APIException):
    """Something else is going on that this would have to wait for."""

    status_code = 503

    def __init__(self, sentence: str, wait_seconds: int) -> None:
        super().__init__(sentence)
        self.wait = wait_seconds  # the framework makes Retry-After of it


class FaultyBody(ValidationError):
    """A 400 with many places, and one sentence that sums them up."""

    def __init__(self, summary: str, errors: dict[str, list[str]]) -> None:
        super().__init__(errors)
        self.summary = summary


def as_json(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error as {"detail": ..., "errors": {parameter: [sentence, ...]}}."""
    error = known(error)
    response = exception_handler(error, context)
    if response is None:
        return None
    errors = response.data if isinstance(error, ValidationError) else {}
    if isinstance(errors, list):
        errors = {"detail": errors}
    response.data = {"detail": sentence(error, errors), "errors": errors}
    return response


def known(error: Exception) -> Exception:
    """Turn what others raise for bad input into errors of the framework."""
    if isinstance(error, BadQueryError):
        return ValidationError(error.errors)
    if isinstance(error, RequestDataTooBig):
        return TooLarge()
    if isinstance(error, SuspiciousOperation):
        return ParseError("The request cannot be read.")
    return error


def sentence(error: Exception, errors: dict[str, list[str]]) -> str:
    if isinstance(error, FaultyBody):
        return error.summary
    if errors:
        return " ".join(one for some in errors.values() for one in some)
    if isinstance(error, UnsupportedMediaType):
        return f"Send JSON with Content-Type: application/json. {error.detail}"
    return str(error.detail) if isinstance(error, APIException) else str(error)


def not_found(request: HttpRequest) -> JsonResponse:
    """Answer for every path of the API that there is none."""
    detail = f"There is nothing at {request.path}."
    return JsonResponse({"detail": detail, "errors": {}}, status=404)
