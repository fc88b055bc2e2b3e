"""The page of size classes, and the form by which administrators add and change them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.text import capfirst

from matrix.answers import size_classes
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.parts.share import Share
from matrix.pages.site.work_forms import NEEDED, RowForm, line, not_reserved
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass, Version
from sonar.notation.units import MOST_BYTES
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry.compatibility import size_class_problems
from sonar.registry.written_fields import BytesField, SecondsField, between, small_input
from sonar.results import reclass

MAY_ADD, MAY_CHANGE = "sonar.add_sizeclass", "sonar.change_sizeclass"
MOST_SECONDS = 30 * 86_400
MEANWHILE = "Another user has changed the size classes. Check them and submit the form again."


class SizeClassForm(RowForm):
    """One size class, checked together with the others: their ranges must tile."""

    otherwise, row_attribute = "from_bytes", "size"

    name = line("name", 80, 14, NEEDED.format("large"))
    from_bytes = BytesField(
        label="lower bound (for example, 10 MB)",
        validators=between(0, MOST_BYTES),
        widget=small_input(12),
    )
    test_bytes = BytesField(
        label="test file size (for example, 100 MB)",
        validators=between(1, MOST_BYTES),
        widget=small_input(12),
    )
    timeout_seconds = SecondsField(
        label="time limit (for example, 10m or 1h; longer tests fail)",
        validators=between(1, MOST_SECONDS),
        widget=small_input(8),
    )

    def __init__(self, size: SizeClass, data: QueryDict | None = None) -> None:
        self.size = size
        initial = {name: getattr(size, name) for name in self.base_fields}
        super().__init__(data, auto_id="size-%s", initial=initial)
        if size.pk:  # what is measured goes by the name
            del self.fields["name"]

    def clean_name(self) -> str:
        return not_reserved("class", self.cleaned_data["name"])

    def filled(self, cleaned: Mapping[str, Any]) -> SizeClass | None:
        for name, value in cleaned.items():
            setattr(self.size, name, value)
        others = SizeClass.objects.exclude(pk=self.size.pk)
        problems = [f"{capfirst(each)}." for each in size_class_problems([*others, self.size])]
        if problems:
            self.add_error("from_bytes", problems)
        return None if problems else self.size


@dataclass(frozen=True)
class SizeClassesPage(Page):
    template: ClassVar[str] = "size_classes.html"
    route: ClassVar[str] = "size-classes"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            "classes": size_classes.build(),
            "may_add": roles.may(reader, MAY_ADD),
            "may_change": roles.may(reader, MAY_CHANGE),
            "share": Share.of(address("api-size-classes")),
        }


@dataclass(frozen=True)
class SizeClassPage(Page):
    """The form of a size class: of a new one unless the path names one."""

    template: ClassVar[str] = "size_class.html"
    of_primary: ClassVar[bool] = True

    size: SizeClass = field(default_factory=SizeClass)

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        if not path:
            return cls()
        row = SizeClass.objects.filter(name=path["size"]).first()
        if row is None:
            raise Http404(f"No size class is named “{path['size']}”.")
        return cls(row)

    def path(self) -> str:
        if self.size.pk:
            return address("change-size-class", self.size.name)
        return address("add-size-class")

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        is_old = bool(self.size.pk)
        heading = f"Edit size class {self.size.name}" if is_old else "Add size class"
        shown = {"size": self.size} if is_old else {}
        return {"heading": heading, "form": SizeClassForm(self.size), **shown}


@for_whom(GET=holders(MAY_ADD), POST=holders(MAY_ADD))
def add_size_class(request: HttpRequest) -> HttpResponseBase:
    return form_of(request, {})


@for_whom(GET=holders(MAY_CHANGE), POST=holders(MAY_CHANGE))
def change_size_class(request: HttpRequest, size: str) -> HttpResponseBase:
    return form_of(request, {"size": size})


def form_of(request: HttpRequest, path: dict[str, str]) -> HttpResponseBase:
    """Show the form, or keep its size class and say which results lie outside of theirs then."""
    if request.method != "POST":
        return show(request, SizeClassPage, path)
    page = SizeClassPage.read(QueryDict(), **path)
    pk = page.size.pk
    try:
        with transaction.atomic():
            Version.lock_registry()
            size = SizeClass.objects.select_for_update().get(pk=pk) if pk else SizeClass()
            form, sentence = SizeClassForm(size, request.POST), ""
            if form.is_valid():
                size.save()
                sentence = f"{'Changed' if pk else 'Added'} size class {size.name}."
                keep_in_the_log(request, size, CHANGE if pk else ADDITION, sentence)
    except IntegrityError:
        form.add_error(None, MEANWHILE)
    if form.errors:
        return rendered(request, page, timezone.now(), None, status=400, form=form)
    messages.success(request, sentence)
    if notice := reclass.notice(reclass.outside()):
        messages.warning(request, notice)
    return HttpResponseRedirect(SizeClassesPage().path())
