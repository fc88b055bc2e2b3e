"""Everything that can stop a test, each said once: planner, ordered tests, workers and doors ask.

A new rule is a class here and its place in OBSTACLES: docs/extending.md.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.utils.text import capfirst

from sonar.credentials import rules
from sonar.models import Endpoint, Mesh, Probe, Schedule
from sonar.notation.units import format_bytes
from sonar.obstacles import credential_states, worker_movers
from sonar.obstacles.capacity import exhausted
from sonar.obstacles.obstacle import (
    NOTHING,
    Effect,
    Obstacle,
    Problem,
    RunConditions,
    Start,
    credential_conflicts,
    credential_problems,
    either_end,
    ends_of,
    first_few,
    links_by_vantages,
)
from sonar.registry import mesh_services
from sonar.results.store import REAL_TESTS


class AllStopped(Obstacle):
    """An operator has stopped all tests, scheduled and ordered ones."""

    name = "stopped"
    words = "all Sonar tests are stopped: start tests again on the Health page"
    label = "all tests are stopped"
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        return ~NOTHING if conditions.all_tests.is_paused(conditions.now) else NOTHING

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        if sentence := conditions.all_tests.sentence(conditions.now):
            yield Problem("", f"{sentence}.")

    def about(self, schedule: Schedule, now: datetime) -> str:
        return "the setting that stops all tests"


class CredentialGivenAway(Obstacle):
    """The rules of sonar.credentials.rules: a credential would go where it may not."""

    name = "credential"
    words = (
        "a credential is missing, is not delegated, is for another host, or does not work: see "
        "manage.py credentials"
    )
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        """By ids, without a join: see READ_AS_QUEUE; 0.1 ms for each endpoint that has one."""
        ends = conditions.lending
        by_service = [mesh for mesh in conditions.meshes if mesh.mover_description.asks_service]
        by_token = [mesh.id for mesh in by_service if mesh.service_credential_id]
        if not ends and not by_token:
            return NOTHING
        wrong = [end.id for end in ends if rules.problem(end)]
        refusing = [end.id for end in ends if rules.refuses_to_lend(end)]
        lending = [end.id for end in ends if rules.lends(end)]
        in_clear = [end.id for end in ends if rules.is_in_clear(end.base_url)]
        matched = either_end(wrong)
        for mode, (passive, active) in rules.PASSIVE_AND_ACTIVE.items():
            given_away = Q((f"{passive}__in", refusing))
            given_away |= Q((f"{passive}__in", lending), (f"{active}__in", in_clear))
            matched |= Q(mesh__in=_two_ended(conditions.meshes, mode)) & given_away
        matched |= Q(mesh__in=by_service) & either_end(refusing)
        able = [end.id for end in ends if not rules.withheld_from_service(end, by_token=True)]
        matched |= Q(mesh__in=by_token) & ~Q(source__in=able, destination__in=able)
        showing_one = [
            mesh.id for mesh in conditions.meshes if mesh.mover_description.one_credential
        ]
        return matched | Q(mesh__in=showing_one) & _two_credentials(ends)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        source, destination = probe.source, probe.destination
        for field, end in ends_of(probe):
            if sentence := rules.problem(end):
                yield Problem(field, sentence)
        if probe.mover_description.asks_service:
            mesh = mesh_services.of_probe(probe)
            by_token = mesh is not None and mesh.service_credential_id is not None
            for field, end in ends_of(probe):
                if sentence := rules.withheld_from_service(end, by_token=by_token):
                    yield Problem(field, sentence)
        elif sentence := rules.forbids(source, destination, probe.mode):
            yield Problem(rules.PASSIVE_AND_ACTIVE[probe.mode][0], sentence)
        if sentence := rules.two_credentials(source, destination, probe.mover_description):
            yield Problem("mover", sentence)

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        lacks = (
            conditions.once(each).get(mesh.id, "")
            for each in (credential_problems, credential_conflicts)
        )
        return " ".join(filter(None, lacks))


class CredentialFails(Obstacle):
    """A worker has found that a credential does not work: its tests wait until it does."""

    name = "credential"
    words = CredentialGivenAway.words
    effect = Effect.DELAYS

    def filter(self, conditions: RunConditions) -> Q:
        if not conditions.credentials or not conditions.failing:
            return NOTHING
        uses = conditions.failing
        own = [end.id for end in conditions.lending if credential_states.own_fails(end, uses)]
        lent = [end.id for end in conditions.lending if credential_states.lent_fails(end, uses)]
        matched = either_end(own)
        for mode, (passive, _) in rules.PASSIVE_AND_ACTIVE.items():
            two_ended = _two_ended(conditions.meshes, mode)
            matched |= Q((f"{passive}__in", lent), mesh__in=two_ended)
        by_service = [mesh for mesh in conditions.meshes if mesh.mover_description.asks_service]
        matched |= Q(mesh__in=by_service) & either_end(lent)
        unknown = [
            mesh for mesh in conditions.meshes if credential_states.service_fails(mesh, uses)
        ]
        return matched | Q(mesh__in=unknown)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        uses = conditions.failing
        if sentence := credential_states.service_problem(probe, uses):
            yield Problem("mover", sentence)
        passive, _ = rules.PASSIVE_AND_ACTIVE[probe.mode]
        for field, end in ends_of(probe):
            if credential_states.own_fails(end, uses):
                yield Problem(field, credential_states.waits(end.name, credential_states.OWN))
            is_lender = field == passive or probe.mover_description.asks_service
            if is_lender and credential_states.lent_fails(end, uses):
                yield Problem(field, credential_states.waits(end.name, credential_states.LENT))


def _two_ended(meshes: Iterable[Mesh], mode: str) -> list[int]:
    others = (mesh for mesh in meshes if not mesh.mover_description.asks_service)
    return [mesh.id for mesh in others if mesh.mode == mode]


def _two_credentials(ends: Iterable[Endpoint]) -> Q:
    """Match links to whose ends a program may not show one credential, where there is any."""
    having: dict[Hashable, list[int]] = {}
    for end in ends:
        if shown := rules.shown_to_both(end):
            having.setdefault(shown, []).append(end.id)
    each = [end for group in having.values() for end in group]
    matched = Q(destination__in=each) & ~Q(source__in=each)
    for group in having.values():
        matched |= Q(source__in=group) & ~Q(destination__in=group)
    return matched


class NoWorker(Obstacle):
    name = "mover"
    words = "no worker can run the transfer tool of the mesh"
    label = "no worker can run the transfer tool"
    effect = Effect.DELAYS

    def filter(self, conditions: RunConditions) -> Q:
        meshes, matched = conditions.meshes, NOTHING
        for vantage, offered in conditions.offered.items():
            unoffered = [mesh for mesh in meshes if mesh.mover_description.name not in offered]
            lacking = Q(mesh__in=unoffered) | worker_movers.without_worker(meshes, offered)
            matched |= conditions.at(vantage) & lacking
        return matched

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for vantage in conditions.offered.keys() & _places_for(probe):
            offered = conditions.offered[vantage]
            if sentence := worker_movers.unsupported_at_end(probe, offered, vantage):
                yield Problem("mover", sentence)

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        for vantage in _vantages_of_links(conditions, mesh) & conditions.offered.keys():
            offered = conditions.offered[vantage]
            if sentence := worker_movers.unsupported(mesh.mover_description, offered, vantage):
                return sentence
        return ""


def _places_for(probe: Probe) -> tuple[str, ...]:
    """Return the vantages where a worker must be for a test; empty for the default one.

    Nowhere for one with a worker: it was ordered in the foreground, and who ordered it runs it.
    """
    return () if probe.worker else worker_movers.vantages_of(probe) or ("",)


def _vantages_of_links(conditions: RunConditions, mesh: Mesh) -> set[str]:
    """Return the vantages that links of a mesh name; with the default one, if some name none.

    Links that name two are not among them: TwoVantages tells of those.
    """
    links = conditions.once(links_by_vantages).get(mesh.id, {(): 1})
    return {vantage for each in links if len(each) <= 1 for vantage in each or ("",)}


class NoWorkerThere(Obstacle):
    """A vantage is named and nobody is there; or only vantages have workers, and none is named."""

    name = "vantage"
    words = (
        "no worker is running at the vantage point of an endpoint or of the mesh: start one there"
    )
    label = "no worker can reach an endpoint"
    effect = Effect.DELAYS

    def filter(self, conditions: RunConditions) -> Q:
        offered, matched = conditions.offered, NOTHING
        for vantage in (*conditions.all_vantages, ""):
            if worker_movers.no_worker_at(vantage, offered):
                matched |= conditions.at(vantage)
        return matched

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for vantage in _places_for(probe):
            if sentence := worker_movers.no_worker_at(vantage, conditions.offered):
                yield Problem("", sentence)

    def about(self, schedule: Schedule, now: datetime) -> str:
        vantages = worker_movers.vantages_of(schedule)
        places = _listed(f"at the vantage point {each}" for each in vantages)
        places = places or "without a vantage point"
        return f"a missing worker {places}"

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        vantages = sorted(_vantages_of_links(conditions, mesh))
        sentences = (worker_movers.no_worker_at(each, conditions.offered) for each in vantages)
        return " ".join(filter(None, sentences))


class TwoVantages(Obstacle):
    """A test runs at one vantage, so all that it is made of must be reached from there."""

    name = "two vantages"
    words = (
        "different vantage points are set for the endpoints or the mesh, and each worker is at "
        "only one of them"
    )
    label = "no worker can reach both endpoints"
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        vantages, matched = conditions.all_vantages, NOTHING
        for vantage in vantages:
            matched |= conditions.naming([vantage]) & conditions.naming(vantages - {vantage})
        return matched

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        if len(vantages := worker_movers.vantages_of(probe)) > 1:
            yield Problem("destination", _apart(vantages))

    def about(self, schedule: Schedule, now: datetime) -> str:
        vantages = worker_movers.vantages_of(schedule)
        return (
            f"endpoints at two vantage points, {' and '.join(vantages)}"
            if len(vantages) > 1
            else ""
        )

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        links = conditions.once(links_by_vantages).get(mesh.id, Counter())
        apart = {vantages: count for vantages, count in links.items() if len(vantages) > 1}
        if not apart:
            return ""
        count = sum(apart.values())
        return (
            f"{'1 link is' if count == 1 else f'{count} links are'} not tested. "
            f"{_apart(next(iter(apart)))} Choose a vantage point whose workers can reach both "
            "endpoints, or remove these links from the mesh."
        )


def _apart(vantages: Iterable[str]) -> str:
    names = " and ".join(vantages)
    return (
        f"No worker can reach both endpoints: the vantage points {names} are set for the endpoints "
        "or for their mesh."
    )


class NotEnabled(Obstacle):
    """Registered is not yet tested: an endpoint waits until somebody enables it."""

    name = "not enabled"
    words = "an endpoint is not enabled: enable it on the page of its site"
    label = "an endpoint is not enabled"
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        return either_end(conditions.restrictions.disabled)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            if end.id in conditions.restrictions.disabled:
                sentence = f"{end.name} is not enabled: enable it on the page of its site."
                yield Problem(field, sentence)

    def about(self, schedule: Schedule, now: datetime) -> str:
        ends = (schedule.source, schedule.destination)
        return _listed(f"{end.name}, which is not enabled" for end in ends if not end.enabled)


class Paused(Obstacle):
    name = "paused"
    words = "the tests of an endpoint, or of its whole site, are paused"
    label = "tests are paused"
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        return either_end(conditions.restrictions.paused)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            if sentence := conditions.restrictions.paused.get(end.id):
                yield Problem(field, sentence)

    def about(self, schedule: Schedule, now: datetime) -> str:
        """What is not due yet may wait for a pause that lasts longer."""
        begins = max(now, schedule.next_due)
        ends = (schedule.source, schedule.destination)
        return _listed(f"a pause of {row}" for end in ends for row in end.pauses(begins))


class Down(Obstacle):
    name = "downtime"
    words = "an endpoint is in a declared downtime"
    effect = Effect.REFUSES

    def filter(self, conditions: RunConditions) -> Q:
        return either_end(conditions.restrictions.down)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            if end.id in conditions.restrictions.down:
                yield Problem(field, f"{end.name} is in a declared downtime.")


class QuietMesh(Obstacle):
    name = "quiet hours"
    words = "the mesh has quiet hours at this time of day"
    label = "quiet hours of the mesh"

    def filter(self, conditions: RunConditions) -> Q:
        return Q(mesh__in=[mesh for mesh in conditions.meshes if mesh.is_quiet(conditions.now)])

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        mesh = probe.mesh
        if mesh and mesh.is_quiet(conditions.now):
            sentence = f"The mesh {mesh.name} has quiet hours now, {mesh.quiet_hours} UTC."
            yield Problem("mesh", sentence)

    def about(self, schedule: Schedule, now: datetime) -> str:
        return f"quiet hours of the mesh {schedule.mesh.name}, {schedule.mesh.quiet_hours} UTC"


class QuietSite(Obstacle):
    name = "quiet site"
    words = "the site of an endpoint has quiet hours at this time of day"
    label = "quiet hours of a site"

    def filter(self, conditions: RunConditions) -> Q:
        return either_end(conditions.restrictions.quiet)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            if end.id in conditions.restrictions.quiet:
                yield Problem(field, f"The site of {end.name} has quiet hours now.")

    def about(self, schedule: Schedule, now: datetime) -> str:
        ends = (schedule.source, schedule.destination)
        sites = (end.site for end in ends if end.site and end.site.quiet_hours)
        return _listed(f"quiet hours of {site}, {site.quiet_hours} UTC" for site in sites)


def _listed(phrases: Iterable[str]) -> str:
    """Join phrases; those that both ends have alike once."""
    return " and ".join(dict.fromkeys(phrases))


LINK_IN = """
    (sonar_schedule.source_id << 16 | sonar_schedule.destination_id) = ANY(%s::bigint[])
"""


class OverBudget(Obstacle):
    """The bytes of tests that wait are taken: who ordered them was told that they will run."""

    name = "budget"
    words = "an endpoint has used up its test budget for today"
    effect = Effect.REFUSES_NEW
    is_of_room = True

    def filter(self, conditions: RunConditions) -> Q:
        matched = NOTHING
        for size_class in conditions.size_classes:
            left = conditions.capacity.budget_bytes.items()
            short = [end for end, budget in left if budget < size_class.test_bytes]
            matched |= Q(size_class=size_class) & either_end(short)
        return matched

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            needed = conditions.ordered_bytes.get(end.id, probe.bytes)
            left = conditions.capacity.budget_bytes.get(end.id, needed)
            if left < needed:
                tests = "the tests need" if needed > probe.bytes else "the test needs"
                yield Problem(
                    field,
                    f"{end.name} has only {format_bytes(max(left, 0))} of its test budget left for "
                    f"today, but {tests} {format_bytes(needed)}.",
                )


BYTES_OF_LAST_HOUR = f"""
    SELECT mesh_id, sum(bytes)::bigint
    FROM (SELECT mesh_id, bytes FROM sonar_transfer
          JOIN sonar_profile profile ON profile.id = profile_id AND {REAL_TESTS}
          WHERE started_at > %(since)s
          UNION ALL
          SELECT mesh_id, greatest(bytes, sent_bytes) FROM sonar_networkresult
          WHERE started_at > %(since)s
          UNION ALL
          SELECT mesh_id, bytes FROM sonar_probe WHERE state <> 'waiting') AS tests
    GROUP BY mesh_id
"""  # noqa: S608 - constants


def bytes_left_this_hour(conditions: RunConditions) -> dict[int | None, int]:
    """Return what is left of the limits of meshes, by id, and of Sonar's own, by None.

    One SQL query, none without a limit.
    """
    limits: dict[int | None, int] = {
        mesh.id: mesh.bytes_per_hour for mesh in conditions.meshes if mesh.bytes_per_hour
    }
    if settings.SONAR_BYTES_PER_HOUR:
        limits[None] = settings.SONAR_BYTES_PER_HOUR
    if not limits:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(BYTES_OF_LAST_HOUR, {"since": conditions.now - timedelta(hours=1)})
        used = dict(cursor.fetchall())
    used_by_all = sum(used.values())
    return {
        mesh: limit - (used_by_all if mesh is None else used.get(mesh, 0))
        for mesh, limit in limits.items()
    }


class OverBytesPerHour(Obstacle):
    """The limit on the bytes of an hour, of a mesh or of all of Sonar (SONAR_BYTES_PER_HOUR)."""

    name = "hourly bytes"
    words = "the mesh, or Sonar as a whole, has reached its hourly limit on test bytes"
    effect = Effect.DELAYS
    is_of_room = True

    def filter(self, conditions: RunConditions) -> Q:
        left, matched = conditions.once(bytes_left_this_hour), NOTHING
        for size_class in conditions.size_classes if left else ():
            short = {mesh for mesh, count in left.items() if count < size_class.test_bytes}
            of_mesh = ~NOTHING if None in short else Q(mesh__in=short)
            matched |= Q(size_class=size_class) & of_mesh
        return matched

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        left = conditions.once(bytes_left_this_hour)
        if left.get(None, probe.bytes) < probe.bytes:
            yield Problem("size", "Sonar has reached its hourly limit on test bytes.")
        if probe.mesh_id and left.get(probe.mesh_id, probe.bytes) < probe.bytes:
            sentence = f"The mesh {probe.mesh} has reached its hourly limit on test bytes."
            yield Problem("size", sentence)

    def counts(self, conditions: RunConditions) -> bool:
        return bool(conditions.once(bytes_left_this_hour))

    def has_room(self, conditions: RunConditions, start: Start) -> bool:
        left = conditions.once(bytes_left_this_hour)
        return all(left.get(limit, start.bytes) >= start.bytes for limit in {None, start.mesh})

    def take(self, conditions: RunConditions, start: Start) -> None:
        left = conditions.once(bytes_left_this_hour)
        for limit in {None, start.mesh} & left.keys():
            left[limit] -= start.bytes

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        """Warn of tests that are larger than an hour may have."""
        limits = [limit for limit in (mesh.bytes_per_hour, settings.SONAR_BYTES_PER_HOUR) if limit]
        if not limits:
            return ""
        least = min(limits)
        tested = [each.size_class for each in conditions.intervals if each.mesh_id == mesh.id]
        too_large = [f"“{each.name}”" for each in tested if each.test_bytes > least]
        if not too_large:
            return ""
        classes, these = "size class", "this size class"
        if len(too_large) > 1:
            classes, these = "size classes", "these size classes"
        return (
            f"Tests in {classes} {' and '.join(too_large)} never run, because a test file exceeds "
            f"the hourly limit of {format_bytes(least)}. Raise the limit, or remove {these} from "
            "the mesh."
        )


class CircuitOpen(Obstacle):
    """An end that keeps failing is tested thinly; what people order is tested all the same."""

    name = "circuit"
    words = "tests of an endpoint keep failing, so it is tested less often"
    is_of_room = True

    def filter(self, conditions: RunConditions) -> Q:
        return either_end(conditions.capacity.resting)

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        for field, end in ends_of(probe):
            if end.id in conditions.capacity.resting:
                yield Problem(
                    field, f"Tests of {end.name} keep failing, so it is tested less often."
                )


class LinkBusy(Obstacle):
    name = "link"
    words = "another test of the link has not finished: each link runs one test at a time"
    effect = Effect.DELAYS
    is_of_room = is_of_tests = True

    def filter(self, conditions: RunConditions) -> RawSQL:
        """Look links up by their hash, as one number: the ids of endpoints have 16 bits.

        A join with the probes would depend on statistics, which lag behind (see READ_AS_QUEUE).
        """
        links = [source << 16 | destination for source, destination in conditions.capacity.busy]
        return RawSQL(LINK_IN, [links], output_field=BooleanField())  # noqa: S611 - numbers

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        if (probe.source_id, probe.destination_id) in conditions.capacity.busy:
            yield Problem("destination", "Another test of this link is running.")


class AtCap(Obstacle):
    name = "cap"
    words = "an endpoint, or Sonar itself, is running as many tests as its cap allows"
    effect = Effect.DELAYS
    is_of_room = is_of_tests = True

    def filter(self, conditions: RunConditions) -> Q:
        capacity = conditions.capacity
        full = Q(source__in=exhausted(capacity.outbound))
        return full | Q(destination__in=exhausted(capacity.inbound))

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        capacity, source, destination = conditions.capacity, probe.source, probe.destination
        if capacity.outbound[source.id] <= 0:
            cap = _tests(source.outbound_cap)
            yield Problem(
                "source",
                f"{source.name} is already sending files in {cap}, the maximum that its cap "
                "allows.",
            )
        if capacity.inbound[destination.id] <= 0:
            cap = _tests(destination.inbound_cap)
            yield Problem(
                "destination",
                f"{destination.name} is already receiving files in {cap}, the maximum that its cap "
                "allows.",
            )


class InFlight(Obstacle):
    """Sonar's own cap, SONAR_IN_FLIGHT, which holds back nothing that people order."""

    name = "cap"
    words = AtCap.words
    is_of_room = is_of_tests = True

    def filter(self, conditions: RunConditions) -> Q:
        return NOTHING if conditions.capacity.in_flight > 0 else ~NOTHING

    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        if conditions.capacity.in_flight <= 0:
            yield Problem("", "Sonar is already running as many tests as SONAR_IN_FLIGHT allows.")


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


OBSTACLES: tuple[Obstacle, ...] = (
    AllStopped(),
    # First what does not pass by itself.
    CredentialGivenAway(),
    CredentialFails(),
    TwoVantages(),
    NoWorkerThere(),
    NoWorker(),
    NotEnabled(),
    Paused(),
    Down(),
    QuietMesh(),
    QuietSite(),
    OverBudget(),
    OverBytesPerHour(),
    CircuitOpen(),
    LinkBusy(),
    AtCap(),
    InFlight(),
)
"""The first that a test has is the reason why it waits."""
COUNTING = tuple(obstacle for obstacle in OBSTACLES if type(obstacle).take is not Obstacle.take)
"""Those that count what starts; what Capacity counts it counts itself."""
BY_NAME = {obstacle.name: obstacle for obstacle in reversed(OBSTACLES)}
NAMES = tuple(dict.fromkeys(obstacle.name for obstacle in OBSTACLES))


def delaying(conditions: RunConditions, probe: Probe) -> tuple[Obstacle, str] | None:
    """Return what a test that was ordered waits for, with the sentence; None if for nothing."""
    for obstacle in OBSTACLES:
        if obstacle.effect in {Effect.REFUSES, Effect.DELAYS}:
            for problem in obstacle.blocks(conditions, probe):
                return obstacle, problem.sentence
    return None


def refusing(conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
    """Yield why a test that is being ordered cannot run, however long it waits."""
    for obstacle in OBSTACLES:
        if obstacle.effect in {Effect.REFUSES, Effect.REFUSES_NEW}:
            yield from obstacle.blocks(conditions, probe)


NAMED = frozenset(
    obstacle.name
    for obstacle in OBSTACLES
    if obstacle.effect is not Effect.NONE and not obstacle.is_of_room
)
"""Reasons that end when a person acts: `why_waiting` names the endpoint."""


def why_waiting(schedules: Collection[int], now: datetime) -> dict[str, list[str]]:
    """Say in sentences what these scheduled tests (ids) wait for, by reason: one for each endpoint.

    Sentences are for all readers. One SQL query, and what the obstacles read.
    """
    by_reason: dict[str, dict[object, str]] = {}
    conditions = RunConditions(now)
    related = ("mesh", "size_class", *(f"{end}__site" for end in ("source", "destination")))
    rows = Schedule.objects.filter(pk__in=schedules, skipped_because__in=NAMED).order_by("id")
    for row in rows.select_related(*related, *rules.WITH_CREDENTIALS):
        test = Probe(
            source=row.source,
            destination=row.destination,
            mesh=row.mesh,
            mover=row.mesh.mover,
            mode=row.mesh.mode,
            size_class=row.size_class,
            bytes=row.size_class.test_bytes,
        )
        for obstacle in OBSTACLES:
            if obstacle.name == row.skipped_because:
                for field, sentence in obstacle.blocks(conditions, test):
                    place = getattr(row, f"{field}_id", field)
                    by_reason.setdefault(obstacle.name, {}).setdefault(place, sentence)
    rest = "Tests also wait for {} for similar reasons."
    return {reason: first_few([*named.values()], rest) for reason, named in by_reason.items()}


def waits_because_of(schedule: Schedule, now: datetime) -> str:
    """Say what a scheduled test waits for, or will wait for: `quiet hours of RAL, 01:00-05:00 UTC`.

    Empty if for nothing. What held it when tests were last planned may be over: then its name.
    """
    reason = schedule.skipped_because
    obstacle = BY_NAME.get(reason or Paused.name)
    said = (obstacle.about(schedule, now) if obstacle else "") or reason
    if said != reason or reason not in NAMED:
        return said
    sentences = why_waiting([schedule.pk], now).get(reason, [])
    return f"{reason} ({sentences[0].rstrip('.')})" if sentences else reason


class Advice(NamedTuple):
    """What an obstacle holds back of meshes, by their names, until somebody acts."""

    obstacle: str
    meshes: tuple[str, ...]
    sentence: str

    @property
    def subject(self) -> str:
        return f"the mesh{'es' if len(self.meshes) > 1 else ''} {', '.join(self.meshes)}"


def all_advice(now: datetime) -> list[Advice]:
    """Say of the meshes in use which of their tests cannot run, and what to do. 2 SQL queries.

    Three more while a mover shows one proxy to both ends, one while there is a limit on bytes.
    """
    conditions = RunConditions(now)
    in_use = sorted((mesh for mesh in conditions.meshes if mesh.enabled), key=attrgetter("name"))
    meshes: dict[tuple[str, str], list[str]] = {}
    for obstacle in OBSTACLES:
        for mesh in in_use:
            if sentence := obstacle.advice(conditions, mesh):
                meshes.setdefault((obstacle.name, sentence), []).append(mesh.name)
    return [Advice(name, tuple(meshes[name, why]), why) for name, why in meshes]


def notice(now: datetime) -> str:
    """Say the same in one line, for whoever saves what meshes use; empty if there is nothing."""
    return " ".join(f"{capfirst(each.subject)}: {each.sentence}" for each in all_advice(now))


def advice_on(mesh: Mesh, now: datetime) -> list[str]:
    """Say the same of one mesh, in sentences."""
    conditions = RunConditions(now)
    return list(filter(None, (obstacle.advice(conditions, mesh) for obstacle in OBSTACLES)))
