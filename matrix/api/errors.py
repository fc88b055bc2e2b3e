"""Errors of the API: always JSON, with a sentence and, where it is about them, parameters."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from matrix.forms import BadQueryError


def as_json(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error as {"detail": ..., "errors": {parameter: [sentence, ...]}}."""
    if isinstance(error, BadQueryError):
        error = ValidationError(error.errors)
    response = exception_handler(error, context)
    if response is None:
        return None
    errors = response.data if isinstance(error, ValidationError) else {}
    if isinstance(errors, list):
        errors = {"detail": errors}
    response.data = {"detail": sentence(error, errors), "errors": errors}
    return response


def sentence(error: Exception, errors: dict[str, list[str]]) -> str:
    if errors:
        return " ".join(one for some in errors.values() for one in some)
    return str(error.detail) if isinstance(error, APIException) else str(error)


def not_found(request: HttpRequest) -> JsonResponse:
    """Answer for every path of the API that there is none."""
    detail = f"There is nothing at {request.path}."
    return JsonResponse({"detail": detail, "errors": {}}, status=404)
