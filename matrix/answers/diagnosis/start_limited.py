"""Start-limited: most of the time of a file passes whatever its size."""

from __future__ import annotations

import math

from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.link.overhead import ClassTime, Overhead
from sonar.notation.units import MB, format_bytes, format_count, format_seconds, three_digits

# A handshake, an authorisation and the opening of a file take some four round trips: at 0.3 s,
# from one side of the earth to the other, about as much. What is below may be distance alone.
LEAST_SECONDS = 1.0
# Half of the time: the file is smaller than the half-rate size of its link.
LEAST_SHARE = 0.5


def start_limited(evidence: LinkEvidence) -> Diagnosis | None:
    line = evidence.overhead
    if line is None or not line.fits or line.overhead_low < LEAST_SECONDS:
        return None
    times = next((each for each in line.classes if each.name == evidence.size), None)
    share = min(line.overhead / times.seconds, 1.0) if times else 0.0
    if times is None or share < LEAST_SHARE:
        return None
    return Diagnosis(
        "start-limited",
        f"Most of the time is overhead: {format_seconds(line.overhead)} of the "
        f"{format_seconds(times.seconds)} that {evidence.size} files take.",
        (overhead_words(line), counts_words(line.classes)),
        "Check what comes before the first byte and after the last: handshakes, authorisation, "
        "queues, opening files, checksums. More bandwidth or more streams would not help.",
        share,
    )


def overhead_words(line: Overhead) -> str:
    overhead = format_seconds(line.overhead, line.overhead_low, line.overhead_high)
    words = f"Whatever their size, files take {overhead}"
    if math.isnan(line.bandwidth):
        return f"{words}; larger ones take no longer."
    half = format_bytes(line.half_size * MB)
    return (
        f"{words}, and their bytes then move at {three_digits(line.bandwidth)} MB/s. "
        f"Files under {half} mostly wait."
    )


def counts_words(classes: tuple[ClassTime, ...]) -> str:
    counts = ", ".join(f"{format_count(each.ok)} {each.name}" for each in classes)
    return f"From the median times of {counts} files."
