"""The form of a subscription: its channel, its incidents and its schedule."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from matrix.pages.site.work_forms import CHOICE, NEEDED, ONE_END, SMALL, ClockField, RowForm, line
from sonar.alerting import subscriptions
from sonar.alerting.channels import catalogue
from sonar.alerting.channels.catalogue import EMAIL
from sonar.credentials.encryption import OtherKeyError
from sonar.models import Site, Subscription
from sonar.models.notifications import LONGEST_NAME, MOST_CAP
from sonar.registry.written_fields import between, small_input

Scope = Subscription.Scope
# Fields that are not columns of the row.
BESIDE = ("sites",)
# Not for channels that are sent all open incidents each minute.
TIMES = ("digest_hour", "quiet_from", "quiet_until", "cap")
CHOICES = ("scope", "sites", "incident_scopes", "incident_types")
SET_BEFORE = "This value is set and never shown. Leave the field empty to keep it."
OTHER_SERVER = "The new address is on another server. Enter this value again."
INCIDENT_SCOPE_WORDS = {
    "link": "a link", "source": "an endpoint as a source",
    "destination": "an endpoint as a destination", "endpoint": "an endpoint in both directions",
    "site": "a site", "grid": "Sonar itself or its network",
}  # fmt: skip
INCIDENT_TYPE_WORDS = {"slow": "slow", "silent": "no new results", "failing": "failing"}


class OneStyle(forms.widgets.ChoiceWidget):
    """Styles its boxes like all others; Django would also style the element around them."""

    def create_option(self, *arguments: Any, **named: Any) -> dict[str, Any]:  # noqa: ANN401
        option = super().create_option(*arguments, **named)
        option["attrs"]["class"] = "form-check-input"
        return option


class Ticks(OneStyle, forms.CheckboxSelectMultiple):
    """Checkboxes for several choices."""


class Radio(OneStyle, forms.RadioSelect):
    """Radio buttons for one choice."""


def ticks(label: str, words: Mapping[str, str]) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=f"{label} (none selected: all)",
        required=False,
        choices=list(words.items()),
        widget=Ticks,
    )


class AddressForm(RowForm):
    """A form with an e-mail address."""

    address = line("e-mail address", 254, 30, catalogue.NO_ADDRESS.format(""))

    def clean_address(self) -> str:
        address = str(self.cleaned_data["address"])
        if sentence := catalogue.mail_problem(address):
            raise forms.ValidationError(sentence)
        return address


class SubscriptionForm(AddressForm):
    """An own or a shared subscription; secrets of its channel are written, never shown.

    The scope of a report subscription cannot be changed.
    """

    otherwise = "name"

    name = line("name", LONGEST_NAME, 24, NEEDED.format("night shift"))
    scope = forms.ChoiceField(
        label="scope",
        choices=Scope.choices,
        widget=Radio,
    )
    sites = forms.ModelMultipleChoiceField(
        label="sites",
        queryset=Site.objects.listed().order_by("name"),
        to_field_name="name",
        required=False,
        widget=forms.SelectMultiple(
            {
                "class": "form-select form-select-sm",
                "size": 6,
                "data-chooses": f"scope={Scope.SITES}",
            }
        ),
    )
    incident_scopes = ticks("affected", INCIDENT_SCOPE_WORDS)
    incident_types = ticks("types", INCIDENT_TYPE_WORDS)
    digest_hour = forms.TypedChoiceField(
        label="frequency",
        required=False,
        coerce=int,
        empty_value=None,
        choices=[
            ("", "immediately, for each incident"),
            *((hour, f"once a day, at {hour:02}:00 UTC") for hour in range(24)),
        ],
        widget=CHOICE,
    )
    quiet_from = ClockField("quiet hours from (UTC)", "22:00")
    quiet_until = ClockField("quiet hours to (UTC)", "06:00")
    cap = forms.IntegerField(
        label="hourly limit", validators=between(1, MOST_CAP), widget=small_input(5)
    )
    enabled = forms.BooleanField(
        label="enabled",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )

    def __init__(self, row: Subscription, data: QueryDict | None = None) -> None:
        self.row, self.channel = row, catalogue.describe(row.channel)
        initial = {name: getattr(row, name) for name in self.base_fields if name not in BESIDE}
        if row.pk:
            initial["sites"] = row.sites.all()
        super().__init__(data, auto_id="subscription-%s", initial=initial)
        of_times = [*TIMES] * bool(self.channel.is_board or row.report)
        of_choice = [*CHOICES] * bool(row.report)
        for name in ["address"] * (row.channel != EMAIL) + of_times + of_choice:
            del self.fields[name]
        if row.owner is None:
            choices = [choice for choice in Scope.choices if choice[0] != Scope.OWN]
            self.fields["scope"].choices = choices  # type: ignore[attr-defined]
        for field in self.channel.fields:
            self.fields[f"channel-{field.name}"] = forms.CharField(
                label=field.label,
                required=False,
                help_text=SET_BEFORE if row.pk else field.example and f"Example: {field.example}",
                widget=forms.PasswordInput({"class": SMALL, "size": 30, "autocomplete": "off"})
                if field.is_secret
                else forms.TextInput({"class": SMALL, "size": 30}),
            )

    @property
    def of_channel(self) -> Iterator[forms.BoundField]:
        return (self[name] for name in self.fields if name == "address" or is_of_channel(name))

    @property
    def of_choice(self) -> Iterator[forms.BoundField]:
        return (self[name] for name in CHOICES if name in self.fields)

    @property
    def of_times(self) -> Iterator[forms.BoundField]:
        return (self[name] for name in (*TIMES, "enabled") if name in self.fields)

    def filled(self, cleaned: Mapping[str, Any]) -> Subscription | None:
        if cleaned.get("scope") == Scope.SITES and not cleaned["sites"]:
            self.add_error("sites", "No site is selected. Select at least one.")
        elif cleaned.get("sites") and cleaned.get("scope") != Scope.SITES:
            chosen = set(cleaned["sites"])
            if not self.row.pk or chosen != set(self.row.sites.all()):
                sentence = f"Sites are selected: choose “{Scope.SITES.label}”, or select none."
                self.add_error("sites", sentence)
        for name, other in (("quiet_from", "quiet_until"), ("quiet_until", "quiet_from")):
            if cleaned.get(name) is None and cleaned.get(other) is not None:
                self.add_error(name, ONE_END)
        self.take_settings(cleaned)
        for name, value in cleaned.items():
            if name not in BESIDE and not is_of_channel(name):
                setattr(self.row, name, value)
        return None if self.errors else self.row

    def take_settings(self, cleaned: Mapping[str, Any]) -> None:
        """Encrypt the settings of the channel that were entered; the others stay.

        A new address on another server requires the secrets again.
        """
        names = [field.name for field in self.channel.fields]
        written = {name: cleaned[f"channel-{name}"] for name in names}
        if self.row.pk and not any(written.values()):
            return
        try:
            before = subscriptions.unseal(self.row)
        except OtherKeyError:  # all settings must be entered again
            before = {}
        values = before | {name: value for name, value in written.items() if value}
        for name, sentence in self.channel.problems(values).items():
            self.add_error(f"channel-{name}", sentence)
        if before and not self.errors:
            for name in self.channel.untyped(before, written):
                self.add_error(f"channel-{name}", OTHER_SERVER)
        if names and not self.errors:
            subscriptions.seal(self.row, values)


def is_of_channel(name: str) -> bool:
    return name.startswith("channel-")
