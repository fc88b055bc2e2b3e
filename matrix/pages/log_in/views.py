"""Ways to log in beside a password: at an OpenID provider, and by a certificate."""

from __future__ import annotations

import re
import secrets
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlencode

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from matrix.http.login_limits import count_log_in_elsewhere
from matrix.http.page_rights import anyone, for_whom
from matrix.pages.log_in.landing import enter, has_provider, provider_name, refused, safe_next
from matrix.pages.log_in.provider import CallbackView, ProviderAccess
from matrix.query.addresses import address
from sonar.notation.hosts import unmapped
from sonar.people.accounts import CERTIFICATE, Identity, NotAdmitted, admit
from sonar.people.issuer import TokenRefused
from sonar.people.issuer_web import IssuerAway

# As long as allauth takes a state. Whoever logs in gets another time.
STATE_SECONDS = 600
# What the provider sends is read by allauth, which expects it to be right: what stands in JSON may
# be missing, of another type, of any size or nested as deeply as it likes.
GARBLED = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
# What the front server says of the certificate that a browser has shown it.
VERIFIED, SUBJECT = "X-SSL-Client-Verify", "X-SSL-Client-S-DN"
NOT_THROUGH_IT = (
    "Certificates count only where the front server of this Sonar has checked them. This "
    "request did not come through it."
)
NO_CERTIFICATE = "Your browser showed no certificate that the front server of this Sonar trusts."


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
    """Log in whom the provider sends back, or say why not."""
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
    except IssuerAway as error:
        return away(request, error)
    except GARBLED as error:
        return away(request, error)


def away(request: HttpRequest, error: Exception, next_url: str = "") -> HttpResponse:
    name = provider_name()
    sentence = f"{name} does not answer, or not as a provider does. Try again in a minute."
    if isinstance(error, IssuerAway):
        sentence += f" {error}"
    return refused(request, sentence, next_url=next_url, status=503)


@for_whom(POST=anyone)
def certificate_log_in(request: HttpRequest) -> HttpResponse:
    """Log in whoever showed the front server a certificate."""
    if not settings.SONAR_X509_PROXIES:
        raise Http404
    next_url = safe_next(request, request.POST.get("next", ""))
    if not from_front_server(request):
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


def from_front_server(request: HttpRequest) -> bool:
    """Say whether a trusted server is at the other end of the connection, whatever headers say."""
    try:
        peer = unmapped(ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return False
    return any(peer in network for network in settings.SONAR_X509_PROXIES)
