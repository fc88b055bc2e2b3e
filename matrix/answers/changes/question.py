"""Which changes of level somebody asks for: the parameters of the page and of the call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from matrix.query.filters import LINK_FILTERS, either
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store.changes import LEVELS, ChangeSelection
from sonar.models import Change, SizeClass
from sonar.notation.units import three_digits

# Changes are rare: a longer window than elsewhere.
WINDOW = "30d"
OWN = ("size", "kind", "level", "factor", "sure")
NAMES = ("window", "from", "to", *LINK_FILTERS, *OWN)
SURE = ("yes", "any")
MOST_FACTOR = 1000.0
KIND_WORDS = {
    "link": "of single links",
    "source": "of endpoints as sources",
    "destination": "of endpoints as destinations",
    "grid": "of all links together",
}

Texts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class ChangesQuestion:
    """``query`` has window and filters alone; of the rest, nothing means any."""

    query: MatrixQuery
    size: str = ""
    kind: str = ""
    level: str = ""
    factor: str = ""
    unsure: bool = False

    @classmethod
    def read(cls, params: Texts, also: Sequence[str] = ()) -> Self:
        """Read URL parameters; raise BadQueryError. Those in ``also`` belong to the caller."""
        check_names(params, (*NAMES, *also))
        query = MatrixQuery.from_params(params, also=(*OWN, *also))
        bare = not any(params.get(name) for name in ("window", "from"))
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        return cls(
            query.replace(window=WINDOW) if bare else query,
            size=one_of(params, "size", sizes),
            kind=one_of(params, "kind", Change.Kind.values),
            level=one_of(params, "level", LEVELS),
            factor=factor_of(params),
            unsure=one_of(params, "sure", SURE) == "any",
        )

    def to_params(self) -> dict[str, list[str]]:
        """Return the URL parameters, defaults left out."""
        params = self.query.to_params()
        params.pop("window", None)
        if self.query.window and self.query.window != WINDOW:
            params = {"window": [self.query.window], **params}
        own = {
            "size": self.size,
            "kind": self.kind,
            "level": self.level,
            "factor": self.factor,
            "sure": "any" if self.unsure else "",
        }
        return params | {name: [text] for name, text in own.items() if text}

    def selection(self, now: datetime) -> ChangeSelection:
        return ChangeSelection(
            self.query.window_at(now),
            self.size,
            (self.kind,) if self.kind else (),
            self.level,
            float(self.factor) if self.factor else 1.0,
            self.unsure,
            self.query.filters,
        )

    def describe(self) -> str:
        """Say the question as a sentence without a full stop."""
        parts = [f"Changes in rate {KIND_WORDS[self.kind]}" if self.kind else "Changes in rate"]
        if self.size:
            parts[0] += f" with {self.size} files"
        parts.append(self.query.window_words())
        if self.level:
            parts.append(f"only to a {self.level} rate")
        if self.factor:
            parts.append(f"by a factor of at least {three_digits(float(self.factor))}")
        parts += [condition.words() for condition in self.query.filters]
        return ", ".join([*parts, "uncertain ones, too"] if self.unsure else parts)

    def replace(self, **changes: object) -> Self:
        return replace(self, **changes)  # type: ignore[arg-type]


def one_of(params: Texts, name: str, allowed: Sequence[str]) -> str:
    """Return one of some words, or nothing; raise BadQueryError."""
    value = text_of(params, name)
    if value and value not in allowed:
        raise BadQueryError({name: [f"{name} “{value}” is not known: use {either(allowed)}."]})
    return value


def factor_of(params: Texts) -> str:
    """Return the smallest factor as it is written; nothing for 1, which leaves out none."""
    text = text_of(params, "factor")
    if not text:
        return ""
    number = float(text) if re.fullmatch(r"\d{1,4}(\.\d{0,6})?", text, re.ASCII) else 0.0
    if not 1 <= number <= MOST_FACTOR:
        sentence = f"factor “{text}” is not a number from 1 to {MOST_FACTOR:.0f}, like 1.5."
        raise BadQueryError({"factor": [sentence]})
    return "" if number == 1 else f"{number:g}"


def text_of(params: Texts, name: str) -> str:
    values = params.get(name, ())
    if len(values) > 1:
        raise BadQueryError({name: [f"{name} is given {len(values)} times: give it once."]})
    return values[0] if values else ""
