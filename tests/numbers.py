"""What is wrong with an answer whatever it is about: a crash, a negative or a missing number."""

import html
import json
import re
from collections.abc import Iterator

# Where a number below zero is what it should be.
PLACES = ("latitude", "longitude", "minimum")
SIGNED = (*PLACES, "exponent", "exponent_low", "exponent_high", "r2_left_out")
HIDDEN = re.compile(r"<(script|style|svg)\b.*?</\1>", re.DOTALL)
# A sentence may begin with None, a dash that is no sign stands behind a word or a number, and how
# well a model foretells a link may be below zero.
MISSING = r"\b(?:nan|NaN|inf)\b|(?<=\S )None\b|\|\s*None\s*(?=[|%A-Z]|s\b)"
NEGATIVE = r"(?<![\w.)\]–-])[-−]\d(?![\d.]* for a link)"
WRONG = re.compile(f"{MISSING}|{NEGATIVE}")
SAMPLE = re.compile(r"^(\S+?)(?:\{.*\})? (\S+)$", re.MULTILINE)


def wrong(status: int, media_type: str, body: bytes) -> list[str]:
    """Return what is in an answer that is in no right one, where it stands."""
    found = [] if status < 500 else [f"status {status}"]
    if media_type == "application/json":
        found += of_json(json.loads(body, parse_constant=lambda word: word))
    elif media_type == "text/html":
        found += of_page(body.decode())
    elif media_type == "text/plain":
        found += of_metrics(body.decode())
    return found


def of_page(text: str) -> list[str]:
    shown = html.unescape(re.sub(r"<[^>]*>", "|", HIDDEN.sub("", text)))
    return [shown[max(at.start() - 40, 0) : at.end() + 20] for at in WRONG.finditer(shown)]


def of_metrics(text: str) -> list[str]:
    return [
        f"{name} {value}"
        for name, value in SAMPLE.findall(text)
        if not float(value) >= 0  # which NaN is not, either
    ]


def of_json(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("state") in ("waiting", "queued") and not value.get("place_in_queue", 1):
            yield f"{name} waits at no place"
        for key, part in value.items():
            yield from of_json(part, f"{name}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from of_json(part, name)
    elif value in ("NaN", "Infinity", "-Infinity") or (
        isinstance(value, int | float) and value < 0 and name.rpartition(".")[2] not in SIGNED
    ):
        yield f"{name} {value}"
