"""Values that fields of the registry may have: the type, the bounds, and a text that says so.

The description of a field completes the sentence `tier 7 is not ...`; the schema shows it too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from sonar.models.fields import MOST_TAGS, NAME, TAG, TAG_RULE, tidy
from sonar.notation.scitags import NOTATION
from sonar.notation.windows import EARLIEST, LATEST, parse_time

CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
NO_CONTROLS = r"[^\x00-\x1f\x7f]"
VISIBLE = r"[^\x00-\x20\x7f]"
LINES = r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"


def field(
    rule: str,
    meaning: str = "",
    or_null: str = "",
    *,
    strict: bool | None = True,
    **bounds: Any,  # noqa: ANN401
) -> FieldInfo:
    """A field that says what it may be: `a whole number from 1 to 9 (tests at once), or null ...`.

    Strict: no number is read from a text.
    """
    meaning = f" ({meaning})" if meaning else ""
    or_null = f", or null {or_null}" if or_null else ""
    info: FieldInfo = Field(strict=strict, description=rule + meaning + or_null, **bounds)
    return info


def line(most: int, meaning: str, pattern: str = f"^{NO_CONTROLS}*$") -> FieldInfo:
    """A text on one line; it may be empty, unless a pattern says otherwise."""
    rule = f"a text on one line of at most {most} characters"
    return field(rule, meaning, max_length=most, pattern=pattern)


def needed_text(most: int, *, lines: bool = False) -> FieldInfo:
    """A text with something to read in it, on one line or several."""
    rule = f"a text {'' if lines else 'on one line '}of 1 to {most} characters, not only blanks"
    others = LINES if lines else NO_CONTROLS
    return field(rule, max_length=most, pattern=f"^{others}*{VISIBLE}{others}*$")


def whole(least: int, most: int, meaning: str = "", or_null: str = "") -> FieldInfo:
    return field(f"a whole number from {least} to {most}", meaning, or_null, ge=least, le=most)


def number(least: float, most: float, meaning: str, or_null: str = "") -> FieldInfo:
    rule = f"a number from {least} to {most}"
    return field(rule, meaning, or_null, ge=least, le=most, allow_inf_nan=False)


def flag(meaning: str) -> FieldInfo:
    return field("true or false", meaning)


def name_of(kind: str, or_null: str = "") -> FieldInfo:
    """The name of a row that is registered."""
    return field(f"the name of a registered {kind}", "", or_null, max_length=80, pattern=NAME)


def own_name() -> FieldInfo:
    rule = "1 to 80 letters, digits, dots, dashes and underscores, the first a letter or digit"
    return field(rule, max_length=80, pattern=NAME)


def quiet_times() -> FieldInfo:
    return line(11, "in UTC, like 01:00-05:30, or null for none", f"^{CLOCK}-{CLOCK}$")


def scitag_text() -> FieldInfo:
    rule = "a flow label as experiment/activity, like 2/11"
    return field(rule, "scitags.org", "to send none", max_length=7, pattern=NOTATION)


def time(meaning: str, or_null: str = "") -> FieldInfo:
    rule = "a time in ISO 8601, like 2026-11-20T04:00:00Z, from 1970 to 2999"
    return field(rule, meaning, or_null, strict=None)


def read_moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 - pydantic catches ValueError only
    read = parse_time(value)
    if not EARLIEST <= read <= LATEST:
        raise ValueError("too early or too late")
    return read


def tag_list(meaning: str) -> FieldInfo:
    rule = f"a list of at most {MOST_TAGS} tags, each {TAG_RULE}"
    return field(rule, meaning, max_length=MOST_TAGS)


Tags = Annotated[list[Annotated[str, Field(strict=True, pattern=f"^{TAG}$")]], AfterValidator(tidy)]
# A time with a zone; without one it is UTC.
Moment = Annotated[
    datetime,
    PlainValidator(read_moment),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "pattern": r"^(19[7-9][0-9]|2[0-9]{3})-"}
    ),
]
