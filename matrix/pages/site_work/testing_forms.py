"""Forms of a site's page that say when its links are tested: quiet hours, and the pause."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict

from matrix.pages.site_work.forms import SMALL, UtcField, check, line
from sonar.models import Site

CLOCK = "%H:%M"
NO_CLOCK = "Write a time of day in UTC, from 00:00 to 23:59, like 22:30."
ONE_END = "Quiet hours need both times; leave both empty for none."
NO_REASON = "Say why, like “new firewall”."
IN_THE_PAST = "A pause ends in the future; leave it empty for a pause without an end."


class ClockField(forms.TimeField):
    """A time of the day as text, in UTC and 24 hours whatever the language of the browser is."""

    def __init__(self, label: str) -> None:
        attrs = {"class": SMALL, "size": 6, "placeholder": "22:30"}
        super().__init__(
            label=label,
            required=False,
            input_formats=[CLOCK],
            error_messages={"invalid": NO_CLOCK},
            widget=forms.TimeInput(attrs, CLOCK),
        )


class QuietHoursForm(forms.Form):
    """The hours of each day in which no scheduled test of a site's links starts."""

    quiet_from = ClockField("from (UTC)")
    quiet_until = ClockField("to (UTC)")

    def __init__(self, site: Site, data: QueryDict | None = None) -> None:
        initial = {"quiet_from": site.quiet_from, "quiet_until": site.quiet_until}
        super().__init__(data, auto_id="quiet-%s", initial=initial)
        self.site = site

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        for name, other in (("quiet_from", "quiet_until"), ("quiet_until", "quiet_from")):
            if cleaned[name] is None and cleaned[other] is not None:
                self.add_error(name, ONE_END)
                return cleaned
        self.site.quiet_from, self.site.quiet_until = cleaned["quiet_from"], cleaned["quiet_until"]
        check(self, self.site, "quiet_until")
        return cleaned


class PauseForm(forms.Form):
    """A pause of all tests of a site, to begin now; or the one that lasts, to be changed."""

    pause_reason = line("reason, shown to everyone", 200, 40, NO_REASON)
    paused_until = UtcField("to (UTC, empty: until resumed)", required=False)

    def __init__(self, site: Site, now: datetime, data: QueryDict | None = None) -> None:
        self.lasts = site.is_paused(now)
        initial = {name: getattr(site, name) for name in self.base_fields if self.lasts}
        super().__init__(data, auto_id="pause-%s", initial=initial)
        self.site, self.now = site, now

    def clean_paused_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["paused_until"]
        if until is not None and until <= self.now:
            raise forms.ValidationError(IN_THE_PAST)
        return until
