"""Notes of people on sites and links, and declared downtimes: read for a window, by who may."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Q, QuerySet
from django.utils import timezone

from matrix.query.time_words import read_time
from sonar.models import Annotation, Downtime, Endpoint, Site
from sonar.notation.windows import EARLIEST, LATEST, Window
from sonar.people import roles
from sonar.people.roles import Anyone

# Downtimes that begin within this time are said.
SOON = timedelta(days=7)
# The newest; more would push what is measured off the page.
MOST_NOTES = 20
WRITE = "sonar.add_annotation"
NO_TIME = "Not a valid time. Use the format 2026-11-20 04:00 (UTC), or words such as “{}”."
RANGE_SENTENCE = "The time must be in the years 1970 to 2999."
IN_RANGE = [MinValueValidator(EARLIEST, RANGE_SENTENCE), MaxValueValidator(LATEST, RANGE_SENTENCE)]


def downtimes_of(site: Site, window: Window, now: datetime) -> list[Downtime]:
    """Return those of a site or its endpoints in the window, now or soon."""
    concerned = Q(site=site) | Q(endpoint__site=site)
    within = Q(starts_at__lt=window.end, ends_at__gt=window.start)
    ahead = Q(starts_at__lt=now + SOON, ends_at__gt=now)
    declared = Downtime.objects.filter(concerned, within | ahead)
    return list(declared.select_related("site", "endpoint").order_by("starts_at", "id"))


def is_soon(downtime: Downtime, now: datetime) -> bool:
    return now < downtime.ends_at and downtime.starts_at < now + SOON


def visible_to(reader: Anyone) -> Q:
    """Return which notes somebody may see: public ones, and those of the sites of a site admin."""
    if reader.has_perm("sonar.view_annotation"):
        return Q()
    public, own = Q(public=True), roles.sites_of(reader)
    if not own:
        return public
    return public | Q(site__in=own) | Q(source__site__in=own) | Q(destination__site__in=own)


def on_site(site: Site, window: Window, reader: Anyone) -> list[Annotation]:
    """Return the notes on a site that a reader may see and that hold in a window. One SQL query."""
    return _during(Q(site=site), window, reader)


def on_link(source: str, destination: str, window: Window, reader: Anyone) -> list[Annotation]:
    """Return the notes on a link, given by the names of its ends, and on the sites of both."""
    link = Q(source__name=source, destination__name=destination)
    return _during(link | Q(site__in=sites_of(source, destination)), window, reader)


def sites_of(source: str, destination: str) -> QuerySet[Endpoint, int]:
    """Return the ids of the sites of both ends, as a query that runs only if it is needed."""
    ends = Endpoint.objects.filter(name__in=[source, destination])
    return ends.order_by().values_list("site", flat=True)


def _during(subject: Q, window: Window, reader: Anyone) -> list[Annotation]:
    begun = Annotation.objects.filter(subject, visible_to(reader), starts_at__lt=window.end)
    holding = begun.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=window.start))
    newest_first = holding.order_by("-starts_at", "-id")
    return list(newest_first.select_related("site", "source", "destination", "author")[:MOST_NOTES])


class TimeField(forms.DateTimeField):
    """A time as people type it, in UTC."""

    def to_python(self, value: Any) -> datetime | None:  # noqa: ANN401 - as Django has it
        try:
            return super().to_python(value)
        except ValidationError:
            try:
                return read_time(value, timezone.now())
            except ValueError:
                raise ValidationError(self.error_messages["invalid"], "invalid") from None


class NoteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new note. Its subject is given by names; times are UTC, and it begins now if not said."""

    site = forms.ModelChoiceField(Site.objects.all(), to_field_name="name", required=False)
    source = forms.ModelChoiceField(Endpoint.objects.all(), to_field_name="name", required=False)
    destination = forms.ModelChoiceField(
        Endpoint.objects.all(), to_field_name="name", required=False
    )
    starts_at, ends_at = (
        TimeField(
            required=False,
            validators=IN_RANGE,
            error_messages={"invalid": NO_TIME.format("yesterday 20:15")},
        )
        for _ in range(2)
    )

    class Meta:
        model = Annotation
        fields = ["site", "source", "destination", "text", "starts_at", "ends_at", "public"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned["starts_at"] = cleaned.get("starts_at") or timezone.now()
        return cleaned

    def sites(self) -> list[int]:
        """Return the ids of the sites that a note without errors concerns."""
        ends = (self.cleaned_data["source"], self.cleaned_data["destination"])
        return [self.cleaned_data["site"].id] if not all(ends) else [end.site_id for end in ends]

    def sentences(self) -> dict[str, list[str]]:
        names = {"__all__": "note", "starts_at": "from", "ends_at": "to"}
        return {
            names.get(field, field): [f"{names.get(field, field)}: {text}" for text in texts]
            for field, texts in self.errors.items()
        }
