"""What an obstacle is: one thing that can stop a test, and what its rules look at.

That is read once for all tests of a moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    Q,
    QuerySet,
    prefetch_related_objects,
)
from django.db.models.expressions import RawSQL

from sonar.credentials import rules
from sonar.credentials.rules import shown_to_both, two_credentials
from sonar.models import (
    AllTests,
    Credential,
    Downtime,
    Endpoint,
    Mesh,
    MeshInterval,
    Probe,
    Schedule,
    SizeClass,
)
from sonar.models.member_filters import ENDS
from sonar.notation import addresses
from sonar.notation.addresses import scheme_of
from sonar.notation.vantages import named
from sonar.obstacles import credential_states, worker_movers
from sonar.obstacles.capacity import Capacity, Caps, read_caps
from sonar.obstacles.credential_states import CredentialUse
from sonar.registry import mesh_members
from sonar.registry.cache import RegistryCache

OF_BOTH = ("name", "paused_since", "paused_until")
COLUMNS = [*OF_BOTH, *(f"site__{name}" for name in (*OF_BOTH, "quiet_from", "quiet_until"))]


@dataclass(frozen=True)
class Restrictions:
    """The endpoints (ids) at which no test starts at a moment.

    ``disabled`` are those that nobody has enabled. ``paused`` has the sentence why. ``quiet`` are
    those whose site has its quiet hours: they hold back what is scheduled, not what people order.
    """

    disabled: Set[int]
    down: Set[int]
    paused: Mapping[int, str]
    quiet: Set[int]

    @classmethod
    def at(cls, now: datetime) -> Restrictions:
        """Read them. One SQL query."""
        rows = list(concerned(now))
        down = {endpoint.id for endpoint in rows if endpoint.is_down}  # type: ignore[attr-defined]
        return cls.of(rows, down, now)

    @classmethod
    def of(cls, rows: Iterable[Endpoint], down: Set[int], now: datetime) -> Restrictions:
        """Return them of endpoints that are read already, with their sites."""
        disabled: set[int] = set()
        paused: dict[int, str] = {}
        quiet: set[int] = set()
        for endpoint in rows:
            if not endpoint.enabled:
                disabled.add(endpoint.id)
            if pauses := endpoint.pauses(now):
                sentences = (f"{row.pause_words()} {row.pause_end()}." for row in pauses)
                paused[endpoint.id] = " ".join(sentences)
            if endpoint.site.is_quiet(now):
                quiet.add(endpoint.id)
        return cls(disabled, down, paused, quiet)


def concerned(now: datetime) -> QuerySet[Endpoint]:
    """Return the endpoints that are disabled, down or paused, and those of sites that rest."""
    down = ExpressionWrapper(
        Q(id__in=Downtime.of_endpoints(now).order_by().values("id")), BooleanField()
    )
    resting = Q(site__quiet_from__isnull=False) | Q(site__paused_since__isnull=False)
    rows = Endpoint.objects.annotate(is_down=down).filter(
        Q(enabled=False, retired_at=None)
        | Q(is_down=True)
        | Q(paused_since__isnull=False)
        | resting
    )
    return rows.order_by().select_related("site").only("enabled", *COLUMNS)


T = TypeVar("T")
IN_CLEAR = rf"^({'|'.join(addresses.IN_CLEAR)})://"


class RunConditions:
    """The registry and what is under way at one moment; each part is read when it is asked for."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.ordered_bytes: Counter[int] = Counter()
        """Bytes that tests ordered together need at each endpoint, by its id."""
        self._read: dict[object, Any] = {}

    def once(self, reads: Callable[[RunConditions], T]) -> T:
        """Return what is read of these conditions by a function, which is called once."""
        if reads not in self._read:
            self._read[reads] = reads(self)
        result: T = self._read[reads]
        return result

    @cached_property
    def capacity(self) -> Capacity:
        return Capacity.left(self.now, self.caps)

    @cached_property
    def caps(self) -> list[Caps]:
        return read_caps()

    @cached_property
    def restrictions(self) -> Restrictions:
        return Restrictions.at(self.now)

    @cached_property
    def all_tests(self) -> AllTests:
        """Whether all tests are stopped. One SQL query."""
        return AllTests.read()

    @cached_property
    def meshes(self) -> list[Mesh]:
        """All meshes, those of the highest priority first."""
        marks = {
            "vantages": Exists(Endpoint.objects.exclude(vantage="")),
            "credentials": Exists(Endpoint.objects.exclude(credential=None)),
        }
        return list(Mesh.objects.annotate(**marks).order_by("-priority", "name"))

    @cached_property
    def vantages(self) -> dict[int, str]:
        """The vantages of endpoints that name one, by id. One SQL query, none where none does."""
        if not any(mesh.vantages for mesh in self.meshes):  # type: ignore[attr-defined]  # annotated
            return {}
        return dict(Endpoint.objects.exclude(vantage="").values_list("id", "vantage"))

    @cached_property
    def all_vantages(self) -> set[str]:
        return {*self.vantages.values(), *filter(None, (mesh.vantage for mesh in self.meshes))}

    def naming(self, vantages: Collection[str]) -> Q:
        """Match the schedules with an end or a mesh that names one of these vantages, by ids."""
        ends = [end for end, vantage in self.vantages.items() if vantage in vantages]
        meshes = [mesh.id for mesh in self.meshes if mesh.vantage in vantages]
        return either_end(ends) | Q(mesh__in=meshes)

    def at(self, vantage: str) -> Q:
        """Match the schedules that name a vantage; with the default one those that name none."""
        return self.naming([vantage]) if vantage else ~self.naming(self.all_vantages)

    @cached_property
    def intervals(self) -> list[MeshInterval]:
        return list(
            MeshInterval.objects.select_related("size_class").order_by("size_class", "mesh")
        )

    @cached_property
    def size_classes(self) -> list[SizeClass]:
        return list(SizeClass.objects.all())

    @cached_property
    def offered(self) -> worker_movers.Offered:
        """What living workers offer, by vantage; empty while no worker takes tests."""
        return worker_movers.by_living(self.now)

    @cached_property
    def failing(self) -> set[CredentialUse]:
        """The uses of credentials for which tests wait."""
        return credential_states.failing()

    @cached_property
    def credentials(self) -> dict[int, Credential]:
        return Credential.objects.in_bulk()

    @cached_property
    def lending(self) -> list[Endpoint]:
        """The endpoints that use a credential, with it, and those that are given one in clear.

        One SQL query, by ids and without a join: see READ_AS_QUEUE.
        """
        if not self.credentials:
            return []
        one_of_its_own = Q(credential__isnull=False) | Q(credential_lent__isnull=False)
        in_use = Endpoint.objects.in_use().order_by()
        ends = list(in_use.filter(one_of_its_own | Q(base_url__regex=IN_CLEAR)))
        for end in ends:
            end.credential = self.credentials.get(end.credential_id or 0)
            end.credential_lent = self.credentials.get(end.credential_lent_id or 0)
        return ends


OF_REGISTRY = ("all_tests", "caps", "meshes", "vantages", "size_classes", "credentials", "lending")
"""The parts of RunConditions that are the same at every moment."""
# No downtime lasts until then: of those who rest for longer than one only.
NEVER_DOWN = datetime.max.replace(tzinfo=UTC)


class Registered(RunConditions):
    """Those parts, all read, and shared by all threads: whoever has one only reads it."""

    def __init__(self) -> None:
        super().__init__(NEVER_DOWN)
        self.concerned = list(concerned(NEVER_DOWN))
        for name in OF_REGISTRY:
            getattr(self, name)


_registered = RegistryCache(Registered)


def conditions_at(now: datetime) -> RunConditions:
    """Return the conditions of a moment. Two SQL queries at most while the registry stays."""
    conditions, registered = RunConditions(now), _registered.read()
    for name in OF_REGISTRY:
        setattr(conditions, name, getattr(registered, name))
    down = Downtime.endpoints_down(now)
    conditions.restrictions = Restrictions.of(registered.concerned, down, now)
    return conditions


NOTHING = Q(pk__in=[])
"""Matches no schedule."""


class Problem(NamedTuple):
    """Why a test cannot run, in a sentence for all readers, and what of the test it is about."""

    field: str
    sentence: str


class Start(NamedTuple):
    """A test that may start now; its ends and its mesh by their ids."""

    source: int
    destination: int
    mesh: int | None
    bytes: int


class Effect(Enum):
    """What an obstacle does to tests that people order."""

    REFUSES = auto()
    """They are refused; those that wait already wait on."""
    REFUSES_NEW = auto()
    """They are refused; those that wait already have what they need."""
    DELAYS = auto()
    """They wait until it has passed."""
    NONE = auto()
    """It holds back scheduled tests alone."""


class Obstacle(ABC):
    """One thing that can stop a test; `filter` and `blocks` are one rule in two forms."""

    name: ClassVar[str]
    """As schedules, the API and metrics have it: at most 12 characters."""
    words: ClassVar[str]
    """For operators: `tests wait because ...`."""
    label: ClassVar[str] = ""
    """Label on the page of a site, if it is not its name."""
    effect: ClassVar[Effect] = Effect.NONE
    is_of_room: ClassVar[bool] = False
    """Whether it passes as other tests end, and so while the planner goes through the schedule."""
    is_of_tests: ClassVar[bool] = False
    """Whether it is there only while other tests are queued or running."""

    @abstractmethod
    def filter(self, conditions: RunConditions) -> Q | RawSQL:
        """Match the schedules that it holds back."""

    @abstractmethod
    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        """Yield why it holds back this test; nothing if it does not."""

    def counts(self, conditions: RunConditions) -> bool:
        """Say whether it counts anything in this run: else it need not be asked for room."""
        return True

    def has_room(self, conditions: RunConditions, start: Start) -> bool:
        """Say whether a test has room beside those that have started in the same run."""
        return True

    def take(self, conditions: RunConditions, start: Start) -> None:  # noqa: B027 - most count nothing
        """Count a test that starts now."""

    def about(self, schedule: Schedule, now: datetime) -> str:
        """Name what holds back a scheduled test, and whose it is: `waits because of ...`.

        ``schedule`` has its mesh and the sites of its ends. Empty if it is over.
        """
        return self.name

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        """Say in a sentence what of a mesh it will hold back until somebody acts; empty for none.

        For those who save a mesh, or what it uses.
        """
        return ""


def ends_of(probe: Probe) -> Iterator[tuple[str, Endpoint]]:
    """Yield both ends of a test with the fields that have them."""
    yield "source", probe.source
    yield "destination", probe.destination


def either_end(endpoints: Iterable[int]) -> Q:
    """Match the schedules with one of these endpoints, by their ids."""
    ids = list(endpoints)
    return Q(source__in=ids) | Q(destination__in=ids)


def credential_conflicts(conditions: RunConditions) -> dict[int, str]:
    """Say of each mesh in use, by id, how many of its links have two credentials.

    Its mover shows one to both ends: such tests are not started. Of the first link it says what to
    do. No SQL query while no mesh has such a mover, else three, and one for meshes by filter.
    """
    in_use = (mesh for mesh in conditions.meshes if mesh.enabled)
    meshes = [mesh for mesh in in_use if mesh.mover_description.one_credential]
    conflicts = {}
    for mesh, (sources, destinations) in _ends_of(meshes):
        of_destinations = Counter(map(shown_to_both, destinations))
        others = {end: len(destinations) - of_destinations[shown_to_both(end)] for end in sources}
        links = sum(others.values())
        if links:
            first = next(end for end, differing in others.items() if differing)
            other = next(end for end in destinations if shown_to_both(end) != shown_to_both(first))
            count = "1 link is" if links == 1 else f"{links} links are"
            advice = two_credentials(first, other, mesh.mover_description)
            conflicts[mesh.id] = f"{count} not tested. {advice}"
    return conflicts


MOST_SENTENCES = 3


def credential_problems(conditions: RunConditions) -> dict[int, str]:
    """Say of each mesh in use, by id, which endpoints lack a credential for its tests.

    One sentence for each endpoint, of the first few. No SQL query while no endpoint has a
    credential, else three, and one for meshes by filter.
    """
    in_use = [mesh for mesh in conditions.meshes if mesh.enabled]
    if not any(mesh.credentials for mesh in in_use):  # type: ignore[attr-defined]  # annotated
        return {}
    problems = {}
    for mesh, ends in _ends_of(in_use):
        sources, destinations = ([end for end in each if end.enabled] for each in ends)
        sentences = {end.name: rules.problem(end) for end in (*sources, *destinations)}
        if mesh.mover_description.asks_service:
            by_token = mesh.service_credential_id is not None
            for end in (*sources, *destinations):
                sentences[end.name] = sentences[end.name] or rules.withheld_from_service(
                    end, by_token=by_token
                )
        else:
            passive, active = (
                {"source": sources, "destination": destinations}[end]
                for end in rules.PASSIVE_AND_ACTIVE[mesh.mode]
            )
            in_clear = [end for end in active if rules.is_in_clear(end.base_url)]
            for end in passive:
                # Others at which this endpoint's tests wait: any, or those that are in clear.
                others = (each for each in in_clear if each != end)
                if rules.refuses_to_lend(end):
                    # What a mover of one credential shows to both is in credential_conflicts.
                    waiting = [] if mesh.mover_description.one_credential else active
                    others = (each for each in waiting if each != end)
                if other := next(others, None):
                    sentences[end.name] = sentences[end.name] or rules.forbids(
                        *((end, other) if mesh.mode == "pull" else (other, end)), mesh.mode
                    )
        said = [sentence for _, sentence in sorted(sentences.items()) if sentence]
        rest = "Credentials of {} are also missing or unusable."
        problems[mesh.id] = " ".join(first_few(said, rest))
    return problems


def first_few(sentences: Sequence[str], rest: str) -> list[str]:
    """Return the first sentences, and ``rest`` with how many more endpoints there are."""
    more = len(sentences) - MOST_SENTENCES
    last = [rest.format(f"{more} more endpoint{'s' * (more > 1)}")] if more > 0 else []
    return [*sentences[:MOST_SENTENCES], *last]


def links_by_vantages(conditions: RunConditions) -> dict[int, Counter[tuple[str, ...]]]:
    """Count the links of each mesh in use, by id, by the vantages that they name.

    No SQL query while no vantage is named, else three, and one for meshes by filter.
    """
    if not conditions.all_vantages:
        return {}
    by_mesh = {}
    for mesh, ends in _ends_of([mesh for mesh in conditions.meshes if mesh.enabled]):
        links: Counter[tuple[str, ...]] = Counter()
        froms, to = (Counter(end.vantage for end in each) for each in ends)
        for (source, count), (destination, times) in product(froms.items(), to.items()):
            links[named([source, destination, mesh.vantage])] += count * times
        for end in set.intersection(*map(set, ends)):  # to itself
            links[named([end.vantage, mesh.vantage])] -= 1
        by_mesh[mesh.id] = +links
    return by_mesh


Ends = tuple[Sequence[Endpoint], Sequence[Endpoint]]


def _ends_of(meshes: Sequence[Mesh]) -> Iterator[tuple[Mesh, Ends]]:
    """Yield meshes with the sources and the destinations in use that their movers can move."""
    if not meshes:
        return
    prefetch_related_objects(meshes, *ENDS)
    in_use = list(Endpoint.objects.in_use().select_related("credential", "credential_lent"))
    of_filters = mesh_members.by_filter(meshes)
    for mesh in meshes:
        schemes = mesh.mover_description.schemes_in(mesh.mode)
        moved = [end for end in in_use if scheme_of(end.base_url) in schemes]
        chosen = []
        for ends in ENDS:
            # By a filter or by name; else all.
            fitting = of_filters.get((mesh.pk, ends))
            if fitting is None:
                named_ends = {end.pk for end in getattr(mesh, ends).all()}
                fitting = named_ends or {end.pk for end in moved}
            chosen.append([end for end in moved if end.pk in fitting])
        yield mesh, (chosen[0], chosen[1])
