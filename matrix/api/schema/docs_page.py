"""The page /api/v1/docs/: the schema to read, and its calls to try out."""

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from matrix.http.my_site import my_site
from matrix.http.permissions import may_read


@require_safe
@cache_control(private=True, no_cache=True)
def docs(request: HttpRequest) -> HttpResponse:
    if not may_read(request):
        return redirect_to_login(request.get_full_path())
    return render(request, "api_docs.html", {"my_site": my_site(request)})
