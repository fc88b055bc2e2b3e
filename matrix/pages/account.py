"""The pages of an account: its tokens, which are made and revoked there, and its saved views."""

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.text import capfirst
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from matrix.http.my_site import my_site
from matrix.http.page_rights import accounts, for_whom
from matrix.pages.parts.notes import back
from matrix.pages.site.work_forms import SMALL
from matrix.query.addresses import address
from sonar.models import SavedView, Token
from sonar.people import accounts as issued
from sonar.people import roles, saved_views, tokens
from sonar.people.role_form import PasswordOnly
from sonar.people.roles import Role
from sonar.people.saved_views import SavedViewError

MAY = {
    Role.READER: "You have read access.",
    Role.SITE_ADMIN: "You can run tests from and to these sites, declare downtimes and write "
    "notes for them. You can change the caps, budget, label and software of their endpoints.",
    Role.OPERATOR: "You can edit the registry (except size classes), run tests, store results, "
    "declare downtimes, write notes, and see internal details.",
    Role.ADMINISTRATOR: "You have full access. This list shows the tokens of all accounts.",
}
SCOPE_WORDS = {
    "read": "read everything that you can read",
    "ingest": "store results of other systems",
    "operate": "run and cancel tests, and edit notes, downtimes and the registry, as far as your "
    "rights allow",
}
USUAL_DAYS = 90


class TokenForm(forms.Form):
    """A request for a token; what may not be, `tokens.create` says."""

    name = forms.CharField(max_length=80)
    scopes = forms.MultipleChoiceField()
    days = forms.IntegerField(initial=USUAL_DAYS)

    def __init__(self, account: User, *data: Any) -> None:  # noqa: ANN401 - Django's form data
        super().__init__(*data)
        self.account = account
        choices = [(scope, SCOPE_WORDS[scope]) for scope in roles.scopes_for(account)]
        cast(forms.MultipleChoiceField, self.fields["scopes"]).choices = choices

    def make(self) -> tuple[Token | None, str]:
        if self.is_valid():
            try:
                return tokens.create(self.account, **self.cleaned_data)
            except tokens.TokenError as error:
                self.add_error(None, f"{capfirst(str(error)).removesuffix('.')}.")
        return None, ""

    def sentences(self) -> list[str]:
        return [
            str(error) if field == "__all__" else f"{field}: {error}"
            for field, errors in self.errors.items()
            for error in errors
        ]


@for_whom(GET=accounts, POST=accounts)
@cache_control(no_store=True, private=True)
@sensitive_variables()
def own_tokens(request: HttpRequest) -> HttpResponse:
    """Show the tokens; a new one stands on the answer to its POST, and nowhere else ever."""
    account = cast(User, request.user)
    form = TokenForm(account, request.POST if request.method == "POST" else None)
    token, text = form.make()
    command = f"curl -H 'Authorization: Token {text}'"
    if token and ("read" in token.scopes or settings.SONAR_PUBLIC_READ):
        command += f" '{request.build_absolute_uri(address('api-sites'))}?format=csv'"
    elif token:
        call = "transfers" if "ingest" in token.scopes else "probes"
        url = request.build_absolute_uri(address(f"api-{call}"))
        command += f" --json '@{call}.json' '{url}'"
    context = {
        "form": form,
        "token": token,
        "text": text,
        "curl": command if token else "",
        "tokens": tokens.in_reach_of(account),
        "everybodys": account.is_superuser,
        "you_are": roles.described(account),
        "you_may": MAY[roles.role_of(account) or Role.READER],
        "longest_days": tokens.LONGEST_DAYS,
        "has_password": has_password(account),
        "now": timezone.now(),
        "my_site": my_site(request),
    }
    return render(request, "tokens.html", context, status=400 if form.errors else 200)


def has_password(account: User) -> bool:
    """Say whether an account logs in with a password of this Sonar."""
    elsewhere = issued.is_elsewhere(account)
    return settings.SONAR_PASSWORDS and account.has_usable_password() and not elsewhere


class OwnPasswordForm(PasswordOnly, PasswordChangeForm):
    """Another password, by who knows the present one."""


@sensitive_post_parameters()
@for_whom(GET=accounts, POST=accounts)
@cache_control(no_store=True, private=True)
def own_password(request: HttpRequest) -> HttpResponse:
    """Change the password of the account, which ends its other sessions."""
    account = cast(User, request.user)
    if not has_password(account):
        status = 200 if request.method == "GET" else 400
        return render(request, "password.html", {"my_site": my_site(request)}, status=status)
    form = OwnPasswordForm(account, request.POST if request.method == "POST" else None)
    for field in form.fields.values():
        field.widget.attrs["class"] = SMALL
        field.help_text = ""
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, account)
        messages.success(request, "Your password was changed. Your other sessions have ended.")
        return redirect(address("tokens"))
    context = {"form": form, "my_site": my_site(request)}
    return render(request, "password.html", context, status=400 if form.errors else 200)


@for_whom(POST=accounts)
def revoke_token(request: HttpRequest) -> HttpResponse:
    """Make a token useless: one of the account's own, or for administrators any."""
    within = tokens.in_reach_of(cast(User, request.user))
    try:
        tokens.revoke(request.POST.get("key", ""), within)
    except tokens.TokenError:
        raise Http404("You have no token with this key. It may have been revoked.") from None
    return back(request, address("tokens"))


@for_whom(GET=accounts, POST=accounts)
@cache_control(no_store=True, private=True)
def own_views(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return listing(request, request.GET.get("address", ""))
    name, address = request.POST.get("name", ""), request.POST.get("address", "")
    try:
        view = saved_views.save(cast(User, request.user), name, address)
    except SavedViewError as error:
        return listing(request, address, name, f"{error} Nothing was saved.")
    return redirect(view.address)


@for_whom(POST=accounts)
def rename_view(request: HttpRequest) -> HttpResponse:
    try:
        saved_views.rename(own_view(request), request.POST.get("name", ""))
    except SavedViewError as error:
        return listing(request, sentence=f"{error} Nothing was renamed.")
    return redirect("views")


@for_whom(POST=accounts)
def delete_view(request: HttpRequest) -> HttpResponse:
    own_view(request).delete()
    return redirect("views")


def own_view(request: HttpRequest) -> SavedView:
    """Return the view that a form is about; those of others are as if they were not there."""
    # PostgreSQL keeps no text with such a character, so that no view is called so.
    name = request.POST.get("view", "").replace("\0", "")
    view = saved_views.of(cast(User, request.user)).filter(name=name).first()
    if view is None:
        raise Http404("You have no view with this name. It may have been deleted.")
    return view


def listing(
    request: HttpRequest, address: str = "", name: str = "", sentence: str = ""
) -> HttpResponse:
    context = {
        "views": saved_views.of(cast(User, request.user)),
        "address": address,
        "name": name,
        "sentence": sentence,
        "my_site": my_site(request),
    }
    return render(request, "views.html", context, status=400 if sentence else 200)
