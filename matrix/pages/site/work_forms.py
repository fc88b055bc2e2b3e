"""The part of a site's page for who looks after it: its forms, and who changed what."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from matrix.pages.add_site import steps
from matrix.store import probes
from matrix.store.notes import IN_RANGE, NO_TIME, WRITE, NoteForm, TimeField
from sonar.models import Annotation, Downtime, Endpoint, Probe, Site
from sonar.models.downtimes import Origin
from sonar.models.fields import Pause
from sonar.models.registry import MOST_CAP, MOST_DAILY_BYTES
from sonar.notation.units import format_bytes
from sonar.people import roles
from sonar.people.roles import ENDPOINT_COLUMNS, ORDER, Anyone
from sonar.registry.cost import estimate, words
from sonar.registry.shown_forms import ShownForm

# Where addresses begin for new sites and meshes; none of them can be called so.
RESERVED = "add"
NEEDED = "Enter a name, for example, {}."
FORMAT = "%Y-%m-%d %H:%M"
USUAL_LENGTH = timedelta(hours=4)
GB = 10**9
SMALL = "form-control form-control-sm"
CHOICE = forms.Select({"class": "form-select form-select-sm"})


class UtcField(TimeField):
    """A time as text, in UTC and 24 hours whatever the language of the browser is."""

    def __init__(self, label: str, *, required: bool = True) -> None:
        attrs = {"class": SMALL, "size": 17, "placeholder": "2026-11-20 04:00"}
        super().__init__(
            label=label,
            required=required,
            # ISO 8601 is read before any of these.
            input_formats=[],
            validators=IN_RANGE,
            error_messages=dict.fromkeys(("invalid", "required"), NO_TIME.format("tomorrow 08:00")),
            widget=forms.DateTimeInput(attrs, FORMAT),
        )


def not_reserved(noun: str, name: str) -> str:
    """Return a name, unless a page has its address; raise ValidationError."""
    if name == RESERVED:
        raise ValidationError(
            f"The name {RESERVED} is reserved. Choose another name for the {noun}."
        )
    return name


def line(label: str, most: int, size: int, sentence: str = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=most,
        required=bool(sentence),
        error_messages={"required": sentence},
        widget=forms.TextInput({"class": SMALL, "size": size}),
    )


class RowForm(ShownForm, forms.Form):
    """A form about a row that its model judges; the field ``otherwise`` gets what is of several."""

    otherwise: str

    def clean(self) -> dict[str, Any]:
        """Say what the model has against the row; the database's own rules are among it."""
        cleaned = super().clean() or {}
        if self.errors or (row := self.filled(cleaned)) is None:
            return cleaned
        try:
            row.full_clean()
        except ValidationError as error:
            for name, faults in error.error_dict.items():
                shown = name if name in self.fields else self.otherwise
                if not self.has_error(shown):
                    self.add_error(shown, faults)
        return cleaned

    def filled(self, cleaned: Mapping[str, Any]) -> Model | None:
        """Return the row with what was sent; None with an error where that cannot be."""
        row: Model = getattr(self, self.row_attribute)
        for name, value in cleaned.items():
            setattr(row, name, value)
        return row


class DowntimeForm(RowForm):
    """A downtime to declare, of a whole site or of some of its endpoints; ``rows`` once valid."""

    otherwise = "ends_at"

    starts_at = UtcField("from (UTC)")
    ends_at = UtcField("to (UTC)")
    reason = line(
        "reason (visible to everyone)", 200, 40, "Enter a reason, for example, “new switch”."
    )
    severity = forms.ChoiceField(
        label="severity",
        choices=[
            (Downtime.Severity.OUTAGE, "outage (no tests start)"),
            (Downtime.Severity.WARNING, "at risk (tests run, and their results are marked)"),
        ],
        required=False,
        error_messages={"invalid_choice": "The severity must be outage or warning."},
        widget=CHOICE,
    )
    endpoints = forms.ModelMultipleChoiceField(
        Endpoint.objects.none(),
        label="endpoints (none selected: the whole site)",
        required=False,
        widget=forms.CheckboxSelectMultiple({"class": "form-check-input"}),
        error_messages=dict.fromkeys(
            ("invalid_choice", "invalid_pk_value"), "This endpoint does not belong to the site."
        ),
    )

    def __init__(self, site: Site, now: datetime, data: QueryDict | None = None) -> None:
        begin = now.replace(second=0, microsecond=0)
        times = {"starts_at": begin, "ends_at": begin + USUAL_LENGTH}
        initial = times | {"severity": Downtime.Severity.OUTAGE}
        super().__init__(data, auto_id="downtime-%s", initial=initial)
        self.site = site
        self.rows: Sequence[Downtime] = ()
        in_use = Endpoint.objects.in_use().filter(site=site)
        choice = self.fields["endpoints"]
        choice.queryset = in_use  # type: ignore[attr-defined]
        if not self.is_bound and in_use.count() < 2:
            del self.fields["endpoints"]

    def clean_severity(self) -> str:
        """Return what was chosen; whoever sends no severity means an outage, as by the API."""
        return self.cleaned_data["severity"] or Downtime.Severity.OUTAGE.value

    def filled(self, cleaned: Mapping[str, Any]) -> Downtime:
        own = {name: cleaned[name] for name in ("starts_at", "ends_at", "severity", "reason")}
        chosen = cleaned["endpoints"]
        subjects = [{"endpoint": endpoint} for endpoint in chosen] or [{"site": self.site}]
        self.rows = [Downtime(**subject, **own) for subject in subjects]
        return self.rows[0]


class DowntimeEndForm(RowForm):
    otherwise, row_attribute = "ends_at", "downtime"

    ends_at = UtcField("end (UTC)")

    def __init__(self, downtime: Downtime, data: QueryDict | None = None) -> None:
        initial = {"ends_at": downtime.ends_at}
        super().__init__(data, auto_id=f"downtime-{downtime.id}-%s", initial=initial)
        self.downtime = downtime


def cap_field(label: str) -> forms.IntegerField:
    allowed = f"A cap must be a whole number from 1 to {MOST_CAP}."
    return forms.IntegerField(
        label=label,
        validators=[MinValueValidator(1, allowed), MaxValueValidator(MOST_CAP, allowed)],
        error_messages={"invalid": allowed, "required": allowed},
        widget=forms.NumberInput({"class": SMALL, "min": 1, "max": MOST_CAP, "title": allowed}),
    )


LEAST_GB, MOST_GB = Decimal(1) / GB, Decimal(MOST_DAILY_BYTES) / GB
NO_BUDGET = (
    "Enter a limit in GB, at least 0.000000001, for example, 500. Leave the field empty for no "
    "limit."
)


class EndpointLimitsForm(RowForm):
    otherwise, row_attribute = "budget", "endpoint"
    columns = {"budget": "budget_bytes_per_day"}

    inbound_cap = cap_field("concurrent inbound tests")
    outbound_cap = cap_field("concurrent outbound tests")
    budget = forms.DecimalField(
        label="daily budget in GB, inbound and outbound (empty: no limit)",
        required=False,
        decimal_places=9,
        validators=[MinValueValidator(LEAST_GB, NO_BUDGET), MaxValueValidator(MOST_GB, NO_BUDGET)],
        error_messages={"invalid": NO_BUDGET, "max_decimal_places": NO_BUDGET},
        widget=forms.TextInput({"class": SMALL, "size": 10, "inputmode": "decimal"}),
    )
    label = line("label (purpose; for example, DATADISK)", 40, 14)
    software = line("software (for example, dCache 9.2)", 80, 20)

    def __init__(self, endpoint: Endpoint, data: QueryDict | None = None) -> None:
        initial = {
            name: getattr(endpoint, name) for name in ENDPOINT_COLUMNS if name in self.base_fields
        }
        if endpoint.budget_bytes_per_day:
            initial["budget"] = f"{Decimal(endpoint.budget_bytes_per_day) / GB:f}"
        super().__init__(data, auto_id=f"endpoint-{endpoint.id}-%s", initial=initial)
        self.endpoint = endpoint
        self.changes: Mapping[str, tuple[object, object]] = {}

    def filled(self, cleaned: Mapping[str, Any]) -> Endpoint:
        """Set the columns of the endpoint; ``changes`` are old and new values by column."""
        budget = cleaned["budget"]
        values = {**cleaned, "budget_bytes_per_day": None if budget is None else int(budget * GB)}
        columns = {name: values[name] for name in ENDPOINT_COLUMNS}
        self.changes = {
            name: (getattr(self.endpoint, name), value)
            for name, value in columns.items()
            if getattr(self.endpoint, name) != value
        }
        for name, value in columns.items():
            setattr(self.endpoint, name, value)
        return self.endpoint

    def words(self) -> list[str]:
        """Say what changes: `concurrent inbound tests from 2 to 4`."""
        return [
            f"{WORDS.get(name, name)} from {shown(name, old)} to {shown(name, new)}"
            for name, (old, new) in self.changes.items()
        ]


WORDS = {
    "inbound_cap": "concurrent inbound tests",
    "outbound_cap": "concurrent outbound tests",
    "budget_bytes_per_day": "daily budget",
}


def shown(column: str, value: object) -> str:
    if column == "budget_bytes_per_day":
        return "no limit" if value is None else format_bytes(float(str(value)))
    return str(value) or "empty"


class SiteNoteForm(NoteForm):
    text = line("note", 500, 60, "Enter the text of the note.")
    starts_at = UtcField("from (UTC; empty: now)", required=False)
    ends_at = UtcField("to (UTC; empty: until removed)", required=False)

    def __init__(self, site: Site, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="note-%s", instance=Annotation(site=site))
        for name in ("site", "source", "destination"):
            del self.fields[name]
        public = self.fields["public"]
        public.label, public.help_text = "visible to all readers", ""
        public.widget.attrs["class"] = "form-check-input"

    def _post_clean(self) -> None:
        """Say what rules about several fields are broken by where it is mended."""
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, the stubs lack it
        if texts := self.errors.pop(NON_FIELD_ERRORS, None):
            self.add_error("ends_at", list(texts))

    def sites(self) -> list[int]:
        return [self.instance.site_id]


HOURS = ("quiet_from", "quiet_until")
CLOCK = "%H:%M"
NO_CLOCK = "Enter a time of day in UTC from 00:00 to 23:59, for example, 22:30."
ONE_END = "Quiet hours need a start and an end. Leave both fields empty for no quiet hours."
NO_REASON = "Enter a reason, for example, “new firewall”."
IN_THE_PAST = "The end must be in the future. Leave the field empty for a pause without an end."


class ClockField(forms.TimeField):
    """A time of the day as text, in UTC and 24 hours whatever the language of the browser is."""

    def __init__(self, label: str, example: str) -> None:
        attrs = {"class": SMALL, "size": 9, "placeholder": f"e.g. {example}"}
        super().__init__(
            label=label,
            required=False,
            input_formats=[CLOCK],
            error_messages={"invalid": NO_CLOCK},
            widget=forms.TimeInput(attrs, CLOCK),
        )


def refuse_one_end(form: forms.BaseForm, cleaned: Mapping[str, Any]) -> bool:
    """Add an error where quiet hours have only one of both ends, and say whether there is one."""
    missing = [name for name in HOURS if cleaned[name] is None]
    if len(missing) == 1:
        form.add_error(missing[0], ONE_END)
    return len(missing) == 1


class QuietHoursForm(RowForm):
    """The hours of each day in which no scheduled test of a site's links starts."""

    otherwise, row_attribute = "quiet_until", "site"

    quiet_from = ClockField("from (UTC)", "22:00")
    quiet_until = ClockField("to (UTC)", "06:00")

    def __init__(self, site: Site, data: QueryDict | None = None) -> None:
        initial = {name: getattr(site, name) for name in HOURS}
        super().__init__(data, auto_id="quiet-%s", initial=initial)
        self.site = site

    def filled(self, cleaned: Mapping[str, Any]) -> Model | None:
        return None if refuse_one_end(self, cleaned) else super().filled(cleaned)


class PauseForm(ShownForm, forms.Form):
    """A pause of all tests of a site or an endpoint, to begin now; or the one that lasts."""

    pause_reason = line("reason (visible to everyone)", 200, 40, NO_REASON)
    paused_until = UtcField("to (UTC; empty: until resumed)", required=False)

    def __init__(self, row: Pause, now: datetime, data: QueryDict | None = None) -> None:
        self.row, self.lasts = row, row.is_paused(now)
        initial = {name: getattr(row, name) for name in PauseForm.base_fields if self.lasts}
        super().__init__(data, auto_id="pause-%s", initial=initial)
        self.now = now

    def clean_paused_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["paused_until"]
        if until is not None and until <= self.now:
            raise forms.ValidationError(IN_THE_PAST)
        return until


DECLARE, CHANGE, WITHDRAW = (f"sonar.{verb}_downtime" for verb in ("add", "change", "delete"))
LIMITS, TIMES = "sonar.change_endpoint", "sonar.change_site"
MOST_DOWNTIMES, MOST_ENTRIES, MOST_COSTS, MOST_RUNNING = 20, 8, 3, 30


def site_work(
    site: Site, reader: Anyone, now: datetime, refusal: forms.BaseForm | None = None
) -> dict[str, Any]:
    """Return what somebody may do for a site; ``refusal`` is a form that could not be kept."""

    def may(permission: str) -> bool:
        return roles.may(reader, permission, [site.id])

    if not reader.is_authenticated or not any(map(may, (DECLARE, LIMITS, TIMES, WRITE))):
        return {}
    waiting, off = [], Endpoint.objects.in_use().filter(site=site, enabled=False)
    # Endpoints that are switched off, the first of them with what they would cost.
    for number, row in enumerate(off.select_related("site") if may(LIMITS) else ()):
        costs = estimate.in_its_meshes(row, now) if number < MOST_COSTS else None
        waiting.append((row, "" if costs is None else words.in_its_meshes(costs)))
    # What was changed for it, as the admin has it in its history.
    kind = ContentType.objects.get_for_model(Site)
    changes = LogEntry.objects.filter(content_type=kind, object_id=str(site.pk))
    return {
        "declare": sent(refusal, DowntimeForm(site, now)) if may(DECLARE) else None,
        # Those that have not ended, with whether they go on, and the form to end one another time.
        "downtimes": [
            (row, row.starts_at <= now, sent(refusal, DowntimeEndForm(row)))
            for row in downtimes_of(site)
            .filter(ends_at__gt=now, origin=Origin.HAND)
            .order_by("starts_at", "id")[:MOST_DOWNTIMES]
        ]
        if may(CHANGE)
        else [],
        "endpoints": [
            (row, sent(refusal, EndpointLimitsForm(row)))
            for row in Endpoint.objects.in_use().filter(site=site)
        ]
        if may(LIMITS)
        else [],
        "may_add": may(TIMES),
        "drafts": steps.drafts(reader, site),
        "waiting": waiting,
        # Tests that run with an end there, the longest first.
        "running": list(
            probes.rows()
            .filter(Q(source__site=site) | Q(destination__site=site), state=Probe.State.RUNNING)
            .order_by("started_at", "id")[:MOST_RUNNING]
        )
        if may(ORDER)
        else [],
        "quiet": sent(refusal, QuietHoursForm(site)) if may(TIMES) else None,
        "pause": sent(refusal, PauseForm(site, now)) if may(TIMES) else None,
        "note": sent(refusal, SiteNoteForm(site)) if may(WRITE) else None,
        "entries": list(
            changes.select_related("user").order_by("-action_time", "-id")[:MOST_ENTRIES]
        ),
        "refused": refusal is not None,
    }


def sent(refusal: forms.BaseForm | None, form: forms.BaseForm) -> forms.BaseForm:
    return refusal if refusal and refusal.auto_id == form.auto_id else form


def downtimes_of(site: Site) -> QuerySet[Downtime]:
    rows = Downtime.objects.filter(Q(site=site) | Q(endpoint__site=site))
    return rows.select_related("site", "endpoint")
