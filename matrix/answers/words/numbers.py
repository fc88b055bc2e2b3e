"""Values of statistics as cells have them: in figures and in documents."""

import math
from datetime import timedelta

from matrix.query.catalogue import Statistic
from sonar.notation.units import factor_digits, format_age, format_count, three_digits


def number(value: float, statistic: Statistic) -> str:
    """Write a value as it stands in a cell, without its unit; nothing for none."""
    if math.isnan(value):
        return ""
    written = statistic.unit.written
    if written == "age":
        return format_age(timedelta(seconds=value)).removesuffix(" ago")
    if written == "factor":
        return factor_digits(value)
    if written == "count" and value == int(value):
        return format_count(int(value))
    return three_digits(value)
