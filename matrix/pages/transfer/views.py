"""The page of a transfer, which leads on to the link for what was a test of the network alone."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase

from matrix.http.page_rights import for_whom, readers
from matrix.pages.transfer.page import TransferPage
from matrix.pages.views import showing
from matrix.query.addresses import link_path
from matrix.store import network

show = showing(TransferPage)


@for_whom(GET=readers)
def transfer(request: HttpRequest, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
    """Who followed a test until its end finds it on the page of its link."""
    try:
        return show(request, id=id)
    except Http404:
        result = network.by_id(id)
        if result is None:
            raise
    url = link_path(result.source.name, result.destination.name)
    return HttpResponseRedirect(f"{url}#network")
