"""Parameters as they stand behind the question mark of an address."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote_plus

# What stays as it is: times have colons, filters that leave out an exclamation mark.
PLAIN = ":!"
# What a process keeps of values: the hundred addresses of a page have nearly the same ones.
MOST_KEPT = 500


def encoded(params: Mapping[str, Iterable[str]]) -> str:
    """Write parameters, whose names need no quotes, with all their values."""
    return "&".join(f"{name}={quoted(text)}" for name, texts in params.items() for text in texts)


@lru_cache(MOST_KEPT)
def quoted(text: str) -> str:
    return quote_plus(text, PLAIN)
