"""Notes of people on sites and links: read for a window, and written by a form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from sonar.models import Annotation, Endpoint, Site
from sonar.windows import Window

# The newest; more would push what is measured off the page.
MOST = 20


def on_site(site: str, window: Window) -> list[Annotation]:
    """Return the notes on a site that hold at some time of the window. One SQL query."""
    return _during(Q(site__name=site), window)


def on_link(source: str, destination: str, window: Window) -> list[Annotation]:
    """Return the notes on a link, given by the names of its ends, and on the sites of both."""
    sites = Site.objects.filter(endpoints__name__in=[source, destination])
    link = Q(source__name=source, destination__name=destination)
    return _during(link | Q(site__in=sites), window)


def _during(subject: Q, window: Window) -> list[Annotation]:
    begun = Annotation.objects.filter(subject, starts_at__lt=window.end)
    holding = begun.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=window.start))
    return list(holding.select_related("site", "source", "destination", "author")[:MOST])


class NoteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new note. Its subject is given by names; times are UTC, and it begins now if not said."""

    site = forms.ModelChoiceField(Site.objects.all(), to_field_name="name", required=False)
    source = forms.ModelChoiceField(Endpoint.objects.all(), to_field_name="name", required=False)
    destination = forms.ModelChoiceField(
        Endpoint.objects.all(), to_field_name="name", required=False
    )
    starts_at = forms.DateTimeField(required=False)

    class Meta:
        model = Annotation
        fields = ["site", "source", "destination", "text", "starts_at", "ends_at"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned["starts_at"] = cleaned.get("starts_at") or timezone.now()
        return cleaned

    def sentences(self) -> dict[str, list[str]]:
        """Return what is wrong, by field."""
        names = {"__all__": "note", "starts_at": "from", "ends_at": "to"}
        return {
            names.get(field, field): [f"{names.get(field, field)}: {one}" for one in some]
            for field, some in self.errors.items()
        }

    def written_by(self, author: User) -> Annotation:
        note: Annotation = self.save(commit=False)
        note.author = author
        note.save()
        return note
