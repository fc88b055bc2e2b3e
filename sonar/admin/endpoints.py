"""Endpoints in the admin: they start disabled, and say what their tests cost."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import capfirst

from sonar.admin.registry import Noticing
from sonar.admin.rows import CLOSED, PAUSE, NeverDeleted, Pausable, RowForm
from sonar.models import Endpoint
from sonar.registry.compatibility import endpoint_problem, is_moved
from sonar.registry.cost import estimate, words
from sonar.registry.written_fields import BytesField


class EndpointForm(RowForm):
    """One endpoint, checked together with the meshes that name it."""

    budget_bytes_per_day = BytesField(
        required=False,
        label="Budget per day",
        help_text="Test files that it may send and receive per UTC day, like 500 GB; empty for no "
        "limit.",
    )

    class Meta:
        labels = {"inbound_cap": "Tests to it at once", "outbound_cap": "Tests from it at once"}
        help_texts = {
            "inbound_cap": "More tests than this wait their turn.",
            "outbound_cap": "More tests than this wait their turn.",
            "retired_at": "UTC. It is tested until then; its results are kept.",
        }

    def _post_clean(self) -> None:
        """Judge the endpoint as it would be kept, which the form makes of its fields only here."""
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if self.errors or not is_moved(self.instance):
            return
        if sentence := endpoint_problem(self.instance):
            self.add_error("base_url", sentence)


# Columns that change what its tests cost; and of how many endpoints that is said at once.
CHANGING_COST = {"enabled", "base_url", "site", "label", "tags", "inbound_cap", "outbound_cap"} | {
    "budget_bytes_per_day",
    "retired_at",
}
MOST_COSTS = 5


def cost_of(endpoint: Endpoint) -> str:
    """Say what its tests cost, or would cost if it were enabled."""
    said = words.in_its_meshes(estimate.in_its_meshes(endpoint, timezone.now()))
    if endpoint.enabled:
        return f"{endpoint.name} is enabled: {said}."
    return f"{endpoint.name} is not enabled. Enabling it starts: {said}."


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
        ("Redirects and vantage", {"fields": ["data_hosts", "vantage"], "classes": CLOSED}),
        PAUSE,
        ("Tags and end", {"fields": ["tags", "simulated", "retired_at"], "classes": CLOSED}),
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

    @admin.action(description="Enable: let its tests start", permissions=["change"])
    def enable(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        self._set_enabled(request, endpoints, enabled=True)

    @admin.action(description="Disable: start no more tests", permissions=["change"])
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

    @admin.action(description="Retire: stop testing, keep the history", permissions=["change"])
    def retire(self, request: HttpRequest, endpoints: QuerySet[Endpoint]) -> None:
        count = endpoints.filter(retired_at=None).update(retired_at=timezone.now())
        self.message_user(request, f"{count} endpoint{'' if count == 1 else 's'} retired.")
