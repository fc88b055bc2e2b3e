"""What the lists and forms of several tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import ManyToManyField, Model
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from sonar.models import Version
from sonar.registry.shown_forms import ShownForm


class Choices(forms.CheckboxSelectMultiple):
    """Rows to tick, in as many columns as there is room for: it works without a script."""

    def __init__(self) -> None:
        super().__init__({"class": "many"})


class RowForm(ShownForm, forms.ModelForm):  # type: ignore[type-arg]
    """The form of a row that others may change while it is open."""

    row_attribute = "instance"


# A section that is opened by who needs it.
CLOSED = ("collapse",)


class Rows(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows whose list is called as they are."""

    form: type[forms.ModelForm[Any]] = RowForm
    formfield_overrides = {ManyToManyField: {"widget": Choices}}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as Django has it
        """Show a form, or keep one after those that are changing the registry now."""
        with transaction.atomic():
            if request.method == "POST":
                Version.lock_registry()
            return super().changeform_view(request, object_id, form_url, extra_context)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return a row; one whose form was sent is locked until the transaction ends."""
        row = super().get_object(request, object_id, from_field)
        if row is None or request.method != "POST" or not connection.in_atomic_block:
            return row
        locked = self.get_queryset(request).select_for_update(of=("self",))
        return locked.filter(pk=row.pk).first()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, title | (extra_context or {}))


class NeverDeleted(Rows):
    """Rows that history refers to."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class Pausable(Rows):
    """Rows whose tests may be paused: keeps who did that."""

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,  # noqa: ANN401 - whatever has a pause
        form: forms.ModelForm[Any],
        change: bool,
    ) -> None:
        if "paused_since" in form.changed_data:
            obj.paused_by = cast(User, request.user) if obj.paused_since else None
        super().save_model(request, obj, form, change)


PAUSE: Any = (
    "Pause",
    {"fields": ["paused_since", "paused_until", "pause_reason"], "classes": CLOSED},
)


class OnlyLookedAt(NeverDeleted):
    """Rows that Sonar writes itself: what is asked for first, then all that is kept."""

    first: Sequence[str] = ()
    # Columns that are among the first with their unit.
    shown_with_unit: Sequence[str] = ()

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        others = [
            column.name
            for column in self.opts.fields
            if column.name not in (*self.first, *self.shown_with_unit)
        ]
        return [
            (None, {"fields": list(self.first)}),
            ("Other fields", {"fields": others, "classes": CLOSED}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*self.first, *(column.name for column in self.opts.fields)]
