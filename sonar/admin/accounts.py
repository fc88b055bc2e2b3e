"""Accounts: the form of an account says what it may do, and for which sites."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import User
from django.http import HttpRequest

from sonar.admin.rows import CLOSED, Choices, Rows
from sonar.models import Site
from sonar.people import accounts, roles
from sonar.people.roles import Role

admin.site.unregister(User)
# Nothing of these is used but who a person is elsewhere, which the page of its account says.
for unused in (EmailAddress, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(unused)

# A site admin is a reader with sites: whoever ticks sites need not choose a role as well.
ROLES = [
    (Role.READER, "Reader: may read. With sites chosen below it is a site admin."),
    (
        Role.OPERATOR,
        "Operator: may order tests, write notes and downtimes, and edit the registry, everywhere.",
    ),
    (Role.ADMINISTRATOR, "Administrator: may do everything, including accounts."),
]
EVERYWHERE = "An operator or administrator acts for all sites: choose no sites, or the role reader."
LAST = "This is the last active administrator. Make another account an administrator first."


class RoleForm(forms.Form):
    """The role of an account, and the sites that it is an admin of."""

    role = forms.ChoiceField(choices=ROLES, initial=Role.READER, widget=forms.RadioSelect)
    sites = forms.ModelMultipleChoiceField(
        Site.objects.all(),
        required=False,
        label="Admin of these sites",
        help_text="A site admin may order and pause tests, and write downtimes and notes, for its "
        "sites.",
        widget=Choices,
    )
    instance: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["role"] = chosen_role(self.instance)
            self.initial["sites"] = self.instance.administered_sites.all()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        role = cleaned.get("role")
        if role != Role.READER and cleaned.get("sites"):
            self.add_error("sites", EVERYWHERE)
        stays = role == Role.ADMINISTRATOR and cleaned.get("is_active", True)
        if role and not stays and is_last_administrator(self.instance):
            self.add_error("role", LAST)
        return cleaned

    def give(self) -> None:
        """Make the account, which is kept already, have the chosen role and no other."""
        sites = self.cleaned_data["sites"]
        roles.give(
            self.instance, Role.SITE_ADMIN if sites else Role(self.cleaned_data["role"]), sites
        )


def chosen_role(user: User) -> Role:
    """Return the role of ROLES that an account has, be it active or not."""
    if user.is_superuser:
        return Role.ADMINISTRATOR
    return Role.OPERATOR if user.groups.filter(name=roles.GROUP).exists() else Role.READER


def is_last_administrator(user: User) -> bool:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    # As it is kept: a form has changed the account by now.
    was = User.objects.filter(pk=user.pk, is_superuser=True, is_active=True).exists()
    return was and not others.exists()


class AccountForm(RoleForm, UserChangeForm):  # type: ignore[type-arg]
    pass


class NewAccountForm(RoleForm, AdminUserCreationForm):  # type: ignore[type-arg]
    pass


@admin.register(User)
class AccountAdmin(UserAdmin, Rows):  # type: ignore[type-arg]
    """Accounts, each with its role; only administrators have the permissions for them."""

    form = AccountForm
    add_form = NewAccountForm
    list_display = ["username", "described", "email", "is_active", "last_login"]
    list_filter = ["is_active"]
    readonly_fields = ["elsewhere", "last_login", "date_joined"]
    filter_horizontal = ()
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("What it may do", {"fields": ["role", "sites", "is_active"]}),
        ("Person", {"fields": ["first_name", "last_name", "email", "elsewhere"]}),
        (
            "Permissions in addition to its role",
            {"fields": ["user_permissions"], "classes": CLOSED},
        ),
        ("Dates", {"fields": ["last_login", "date_joined"], "classes": CLOSED}),
    ]
    add_fieldsets = [*UserAdmin.add_fieldsets, ("What it may do", {"fields": ["role", "sites"]})]

    @admin.display(description="role")
    def described(self, user: User) -> str:
        return roles.described(user)

    @admin.display(description="logs in elsewhere")
    def elsewhere(self, user: User) -> str:
        """Say who vouches for a person, and for which groups; a log-in gives the role anew."""
        return accounts.described(user)

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[User], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if isinstance(form, RoleForm):  # not if only a new password was chosen
            form.give()
