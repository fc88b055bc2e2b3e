"""Conditions as pages list them: in order, each as a line, and the colour of the worst."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import Judgement, open_sizes
from matrix.answers.words.names import NO_NAMES
from matrix.store.conditions import MARKS
from sonar.models import Condition

SCOPES, TYPES = Condition.Scope, Condition.Type
# How something is, the worst first; what is coloured by a condition has one of the first four.
KINDS = ("failing", "silent", "slower", "faster", "usual", "unknown", "untested", "down", "none")
# The same by the type of a condition, the worst first.
KIND_OF: dict[str, str] = {
    TYPES.FAILING: "failing",
    TYPES.SILENT: "silent",
    TYPES.SLOW: "slower",
    TYPES.FAST: "faster",
}


class ConditionLine(NamedTuple):
    """What is said in a line: ``title`` and, of a condition, its figures in ``rest``.

    ``url`` is the page that shows a condition, ``kind`` what colours it.
    """

    title: str
    rest: str = ""
    url: str = ""
    kind: str = ""

    @classmethod
    def of(cls, condition: Condition, names: Mapping[str, str] = NO_NAMES) -> Self:
        title, kind = words.title(condition, names), KIND_OF[condition.type]
        return cls(title, words.details(condition), words.url(condition), kind)

    @property
    def sentence(self) -> str:
        return f"{self.title}, {self.rest}" if self.rest else self.title


def of_class(judgement: Judgement, size: str = "", *, confirmed: bool = True) -> list[Condition]:
    """Return the conditions of a size class or of all, those of most links first, then the worst.

    Those of the grid are apart, and stand for all that began during them.
    """
    chosen = judgement.confirmed if confirmed else judgement.unconfirmed
    here = [each for each in judgement.listed(chosen) if not size or size in open_sizes(each)]
    # Scopes are listed from a link to the grid.
    order = SCOPES.values.index
    here.sort(key=lambda each: (-order(each.scope), -MARKS.index(each.type), each.since))
    return here


def worst_kind(conditions: Iterable[Condition]) -> str:
    """Return the one of KINDS that says the worst of some conditions; empty for none."""
    return min((KIND_OF[each.type] for each in conditions), key=KINDS.index, default="")
