"""Fields of forms for numbers with a unit, written as pages write them."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from sonar.notation import scitags
from sonar.notation.units import exact_bytes, exact_duration, parse_bytes, parse_seconds


class Choices(forms.CheckboxSelectMultiple):
    """Rows to tick, in as many columns as there is room for: it works without a script."""

    def __init__(self) -> None:
        super().__init__({"class": "many"})


class WrittenField(forms.Field):
    """A whole number that people write and read in other words."""

    read: staticmethod[[str], int]
    write: staticmethod[[int], str | None]

    def prepare_value(self, value: object) -> object:
        return self.write(value) if isinstance(value, int) else value

    def to_python(self, value: object) -> int | None:
        text = str(value or "").strip()
        try:
            return self.read(text) if text else None
        except ValueError as error:
            raise ValidationError(f"{capfirst(str(error))}.") from error


class BytesField(WrittenField):
    """Bytes as `10 MB`."""

    read, write = staticmethod(parse_bytes), staticmethod(exact_bytes)


class SecondsField(WrittenField):
    """Seconds as `10m`."""

    read, write = staticmethod(parse_seconds), staticmethod(exact_duration)


class ScitagField(WrittenField):
    """A flow label as experiment/activity."""

    read, write = staticmethod(scitags.parsed), staticmethod(scitags.written)
