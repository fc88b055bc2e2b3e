"""What happens inside transfers, in sentences that can be quoted."""

from __future__ import annotations

from matrix.answers.inside import FEWEST, InsideTransfers
from matrix.statistics.transfers.rate_profile import FEWEST_STRETCHES, LONG_STALL, ProfileShape
from sonar.notation.units import format_count, format_share, three_digits

# What transfers of a shape do, and what it may mean.
SHAPE_WORDS: dict[ProfileShape, tuple[str, str]] = {
    "stalls": (
        "stall",
        f"no bytes move for at least {format_share(LONG_STALL)} of the time: check the storage of "
        "both endpoints, and for packet loss",
    ),
    "saw-tooth": (
        "follow a saw-tooth",
        "slow rises and sharp drops, as TCP shows after packet loss",
    ),
    "ramps": (
        "start slowly",
        "the first third has less than half the rate of the last: small TCP windows, or a slow "
        "source",
    ),
    "slows": (
        "slow down",
        "the last third has less than half the rate of the first: a buffer fills, or storage is "
        "slow",
    ),
    "ceiling": (
        "run at a ceiling",
        "a steady rate, limited by a TCP window, a quota or a full link",
    ),
    "uneven": ("vary irregularly", "as with competing traffic"),
}
# The rate comes this close to the capacity where that limits it.
FULL = 0.9


def sentences_of(inside: InsideTransfers) -> list[str]:
    """Say how many transfers do what, their rates, and what these come close to."""
    sentences = [shapes_sentence(inside), rates_sentence(inside)]
    if ceiling := inside.ceiling:
        sentences.append(f"They all have about the same ceiling: {three_digits(ceiling)} MB/s.")
    return sentences + ([capacity_sentence(inside)] if inside.nominal else [])


def shapes_sentence(inside: InsideTransfers) -> str:
    """Say how many transfers have which shape, the most first."""
    number = len(inside.courses)
    of = f"Of {format_count(number)} {inside.size}-file transfer{'s' * (number != 1)}"
    counts = sorted(
        ((count, shape) for shape, count in inside.counts.items() if count),
        key=lambda pair: -pair[0],
    )
    words = ", ".join(f"{format_count(count)} {verb(shape, count)}" for count, shape in counts)
    stalled = inside.stalled
    stall = f"; stalled {format_share(stalled)} of the time" if stalled else ""
    few = " These are few." if number < FEWEST else ""
    return f"{of} with {FEWEST_STRETCHES} or more progress samples, {words}{stall}.{few}"


def verb(shape: ProfileShape, count: int) -> str:
    """Return what transfers of a shape do, as is said of one or of several."""
    words = SHAPE_WORDS[shape][0]
    first, space, rest = words.partition(" ")
    third_person = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{third_person}{space}{rest}" if count == 1 else words


def rates_sentence(inside: InsideTransfers) -> str:
    low, median, high = map(three_digits, inside.middle)
    return (
        f"While they run, the median rate is {median} MB/s (5th to 95th percentile: {low}–{high})."
    )


def capacity_sentence(inside: InsideTransfers) -> str:
    """Compare the fastest of the time with the nominal capacity."""
    nominal, high = inside.nominal, inside.middle[2]
    if nominal is None:
        return ""
    whose = f"the nominal capacity of {nominal.site} ({three_digits(nominal.mb_s)} MB/s)"
    if high >= FULL * nominal.mb_s:
        return f"That reaches {whose}: the site's link may be full."
    return f"The 95th percentile is {format_share(high / nominal.mb_s)} of {whose}."
