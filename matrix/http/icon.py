"""/favicon.ico: where browsers look for an icon before they have read a page."""

from __future__ import annotations

from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpRequest, HttpResponseRedirect

from matrix.http.page_rights import anyone, for_whom


@for_whom(GET=anyone)
def icon(request: HttpRequest) -> HttpResponseRedirect:
    """Lead to the icon that pages name."""
    return HttpResponseRedirect(staticfiles_storage.url("icon.svg"))
