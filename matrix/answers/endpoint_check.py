"""The newest check of an endpoint, as a reader may see it: its steps, and what is to be said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from sonar.models import Endpoint, EndpointCheck
from sonar.notation import check_steps
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.units import format_span
from sonar.notation.vantages import at
from sonar.notation.windows import format_moment
from sonar.obstacles.worker_movers import CLEANUP
from sonar.ordering import request_checks
from sonar.redaction.servers import Servers
from sonar.registry import redacted

CheckState = Literal["waiting", "running", "done", "lost"]
SOON = timedelta(seconds=20)
"""Within which a worker that is there begins."""
HIDDEN = "Only operators and site admins of this endpoint can see this result."


@dataclass(frozen=True)
class CheckReport:
    """A check at one moment; ``lost`` is one whose worker died."""

    check: EndpointCheck
    state: CheckState
    steps: Sequence[CheckStep]
    is_late: bool = False
    """Whether it has waited for longer than a worker needs that is there."""
    sentence: str = ""
    """How far it is, or how it ended."""
    changed: Sequence[str] = ()
    """Fields of the endpoint that were changed after the order, so the check is silent on them."""

    @property
    def is_open(self) -> bool:
        """Say whether more of it is to come."""
        return self.state in ("waiting", "running")

    @property
    def wrong(self) -> int:
        return sum(step.is_wrong for step in self.steps)

    @property
    def failed(self) -> int:
        return sum(step.state == StepState.FAILED for step in self.steps)

    @property
    def changed_words(self) -> str:
        """Name what was changed: `base URL and credential`; empty for nothing."""
        return " and ".join(self.changed)


def of_endpoint(endpoint: Endpoint, now: datetime, *, internal: bool) -> CheckReport | None:
    """Return the newest check, None if there was none; hosts and addresses only if ``internal``.

    One SQL query, and one more where places are to be hidden.
    """
    rows = EndpointCheck.objects.select_related("requested_by")
    check = rows.filter(endpoint=endpoint).first()
    if check is None:
        return None
    check.endpoint = endpoint
    steps = check_steps.read(check.steps)
    if not internal and steps:
        servers = redacted.servers()
        steps = [public(step, endpoint, servers) for step in steps]
    state = state_of(check, now)
    is_late = state == "waiting" and now - check.requested_at > SOON
    changed = request_checks.changed_since(check)
    report = CheckReport(check, state, steps, is_late, changed=changed)
    return replace(report, sentence=sentence(report, now))


def why_not_start(report: CheckReport | None) -> str:
    """Say what speaks against testing an endpoint now; empty after a check that did not fail."""
    if report is None:
        return "This endpoint has not been checked yet."
    if report.changed:
        return f"This endpoint has not been checked since its {report.changed_words} was changed."
    if report.is_open:
        return "The check of this endpoint has not finished yet."
    if report.state == "lost":
        return "The check of this endpoint did not finish."
    if not report.failed:
        return ""
    steps = "a step" if report.failed == 1 else f"{report.failed} steps"
    return f"The check of this endpoint failed in {steps}, so its tests are likely to fail."


def public(step: CheckStep, endpoint: Endpoint, servers: Servers) -> CheckStep:
    """Return a step as all readers see it; its secrets are gone since before it was kept."""
    if step.tells_where:
        return replace(step, seen=HIDDEN, advice="")
    seen, advice = (servers.hide(text, [endpoint.name]) for text in (step.seen, step.advice))
    return replace(step, seen=seen, advice=advice)


def state_of(check: EndpointCheck, now: datetime) -> CheckState:
    if check.ended_at:
        return "done"
    if check.started_at is None:
        return "waiting"
    return "running" if request_checks.is_running(check, now) else "lost"


def sentence(report: CheckReport, now: datetime) -> str:
    """Say in a sentence or two how far a check is, or how it ended."""
    check = report.check
    if report.is_late:
        waited = format_span(now - check.requested_at)
        return (
            f"No worker has started the check in {waited}. The worker for the queue "
            f"“{at(CLEANUP, check.endpoint.vantage)}” may not be running."
        )
    if report.state == "waiting":
        return "The check is waiting for a worker."
    if report.state == "running":
        return f"The check is running; steps so far: {len(report.steps)}."
    if report.state == "lost":
        return "The check did not finish because its worker was stopped. Check the endpoint again."
    ended = f"Checked {format_moment(check.ended_at or now)}"
    if report.changed:
        return f"{ended}, before its {report.changed_words} was changed: check the endpoint again."
    things = "1 step needs" if report.wrong == 1 else f"{report.wrong} steps need"
    return f"{ended}: {f'{things} attention' if report.wrong else 'nothing is wrong'}."
