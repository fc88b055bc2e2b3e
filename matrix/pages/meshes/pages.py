"""What the pages of meshes show."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, QueryDict

from matrix.answers import cost, meshes
from matrix.pages.add_site import steps
from matrix.pages.base import Page
from matrix.pages.meshes.mesh_form import MeshRowForm
from matrix.pages.parts.cost_words import CostInAll
from matrix.pages.parts.meshes import MOST_LISTED, matrix_of
from matrix.pages.parts.pager import NumberedPage, pager, shown_words
from matrix.pages.parts.share import Share
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.models import Mesh
from sonar.notation import scitags
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry import mesh_removal, mesh_size

ADD, CHANGE, DELETE = (f"sonar.{verb}_mesh" for verb in ("add", "change", "delete"))
# Who learns which service a mesh asks.
SEE = "sonar.view_mesh"
MOST_MEMBERS = 200


def mesh_of(name: str, *, lock: bool = False) -> Mesh:
    """Return a mesh, locked if asked; raise Http404 with a sentence if there is none."""
    rows = Mesh.objects.select_for_update(of=("self",)) if lock else Mesh.objects
    row = rows.select_related("service_credential").filter(name=name).first()
    if row is None:
        raise Http404(f"No mesh is named “{name}”.")
    return row


@dataclass(frozen=True)
class MeshesPage(NumberedPage):
    template: ClassVar[str] = "meshes/list.html"
    route: ClassVar[str] = "meshes"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Show a page of them; one beyond the last is the last."""
        rows = Paginator(Mesh.objects.order_by("name"), MOST_LISTED).get_page(self.number)
        lines, _ = meshes.build(MOST_LISTED, max(rows.start_index() - 1, 0))
        due = meshes.next_due([line.mesh for line in lines if line.mesh.enabled])
        return {
            "meshes": {"lines": [(line, due.get(line.mesh.pk)) for line in lines], "due": True},
            "shown": shown_words(rows, "mesh", "meshes"),
            "may_add": roles.may(reader, ADD),
            "share": Share.of(address("api-meshes")),
            **pager(rows, lambda number: MeshesPage(number).url()),
        }


@dataclass(frozen=True)
class OfMesh(Page):
    mesh: Mesh

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(mesh_of(path["mesh"]))

    def path(self) -> str:
        return address(self.route, self.mesh.name)


@dataclass(frozen=True)
class MeshPage(OfMesh):
    template: ClassVar[str] = "meshes/mesh.html"
    route: ClassVar[str] = "mesh"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        mesh = self.mesh
        line, members = meshes.of(mesh)
        sites = steps.sites_of(reader)
        seen = None if sites is None else Q(site__in=sites)
        hindrance = mesh_removal.hindrance(mesh) if roles.may(reader, DELETE) else None
        return {
            "line": line,
            "drafts": [f"{each}." for each in mesh_size.drafts(mesh, seen)],
            "matrix_url": matrix_of(line),
            "members": members[:MOST_MEMBERS],
            "count": len(members),
            "due": meshes.next_due([mesh]).get(mesh.pk),
            "scitag": scitags.written(mesh.scitag),
            "cost": CostInAll(cost.of_mesh(mesh, now)) if line.sizes else None,
            "internal": roles.may(reader, SEE),
            "may_change": roles.may(reader, CHANGE),
            "hindrance": hindrance,
            # Only where somebody may delete it now.
            "targets": mesh_removal.count_targets(mesh) if hindrance == "" else 0,
            "share": Share.of(address("api-mesh", mesh.name)),
        }


@dataclass(frozen=True)
class AddMeshPage(Page):
    template: ClassVar[str] = "meshes/form.html"
    route: ClassVar[str] = "add-mesh"
    of_primary: ClassVar[bool] = True

    form: MeshRowForm | None = None

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        form = self.form or MeshRowForm(Mesh())
        return {"heading": "Add mesh", "form": form, "cost": form.cost(now)}


@dataclass(frozen=True)
class ChangeMeshPage(OfMesh):
    template: ClassVar[str] = "meshes/form.html"
    route: ClassVar[str] = "change-mesh"
    of_primary: ClassVar[bool] = True

    form: MeshRowForm | None = None

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        form = self.form or MeshRowForm(self.mesh)
        return {
            "heading": f"Edit mesh {self.mesh.name}",
            "mesh": self.mesh,
            "form": form,
            "cost": form.cost(now),
        }
