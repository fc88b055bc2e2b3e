"""Transfers on pages: a line in a list, facts of one, how far a test is, what happened inside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from matrix.answers.link.rate_profile import SHAPE_WORDS, TransferProfiles, verb
from matrix.answers.words.phrases import shortened
from matrix.plots.rates import share_figure
from matrix.statistics.transfers.rate_profile import Stretch
from matrix.store.transfers import rate_of
from sonar.models import Downtime, Probe, Profile, Transfer
from sonar.notation.enumeration import either
from sonar.notation.result_columns import COLUMNS
from sonar.notation.scitags import Scitag
from sonar.notation.units import (
    format_bytes,
    format_estimate,
    format_seconds,
    format_span,
    three_digits,
)
from sonar.results.store import is_made_up

# Servers send a progress marker about every 5 s.
MARKER_SECONDS = 6.0
NO_FILE = "This is demo data: no file was transferred."
IMPORTED = "Imported results have no progress samples."


def facts_of(transfer: Transfer, *, internal: bool) -> dict[str, list[tuple[str, str]]]:
    """Return label and words of the columns that have a value, by what they stand behind.

    Those that name machines are there if ``internal``.
    """
    facts = defaultdict[str, list[tuple[str, str]]](list)
    for column in COLUMNS:
        if column.fact is None or (column.internal and not internal):
            continue
        value = getattr(transfer, column.name)
        if value not in (None, ""):
            text = format_seconds(value) if column.unit == "s" else str(value)
            facts[column.fact.after].append((column.fact.label, column.fact.words.format(text)))
    return dict(facts)


def streams_words(streams: int, streams_used: Iterable[int | None]) -> str:
    """Say how many streams were asked for and used: `4 asked for, 1 used`."""
    numbers = list(streams_used)
    if numbers == [streams]:
        return str(streams)
    if numbers == [None]:
        return f"{streams} requested, actual number unknown"
    texts = ["not known" if number is None else str(number) for number in numbers]
    return f"{streams} requested, {either(texts)} used"


def buffer_words(transfer: Transfer) -> str:
    """Say which TCP buffer was asked for and used; nothing where neither is known."""
    requested, used = transfer.profile.tcp_buffer_bytes, transfer.tcp_buffer_used_bytes
    if requested is None:
        return "" if used is None else f"{format_bytes(used)} used"
    if used == requested:
        return format_bytes(requested)
    in_use = "actual size unknown" if used is None else f"{format_bytes(used)} used"
    return f"{format_bytes(requested)} requested, {in_use}"


def scitag_words(scitag: int | None) -> str:
    """Say a flow label with its two parts; nothing for none."""
    if scitag is None:
        return ""
    parts = Scitag.of(scitag)
    return f"{parts} (experiment {parts.experiment}, activity {parts.activity})"


def profile_words(profile: Profile) -> str:
    """Say how a result was made: `http-tpc push, 4 streams requested, 1 used, IPv6, on demand`."""
    if is_made_up(profile):
        return "demo data"
    mover = f"{profile.mover} {profile.mode}".strip()
    streams = "1 stream" if profile.streams == 1 else f"{profile.streams} streams"
    if profile.streams_used is None:
        streams = f"{streams} requested"
    elif profile.streams_used != profile.streams:
        streams = f"{streams} requested, {profile.streams_used} used"
    parts = [mover, streams, f"IPv{profile.ip_version}" if profile.ip_version else ""]
    if profile.purpose != Profile.Purpose.SCHEDULED:
        parts.append(purpose_words(profile.purpose))
    return ", ".join(filter(None, parts))


def purpose_words(purpose: str) -> str:
    """Return the purpose of a test as pages show it; the API says `ordered` for on-demand tests."""
    return "on demand" if purpose == Profile.Purpose.ORDERED else purpose


def concurrent_words(transfer: Transfer) -> str:
    """Say how many concurrent tests ran at the source and the destination, without a full stop."""
    means = {transfer.concurrent_at_source_mean, transfer.concurrent_at_destination_mean}
    if means == {None}:
        return "not recorded"
    if means == {0.0}:
        return "none at the source or the destination"
    source, destination = (
        end_words(
            end,
            getattr(transfer, f"concurrent_at_{end}_mean"),
            getattr(transfer, f"concurrent_at_{end}_max"),
        )
        for end in ("source", "destination")
    )
    return f"{source}, {destination}"


def end_words(end: str, mean: float | None, most: int | None) -> str:
    if mean is None:
        return f"not recorded at the {end}"
    if not mean:
        return f"none at the {end}"
    maximum = "" if most is None else f" (maximum {most})"
    return f"{format_estimate(mean)} on average at the {end}{maximum}"


def verified_words(transfer: Transfer) -> str:
    """Say whether the checksum was verified; nothing where that was not noted."""
    if transfer.verified is None:
        return ""
    if transfer.verified:
        return "Checksum verified"
    return f"Not verified: {transfer.verified_note}" if transfer.verified_note else "Not verified"


def why_no_picture(transfer: Transfer, parts: Sequence[Stretch]) -> str:
    """Say why there is no picture of the rate while it ran, where there is none."""
    if parts and parts[-1].bytes:
        last = parts[-1]
        moved = f"{format_bytes(last.bytes)} after {format_seconds(last.end)}"
        return f"Only one progress sample was recorded ({moved}); a plot needs two."
    if reason := why_no_samples(transfer):
        return reason
    if transfer.seconds < MARKER_SECONDS:
        return (
            "The transfer finished before the first progress marker; servers send one about "
            "every 5 s."
        )
    if parts:
        return "No byte had arrived by the last progress sample."
    return "Neither the transfer tool nor the servers reported progress."


def why_no_samples(transfer: Transfer) -> str:
    """Return the reasons that hold whatever the transfer itself was like, or nothing."""
    failed = transfer.state == Transfer.State.FAILED
    if transfer.state == Transfer.State.LOST and not transfer.is_cancelled:
        return "The worker died before it stored any progress."
    made_up = is_made_up(transfer.profile)
    if made_up or transfer.profile.origin != Profile.Origin.TEST:
        return NO_FILE if made_up else IMPORTED
    if failed and not transfer.seconds:
        return "The test failed before the transfer started."
    if transfer.profile.streams > 1:
        return (
            "The test requested several streams. Servers then report the full size from the start, "
            "so no progress is visible."
        )
    if failed and transfer.prepare_seconds is None and not transfer.samples:
        return "Progress of failed tests was not recorded when this test ran."
    return ""


LONGEST_HOVER = 1000


@dataclass(frozen=True)
class TransferLine:
    """One line in a list of results. ``rate`` in MB/s, NaN unless it is done.

    ``declared`` says what an end was declared to be while it ran: `down`, `at risk` or nothing.
    """

    transfer: Transfer
    rate: float
    why_no_rate: str
    seconds: str
    error: str
    hover: str
    declared: str = ""

    @classmethod
    def of(cls, transfer: Transfer, downtimes: Iterable[Downtime] = ()) -> TransferLine:
        why_no_rate = "failed test: no rate"
        if transfer.state == Transfer.State.LOST:
            why_no_rate = "lost test: the worker died, so no rate is known"
            if transfer.is_cancelled:
                why_no_rate = "cancelled test: no rate"
        # What the downtimes of its ends that were in force while it ran made of them.
        started_at, ended_at = transfer.times()
        touching = {
            row.stops_tests
            for row in downtimes
            if row.starts_at <= ended_at and row.ends_at > started_at
        }
        return cls(
            transfer,
            rate_of(transfer),
            why_no_rate,
            three_digits(transfer.seconds),
            error=shortened(transfer.error),
            hover=transfer.error[:LONGEST_HOVER],
            declared="down" if True in touching else "at risk" if touching else "",
        )

    @property
    def profile_words(self) -> str:
        """Say how it was measured, and whether concurrent tests ran."""
        profile = self.transfer.profile
        concurrent = ", with concurrent tests" if profile.concurrent else ""
        return f"{profile_words(profile)}{concurrent}"


def progress_words(probe: Probe) -> str:
    """Say how far a running test is; nothing for one that is queued."""
    if probe.state != Probe.State.RUNNING:
        return ""
    share = f"{100 * probe.progress_bytes / probe.bytes:.0f} %"
    return f"{format_bytes(probe.progress_bytes)} of {format_bytes(probe.bytes)} ({share})"


def until_words(moment: datetime, now: datetime) -> str:
    """Say when something is to come, or by how much it is overdue."""
    if moment - now >= timedelta(seconds=1):
        return f"in {format_span(moment - now)}"
    if now - moment < timedelta(minutes=1):
        return "now"
    return f"overdue by {format_span(now - moment)}"


def every_words(seconds: int) -> str:
    """Write an interval without rounding it: `every 90 min`."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    unit, factor = next((unit, factor) for unit, factor in units if seconds % factor == 0)
    return f"every {seconds // factor} {unit}"


def inside_part(inside: TransferProfiles | None, key: str = "") -> dict[str, Any] | None:
    """Return what is seen in sentences, a figure, and words, meaning and count of each shape.

    ``key`` tells several on one page apart.
    """
    if inside is None:
        return None
    return {
        "key": key,
        "sentences": inside.sentences,
        "shapes": [
            (verb(shape, count), SHAPE_WORDS[shape][1], count)
            for shape, count in inside.counts.items()
            if count
        ],
        "figure": share_figure(inside),
    }
