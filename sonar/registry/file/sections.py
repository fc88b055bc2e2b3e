"""What a registry file may hold: its sections and their keys."""

from datetime import time
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from sonar.credentials.kinds import FILE
from sonar.models.fields import tidy
from sonar.models.mesh import LIMITS
from sonar.movers.catalogue import DEFAULT
from sonar.notation.scitags import parsed as parsed_scitag
from sonar.registry.file.meshes import interval, known_mover, quiet_times

# Judged by the model; in the order in which they are kept, so that the same ones are no change.
Tags = Annotated[list[str], AfterValidator(tidy)]
QuietTimes = Annotated[tuple[time, time], BeforeValidator(quiet_times)]


class Section(BaseModel):
    """A mapping of the file; a key that is not known is an error, not a typo lost."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


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
    sources: Literal["all"] | list[str] = "all"
    destinations: Literal["all"] | list[str] = "all"
    every: dict[str, Annotated[int, BeforeValidator(interval)]]
    quiet_hours: QuietTimes | None = None


class RegistryFile(Section):
    size_classes: list[SizeClassSection] = Field(default_factory=list)
    sites: list[SiteSection] = Field(default_factory=list)
    credentials: list[CredentialSection] = Field(default_factory=list)
    endpoints: list[EndpointSection] = Field(default_factory=list)
    meshes: list[MeshSection] = Field(default_factory=list)
