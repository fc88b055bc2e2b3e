"""Which site is the reader's: kept in a cookie of the browser."""

from django.http import HttpRequest, HttpResponse

MY_SITE = "sonar_site"
YEAR_SECONDS = 365 * 86_400


def my_site(request: HttpRequest) -> str:
    return request.COOKIES.get(MY_SITE, "")


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Keep a site for a year."""
    response.set_cookie(
        MY_SITE,
        name,
        max_age=YEAR_SECONDS,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
