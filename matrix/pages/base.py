"""What all pages have in common: a URL that says everything, and an answer for a template."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.http import QueryDict

from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.store.data_version import DataVersion
from sonar.people.roles import Anyone

Params = dict[str, list[str]]


@dataclass(frozen=True)
class Page:
    """A page as its URL asks for it.

    ``route`` is the name of its route, where that needs nothing but the name. No replica of the
    database answers what is ``of_primary``.
    """

    template: ClassVar[str]
    route: ClassVar[str]
    of_primary: ClassVar[bool] = False

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        """Read the URL; raise BadQueryError for parameters, Http404 for a path to nothing.

        A page whose address says everything has no parameters.
        """
        check_names(params)
        return cls()

    def path(self) -> str:
        return address(self.route)

    def params(self) -> Params:
        """Return the URL parameters, defaults left out: one view has one URL."""
        return {}

    def url(self) -> str:
        text = encoded(self.params())
        return f"{self.path()}?{text}" if text else self.path()

    def tabs(self) -> dict[str, str]:
        """Return the addresses of other tabs of the navigation that keep what this page asks for.

        They are named by the labels of the tabs.
        """
        return {}

    def remembering(self, cookies: Mapping[str, str]) -> Self:
        """Return the page with what the reader chose last, where the URL leaves that open."""
        return self

    def version(self, now: datetime) -> DataVersion | None:
        """Return what changes whenever the page may, for its ETag; None for no ETag."""
        return None

    def stamp(self) -> str:
        """Return what else changes with the page, where version() is only that of its answer."""
        return ""

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Return what the template shows to a reader.

        The number of SQL queries does not grow with data.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class QueryPage(Page):
    """A page that asks for a window, a size class and filters, and for things of its own."""

    query: MatrixQuery

    def own_params(self) -> Params:
        return {}

    def params(self) -> Params:
        return self.query.to_params() | self.own_params()

    def asking(self, query: MatrixQuery) -> Self:
        return dataclasses.replace(self, query=query)
