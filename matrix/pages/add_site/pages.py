"""The pages of *Add site*: two forms for what is new, and one page for all that follows."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self

from django.db.models import QuerySet
from django.http import QueryDict

from matrix.answers import endpoint_check
from matrix.answers.site.overview import registered
from matrix.pages.add_site import mesh_step, steps
from matrix.pages.add_site.credential_forms import FileNameForm, KnownForm, UploadForm
from matrix.pages.add_site.site_forms import EndpointForm, SiteForm
from matrix.pages.add_site.steps import OPERATE, sites_of
from matrix.pages.base import Page, Params
from matrix.pages.endpoint import OfEndpoint, endpoint_of
from matrix.pages.parts.last_change import LastChange
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.credentials import rules
from sonar.models import Credential, Endpoint, Site
from sonar.people import roles
from sonar.people.roles import Anyone, Role
from sonar.registry import uploads

TEMPLATE = "add_site/{}.html"


def may_operate(reader: Anyone) -> bool:
    return roles.may(reader, OPERATE)


def head_of(site: Site, *, listed: str = "Set up {}") -> dict[str, Any]:
    """Return the heading for a site that is being added, or for one that is not. One query."""
    is_listed = Site.objects.listed().filter(pk=site.pk).exists()
    heading = (listed if is_listed else "Add site: {}").format(site.name)
    return {"heading": heading, "is_listed": is_listed}


@dataclass(frozen=True)
class AddSitePage(Page):
    template: ClassVar[str] = TEMPLATE.format("site")
    route: ClassVar[str] = "add-site"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            "heading": "Add site",
            "steps": steps.steps_of(None, None, None, "site"),
            "drafts": steps.drafts(reader),
            "form": SiteForm(),
        }


@dataclass(frozen=True)
class OfSite(Page):
    of_primary: ClassVar[bool] = True

    site: Site

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(registered(path["name"]))

    def path(self) -> str:
        return address(self.route, self.site.name)


@dataclass(frozen=True)
class SetUpSitePage(OfSite):
    template: ClassVar[str] = TEMPLATE.format("site")
    route: ClassVar[str] = "set-up-site"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            **head_of(self.site),
            "steps": steps.steps_of(self.site, None, None, "site"),
            "drafts": steps.drafts(reader, self.site),
            "form": SiteForm(self.site),
            "last_change": LastChange.of(self.site, reader, [self.site.id]),
        }


@dataclass(frozen=True)
class AddEndpointPage(OfSite):
    template: ClassVar[str] = TEMPLATE.format("endpoint")
    route: ClassVar[str] = "add-endpoint"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        drafts = steps.drafts(reader, self.site)
        taken = set(self.site.endpoints.values_list("name", flat=True))
        label = "DATADISK" if f"{self.site.name}_DATADISK" not in taken else ""
        new = Endpoint(site=self.site, label=label, name=f"{self.site.name}_{label}")
        return {
            **head_of(self.site, listed="Add endpoint to {}"),
            "steps": steps.steps_of(self.site, None, None, "endpoint"),
            "drafts": [each for each in drafts if each["name"] != self.site.name],
            "form": EndpointForm(new, is_operator=may_operate(reader)),
        }


@dataclass(frozen=True)
class SetUpEndpointPage(OfEndpoint):
    template: ClassVar[str] = TEMPLATE.format("endpoint")
    route: ClassVar[str] = "set-up-endpoint"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report = endpoint_check.of_endpoint(self.endpoint, now, internal=True)
        form = EndpointForm(self.endpoint, is_operator=may_operate(reader))
        return {
            **head_of(self.endpoint.site),
            "endpoint": self.endpoint,
            "steps": steps.steps_of(self.endpoint.site, self.endpoint, report, "endpoint"),
            "form": None if self.endpoint.enabled else form,
        }


@dataclass(frozen=True)
class SetUpPage(OfEndpoint):
    """Credential, check, mesh and cost; ``chosen`` is what the form of the mesh says."""

    template: ClassVar[str] = TEMPLATE.format("set_up")
    route: ClassVar[str] = "set-up"

    chosen: Params = field(default_factory=dict)

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, (*mesh_step.FIELDS, "shown"))
        chosen = {name: params.getlist(name)[-1:] for name in params}
        return cls(endpoint_of(**path), chosen)

    def params(self) -> Params:
        return self.chosen

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        endpoint = self.endpoint
        report = endpoint_check.of_endpoint(endpoint, now, internal=True)
        # The first step that is not done.
        done = steps.done_of(endpoint.site, endpoint, report)
        current = next((name for name in steps.TITLES if name not in done), "mesh")
        own, choosable = endpoint.credential, known_credentials(endpoint, reader)
        return {
            **head_of(self.endpoint.site),
            "endpoint": endpoint,
            "site": endpoint.site,
            "steps": steps.steps_of(endpoint.site, endpoint, report, current),
            "current": current,
            "report": report,
            "why_not_start": endpoint_check.why_not_start(report),
            "internal": True,
            "may_check": True,
            "credential_lines": own and steps.credential_lines(own),
            "may_remove": may_remove(endpoint, reader),
            "upload": UploadForm(endpoint, now),
            "registered_ones": KnownForm(endpoint, choosable) if choosable else None,
            "file_name": FileNameForm() if is_administrator(reader) else None,
            **self.cost(now, reader),
        }

    def cost(
        self, now: datetime, reader: Anyone, sent: mesh_step.MeshForm | None = None
    ) -> dict[str, Any]:
        # What the address says of mesh and limits, if it says anything.
        question = QueryDict(mutable=True)
        for name, values in self.chosen.items():
            question.setlist(name, values)
        form = sent or mesh_form(self.endpoint, reader, question or None)
        return {"mesh": form, "cost": mesh_step.cost_of(form, now), "chosen": form.chosen()}


def mesh_form(
    endpoint: Endpoint, reader: Anyone, data: QueryDict | None = None
) -> mesh_step.MeshForm:
    """Return the form of meshes and limits; operators may let an endpoint join a mesh by name."""
    choices = mesh_step.choices_for(endpoint, joins=may_operate(reader))
    return mesh_step.MeshForm(endpoint, choices, data)


def is_administrator(reader: Anyone) -> bool:
    return roles.role_of(reader) is Role.ADMINISTRATOR


def may_remove(endpoint: Endpoint, reader: Anyone) -> bool:
    own = endpoint.credential
    if own is None or not own.is_uploaded or not hasattr(own, "uploaded_secret"):
        return False
    return uploads.is_of_sites(own, sites_of(reader))


def known_credentials(endpoint: Endpoint, reader: Anyone) -> QuerySet[Credential]:
    """Return the credentials that somebody may choose for an endpoint: all are for its host.

    Admins of sites choose among those that their sites have, and no other site: what is another
    site's they do not even learn the name of.
    """
    sites = sites_of(reader)
    rows = [
        row
        for row in Credential.objects.all()
        if rules.names(row.hosts, endpoint.base_url) and uploads.is_of_sites(row, sites)
    ]
    return Credential.objects.filter(pk__in=[row.pk for row in rows])
