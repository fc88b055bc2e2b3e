"""SI units: parse and format bytes, rates, durations and ages. 1 MB is 10^6 bytes."""

import math
import re
from datetime import timedelta
from decimal import Decimal

MB = 10**6
# What a result may say: none is larger, takes longer or is faster, in bytes per second.
MOST_BYTES, LONGEST_SECONDS, FASTEST = 10**18 - 1, 100_000_000, 1e12
DASH = "–"
# Of a factor of what had no rate at all, and of a bound that nothing limits.
INFINITE = "∞"
# Narrow, and no line breaks at it.
THIN_SPACE = "\u202f"

_DURATION_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"TB": 10**12, "GB": 10**9, "MB": MB, "kB": 1000, "B": 1}


def parse_duration(text: str) -> timedelta:
    """Read `90s`, `10m`, `6h` or `7d`; raise ValueError with a sentence for anything else."""
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} is not a duration: write a number and s, m, h or d, for example 10m"
        )
    return timedelta(seconds=int(match[1]) * _DURATION_SECONDS[match[2]])


def parse_seconds(text: str) -> int:
    """Read a duration, or a bare number of seconds; raise ValueError with a sentence."""
    if re.fullmatch(r"\d{1,10}", text.strip()):
        return int(text)
    return int(parse_duration(text).total_seconds())


def exact_duration(seconds: int) -> str:
    """Write seconds so that parse_seconds reads the same: `10m`, `90s`, `7d`."""
    units = reversed(_DURATION_SECONDS.items())
    unit, factor = next(pair for pair in units if seconds % pair[1] == 0)
    return f"{seconds // factor}{unit}" if 0 < seconds < 10**7 * factor else str(seconds)


def parse_bytes(text: str) -> int:
    """Read `10 MB`, `1.5GB` or a bare number of bytes; raise ValueError with a sentence."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,12})?) ?([kMGT]?B)?", text.strip(), re.ASCII)
    if match and (size := Decimal(match[1]) * _BYTES[match[2] or "B"]) == int(size):
        return int(size)
    raise ValueError(
        f"{text!r} is not a size: write a number and kB, MB, GB or TB, for example 10 MB"
    )


def exact_bytes(size: int) -> str:
    """Write bytes so that parse_bytes reads the same: `10 MB`, `1.5 GB`, `7 B`."""
    unit, factor = next(pair for pair in _BYTES.items() if size >= pair[1] or pair[1] == 1)
    return f"{Decimal(size) / factor:f} {unit}"


def parse_rate(text: str) -> float:
    """Read `20 MB/s`, `1.5GB/s` or bytes per second; raise ValueError with a sentence."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?) ?([kMGT]?B)?(/s)?", text.strip(), re.ASCII)
    # A size alone is no rate, and a number alone is in bytes per second.
    if match and bool(match[2]) == bool(match[3]):
        return float(Decimal(match[1]) * _BYTES[match[2] or "B"])
    raise ValueError(
        f"{text!r} is not a rate: write a number and kB/s, MB/s or GB/s, for example 20 MB/s"
    )


def exact_rate(bytes_per_second: float) -> str:
    """Write a rate so that parse_rate reads the same: `20 MB/s`, `1.5 GB/s`."""
    pairs = _BYTES.items()
    unit, factor = next(pair for pair in pairs if bytes_per_second >= pair[1] or pair[1] == 1)
    return f"{(Decimal(repr(bytes_per_second)) / factor).normalize():f} {unit}/s"


def three_digits(value: float) -> str:
    """Write a number with three significant digits and no exponent: 0.0123, 4.70, 1 230."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 999.5:  # as most are, and in half of the time
        return f"{value:#.3g}".rstrip(".")
    rounded = float(f"{value:.3g}")
    whole = len(str(int(abs(rounded))))
    decimals = 3 - whole
    if abs(rounded) < 1:
        decimals = 2 - int(f"{rounded:e}".split("e")[1])
    return f"{rounded:,.{max(decimals, 0)}f}".replace(",", THIN_SPACE)


def format_factor(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Write a factor and, if there is one, its interval in brackets behind it."""
    if low is None or high is None:
        return f"{factor_digits(ratio)}×"
    value, interval = factor_and_interval(ratio, low, high)
    return f"{value}× ({interval})"


def factor_digits(ratio: float) -> str:
    """Write a factor without its sign: two digits, and as many decimals around 1 as below it."""
    return f"{ratio:.2f}" if 0.995 <= ratio < 1.995 else two_digits(ratio)


def factor_and_interval(ratio: float, low: float, high: float) -> tuple[str, str]:
    """Write a factor and its interval with the same decimals.

    They are those of two digits of the lower bound, unless the upper one then had more than three.
    What is known only from below has no upper bound: ∞.
    """
    most = max((each for each in (ratio, low, high) if not math.isinf(each)), default=1.0)
    of_low = 2 if 0.995 <= low < 1.995 or math.isinf(low) else 1 - _magnitude(low)
    decimals = max(0, min(of_low, 2 - _magnitude(most)))
    value, *bounds = (
        INFINITE if math.isinf(each) else f"{each:,.{decimals}f}".replace(",", THIN_SPACE)
        for each in (ratio, low, high)
    )
    return value, "–".join(bounds)


def _magnitude(value: float) -> int:
    return int(f"{value:.1e}".split("e")[1])


def two_digits(value: float) -> str:
    """Write a number from 0 on with two significant digits: 0.0046, 3.0, 46, 128; or ∞."""
    if math.isinf(value):
        return INFINITE
    if value == 0:
        return "0"
    if value >= 99.5:
        return format_count(round(value))
    return f"{value:.{max(1 - _magnitude(value), 0)}f}"


def format_estimate(value: float) -> str:
    """Write a number with two significant digits at most: 0.012, 8.3, 8, 83."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.6f}".rstrip("0").rstrip(".") if rounded < 10 else f"{rounded:.0f}"


def format_share(share: float) -> str:
    """Write a share in percent: 0.012, 8.3, 83; only what is the whole is 100."""
    value = 100 * share
    if 0 < value < 0.01:
        return "< 0.01 %"
    if value < 10:
        return f"{format_estimate(value)} %"
    return f"{min(round(value), 99) if value < 100 else round(value)} %"


def format_chance(p: float) -> str:
    """Write how probable something is by chance alone: `p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.{3 if p < 0.0995 else 2}f}"


def format_rate(bytes_per_second: float) -> str:
    return f"{three_digits(bytes_per_second / MB)} MB/s"


def format_seconds(*seconds: float) -> str:
    """Write a time that was measured, and its interval if that follows."""
    scale, unit = (1000, "ms") if 0 < seconds[0] < 0.1 else (1, "s")
    time, *bounds = (three_digits(scale * each) for each in seconds)
    return f"{time} {unit} ({'–'.join(bounds)})" if bounds else f"{time} {unit}"


def format_bytes(size: float) -> str:
    """Write a size in three digits, or in fewer that say all of it: `10 MB`, `9.54 MB`."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", MB), ("kB", 1000)):
        if size >= factor:
            number = size / factor
            is_short = number < 1000 and number.is_integer()
            return f"{number:.0f} {unit}" if is_short else f"{three_digits(number)} {unit}"
    return f"{size:.0f} B"


def format_count(count: int) -> str:
    return f"{count:,}".replace(",", THIN_SPACE)


def format_counted(count: int, noun: str) -> str:
    """Count things: `1 link`, `12 links`."""
    return f"{format_count(count)} {noun}{'s' * (count != 1)}"


def format_span(span: timedelta) -> str:
    """Write how long something lasts, as someone on shift says it: `30 h`, `3 d`, `0 s`."""
    seconds = span.total_seconds()
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= factor * (2 if unit == "d" else 1):
            return f"{int(seconds // factor)} {unit}"
    return f"{max(int(seconds), 0)} s"


def format_age(age: timedelta) -> str:
    """Write an age as someone on shift says it: `3 h ago`; the future is `just now`."""
    return f"{format_span(age)} ago" if age.total_seconds() >= 1 else "just now"
