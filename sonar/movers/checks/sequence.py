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
        with as_failures(f"step {plan.name} of an endpoint check", watch):
            watch.check()
            return plan.look()
    except Stopped:
        return CheckStep(plan.name, StepState.NOT_TRIED, "The worker was stopped before this step.")
    except MoverError as error:
        return CheckStep(plan.name, StepState.FAILED, sentence(str(error)), advice_on(error))


def not_tried(name: str, failed: str) -> CheckStep:
    return CheckStep(
        name, StepState.NOT_TRIED, f"This step needs “{STEPS[failed].label}” to succeed first."
    )


def sentence(text: str) -> str:
    """Return the words of an error as a sentence; the name of a host stays as it is written."""
    first = text.partition(" ")[0]
    begun = f"{text[:1].upper()}{text[1:]}" if first.isalpha() else text
    return f"{begun.rstrip('.')}."


BY_STATUS = {
    401: "Check that the server accepts the issuer and audience of the credential, and that the "
    "credential has not expired. If the endpoint has no credential, register one.",
    403: "The credential must allow reading, writing and deleting in sonar/ below the base URL. A "
    "token needs storage.modify. A macaroon needs UPLOAD, DOWNLOAD, DELETE, MANAGE and LIST. If "
    "the endpoint has no credential, register one.",
    404: "Compare the path of the base URL with the paths that exist on the server.",
    405: "Enable this HTTP method on the server for paths below the base URL.",
    409: "Check that the parent directory of the file exists, and that it is a directory and not a "
    "file.",
    501: "Enable this HTTP method on the server: perhaps the module that provides the method is "
    "not loaded.",
    507: "Free some space on the storage, or raise its quota.",
}
"""By the status with which a server refuses."""


def advice_on(error: MoverError) -> str:
    """Say what to do about a step that failed so."""
    if error.refused_server:
        server = error.refused_server
        return f"If {server} belongs to this storage, declare it as a data host of the endpoint."
    if error.status in BY_STATUS:
        return BY_STATUS[error.status]
    at = f"{datetime.now(UTC):%H:%M:%S} UTC"
    if isinstance(error, Late):
        return (
            "The server accepted the request but did not answer: check its log for entries up to "
            f"{at}."
        )
    return f"Check the log of the server for entries at {at}."
