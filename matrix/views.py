"""Pages. Each shows what its URL asks for; a bad URL is answered with a 400 that says why."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.http import require_safe

from matrix import grid
from matrix.api.access import may_read
from matrix.controls import controls_for
from matrix.forms import BadQueryError
from matrix.grid import Grid
from matrix.hover import STATE_WORDS, cells
from matrix.notices import notice_for
from matrix.plots import figure
from matrix.query import MatrixQuery
from matrix.tables import table_for
from sonar.models import SizeClass


@require_safe
def matrix_page(request: HttpRequest) -> HttpResponseBase:
    """Show the matrix that the URL asks for; a URL that says the same longer leads there."""
    if not may_read(request):
        return redirect_to_login(request.get_full_path())
    try:
        query = MatrixQuery.from_params(request.GET)
    except BadQueryError as error:
        return render(request, "400.html", {"errors": error.errors}, status=400)
    if list(request.GET.lists()) != list(query.to_params().items()):
        return HttpResponseRedirect(query.url())
    return answer(request, query)


def answer(request: HttpRequest, query: MatrixQuery) -> HttpResponseBase:
    """Render the page, or nothing but a 304 if the reader has it already."""
    now = timezone.now()
    version = grid.version(query, now)
    etag = quote_etag(f"{version}-{request.user.pk or 'anonymous'}")
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is None:
        response = render(request, "matrix.html", context(grid.build(query, now, version)))
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


def context(answered: Grid) -> dict[str, Any]:
    query, window = answered.query, answered.window
    sizes = SizeClass.objects.values_list("name", flat=True)
    return {
        "heading": query.describe(),
        "grid": answered,
        "query": query,
        "controls": controls_for(
            query, sizes, f"{window.start:%Y-%m-%dT%H:%M}", f"{window.end:%Y-%m-%dT%H:%M}"
        ),
        "notice": notice_for(answered),
        "legend": legend(answered),
        "picture": picture(answered) if answered.sources else None,
        "unit": "" if query.stat == "last" else answered.unit,
        "table": table_for(answered),
        "json_url": query.url("/api/v1/matrix/"),
        "csv_url": query.url("/api/v1/matrix/", format="csv"),
    }


def picture(answered: Grid) -> dict[str, Any]:
    """Return what static/js/matrix.js draws."""
    return {"figure": figure(answered), "cells": cells(answered)}


def legend(answered: Grid) -> list[tuple[str, str, str, int]]:
    """Return each state with its name, its meaning, and how many cells have it."""
    counts = answered.states()
    return [
        (state, state.replace("_", " "), words, counts[state])
        for state, words in STATE_WORDS.items()
    ]
