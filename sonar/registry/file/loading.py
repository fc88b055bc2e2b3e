"""Sections of a registry file -> rows, all or nothing; what changed, and what is wrong."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from functools import partial
from itertools import islice
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from sonar.models import (
    Alias,
    Credential,
    CriteriaSet,
    Endpoint,
    FileRow,
    Mesh,
    Site,
    SizeClass,
    Target,
    Version,
)
from sonar.models.aliases import BY_HAND, compared
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation import addresses
from sonar.notation.endpoint_filters import FilterError, as_query
from sonar.notation.units import exact_bytes, exact_duration
from sonar.registry import compatibility
from sonar.registry.aliases import forget
from sonar.registry.file.reading import Lines, Place, RegistryError, parse
from sonar.registry.file.sections import (
    ALL,
    AliasSection,
    CredentialSection,
    CriteriaSetSection,
    EndpointSection,
    MeshSection,
    RegistryFile,
    Section,
    SiteSection,
    SizeClassSection,
    TargetSection,
    set_intervals,
    set_members,
)
from sonar.registry.mesh_filters import read_filter

CREDENTIALS = ("credential", "credential_lent")
# What a single row of a section is called.
SINGLE = {
    "size_classes": "size class",
    "sites": "site",
    "credentials": "credential",
    "endpoints": "endpoint",
    "meshes": "mesh",
    "aliases": "alias",
    "criteria_sets": "criteria set",
    "targets": "target",
}


@dataclass
class Changes:
    """What a load did: names by kind, like {"sites": ["RAL"]}."""

    added: dict[str, list[str]] = field(default_factory=dict)
    # By name what changed of each row: `priority 5 -> 6`.
    changed: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    # Whether a size class begins elsewhere, or there is a new one.
    bounds_moved: bool = False

    def names(self, kind: str) -> list[str]:
        """Return those that the file has, changed or not."""
        return [
            name for rows in (self.added, self.changed, self.left) for name in rows.get(kind, ())
        ]


class _Loader:
    """One load: collects what changed and what is wrong, place by place."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.changes = Changes()
        self.problems: list[str] = []
        # What says by key what is wrong at a place, once all of the file is in the database.
        self.in_the_end: list[tuple[tuple[str, int], Callable[[], dict[str, str]]]] = []
        self._seen: set[tuple[str, str]] = set()

    def wrong(self, place: Place, sentence: str) -> None:
        self.problems.append(f"{self.lines.name(place)}: {sentence}")

    def save(
        self,
        kind: str,
        index: int,
        row: models.Model,
        values: dict[str, Any],
        *,
        called: str = "",
        related: Callable[[], list[str]] = list,
    ) -> bool:
        """Bring a row to these values if they are valid; note what that changed.

        ``called`` names it where its name alone is ambiguous. ``related`` brings
        what hangs on the row to what the file says, and says what that changed.
        """
        name = called or str(values["name"])
        if (kind, name) in self._seen:
            self.wrong((kind, index, "name"), f"{name} appears twice in this file")
            return False
        self._seen.add((kind, name))
        is_new = row._state.adding
        before = {key: getattr(row, key) for key in values}
        changed = [key for key, value in values.items() if before[key] != value]
        for key in changed:
            setattr(row, key, values[key])
        if changed and not self._is_valid(kind, index, row):
            return False
        fields = _fields_in_words(kind, {key: (before[key], values[key]) for key in changed})
        if changed:
            row.save(update_fields=None if is_new else changed)
        fields += related()
        if is_new:
            self.changes.added.setdefault(kind, []).append(name)
        elif fields:
            self.changes.changed.setdefault(kind, {})[name] = fields
        else:
            self.changes.left.setdefault(kind, []).append(name)
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


# Fields of the file that are kept in columns of other names.
COLUMNS = {
    "quiet_hours": ("quiet_from", "quiet_until"),
    "retired": ("retired_at",),
    "size": ("size_class",),
    "floor": ("floor_mb_s",),
    **{end: (filter_column(end),) for end in ENDS},
}
FIELDS = {column: field for field, columns in COLUMNS.items() for column in columns}


def _without_unnamed(row: models.Model, section: Section, values: dict[str, Any]) -> dict[str, Any]:
    """Leave out the columns of an existing row on which the file says nothing new.

    They may have been set on pages or by the API since.
    """
    if row._state.adding:
        return values
    keys = {"name", *section.news}
    return {key: value for key, value in values.items() if {key, FIELDS.get(key)} & keys}


def _fields_in_words(kind: str, changed: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Say what each field was and is: `budget_bytes_per_day 100 GB -> none`."""
    # Targets have their size class under its own name.
    fields = FIELDS | ({"size_class": "size_class"} if kind == "targets" else {})
    lines = (
        f"{fields.get(key, key)} {_value_in_words(key, was)} -> {_value_in_words(key, is_now)}"
        for key, (was, is_now) in changed.items()
    )
    return list(lines)


# How numbers with a unit are written, if not as bytes.
UNITS: dict[str, Callable[[Any], str]] = {"floor_mb_s": lambda rate: f"{rate:g} MB/s"}


def _value_in_words(column: str, value: object) -> str:
    match value:
        case None:
            text = ""
        case bool():
            text = str(value).lower()
        case float() | int() if column in UNITS or "bytes" in column:
            words: Callable[[Any], str] = UNITS.get(column, exact_bytes)
            text = words(value)
        case dict():
            text = as_query(value)
        case list():
            text = " ".join(value)
        case datetime():
            text = f"{value:%Y-%m-%d %H:%M}"
        case time():
            text = f"{value:%H:%M}"
        case _:
            text = str(value)
    return text or "none"


def load(text: str, *, reset: bool = False) -> Changes:
    """Make the registry say what the file says; all of it or, with RegistryError, nothing.

    What is only in the database is left alone: endpoints are retired by `retired: true`,
    never deleted. So is each field of a row that exists, if the file leaves it out or states it as
    at the last load; ``reset`` sets these, too. Loading the same file again changes nothing.
    Changes by REST, and other loads, wait until it is done.
    """
    document, lines = parse(text)
    loader = _Loader(lines)
    with transaction.atomic():
        Version.lock_registry()
        _compare_with_last_load(document, reset=reset)
        _load_size_classes(loader, document.size_classes)
        _load_sites(loader, document.sites)
        _load_credentials(loader, document.credentials)
        _load_endpoints(loader, document.endpoints)
        _load_meshes(loader, document.meshes)
        _load_aliases(loader, document.aliases)
        _load_criteria_sets(loader, document.criteria_sets)
        _load_targets(loader, document.targets)
        for place, problems in loader.in_the_end:
            for key, sentence in problems().items():
                loader.wrong((*place, key), sentence)
        if loader.problems:
            raise RegistryError(loader.problems)
    return loader.changes


def _compare_with_last_load(document: RegistryFile, *, reset: bool) -> None:
    """Let each section know what it stated at the last load, and keep what it states now."""
    last = {(row.kind, row.name): row.fields for row in FileRow.objects.all()}
    rows = []
    for kind in SINGLE:
        for section in getattr(document, kind):
            before = {} if reset else last.get((kind, section.name), {})
            stated = section.compare_with(before)
            if stated != before:
                rows.append(FileRow(kind=kind, name=section.name, fields=stated))
    unique = {(row.kind, row.name): row for row in rows}
    FileRow.objects.bulk_create(
        unique.values(),
        update_conflicts=True,
        unique_fields=["kind", "name"],
        update_fields=["fields"],
    )


def _load_size_classes(loader: _Loader, sections: list[SizeClassSection]) -> None:
    rows = {row.name: row for row in SizeClass.objects.all()}
    before = {name: row.from_bytes for name, row in rows.items()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or SizeClass()
        loader.save(
            "size_classes", index, row, _without_unnamed(row, section, section.model_dump())
        )
        loader.changes.bounds_moved |= before.get(section.name) != row.from_bytes
    if sections:
        for sentence in compatibility.size_class_problems(SizeClass.objects.all()):
            loader.wrong(("size_classes",), sentence)


def _load_sites(loader: _Loader, sections: list[SiteSection]) -> None:
    rows = {row.name: row for row in Site.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Site()
        start, end = section.quiet_hours or (None, None)
        values = section.model_dump(exclude={"quiet_hours"})
        values |= {"quiet_from": start, "quiet_until": end}
        loader.save("sites", index, row, _without_unnamed(row, section, values))


def _load_credentials(loader: _Loader, sections: list[CredentialSection]) -> None:
    rows = {row.name: row for row in Credential.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Credential()
        values = section.model_dump()
        if section.kind == row.kind or "kind" not in section.news:
            values = _without_unnamed(row, section, values)  # else it is another one
        if loader.save("credentials", index, row, values):
            judged = partial(compatibility.credential_problems, row)
            loader.in_the_end.append((("credentials", index), judged))


def _make_room(rows: dict[str, Endpoint], sections: list[EndpointSection]) -> addresses.Places:
    """Move endpoints whose base URL changes out of the way of each other, and of any other.

    So each is judged by the registry as it is in the end, whatever their order in the file.
    Returns the places of those that stay.
    """
    places = addresses.Places()
    for each in rows.values():
        places.add(each.name, each.base_url)
    for section in sections:
        row = rows.get(section.name)
        if row is not None and "base_url" in section.news and row.base_url != section.base_url:
            scheme = addresses.scheme_of(row.base_url)
            aside = f"{scheme}://moving.invalid/{row.pk}"
            Endpoint.objects.filter(pk=row.pk).update(base_url=aside)
            places.remove(row.name)
    return places


def _load_endpoints(loader: _Loader, sections: list[EndpointSection]) -> None:
    related = ("site", *CREDENTIALS)
    rows = {row.name: row for row in Endpoint.objects.select_related(*related)}
    places = _make_room(rows, sections)
    sites = {row.name: row for row in Site.objects.all()}
    credentials = {row.name: row for row in Credential.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Endpoint()
        row.places = places
        values = section.model_dump(exclude={"site", "retired"})
        if section.site not in sites:
            loader.wrong(("endpoints", index, "site"), f"site {section.site!r} is not registered")
            continue
        if not _find_credentials(loader, ("endpoints", index), CREDENTIALS, values, credentials):
            continue
        retired_at = (row.retired_at or timezone.now()) if section.retired else None
        site = sites[section.site]
        row.site = row.site if row.site_id else site
        values = _without_unnamed(row, section, values | {"site": site, "retired_at": retired_at})
        retired_at = values.get("retired_at", row.retired_at)
        base_url = values.get("base_url", row.base_url)
        is_moved = row.pk and compatibility.is_moved(
            Endpoint(pk=row.pk, base_url=base_url, retired_at=retired_at)
        )
        if not loader.save("endpoints", index, row, values):
            continue
        places.add(row.name, row.base_url)
        if is_moved:
            judged = partial(_base_url_problems, row)
            loader.in_the_end.append((("endpoints", index), judged))


def _base_url_problems(endpoint: Endpoint) -> dict[str, str]:
    sentence = compatibility.endpoint_problem(endpoint)
    return {"base_url": sentence} if sentence else {}


def _find_credentials(
    loader: _Loader,
    place: tuple[str, int],
    keys: Iterable[str],
    values: dict[str, Any],
    credentials: Mapping[str, Credential],
) -> bool:
    """Put the rows into values that its names of credentials stand for; say if all are there."""
    for key in keys:
        name = values[key]
        values[key] = credentials.get(name)
        if name and name not in credentials:
            loader.wrong(
                (*place, key),
                f"credential {name!r} is not registered: add it with its hosts to `credentials`",
            )
            return False
    return True


def _load_meshes(loader: _Loader, sections: list[MeshSection]) -> None:
    rows = {row.name: row for row in Mesh.objects.select_related("service_credential")}
    credentials = {row.name: row for row in Credential.objects.all()}
    for index, section in enumerate(sections):
        row = rows.get(section.name) or Mesh()
        values = section.model_dump(exclude={"sources", "destinations", "every", "quiet_hours"})
        start, end = section.quiet_hours or (None, None)
        values |= {"quiet_from": start, "quiet_until": end}
        values |= {
            filter_column(end): _filter(loader, ("meshes", index, end), getattr(section, end))
            for end in ENDS
        }
        keys = ("service_credential",)
        if not _find_credentials(loader, ("meshes", index), keys, values, credentials):
            continue
        keys = section.model_fields_set if row._state.adding else section.news
        related = partial(_set_related, loader, index, row, section, keys)
        values = _without_unnamed(row, section, values)
        if not loader.save("meshes", index, row, values, related=related):
            continue
        if sentence := compatibility.kept_mesh_problem(row):
            loader.wrong(("meshes", index, "mover"), sentence)


def _set_related(
    loader: _Loader, index: int, row: Mesh, section: MeshSection, keys: Collection[str]
) -> list[str]:
    """Set the members and intervals of a mesh that ``keys`` name; say what that changed."""
    changed = []
    for end in (end for end in ENDS if end in keys):
        endpoints = _members(loader, index, end, getattr(section, end))
        was, is_now = (
            " ".join(sorted(endpoint.name for endpoint in each)) or ALL
            for each in (getattr(row, end).all(), endpoints)
        )
        if set_members(row, end, endpoints):
            changed.append(f"{end} {was} -> {is_now}")
    if "every" not in keys:
        return changed
    every = _intervals(loader, index, section.every)
    was, is_now = (
        " ".join(f"{size}={exact_duration(seconds)}" for size, seconds in sorted(each.items()))
        for each in (
            {step.size_class.name: step.every_seconds for step in row.intervals.all()},
            {size_class.name: seconds for size_class, seconds in every.items()},
        )
    )
    return changed + ([f"every {was} -> {is_now}"] if set_intervals(row, every) else [])


def _filter(loader: _Loader, place: Place, value: object) -> dict[str, list[str]]:
    """Return the filter at one end, empty if it is said otherwise which endpoints are meant."""
    try:
        return read_filter(value) if isinstance(value, dict) else {}
    except FilterError as error:
        loader.wrong((*place, error.attribute) if error.attribute else place, str(error))
        return {}


def _members(loader: _Loader, index: int, end: str, names: object) -> list[Endpoint]:
    """Return the endpoints that one end of a mesh names; none for every endpoint, or a filter."""
    if not isinstance(names, list):
        return []
    if not names:
        loader.wrong(("meshes", index, end), 'list endpoints, or write "all"')
    endpoints = {row.name: row for row in Endpoint.objects.filter(name__in=names)}
    for place, name in enumerate(names):
        if name not in endpoints:
            loader.wrong(("meshes", index, end, place), f"endpoint {name!r} is not registered")
    return list(endpoints.values())


def _intervals(loader: _Loader, index: int, every: dict[str, int]) -> dict[SizeClass, int]:
    classes = {row.name: row for row in SizeClass.objects.all()}
    if not every:
        loader.wrong(
            ("meshes", index, "every"), "specify at least one size class, for example {large: 6h}"
        )
    for name in every:
        if name not in classes:
            names = ", ".join(classes)
            loader.wrong(
                ("meshes", index, "every", name),
                f"size class {name!r} is not registered: use {names}",
            )
    return {classes[name]: seconds for name, seconds in every.items() if name in classes}


def _load_aliases(loader: _Loader, sections: list[AliasSection]) -> None:
    """Make names stand for what the file says, whoever said otherwise before."""
    rows = {(row.kind, row.key): row for row in Alias.objects.select_related("site", "endpoint")}
    by_name: dict[str, dict[str, Any]] = {
        "site": {row.name: row for row in Site.objects.all()},
        "endpoint": {row.name: row for row in Endpoint.objects.all()},
    }
    for index, section in enumerate(sections):
        targets: dict[str, Any] = {}
        for end, rows_of_end in by_name.items():
            name = getattr(section, end)
            targets[end] = rows_of_end.get(name)
            if name and name not in rows_of_end:
                loader.wrong(("aliases", index, end), f"{end} {name!r} is not registered")
        if bool(section.site) == bool(section.endpoint):
            loader.wrong(("aliases", index), "specify either a site or an endpoint")
        elif any(targets.values()):
            values = {"kind": section.kind, "name": section.name, **targets, "origin": BY_HAND}
            key = compared(section.kind, section.name)
            row = rows.get((section.kind, key)) or Alias()
            loader.save("aliases", index, row, values, called=f"{section.kind} {key}")
    forget((section.kind, section.name) for section in sections)


def _load_criteria_sets(loader: _Loader, sections: list[CriteriaSetSection]) -> None:
    rows = {row.name: row for row in CriteriaSet.objects.select_related("size_class")}
    classes = {row.name: row for row in SizeClass.objects.all()}
    for index, section in enumerate(sections):
        place = ("criteria_sets", index)
        values = section.model_dump(exclude={"size", *ENDS})
        for end in ENDS:
            chosen = _filter(loader, (*place, end), getattr(section, end))
            values[filter_column(end)] = chosen
        row = rows.get(section.name) or CriteriaSet()
        if section.size not in classes:
            names = ", ".join(classes)
            loader.wrong(
                (*place, "size"), f"size class {section.size!r} is not registered: use {names}"
            )
            continue
        row.size_class = row.size_class if row.size_class_id else classes[section.size]
        values |= {"size_class": classes[section.size]}
        loader.save("criteria_sets", index, row, _without_unnamed(row, section, values))


# The rows that a target may name.
NAMED: dict[str, type[SizeClass | Mesh | Site]] = {
    "size_class": SizeClass,
    "mesh": Mesh,
    "site": Site,
}


def _load_targets(loader: _Loader, sections: list[TargetSection]) -> None:
    rows = {row.name: row for row in Target.objects.select_related(*NAMED)}
    named = {key: {row.name: row for row in model.objects.all()} for key, model in NAMED.items()}
    for index, section in enumerate(sections):
        values = section.model_dump(exclude={*NAMED, *ENDS, "floor"})
        values["floor_mb_s"] = section.floor
        for key, rows_of_key in named.items():
            name = getattr(section, key)
            values[key] = rows_of_key.get(name)
            if name and name not in rows_of_key:
                sentence = f"{key.replace('_', ' ')} {name!r} is not registered"
                loader.wrong(("targets", index, key), sentence)
        for end in ENDS:
            place = "targets", index, end
            values[filter_column(end)] = _filter(loader, place, getattr(section, end))
        row = rows.get(section.name) or Target()
        loader.save("targets", index, row, _without_unnamed(row, section, values))


MOST_LINES = 20


def describe(changes: Changes) -> str:
    """Write what a load did: a line for each row that changed, with its fields, else for each kind.

    Names are in full while they are few.
    """
    lines = [f"added: {_rows(kind, names)}" for kind, names in changes.added.items()]
    for kind, rows in changes.changed.items():
        lines += [
            f"changed: {SINGLE[kind]} {name}: {', '.join(fields)}"
            for name, fields in islice(rows.items(), MOST_LINES)
        ]
        if len(rows) > MOST_LINES:
            lines.append(f"changed: {len(rows) - MOST_LINES} more {kind.replace('_', ' ')}")
    lines += [f"as before: {_rows(kind, names)}" for kind, names in changes.left.items()]
    return "\n".join(lines) or "nothing to do"


def _rows(kind: str, names: list[str]) -> str:
    noun = SINGLE[kind] if len(names) == 1 else kind.replace("_", " ")
    few = f": {', '.join(names)}" if len(names) <= 8 else ""
    return f"{len(names)} {noun}{few}"
