"""The navigation: six sections with their pages as tabs, and the menu of the account.

The rights of an entry are those that its view states, so no entry leads to a refusal. Where a page
has not read the rights of the account, its entries are at most a minute old: they cost no query.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import quote

from cachetools import TTLCache
from django import template
from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, get_script_prefix, resolve, reverse

from sonar.people import roles

register = template.Library()

ADMIN = "admin:index"
SAVED_VIEWS = "Saved views"


@dataclass(frozen=True)
class NavigationEntry:
    """A page of the navigation, by the name of its route; `query` is what its address adds."""

    label: str
    route: str
    query: str = ""

    def path(self) -> str:
        return reverse(self.route)


SECTIONS = {
    "Overview": (
        NavigationEntry("Matrix", "matrix"),
        NavigationEntry("Table", "table"),
        NavigationEntry("Wall", "matrix", "?wall=1"),
    ),
    "Sites": (NavigationEntry("All sites", "sites"),),
    "Problems": (
        NavigationEntry("Incidents", "incidents"),
        NavigationEntry("Events", "events"),
        NavigationEntry("Causes", "causes"),
    ),
    "Reports": (
        NavigationEntry("Weekly and monthly", "reports"),
        NavigationEntry("Commissioning", "commissioning"),
    ),
    "Setup": (
        NavigationEntry("Meshes", "meshes"),
        NavigationEntry("Targets", "targets"),
        NavigationEntry("Downtimes", "downtimes"),
        NavigationEntry("Size classes", "size-classes"),
        NavigationEntry("Aliases", "aliases"),
        NavigationEntry("Topology", "topology"),
        NavigationEntry("Add site", "add-site"),
    ),
    "Health": (NavigationEntry("Health", "operations"),),
}
ACCOUNT = (
    NavigationEntry("Notifications", "subscriptions"),
    NavigationEntry(SAVED_VIEWS, "views"),
    NavigationEntry("API tokens", "tokens"),
    NavigationEntry("People", "people"),
    NavigationEntry("History", "history"),
    NavigationEntry("Admin", ADMIN),
)

ENTRIES = tuple(entry for entries in (*SECTIONS.values(), ACCOUNT) for entry in entries)
# The routes that accounts may open, by account and log-in, for a minute.
ROUTES: TTLCache[object, frozenset[str]] = TTLCache(1000, ttl=60)
LOCK = Lock()


@dataclass(frozen=True)
class NavigationLink:
    """An entry as one page shows it; `current` is the value of its aria-current, if any."""

    label: str
    url: str
    current: str


@dataclass(frozen=True)
class NavigationSection:
    label: str
    url: str
    current: str
    pages: tuple[NavigationLink, ...] = ()
    title: str = ""

    @property
    def tabs(self) -> tuple[NavigationLink, ...]:
        """Return the pages where there is a choice of them."""
        return self.pages if len(self.pages) > 1 else ()


@dataclass(frozen=True)
class Navigation:
    sections: tuple[NavigationSection, ...] = ()
    account: tuple[NavigationLink, ...] = ()

    @property
    def section(self) -> NavigationSection | None:
        """Return the section that the page is in, if it is in one."""
        return next((section for section in self.sections if section.current), None)

    @property
    def in_account(self) -> NavigationLink | None:
        """Return the entry of the account's menu that the page is in, if it is in one."""
        return next((link for link in self.account if link.current), None)


@register.simple_tag(takes_context=True)
def navigation(context: Mapping[str, Any]) -> Navigation:
    """Return the entries that the reader may open, with the current one marked.

    A page below another one, such as an incident, belongs to the entry whose path its own begins
    with. Other tabs of the page's section keep what the page asks for, if the page says how
    (``Page.tabs``).
    """
    request = context.get("request")
    # Errors that are found before the account is read have neither.
    if not isinstance(request, HttpRequest) or not hasattr(request, "user"):
        return Navigation()
    paths = {entry.route: entry.path() for entry in ENTRIES}
    current = current_path(request.path, set(paths.values()))
    kept: dict[str, str] = {}
    if (page := context.get("page")) and hasattr(page, "tabs"):
        # The page of saved views offers to save the page that one comes from.
        views = f"{reverse('views')}?address={quote(page.url(), safe='')}"
        kept = page.tabs() | {SAVED_VIEWS: views}

    routes = routes_for(request)

    def link(entry: NavigationEntry) -> NavigationLink:
        path = paths[entry.route]
        is_current = path == current and not entry.query
        mark = ("page" if path == request.path else "true") if is_current else ""
        return NavigationLink(entry.label, kept.get(entry.label, path + entry.query), mark)

    def allowed(entries: tuple[NavigationEntry, ...]) -> tuple[NavigationLink, ...]:
        return tuple(link(entry) for entry in entries if entry.route in routes)

    sections = []
    for label, entries in SECTIONS.items():
        if pages := allowed(entries):
            marks = [page.current for page in pages]
            mark = marks[0] or ("true" if any(marks) else "")
            sections.append(NavigationSection(label, paths[entries[0].route], mark, pages))
        if label == "Sites" and pages and (site := context.get("my_site")):
            # A cookie may hold any text, also one that is not in the path of any site.
            with suppress(NoReverseMatch):
                url = reverse("site", args=[site])
                mark = "page" if url == request.path else ""
                sections.append(NavigationSection("My site", url, mark, title=site))
    account = allowed(ACCOUNT) if request.user.is_authenticated else ()
    return Navigation(tuple(sections), account)


def current_path(path: str, paths: set[str]) -> str:
    """Return the path of the entry that a page belongs to: the longest one it begins with."""
    # All paths begin with that of the matrix.
    home = get_script_prefix()
    above = [each for each in paths if path.startswith(each) and (each != home or path == home)]
    return max(above, key=len, default="")


def routes_for(request: HttpRequest) -> frozenset[str]:
    """Return the routes that the sender of a request may open."""
    user = request.user
    if not user.is_authenticated or roles.are_read(user):
        return read_routes(request)
    key = user.pk, user.date_joined, user.last_login
    with LOCK:
        routes = ROUTES.get(key)
    if routes is None:
        routes = read_routes(request)
        with LOCK:
            ROUTES[key] = routes
    return routes


def read_routes(request: HttpRequest) -> frozenset[str]:
    return frozenset(entry.route for entry in ENTRIES if may_open(request, entry.route))


def may_open(request: HttpRequest, route: str) -> bool:
    if route == ADMIN:
        return admin.site.has_permission(request)
    return bool(right_to(route)(request))


@cache
def right_to(route: str) -> Any:  # noqa: ANN401 - the view states it as a callable
    """Return the right to GET a page without arguments, as its view states it."""
    path = reverse(route).removeprefix(get_script_prefix().rstrip("/"))
    view: Any = resolve(path).func
    return view.rights["GET"]
