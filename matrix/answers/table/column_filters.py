"""Conditions on the columns of a link table, one for each parameter `<column>.<how>` of a URL.

`<column>.has` is for text, `<column>.is` for a tier or for states, `<column>.min` and
`<column>.max` are for a number: `source.has=RAL`, `destination.tier.is=1`,
`large.state.is=failing,slower`, `large.size_mean_bytes.min=1GB`.
Columns are called as in LinkTable.column, and `large.age` besides: seconds since the last success,
also as `6h`. No parameter of MatrixQuery has a dot in its name, so that none can be mistaken for
the other.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.table.link_table import LinkTable
from matrix.query.attributes import BY_KEY, ENDS, NAME, PREPOSITIONS
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.forms import BadQueryError, read_age, read_number
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.standing import LEVELS, SLOWER
from matrix.statistics.cells.states import FAILING, LOOKS, MEASURED, STATES, fail_partly
from sonar.notation.endpoint_attributes import EndpointAttribute
from sonar.notation.enumeration import either


def how_of(attribute: EndpointAttribute) -> str:
    """Return how the columns of an attribute are narrowed: by a part of a text, or by a value."""
    return "is" if attribute.allowed else "has"


def column_name(end: str, key: str) -> str:
    """Return what the column of an attribute is called: `source`, `source.site`."""
    return end if key == NAME else f"{end}.{key}"


OF_ENDS = [
    f"{column_name(end, key)}.{how}"
    for how in ("has", "is")
    for end in ENDS
    for key, attribute in BY_KEY.items()
    if how_of(attribute) == how
]
NUMBERS = {
    "mean_mb_s": "mean rate (MB/s)",
    "std_mb_s": "standard deviation of rates (MB/s)",
    "size_mean_bytes": "file size",
    "size_std_bytes": "standard deviation of the file size",
    "usual_mb_s": "baseline (MB/s)",
    "now_mb_s": "rate now (MB/s)",
    "ratio": "rate now divided by the baseline",
    "streak": "consecutive tests with the same outcome",
    "ok": "successful tests",
    "failed": "failed tests",
    "age": "age of the last success",
    **{
        quantile.field: f"{quantile.label} ({quantile.unit.name})"
        for quantile in TABLE_QUANTILES.values()
    },
}
# Of a link, whatever the size class.
LINE_NUMBERS = {
    "overhead_s": "overhead (s)",
    "bandwidth_mb_s": "bandwidth (MB/s)",
    "half_size_bytes": "file size at which half of the transfer time is overhead",
}
# Of a comparison, in the size class that it is of.
COMPARED_NUMBERS = {
    "this_mb_s": "rate of this side (MB/s)",
    "other_mb_s": "rate of the other side (MB/s)",
    "compared_ratio": "ratio of this side to the other",
    "compared_p": "p (probability that a difference this large occurs by chance)",
    "other_ok": "successful tests on the other side",
}
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
ALL_NUMBERS = NUMBERS | COMPARED_NUMBERS | LINE_NUMBERS
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Condition:
    """What a column must fulfil; ``value`` is the number that ``text`` stands for, if any."""

    column: str
    how: str
    text: str
    value: float = 0

    @property
    def name(self) -> str:
        return f"{self.column}.{self.how}"

    def words(self) -> str:
        of, _, field = self.column.rpartition(".")
        if (of or field) in ENDS:
            end = PREPOSITIONS[of or field]
            attribute = BY_KEY[field if of else NAME].title
            return f"{end} {attribute} {self.text if self.how == 'is' else f'with “{self.text}”'}"
        if self.how == "is":
            return f"{of} {' or '.join(self.text.split(','))}"
        bound = "at least" if self.how == "min" else "at most"
        return f"{of} {ALL_NUMBERS.get(field, field)} {bound} {self.text}".strip()

    def holds(self, table: LinkTable, now: datetime) -> Flags:
        size, _, field = self.column.rpartition(".")
        if field == "state":
            looks = [links_with_look(table, size, look) for look in self.text.split(",")]
            return np.asarray(np.logical_or.reduce(looks))
        if self.how == "is":
            return table.where(self.column, lambda text: text == self.text)
        if self.how == "has":
            return table.where(self.column, lambda text: self.text.casefold() in text.casefold())
        if field == "age":
            # Of now, or of the end of a window that is past.
            moment = min(now, table.window.end).timestamp()
            values = moment - table.column(f"{size}.last_ok")
        else:
            values = table.column(self.column)
        # No value is neither at least nor at most anything.
        return np.asarray(values >= self.value if self.how == "min" else values <= self.value)


def links_with_look(table: LinkTable, size: str, look: str) -> Flags:
    """Say which links have one of LOOKS, as cells of a matrix that each makes alone."""
    if (change := table.of_change(size, look)) is not None:
        return change
    state = table.column(f"{size}.state")
    if look in STATES:
        return np.asarray(state == STATES.index(look))
    ok, failed = table.column(f"{size}.ok"), table.column(f"{size}.failed")
    partly = fail_partly(ok, failed, state == FAILING)
    if look not in LEVELS:
        return partly
    of_level = np.asarray(table.column(f"{size}.level") == LEVELS.index(look))
    is_shifted = LEVELS.index(look) >= SLOWER
    return of_level if is_shifted else of_level & (state == MEASURED) & ~partly


def names(sizes: Iterable[str], *compared: str) -> list[str]:
    """Name the parameters of all conditions, for these size classes, of which are ``compared``."""
    sizes = list(sizes)
    of_classes = [f"{size}.{field}" for size in sizes for field in NUMBERS]
    of_classes += [f"{size}.{field}" for size in compared for field in COMPARED_NUMBERS]
    measured = ["priority", *LINE_NUMBERS, *of_classes]
    return [
        *OF_ENDS,
        *(f"{column}.{bound}" for column in measured for bound in ("min", "max")),
        *(f"{size}.state.is" for size in sizes),
    ]


def check_compared(params: Iterable[str], own: Collection[str], sizes: Sequence[str]) -> None:
    """Raise BadQueryError for conditions on what is only there while comparing this class."""
    errors = {
        name: [f"{name} requires a comparison: also give “compare” and “size={size}”."]
        for name in params
        if name not in own and name in names((), *sizes)
        for size in [name.partition(".")[0]]
    }
    if errors:
        raise BadQueryError(errors)


def read_size(text: str) -> float:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{0,9})?) ?([kMGT]?)B?", text, re.ASCII)
    if match is None:
        raise ValueError(
            "a size: enter a number of bytes, or a number with kB, MB, GB or TB, for example, 200MB"
        )
    return float(match[1]) * UNITS[match[2]]


# How a number is read that is not written plainly; ValueError says what it should have been.
READERS: dict[str, Callable[[str], float]] = {
    "size_mean_bytes": read_size,
    "size_std_bytes": read_size,
    "half_size_bytes": read_size,
    "age": read_age,
}


def wrong(parameter: str, text: str, allowed: str) -> ValueError:
    return ValueError(f"{parameter} “{text}” is not {allowed}.")


def read_text(parameter: str, value: str) -> str:
    text = " ".join(value.split())
    if len(text) > LONGEST_TEXT or not text.isprintable():
        raise wrong(parameter, text[:20], f"at most {LONGEST_TEXT} printable characters")
    return text


def read_some(
    allowed: Sequence[str], parameter: str, value: str, kind: str = "known"
) -> tuple[str, ...]:
    """Read some of these words, as `failing,slower`; return them in their order."""
    words = [text.strip() for text in value.split(",") if text.strip()]
    for word in words:
        if word not in allowed:
            raise wrong(parameter, word, f"{kind}: use {either(allowed)}")
    return tuple(word for word in allowed if word in words)


def read_page(parameter: str, value: str) -> int:
    text = value or "1"
    # Python reads no number of thousands of digits, not even of zeros.
    if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,8}", text):
        raise wrong(parameter, text, "a whole number of at least 1")
    return int(text)


def read_condition(parameter: str, value: str) -> Condition | None:
    """Read what a column must fulfil; None for nothing. ValueError says what may be."""
    column, _, how = parameter.rpartition(".")
    field = column.rpartition(".")[2]
    number = 0.0
    if how == "has":
        text = read_text(parameter, value)
    elif how in ("min", "max"):
        text = value.strip()
        try:
            number = READERS.get(field, read_number)(text) if text else 0
        except ValueError as error:
            raise wrong(parameter, text, str(error)) from None
    elif field == "state":
        text = ",".join(read_some(LOOKS, parameter, value, "a state"))
    else:
        text, attribute = value, BY_KEY[field]
        if value and value not in attribute.allowed:
            raise wrong(parameter, value, f"a {attribute.title}: use {either(attribute.allowed)}")
    return Condition(column, how, text, number) if text else None
