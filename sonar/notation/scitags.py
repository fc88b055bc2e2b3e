"""Flow labels of https://www.scitags.org: an experiment and an activity of it in one number.

Networks read it off the packets of servers that mark them. As 64 times the experiment plus the
activity it goes to servers; people write it `2/11`, as the two numbers of the public registry.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LEAST, MOST = 65, 65_535
# An experiment from 1 to 1023, and an activity from 1 to 63.
NOTATION = "^(102[0-3]|10[01][0-9]|[1-9][0-9]{0,2})/([1-9]|[1-5][0-9]|6[0-3])$"
_ACTIVITIES = 64


class Scitag(NamedTuple):
    """A flow label by its parts."""

    experiment: int
    activity: int

    @classmethod
    def of(cls, number: int) -> Scitag:
        """Take a flow label apart."""
        return cls(*divmod(number, _ACTIVITIES))

    @property
    def number(self) -> int:
        return _ACTIVITIES * self.experiment + self.activity

    def __str__(self) -> str:
        return f"{self.experiment}/{self.activity}"


def parsed(value: object) -> int:
    """Read `2/11` as its number; raise ValueError with a sentence."""
    text = str(value)
    if not re.fullmatch(NOTATION, text):
        raise ValueError(
            "write a flow label as experiment/activity, for example 2/11: the experiment from "
            f"1 to {MOST // _ACTIVITIES}, the activity from 1 to {_ACTIVITIES - 1}"
        )
    experiment, activity = text.split("/")
    return Scitag(int(experiment), int(activity)).number


def written(number: int | None) -> str | None:
    """Write a flow label as files and API do; None for none."""
    return None if number is None else str(Scitag.of(number))
