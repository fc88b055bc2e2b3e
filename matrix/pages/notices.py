"""What readers of any page must know, and what to do: what is not running, or mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from matrix.answers.link.class_words import join
from matrix.answers.mixed_ways import MixedWays
from matrix.query.addresses import address
from matrix.query.attributes import OF_PROFILES
from matrix.query.filters import FILTERS, Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Probe, Schedule
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute
from sonar.obstacles.catalogue import OBSTACLES

# How long a due test may wait for the next plan without anything being wrong.
LATE = timedelta(minutes=5)
# Of tests that are due, so many of the oldest are looked at: a budget may hold back millions.
OLDEST_DUE = 1000
MOST_VALUES = 6


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


@dataclass(frozen=True)
class WorkAtHand:
    """What is queued and running: of all sizes, and of the size that is shown."""

    queued: int
    running: int
    oldest_queued: datetime | None
    queued_of_size: int
    running_of_size: int

    @classmethod
    def read(cls, size: str) -> WorkAtHand:
        """Count the probes, which are few. One SQL query."""
        queued, running = Q(state=Probe.State.QUEUED), Q(state=Probe.State.RUNNING)
        of_size = Q(size_class__name=size)
        counts = Probe.objects.aggregate(
            queued=Count("id", filter=queued),
            running=Count("id", filter=running),
            oldest_queued=Min(Coalesce("queued_at", "requested_at"), filter=queued),
            queued_of_size=Count("id", filter=queued & of_size),
            running_of_size=Count("id", filter=running & of_size),
        )
        return cls(**counts)


def no_endpoints() -> Notice:
    return Notice(
        "no-endpoints",
        "No endpoints are registered yet.",
        "Sonar measures the rates between registered storage endpoints. It needs sites and their "
        "endpoints, then a mesh that says which links are tested and how often.",
        (("An administrator can add a site in the admin", address("admin:sonar_site_add")),),
    )


def no_workers(work: WorkAtHand, now: datetime) -> Notice | None:
    """Say so if tests are queued for longer than it takes to send them again, and none runs."""
    resend = timedelta(seconds=2 * settings.SONAR_RESEND_SECONDS)
    if work.running or work.oldest_queued is None or now - work.oldest_queued <= resend:
        return None
    return Notice(
        "no-workers",
        "No worker takes tests.",
        f"{tests_have(work.queued)} been queued since {format_minute(work.oldest_queued)} and "
        "none is "
        "running. Existing results are not affected. An administrator can start a worker "
        "for the queue “transfers”, or check whether Redis answers.",
    )


def tests_are(count: int) -> str:
    return "1 test is" if count == 1 else f"{format_count(count)} tests are"


def tests_have(count: int) -> str:
    return "1 test has" if count == 1 else f"{format_count(count)} tests have"


def overdue_since(now: datetime) -> datetime | None:
    """Return when the oldest test fell due for which the planner has given no reason to wait.

    One SQL query on the front of the index of what is due. A cap, or another test of the link, is
    no reason while nothing runs; downtimes, quiet hours, budgets, open circuits and credentials
    are.
    """
    reasons = {"", *(obstacle.name for obstacle in OBSTACLES if obstacle.is_of_tests)}
    late = max(LATE, timedelta(seconds=3 * settings.SONAR_PLAN_SECONDS))
    due = Schedule.objects.filter(next_due__lt=now - late).order_by("next_due")
    rows = due.values_list("next_due", "skipped_because")[:OLDEST_DUE]
    return next((next_due for next_due, reason in rows if reason in reasons), None)


def no_planner(work: WorkAtHand, overdue: datetime | None, now: datetime) -> Notice | None:
    """Say so if tests are due and nobody queues them: what has a probe is not due in earnest."""
    if overdue is None or work.queued or work.running:
        return None
    return Notice(
        "no-planner",
        "No tests are being planned.",
        f"Tests have been due since {format_minute(overdue)} ({format_age(now - overdue)}), and "
        "none is "
        "queued or running. Existing results are not affected. An administrator can start "
        "beat and a worker for the queue “control”.",
    )


def mixed(
    query: MatrixQuery,
    address: Callable[[MatrixQuery], str],
    mixture: MixedWays,
    cells: str = "",
) -> Notice | None:
    """Name the ways that results are mixed of; ``cells`` are what there are several of, if any.

    ``address`` is that of another question on the same page.
    """
    if not mixture.mixed:
        return None
    subject = "Mixes"
    if cells and mixture.cells > 1:
        subject = f"{format_count(mixture.mixed)} of {format_count(mixture.cells)} {cells} mix"
    conditions = [
        Filter(name, value)
        for name, values in mixture.values.items()
        for value in values[:MOST_VALUES]
    ]
    phrases = [way_words(name, values) for name, values in mixture.values.items()]
    return Notice(
        "pooled",
        f"{subject} tests {', '.join(phrases)}.",
        "Show only:",
        tuple(
            (
                condition.value if len(phrases) == 1 else single_words(condition),
                address(with_filter(query, condition)),
            )
            for condition in conditions
        ),
        quiet=True,
    )


def way_words(name: str, values: Sequence[str]) -> str:
    """Say the values of an attribute that are mixed: `with 1, 2 and 4 streams`."""
    attribute = OF_PROFILES[name]
    shown = [attribute.words.get(value, value) for value in values[:MOST_VALUES]]
    listed = join(shown if len(values) <= MOST_VALUES else [*shown, "others"])
    if name == "streams":
        return f"with {listed} streams"
    return f"{attribute.says or f'with {attribute.title}'} {listed}"


def single_words(condition: Filter) -> str:
    return condition.words().removeprefix("only ").removeprefix("with ")


def with_filter(query: MatrixQuery, condition: Filter) -> MatrixQuery:
    """Ask for one value of an attribute alone."""
    others = [
        other for other in query.filters if other.parameter != condition.parameter or other.exclude
    ]
    filters = sorted((*others, condition), key=lambda each: FILTERS.index(each.parameter))
    return query.replace(filters=tuple(filters))
