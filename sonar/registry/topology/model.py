"""What every source of topology is turned into, before it is compared with the registry.

A value that a source does not say is None, and then left here as it is.
"""

from pydantic import BaseModel, ConfigDict

from sonar.models.aliases import AliasKind


class Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SiteFacts(Facts):
    """``latitude`` and ``longitude`` are degrees, ``wan_gbit_s`` Gbit/s."""

    name: str
    cloud: str | None = None
    tier: int | None = None
    country: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    wan_gbit_s: float | None = None


def position(latitude: float | None, longitude: float | None) -> tuple[float | None, float | None]:
    """Return where a site is; 0, 0 is what nobody has entered."""
    return (latitude, longitude) if latitude or longitude else (None, None)


class EndpointFacts(Facts):
    """``source_id`` is the source's own id, which stays when the name changes; empty for none.

    ``site`` is the source's name of its site. ``retired`` says that it is out of use there.
    ``unusable`` says why Sonar must not test there: an endpoint that is registered is retired then,
    and ``site`` and ``base_url`` may be empty.
    """

    name: str
    source_id: str = ""
    site: str = ""
    base_url: str = ""
    label: str | None = None
    software: str | None = None
    retired: bool | None = None
    unusable: str = ""


class AliasFacts(Facts):
    """Another name of a site or of an endpoint, which are called as the source calls them."""

    kind: AliasKind
    name: str
    site: str = ""
    endpoint: str = ""


class Topology(Facts):
    """``left_out`` has a sentence for each thing that the source has and Sonar cannot use.

    ``unread`` has the names and ids of endpoints whose description is not understood: those stay
    as they are. ``adds`` says whether what is not registered is added. ``software`` is that of
    endpoints, by the hosts of their base URLs.
    """

    source: str
    adds: bool = True
    software: dict[str, str] = {}
    remarks: list[str] = []
    sites: list[SiteFacts] = []
    endpoints: list[EndpointFacts] = []
    aliases: list[AliasFacts] = []
    left_out: list[str] = []
    unread: list[str] = []
