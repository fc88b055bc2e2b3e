"""The first two steps of *Add site*: the site, and where its endpoint is."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.http import QueryDict

from matrix.pages.endpoint import DataHostsForm
from matrix.pages.site.work_forms import CHOICE, NEEDED, SMALL, RowForm, line, not_reserved
from sonar.credentials import rules
from sonar.models import Endpoint, Site
from sonar.models.fields import TAKEN
from sonar.notation import vantages
from sonar.notation.addresses import is_inside

CAPACITY = (
    "Enter the capacity in Gbit/s (at least 0.001), for example, 20. Leave the field empty if the "
    "capacity is unknown."
)


class SiteForm(RowForm):
    """A site: the draft begins here."""

    otherwise, row_attribute = "name", "site"

    name = line("name", 80, 28, NEEDED.format("UKI-SCOTGRID-ECDF"))
    cloud = line("cloud (region; for example, UK)", 40, 8)
    tier = forms.TypedChoiceField(
        label="tier",
        coerce=int,
        choices=[(tier, f"Tier {tier}") for tier in range(4)],
        widget=CHOICE,
    )
    country = line("country (two letters; for example, GB)", 2, 4)
    wan_gbit_s = forms.FloatField(
        label="WAN capacity in Gbit/s (empty: unknown)",
        required=False,
        validators=[MinValueValidator(0.001, CAPACITY)],
        error_messages={"invalid": CAPACITY},
        widget=forms.TextInput({"class": SMALL, "size": 8, "inputmode": "decimal"}),
    )

    def __init__(self, site: Site | None = None, data: QueryDict | None = None) -> None:
        self.site = site or Site()
        initial = {name: getattr(self.site, name) for name in self.base_fields}
        super().__init__(data, auto_id="site-%s", initial=initial)
        if self.site.pk:  # what is measured goes by the name
            del self.fields["name"]

    def clean_name(self) -> str:
        return not_reserved("site", self.cleaned_data["name"])

    def clean_country(self) -> str:
        return str(self.cleaned_data["country"]).upper()


NO_PRIVATE = "This address is inside Sonar’s network. Ask an operator to add the endpoint."
AT_PLACE = (
    "Another endpoint uses this path, one of its parent paths or a path below it. Use another path."
)


class EndpointForm(RowForm):
    """An endpoint that is not enabled; ``is_moved`` once it is valid and was elsewhere before.

    ``is_operator`` may have it at any address, declare data hosts, and say from which vantage it is
    reached.
    """

    otherwise, row_attribute = "base_url", "endpoint"

    name = line("name", 80, 34, NEEDED.format("UKI-SCOTGRID-ECDF_DATADISK"))
    label = line("label (purpose; for example, DATADISK)", 40, 14)
    base_url = forms.CharField(
        label="base URL",
        max_length=400,
        error_messages={
            "required": "Enter a URL, for example, davs://se.example.org:443/atlas/disk."
        },
        help_text="The directory must exist. Sonar writes and deletes files only in its "
        "subdirectory sonar/.",
        widget=forms.TextInput(
            {"class": SMALL, "size": 60, "placeholder": "davs://se.example.org:443/atlas/disk"}
        ),
    )
    software = line("software (for example, dCache 9.2; optional)", 80, 20)
    data_hosts = DataHostsForm.base_fields["data_hosts"]
    vantage = line(
        "vantage point (empty: all workers can reach the endpoint)", vantages.LONGEST, 14
    )

    def __init__(
        self, endpoint: Endpoint, data: QueryDict | None = None, *, is_operator: bool
    ) -> None:
        self.endpoint, self.is_operator = endpoint, is_operator
        self.was_at = endpoint.base_url
        initial = {name: getattr(endpoint, name) for name in self.base_fields}
        initial["data_hosts"] = "\n".join(endpoint.data_hosts)
        super().__init__(data, auto_id="endpoint-%s", initial=initial)
        hosts = self.fields["data_hosts"]
        hosts.label = "data hosts, one per line (empty: the server does not redirect)"
        hosts.widget = forms.Textarea({"class": SMALL, "rows": 2, "cols": 50})
        if not is_operator:
            del self.fields["data_hosts"], self.fields["vantage"]
        if endpoint.pk:
            del self.fields["name"]

    clean_data_hosts = DataHostsForm.clean_data_hosts

    @property
    def is_moved(self) -> bool:
        """Say whether what was uploaded for it would now go to another server."""
        before, now = rules.host_of_url(self.was_at), rules.host_of_url(self.endpoint.base_url)
        return bool(self.was_at) and before != now

    def clean_base_url(self) -> str:
        base_url: str = self.cleaned_data["base_url"].strip()
        if not self.is_operator and base_url != self.was_at:
            # No address inside, unless operators have registered it at the site.
            host = rules.host_of_url(base_url)
            urls = self.endpoint.site.endpoints.values_list("base_url", flat=True)
            registered = {each.name for each in map(rules.host_of_url, urls) if each}
            if host and host.name not in registered and is_inside(host.name):
                raise ValidationError(NO_PRIVATE)
        return base_url

    def filled(self, cleaned: Mapping[str, Any]) -> Endpoint:
        super().filled(cleaned)
        if self.is_moved:
            self.endpoint.credential = self.endpoint.credential_lent = None
            self.endpoint.lend_credential = False
        return self.endpoint

    def add_error(self, field: str | None, error: Any) -> None:  # noqa: ANN401 - Django's own
        """Say nothing of endpoints of other sites to who may not see where they are."""
        faults = error if isinstance(error, list) else [error]
        codes = {getattr(fault, "code", None) for fault in faults}
        if field == "base_url" and not self.is_operator and codes & {TAKEN, "unique"}:
            error = AT_PLACE
        super().add_error(field, error)
