"""What a registry file may hold: its sections and their keys, and how values are written in it."""

import re
from collections.abc import Collection, Mapping, Set
from datetime import time
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    create_model,
)

from sonar.credentials.kinds import FILE
from sonar.models import Endpoint, Mesh, MeshInterval, SizeClass, Target
from sonar.models.aliases import AliasKind
from sonar.models.fields import tidy
from sonar.models.incidents import SLOWEST_MB_S
from sonar.models.mesh import LIMITS
from sonar.movers.catalogue import DEFAULT, names
from sonar.notation.scitags import parsed as parsed_scitag
from sonar.notation.units import FASTEST, MB, parse_duration, parse_rate

# Every endpoint, in the place of names.
ALL = "all"
# Thirty years; PostgreSQL's integer ends at 68.
LONGEST_INTERVAL_SECONDS = 10**9


def interval(value: object) -> int:
    """Read `10m` or `6h` as seconds; raise ValueError with a sentence."""
    seconds = int(parse_duration(str(value)).total_seconds())
    if seconds > LONGEST_INTERVAL_SECONDS:
        raise ValueError(
            f"{value!r} is too long: an interval is at most {LONGEST_INTERVAL_SECONDS} s"
        )
    return seconds


def known_mover(name: str) -> str:
    """Return the name of a mover that there is; raise ValueError with a sentence."""
    if name not in names():
        raise ValueError(f"{name!r} is not a transfer tool: use {', '.join(names())}")
    return name


def alias_kind(name: str) -> str:
    """Return the name of a kind of alias; raise ValueError with a sentence."""
    if name not in AliasKind.values:
        raise ValueError(f"{name!r} is not a kind of alias: use {', '.join(AliasKind.values)}")
    return name


def quiet_times(value: object) -> tuple[time, time]:
    """Read `01:00-05:30`; raise ValueError with a sentence."""
    match = re.fullmatch(r"(\d\d:\d\d)-(\d\d:\d\d)", str(value))
    if match is None:
        raise ValueError('write quiet hours in UTC as "01:00-05:30"')
    return time.fromisoformat(match[1]), time.fromisoformat(match[2])


def quiet_columns(values: Mapping[str, object]) -> dict[str, time | None]:
    """Return the columns of a mesh or a site that its quiet hours, if given, stand for."""
    if "quiet_hours" not in values:
        return {}
    text = values["quiet_hours"]
    start, end = quiet_times(text) if text else (None, None)
    return {"quiet_from": start, "quiet_until": end}


def members(value: object) -> str | list[str] | dict[str, Any]:
    """Want "all", a list of names or a filter; raise ValueError with a sentence.

    What a filter may say is for `sonar.registry.mesh_filters` to judge.
    """
    of_names = isinstance(value, list) and all(isinstance(name, str) for name in value)
    if value == ALL or of_names or isinstance(value, dict):
        return value  # type: ignore[return-value]  # as was just looked at
    raise ValueError(
        'write "all", a list of endpoint names, or a filter such as {cloud: UK, label: DATADISK}'
    )


def filtered(value: object) -> str | dict[str, Any]:
    """Want "all" or a filter; raise ValueError with a sentence."""
    if isinstance(value, dict) or value == ALL:
        return value if isinstance(value, dict) else ALL
    raise ValueError('write "all", or a filter such as {cloud: UK, label: DATADISK}')


def minimum_rate(value: object) -> float:
    """Read `20 MB/s` as MB/s; raise ValueError with a sentence."""
    rate_mb_s = parse_rate(str(value)) / MB
    if not SLOWEST_MB_S <= rate_mb_s <= FASTEST / MB:
        raise ValueError(f"{value} is not a rate from 1 kB/s to 1,000 GB/s")
    return rate_mb_s


def set_members(mesh: Mesh, end: str, endpoints: Collection[Endpoint]) -> bool:
    """Set the `sources` or `destinations` of a mesh, none for all; say if that changed it."""
    relation = getattr(mesh, end)
    if set(relation.all()) == set(endpoints):
        return False
    relation.set(endpoints)
    return True


def set_intervals(mesh: Mesh, every: Mapping[SizeClass, int]) -> bool:
    """Set how often a mesh tests with each size class; say if that changed it.

    Classes that are not named are not tested.
    """
    if {row.size_class: row.every_seconds for row in mesh.intervals.all()} == every:
        return False
    mesh.intervals.all().delete()
    MeshInterval.objects.bulk_create(
        MeshInterval(mesh=mesh, size_class=size_class, every_seconds=seconds)
        for size_class, seconds in every.items()
    )
    return True


Members = Annotated[str | list[str] | dict[str, Any], PlainValidator(members)]
Filtered = Annotated[str | dict[str, Any], PlainValidator(filtered)]
# Judged by the model; in the order in which they are kept, so that the same ones are no change.
Tags = Annotated[list[str], AfterValidator(tidy)]
QuietTimes = Annotated[tuple[time, time], BeforeValidator(quiet_times)]


class Section(BaseModel):
    """A mapping of the file; a key that is not known is an error, not a typo lost."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    _news: frozenset[str] | None = PrivateAttr(None)

    @property
    def news(self) -> Set[str]:
        """Return the keys to set in a row that exists: stated, and not as at the last load."""
        return self.model_fields_set if self._news is None else self._news

    def compare_with(self, last: Mapping[str, object]) -> dict[str, object]:
        """Leave out of ``news`` what the file stated at its last load, too; return all it states.

        Values are those of JSON.
        """
        stated: dict[str, object] = self.model_dump(mode="json", include=self.model_fields_set)
        self._news = frozenset(
            key for key, value in stated.items() if key not in last or last[key] != value
        )
        return stated


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
    tags: Tags = Field(default_factory=list)
    latitude: float | None = None
    longitude: float | None = None
    wan_gbit_s: float | None = None
    quiet_hours: QuietTimes | None = None


class CredentialSection(Section):
    name: str
    hosts: list[str]
    kind: str = FILE
    issuer: str = ""
    client_id: str = ""
    audience: str = ""
    path_prefix: str = ""
    scope: str = ""
    to_data_hosts: bool = False


class EndpointSection(Section):
    name: str
    site: str
    base_url: str
    label: str = ""
    software: str = ""
    tags: Tags = Field(default_factory=list)
    inbound_cap: int = 2
    outbound_cap: int = 2
    budget_bytes_per_day: int | None = None
    credential: str = ""
    credential_lent: str = ""
    lend_credential: bool = False
    data_hosts: list[str] = Field(default_factory=list)
    vantage: str = ""
    enabled: bool = True
    simulated: bool = False
    retired: bool = False


of_limits: Any = dict.fromkeys(LIMITS, (int | None, None))
Limits = create_model("Limits", __base__=Section, **of_limits)


class MeshSection(Limits):  # type: ignore[valid-type, misc]  # a column each
    name: str
    enabled: bool = True
    mover: Annotated[str, AfterValidator(known_mover)] = DEFAULT
    mode: str = "pull"
    streams: int = 1
    tcp_buffer_bytes: int | None = None
    scitag: Annotated[int, BeforeValidator(parsed_scitag)] | None = None
    service: str = ""
    service_credential: str = ""
    priority: int = 5
    vantage: str = ""
    sources: Members = ALL
    destinations: Members = ALL
    every: dict[str, Annotated[int, BeforeValidator(interval)]]
    quiet_hours: QuietTimes | None = None


def one_end(value: object) -> str | dict[str, Any]:
    """Want "all" or a filter; raise ValueError with a sentence."""
    if value == ALL or isinstance(value, dict):
        return value
    raise ValueError('write "all", or a filter such as {cloud: UK, label: DATADISK}')


Fitting = Annotated[str | dict[str, Any], PlainValidator(one_end)]


class CriteriaSetSection(Section):
    name: str
    size: str
    period_hours: int
    least_tests: int
    least_mb_s: float | None = None
    least_success_percent: float | None = None
    least_bytes: int | None = None
    sources: Fitting = ALL
    destinations: Fitting = ALL


class AliasSection(Section):
    kind: Annotated[str, AfterValidator(alias_kind)]
    name: str
    site: str = ""
    endpoint: str = ""


# What a file leaves out is as the model has it.
JUDGING = ("enabled", "priority", "below", "above", "failures", "silent_after")
of_judging: Any = {
    column.name: (type(column.default), column.default)
    for column in Target._meta.fields
    if column.name in JUDGING
}
Judging = create_model("Judging", __base__=Section, **of_judging)


class TargetSection(Judging):  # type: ignore[valid-type, misc]  # a column each
    name: str
    size_class: str = ""
    mesh: str = ""
    site: str = ""
    sources: Filtered = ALL
    destinations: Filtered = ALL
    floor: Annotated[float, BeforeValidator(minimum_rate)] | None = None


class RegistryFile(Section):
    size_classes: list[SizeClassSection] = Field(default_factory=list)
    sites: list[SiteSection] = Field(default_factory=list)
    credentials: list[CredentialSection] = Field(default_factory=list)
    endpoints: list[EndpointSection] = Field(default_factory=list)
    meshes: list[MeshSection] = Field(default_factory=list)
    aliases: list[AliasSection] = Field(default_factory=list)
    criteria_sets: list[CriteriaSetSection] = Field(default_factory=list)
    targets: list[TargetSection] = Field(default_factory=list)
