"""Steps of a check one after the other: those that need one that failed are not tried."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from sonar.movers.base import Late, MoverError, Stopped
from sonar.movers.watch import Watch, as_failures
from sonar.notation.check_steps import BLOCKING, STEPS, CheckStep, StepState

Look = Callable[[], CheckStep]
"""Takes a step, or raises MoverError, which is a step that failed."""


@dataclass(frozen=True)
class PlannedStep:
    """A step to take, once those that it needs are taken and did not fail."""

    name: str
    look: Look
    needs: tuple[str, ...] = ()


def run(
    planned: Iterable[PlannedStep], watch: Watch, tell: Callable[[CheckStep], None]
) -> list[CheckStep]:
    """Take the steps in their order, and tell each as soon as it is known; none raises."""
    taken: dict[str, CheckStep] = {}
    for plan in planned:
        failed = next((need for need in plan.needs if taken[need].state in BLOCKING), None)
        step = not_tried(plan.name, failed) if failed else attempted(plan, watch)
        taken[plan.name] = step
        tell(step)
    return list(taken.values())


def attempted(plan: PlannedStep, watch: Watch) -> CheckStep:
    try:
        with as_failures(f"the step {plan.name} of a check", watch):
            watch.check()
            return plan.look()
    except Stopped:
        return CheckStep(plan.name, StepState.NOT_TRIED, "The worker was stopped before.")
    except MoverError as error:
        return CheckStep(plan.name, StepState.FAILED, sentence(str(error)), advice_on(error))


def not_tried(name: str, failed: str) -> CheckStep:
    return CheckStep(name, StepState.NOT_TRIED, f"It needs “{STEPS[failed].label}”.")


def sentence(text: str) -> str:
    """Return the words of an error as a sentence; the name of a host stays as it is written."""
    first = text.partition(" ")[0]
    begun = f"{text[:1].upper()}{text[1:]}" if first.isalpha() else text
    return f"{begun.rstrip('.')}."


BY_STATUS = {
    401: "Compare the issuer, audience and end of its credential with what the server trusts. If "
    "it has none, register one.",
    403: "Its credential must allow reading, writing and deleting in sonar/ below the base URL. "
    "That is storage.modify, or UPLOAD, DOWNLOAD, DELETE, MANAGE and LIST of a macaroon. If it has "
    "none, register one.",
    404: "Compare the path of the base URL with the server's own paths.",
    405: "Enable this method below the base URL.",
    409: "Check that the directory above exists, and that nothing else has its name.",
    501: "Enable this method: a module for it may not be loaded.",
    507: "Free some space, or raise the quota.",
}
"""By the status with which a server refuses."""


def advice_on(error: MoverError) -> str:
    """Say what to do about a step that failed so."""
    if error.refused_server:
        return f"If {error.refused_server} belongs to this storage, declare it as a data host."
    if error.status in BY_STATUS:
        return BY_STATUS[error.status]
    at = f"{datetime.now(UTC):%H:%M:%S} UTC"
    if isinstance(error, Late):
        return f"It took the request and did not answer: look at its log of {at} and before."
    return f"Look at its log of {at}."
