"""What stands around a host in a text and belongs to it."""

from __future__ import annotations

import re


def with_scheme(text: str, start: int) -> int:
    """Return where the user information and the scheme before a host begin."""
    if text[start - 1 : start] == "@":
        start -= 1
        while start and not (text[start - 1].isspace() or text[start - 1] in "/@\"'"):
            start -= 1
    if text[max(0, start - 3) : start] == "://":
        start -= 3
        while start and (text[start - 1].isalnum() or text[start - 1] in "+.-"):
            start -= 1
    return start


def is_below(text: str, at: int, path: str) -> bool:
    """Say whether a path, or one below it, stands at this place."""
    after = text[at + len(path) : at + len(path) + 1]
    return text.startswith(path, at) and not (after.isalnum() or after in {"_", "-", "~", "%"})


def whole(text: str, start: int, end: int, letter: re.Pattern[str]) -> tuple[int, int]:
    """Return where a part begins and ends with all that is written on to it."""
    while start and letter.match(text[start - 1]):
        start -= 1
    while end < len(text) and letter.match(text[end]):
        end += 1
    return start, end


def stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return not (before.isalnum() or after.isalnum())
