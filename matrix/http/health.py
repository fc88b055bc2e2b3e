"""/healthz: this process answers. /readyz: everything answers that measuring needs."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from matrix.answers.status.health import look
from matrix.http.page_rights import anyone, for_whom


@for_whom(GET=anyone)
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer, without asking anybody."""
    return JsonResponse({"alive": True})


@for_whom(GET=anyone)
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if all parts work, else 503."""
    parts = look(timezone.now())
    ready = all(part.ok for part in parts.values())
    answer = {"ready": ready, "parts": {name: asdict(part) for name, part in parts.items()}}
    return JsonResponse(answer, status=200 if ready else 503)
