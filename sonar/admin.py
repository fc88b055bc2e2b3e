"""The Django admin: the registry is edited here, probes and results are only looked at."""

from __future__ import annotations

from typing import Any, cast

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import capfirst

from sonar import accounts, mesh_proxies, offers, reclassing, roles, scitags, sizes
from sonar.compatibility import ENDS, credential_problems, endpoint_problem, is_moved, mesh_problem
from sonar.models import (
    Annotation,
    Credential,
    Downtime,
    Endpoint,
    Leftover,
    Mesh,
    MeshInterval,
    Probe,
    Site,
    SizeClass,
    Transfer,
)
from sonar.units import format_bytes, format_rate

admin.site.site_header = "Sonar registry"
admin.site.site_title = "Sonar"


class NeverDeleted(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that history refers to."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class OnlyLookedAt(NeverDeleted):
    """Rows that Sonar writes itself."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


admin.site.unregister(User)
# Nothing of these is used but who a person is elsewhere, which the page of its account says.
for unused in (EmailAddress, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(unused)


@admin.register(User)
class AccountAdmin(UserAdmin):  # type: ignore[type-arg]
    """Accounts, each with its role; only administrators have the permissions for them."""

    list_display = ["username", "role", "email", "is_active", "last_login"]
    readonly_fields = ["role", "elsewhere"]
    fieldsets = [(None, {"fields": ["role", "elsewhere"]}), *(UserAdmin.fieldsets or ())]

    @admin.display(description="role")
    def role(self, user: User) -> str:
        return roles.described(user)

    @admin.display(description="logs in elsewhere")
    def elsewhere(self, user: User) -> str:
        """Say who vouches for a person, and for which groups; a log-in gives the role anew."""
        return accounts.described(user)


@admin.register(Site)
class SiteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "cloud", "tier", "country", "wan_gbit_s"]
    list_filter = ["cloud", "tier"]
    search_fields = ["name"]
    filter_horizontal = ["admins"]
    fieldsets = [
        (None, {"fields": ["name", "cloud", "tier", "country", "latitude", "longitude"]}),
        (None, {"fields": ["wan_gbit_s", "tags", "admins"]}),
        ("Quiet hours", {"fields": ["quiet_from", "quiet_until"]}),
        ("Pause", {"fields": ["paused_since", "paused_until", "pause_reason"]}),
    ]

    def save_model(
        self, request: HttpRequest, obj: Site, form: forms.ModelForm[Site], change: bool
    ) -> None:
        if "paused_since" in form.changed_data:
            obj.paused_by = cast(User, request.user) if obj.paused_since else None
        super().save_model(request, obj, form, change)

    def get_readonly_fields(self, request: HttpRequest, obj: Site | None = None) -> list[str]:
        """Leave it to administrators who is an admin of a site: that is a role."""
        administrator = roles.role_of(request.user) is roles.Role.ADMINISTRATOR
        return [] if administrator else ["admins"]


def warn_of_proxies(model_admin: admin.ModelAdmin[Any], request: HttpRequest) -> None:
    """Tell who has saved something which links have two X.509 proxies now."""
    if notice := mesh_proxies.notice():
        model_admin.message_user(request, notice, messages.WARNING)


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    """One credential, checked together with the endpoints and meshes that use it."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if not self.errors and (problems := credential_problems(self.instance)):
            self.add_error(None, ValidationError(problems))


@admin.register(Credential)
class CredentialAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Where tokens may go: only administrators have the permission to say so."""

    form = CredentialForm
    list_display = ["name", "kind", "hosts", "used_by"]
    list_filter = ["kind"]
    search_fields = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Credential]:
        return (
            super()
            .get_queryset(request)
            .prefetch_related("endpoints", "lending_endpoints", "meshes")
        )

    def save_model(
        self, request: HttpRequest, obj: Credential, form: forms.ModelForm[Credential], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if "kind" in form.changed_data:
            warn_of_proxies(self, request)

    @admin.display(description="used by")
    def used_by(self, credential: Credential) -> str:
        ends = {*credential.endpoints.all(), *credential.lending_endpoints.all()}
        meshes = [f"mesh {mesh.name}" for mesh in credential.meshes.all()]
        return ", ".join([*sorted(end.name for end in ends), *meshes])


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """One endpoint, checked together with the meshes that name it."""

    def _post_clean(self) -> None:
        """Judge the endpoint as it would be kept, which the form makes of its fields only here."""
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if self.errors or not is_moved(self.instance):
            return
        if sentence := endpoint_problem(self.instance):
            self.add_error("base_url", sentence)


@admin.register(Endpoint)
class EndpointAdmin(NeverDeleted):
    form = EndpointForm
    list_display = ["name", "site", "base_url", "inbound_cap", "outbound_cap", "retired_at"]
    list_filter = ["site__cloud", "label", "simulated"]
    list_select_related = ["site"]
    search_fields = ["name", "site__name"]
    autocomplete_fields = ["site"]
    actions = ["retire"]

    def save_model(
        self, request: HttpRequest, obj: Endpoint, form: forms.ModelForm[Endpoint], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if not {"base_url", "credential", "retired_at"}.isdisjoint(form.changed_data):
            warn_of_proxies(self, request)

    @admin.action(description="Retire: stop testing, keep the history")
    def retire(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        count = endpoints.filter(retired_at=None).update(retired_at=timezone.now())
        self.message_user(request, f"{count} endpoints retired.")


@admin.register(Downtime)
class DowntimeAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["__str__", "starts_at", "ends_at"]
    autocomplete_fields = ["site", "endpoint"]


@admin.register(Annotation)
class AnnotationAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["subject", "text", "starts_at", "ends_at", "public", "author"]
    list_select_related = ["site", "source", "destination", "author"]
    autocomplete_fields = ["site", "source", "destination"]

    def save_model(
        self, request: HttpRequest, obj: Annotation, form: forms.ModelForm[Annotation], change: bool
    ) -> None:
        if not change:
            obj.author = cast(User, request.user)
        super().save_model(request, obj, form, change)


class SizeClassForm(forms.ModelForm):  # type: ignore[type-arg]
    """One size class, checked together with the others: their ranges must tile."""

    class Meta:
        model = SizeClass
        fields = ["name", "from_bytes", "test_bytes", "timeout_seconds"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            others = SizeClass.objects.exclude(pk=self.instance.pk)
            for sentence in sizes.problems([*others, SizeClass(**cleaned)]):
                self.add_error(None, f"{capfirst(sentence)}.")
        return cleaned


@admin.register(SizeClass)
class SizeClassAdmin(NeverDeleted):
    form = SizeClassForm
    list_display = ["name", "from_bytes", "test_bytes", "timeout_seconds"]

    def save_model(
        self, request: HttpRequest, obj: SizeClass, form: forms.ModelForm[SizeClass], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        moved = "from_bytes" in form.changed_data
        if moved and (notice := reclassing.notice(reclassing.outside())):
            self.message_user(request, notice, messages.WARNING)


class MeshIntervalInline(admin.TabularInline):  # type: ignore[type-arg]
    model = MeshInterval
    extra = 0


class ScitagField(forms.Field):
    """A flow label as experiment/activity."""

    def prepare_value(self, value: object) -> object:
        return scitags.written(value) if isinstance(value, int) else value

    def to_python(self, value: object) -> int | None:
        text = str(value or "").strip()
        try:
            return scitags.parsed(text) if text else None
        except ValueError as error:
            raise ValidationError(f"{str(error).capitalize()}.") from error


class MeshForm(forms.ModelForm):  # type: ignore[type-arg]
    """One mesh, checked together with its endpoints: its mover must move their files."""

    scitag = ScitagField(required=False, help_text=Mesh._meta.get_field("scitag").help_text)

    class Meta:
        help_texts = dict.fromkeys(
            ENDS, "None chosen means every endpoint whose files the mover can move."
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        judged = {"mover", "mode", *ENDS} & set(self.changed_data)
        if judged and not self.errors:
            ends = [cleaned[end] for end in ENDS]
            if sentence := mesh_problem(cleaned["name"], cleaned["mover"], cleaned["mode"], ends):
                self.add_error("mover", sentence)
        return cleaned


@admin.register(Mesh)
class MeshAdmin(NeverDeleted):
    form = MeshForm
    list_display = ["name", "enabled", "mover", "mode", "streams", "priority"]
    filter_horizontal = ["sources", "destinations"]
    inlines = [MeshIntervalInline]

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Mesh], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if notice := offers.notice(timezone.now()):
            self.message_user(request, notice, messages.WARNING)
        warn_of_proxies(self, request)


@admin.register(Probe)
class ProbeAdmin(OnlyLookedAt):
    list_display = ["id", "source", "destination", "size_class", "state", "started_at", "worker"]
    list_filter = ["state", "size_class"]
    list_select_related = ["source", "destination", "size_class"]


@admin.register(Transfer)
class TransferAdmin(OnlyLookedAt):
    list_display = ["started_at", "source", "destination", "size", "rate", "state", "error_where"]
    list_filter = ["state", "error_where", "size_class"]
    list_select_related = ["source", "destination"]
    search_fields = ["source__name", "destination__name", "error"]
    ordering = ["-started_at"]
    show_full_result_count = False  # counting all results costs a full scan

    @admin.display(description="size")
    def size(self, transfer: Transfer) -> str:
        return format_bytes(transfer.bytes)

    @admin.display(description="rate")
    def rate(self, transfer: Transfer) -> str:
        done = transfer.state == Transfer.State.DONE
        return format_rate(transfer.bytes / transfer.seconds) if done else ""


@admin.register(Leftover)
class LeftoverAdmin(OnlyLookedAt):
    list_display = ["path", "endpoint", "since", "tries", "next_try", "error"]
    list_select_related = ["endpoint"]
