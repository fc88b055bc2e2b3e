"""Ways to log in: by a password, at an OpenID provider, and by a certificate; where they lead.

By allauth are the redirect with PKCE, the state that works once, and the exchange of the code.
What it does with a person afterwards is never reached: finding accounts by e-mail, signing up,
connecting. `sonar.people.accounts` knows people by issuer and subject alone.
"""

import logging
import re
import secrets
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, NoReturn, cast
from urllib.parse import urlencode, urlsplit

import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme

from matrix.http import my_site
from matrix.http.page_rights import anyone, for_whom
from matrix.http.throttling import count_log_in_elsewhere
from matrix.query.addresses import address
from sonar.notation.addresses import unmapped
from sonar.people import roles
from sonar.people.accounts import CERTIFICATE, Identity, NotAdmitted, admit
from sonar.people.issuer import IssuerAway, TokenRefused, session, the_issuer
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


NO_PASSWORDS = "This Sonar instance does not accept log-ins with a name and password."


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


USED = (
    "This log-in attempt has already ended, began in another browser, or is more than ten minutes "
    "old. Start a new log-in."
)


class ProviderAccess(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """Where the provider is, and who logs in there; ``state`` is what this log-in began with."""

    state: Mapping[str, Any] = {}

    @property
    def openid_config(self) -> dict[str, Any]:
        return the_issuer().configuration()

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(address("oidc-callback"))

    def complete_login(
        self,
        request: HttpRequest,
        app: SocialApp,
        token: SocialToken,
        *,
        response: Mapping[str, Any],
        **_: object,
    ) -> NoReturn:
        """Log a person in whose ID token is genuine, for us, and of this log-in.

        Always raises: the answer, TokenRefused, NotAdmitted or IssuerAway.
        """
        id_token = response.get("id_token")
        if not isinstance(id_token, str):
            raise TokenRefused("the response contains no ID token")
        claims = the_issuer().verify(id_token, app.client_id)
        if claims.get("azp", app.client_id) != app.client_id:
            raise TokenRefused("this ID token was issued to another client (azp)")
        if not secrets.compare_digest(str(claims.get("nonce", "")), self.state["nonce"]):
            raise TokenRefused("this ID token was issued for another log-in (nonce)")
        info = self._fetch_user_info(token.token)
        if info.get("sub") != claims["sub"]:
            raise TokenRefused("the user information from the provider is about another user")
        said = info | claims
        name = said.get("preferred_username")
        name = name if isinstance(name, str) else ""
        user = admit(Identity(settings.SONAR_OIDC_ISSUER, said["sub"], name, groups_of(said)))
        raise ImmediateHttpResponse(enter(request, user, self.state.get("next") or ""))


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    oauth2_adapter_class = ProviderAccess


class CallbackView(OAuth2CallbackView):  # type: ignore[misc]
    """allauth's; the state is needed to complete the log-in, not only after it."""

    def _get_state(self, request: HttpRequest, provider: Provider) -> tuple[Any, Any]:
        state, response = super()._get_state(request, provider)
        self.adapter.state = state
        return state, response


class LogInAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Tells allauth of the one provider, which the settings name, and answers what it refuses."""

    def get_provider(
        self, request: HttpRequest, provider: str = "", client_id: str | None = None
    ) -> Provider:
        """Return the provider, whatever is asked for; tables of allauth name none."""
        app = SocialApp(
            provider=Provider.id,
            # What accounts are found by, beside the subject.
            provider_id=settings.SONAR_OIDC_ISSUER,
            name=provider_name(),
            client_id=settings.SONAR_OIDC_CLIENT_ID,
            secret=settings.SONAR_OIDC_CLIENT_SECRET,
            settings={"oauth_pkce_enabled": True, "scope": settings.SONAR_OIDC_SCOPES},
        )
        return Provider(request, app=app)

    def list_apps(self, request: HttpRequest, **_: object) -> list[SocialApp]:
        return [self.get_provider(request).app]

    def get_requests_session(self) -> requests.Session:
        return session()

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Provider,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        name, status = provider_name(), 403
        again = "Start the log-in again, or contact an administrator."
        if "state" not in (extra_context or {}):
            sentence = USED
        elif isinstance(exception, requests.RequestException):
            sentence, status = f"{name} is not responding. Try again in a minute.", 503
        elif exception is not None:
            sentence = f"{name} did not complete the log-in. {again}"
        elif error == AuthError.CANCELLED:
            sentence = f"The log-in was cancelled at {name}, or is not allowed there."
        else:
            sentence = f"{name} ended the log-in with an error. {again}"
        raise ImmediateHttpResponse(refused(request, sentence, status=status))


def groups_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups in the first of some claims that is there; a text is a single group."""
    names = (name for name in settings.SONAR_OIDC_GROUPS if name in claims)
    value: object = next((claims[name] for name in names), [])
    groups = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(group for group in groups if isinstance(group, str) and group.isprintable())


# As long as allauth takes a state. Whoever logs in gets another time.
STATE_SECONDS = 600
# What the provider sends is read by allauth, which expects it to be right: what stands in JSON may
# be missing, of another type, of any size or nested as deeply as it likes.
GARBLED = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
# What the front server says of the certificate that a browser has shown it.
VERIFIED, SUBJECT = "X-SSL-Client-Verify", "X-SSL-Client-S-DN"
NOT_THROUGH_IT = (
    "Sonar accepts only certificates that its front server has checked. This request did not "
    "come through the front server."
)
NO_CERTIFICATE = (
    "Your browser sent no certificate that the front server of this Sonar instance trusts."
)


@for_whom(GET=anyone)
def provider_log_in(request: HttpRequest) -> HttpResponse:
    """Lead to the provider. A GET, as browsers follow no form to another host (form-action)."""
    if not has_provider():
        raise Http404
    next_url = safe_next(request, request.GET.get("next", ""))
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        # Another site shall log nobody in, or another person out: they are asked here first.
        query = f"?{urlencode({'next': next_url})}" if next_url else ""
        return HttpResponseRedirect(f"{address('login')}{query}")
    count_log_in_elsewhere(request)
    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_SECONDS)
    nonce = secrets.token_urlsafe(32)
    provider = get_adapter(request).get_provider(request)
    try:
        response = provider.redirect(
            request, AuthProcess.LOGIN, next_url, nonce=nonce, auth_params={"nonce": nonce}
        )
        return cast(HttpResponse, response)
    except IssuerAway as error:
        return away(request, error, next_url)


@for_whom(GET=anyone)
def provider_callback(request: HttpRequest) -> HttpResponse:
    if not has_provider():
        raise Http404
    access = ProviderAccess(request, settings.SONAR_OIDC_ISSUER)
    try:
        return cast(HttpResponse, CallbackView.adapter_view(access)(request))
    except NotAdmitted as error:
        return refused(request, str(error))
    except TokenRefused as error:
        name = provider_name()
        return refused(request, f"The ID token of {name} is not accepted: {error}.")
    except (IssuerAway, *GARBLED) as error:
        return away(request, error)


def away(request: HttpRequest, error: Exception, next_url: str = "") -> HttpResponse:
    name = provider_name()
    sentence = f"{name} is not responding, or its response is not valid. Try again in a minute."
    if isinstance(error, IssuerAway):
        sentence += f" {error}"
    return refused(request, sentence, next_url=next_url, status=503)


@for_whom(POST=anyone)
def certificate_log_in(request: HttpRequest) -> HttpResponse:
    if not settings.SONAR_X509_PROXIES:
        raise Http404
    next_url = safe_next(request, request.POST.get("next", ""))
    try:
        # The other end of the connection, whatever headers say.
        peer = unmapped(ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        peer = None
    if not any(peer in network for network in settings.SONAR_X509_PROXIES if peer):
        return refused(request, NOT_THROUGH_IT, next_url=next_url)
    subject = request.headers.get(SUBJECT, "").strip()
    if request.headers.get(VERIFIED) != "SUCCESS" or not subject:
        return refused(request, NO_CERTIFICATE, next_url=next_url)
    name = re.search("CN=([^,/]+)", subject)
    try:
        user = admit(Identity(CERTIFICATE, subject, name[1] if name else ""))
    except NotAdmitted as error:
        return refused(request, str(error), next_url=next_url)
    return enter(request, user, next_url)
