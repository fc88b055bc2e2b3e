"""The page of the glossary."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from matrix.answers.words.glossary import GLOSSARY, Term
from matrix.pages.base import Page
from matrix.query.addresses import address
from matrix.store.data_version import DataVersion
from matrix.templatetags.navigation import ACCOUNT, SECTIONS
from sonar.people.roles import Anyone

GROUPS = tuple(GLOSSARY.items())
LABELS = {
    entry.route: entry.label
    for entries in (*SECTIONS.values(), ACCOUNT)
    for entry in entries
    if not entry.query
}


@dataclass(frozen=True)
class GlossaryPage(Page):
    template: ClassVar[str] = "glossary.html"
    route: ClassVar[str] = "glossary"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {"groups": [(group, [line(term) for term in terms]) for group, terms in GROUPS]}


def line(term: Term) -> tuple[Term, str, str]:
    """Return a term with the label and the address of the page that shows it, if there is one."""
    label = LABELS.get(term.page, "")
    return term, label, address(term.page) + term.query if label else ""
