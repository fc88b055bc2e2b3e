"""The size classes, and what uses each: results and meshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Sum

from sonar.models import MeshInterval, Segment, SizeClass
from sonar.models.version import Level
from sonar.notation.units import exact_bytes, exact_duration


@dataclass(frozen=True)
class SizeClassInfo:
    """A size class with what it says in words; ``until`` is where the next begins, if there is one.

    ``results`` are those of finished hours; ``meshes`` test with it, by name.
    """

    size: SizeClass
    until: str
    results: int
    meshes: Sequence[str]

    @property
    def begins(self) -> str:
        return exact_bytes(self.size.from_bytes)

    @property
    def file(self) -> str:
        return exact_bytes(self.size.test_bytes)

    @property
    def longest(self) -> str:
        return exact_duration(self.size.timeout_seconds)


def build() -> list[SizeClassInfo]:
    """Return them, smallest first. Three SQL queries."""
    classes = list(SizeClass.objects.order_by("from_bytes"))
    hours = Segment.objects.filter(level=Level.HOUR).order_by().values_list("size_class")
    results = dict(hours.annotate(Sum("rows")))
    meshes: dict[int, list[str]] = {}
    for size, mesh in MeshInterval.objects.order_by("mesh__name").values_list(
        "size_class", "mesh__name"
    ):
        meshes.setdefault(size, []).append(mesh)
    ends = [exact_bytes(each.from_bytes) for each in classes[1:]] + [""]
    return [
        SizeClassInfo(size, until, results.get(size.pk, 0), meshes.get(size.pk, []))
        for size, until in zip(classes, ends, strict=True)
    ]
