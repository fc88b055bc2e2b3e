"""The role and the password of an account in forms, on pages and in the admin."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from sonar.models import Site
from sonar.people import roles
from sonar.people.roles import Role

ROLES = [
    (Role.READER, "Reader: read access."),
    (
        Role.SITE_ADMIN,
        "Site admin: can run, cancel and pause tests, write notes and declare downtimes for the "
        "selected sites.",
    ),
    (
        Role.OPERATOR,
        "Operator: can run tests, write notes, declare downtimes and edit the registry for all "
        "sites.",
    ),
    (Role.ADMINISTRATOR, "Administrator: full access, including accounts."),
]
WITHOUT_SITES = (
    "Sites can be selected only for site admins. Clear the selection of sites, or select the role "
    "Site admin."
)
NO_SITES = "Select at least one site for a site admin."


class RoleForm(forms.Form):
    """The role of an account, and the sites that it is an admin of."""

    role = forms.ChoiceField(choices=ROLES, initial=Role.READER, widget=forms.RadioSelect)
    sites = forms.ModelMultipleChoiceField(
        Site.objects.all(),
        required=False,
        label="Sites of a site admin",
    )
    instance: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            role, groups = Role.READER, self.instance.groups
            # Be the account active or not.
            if self.instance.is_superuser:
                role = Role.ADMINISTRATOR
            elif groups.filter(name=roles.GROUP).exists():
                role = Role.OPERATOR
            elif self.instance.administered_sites.exists():
                role = Role.SITE_ADMIN
            self.initial["role"] = role
            self.initial["sites"] = self.instance.administered_sites.all()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        role = cleaned.get("role")
        if role == Role.SITE_ADMIN and "sites" in cleaned and not cleaned["sites"]:
            self.add_error("sites", NO_SITES)
        elif role != Role.SITE_ADMIN and cleaned.get("sites"):
            self.add_error("sites", WITHOUT_SITES)
        stays = role == Role.ADMINISTRATOR and cleaned.get("is_active", True)
        if role and not stays and roles.is_last_administrator(self.instance):
            self.add_error("role", roles.LAST)
        return cleaned

    def give(self) -> None:
        """Make the account, which is kept already, have the chosen role and no other."""
        roles.give(self.instance, Role(self.cleaned_data["role"]), self.cleaned_data["sites"])


class PasswordOnly:
    """A form of Django's for a password, which writes no other column of the account.

    Django writes all that it read before: an account that was closed meanwhile would open again.
    """

    def set_password_and_save(self, user: User, *args: Any, **kwargs: Any) -> User:  # noqa: ANN401 - Django's own
        commit = kwargs.pop("commit", True)
        super().set_password_and_save(user, *args, commit=False, **kwargs)  # type: ignore[misc]
        if commit:
            user.save(update_fields=["password"])
        return user
