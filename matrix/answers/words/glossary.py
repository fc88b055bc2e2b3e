"""The glossary of glossary.toml: for its page, for docs/glossary.md and for terms on pages."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from django.utils.text import slugify


@dataclass(frozen=True)
class Term:
    """A term with its meaning in one sentence, and what other tools call the same thing.

    ``page`` is the route of a page that shows it, with what its address adds (``query``);
    ``doc`` is the page in docs/ that explains it, with the anchor of a section.
    """

    name: str
    meaning: str
    elsewhere: str = ""
    page: str = ""
    query: str = ""
    doc: str = ""

    @cached_property
    def anchor(self) -> str:
        return slugify(self.name)


SOURCE = Path(__file__).with_suffix(".toml")
GLOSSARY: dict[str, tuple[Term, ...]] = {
    group: tuple(Term(**term) for term in terms)
    for group, terms in tomllib.loads(SOURCE.read_text()).items()
}
BY_ANCHOR = {term.anchor: term for terms in GLOSSARY.values() for term in terms}
