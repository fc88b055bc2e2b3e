"""/favicon.ico: where browsers look for an icon before they have read a page."""

from __future__ import annotations

from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpRequest, HttpResponseRedirect
from django.views.decorators.http import require_safe


@require_safe
def icon(request: HttpRequest) -> HttpResponseRedirect:
    """Lead to the icon that pages name."""
    return HttpResponseRedirect(staticfiles_storage.url("icon.svg"))
