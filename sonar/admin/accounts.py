"""Accounts: the form of an account says what it may do, and for which sites."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import User
from django.http import HttpRequest

from sonar.admin.rows import CLOSED, Choices, Rows
from sonar.people import accounts, roles
from sonar.people.role_form import PasswordOnly, RoleForm
from sonar.registry.shown_forms import ShownForm

admin.site.unregister(User)
# Nothing of these is used but who a person is elsewhere, which the page of its account says.
for unused in (EmailAddress, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(unused)


class AdminRoleForm(ShownForm, RoleForm):
    """The same, where all sites stand to be ticked."""

    row_attribute, columns = "instance", {"role": "groups"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        sites: Any = self.fields["sites"]
        sites.widget = Choices()
        sites.widget.choices = sites.choices


class AccountForm(AdminRoleForm, UserChangeForm):  # type: ignore[type-arg]
    pass


class PasswordForm(PasswordOnly, AdminPasswordChangeForm):  # type: ignore[type-arg]
    pass


class NewAccountForm(AdminRoleForm, AdminUserCreationForm):  # type: ignore[type-arg]
    pass


@admin.register(User)
class AccountAdmin(UserAdmin, Rows):  # type: ignore[type-arg]
    """Accounts, each with its role; only administrators have the permissions for them."""

    form = AccountForm
    add_form = NewAccountForm
    change_password_form = PasswordForm
    list_display = ["username", "described", "email", "is_active", "last_login"]
    list_filter = ["is_active"]
    readonly_fields = ["elsewhere", "last_login", "date_joined"]
    filter_horizontal = ()
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Role and sites", {"fields": ["role", "sites", "is_active"]}),
        ("Person", {"fields": ["first_name", "last_name", "email", "elsewhere"]}),
        (
            "Additional permissions",
            {"fields": ["user_permissions"], "classes": CLOSED},
        ),
        ("Dates", {"fields": ["last_login", "date_joined"], "classes": CLOSED}),
    ]
    add_fieldsets = [*UserAdmin.add_fieldsets, ("Role and sites", {"fields": ["role", "sites"]})]

    @admin.display(description="role")
    def described(self, user: User) -> str:
        return roles.described(user)

    @admin.display(description="log-in provider")
    def elsewhere(self, user: User) -> str:
        """Say who vouches for a person, and for which groups; a log-in gives the role anew."""
        return accounts.described(user)

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[User], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if isinstance(form, RoleForm):  # not if only a new password was chosen
            form.give()
