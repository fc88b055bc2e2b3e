"""A view for others: its addresses, its data by REST, and files of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from matrix.pages.base import Page, QueryPage

# The figure behind a picture: the words of each form, and its parameters.
FIGURES = (
    ("{} for a notebook (Plotly JSON)", "format=plotly"),
    ("{} as one HTML file", "format=html"),
)


@dataclass(frozen=True)
class Share:
    """Paths below the root; the template puts scheme and host before them.

    ``csv`` is empty where the call has JSON alone; ``wide`` is the CSV of a matrix with its
    averages, empty where there is none; ``documents`` are further files, each with its words.
    """

    json: str
    csv: str = ""
    wide: str = ""
    documents: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, api_url: str) -> Share:
        """Make it of a call of the API that answers in JSON unless asked for CSV."""
        return cls(api_url, with_format(api_url, "format=csv"))

    @classmethod
    def of_matrix(cls, api_url: str) -> Share:
        """Make it of the call of the matrix: its CSV has a wide form with averages."""
        share = cls.of(api_url).drawing(api_url)
        return dataclasses.replace(share, wide=with_format(api_url, "format=csv&shape=wide"))

    def drawing(self, api_url: str, subject: str = "Figure") -> Share:
        """Add what a call draws; ``subject`` tells several pictures of a page apart."""
        return self.adding([(words.format(subject), form) for words, form in FIGURES], api_url)

    def adding(self, forms: Iterable[tuple[str, str]], api_url: str) -> Share:
        more = ((words, with_format(api_url, form)) for words, form in forms)
        return dataclasses.replace(self, documents=(*self.documents, *more))


def with_format(api_url: str, form: str) -> str:
    return f"{api_url}{'&' if '?' in api_url else '?'}{form}"


@dataclass(frozen=True)
class ChatCard:
    """What a chat and a search engine show of a page; ``image`` is the path of its image."""

    title: str
    description: str
    image: str

    @classmethod
    def of(cls, page: Page, path: str, title: str, sentences: str, *, simulated: bool) -> ChatCard:
        """Make it of a page whose image is at a path, with the page's own parameters."""
        said = f"{sentences.rstrip('.')}." + " Simulated endpoints." * simulated
        params = page.url().partition("?")[2]
        return cls(title, said, f"{path}?{params}" if params else path)


def permalinks(page: Page, now: datetime) -> dict[str, str]:
    """Return the addresses of a view: `newest` shows it as it will be, `exact` its very numbers.

    `exact` has the two bounds of the window in force, `window` says them in words. There is
    neither for a page without a window, nor `exact` where its own address has the bounds already.
    """
    if not isinstance(page, QueryPage):
        return {"newest": page.url()}
    window = page.query.window_at(now)
    bounded = page.query.replace(window="", start=window.start, end=window.end)
    exact = "" if page.query.start else dataclasses.replace(page, query=bounded).url()
    return {"newest": page.url(), "exact": exact, "window": bounded.window_words()}
