"""Addresses of pages and calls: by the names of their routes, below the path Sonar is served at."""

from __future__ import annotations

from django.urls import reverse

from matrix.query.filters import PROFILE_FILTERS, Filter
from matrix.query.matrix_query import MatrixQuery


def address(route: str, *args: object) -> str:
    """Return the path of a page or a call by the name of its route; some 10 us."""
    return reverse(route, args=args)


def link_url(source: str, destination: str, query: MatrixQuery) -> str:
    """Return the page of a link, for the window and the ways of measuring of a query."""
    return about_link(query).url(address("link", source, destination))


def about_link(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says nothing about a single link."""
    profile = tuple(
        criterion for criterion in query.filters if criterion.parameter in PROFILE_FILTERS
    )
    return bare(query).replace(filters=profile)


def site_url(name: str, query: MatrixQuery) -> str:
    """Return the page of a site, for the window and the ways of measuring of a query."""
    return about_link(query).url(address("site", name))


def table_url(query: MatrixQuery) -> str:
    """Return the table of the links that a matrix shows."""
    return bare(query).url(address("table"))


def bare(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says how a matrix is made of links; the table shows outdated ones, too."""
    return query.replace(stat="mean", rows="endpoint", columns="endpoint", max_age="")


def matrix_url(query: MatrixQuery) -> str:
    return query.url(address("matrix"))


def endpoint_url(name: str) -> str:
    """Return the matrix of the links of one endpoint."""
    return matrix_url(MatrixQuery(filters=(Filter("endpoint", name),)))
