"""The steps of a check of an endpoint: what each looks at, and how one that was taken is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class StepState(StrEnum):
    """How a step ended, as pages, commands and the API call it."""

    FINE = "fine"
    WARNING = "warning"
    """Tests can run, but action is advised."""
    FAILED = "failed"
    NOT_TRIED = "not tried"
    """A step that this one needs has failed."""
    NOT_CHECKED = "not checked"
    """Does not apply, or cannot be determined; not a fault."""


WRONG = frozenset({StepState.WARNING, StepState.FAILED})
"""States that require action."""
BLOCKING = frozenset({StepState.FAILED, StepState.NOT_TRIED})
"""After these, the steps that need them are not tried."""


class StepDescription(NamedTuple):
    """A step as readers see it."""

    label: str
    tells_where: bool = False
    """Whether what was seen says where servers are: only for who may see that."""


STEPS: Mapping[str, StepDescription] = {
    "name": StepDescription("Host name", tells_where=True),
    "port": StepDescription("Port", tells_where=True),
    "certificate": StepDescription("Certificate", tells_where=True),
    "credential": StepDescription("Credential", tells_where=True),
    "base": StepDescription("Base directory", tells_where=True),
    "directory": StepDescription("Test directory"),
    "write": StepDescription("Write"),
    "read": StepDescription("Read back"),
    "redirects": StepDescription("Redirects", tells_where=True),
    "checksum": StepDescription("Checksum"),
    "copy": StepDescription("Third-party copy"),
    "delete": StepDescription("Delete"),
    "clock": StepDescription("Clock"),
}
"""By name, in their order."""


@dataclass(frozen=True)
class CheckStep:
    """A step that was taken: what was seen, and what to do about it, in sentences."""

    name: str
    state: StepState
    seen: str
    advice: str = ""
    """Empty where nothing is to be done."""

    @property
    def label(self) -> str:
        return STEPS[self.name].label

    @property
    def tells_where(self) -> bool:
        return STEPS[self.name].tells_where

    @property
    def is_wrong(self) -> bool:
        """Say whether somebody has to do something."""
        return self.state in WRONG

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def read(kept: Iterable[Mapping[str, Any]]) -> list[CheckStep]:
    """Read the steps of a check; those that only another version of Sonar has are left out."""
    return [
        CheckStep(**{**values, "state": StepState(values["state"])})
        for values in kept
        if values["name"] in STEPS
    ]
