"""XML from elsewhere, read with suspicion: every error says which element it is about.

No document type, entity or external file is followed, and texts have a length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

Word = TypeVar("Word")
LONGEST_TEXT = 20_000
"""Characters of one element."""
MOST_PARTS = 500_000
"""Elements and attributes of a document. A document of 20 MB has about half as many."""
DEEPEST = 20
QUOTED = 80


class BadAnswer(Exception):
    """A source answers with what cannot be read; ``str()`` begins with the place of it."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}" if place else why)


@dataclass(frozen=True)
class Part:
    """An element with its place: `DOWNTIME 3 (40080G0)`."""

    element: Element
    where: str

    def place(self, name: str) -> str:
        return f"{self.where}, {name}"

    def text(self, name: str) -> str:
        """Return what an element within it says; BadAnswer if it is missing or says nothing."""
        if not (text := self.text_if_any(name)):
            raise BadAnswer(self.place(name), "missing or empty")
        return text

    def text_if_any(self, name: str) -> str:
        """Return the same, or nothing; BadAnswer if it is there twice, too long, or no text."""
        elements = self.element.findall(name)
        if len(elements) > 1:
            why = f"appears {len(elements)} times, but is allowed only once"
            raise BadAnswer(self.place(name), why)
        return self._text(elements[0], name) if elements else ""

    def _text(self, element: Element, name: str) -> str:
        if len(element):
            raise BadAnswer(self.place(name), "contains elements instead of text")
        text = (element.text or "").strip()
        if len(text) > LONGEST_TEXT:
            why = f"{len(text):,} characters, but at most {LONGEST_TEXT:,} are allowed"
            raise BadAnswer(self.place(name), why)
        return text

    def word(self, name: str, allowed: dict[str, Word]) -> Word:
        """Return what a word stands for, of those that are allowed; its case does not matter."""
        text = self.text(name)
        for word, meaning in allowed.items():
            if word.casefold() == text.casefold():
                return meaning
        *others, last = allowed
        words = f"{', '.join(others)} or {last}"
        raise BadAnswer(self.place(name), f"{shortened(text)} is not allowed: use {words}")

    def whole(self, name: str) -> int:
        """Return a whole number of at most 18 digits."""
        text = self.text(name)
        if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= 18):
            raise BadAnswer(self.place(name), f"{shortened(text)} is not a whole number")
        return int(text)

    def parts(self, path: str) -> Iterator[Part]:
        """Yield the elements at a path within it, numbered from 1."""
        name = path.rpartition("/")[2]
        for number, element in enumerate(self.element.iterfind(path), 1):
            yield Part(element, self.place(f"{name} {number}"))


def shortened(text: str) -> str:
    """Return a text in quotation marks for an error, no longer than people read."""
    line = "".join(character if character.isprintable() else "·" for character in text)
    return f"“{line if len(line) <= QUOTED else line[: QUOTED - 1] + '…'}”"


class BoundedBuilder(TreeBuilder):
    """Builds the elements of a document, and ends at one that would take a lot of memory."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> Element:
        self._parts += 1 + len(attributes)
        self._depth += 1
        if self._parts > MOST_PARTS:
            raise BadAnswer("", f"more than {MOST_PARTS:,} elements and attributes")
        if self._depth > DEEPEST:
            raise BadAnswer("", f"elements are nested more than {DEEPEST} levels deep")
        return super().start(tag, attributes)

    def end(self, tag: str) -> Element:
        self._depth -= 1
        return super().end(tag)


def root_of(content: bytes, name: str) -> Element:
    """Return the root of a document that is called so; BadAnswer for everything else."""
    try:
        parser = DefusedXMLParser(target=BoundedBuilder(), forbid_dtd=True)
        parser.feed(content)
        root: Element = parser.close()
    except ParseError as error:
        raise BadAnswer("", f"not valid XML: {error}") from None
    except DefusedXmlException:
        why = "the XML has a document type or entities, which are not allowed"
        raise BadAnswer("", why) from None
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        raise BadAnswer("", f"not valid XML: {error}") from None
    if root.tag == "error":
        raise BadAnswer("", f"the source reports an error: {shortened(root.text or '')}")
    if root.tag != name:
        raise BadAnswer("", f"the root element is <{root.tag[:QUOTED]}> instead of <{name}>")
    return root
