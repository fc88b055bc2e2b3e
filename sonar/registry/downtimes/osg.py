"""Downtimes as OSG Topology answers `/rgdowntime/xml`: an element for each resource and its ID.

Its times have a clock of 24 hours and AM or PM beside it: `Oct 31, 2023 14:00 PM UTC`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import Element

from sonar.models import Downtime
from sonar.models.aliases import AliasKind
from sonar.registry.downtimes.announcement import (
    AffectedService,
    Announcement,
    Answer,
    LeftOut,
    bounded,
    host_name,
    in_range,
    period_of,
    reason_of,
)
from sonar.registry.downtimes.document import BadAnswer, Part, root_of, shortened
from sonar.registry.tape import says_tape

OUTAGE, WARNING = Downtime.Severity.OUTAGE, Downtime.Severity.WARNING
SEVERITIES = {
    "Outage": OUTAGE,
    "Severe": OUTAGE,
    "Intermittent Outage": WARNING,
    "No Significant Outage Expected": WARNING,
}
GROUPS = ("PastDowntimes", "CurrentDowntimes", "FutureDowntimes")
MONTH_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES.split(" "), 1)}
TIME = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}) (?P<hour>\d{2}):(?P<minute>\d{2})"
    r"(?: (?P<half>AM|PM))? (?P<zone>UTC|GMT|[+-]\d{4})",
    re.ASCII,
)
TIME_WORDS = "a time such as Oct 31, 2023 14:00 PM UTC"


def question(address: str, now: datetime, past: timedelta) -> str:
    """Return the URL that asks for all downtimes, past ones that ended so recently, too."""
    return f"{address}?downtime_attrs_showpast={past.days}"


def read(content: bytes) -> Answer:
    """Read all of it; raise BadAnswer if it is no answer of OSG, or none of its elements is."""
    root = root_of(content, "Downtimes")
    by_key: dict[str, Announcement] = {}
    left_out: list[LeftOut] = []
    for part in downtimes_in(root):
        key = ""
        try:
            key = str(part.whole("ID"))
            announcement = announcement_of(part, key, left_out)
        except BadAnswer as error:
            left_out.append(LeftOut(key, str(error)))
            continue
        if key in by_key:
            left_out.append(LeftOut(key, f"{part.place('ID')}: {key} appears twice"))
        by_key.setdefault(key, announcement)
    if left_out and not by_key:
        raise BadAnswer("", left_out[0].sentence)
    return Answer(tuple(by_key.values()), tuple(left_out))


def downtimes_in(root: Element) -> Iterator[Part]:
    for group in GROUPS:
        for number, element in enumerate(root.iterfind(f"{group}/Downtime"), 1):
            yield Part(element, f"{group}, Downtime {number}")


def announcement_of(part: Part, key: str, left_out: list[LeftOut]) -> Announcement:
    """Return a downtime; its services that cannot be read are added to ``left_out``."""
    starts_at, ends_at = period_of(part, ("StartTime", "EndTime"), time_of)
    severity = part.word("Severity", SEVERITIES)
    host = host_name(part, "ResourceFQDN")
    owner = bounded(part, "ResourceName", "owner", is_needed=False)
    services = []
    for service in part.parts("Services/Service"):
        try:
            kind = bounded(service, "Name", "kind")
            is_tape = says_tape(kind, service.text_if_any("Description"))
        except BadAnswer as error:
            left_out.append(LeftOut(key, str(error)))
            continue
        resource = AliasKind.OSG_RESOURCE
        services.append(AffectedService(host, kind, owner, resource, is_tape=is_tape))
    return Announcement(
        key=key,
        starts_at=starts_at,
        ends_at=ends_at,
        severity=severity,
        reason=reason_of(part.text_if_any("Description")),
        url="",
        services=tuple(services),
    )


def time_of(part: Part, name: str) -> datetime:
    """Return a time in UTC; AM and PM add nothing, as the clock has 24 hours."""
    text = part.text(name)
    match = TIME.fullmatch(text)
    if match is None or match["month"] not in MONTHS:
        raise BadAnswer(part.place(name), f"{shortened(text)} is not {TIME_WORDS}")
    year, day, hour, minute = (int(match[unit]) for unit in ("year", "day", "hour", "minute"))
    if match["half"] and match["half"] != ("PM" if hour >= 12 else "AM"):
        why = f"{match['half']} contradicts the 24-hour time in {shortened(text)}"
        raise BadAnswer(part.place(name), why)
    try:
        local = datetime(year, MONTHS[match["month"]], day, hour, minute, tzinfo=UTC)
        moment = local - offset(match["zone"])
    except (ValueError, OverflowError):
        raise BadAnswer(part.place(name), f"{shortened(text)} is not a valid time") from None
    return in_range(part, name, moment)


def offset(zone: str) -> timedelta:
    """Return how far a zone is ahead of UTC."""
    if not zone[1:].isdecimal():
        return timedelta()
    sign = -1 if zone.startswith("-") else 1
    return sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
