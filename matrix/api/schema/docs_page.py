"""The page /api/v1/docs/: the schema to read, and its calls to try out."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control

from matrix.http.my_site import my_site
from matrix.http.page_rights import for_whom, readers


@for_whom(GET=readers)
@cache_control(private=True, no_cache=True)
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs.html", {"my_site": my_site(request)})
