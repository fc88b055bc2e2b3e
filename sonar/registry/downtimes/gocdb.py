"""Downtimes as GOCDB answers `get_downtime`: an element for each service that one affects.

Elements of one PRIMARY_KEY are one downtime. AFFECTED_ENDPOINTS names the endpoints of the service
that are meant. What is empty is left out there, and an error comes as `<error>` with the status
200. Pages begin with `next_cursor=0`; each names the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlencode, urlsplit
from xml.etree.ElementTree import Element

from sonar.models import Downtime
from sonar.models.aliases import AliasKind
from sonar.notation.addresses import is_url, name_of
from sonar.registry.downtimes.announcement import (
    LONGEST,
    AffectedService,
    Announcement,
    Answer,
    LeftOut,
    bounded,
    host_name,
    moment_of,
    period_of,
    reason_of,
)
from sonar.registry.downtimes.document import BadAnswer, Part, root_of, shortened
from sonar.registry.tape import says_tape

SEVERITIES = {"OUTAGE": Downtime.Severity.OUTAGE, "WARNING": Downtime.Severity.WARNING}
WEB = ("http://", "https://")


def question(address: str, now: datetime, past: timedelta) -> str:
    """Return the URL that asks for all downtimes, past ones that ended so recently, too.

    An empty scope is all scopes; without the parameter only the default one is answered.
    """
    window = {"windowstart": f"{now - past:%Y-%m-%d}"}
    parameters = {"method": "get_downtime", "scope": "", **window, "next_cursor": "0"}
    return f"{address}?{urlencode(parameters)}"


def read(content: bytes) -> Answer:
    """Read a page; raise BadAnswer if it is no answer of GOCDB, or none of its elements is."""
    root = root_of(content, "results")
    if (error := root.find("error")) is not None:
        raise BadAnswer("", f"the source reports an error: {shortened(error.text or '')}")
    by_key: dict[str, Announcement] = {}
    left_out: list[LeftOut] = []
    for part in downtimes_in(root):
        key = ""
        try:
            key = key_of(part)
            announcement = announcement_of(part, key)
            by_key[key] = joined(part, by_key[key], announcement) if key in by_key else announcement
        except BadAnswer as error:
            left_out.append(LeftOut(key, str(error)))
    if left_out and not by_key:
        raise BadAnswer("", left_out[0].sentence)
    return Answer(tuple(by_key.values()), tuple(left_out), next_page(root))


def downtimes_in(root: Element) -> Iterator[Part]:
    for number, element in enumerate(root.iterfind("DOWNTIME"), 1):
        key = element.get("PRIMARY_KEY", "")
        yield Part(element, f"DOWNTIME {number}{key and f' ({shortened(key)[1:-1]})'}")


def announcement_of(part: Part, key: str) -> Announcement:
    starts_at, ends_at = period_of(part, ("START_DATE", "END_DATE"), time_of)
    return Announcement(
        key=key,
        starts_at=starts_at,
        ends_at=ends_at,
        severity=part.word("SEVERITY", SEVERITIES),
        reason=reason_of(part.text_if_any("DESCRIPTION")),
        url=page_of(part),
        services=tuple(services_of(part)),
    )


def time_of(part: Part, name: str) -> datetime:
    return moment_of(part, name, part.whole(name))


def services_of(part: Part) -> Iterator[AffectedService]:
    """Yield the service, once for each of its endpoints that the downtime names."""
    service = AffectedService(
        host=host_name(part, "HOSTNAME"),
        kind=bounded(part, "SERVICE_TYPE", "kind"),
        owner=bounded(part, "HOSTED_BY", "owner", is_needed=False),
        owner_kind=AliasKind.GOCDB_SITE,
    )
    service = replace(service, is_tape=says_tape(service.kind))
    endpoints = list(part.parts("AFFECTED_ENDPOINTS/ENDPOINT"))
    for endpoint in endpoints:
        url = endpoint.text_if_any("URL")
        marks = endpoint.text_if_any("NAME"), endpoint.text_if_any("INTERFACENAME")
        host, path = host_and_path(url)
        yield replace(
            service,
            host=host or service.host,
            url=url if host else "",
            is_tape=service.is_tape or says_tape(*marks, path),
        )
    if not endpoints:
        yield service


def host_and_path(url: str) -> tuple[str, str]:
    """Return what sites write as a URL by its parts; an empty host if it names none."""
    try:
        parts = urlsplit(url if is_url(url) else f"//{url}")
        host = parts.hostname or ""
    except ValueError:  # an address of IPv6 that is none
        return "", ""
    return (name_of(host) if "." in host or ":" in host else ""), parts.path


def key_of(part: Part) -> str:
    """Return the primary key, which an attribute and an element have."""
    attribute = part.element.get("PRIMARY_KEY", "").strip()
    key = bounded(part, "PRIMARY_KEY", "key", is_needed=not attribute) or attribute
    if attribute and attribute != key:
        why = f"{shortened(key)} differs from the attribute, {shortened(attribute)}"
        raise BadAnswer(part.place("PRIMARY_KEY"), why)
    return key


def page_of(part: Part) -> str:
    """Return the address of its page; nothing for what is no address of the web for all."""
    url = part.text_if_any("GOCDB_PORTAL_URL")
    is_fit = url.startswith(WEB) and url.isprintable() and not {" ", "@"} & set(url)
    return url if is_fit and len(url) <= LONGEST["url"] else ""


def joined(part: Part, before: Announcement, more: Announcement) -> Announcement:
    """Add the service of an element to what others said of the same downtime."""
    for name in ("starts_at", "ends_at", "severity"):
        if getattr(before, name) != getattr(more, name):
            why = f"an earlier element with the same PRIMARY_KEY has a different {words(name)}"
            raise BadAnswer(part.where, why)
    return with_services(before, (*before.services, *more.services))


def words(name: str) -> str:
    return {"starts_at": "START_DATE", "ends_at": "END_DATE", "severity": "SEVERITY"}[name]


def with_services(announcement: Announcement, services: Iterable[AffectedService]) -> Announcement:
    return replace(announcement, services=tuple(dict.fromkeys(services)))


def next_page(root: Element) -> str:
    """Return the address of the next page; nothing if this one has no downtime."""
    if root.find("DOWNTIME") is None:
        return ""
    links = (link for link in root.iterfind("meta/link") if link.get("rel") == "next")
    return next((link.get("href", "") for link in links), "")
