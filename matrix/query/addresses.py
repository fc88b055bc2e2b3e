"""Addresses of pages and calls: by the names of their routes, below the path Sonar is served at."""

from functools import lru_cache
from urllib.parse import quote

from django.conf import settings
from django.urls import get_script_prefix, reverse

from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery

# Stand for the ends of a link; no name has a colon.
SOURCE, DESTINATION = ":source", ":destination"
# What messages lead to. Workers write them, whose image lacks libraries that pages need: there the
# routes, which load all pages, cannot be read.
OF_MESSAGES = {
    "api-report": "api/v1/reports/{}/",
    "causes": "causes/",
    "confirm-address": "subscriptions/confirm/",
    "incident": "incidents/{}/",
    "link": "links/{}/{}/",
    "matrix": "",
    "report": "reports/{}/",
    "site": "sites/{}/",
    "subscriptions": "subscriptions/",
    "table": "table/",
}
# What a path may have as it is, as Django writes it.
PLAIN = "!$&'()*+,;=/~:@"


def address(route: str, *args: object) -> str:
    """Return the path of a page or a call by the name of its route; some 10 us at most."""
    if (path := OF_MESSAGES.get(route)) is not None:
        return get_script_prefix() + path.format(*(quote(str(each), PLAIN) for each in args))
    return reverse(route, args=args)


def outside(route: str, *args: object) -> str:
    """Return the address of a page for who is not on one: below SONAR_URL, whoever writes it."""
    path = address(route, *args).removeprefix(get_script_prefix().rstrip("/"))
    return f"{settings.SONAR_URL}{path}"


def home() -> str:
    """Return what stands before the path of any page for who is not on one: of SONAR_URL."""
    return settings.SONAR_URL.removesuffix(get_script_prefix().rstrip("/"))


def link_url(source: str, destination: str, query: MatrixQuery) -> str:
    """Return the page of a link, for the window and the ways of measuring of a query."""
    return link_path(source, destination) + _behind_links(query)


@lru_cache(maxsize=64)
def _behind_links(query: MatrixQuery) -> str:
    """Return what stands behind the path of every link of a page, which has hundreds of them."""
    return about_link(query).url("")


def link_path(source: str, destination: str) -> str:
    """Return the page of a link without parameters; pages have hundreds of these."""
    path = _path_of_links(get_script_prefix())
    return path.replace(SOURCE, quote(source)).replace(DESTINATION, quote(destination))


@lru_cache(maxsize=4)
def _path_of_links(prefix: str) -> str:
    """Return the path with names for its ends; reverse() looks for the prefix itself."""
    return address("link", SOURCE, DESTINATION)


def about_link(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says nothing about a single link."""
    compare = query.compare.on_profiles() if query.compare else None
    return bare(query).replace(filters=tuple(on_profiles(query.filters)), compare=compare)


def site_url(name: str, query: MatrixQuery) -> str:
    """Return the page of a site, for the window and the ways of measuring of a query."""
    return about_link(query).url(address("site", name))


def table_url(query: MatrixQuery) -> str:
    return bare(query).url(address("table"))


def bare(query: MatrixQuery) -> MatrixQuery:
    """Leave out what says how a matrix is made of links; the table shows outdated ones, too."""
    return query.replace(stat="mean", rows="endpoint", columns="endpoint", max_age="")


def matrix_url(query: MatrixQuery) -> str:
    return query.url(address("matrix"))


def causes_url(query: MatrixQuery) -> str:
    """Return the page of causes of sites, for the window and the ways of measuring of a query."""
    return about_link(query).replace(rows="site", columns="site").url(address("causes"))


def endpoint_url(name: str) -> str:
    return matrix_url(MatrixQuery(filters=(Filter("endpoint", name),)))
