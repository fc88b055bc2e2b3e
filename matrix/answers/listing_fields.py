"""The fields of a listing: each reads one parameter, and says in a sentence what is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from matrix.answers.column_filters import READERS, Condition
from matrix.query.attributes import BY_KEY
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.filters import either
from matrix.query.forms import OneOf, read_number
from matrix.statistics.cells.states import LOOKS

LONGEST_TEXT = 200


class Named(forms.Field):
    """A field that says its parameter's name in its sentences."""

    def __init__(self, parameter: str) -> None:
        super().__init__(required=False)
        self.parameter = parameter

    def wrong(self, text: str, allowed: str) -> ValidationError:
        return ValidationError(f"{self.parameter} “{text}” is not {allowed}.")


class Text(Named):
    def to_python(self, value: str | None) -> Any:  # noqa: ANN401 - text here, more in Has
        text = " ".join((value or "").split())
        if len(text) > LONGEST_TEXT or not text.isprintable():
            raise self.wrong(text[:20], f"at most {LONGEST_TEXT} printable characters")
        return text


class Quantiles(Named):
    def to_python(self, value: str | None) -> tuple[str, ...]:
        names = [name.strip() for name in (value or "").split(",") if name.strip()]
        for name in names:
            if name not in TABLE_QUANTILES:
                allowed = either(tuple(TABLE_QUANTILES))
                raise ValidationError(f"{self.parameter} “{name}” is not known: use {allowed}.")
        return tuple(name for name in TABLE_QUANTILES if name in names)


class Ordering(OneOf):
    def __init__(self, parameter: str, columns: Sequence[str]) -> None:
        super().__init__(parameter, columns)
        self.choices = [(f"{sign}{name}", name) for name in columns for sign in ("", "-")]
        self.error_messages["invalid_choice"] += " Put - in front for the greatest first."


class PageNumber(Named):
    def to_python(self, value: str | None) -> int:
        text = value or "1"
        # Python reads no number of thousands of digits, not even of zeros.
        if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,8}", text):
            raise self.wrong(text, "a whole number from 1 on")
        return int(text)


class Has(Text):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        text = super().to_python(value)
        return Condition(column, how, text) if text else None


class Is(Named):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        key = column.rpartition(".")[2]
        if key == "state":
            return self.of_state(column, value or "")
        attribute = BY_KEY[key]
        if value and value not in attribute.allowed:
            raise self.wrong(value, f"a {attribute.title}: use {either(attribute.allowed)}")
        return Condition(column, how, value) if value else None

    def of_state(self, column: str, value: str) -> Condition | None:
        """Read some of LOOKS, as `failing,slower`."""
        looks = [text.strip() for text in value.split(",") if text.strip()]
        for look in looks:
            if look not in LOOKS:
                raise self.wrong(look, f"a state: use {either(LOOKS)}")
        chosen = [look for look in LOOKS if look in looks]
        return Condition(column, "is", ",".join(chosen)) if chosen else None


class Bound(Named):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        text = (value or "").strip()
        try:
            number = READERS.get(column.rpartition(".")[2], read_number)(text) if text else 0
        except ValueError as error:
            raise self.wrong(text, str(error)) from None
        return Condition(column, how, text, number) if text else None


FIELDS: dict[str, type[Named]] = {"has": Has, "is": Is}
