"""What operators do with meshes: each change is kept, put into the admin's log, and told."""

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone

from matrix.answers.words.phrases import counted
from matrix.http.page_rights import for_whom, holders
from matrix.pages.meshes import pages
from matrix.pages.meshes.mesh_form import MeshRowForm
from matrix.pages.meshes.pages import AddMeshPage, ChangeMeshPage, MeshesPage, MeshPage, mesh_of
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.views import rendered, show
from sonar.models import Mesh
from sonar.obstacles.catalogue import advice_on
from sonar.registry import mesh_removal, mesh_size

MEANWHILE = "A mesh with this name already exists. Choose another name."


@for_whom(GET=holders(pages.ADD), POST=holders(pages.ADD))
def add_mesh(request: HttpRequest) -> HttpResponseBase:
    """Add a mesh, which is enabled only with `start`."""
    if request.method != "POST":
        return show(request, AddMeshPage, {})
    return edited(request, AddMeshPage(), Mesh(enabled=False))


@for_whom(GET=holders(pages.CHANGE), POST=holders(pages.CHANGE))
def change_mesh(request: HttpRequest, mesh: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, ChangeMeshPage, {"mesh": mesh})
    page = ChangeMeshPage(mesh_of(mesh))
    with transaction.atomic():
        return edited(request, page, mesh_of(mesh, lock=is_kept(request)))


def is_kept(request: HttpRequest) -> bool:
    return not request.POST.keys().isdisjoint({"save", "start"})


def edited(request: HttpRequest, page: AddMeshPage | ChangeMeshPage, mesh: Mesh) -> HttpResponse:
    """Keep a mesh as sent, or only show its cost; the caller locks an existing one that is kept."""
    form = MeshRowForm(mesh, request.POST)
    verb, flag = ("Changed", CHANGE) if mesh.pk else ("Added", ADDITION)
    if is_kept(request) and form.is_valid():
        try:
            with transaction.atomic():
                form.save(enabled=mesh.enabled or "start" in request.POST)
                sentence = f"{verb} mesh {mesh.name}: {mesh_size.words_now(mesh)}."
                keep_in_the_log(request, mesh, flag, sentence)
        except IntegrityError:
            form.add_error("name", MEANWHILE)
    if not is_kept(request) or form.errors:
        status = 400 if is_kept(request) else 200
        return rendered(request, replace(page, form=form), timezone.now(), None, status=status)
    messages.success(request, f"{sentence} {effect(mesh)}".strip())
    warn(request, mesh)
    return HttpResponseRedirect(MeshPage(mesh).path())


def effect(mesh: Mesh) -> str:
    if not mesh.enabled:
        return "Tests of this mesh start only after it is enabled."
    return (
        f"New tests are scheduled within {settings.SONAR_PLAN_SECONDS} s. Running tests continue."
    )


def warn(request: HttpRequest, mesh: Mesh) -> None:
    """Say which of its tests cannot run as things are, and what to do."""
    for sentence in advice_on(mesh, timezone.now()) if mesh.enabled else ():
        messages.warning(request, sentence)


@for_whom(POST=holders(pages.CHANGE))
def enable_mesh(request: HttpRequest, mesh: str) -> HttpResponse:
    """Let tests of a mesh start; with `disable` no more of them do."""
    enabled = "disable" not in request.POST
    with transaction.atomic():
        row = mesh_of(mesh, lock=True)
        if row.enabled == enabled:
            state = "already enabled" if enabled else "not enabled"
            messages.info(request, f"Mesh {row.name} is {state}. Nothing was changed.")
            return HttpResponseRedirect(MeshPage(row).path())
        row.enabled = enabled
        row.save(update_fields=["enabled"])
        sentence = f"{'Enabled' if enabled else 'Disabled'} mesh {row.name}"
        sentence += f": {mesh_size.words_now(row)}." if enabled else "."
        keep_in_the_log(request, row, CHANGE, sentence)
    stopped = "No new tests of this mesh start. Running tests continue."
    messages.success(request, f"{sentence} {effect(row) if enabled else stopped}")
    warn(request, row)
    return HttpResponseRedirect(MeshPage(row).path())


@for_whom(POST=holders(pages.DELETE))
def delete_mesh(request: HttpRequest, mesh: str) -> HttpResponse:
    with transaction.atomic():
        row = mesh_of(mesh, lock=True)
        if hindrance := mesh_removal.hindrance(row):
            messages.error(request, hindrance)
            return HttpResponseRedirect(MeshPage(row).path())
        sentence = f"Deleted mesh {row.name}."
        if targets := mesh_removal.count_targets(row):
            sentence = f"{sentence[:-1]}, and {counted(targets, 'target')} for this mesh."
        keep_in_the_log(request, row, DELETION, sentence)
        row.delete()
    messages.success(request, sentence)
    return HttpResponseRedirect(MeshesPage().path())
