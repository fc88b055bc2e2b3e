"""What all ways to log in share: the page that offers them, their refusals, where they lead."""

import logging
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme

from matrix.http import my_site
from matrix.query.addresses import address
from sonar.people import roles
from sonar.people.roles import Role

log = logging.getLogger(__name__)

# Of who logs in elsewhere: groups are looked at again as often.
SESSION_SECONDS = 12 * 3600
BACKEND = "django.contrib.auth.backends.ModelBackend"


def has_provider() -> bool:
    """Say whether people log in at a provider; with an issuer alone scripts read by its tokens."""
    return bool(settings.SONAR_OIDC_ISSUER and settings.SONAR_OIDC_CLIENT_ID)


def provider_name() -> str:
    return settings.SONAR_OIDC_NAME or urlsplit(settings.SONAR_OIDC_ISSUER).hostname or ""


def offers(next_url: str) -> dict[str, Any]:
    """Return what the page of the log-in needs, to offer each way that is switched on."""
    oidc = address("oidc-log-in")
    return {
        "provider": provider_name() if has_provider() else "",
        "provider_url": f"{oidc}?{urlencode({'next': next_url})}" if next_url else oidc,
        "certificates": bool(settings.SONAR_X509_PROXIES),
        "passwords": settings.SONAR_PASSWORDS,
        "next": next_url,
    }


def refused(
    request: HttpRequest, sentence: str, *, next_url: str = "", status: int = 403
) -> HttpResponse:
    """Answer that nobody was logged in, and why, with the ways to try again."""
    log.info("A log-in was refused: %s", sentence)
    context = offers(next_url) | {"refusal": sentence}
    response = render(request, "login.html", context, status=status)
    add_never_cache_headers(response)
    return response


def safe_next(request: HttpRequest, url: str) -> str:
    """Return an address to go to after the log-in if it is of this Sonar, else nothing."""
    hosts = {request.get_host()}
    own = url_has_allowed_host_and_scheme(url, hosts, require_https=request.is_secure())
    return url if own else ""


def enter(request: HttpRequest, user: User, next_url: str) -> HttpResponse:
    """Begin the session of who was vouched for, and lead on."""
    login(request, user, backend=BACKEND)
    request.session.set_expiry(SESSION_SECONDS)
    response = HttpResponseRedirect(safe_next(request, next_url) or front_of(request))
    remember_own_site(request, response)
    return response


def front_of(request: HttpRequest) -> str:
    """Return where an account lands that came from nowhere: a site admin at the own site."""
    name = own_site(request)
    return address("site", name) if name else address("matrix")


def remember_own_site(request: HttpRequest, response: HttpResponse) -> None:
    """Make the site of a site admin "My site" where none was chosen."""
    name = own_site(request)
    if name and not my_site.my_site(request):
        my_site.remember(request, response, name)


def own_site(request: HttpRequest) -> str:
    """Return the chosen one of a site admin's sites, or the first; empty for other roles."""
    user = cast(User, request.user)
    if roles.role_of(user) is not Role.SITE_ADMIN:
        return ""
    names = list(user.administered_sites.order_by("name").values_list("name", flat=True))
    chosen = my_site.my_site(request)
    return chosen if chosen in names else names[0]


NO_PASSWORDS = "Names and passwords are not accepted here."


class LogIn(LoginView):
    """Django's view, which follows `next` to addresses of this Sonar alone."""

    template_name = "login.html"

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not settings.SONAR_PASSWORDS:
            return refused(request, NO_PASSWORDS, next_url=self.get_redirect_url())
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context | offers(self.get_redirect_url())

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        # The session may be one that a log-in elsewhere has begun.
        self.request.session.set_expiry(None)
        remember_own_site(self.request, response)
        return response

    def get_default_redirect_url(self) -> str:
        return front_of(self.request)
