"""A foreign text as whoever reads it may take it: decoded, in plain letters, undivided.

What must not be told is looked for there and replaced in the text as it came, so that a text
without anything to hide stays as it is.
"""

import html
import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

ROUNDS = 6
"""So often an escape may hide another one."""
ESCAPE = re.compile(
    r"(?P<percent>(?:%(?:25)*[0-9a-f]{2})+)"
    r"|\\u(?P<unicode>[0-9a-f]{4})|\\x(?P<byte>[0-9a-f]{2})|\\(?P<plain>[/:.\[\]@-])"
    r"|&(?P<entity>#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,31});",
    re.IGNORECASE,
)
BEGINS_ESCAPE = re.compile(r"[%\\&]")
# Combining marks and what has no width; letters that are blank are named one by one.
WITHOUT_WIDTH = {"Mn", "Me", "Cf"}
BLANK = {"\u115f", "\u1160", "\u3164"}
DOTS = {"\u3002": "."}
CODE = frozenset("+/=_-")
SECRET_LETTERS = 8
"""This many letters of a secret in a row occur in no other text by accident."""
SECRETS_KEPT = 1024
"""More than there are tokens at a large grid: else each text costs a millisecond for each."""


class Span(NamedTuple):
    """A part of a view, and what is to stand for it."""

    start: int
    end: int
    name: str


class View:
    """A text in small letters without escapes, accents and what has no width."""

    def __init__(self, text: str) -> None:
        self._original = text
        self.text, self._places = text.lower(), list[tuple[int, int]]()
        if not text.isascii() or BEGINS_ESCAPE.search(text):
            self._decode(text)

    def _decode(self, text: str) -> None:
        pieces = _folded((letter, place, place + 1) for place, letter in enumerate(text))
        for _ in range(ROUNDS):
            decoded = _decoded(pieces)
            if decoded is None:
                break
            pieces = _folded(decoded)
        self.text = "".join(letter for letter, _, _ in pieces)
        self._places = [(start, end) for _, start, end in pieces]

    @cached_property
    def places(self) -> list[int]:
        """Where each of the letters stands."""
        return [place for place, letter in enumerate(self.text) if letter.isalnum()]

    @cached_property
    def letters(self) -> str:
        """Letters and digits alone: whatever divides them is no disguise."""
        return "".join(letter for letter in self.text if letter.isalnum())

    def replaced(self, spans: Iterable[Span]) -> str:
        """Return the text as it came, with names for these parts; what overlaps has one name."""
        parts, done = list[str](), 0
        for start, end, name in _apart(spans):
            first, last = self._in_original(start, end)
            parts += [self._original[done : max(done, first)], name]
            done = max(done, last)
        return "".join(parts) + self._original[done:]

    def _in_original(self, start: int, end: int) -> tuple[int, int]:
        if not self._places:
            return start, end
        return self._places[start][0], self._places[end - 1][1]


Piece = tuple[str, int, int]


def _folded(pieces: Iterable[Piece]) -> list[Piece]:
    return [(plain, start, end) for letter, start, end in pieces for plain in _fold_letter(letter)]


def fold(text: str) -> str:
    """Return a text in small letters without accents, other widths and what has no width."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(
        DOTS.get(letter, letter)
        for letter in plain
        if unicodedata.category(letter) not in WITHOUT_WIDTH and letter not in BLANK
    )


_fold_letter = lru_cache(maxsize=4096)(fold)


def _decoded(pieces: list[Piece]) -> list[Piece] | None:
    """Return the pieces with their escapes as what they stand for; None if there are none."""
    text = "".join(letter for letter, _, _ in pieces)
    plain_pieces, done = list[Piece](), 0
    for match in ESCAPE.finditer(text):
        first, last = pieces[match.start()][1], pieces[match.end() - 1][2]
        plain_pieces += pieces[done : match.start()]
        plain_pieces += [(letter, first, last) for letter in _meant(match)]
        done = match.end()
    return [*plain_pieces, *pieces[done:]] if done else None


def _meant(match: re.Match[str]) -> str:
    kind, value = str(match.lastgroup), str(match[str(match.lastgroup)])
    if kind == "percent":
        # What is escaped twice is `%25` and the rest.
        coded = re.sub(r"%(?:25)*(?=[0-9a-f]{2})", "", value, flags=re.IGNORECASE)
        return bytes.fromhex(coded).decode("utf-8", "replace")
    if kind in {"unicode", "byte"}:
        return chr(int(value, 16))
    return value if kind == "plain" else html.unescape(f"&{value};")


def _apart(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans in their order, those that overlap as one."""
    last: Span | None = None
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if last and span.start < last.end:
            last = last._replace(end=max(last.end, span.end))
            continue
        if last:
            yield last
        last = span
    if last:
        yield last


def codes(word: str) -> Iterator[str]:
    """Yield the letters of a word in base64, wherever in a text it begins, in hex and backwards."""
    data = word.encode("utf-8", "replace")
    for before in range(3):
        coded = b64encode(b"\0" * before + data).decode()
        # The first and the last letters depend on what stands before and after.
        first, last = (before * 8 + 5) // 6, (before + len(data)) * 8 // 6
        yield letters_of(coded[first:last])
    yield data.hex()
    yield letters_of(word[::-1])


def letters_of(word: str) -> str:
    return "".join(letter for letter in fold(word) if letter.isalnum())


def without(text: str, secrets: Iterable[str], name: str = "***") -> str:
    """Return a text without secrets, nor longer parts of them, whatever disguise they are in."""
    sought = [parts for secret in secrets if (parts := _parts(secret))]
    if not sought:
        return text
    view, spans = View(text), [Span(0, 0, name)]
    for at in range(len(view.letters) - SECRET_LETTERS + 1):
        part = view.letters[at : at + SECRET_LETTERS]
        start, end = view.places[at], view.places[at + SECRET_LETTERS - 1] + 1
        if end > spans[-1].end and any(part in parts for parts in sought):
            spans.append(_whole_code(view.text, start, end, name))
    return view.replaced(spans[1:])


@lru_cache(maxsize=SECRETS_KEPT)
def _parts(secret: str) -> frozenset[str]:
    """Return the letters of a secret, and of its codes, cut into parts that leave none out.

    So twice as many letters as a part has are found wherever they begin.
    """
    plain, size = letters_of(secret), SECRET_LETTERS
    if len(plain) < size:
        return frozenset()
    forms = [plain, *codes(secret)]
    whole = {form[at : at + size] for form in forms for at in range(0, len(form) - size + 1, size)}
    return frozenset(whole | {form[-size:] for form in forms})


def _whole_code(text: str, start: int, end: int, name: str) -> Span:
    """Return the word of letters as codes have them in which a part stands."""
    while start and _is_code(text[start - 1]):
        start -= 1
    while end < len(text) and _is_code(text[end]):
        end += 1
    return Span(start, end, name)


def _is_code(letter: str) -> bool:
    return letter.isalnum() or letter in CODE
