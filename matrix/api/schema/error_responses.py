"""Errors that calls answer, by status: one shape, with an example of each."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from matrix.http.exceptions import NEEDS_ACCOUNT

REFUSALS: dict[int, tuple[str, dict[str, Any]]] = {
    400: (
        "A parameter, a field or the body is wrong; `errors` says which, and what is allowed.",
        {
            "detail": "page_size “0” is not a whole number from 1 to 1000.",
            "errors": {"page_size": ["page_size “0” is not a whole number from 1 to 1000."]},
        },
    ),
    401: (
        "Not authenticated: there is no token or session, or the token is not valid.",
        {"detail": NEEDS_ACCOUNT, "errors": {}},
    ),
    403: (
        "The account may not do this, or its token lacks the scope.",
        {"detail": "Your role does not allow this for that site.", "errors": {}},
    ),
    404: (
        "Nothing has this name or id.",
        {"detail": "There is nothing at /api/v1/nothing/.", "errors": {}},
    ),
    409: (
        "The request conflicts with existing data.",
        {"detail": "name is taken: another site has it.", "errors": {}},
    ),
    411: (
        "The body is chunked, without its length.",
        {"detail": "Send the body with its Content-Length, not in chunks.", "errors": {}},
    ),
    413: (
        "The body is too large.",
        {"detail": "The body is larger than 100,000 bytes.", "errors": {}},
    ),
    414: (
        "The address, including its query, is too long.",
        {
            "detail": "The first line of the request is longer than 4,094 bytes: ask for less at "
            "once.",
            "errors": {},
        },
    ),
    415: (
        "The body is not sent as JSON.",
        {
            "detail": "Send JSON with Content-Type: application/json. "
            'Unsupported media type "text/plain" in request.',
            "errors": {},
        },
    ),
    429: (
        "Too many requests: try again after the seconds in Retry-After.",
        {"detail": "Request was throttled. Expected available in 12 seconds.", "errors": {}},
    ),
    431: (
        "A header is too long, or there are too many.",
        {
            "detail": "A header is longer than 8,190 bytes, or there are more than 100.",
            "errors": {},
        },
    ),
    503: (
        "This takes too long, or something else must finish first: see Retry-After.",
        {"detail": "A file is being imported: send this again later.", "errors": {}},
    ),
}
RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    int,
    OpenApiParameter.HEADER,
    description="Try again after this many seconds.",
    response=[429, 503],
)
