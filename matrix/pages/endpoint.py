"""The page of one endpoint: what is registered, its check, and where its server leads tests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils import timezone

from matrix.answers import data_servers, endpoint_check
from matrix.answers.conditions import reading
from matrix.answers.site.overview import registered
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.parts.conditions import conditions_part
from matrix.pages.parts.incidents import IncidentsOf, of_endpoint
from matrix.pages.parts.last_change import LastChange
from matrix.pages.parts.notes import back
from matrix.pages.parts.share import Share
from matrix.pages.site.work_forms import PauseForm
from matrix.pages.views import rendered, showing
from matrix.query.addresses import address, endpoint_url, site_url
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store.data_version import DataVersion
from sonar.models import Endpoint
from sonar.notation import data_hosts
from sonar.obstacles import worker_movers
from sonar.ordering import request_checks
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry.cost import estimate, words
from sonar.registry.shown_forms import ShownForm

SEE = "sonar.view_endpoint"
# Who registers endpoints says where they are, and so where they lead: not the admins of a site.
DECLARE = "sonar.add_endpoint"
# Who may change its caps.
CHECK = "sonar.change_endpoint"


def endpoint_of(name: str, endpoint: str) -> Endpoint:
    rows = Endpoint.objects.select_related("site", "credential", "credential_lent", "paused_by")
    row = rows.filter(site__name=name, name=endpoint).first()
    if row is None:
        raise Http404(f"{registered(name).name} has no endpoint “{endpoint}”.")
    return row


def costs_of(endpoint: Endpoint, now: datetime) -> str:
    """Say what its tests cost, or would cost if it were enabled."""
    return words.in_its_meshes(estimate.in_its_meshes(endpoint, now))


class DataHostsForm(ShownForm, forms.Form):
    """What an endpoint declares, one to a line."""

    row_attribute = "endpoint"

    data_hosts = forms.CharField(
        label="Data hosts, one per line",
        required=False,
        max_length=data_hosts.MOST * 257,
        widget=forms.Textarea({"class": "form-control", "rows": 4, "cols": 50}),
    )

    def __init__(self, endpoint: Endpoint, data: QueryDict | None = None) -> None:
        super().__init__(data, initial={"data_hosts": "\n".join(endpoint.data_hosts)})
        self.endpoint = endpoint

    def clean_data_hosts(self) -> list[str]:
        hosts = list(dict.fromkeys(self.cleaned_data["data_hosts"].split()))
        if len(hosts) > data_hosts.MOST:
            raise ValidationError(
                f"At most {data_hosts.MOST} data hosts are allowed: use patterns to declare more."
            )
        for number, host in enumerate(hosts, start=1):
            if sentence := data_hosts.problem(host):
                raise ValidationError(f"Line {number}: {sentence}")
        return hosts


# Messages about a check are shown where it is.
OF_CHECK = "check"


@dataclass(frozen=True)
class OfEndpoint(Page):
    endpoint: Endpoint

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(endpoint_of(**path))

    def path(self) -> str:
        return address(self.route, self.endpoint.site.name, self.endpoint.name)


@dataclass(frozen=True)
class EndpointPage(OfEndpoint):
    template: ClassVar[str] = "endpoint.html"
    route: ClassVar[str] = "endpoint"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        endpoint, site = self.endpoint, self.endpoint.site
        internal = roles.may(reader, SEE, [site.id])
        may_change = roles.may(reader, CHECK, [site.id])
        is_waiting = not endpoint.enabled and endpoint.retired_at is None
        own = Q(condition__source=endpoint) | Q(condition__destination=endpoint)
        own |= Q(condition__site=site)
        report = endpoint_check.of_endpoint(endpoint, now, internal=internal)
        no_worker = ""
        if vantage := endpoint.vantage:
            no_worker = worker_movers.no_worker_at(vantage, worker_movers.by_living(now))
        return {
            "heading": endpoint.name,
            "endpoint": endpoint,
            "incidents_of": IncidentsOf.read(of_endpoint(endpoint), now, reader),
            **conditions_part(reading.read_open(now, own)),
            "site_url": site_url(site.name, MatrixQuery()),
            "matrix_url": endpoint_url(endpoint.name),
            "simulated": endpoint.simulated,
            "share": Share.of(address("api-endpoint", endpoint.name)),
            "internal": internal,
            "report": report,
            "why_not_start": endpoint_check.why_not_start(report),
            "may_check": not endpoint.retired_at and may_change,
            "may_enable": may_change,
            "paused": [] if endpoint.retired_at else endpoint.pauses(now),
            "pause": PauseForm(endpoint, now) if may_change and not endpoint.retired_at else None,
            "enabling": costs_of(endpoint, now) if may_change and is_waiting else "",
            "data_servers": data_servers.of_endpoint(endpoint),
            "no_worker": no_worker,
            "form": DataHostsForm(endpoint) if roles.may(reader, DECLARE) else None,
            "missing": None,
            "last_change": LastChange.of(endpoint, reader, [site.id]),
        }


show_endpoint = showing(EndpointPage)


@for_whom(POST=holders(CHECK, lambda name, **_: [registered(name).id]))
def check_endpoint(request: HttpRequest, name: str, endpoint: str) -> HttpResponse:
    page = EndpointPage(endpoint_of(name, endpoint))
    try:
        request_checks.order(page.endpoint, cast(User, request.user), timezone.now())
    except request_checks.CheckRefusedError as error:
        messages.error(request, str(error), extra_tags=OF_CHECK)
    return back(request, f"{page.path()}#check")


@for_whom(POST=holders(DECLARE))
def declare_data_hosts(request: HttpRequest, name: str, endpoint: str) -> HttpResponse:
    """Keep what an endpoint declares, in the log of the admin too."""
    page = EndpointPage(endpoint_of(name, endpoint))
    with transaction.atomic():
        row = Endpoint.objects.select_for_update(of=("self",)).get(pk=page.endpoint.pk)
        form = DataHostsForm(row, request.POST)
        if not form.is_valid():
            return rendered(request, page, timezone.now(), None, status=400, form=form)
        hosts: list[str] = form.cleaned_data["data_hosts"]
        if row.data_hosts == hosts:
            messages.info(request, f"Nothing was changed: {row.name} already has these data hosts.")
            return HttpResponseRedirect(page.path())
        row.data_hosts = hosts
        row.save(update_fields=["data_hosts"])
        sentence = f"Data hosts of {row.name}: {', '.join(hosts) or 'none'}."
        keep_in_the_log(request, row, CHANGE, sentence)
    messages.success(request, f"{sentence} Servers may redirect new tests to these data hosts.")
    return HttpResponseRedirect(page.path())
