"""The registry as a YAML file: read it, check it whole, and make the database say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import time
from typing import Annotated, Any, Literal

import yaml
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic import ValidationError as ShapeError

from sonar import sizes
from sonar.models import Endpoint, Mesh, MeshInterval, Site, SizeClass
from sonar.units import parse_duration

Place = tuple[str | int, ...]


class RegistryError(Exception):
    """A registry file that cannot be loaded: one sentence for each place that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Section(BaseModel):
    """A mapping of the file; a key that is not known is an error, not a typo lost."""

    model_config = ConfigDict(extra="forbid")


class SizeClassSection(Section):
    name: str
    from_bytes: int
    test_bytes: int
    timeout_seconds: int = 3600


class SiteSection(Section):
    name: str
    cloud: str = ""
    tier: int = 2
    country: str = ""
    latitude: float | None = None
    longitude: float | None = None
    wan_gbit_s: float | None = None


class EndpointSection(Section):
    name: str
    site: str
    base_url: str
    label: str = ""
    software: str = ""
    inbound_cap: int = 2
    outbound_cap: int = 2
    budget_bytes_per_day: int | None = None
    credential: str = ""
    simulated: bool = False
    retired: bool = False


def _seconds(value: object) -> int:
    return int(parse_duration(str(value)).total_seconds())


def _hours(value: object) -> tuple[time, time]:
    match = re.fullmatch(r"(\d\d:\d\d)-(\d\d:\d\d)", str(value))
    if match is None:
        raise ValueError('write quiet hours in UTC as "01:00-05:30"')
    return time.fromisoformat(match[1]), time.fromisoformat(match[2])


class MeshSection(Section):
    name: str
    enabled: bool = True
    mover: str = "http-tpc"
    mode: str = "pull"
    streams: int = 1
    tcp_buffer_bytes: int | None = None
    priority: int = 5
    sources: Literal["all"] | list[str] = "all"
    destinations: Literal["all"] | list[str] = "all"
    every: dict[str, Annotated[int, BeforeValidator(_seconds)]]
    quiet_hours: Annotated[tuple[time, time], BeforeValidator(_hours)] | None = None


class RegistryFile(Section):
    size_classes: list[SizeClassSection] = Field(default_factory=list)
    sites: list[SiteSection] = Field(default_factory=list)
    endpoints: list[EndpointSection] = Field(default_factory=list)
    meshes: list[MeshSection] = Field(default_factory=list)


@dataclass
class Changes:
    """What a load did: names by kind, like {"sites": ["RAL"]}."""

    added: dict[str, list[str]] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)


class Lines:
    """Where in the file each value stands."""

    def __init__(self, text: str) -> None:
        try:
            self._root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise RegistryError([f"line {line}: not YAML: {error.problem}"]) from error
        self.repeated = list(_repeated_keys(self._root)) if self._root else []

    def name(self, place: Place) -> str:
        """Write a place as `endpoints[2].base_url (line 14)`; the nearest line that exists."""
        node, line = self._root, 1
        for step in place:
            node = _child(node, step)
            if node is None:
                break
            line = node.start_mark.line + 1
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        return f"{path.lstrip('.') or 'the file'} (line {line})"


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def _repeated_keys(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield f"{key.value!r} stands twice in one mapping (line {key.start_mark.line + 1})"
            seen.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(value)


def parse(text: str) -> tuple[RegistryFile, Lines]:
    """Read a registry file; raise RegistryError naming every place that has a wrong shape."""
    lines = Lines(text)
    if lines.repeated:
        raise RegistryError(lines.repeated)
    document = yaml.safe_load(text)
    if document is None:
        raise RegistryError(["the file is empty: it needs sites, endpoints or meshes"])
    try:
        return RegistryFile.model_validate(document), lines
    except ShapeError as error:
        raise RegistryError(
            [
                f"{lines.name(tuple(wrong['loc']))}: {wrong['msg'].removeprefix('Value error, ')}"
                for wrong in error.errors()
            ]
        ) from error


class _Load:
    """One load: collects what changed and what is wrong, place by place."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.changes = Changes()
        self.problems: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def wrong(self, place: Place, sentence: str) -> None:
        self.problems.append(f"{self.lines.name(place)}: {sentence}")

    def save(self, kind: str, index: int, row: models.Model, values: dict[str, Any]) -> bool:
        """Bring a row to these values if they are valid; note whether that changed it."""
        name = str(values["name"])
        if (kind, name) in self._seen:
            self.wrong((kind, index, "name"), f"{name} stands twice in this file")
            return False
        self._seen.add((kind, name))
        changed = [key for key, value in values.items() if getattr(row, key) != value]
        for key in changed:
            setattr(row, key, values[key])
        if changed and not self._is_valid(kind, index, row):
            return False
        self._note(kind, name, added=row._state.adding, changed=bool(changed))
        if changed:
            row.save()
        return True

    def _is_valid(self, kind: str, index: int, row: models.Model) -> bool:
        try:
            # Boundaries of size classes are judged together, when all are known.
            row.full_clean(validate_constraints=not isinstance(row, SizeClass))
        except ValidationError as error:
            for key, sentences in error.message_dict.items():
                place: Place = (kind, index) if key == "__all__" else (kind, index, key)
                self.wrong(place, " ".join(sentences))
            return False
        return True

    def _note(self, kind: str, name: str, *, added: bool, changed: bool) -> None:
        changes = self.changes
        rows = changes.added if added else changes.changed if changed else changes.left
        rows.setdefault(kind, []).append(name)

    def renote_changed(self, kind: str, name: str) -> None:
        """Count a row as changed whose own columns are as before but not what hangs on it."""
        if name in self.changes.left.get(kind, []):
            self.changes.left[kind].remove(name)
            self.changes.changed.setdefault(kind, []).append(name)


def load(text: str) -> Changes:
    """Make the registry say what the file says; all of it or, with RegistryError, nothing.

    What stands only in the database is left alone: endpoints are retired by `retired: true`,
    never deleted. Loading the same file again changes nothing.
    """
    document, lines = parse(text)
    one = _Load(lines)
    with transaction.atomic():
        _load_size_classes(one, document.size_classes)
        _load_sites(one, document.sites)
        _load_endpoints(one, document.endpoints)
        _load_meshes(one, document.meshes)
        if one.problems:
            raise RegistryError(one.problems)
    return one.changes


def _load_size_classes(one: _Load, sections: list[SizeClassSection]) -> None:
    rows = {row.name: row for row in SizeClass.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or SizeClass()
        one.save("size_classes", index, row, section.model_dump())
    if sections:
        for sentence in sizes.problems(SizeClass.objects.all()):
            one.wrong(("size_classes",), sentence)


def _load_sites(one: _Load, sections: list[SiteSection]) -> None:
    rows = {row.name: row for row in Site.objects.all()}
    for index, section in enumerate(sections):
        one.save("sites", index, rows.get(section.name) or Site(), section.model_dump())


def _load_endpoints(one: _Load, sections: list[EndpointSection]) -> None:
    rows = {row.name: row for row in Endpoint.objects.select_related("site")}
    sites = {row.name: row for row in Site.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Endpoint()
        values = section.model_dump(exclude={"site", "retired"})
        if section.site not in sites:
            one.wrong(("endpoints", index, "site"), f"there is no site {section.site!r}")
            continue
        retired_at = (row.retired_at or timezone.now()) if section.retired else None
        site = sites[section.site]
        row.site = row.site if row.site_id else site
        one.save("endpoints", index, row, {**values, "site": site, "retired_at": retired_at})


def _load_meshes(one: _Load, sections: list[MeshSection]) -> None:
    rows = {row.name: row for row in Mesh.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Mesh()
        values = section.model_dump(exclude={"sources", "destinations", "every", "quiet_hours"})
        start, end = section.quiet_hours or (None, None)
        values |= {"quiet_from": start, "quiet_until": end}
        if not one.save("meshes", index, row, values):
            continue
        members = [
            _set_members(one, index, row, "sources", section.sources),
            _set_members(one, index, row, "destinations", section.destinations),
        ]
        if any([*members, _set_intervals(one, index, row, section.every)]):
            one.renote_changed("meshes", row.name)


def _set_members(one: _Load, index: int, mesh: Mesh, key: str, names: str | list[str]) -> bool:
    """Set the sources or destinations of a mesh; no member means every endpoint."""
    wanted = [] if isinstance(names, str) else names
    if not isinstance(names, str) and not names:
        one.wrong(("meshes", index, key), 'name endpoints, or write "all"')
    endpoints = {row.name: row for row in Endpoint.objects.filter(name__in=wanted)}
    for place, name in enumerate(wanted):
        if name not in endpoints:
            one.wrong(("meshes", index, key, place), f"there is no endpoint {name!r}")
    relation = getattr(mesh, key)
    if set(relation.all()) == set(endpoints.values()):
        return False
    relation.set(endpoints.values())
    return True


def _set_intervals(one: _Load, index: int, mesh: Mesh, every: dict[str, int]) -> bool:
    """Set how often a mesh tests with each size class; classes not named are not tested."""
    classes = {row.name: row for row in SizeClass.objects.all()}
    if not every:
        one.wrong(("meshes", index, "every"), "name at least one size class, like {large: 6h}")
    for name in every:
        if name not in classes:
            known = ", ".join(classes)
            one.wrong(
                ("meshes", index, "every", name), f"there is no size class {name!r}, only {known}"
            )
    wanted = {classes[name]: seconds for name, seconds in every.items() if name in classes}
    if {row.size_class: row.every_seconds for row in mesh.intervals.all()} == wanted:
        return False
    mesh.intervals.all().delete()
    MeshInterval.objects.bulk_create(
        MeshInterval(mesh=mesh, size_class=size_class, every_seconds=seconds)
        for size_class, seconds in wanted.items()
    )
    return True


def describe(changes: Changes) -> str:
    """Write what a load did, one line a kind and verb, names in full while they are few."""
    lines = []
    for verb, rows in (
        ("added", changes.added),
        ("changed", changes.changed),
        ("left as they were", changes.left),
    ):
        for kind, names in rows.items():
            few = f": {', '.join(names)}" if len(names) <= 8 else ""
            lines.append(f"{verb}: {len(names)} {kind.replace('_', ' ')}{few}")
    return "\n".join(lines) or "nothing to do"
