"""What a mesh tests now, in words and numbers: the same wherever meshes are shown."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Prefetch, Q
from django.utils import timezone

from sonar.models import Endpoint, Mesh, MeshInterval, Site
from sonar.models.member_filters import ENDS
from sonar.notation import endpoint_filters
from sonar.notation.units import format_count
from sonar.registry.cache import RegistryCache
from sonar.registry.cost import estimate
from sonar.registry.cost.figures import Cost
from sonar.registry.cost.grid import Grid
from sonar.registry.cost.rates import DAY
from sonar.registry.cost.words import at_most, count_links, summary
from sonar.registry.mesh_members import EndpointInUse, at_end, read_endpoints

# Of many meshes, to prefetch: one of all endpoints by name has thousands.
READ_FIRST = (
    *(Prefetch(end, Endpoint.objects.only("name")) for end in ENDS),
    Prefetch("intervals", MeshInterval.objects.select_related("size_class")),
)


@dataclass(frozen=True)
class MeshSize:
    """How many endpoints a mesh tests between, and over how many links.

    ``unmoved`` endpoints are meant, too, but its mover cannot move their files; ``disabled`` ones
    wait until they are enabled. ``asked_per_day`` tests and ``asked_bytes_per_day`` are what
    its intervals ask of these links, whatever quiet hours, caps and budgets let through.
    """

    sources: int
    destinations: int
    links: int
    asked_per_day: float
    asked_bytes_per_day: float
    unmoved: int = 0
    disabled: int = 0


@dataclass(frozen=True)
class MeshNow:
    """A mesh and what it sends if it is enabled: the same wherever meshes are shown."""

    mesh: Mesh
    size: MeshSize
    cost: Cost

    @property
    def in_words(self) -> str:
        return words(self.mesh, self.size, self.cost)


def size_of(mesh: Mesh, endpoints: Collection[EndpointInUse]) -> MeshSize:
    """Count what a mesh tests if it is enabled, of the endpoints in use.

    Three SQL queries, none if its intervals and the endpoints that it names are read already.
    """
    schemes = mesh.mover_description.schemes_in(mesh.mode)
    meant = [at_end(mesh, at, endpoints) for at in ENDS]
    moved = [[end for end in each if end.scheme in schemes] for each in meant]
    sources, destinations = ({end.id for end in each if end.enabled} for each in moved)
    all_meant, all_moved = ({end.id for each in ends for end in each} for ends in (meant, moved))
    links = len(sources) * len(destinations) - len(sources & destinations)
    rates = [
        (DAY / each.every_seconds, each.size_class.test_bytes) for each in mesh.intervals.all()
    ]
    return MeshSize(
        len(sources),
        len(destinations),
        links,
        links * sum(tests for tests, _ in rates),
        links * sum(tests * size for tests, size in rates),
        len(all_meant - all_moved),
        len(all_moved - sources - destinations),
    )


class _Kept:
    """What all meshes cost, read once for a version of the registry; one by one when asked for."""

    def __init__(self) -> None:
        now = timezone.now()
        grid = Grid.read(now)
        self.endpoints, self.cost_of = [*grid.members.values()], estimate.of_meshes(grid)
        ends = (row for kind in (Site, Endpoint) for row in kind.objects.filter(PAUSES))
        moments = (moment for row in ends for moment in (row.paused_since, row.paused_until))
        self.until = min((each for each in moments if each and each > now), default=None)

    def is_over(self) -> bool:
        """Say whether a pause has begun or ended since, which the version does not count."""
        return self.until is not None and self.until <= timezone.now()


PAUSES = Q(paused_since__isnull=False)
_kept = RegistryCache(_Kept)


def read(meshes: Iterable[Mesh]) -> list[MeshNow]:
    """Return what these meshes send. One SQL query while the registry stays as it is.

    Their intervals and the endpoints that they name are read already (READ_FIRST).
    """
    if not (rows := list(meshes)):
        return []
    kept = _kept.read(_Kept.is_over)
    return [MeshNow(mesh, size_of(mesh, kept.endpoints), kept.cost_of(mesh.pk)) for mesh in rows]


def words(mesh: Mesh, size: MeshSize, cost: Cost) -> str:
    """Say it: `endpoints of cloud UK: 14 now, 182 links, 3,276 tests and 6.6 GB a day`."""
    (source, destination), counts = (_meant(mesh, end) for end in ENDS), _counts(size)
    if source == destination:
        ends = f"{source}: {counts[0]}, "
    else:
        ends = f"from {source} ({counts[0]}) to {destination} ({counts[1]}): "
    return "; ".join([f"{ends}{_tests(mesh, size, cost)}", *_vantage(mesh), *_left_out(mesh, size)])


def words_now(mesh: Mesh) -> str:
    """Say it of one mesh as it is kept."""
    return words(mesh, size_of(mesh, read_endpoints()), estimate.of_mesh(mesh, timezone.now()))


def lines(names: Collection[str]) -> list[str]:
    """Say it of the meshes of these names, a line each, and one of the drafts that it chooses."""
    meshes = Mesh.objects.filter(name__in=names).prefetch_related(*READ_FIRST).order_by("name")
    return [
        f"mesh {each.mesh.name}: {said}"
        for each in (read(meshes) if names else [])
        for said in (each.in_words, *drafts(each.mesh))
    ]


def ends_words(mesh: Mesh) -> str:
    """Say between which it tests, without numbers: `endpoints of cloud UK`."""
    source, destination = (_meant(mesh, end) for end in ENDS)
    ends = source if source == destination else f"from {source} to {destination}"
    return "; ".join([ends, *_vantage(mesh)])


def remarks(mesh: Mesh, size: MeshSize) -> list[str]:
    """Say in sentences why nothing is tested, or less than it seems; none if all is well."""
    nothing = _missing(mesh, size)
    sentences = [f"{nothing}, so no tests run"] * bool(nothing) + _left_out(mesh, size)
    return [f"{sentence}." for sentence in sentences]


def drafts(mesh: Mesh, seen: Q | None = None) -> list[str]:
    """Say which drafts a mesh names or fits with its filter, of those that a reader may see.

    These are ``seen``, or else all. A mesh of every endpoint chooses none. One SQL query, and one
    for each end, unless these are read already.
    """
    rows = read_endpoints(Endpoint.objects.drafts().filter(seen or Q()))
    chosen = [end for end in ENDS if mesh.filter_of(end) or getattr(mesh, end).all()]
    ends = {each.texts["endpoint"][0] for end in chosen for each in at_end(mesh, end, rows)}
    if not ends:
        return []
    first, more = min(ends), len(ends) - 1
    if not more:
        return [f"{first} is a draft; its tests start only after it is enabled"]
    several = f"{first} and {format_count(more)} more are drafts"
    return [f"{several}; their tests start only after they are enabled"]


def _missing(mesh: Mesh, size: MeshSize) -> str:
    if not (size.sources or size.destinations):
        return "The mesh has no endpoints"
    if not (size.sources and size.destinations):
        return f"The mesh has no {'destinations' if size.sources else 'sources'}"
    if not size.links:
        return "A single endpoint has no links"
    if not size.asked_per_day:
        return "The mesh has no intervals"
    return "" if mesh.enabled else "The mesh is not enabled"


def _meant(mesh: Mesh, end: str) -> str:
    if chosen := mesh.filter_of(end):
        return f"endpoints {endpoint_filters.words(chosen)}"
    names = sorted(endpoint.name for endpoint in getattr(mesh, end).all())
    if not names:
        return "all endpoints"
    return names[0] if len(names) == 1 else f"{format_count(len(names))} endpoints chosen by name"


def _vantage(mesh: Mesh) -> list[str]:
    return [f"at the vantage point {mesh.vantage}"] if mesh.vantage else []


def _counts(size: MeshSize) -> list[str]:
    counts = (size.sources, size.destinations)
    return [f"{format_count(count)} now" if count else "none now" for count in counts]


def _tests(mesh: Mesh, size: MeshSize, cost: Cost) -> str:
    if not size.links:
        return f"{count_links(0)}, so no tests run"
    if not size.asked_per_day:
        return f"{count_links(size.links)}, but no interval is set, so no tests run"
    stopped = "" if mesh.enabled else ", but the mesh is not enabled"
    return f"{summary(cost)}, {at_most(cost.peak.tests)}{stopped}"


def _left_out(mesh: Mesh, size: MeshSize) -> list[str]:
    """Say how many more endpoints are meant and not tested, and why."""
    more = " more" if size.sources or size.destinations else ""
    said = []
    if size.unmoved:
        whose = "its protocol" if size.unmoved == 1 else "their protocols"
        others = _not_tested(size.unmoved, more)
        said.append(f"{others}, because {mesh.mover} does not support {whose}")
    if size.disabled:
        subject = "it is" if size.disabled == 1 else "they are"
        said.append(f"{_not_tested(size.disabled, more)}, because {subject} not enabled")
    return said


def _not_tested(count: int, more: str) -> str:
    verb = "is" if count == 1 else "are"
    return f"{format_count(count)}{more} endpoint{'s' * (count != 1)} {verb} not tested"
