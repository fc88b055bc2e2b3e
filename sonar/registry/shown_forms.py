"""Forms about rows that other people may change while the form is open."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import forms
from django.contrib.auth.models import User
from django.db.models import Model
from django.utils import timezone
from django.utils.html import format_html

from sonar.models import HistoryEntry

SHOWN_AT = ""
CHECK = "the field shows the new value. Check it, and save again."


class ShownForm(forms.BaseForm):
    """A form that does not overwrite a value that its sender has never seen.

    A page sends back digests of the values that it showed (`{{ form.shown }}` next to the token).
    Each field whose stored value has changed since then gets an error, which names the account
    that changed it, and shows that value. Whoever sends the form locks the row first. A request
    without digests, as scripts send, overwrites.
    """

    # The attribute that has the row, and the columns that fields of other names are for.
    row_attribute: str = "row"
    columns: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """Return the hidden input that says what the form shows; a new row needs none."""
        if self._kept_row() is None:
            return ""
        text = urlencode({SHOWN_AT: int(timezone.now().timestamp()), **self._digests()})
        return format_html('<input type="hidden" name="shown" value="{}">', text)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        row, shown = self._kept_row(), dict(parse_qsl(str(self.data.get("shown", ""))))
        if row is None or not shown:
            return cleaned
        for name, digest in self._digests().items():
            field, initial = self.fields[name], self.get_initial_for_field(self.fields[name], name)
            if shown.get(name, digest) != digest and self._differs(name, initial):
                self.add_error(name, self._sentence(row, name, shown.get(SHOWN_AT, "")))
                field.bound_data = lambda data, initial: initial  # type: ignore[method-assign]
        return cleaned

    def _differs(self, name: str, initial: object) -> bool:
        """Say whether another value was sent than the stored one."""
        field, sent = self.fields[name], self[name].data
        return str(field.prepare_value(initial)) != str(sent) and field.has_changed(initial, sent)

    def _kept_row(self) -> Model | None:
        row: Model | None = getattr(self, self.row_attribute, None)
        return None if row is None or row._state.adding else row

    def _digests(self) -> dict[str, str]:
        digests = {}
        for name, field in self.fields.items():
            if field.disabled:
                continue
            value = field.prepare_value(self.get_initial_for_field(field, name))
            text = str(sorted(map(str, value)) if isinstance(value, list | tuple) else value)
            digests[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
        return digests

    def _sentence(self, row: Model, name: str, shown_at: str) -> str:
        """Say who has changed a field since the page was shown, as far as the history knows."""
        kind = "account" if isinstance(row, User) else row._meta.verbose_name
        seconds = int(shown_at) if shown_at.isdecimal() and len(shown_at) < 11 else 0
        # The transaction of a change may have begun before the page was shown.
        since = datetime.fromtimestamp(seconds, UTC) - timedelta(minutes=1)
        entries = HistoryEntry.objects.filter(kind=kind, key=row.pk, at__gte=since)
        column = self.columns.get(name, name)
        entry = entries.filter(changes__has_key=column).order_by("-at", "-id").first()
        if entry is None:
            return f"This was changed after you opened the page: {CHECK}"
        who = entry.who or "Somebody"
        return f"{who} changed this at {entry.at:%H:%M} UTC, after you opened the page: {CHECK}"
