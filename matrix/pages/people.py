"""The pages of people and roles, for administrators: all accounts, and what each may do."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self, cast
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import AdminUserCreationForm, SetPasswordForm
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from matrix.answers import people as accounts_of
from matrix.http.page_rights import administrators, for_whom
from matrix.pages.base import Page, Params
from matrix.pages.parts.last_change import LastChange
from matrix.pages.site.work_forms import SMALL
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from matrix.query.forms import BadQueryError, check_names
from matrix.store.data_version import DataVersion
from sonar.models import Site, Token
from sonar.people import accounts, roles
from sonar.people.role_form import PasswordOnly, RoleForm
from sonar.people.roles import Anyone, Role
from sonar.registry.shown_forms import ShownForm

PER_PAGE = 100
LONGEST = 150
OWN = (
    "You cannot remove your own administrator role or disable your own account. Ask another "
    "administrator."
)


class SitesForm(ShownForm, RoleForm):
    """A role, with the sites of a site admin by their names."""

    row_attribute, columns = "instance", {"role": "groups"}

    sites = forms.ModelMultipleChoiceField(
        Site.objects.order_by("name"),
        required=False,
        to_field_name="name",
        label="Sites of a site admin",
        help_text="To select several sites, hold Ctrl or Cmd.",
        widget=forms.SelectMultiple({"class": "form-select form-select-sm", "size": 8}),
        error_messages={"invalid_choice": "No site is named “%(value)s”."},
    )


class AccountForm(SitesForm):
    """What an account may do. The role of a person who logs in elsewhere is not decided here."""

    is_active = forms.BooleanField(label="active (can log in and use tokens)", required=False)

    def __init__(self, account: User, by: User, data: QueryDict | None = None) -> None:
        self.instance, self.by = account, by
        super().__init__(data, auto_id="role-%s", initial={"is_active": account.is_active})
        self.decides = not accounts.is_elsewhere(account)
        if not self.decides:
            del self.fields["role"], self.fields["sites"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        role = cleaned.get("role", Role.ADMINISTRATOR)
        stays = cleaned.get("is_active") and role == Role.ADMINISTRATOR
        if self.instance == self.by and not stays and not self.errors:
            self.add_error("role" if self.decides else "is_active", OWN)
        return cleaned

    @transaction.atomic
    def keep(self) -> None:
        self.instance.is_active = self.cleaned_data["is_active"]
        self.instance.save(update_fields=["is_active"])
        if self.decides:
            self.give()


class NewAccountForm(SitesForm, AdminUserCreationForm):  # type: ignore[type-arg]
    """A local account: with a password, or without one for scripts."""

    field_order = ("username", "usable_password", "password1", "password2", "role", "sites")

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="new-%s")
        usable: Any = self.fields["usable_password"]
        usable.label, usable.help_text = "Log-in", ""
        usable.choices = [("true", "with a password"), ("false", "disabled (account for scripts)")]
        self.fields["username"].help_text = "Letters, digits and @ . + - _"
        self.fields[
            "password1"
        ].help_text = "Give this password to the user, who can change it later on the Tokens page."
        self.fields["password2"].help_text = ""
        for name in ("username", "password1", "password2"):
            self.fields[name].widget.attrs["class"] = SMALL

    @transaction.atomic
    def keep(self) -> User:
        user: User = self.save()
        self.give()
        return user


@dataclass(frozen=True)
class PeoplePage(Page):
    template: ClassVar[str] = "people.html"
    route: ClassVar[str] = "people"
    of_primary: ClassVar[bool] = True

    search: str = ""
    after: str = ""

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, ("search", "after"))
        page = cls(*(params.get(name, "").strip() for name in ("search", "after")))
        for name, text in (("search", page.search), ("after", page.after)):
            if len(text) > LONGEST or not text.isprintable():
                sentence = f"{name} must be at most {LONGEST} printable characters."
                raise BadQueryError({name: [sentence]})
        return page

    def params(self) -> Params:
        texts = {"search": self.search, "after": self.after}
        return {name: [text] for name, text in texts.items() if text}

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        lines, last = accounts_of.lines(self.search, self.after, PER_PAGE)
        return {
            "lines": lines,
            "further": type(self)(self.search, last[0]).url() if last else "",
            "first": type(self)(self.search).url() if self.after else "",
            "form": NewAccountForm(),
            "passwords": settings.SONAR_PASSWORDS,
        }


@dataclass(frozen=True)
class PersonPage(Page):
    template: ClassVar[str] = "person.html"
    route: ClassVar[str] = "person"
    of_primary: ClassVar[bool] = True

    account: User

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(account_of(**path))

    def path(self) -> str:
        return address(self.route, self.account.get_username())

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        account, own = self.account, cast(User, reader)
        form = AccountForm(account, own)
        name = account.get_username()
        return {
            "account": account,
            "described": roles.described(account),
            "elsewhere": "" if form.decides else accounts.described(account),
            "also": roles.own_permissions(account),
            "form": form,
            "password": password_form(account) if form.decides else None,
            "passwords": settings.SONAR_PASSWORDS,
            "tokens": Token.objects.filter(user=account),
            "last_change": LastChange.of(account, reader),
            "acts_url": f"{address('history')}?{urlencode({'who': name})}",
        }


def account_of(name: str) -> User:
    account = User.objects.filter(username=name.replace("\0", "")).first()
    if account is None:
        raise Http404(f"No account is named “{name}”.")
    return account


class PasswordForm(PasswordOnly, SetPasswordForm):  # type: ignore[type-arg]
    """Another password for an account."""


def password_form(account: User, data: QueryDict | None = None) -> PasswordForm:
    form = PasswordForm(account, data, auto_id="password-%s")
    for field in form.fields.values():
        field.widget.attrs["class"], field.help_text = SMALL, ""
    return form


def again(request: HttpRequest, page: Page, **changed: Any) -> HttpResponse:  # noqa: ANN401
    return rendered(request, page, timezone.now(), None, status=400, **changed)


@sensitive_post_parameters()
@for_whom(GET=administrators, POST=administrators)
def people(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, PeoplePage, {})
    form = NewAccountForm(request.POST)
    if not form.is_valid():
        return again(request, PeoplePage(), form=form)
    user = form.keep()
    messages.success(request, f"{user} is {roles.described(user)}.")
    return HttpResponseRedirect(PersonPage(user).path())


@for_whom(GET=administrators, POST=administrators)
def person(request: HttpRequest, name: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, PersonPage, {"name": name})
    with transaction.atomic():
        # One after the other, or two administrators could take each other's role.
        changed = Q(is_superuser=True) | Q(username=name.replace("\0", ""))
        list(User.objects.select_for_update().filter(changed).order_by("pk"))
        page = PersonPage(account_of(name))
        form = AccountForm(page.account, cast(User, request.user), request.POST)
        if not form.is_valid():
            return again(request, page, form=form)
        form.keep()
    messages.success(request, f"{name} is {roles.described(page.account)}.")
    return HttpResponseRedirect(page.path())


@sensitive_post_parameters()
@for_whom(POST=administrators)
def set_password(request: HttpRequest, name: str) -> HttpResponse:
    """Give a local account another password, which ends its sessions."""
    page = PersonPage(account_of(name))
    if accounts.is_elsewhere(page.account):
        messages.error(
            request, f"{name} logs in through an identity provider and has no password in Sonar."
        )
        return HttpResponseRedirect(page.path())
    form = password_form(page.account, request.POST)
    if not form.is_valid():
        return again(request, page, password=form)
    form.save()
    if page.account == request.user:
        update_session_auth_hash(request, page.account)
    messages.success(
        request,
        f"The password of {name} was changed. All other sessions of the account were ended.",
    )
    return HttpResponseRedirect(page.path())
