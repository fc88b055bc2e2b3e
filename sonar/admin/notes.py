"""What people know and no test tells: downtimes and notes."""

from __future__ import annotations

from typing import cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from sonar.admin.rows import Rows
from sonar.models import Annotation, Downtime


@admin.register(Downtime)
class DowntimeAdmin(Rows):
    list_display = ["__str__", "starts_at", "ends_at"]
    list_select_related = ["site", "endpoint"]
    autocomplete_fields = ["site", "endpoint"]
    fieldsets = [
        (
            None,
            {
                "fields": ["site", "endpoint", "reason"],
                "description": "Choose a site, or a single endpoint.",
            },
        ),
        ("When (UTC)", {"fields": ["starts_at", "ends_at"]}),
    ]


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
        ("When (UTC), and for whom", {"fields": ["starts_at", "ends_at", "public"]}),
    ]

    def save_model(
        self, request: HttpRequest, obj: Annotation, form: forms.ModelForm[Annotation], change: bool
    ) -> None:
        if not change:
            obj.author = cast(User, request.user)
        super().save_model(request, obj, form, change)
