"""Errors of whole requests: in JSON below /api/, else as a page.

What a view of the API raises, matrix/http/exceptions.py answers. These are for what comes before or
after it: a host name that is not ours, a database that is away, a crash.
"""

import logging
import sys

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import server_error

from matrix.http.exceptions import NotNow, database_trouble, not_found, unreadable
from matrix.http.throttling import TooOften
from matrix.query.addresses import address

log = logging.getLogger(__name__)


class ErrorAnswers(MiddlewareMixin):
    """Answers what views raise where Django would only know a 500."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        # PostgreSQL has no text with a null character: nothing can be called so.
        if "\0" in request.path_info:
            if is_api(request):
                return not_found(request)
            raise Http404
        # The lists of the admin would look for it; other pages check what they read.
        in_admin = request.path.startswith(address("admin:index"))
        if in_admin and "%00" in request.META["QUERY_STRING"]:
            return bad_request(request, SuspiciousOperation())
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if problem := database_trouble(error):
            return refusal(request, problem, "503.html")
        if isinstance(error, TooOften):
            return refusal(request, error, "429.html")
        if settings.DEBUG and is_api(request):  # Django would answer with a page of its own
            log.error("A crash at %a", request.path, exc_info=error)
            return broken()
        return None


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith(address("api"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django would not read (handler400)."""
    sentence = unreadable(exception)
    status = 413 if isinstance(exception, RequestDataTooBig) else 400
    if is_api(request):
        return JsonResponse({"detail": sentence, "errors": {}}, status=status)
    return render(request, "400.html", {"errors": {"": [sentence]}}, status=status)


def crashed(request: HttpRequest) -> HttpResponseBase:
    """Answer for an error that nobody foresaw (handler500); Django has logged it."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and (problem := database_trouble(error)):
        return refusal(request, problem, "503.html")
    return broken() if is_api(request) else server_error(request)


def broken() -> JsonResponse:
    detail = "An internal error occurred in Sonar. Its log has the details."
    return JsonResponse({"detail": detail, "errors": {}}, status=500)


def refusal(request: HttpRequest, error: NotNow | TooOften, template: str) -> HttpResponse:
    """Answer that this can be asked again after some seconds; the page needs no database."""
    response: HttpResponse
    if is_api(request):
        response = JsonResponse({"detail": str(error.detail), "errors": {}})
    else:
        response = HttpResponse(render_to_string(template, {"sentence": error.detail}))
    response.status_code = error.status_code
    response["Retry-After"] = str(error.wait)
    response["Cache-Control"] = "no-store"
    return response
