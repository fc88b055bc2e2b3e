"""Fields of forms whose values people write in other words: `10 MB`, `6h`, `cloud=UK&tag=!tape`."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.text import capfirst

from sonar.notation import scitags
from sonar.notation.endpoint_filters import FilterError, as_query, from_query
from sonar.notation.units import (
    MB,
    exact_bytes,
    exact_duration,
    exact_rate,
    parse_bytes,
    parse_rate,
    parse_seconds,
)
from sonar.registry.mesh_filters import read_filter


def small_input(size: int) -> forms.TextInput:
    """Return a text field of a page, for about so many characters."""
    return forms.TextInput({"class": "form-control form-control-sm", "size": size})


def between(least: float, most: float) -> list[Any]:
    return [MinValueValidator(least), MaxValueValidator(most)]


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


class RateField(forms.Field):
    """A rate in MB/s, written with a unit: `20 MB/s`, `1.5 GB/s`."""

    def prepare_value(self, value: object) -> object:
        return exact_rate(value * MB) if isinstance(value, int | float) else value

    def to_python(self, value: object) -> float | None:
        text = str(value or "").strip()
        try:
            return parse_rate(text) / MB if text else None
        except ValueError as error:
            raise ValidationError(f"{capfirst(str(error))}.") from error


class PartField(forms.Field):
    """A part of something as a percentage: `66.7 %`."""

    def prepare_value(self, value: object) -> object:
        return f"{100 * value:.4g} %" if isinstance(value, int | float) else value

    def to_python(self, value: object) -> float | None:
        text = str(value or "").strip().removesuffix("%").strip()
        if not text:
            return None
        if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?", text, re.ASCII):
            raise ValidationError(
                f"“{text[:20]}” is not a percentage: write a percentage such as 80 %."
            )
        return float(text) / 100

    def has_changed(self, initial: object, data: object) -> bool:
        return str(self.prepare_value(initial)) != str(data)


class EndpointFilterField(forms.Field):
    """A filter on endpoints, in the notation of the matrix: `cloud=UK&tag=!tape`."""

    def prepare_value(self, value: object) -> object:
        return as_query(value) if isinstance(value, dict) else value

    def to_python(self, value: object) -> dict[str, list[str]]:
        text = str(value or "").strip()
        try:
            return read_filter(from_query(text)) if text else {}
        except FilterError as error:
            raise ValidationError(f"{capfirst(str(error))}.") from error

    def has_changed(self, initial: object, data: object) -> bool:
        return str(self.prepare_value(initial) or "") != str(data or "")
