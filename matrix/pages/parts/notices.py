"""What readers of any page must know, and what to do: what is not running, failing, or mixed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from matrix.answers.conditions import words as condition_words
from matrix.answers.conditions.reading import Judgement
from matrix.answers.matrix.mixed_ways import MixedWays
from matrix.answers.other_origins import OtherOrigins
from matrix.answers.words.phrases import join
from matrix.query.addresses import address, site_url
from matrix.query.attributes import OF_PROFILES, ORIGIN
from matrix.query.comparison import Comparison, in_order
from matrix.query.filters import FILTERS, Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.database.replica import ReplicaState
from sonar.models import Circuit, Condition, CredentialState, Endpoint, Probe
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute
from sonar.obstacles import credential_states
from sonar.obstacles.catalogue import OBSTACLES
from sonar.people import roles
from sonar.people.roles import Anyone

# How long a due test may wait for the next plan without anything being wrong.
LATE = timedelta(minutes=5)
# Of tests that are due, so many of the oldest are looked at: a budget may hold back millions.
OLDEST_DUE = 1000
MOST_VALUES = 6
# Where half the grid is away, or many endpoints share a credential, the first ones say it.
MOST_FAILING = 10
# By hand: Django takes longer to write this than PostgreSQL to answer it.
AT_HAND = """
    SELECT count(*) FILTER (WHERE state = %(queued)s) AS queued,
           count(*) FILTER (WHERE state = %(running)s) AS running,
           min(coalesce(queued_at, requested_at)) FILTER (WHERE state = %(queued)s)
               AS oldest_queued,
           count(*) FILTER (WHERE state = %(queued)s AND of_size) AS queued_of_size,
           count(*) FILTER (WHERE state = %(running)s AND of_size) AS running_of_size
    FROM (
        SELECT probe.*, size_class.name = %(size)s AS of_size
        FROM sonar_probe probe JOIN sonar_sizeclass size_class ON size_class.id = size_class_id
    ) AS probes
"""
STATES = {"queued": Probe.State.QUEUED, "running": Probe.State.RUNNING}
OVERDUE = """
    SELECT next_due FROM (
        SELECT next_due, skipped_because FROM sonar_schedule WHERE next_due < %s
        ORDER BY next_due LIMIT %s
    ) AS oldest WHERE skipped_because = ANY(%s) ORDER BY next_due LIMIT 1
"""
SEES, SEES_SERVICES = "sonar.view_endpoint", "sonar.view_mesh"


@dataclass(frozen=True)
class Notice:
    """``kind`` names it for style and tests, ``links`` are texts and addresses of what to do.

    A ``quiet`` one is no trouble, only good to know.
    """

    kind: str
    title: str
    sentence: str
    links: tuple[tuple[str, str], ...] = ()
    quiet: bool = False


def work_at_hand(size: str) -> dict[str, Any]:
    """Count the probes that are queued and running: of all sizes, and of one. One SQL query.

    With them comes `oldest_queued`, since when the oldest is queued.
    """
    with connection.cursor() as cursor:
        cursor.execute(AT_HAND, {"size": size, **STATES})
        names = [column.name for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def no_endpoints() -> Notice:
    """Say what to do first, or which step is missing. One SQL query."""
    topology = address("topology")
    if waiting := Endpoint.objects.count():
        return Notice(
            "no-endpoints",
            "No endpoint is in use.",
            f"{counted(waiting, 'endpoint', 'is', 'are')} registered. Drafts and "
            "retired endpoints are not tested.",
            (
                ("An operator can add endpoints that a topology source proposed", topology),
                (
                    "an administrator can edit individual endpoints",
                    address("admin:sonar_endpoint_changelist"),
                ),
            ),
        )
    return Notice(
        "no-endpoints",
        "No endpoints are registered yet.",
        "Sonar measures the rates between registered storage endpoints. To start, register "
        "sites and their endpoints, then add a mesh that defines which links are tested and "
        "how often.",
        (
            ("An operator can import endpoints from CRIC or Rucio", topology),
            ("an operator can add a site", address("add-site")),
        ),
    )


def counted(count: int, noun: str, single: str, several: str) -> str:
    """Say how many there are, with the verb that belongs to it: `1 test is`, `2 tests are`."""
    return f"1 {noun} {single}" if count == 1 else f"{format_count(count)} {noun}s {several}"


def about_work(work: Mapping[str, Any], now: datetime) -> Iterator[Notice]:
    """Say so if nobody takes what is queued, or nothing is planned. One SQL query.

    Tests wait for longer than it takes to send them again, and none runs; or they are due and
    nobody queues them: what has a probe is not due in earnest.
    """
    resend = timedelta(seconds=2 * settings.SONAR_RESEND_SECONDS)
    late = max(LATE, timedelta(seconds=3 * settings.SONAR_PLAN_SECONDS))
    # A cap, or another test of the link, is no reason to wait while nothing runs; downtimes, quiet
    # hours, budgets, open circuits and credentials are. On the front of the index of what is due.
    reasons = {"", *(obstacle.name for obstacle in OBSTACLES if obstacle.is_of_tests)}
    with connection.cursor() as cursor:
        cursor.execute(OVERDUE, [now - late, OLDEST_DUE, sorted(reasons)])
        (overdue,) = cursor.fetchone() or (None,)
    oldest = work["oldest_queued"]
    if oldest and not work["running"] and now - oldest > resend:
        yield Notice(
            "no-workers",
            "No worker is running tests.",
            f"{counted(work['queued'], 'test', 'has', 'have')} been queued since "
            f"{format_minute(oldest)} and none is running. Existing results are not affected. An "
            "administrator can start a worker for the queue “transfers”, or check whether "
            f"{settings.BROKER_NAME} responds.",
        )
    if overdue and not (work["queued"] or work["running"]):
        yield Notice(
            "no-planner",
            "No tests are being scheduled.",
            f"Tests have been due since {format_minute(overdue)} ({format_age(now - overdue)}), "
            "and none is queued or running. Existing results are not affected. An administrator "
            "can start the scheduler (Celery beat) and a worker for the queue “control”.",
        )


def mixed(
    query: MatrixQuery, address: Callable[[MatrixQuery], str], mixture: MixedWays, cells: str = ""
) -> Notice | None:
    """Name the ways that results are mixed of; ``cells`` are what there are several of, if any.

    ``address`` is that of another question on the same page.
    """
    if not mixture.mixed:
        return None
    subject = "These numbers mix"
    if cells and mixture.cells > 1:
        subject = f"{format_count(mixture.mixed)} of {format_count(mixture.cells)} {cells} mix"
    phrases, links = [], []
    for name, values in mixture.values.items():
        attribute, first = OF_PROFILES[name], values[:MOST_VALUES]
        shown = [attribute.words.get(value, value) for value in first]
        listed = join(shown if len(values) <= MOST_VALUES else [*shown, "others"])
        says = attribute.says or f"with {attribute.title}"
        # With 1, 2 and 4 streams.
        phrases.append(f"with {listed} streams" if name == "streams" else f"{says} {listed}")
        for condition in (Filter(name, value) for value in first):
            words = condition.words().removeprefix("only ").removeprefix("with ")
            if len(mixture.values) == 1:
                words = condition.value
            links.append((words, address(with_filter(query, condition))))
    title = f"{subject} tests {', '.join(phrases)}."
    return Notice("pooled", title, "Show only:", tuple(links), quiet=True)


def about_others(
    query: MatrixQuery, address: Callable[[MatrixQuery], str], others: OtherOrigins
) -> Notice | None:
    """Say which results of other origins do not count, and lead to them; None without any."""
    if not others.counts:
        return None
    origins = tuple(Filter(ORIGIN, origin) for origin in others.counts)
    compare = query.compare or Comparison()
    others_kept = [each for each in compare.filters if each.parameter != ORIGIN]
    compared = query.replace(compare=replace(compare, filters=in_order([*others_kept, *origins])))
    every = Filter(ORIGIN, OF_PROFILES[ORIGIN].every)
    links = [
        ("Compare these results with test results", address(compared)),
        *((f"Show only {each.value}", address(with_filter(query, each))) for each in origins),
        ("Show all origins", address(with_filter(query, every))),
    ]
    verb = "is" if others.total == 1 else "are"
    title = (
        f"{others.words} in this time range {verb} not counted: rates and states are based on "
        "tests."
    )
    return Notice("other-origins", title, "", tuple(links), quiet=True)


def with_filter(query: MatrixQuery, condition: Filter) -> MatrixQuery:
    """Ask for one value of an attribute alone."""
    others = [
        other for other in query.filters if other.parameter != condition.parameter or other.exclude
    ]
    filters = sorted((*others, condition), key=lambda each: FILTERS.index(each.parameter))
    return query.replace(filters=tuple(filters))


def failing_endpoints(
    judgement: Judgement, circuits: Sequence[Circuit], now: datetime
) -> list[Notice]:
    """Say of each endpoint or site that fails on how many links and since when, confirmed first.

    The last error is that of its open circuit, if it has one. Conditions that began while results
    were doubtful are left out.
    """
    errors: dict[int | str, Circuit] = {}
    for each in circuits:
        errors |= {each.endpoint_id: each, each.endpoint.site.name: each}
    lasting = judgement.listed(judgement.open)
    lasting.sort(key=lambda condition: condition.confirmed_at is None)
    failing = [
        condition
        for condition in lasting
        if condition.type == Condition.Type.FAILING
        if condition.scope != Condition.Scope.LINK
    ]
    notices = []
    for condition in failing[:MOST_FAILING]:
        unconfirmed = [] if condition.confirmed_at else ["unconfirmed"]
        since = condition_words.since(condition)
        sentence = ", ".join([*condition_words.evidence(condition), since, *unconfirmed])
        end = condition.source_id or condition.destination_id
        if circuit := errors.get(end or condition_words.name(condition)):
            sentence += f". {last_error(circuit, now)}"
        (site,) = condition_words.site_names(condition)
        title = condition_words.title(condition)
        notices.append(Notice("circuit", title, sentence, site_links(site)))
    if more := len(failing) - len(notices):
        title = f"{counted(more, 'more endpoint', 'fails', 'fail')}."
        sentence = "The API lists the state of each endpoint at endpoints/state/."
        notices.append(Notice("circuit", title, sentence))
    return notices


def failures_in_a_row(circuits: Iterable[Circuit], now: datetime) -> list[Notice]:
    """Say of each endpoint with an open circuit how many tests failed, since when and why."""
    return [
        Notice(
            "circuit",
            f"{'1 test' if each.failures == 1 else f'{format_count(each.failures)} tests in a row'}"
            f" failed because of {each.endpoint.name}",
            f"since {format_minute(each.since)}. {last_error(each, now)}",
        )
        for each in circuits
    ]


def last_error(circuit: Circuit, now: datetime) -> str:
    return (
        f"Tests of this endpoint run less often until one succeeds. Last error "
        f"({format_age(now - circuit.last_at)}): {circuit.error}"
    )


def failing_credentials(
    states: Sequence[CredentialState], now: datetime, reader: Anyone
) -> list[Notice]:
    """Say of each since when it is in trouble and what that means.

    Links of its endpoint or mesh say nothing while their tests wait. Which credential it is, and
    what is wrong, is for who may see that.
    """
    notices = []
    for state in states[:MOST_FAILING]:
        subject = credential_states.subject(state.place, state.role)
        trouble = "does not work" if state.holds else "needs attention"
        effect = (
            "Tests that need this credential are waiting." if state.holds else "Tests still run."
        )
        began = f"{format_minute(state.since)} ({format_age(now - state.since)})"
        sentence = f"The problem began at {began}. {effect}"
        if state.expires_at:
            sentence += f" The credential expires at {format_minute(state.expires_at)}."
        sites = [state.endpoint.site_id] if state.endpoint else []
        if roles.may(reader, SEES if state.endpoint else SEES_SERVICES, sites):
            credential = state.credential
            sentence += f" Credential {credential.name} ({credential.kind}): {state.sentence}."
        links = site_links(state.endpoint.site.name) if state.endpoint else ()
        notices.append(Notice("credential", f"{subject} {trouble}.", sentence, links))
    if more := len(states) - len(notices):
        title = f"{counted(more, 'more credential', 'needs', 'need')} attention."
        notices.append(Notice("credential", title, "The API lists all credentials at status/."))
    return notices


def site_links(site: str) -> tuple[tuple[str, str], ...]:
    return ((f"Open {site}", site_url(site, MatrixQuery())),)


def of_replica(state: ReplicaState | None) -> Iterator[Notice]:
    """Say why the replica, where there is one, answers no readers."""
    if state and state.problem:
        sentence = f"{state.problem} The primary database serves read requests instead."
        yield Notice("no-replica", "The database replica is not serving read requests:", sentence)
