"""How a single result, or a test that has not ended, stands on a page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from matrix.answers.link.class_words import shortened
from matrix.pages.transfer.facts import profile_words
from matrix.store.transfers import rate_of
from sonar.models import Probe, Transfer
from sonar.notation.units import format_age, format_bytes, three_digits

LONGEST_HOVER = 1000


@dataclass(frozen=True)
class TransferLine:
    """One line in a list of results. ``rate`` in MB/s, NaN unless it is done."""

    transfer: Transfer
    rate: float
    why_no_rate: str
    seconds: str
    error: str
    hover: str

    @classmethod
    def of(cls, transfer: Transfer) -> TransferLine:
        why_no_rate = "failed: it has no rate"
        if transfer.state == Transfer.State.LOST:
            why_no_rate = "lost: its worker died, so there is no rate"
        return cls(
            transfer,
            rate_of(transfer),
            why_no_rate,
            three_digits(transfer.seconds),
            error=shortened(transfer.error),
            hover=transfer.error[:LONGEST_HOVER],
        )

    @property
    def profile_words(self) -> str:
        """Say how it was measured, and that it had company if it had."""
        profile = self.transfer.profile
        company = ", alongside other tests" if profile.beside else ""
        return f"{profile_words(profile)}{company}"


def progress_words(probe: Probe) -> str:
    """Say how far a running test is; nothing for one that is queued."""
    if probe.state != Probe.State.RUNNING:
        return ""
    share = f"{100 * probe.progress_bytes / probe.bytes:.0f} %"
    return f"{format_bytes(probe.progress_bytes)} of {format_bytes(probe.bytes)} ({share})"


def until_words(moment: datetime, now: datetime) -> str:
    """Say when something is to come, or by how much it is overdue."""
    if moment > now:
        return f"in {format_age(moment - now).removesuffix(' ago')}".replace("in just now", "now")
    if now - moment < timedelta(minutes=1):
        return "now"
    return f"overdue by {format_age(now - moment).removesuffix(' ago')}"


def every_words(seconds: int) -> str:
    """Write an interval without rounding it: `every 90 min`."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    unit, factor = next((unit, factor) for unit, factor in units if seconds % factor == 0)
    return f"every {seconds // factor} {unit}"
