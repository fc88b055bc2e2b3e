"""The registry: sites, endpoints, meshes, size classes and credentials."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet, prefetch_related_objects
from django.http import HttpRequest
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.text import capfirst, format_lazy

from sonar.admin.rows import CLOSED, PAUSE, NeverDeleted, Pausable, RowForm, Rows
from sonar.models import (
    Alias,
    Annotation,
    Credential,
    Downtime,
    Endpoint,
    Mesh,
    MeshInterval,
    Site,
    SizeClass,
)
from sonar.models.aliases import BY_HAND
from sonar.models.member_filters import ENDS, filter_column
from sonar.models.mesh import LIMITS
from sonar.notation.units import exact_bytes, exact_duration
from sonar.obstacles import catalogue as obstacles
from sonar.people import roles
from sonar.registry import compatibility, mesh_size, secrets
from sonar.registry.aliases import forget
from sonar.registry.compatibility import (
    credential_problems,
    endpoint_problem,
    is_moved,
    mesh_problem,
)
from sonar.registry.cost import estimate, words
from sonar.registry.written_fields import BytesField, EndpointFilterField, ScitagField, SecondsField
from sonar.results import reclass


@admin.register(Site)
class SiteAdmin(Pausable):
    list_display = ["name", "cloud", "tier", "country", "wan_gbit_s"]
    list_filter = ["cloud", "tier"]
    search_fields = ["name"]
    fieldsets = [
        (None, {"fields": ["name", "cloud", "tier", "country", "wan_gbit_s"]}),
        ("Site admins", {"fields": ["admins"]}),
        ("Location and tags", {"fields": ["latitude", "longitude", "tags"], "classes": CLOSED}),
        ("Quiet hours (UTC)", {"fields": ["quiet_from", "quiet_until"], "classes": CLOSED}),
        PAUSE,
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Site | None = None) -> list[str]:
        """Leave it to administrators who is an admin of a site: that is a role."""
        administrator = roles.role_of(request.user) is roles.Role.ADMINISTRATOR
        return [] if administrator else ["admins"]


class Noticing(Rows):
    """Rows that meshes use, or results: says what does not fit any more once one was saved."""

    # Columns after a change of which tests may have to wait; empty for all that is saved.
    holds_tests_back: frozenset[str] = frozenset()

    def notice(self, changed: set[str]) -> str:
        """Return what to say after these columns were changed; of tests that cannot run now."""
        if self.holds_tests_back and self.holds_tests_back.isdisjoint(changed):
            return ""
        return obstacles.notice(timezone.now())

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Any], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if notice := self.notice({*form.changed_data}):
            self.message_user(request, notice, messages.WARNING)


class EndpointForm(RowForm):
    """One endpoint, checked together with the meshes that name it."""

    budget_bytes_per_day = BytesField(
        required=False,
        label="Budget per day",
        help_text="Volume of test files that the endpoint may send and receive per UTC day, for "
        "example 500 GB. Empty: no limit.",
    )

    class Meta:
        labels = {
            "inbound_cap": "Concurrent tests to the endpoint",
            "outbound_cap": "Concurrent tests from the endpoint",
        }
        help_texts = {
            "inbound_cap": "Further tests to the endpoint wait until running tests end.",
            "outbound_cap": "Further tests from the endpoint wait until running tests end.",
            "retired_at": "UTC. The endpoint is tested until this time. Its results are kept.",
        }

    def _post_clean(self) -> None:
        """Judge the endpoint as it would be kept, which the form makes of its fields only here."""
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if self.errors or not is_moved(self.instance):
            return
        if sentence := endpoint_problem(self.instance):
            self.add_error("base_url", sentence)


# Columns that change what its tests cost; and of how many endpoints that is said at once.
CHANGING_COST = {
    *("enabled", "base_url", "site", "label", "tags", "inbound_cap", "outbound_cap"),
    *("budget_bytes_per_day", "retired_at"),
}
MOST_COSTS = 5


def cost_of(endpoint: Endpoint) -> str:
    """Say what its tests cost, or would cost if it were enabled."""
    said = words.in_its_meshes(estimate.in_its_meshes(endpoint, timezone.now()))
    if endpoint.enabled:
        return f"{endpoint.name} is enabled: {said}."
    return f"{endpoint.name} is not enabled. Enabling it starts {said}."


@admin.register(Endpoint)
class EndpointAdmin(Noticing, NeverDeleted, Pausable):
    form = EndpointForm
    fieldsets = [
        (None, {"fields": ["name", "site", "label", "base_url", "software", "enabled"]}),
        ("Limits", {"fields": ["inbound_cap", "outbound_cap", "budget_bytes_per_day"]}),
        (
            "Credentials",
            {"fields": ["credential", "credential_lent", "lend_credential"], "classes": CLOSED},
        ),
        (
            "Data servers and vantage point",
            {"fields": ["data_hosts", "vantage"], "classes": CLOSED},
        ),
        PAUSE,
        ("Tags and retirement", {"fields": ["tags", "simulated", "retired_at"], "classes": CLOSED}),
    ]
    list_display = ["name", "site", "base_url", "inbound_cap", "outbound_cap", "enabled"]
    list_display += ["retired_at"]
    list_filter = ["enabled", "site__cloud", "label", "simulated"]
    list_select_related = ["site"]
    search_fields = ["name", "site__name"]
    autocomplete_fields = ["site"]
    actions = ["enable", "disable", "retire"]
    holds_tests_back = frozenset(
        {"base_url", "credential", "lend_credential", "retired_at", "vantage"}
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Let a new one start disabled: what is saved is not tested before somebody wants it."""
        return {"enabled": False} | super().get_changeform_initial_data(request)

    @admin.action(
        description="Enable selected endpoints (start their tests)", permissions=["change"]
    )
    def enable(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        self._set_enabled(request, endpoints, enabled=True)

    @admin.action(
        description="Disable selected endpoints (start no new tests)", permissions=["change"]
    )
    def disable(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        self._set_enabled(request, endpoints, enabled=False)

    def _set_enabled(
        self, request: HttpRequest, endpoints: QuerySet[Endpoint], *, enabled: bool
    ) -> None:
        changed = list(endpoints.filter(enabled=not enabled).select_related("site"))
        endpoints.filter(enabled=not enabled).update(enabled=enabled)
        verb = "enabled" if enabled else "disabled"
        for endpoint in changed:
            endpoint.enabled = enabled
            self.log_change(request, endpoint, f"{capfirst(verb)}.")
        count = len(changed)
        self.message_user(request, f"{count} endpoint{'' if count == 1 else 's'} {verb}.")
        for endpoint in changed[:MOST_COSTS] if enabled else ():
            self.message_user(request, cost_of(endpoint))

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Any], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if CHANGING_COST & {*form.changed_data} and form.instance.retired_at is None:
            self.message_user(request, cost_of(form.instance))

    @admin.action(
        description="Retire selected endpoints (stop tests, keep results)", permissions=["change"]
    )
    def retire(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        count = endpoints.filter(retired_at=None).update(retired_at=timezone.now())
        self.message_user(request, f"{count} endpoint{'' if count == 1 else 's'} retired.")


class CredentialForm(RowForm):
    """One credential, checked together with the endpoints and meshes that use it."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if not self.errors and (problems := credential_problems(self.instance)):
            self.add_error(None, ValidationError(problems))


@admin.register(Credential)
class CredentialAdmin(Noticing):
    """Where tokens may go: only administrators have the permission to say so."""

    form = CredentialForm
    fieldsets = [
        (None, {"fields": ["name", "kind", "secret", "hosts", "to_data_hosts"]}),
        (
            "Only for credentials of the kind “client_credentials”",
            {
                "fields": ["issuer", "client_id", "audience", "path_prefix", "scope"],
                "classes": CLOSED,
            },
        ),
    ]
    list_display = ["name", "kind", "secret", "hosts", "used_by"]
    list_select_related = ["uploaded_secret__uploaded_by"]
    readonly_fields = ["secret"]
    list_filter = ["kind"]
    search_fields = ["name"]
    holds_tests_back = frozenset({"kind"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Credential]:
        rows = super().get_queryset(request)
        return rows.prefetch_related("endpoints", "lending_endpoints", "meshes")

    @admin.display(description="location of the secret")
    def secret(self, credential: Credential) -> str:
        return secrets.words(credential)

    @admin.display(description="used by")
    def used_by(self, credential: Credential) -> str:
        ends = {*credential.endpoints.all(), *credential.lending_endpoints.all()}
        meshes = [f"mesh {mesh.name}" for mesh in credential.meshes.all()]
        return ", ".join([*sorted(end.name for end in ends), *meshes])


class SizeClassForm(RowForm):
    """One size class, checked together with the others: their ranges must tile."""

    from_bytes = BytesField(
        label="From",
        help_text="Size of the smallest file in this size class, for example 10 MB.",
    )
    test_bytes = BytesField(
        label="Test file", help_text="Size of the test file, for example 100 MB."
    )
    timeout_seconds = SecondsField(
        label="Time limit of a test",
        initial=3600,
        help_text="A test that takes longer fails. Write a duration such as 90s, 10m or 1h.",
    )

    class Meta:
        model = SizeClass
        fields = ["name", "from_bytes", "test_bytes", "timeout_seconds"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            others = SizeClass.objects.exclude(pk=self.instance.pk)
            for sentence in compatibility.size_class_problems([*others, SizeClass(**cleaned)]):
                self.add_error(None, f"{capfirst(sentence)}.")
        return cleaned


@admin.register(SizeClass)
class SizeClassAdmin(Noticing, NeverDeleted):
    form = SizeClassForm
    list_display = ["name", "begins", "test_file", "longest"]

    @admin.display(description="from", ordering="from_bytes")
    def begins(self, size: SizeClass) -> str:
        return exact_bytes(size.from_bytes)

    @admin.display(description="test file", ordering="test_bytes")
    def test_file(self, size: SizeClass) -> str:
        return exact_bytes(size.test_bytes)

    @admin.display(description="time limit of a test", ordering="timeout_seconds")
    def longest(self, size: SizeClass) -> str:
        return exact_duration(size.timeout_seconds)

    def notice(self, changed: set[str]) -> str:
        return reclass.notice(reclass.outside()) if "from_bytes" in changed else ""


class IntervalForm(forms.ModelForm):  # type: ignore[type-arg]
    every_seconds = SecondsField(
        label="Interval between tests of a link",
        help_text="A duration such as 30m, 6h or 1d. A number without a unit is in seconds.",
        # One that its sender did not touch is not saved, whatever it has become meanwhile.
        show_hidden_initial=True,
    )


class MeshIntervalInline(admin.TabularInline):  # type: ignore[type-arg]
    model = MeshInterval
    form = IntervalForm
    extra = 0
    verbose_name = "interval"
    verbose_name_plural = "Intervals between tests"


def filter_field(end: str) -> EndpointFilterField:
    wide = forms.TextInput({"class": "vLargeTextField"})
    column: Any = Mesh._meta.get_field(filter_column(end))
    return EndpointFilterField(
        required=False, widget=wide, label=capfirst(column.verbose_name), help_text=column.help_text
    )


class MeshForm(RowForm):
    """One mesh, checked together with its endpoints: its mover must move their files."""

    scitag = ScitagField(required=False, help_text=Mesh._meta.get_field("scitag").help_text)
    tcp_buffer_bytes = BytesField(
        required=False,
        label="TCP buffer",
        help_text="A size such as 8 MB, for transfer tools that set TCP buffers. Empty: the "
        "servers choose the buffer size.",
    )

    sources_filter = filter_field(ENDS[0])
    destinations_filter = filter_field(ENDS[1])

    class Meta:
        help_texts = dict.fromkeys(
            ENDS,
            "If no endpoints are chosen and no filter is set, the mesh includes all endpoints that "
            "the transfer tool supports.",
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for end in ENDS:
            if cleaned.get(end) and cleaned.get(filter_column(end)):
                sentence = "Write a filter or choose endpoints, not both."
                self.add_error(filter_column(end), sentence)
        judged = {"mover", "mode", *ENDS} & set(self.changed_data)
        if judged and not self.errors:
            ends = [cleaned[end] for end in ENDS]
            if sentence := mesh_problem(cleaned["name"], cleaned["mover"], cleaned["mode"], ends):
                self.add_error("mover", sentence)
        return cleaned


ON_PAGES = format_lazy(
    'The <a href="{}">pages of meshes</a> show the cost of a mesh before it is saved.',
    reverse_lazy("meshes"),
)


class MeshList(ChangeList):
    """The list of meshes, which says of each what it tests now."""

    def get_results(self, request: HttpRequest) -> None:
        """Read what all rows need at once: five SQL queries more."""
        super().get_results(request)
        prefetch_related_objects(meshes := list(self.result_list), *mesh_size.READ_FIRST)
        for each in mesh_size.read(meshes):
            each.mesh.in_words = each.in_words  # type: ignore[attr-defined]  # for `now`
        self.result_list = meshes


@admin.register(Mesh)
class MeshAdmin(Noticing, NeverDeleted):
    form = MeshForm
    fieldsets = [
        (None, {"fields": ["name", "enabled"], "description": ON_PAGES}),
        ("Sources and destinations", {"fields": ["now", *map(filter_column, ENDS), *ENDS]}),
        (
            "Transfer settings and limits",
            {"fields": ["mover", "mode", "streams", "priority", "vantage", *LIMITS]},
        ),
        (
            "Only for some transfer tools",
            {
                "fields": ["tcp_buffer_bytes", "scitag", "service", "service_credential"],
                "classes": CLOSED,
            },
        ),
        ("Quiet hours (UTC)", {"fields": ["quiet_from", "quiet_until"], "classes": CLOSED}),
    ]
    list_display = ["name", "enabled", "now", "mover", "mode", "streams", "priority"]
    readonly_fields = ["now"]
    inlines = [MeshIntervalInline]

    @admin.display(description="current tests")
    def now(self, mesh: Mesh) -> str:
        if mesh._state.adding:
            return "Shown after the mesh is saved."
        return getattr(mesh, "in_words", "") or mesh_size.words_now(mesh)

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[MeshList]:
        return MeshList

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Mesh], formsets: list[Any], change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        for line in mesh_size.lines([form.instance.name]):
            self.message_user(request, f"{capfirst(line)}.", messages.INFO)

    def formfield_for_dbfield(
        self,
        db_field: models.Field[Any, Any],
        request: HttpRequest,
        **kwargs: Any,  # noqa: ANN401 - as Django has it
    ) -> forms.Field | None:
        """Ask for limits as people write bytes."""
        if db_field.name in LIMITS:
            help_text = f"A size such as 10 TB. {db_field.help_text}"
            return BytesField(
                required=False, label=capfirst(db_field.verbose_name), help_text=help_text
            )
        return super().formfield_for_dbfield(db_field, request, **kwargs)


@admin.register(Downtime)
class DowntimeAdmin(Rows):
    list_display = ["__str__", "severity", "origin", "starts_at", "ends"]
    list_filter = ["origin", "severity"]
    list_select_related = ["site", "endpoint"]
    autocomplete_fields = ["site", "endpoint"]
    fieldsets = [
        (
            None,
            {
                "fields": ["site", "endpoint", "severity", "reason"],
                "description": "Choose a site, or a single endpoint.",
            },
        ),
        ("Start and end (UTC)", {"fields": ["starts_at", "ends_at"]}),
    ]

    @admin.display(description="ends", ordering="ends_at")
    def ends(self, row: Downtime) -> datetime | str:
        return row.until_words if row.is_open_ended else row.ends_at

    def has_change_permission(self, request: HttpRequest, obj: Downtime | None = None) -> bool:
        """Allow no change of what follows what is declared elsewhere."""
        return (obj is None or obj.is_by_hand) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Downtime | None = None) -> bool:
        return (obj is None or obj.is_by_hand) and super().has_delete_permission(request, obj)


@admin.register(Alias)
class AliasAdmin(Rows):
    list_display = ["name", "kind", "site", "endpoint", "origin"]
    list_filter = ["kind", "origin"]
    list_select_related = ["site", "endpoint"]
    search_fields = ["name", "site__name", "endpoint__name"]
    autocomplete_fields = ["site", "endpoint"]
    fieldsets = [
        (
            None,
            {
                "fields": ["kind", "name", "site", "endpoint"],
                "description": "Choose a site, or a single endpoint.",
            },
        )
    ]

    def save_model(
        self, request: HttpRequest, obj: Alias, form: forms.ModelForm[Alias], change: bool
    ) -> None:
        obj.origin = BY_HAND
        super().save_model(request, obj, form, change)
        forget([(obj.kind, obj.name)])


@admin.register(Annotation)
class NoteAdmin(Rows):
    list_display = ["subject", "text", "starts_at", "ends_at", "public", "author"]
    list_select_related = ["site", "source", "destination", "author"]
    autocomplete_fields = ["site", "source", "destination"]
    fieldsets = [
        (
            None,
            {
                "fields": ["text", "site", "source", "destination"],
                "description": "Choose a site, or the source and the destination of a link.",
            },
        ),
        ("Start, end (UTC) and visibility", {"fields": ["starts_at", "ends_at", "public"]}),
    ]

    def save_model(
        self, request: HttpRequest, obj: Annotation, form: forms.ModelForm[Annotation], change: bool
    ) -> None:
        if not change:
            obj.author = cast(User, request.user)
        super().save_model(request, obj, form, change)
