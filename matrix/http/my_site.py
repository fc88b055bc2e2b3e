"""Which site is the reader's: kept in a cookie of the browser."""

from __future__ import annotations

from django.http import HttpRequest

MY_SITE = "sonar_site"


def my_site(request: HttpRequest) -> str:
    return request.COOKIES.get(MY_SITE, "")
