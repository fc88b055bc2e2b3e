"""Which requests a replica may answer: those that read, once it has what their sender wrote.

In use where DATABASE_READ_URL is set; sonar.database.reader does the rest.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.permissions import SAFE_METHODS

from matrix.http.permissions import scopes_of
from sonar.database import reader
from sonar.people import roles

# A browser keeps how far the primary was when it last wrote. A replica that is further behind
# than the limit answers nobody, so that it is not needed for longer.
COOKIE = "sonar_written"
SPARE_SECONDS = 10


class ReadsFromReplica:
    """Answers who reads from the replica, and from the primary where that led to an error."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        longest = settings.SONAR_REPLICA_SECONDS + SPARE_SECONDS
        if request.method not in SAFE_METHODS:
            response = self._get_response(request)
            if response.status_code < 400 and "Authorization" not in request.headers:
                response.set_signed_cookie(
                    COOKIE,
                    str(reader.position()),
                    max_age=longest,
                    secure=request.is_secure(),
                    httponly=True,
                    samesite="Lax",
                )
            return response
        # How far the replica must be to have what this browser has written; 0 if nothing.
        position = int(request.get_signed_cookie(COOKIE, None, max_age=longest) or 0)
        with reader.preferred(position, lambda: may_use(request)) as preference:
            response = self._get_response(request)
        # It may not have it yet, or have gone away, or have had to end the statement.
        if preference.may_repeat and response.status_code >= 400:
            response.close()
            response = self._get_response(request)
        return response


def may_use(request: HttpRequest) -> bool:
    """Say whether the replica may answer, once the primary has said what the sender may do.

    Scripts that may write keep no cookies, and would not find what they have just sent.
    """
    roles.rights_of(request.user)
    return {"read"}.issuperset(scopes_of(request) or ())
