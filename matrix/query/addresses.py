"""Addresses of pages that others link to, with the window and the filters of the view."""

from __future__ import annotations

from urllib.parse import quote

from matrix.query.filters import PROFILE_FILTERS
from matrix.query.matrix_query import MatrixQuery


def link_url(source: str, destination: str, query: MatrixQuery) -> str:
    """Return the page of a link, for the window and the ways of measuring of a query."""
    return about_link(query).url(f"/links/{quote(source)}/{quote(destination)}/")


def about_link(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says nothing about a single link."""
    made = tuple(one for one in query.filters if one.parameter in PROFILE_FILTERS)
    return bare(query).replace(filters=made)


def site_url(name: str, query: MatrixQuery) -> str:
    """Return the page of a site, for the window and the ways of measuring of a query."""
    return about_link(query).url(f"/sites/{quote(name)}/")


def table_url(query: MatrixQuery) -> str:
    """Return the table of the links that a matrix shows."""
    return bare(query).url("/table/")


def bare(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says how a matrix is made of links; the table shows outdated ones, too."""
    return query.replace(stat="mean", rows="endpoint", columns="endpoint", max_age="")


def matrix_url(query: MatrixQuery) -> str:
    return query.url("/")
