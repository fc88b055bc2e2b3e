"""The views that a wall shows in turn, as its address has them: `views`, `every` and `view`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict

from matrix.pages.base import Params
from matrix.pages.matrix.address import MatrixAddress
from matrix.plots import display
from matrix.query import forms
from matrix.query.forms import BadQueryError
from matrix.templatetags.figures import nth
from sonar.notation.units import parse_duration

OWN = ("views", "every", "view")
MOST_VIEWS = 12
EVERY = "30s"
SHORTEST, LONGEST = 5, 3600
# What a view says and the wall itself does not: beside `views` it would be of none of them.
OF_A_VIEW = {*forms.PARAMETERS, *display.PARAMETERS, *forms.FILTER_FORM} - {"wall"}


@dataclass(frozen=True)
class Rotation:
    """``at`` is the place in ``views`` of what is shown, ``every`` for how long, as it is written.

    There are two views or more, or none.
    """

    views: tuple[MatrixAddress, ...] = ()
    at: int = 0
    every: str = EVERY

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Read the parameters in OWN; raise BadQueryError with sentences."""
        texts = params.getlist("views")
        for name in ("every", "view"):
            if (count := len(params.getlist(name))) > 1:
                raise bad(name, f"{name} is given {count} times: give it once.")
        every = read_every(params.get("every", "").strip() or EVERY)
        views = read_views(texts) if texts else ()
        at = read_view(params.get("view", "").strip() or "1", max(len(views), 1))
        if beside := [name for name in params if texts and name in OF_A_VIEW]:
            name = beside[0]
            raise bad(name, f"{name} belongs into the views that it is for, not next to them.")
        return cls(views, at, every)

    @property
    def seconds(self) -> int:
        return seconds_of(self.every)

    def to_params(self) -> Params:
        """Return the URL parameters, defaults left out."""
        params = {"views": [text_of(view) for view in self.views]}
        if self.every != EVERY:
            params["every"] = [self.every]
        if self.at:
            params["view"] = [str(self.at + 1)]
        return params


def bad(name: str, sentence: str) -> BadQueryError:
    return BadQueryError({name: [sentence]})


def text_of(view: MatrixAddress) -> str:
    """Return what stands behind the question mark in the address of a view's matrix."""
    plain = view.displaying(view.display.replace(wall=False))
    return urlencode(plain.params(), True, ":!")


def read_every(text: str) -> str:
    try:
        seconds = seconds_of(text)
    except ValueError:
        seconds = 0
    if not SHORTEST <= seconds <= LONGEST:
        raise bad(
            "every",
            f"every “{text}” is not a time from 5 seconds to an hour. Write seconds, or a number "
            "with s, m or h, like 30s.",
        )
    return text


def seconds_of(text: str) -> int:
    whole = f"{text}s" if text.isdigit() else text
    return int(parse_duration(whole).total_seconds())


def read_view(text: str, count: int) -> int:
    """Return the place of a view, from 0; in the address they are counted from 1."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= count):
        allowed = f"a number from 1 to {count}" if count > 1 else "1, as there is no other view"
        raise bad("view", f"view “{text}” is none of the views: write {allowed}.")
    return int(text) - 1


def read_views(texts: Sequence[str]) -> tuple[MatrixAddress, ...]:
    if len(texts) > MOST_VIEWS:
        raise bad("views", f"views is given {len(texts)} times: {MOST_VIEWS} views are the most.")
    errors: list[str] = []
    views = []
    for number, text in enumerate(texts, 1):
        try:
            views.append(read_one_view(text))
        except BadQueryError as error:
            errors += sentences_on(number, text, error)
    if errors:
        raise BadQueryError({"views": errors})
    return tuple(views)


def read_one_view(text: str) -> MatrixAddress:
    params = QueryDict(text.strip().removeprefix("?"))
    for name in (*OWN, "wall"):
        if name in params:
            raise bad(name, f"{name} is for the wall as a whole: leave it out of the view.")
    return MatrixAddress.read(params)


def sentences_on(number: int, text: str, error: BadQueryError) -> Iterator[str]:
    """Say which view is wrong, and why."""
    for sentences in error.errors.values():
        for sentence in sentences:
            yield f"In the {nth(number)} of the views, “{text}”: {sentence}"
