"""A page as its readers have it: sections, tables, links, fields, and words.

Parts are chosen as in CSS, by tag, ``#id``, ``.class``, ``[attribute="value"]`` and what a value
begins with (``^=``), one within the other: ``page.parts('#results tbody a[href^="/links/"]')``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cached_property
from html import unescape
from typing import Any

VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track")
)
FIELDS = frozenset(("input", "select", "textarea"))
TAG = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.DOTALL)
TOKEN = re.compile(
    r"<!--.*?-->|<![^>]*>|<(script|style)\b([^>]*)>(.*?)</\1>"
    r'|<(/?)([a-z][\w-]*)((?:[^>"]|"[^"]*")*)>',
    re.DOTALL | re.IGNORECASE,
)
ATTRIBUTE = re.compile(r'([^\s="/]+)(?:="([^"]*)")?')
AFTER_OPTIONS = frozenset(("option", "/select", "/datalist"))
UNSEEN = frozenset(("script", "style"))
STEP = re.compile(r"(?:\[[^\]]*\]|[^\s\[])+")
CONDITION = re.compile(r'(^[\w*]+)|#([\w-]+)|\.([\w-]+)|\[([\w-]+)(?:(\^?=)"?([^"\]]*)"?)?\]')


class Part:
    """An element of a page, with what is in it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.inside: list[Part | str] = []

    def __getitem__(self, attribute: str) -> str:
        return self.attributes[attribute]

    def __contains__(self, text: str) -> bool:
        """Say whether its words have this text."""
        return text in self.words

    def __repr__(self) -> str:
        return f"<{self.tag} {self.attributes}> {self.words[:2000]}"

    @property
    def text(self) -> str:
        """What is written in it, as it is."""
        return "".join(self._texts())

    @property
    def words(self) -> str:
        """What people read, a space between each two words or tags."""
        return re.sub(r"\s+", " ", " ".join(self._texts(UNSEEN))).strip()

    def parts(self, chosen: str) -> list[Part]:
        """Return the parts that this chooses, in the order of the page."""
        found: list[Part] = [self]
        for step in STEP.findall(chosen):
            conditions = CONDITION.findall(step)
            within = (part for each in found for part in each._all() if part._meets_all(conditions))
            found = list({id(part): part for part in within}.values())
        return found

    def part(self, chosen: str) -> Part:
        """Return the only part that this chooses."""
        found = self.parts(chosen)
        assert len(found) == 1, f"{len(found)} parts are {chosen} in {self!r}"
        return found[0]

    def section(self, heading: str) -> Part:
        """Return the part whose heading has this id."""
        return self.part(f'[aria-labelledby="{heading}"]')

    def texts(self, chosen: str) -> list[str]:
        """Return the words of each part."""
        return [part.words for part in self.parts(chosen)]

    def titles(self) -> str:
        """Return what the pointer is told, part by part."""
        return "; ".join(part["title"] for part in self.parts("[title]"))

    def links(self, chosen: str = "a") -> list[str]:
        """Return where the links lead to."""
        return [part["href"] for part in self.parts(chosen) if "href" in part.attributes]

    def link(self, words: str) -> str:
        """Return where the only link of these words leads to."""
        found = {part["href"] for part in self.parts("a[href]") if part.words == words}
        assert len(found) == 1, f"{words!r} leads to {found} in {self!r}"
        return found.pop()

    def table(self, rows: str = "tbody tr") -> list[list[str]]:
        """Return the words of the cells of each row."""
        return [row.cells() for row in self.parts(rows)]

    def cells(self) -> list[str]:
        return [part.words for part in self.inside if isinstance(part, Part)]

    def by_head(self, rows: str = "tbody tr") -> dict[str, list[str]]:
        """Return the words of the other cells of each row, by those of the first."""
        return {head: others for head, *others in self.table(rows)}

    def facts(self) -> dict[str, str]:
        """Return what a list of terms says, by term."""
        return dict(zip(self.texts("dt"), self.texts("dd"), strict=True))

    def field(self, name: str) -> Part:
        """Return the only field of this name."""
        return self.part(f'[name="{name}"]')

    def hidden(self) -> list[tuple[str, str]]:
        """Return the names and values that a form sends besides its fields."""
        return [(part["name"], part["value"]) for part in self.parts('input[type="hidden"]')]

    def sent(self) -> list[tuple[str, str]]:
        """Return the names and values that a form sends as it stands."""
        sent = []
        for part in (each for each in self._all() if each._is_sent()):
            several = part.parts("option[selected]") if "multiple" in part.attributes else [part]
            sent += [(part["name"], each._value()) for each in several]
        return sent

    def data(self, name: str) -> Any:
        """Return what a script of this id is given to read."""
        return json.loads(self.part(f"#{name}").text)

    def _is_sent(self) -> bool:
        is_choice = self.attributes.get("type") in ("checkbox", "radio")
        is_chosen = not is_choice or "checked" in self.attributes
        return self.tag in FIELDS and "name" in self.attributes and is_chosen

    def _value(self) -> str:
        if self.tag == "select":
            return (self.parts("option[selected]") or self.parts("option"))[0]._value()
        if self.tag == "textarea":
            return self.text
        by_default = "on" if "checked" in self.attributes else self.words
        return self.attributes.get("value", by_default)

    def _all(self) -> Iterator[Part]:
        for part in self.inside:
            if isinstance(part, Part):
                yield part
                yield from part._all()

    def _texts(self, without: frozenset[str] = frozenset()) -> Iterator[str]:
        for part in self.inside:
            if isinstance(part, str):
                yield part
            elif part.tag not in without:
                yield from part._texts(without)

    def _meets_all(self, conditions: list[tuple[str, ...]]) -> bool:
        return all(self._meets(*condition) for condition in conditions)

    def _meets(self, tag: str, id_: str, class_: str, name: str, how: str, value: str) -> bool:
        if tag:
            return tag in ("*", self.tag)
        if id_:
            return self.attributes.get("id") == id_
        if class_:
            return class_ in self.attributes.get("class", "").split()
        has = self.attributes.get(name)
        if has is None or not how:
            return has is not None
        return has == value if how == "=" else has.startswith(value)


class Page(Part):
    """A whole page, or what is put into one; each part is closed in the part it was opened in.

    It is taken apart only for who asks for a part: to read its words takes a tenth of the time.
    """

    def __init__(self, source: str) -> None:
        self.tag = "page"
        self.attributes = {}
        self.source = source

    @cached_property
    def inside(self) -> list[Part | str]:  # type: ignore[override]
        top = Part(self.tag, {})
        assert _fill([top], self.source) == [top], "a part is not closed"
        return top.inside

    @cached_property
    def words(self) -> str:  # type: ignore[override]
        return re.sub(r"\s+", " ", unescape(TAG.sub(" ", self.source))).strip()


def _fill(opened: list[Part], source: str) -> list[Part]:
    """Put the parts of a page into the one that is open; return those that are open at its end."""
    past = 0
    for found in TOKEN.finditer(source):
        opened[-1].inside.append(unescape(source[past : found.start()]))
        past = found.end()
        unread, unread_attributes, text, end, tag, attributes = found.groups("")
        if opened[-1].tag == "option" and end + tag in AFTER_OPTIONS:
            opened.pop()  # which a page need not end itself
        if end:
            part = opened.pop()
            assert part.tag == tag, f"</{tag}> ends {part!r}"
        elif unread:
            opened[-1].inside.append(script := _part(unread, unread_attributes))
            script.inside.append(text)
        elif tag:
            opened[-1].inside.append(part := _part(tag, attributes))
            if tag not in VOID and not attributes.endswith("/"):
                opened.append(part)
    opened[-1].inside.append(unescape(source[past:]))
    return opened


def _part(tag: str, attributes: str) -> Part:
    """Return a part with these attributes; one without a value has an empty one."""
    return Part(tag, {name: unescape(value) for name, value in ATTRIBUTE.findall(attributes)})
