"""Every page and call says the same of what is wrong: which conditions, since when, and how many.

Random histories are assessed. Then each reader is held against the stored conditions, which are
read here row by row, for many time ranges and filters.

The suite takes two histories with a few time ranges. With REPLAY=1 in the environment it takes 60
of 10 to 400 links, with 12 time ranges each, and an hour or more; SEED chooses other ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import count, permutations
from os import environ
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.test import Client
from django.utils import timezone

from matrix.answers.conditions import words
from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.status import figures, health
from matrix.pages import previews
from matrix.plots.preview import Preview
from sonar.alerting import incidents
from sonar.alerting.channels import alertmanager, icinga
from sonar.alerting.channels.base import Target
from sonar.alerting.subscriptions import Subscribed
from sonar.models import (
    Circuit,
    Condition,
    ConditionLink,
    ConditionPart,
    Downtime,
    Endpoint,
    Incident,
    Mesh,
    Notification,
    Site,
    Subscription,
)
from sonar.notation.windows import format_time
from tests.accuracy import histories
from tests.accuracy.histories import DAY, Fault, Grid, Noise
from tests.conditions import assessed_at, stored_condition
from tests.matrix import world
from tests.matrix.responses import answer
from tests.matrix.responses import words as text_of
from tests.matrix.world import NOW as NOON
from tests.matrix.world import World
from tests.matrix.written import written
from tests.moving import before_statements, meanwhile
from tests.stored_histories import StoredHistory, moment

pytestmark = pytest.mark.django_db
SCOPES, TYPES = Condition.Scope, Condition.Type
# What shows a condition of a type; a list of conditions has the worst first.
LOOKS = {
    TYPES.FAILING: "failing",
    TYPES.SILENT: "silent",
    TYPES.SLOW: "slower",
    TYPES.FAST: "faster",
}
NOW = histories.MIDNIGHT + 15 * histories.HOUR
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
# A time range that ended at most two assessments ago has the state of now.
STILL_NOW = 2 * MINUTE
Link = tuple[str, str]
# What is compared, what is said, and what is stored.
Fact = tuple[str, Any, Any]


@dataclass(frozen=True)
class Seen:
    """A part of a condition as it is stored; ``links`` are its members by their names."""

    condition: Condition
    size: str
    since: datetime
    ended_at: datetime | None
    links: frozenset[Link]

    def lasts(self, at: datetime) -> bool:
        return self.since <= at and (self.ended_at is None or self.ended_at > at)


def stored() -> list[Seen]:
    members: dict[int, set[Link]] = {}
    names = ("part", "source__name", "destination__name")
    for part, source, destination in ConditionLink.objects.values_list(*names):
        members.setdefault(part, set()).add((source, destination))
    rows = Condition.objects.select_related("source__site", "destination__site", "site")
    conditions = {each.pk: each for each in rows}
    # What a sentence counts.
    for each in conditions.values():
        counts = each.parts.aggregate(tests=Sum("tests"), failed=Sum("failed"))
        each.tests, each.failed = counts["tests"], counts["failed"]
    return [
        Seen(
            conditions[part.condition_id],
            part.size_class.name,
            part.since,
            part.ended_at,
            frozenset(members.get(part.pk, ())),
        )
        for part in ConditionPart.objects.select_related("size_class").order_by("since", "pk")
    ]


def badness(condition: Condition) -> int:
    return TYPES.values.index(condition.type)


@dataclass(frozen=True)
class Asked:
    """A time range and filters: ``links`` are all registered ones that pass them."""

    start: datetime
    end: datetime
    now: datetime
    size: str
    filters: str
    links: frozenset[Link]
    seen: Sequence[Seen]
    a_site: str
    some_links: tuple[Link, ...]

    @property
    def times(self) -> str:
        return f"from={format_time(self.start)}&to={format_time(self.end)}"

    @property
    def query(self) -> str:
        return f"{self.times}&size={self.size}{self.filters}"

    @property
    def is_now(self) -> bool:
        return self.end >= self.now - STILL_NOW

    @property
    def at(self) -> datetime:
        return self.now if self.is_now else self.end

    def parts(self, size: str = "") -> list[Seen]:
        """Return what lasts at the end and has a link that passes the filters."""
        return [
            each
            for each in self.seen
            if each.lasts(self.at)
            and size in ("", each.size)
            and (each.condition.scope == SCOPES.GRID or each.links & self.links)
        ]

    @property
    def doubtful(self) -> Condition | None:
        grid = [
            each.condition
            for each in self.parts()
            if each.condition.scope == SCOPES.GRID and each.condition.confirmed_at
        ]
        return max(grid, key=badness, default=None)

    def listed(self, size: str = "", *, confirmed: bool | None = True) -> list[Condition]:
        """Return what is to be listed: all but the grid, and what began while that was open."""
        doubtful = self.doubtful
        listed = {
            each.condition.pk: each.condition
            for each in self.parts(size)
            if each.condition.scope != SCOPES.GRID
            and confirmed in (None, each.condition.confirmed_at is not None)
            and not (doubtful and each.condition.since >= doubtful.since)
        }
        return [*listed.values()]

    def marks(self, size: str) -> dict[Link, Condition]:
        """Return the condition that marks a link: confirmed ones first, of these the worst."""
        marks: dict[Link, Condition] = {}
        for each in sorted(
            self.parts(size),
            key=lambda part: (
                part.condition.confirmed_at is not None,
                badness(part.condition),
                part.since,
                part.condition.pk,
            ),
        ):
            marks |= dict.fromkeys(each.links & self.links, each.condition)
        return marks

    def down(self) -> set[str]:
        """Return the endpoints in a downtime that stops tests."""
        rows = [
            row
            for row in Downtime.objects.filter(starts_at__lte=self.at, ends_at__gt=self.at)
            if row.stops_tests
        ]
        own, sites = {row.endpoint_id for row in rows}, {row.site_id for row in rows}
        ends = Endpoint.objects.all()
        return {end.name for end in ends if end.pk in own or end.site_id in sites}

    def kinds(self, size: str) -> dict[Link, str]:
        """Return how links are by confirmed conditions; what is down is nothing else."""
        down = self.down()
        return {
            link: LOOKS[TYPES(each.type)]
            for link, each in self.marks(size).items()
            if each.confirmed_at and not down & {*link}
        }

    def count(self, size: str) -> dict[str, int]:
        counts = Counter(self.kinds(size).values())
        return {kind: counts[kind] for kind in LOOKS.values()}

    def among(self, links: frozenset[Link]) -> Asked:
        return replace(self, links=links, filters="")


def ids(conditions: Sequence[Condition]) -> list[int]:
    return sorted(each.pk for each in conditions)


def get(client: Client, path: str, params: str) -> Any:
    return answer(client, f"/api/v1/{path}/?{params}")


def page(client: Client, path: str, params: str) -> tuple[Any, str]:
    """Return what a page was made of, and its text."""
    response = client.get(f"{path}?{params}", follow=True)
    assert response.status_code == 200
    return response.context, written(response)


def told(cell: dict[str, Any]) -> tuple[Any, ...]:
    """Return what is said of a link: its kind, condition and beginning, and what may be wrong."""
    level = cell["level"] if cell["level"] in LOOKS.values() else ""
    kind = "failing" if cell["state"] == "failing" else level
    unconfirmed = cell.get("unconfirmed") or ""
    return (kind, cell.get("condition") or 0, cell["since"] if kind else None, unconfirmed)


def meant(mark: Condition | None, kind: str) -> tuple[Any, ...]:
    if mark is None:
        return ("", 0, None, "")
    since = format_time(mark.since.replace(microsecond=0)) if kind else None
    return (kind, mark.pk, since, "" if mark.confirmed_at else mark.type)


SIDES = ("source", "destination")
FIGURES = ("factor", "links", "of_links", "sizes")


def figures_of(said: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(said[name] for name in FIGURES)


def stored_figures(condition: Condition) -> tuple[Any, ...]:
    return condition.factor, condition.links, condition.of_links, condition.size_classes


def said_time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def every_link() -> frozenset[Link]:
    names = Endpoint.objects.filter(is_draft=False).values_list("name", flat=True)
    return frozenset(permutations(names, 2))


def sites_of_ends() -> dict[str, str]:
    return dict(Endpoint.objects.values_list("name", "site__name"))


# The readers.
def matrix(client: Client, asked: Asked) -> Iterator[Fact]:
    fields = ("state", "level", "since", "unconfirmed", "condition")
    said = get(client, "matrix", f"{asked.query}&fields={','.join(fields)}")
    marks, kinds, seen = asked.marks(asked.size), asked.kinds(asked.size), set()
    for row, source in enumerate(said["sources"]):
        for column, destination in enumerate(said["destinations"]):
            link = source["name"], destination["name"]
            cell = {name: said["cells"][name][row][column] for name in fields}
            if cell["state"] not in (None, "not_applicable"):
                seen.add(link)
            if cell["state"] not in (None, "not_applicable", "down"):
                yield f"cell {link}", told(cell), meant(marks.get(link), kinds.get(link, ""))
    yield "links with a condition that are left out", {*marks} - seen, set()


def links(client: Client, asked: Asked) -> Iterator[Fact]:
    rows = get(client, "links", f"{asked.query}&page_size=1000")["links"]
    for size in world.SIZES:
        marks, kinds = asked.marks(size), asked.kinds(size)
        for row in rows:
            link = row["source"]["name"], row["destination"]["name"]
            if row[size]["state"] not in ("down", "not_applicable"):
                yield (
                    f"{size} of {link}",
                    told(row[size]),
                    meant(marks.get(link), kinds.get(link, "")),
                )


def table(client: Client, asked: Asked) -> Iterator[Fact]:
    marks = asked.marks(asked.size)
    for kind in LOOKS.values():
        _, text = page(client, "/table/", f"{asked.query}&only={kind}&per_page=1000")
        body = text.split("<tbody>")[1].partition("</tbody>")[0] if "<tbody>" in text else ""
        rows = [text_of(row) for row in body.split("<tr>")[1:]]
        found = {tuple(ends[:2]): row for row in rows if (ends := re.findall(r"\bE\d\d\b", row))}
        of_kind = {link for link, each in asked.kinds(asked.size).items() if each == kind}
        yield f"rows of {kind}", {*found}, of_kind
        for link in found.keys() & of_kind:
            yield f"row of {link}", words.since(marks[link]) in found[link], True


def front(client: Client, asked: Asked) -> Iterator[Fact]:
    context, text = page(client, "/", asked.query)
    yield from lists(context["standouts"], asked)
    counts = {entry.state: entry.count for entry in context["counts"]}
    said = {kind: counts.get(kind, 0) for kind in LOOKS.values()}
    yield "counts of links", said, asked.count(asked.size)
    yield from heading(context["card"].description, asked)
    (title,) = re.findall(r"<h1.*?</h1>", text, re.DOTALL)
    yield from heading(text_of(title), asked)
    if more := re.search(r'href="(/events/[^"]*)"[^>]*>and \d+ more', title):
        # Those that began while results are doubtful are listed there, too, and say so.
        listed = get(client, "events", f"{unescape(more[1]).partition('?')[2]}&page_size=1000")
        conditions = [x.condition for x in asked.parts(asked.size) if x.condition.confirmed_at]
        found = {each["condition"] for each in listed["events"]}
        meant = {*ids(conditions)}
        yield f"what {more[1]} lists", found, meant
    elif "more" in title:
        yield "what leads to more", title, "a link"


def lists(standouts: Any, asked: Asked) -> Iterator[Fact]:
    shown = {each.kind: each for each in standouts}
    sure, unsure = (asked.listed(asked.size, confirmed=each) for each in (True, False))
    kinds = {look: [each for each in sure if each.type == type_] for type_, look in LOOKS.items()}
    for kind, conditions in [*kinds.items(), ("unconfirmed", unsure)]:
        of_kind = shown.get(kind)
        yield f"number of {kind}", of_kind.count if of_kind else 0, len(conditions)
        # With its figures, its beginning, and whether it is confirmed.
        sentences = {words.sentence(each) for each in conditions}
        for item in of_kind.items if of_kind else ():
            yield f"{item.title} as {kind}", item.title in sentences, True


def heading(text: str, asked: Asked) -> Iterator[Fact]:
    listed, doubtful = asked.listed(asked.size), asked.doubtful
    yield f"doubtful: {text}", "oubtful" in text, doubtful is not None
    named = [each for each in listed if words.since(each) in text]
    yield f"conditions in: {text}", len(named) >= min(len(listed), 3), True
    more = re.search(r"and (\d+) more", text)
    yield f"more: {text}", int(more[1]) if more else 0, max(len(listed) - 3, 0)
    if not (listed or doubtful):
        yield f"calm: {text}", bool(re.search(r"\b(fails|slow|not tested|at \d)", text)), False


def wall(client: Client, asked: Asked) -> Iterator[Fact]:
    context, _ = page(client, "/", f"{asked.query}&wall=1")
    yield from heading(context["headline"], asked)
    sure = {words.sentence(each) for each in asked.listed(asked.size)}
    for kind, items in context["lists"]:
        for item in items if kind.kind in LOOKS.values() else ():
            yield f"on the wall: {item.title}", item.title in sure, True


def preview(client: Client, asked: Asked) -> Iterator[Fact]:
    """The picture itself is not drawn: only what it is made of."""
    drawn: list[Preview] = []

    def png(made: Preview) -> bytes:
        drawn.append(made)
        return b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(previews.preview, "png", png)
        assert client.get(f"/preview/?{asked.query}").status_code == 200
    yield from heading(drawn[0].answer, asked)


def sites(client: Client, asked: Asked) -> Iterator[Fact]:
    every = asked.among(every_link())
    rows = get(client, "sites", f"{asked.times}&size={asked.size}&page_size=1000")["sites"]
    kinds = every.kinds(asked.size)
    for row in rows:
        own = {*row["endpoints"]}
        failing = {link for link, kind in kinds.items() if kind == "failing" and own & {*link}}
        slower = [link for link, kind in kinds.items() if kind == "slower"]
        yield f"failing of {row['name']}", row["failing"], len(failing)
        for at, end in enumerate(("source", "destination")):
            count = sum(link[at] in own for link in slower)
            yield f"slower of {row['name']} as {end}", row[f"slower_as_{end}"], count


def site(client: Client, asked: Asked) -> Iterator[Fact]:
    name = asked.a_site
    own = asked.among(
        frozenset(link for link in every_link() if name in map(sites_of_ends().get, link))
    )
    params = f"{asked.times}&size={asked.size}"
    said = get(client, f"sites/{name}", params)

    def is_own(each: Condition) -> bool:
        ends = [end.site.name for end in (each.source, each.destination) if end]
        return name in [*ends, each.site and each.site.name]

    both = own.listed(asked.size, confirmed=None)
    mine = [each for each in both if is_own(each)]
    yield f"findings of {name}", sorted(each["condition"] for each in said["findings"]), ids(mine)
    since = {each.pk: format_time(each.since.replace(microsecond=0)) for each in mine}
    sentences = {each.pk: words.sentence(each) for each in mine}
    for each in said["findings"]:
        yield f"since of a finding of {name}", each["since"], since.get(each["condition"])
        yield f"finding of {name}", each["sentence"], sentences.get(each["condition"])
    kinds = own.kinds(asked.size)
    for end in ("as_source", "as_destination"):
        for row in said[end]["links"]:
            link = row["source"], row["destination"]
            level = row["level"] if row["level"] in LOOKS.values() else ""
            kind = "failing" if row["state"] == "failing" else level
            if row["state"] != "down":
                yield f"{link} on the site", kind, kinds.get(link, "")
    context, _ = page(client, f"/sites/{name}/", params)
    verdict = context["verdict"]
    yield f"verdict of {name}", ids(verdict.conditions), ids(x for x in mine if x.confirmed_at)
    for lines, chosen in (
        (verdict.partners, [each for each in both if not is_own(each) and each.confirmed_at]),
        (verdict.unconfirmed, [each for each in mine if not each.confirmed_at]),
    ):
        counted = len(chosen) if len(chosen) <= 3 else 4
        yield f"lines of {name}: {lines}", len(lines), counted
    grid = own.doubtful
    yield f"doubtful on {name}: {verdict.news}", "oubtful" in verdict.news, bool(grid)


def link(client: Client, asked: Asked) -> Iterator[Fact]:
    for source, destination in asked.some_links:
        own = asked.among(frozenset([(source, destination)]))
        path = f"/links/{source}/{destination}/"
        params = f"{asked.times}&size={asked.size}"
        listed, grid = own.listed(confirmed=None), own.doubtful
        context, _ = page(client, f"{path}card/", params)
        sentences = {
            (
                LOOKS[TYPES(each.type)],
                f"{words.title(each)} {words.since(each)}"
                f"{'' if each.confirmed_at else ', unconfirmed'}.",
            )
            for each in listed
        }
        yield f"card of {path}", {*context["conditions"]}, sentences
        yield f"doubtful on the card of {path}", bool(context["doubtful"]), grid is not None
        kinds = {size: own.kinds(size).get((source, destination), "") for size in world.SIZES}
        for direction, _, _, kind, _ in context["classes"]:
            if direction.state not in ("down", "not_applicable"):
                of_class = kinds[direction.size].replace("silent", "")
                yield f"{direction.size} on the card of {path}", kind, of_class
        said = get(client, "diagnosis", f"source={source}&destination={destination}&{params}")
        meant = sorted(words.sentence(x) for x in [*listed, *filter(None, [grid])])
        told = sorted(each["sentence"] for each in said["conditions"])
        yield f"diagnosis of {path}", told, meant
        context, _ = page(client, path, params)
        verdict = context["verdict"]
        text = " ".join(
            [verdict["headline"], *(said for said, _ in verdict["also"] + verdict["unconfirmed"])]
        )
        for each in listed:
            yield f"since on {path}: {text}", words.since(each) in text, True
        began = r"(?<!no test )\b(?:since|from) (?:some time between )?\d+ \w{3} \d"
        beginnings = len(re.findall(began, text))
        yield f"conditions on {path}: {text}", beginnings, len(listed) + bool(grid)
        yield f"doubtful on {path}: {text}", "oubtful" in text, grid is not None


def events(client: Client, asked: Asked) -> Iterator[Fact]:
    params = f"{asked.times}{asked.filters}&significant=any&page_size=1000"
    until = max(asked.end, asked.at)
    inside = {
        each.condition.pk: each.condition
        for each in asked.seen
        if each.condition.since < until
        and (each.condition.ended_at is None or each.condition.ended_at > asked.start)
        and (each.condition.scope == SCOPES.GRID or each.links & asked.links)
    }
    listed = get(client, "events", params)["events"]
    yield "events", sorted(each["condition"] for each in listed), sorted(inside)
    for each in listed:
        if condition := inside.get(each["condition"]):
            yield f"since of event {condition}", each["since"], said_time(condition.since)
            yield f"event {condition}", figures_of(each), stored_figures(condition)
            yield (
                f"whether {condition} is significant",
                each["significant"],
                condition.confirmed_at is not None,
            )
    grid = [each.condition for each in asked.parts(asked.size) if each.condition.scope == "grid"]
    doubtful = asked.doubtful
    since = doubtful.since if doubtful else until + HOUR
    lasting = get(client, "events", f"{params}&now=yes&size={asked.size}")["events"]
    found = {each["condition"] for each in lasting}
    here = {*ids(asked.listed(asked.size, confirmed=None)), *ids(grid)}
    later = {pk for pk, each in inside.items() if each.since >= since}
    yield "events that last", found - later, here - later
    context, _ = page(client, "/events/", f"{asked.times}{asked.filters}&significant=any")
    rows = [row for _, rows in context["days"] for row in rows]
    yield "rows of events", len(rows), min(len(inside), 50)
    count = sum(int(choice.label.split()[-1].replace(",", "")) for choice in context["types"][1:])
    yield "numbers of events by type", count, len(inside)


def strip(client: Client, asked: Asked) -> Iterator[Fact]:
    """The last bucket has what lasts at the end, and what ended since it began."""
    said = get(client, "strip", asked.query)
    buckets = said["buckets"]
    start = datetime.fromisoformat(buckets["start"][-1])
    in_last = [
        each
        for each in asked.seen
        if each.size == asked.size
        and each.condition.confirmed_at
        and each.since < asked.at
        and (each.lasts(asked.at) or each.lasts(start) or each.since >= start)
    ]
    failing, slow = (
        {link for each in in_last if each.condition.type == type_ for link in each.links}
        for type_ in (TYPES.FAILING, TYPES.SLOW)
    )
    yield "failing in the strip", buckets["failing_links"][-1], len(failing & asked.links)
    slower = (slow - failing) & asked.links
    yield "slower in the strip", buckets["slower_links"][-1], len(slower)


def now_only(client: Client, asked: Asked) -> Iterator[Fact]:
    """What has no time range: metrics, status, readyz, operations, endpoints, incidents."""
    figures.forget()
    every = replace(asked, end=asked.now, links=every_link(), filters="")
    lasting = {each.condition.pk: each.condition for each in every.parts()}
    sure, doubtful = [each for each in lasting.values() if each.confirmed_at], every.doubtful
    text = client.get("/metrics").content.decode()
    pattern = r'sonar_conditions_open\{confirmed="(\w+)",scope="(\w+)",type="(\w+)"\} ([\d.]+)'
    counts = Counter(
        (str(bool(each.confirmed_at)).lower(), str(each.scope), str(each.type))
        for each in lasting.values()
    )
    said = {tuple(key): int(float(count)) for *key, count in re.findall(pattern, text)}
    yield "metrics", Counter({key: count for key, count in said.items() if count}), counts
    grid = re.findall(r"sonar_measurements_doubtful ([\d.]+)", text)
    yield "doubtful in metrics", [float(each) for each in grid], [float(bool(doubtful))]
    since = get(client, "status", "")["assessment"]["doubtful_since"]
    yield "status", since and datetime.fromisoformat(since), doubtful and doubtful.since
    part = get_ready(client)["measurements"]
    sentence = words.doubtful(doubtful) if doubtful else ""
    yield "readyz", (part["ok"], part["detail"]), (not doubtful, sentence or part["detail"])
    context, _ = page(client, "/operations/", "")
    yield "operations", context["doubtful"] or "", sentence
    # People are called for these; while results are doubtful, for that, and others stay.
    called = [each for each in sure if each.type != TYPES.FAST]
    needed = [each for each in called if not doubtful or each.scope == SCOPES.GRID]
    rows = get(client, "incidents", "open=yes")["incidents"]
    # One that is over stays open for an hour, as it may come back.
    open_ones = {each["condition_id"] for each in rows if not each["clear_since"]}
    yield "incidents", {*ids(needed)} <= open_ones <= {*ids(called)}, True
    over = {each["condition_id"] for each in rows if each["clear_since"]}
    yield "incidents that are over", over & {*ids(called)}, set()
    for each in rows:
        if condition := lasting.get(each["condition_id"]):
            yield f"incident {condition}", figures_of(each), stored_figures(condition)
            yield f"since of {condition}", each["began_at"], said_time(condition.since)
            yield from messages(client, each["id"], condition, every.now)
    yield from boards(lasting, open_ones, every)
    down = every.down()
    for row in get(client, "endpoints/state", "")["endpoints"]:
        says = {each["condition"] for each in row["evidence"]}
        own = {each.pk for each in called if any(concerns(each, row["endpoint"], x) for x in SIDES)}
        grid = {each.pk for each in sure if each.scope == SCOPES.GRID}
        yield f"evidence of {row['endpoint']}", says <= own | grid, True
        for end in SIDES:
            at_end = [each for each in called if concerns(each, row["endpoint"], end)]
            state = max(at_end, key=badness).type if at_end else "ok"
            state = "unknown" if doubtful else state
            state = "down" if row["endpoint"] in down else state
            yield f"{row['endpoint']} as {end}", row[f"as_{end}"], state


def get_ready(client: Client) -> Any:
    """Return the parts of /readyz, which has a connection of its own, as this one sees them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(health, "asked_quickly", lambda: nullcontext(connection.connection))
        patch.setattr(health.tables, "problem", lambda session: "")
        return client.get("/readyz").json()["parts"]


def messages(client: Client, number: int, condition: Condition, now: datetime) -> Iterator[Fact]:
    """What people are sent of an incident, and what they paste into a ticket."""
    row, sentence = Incident.objects.get(pk=number), words.sentence(condition)
    told = Notification(incident=row, created_at=now, due_at=now)
    sent = IncidentWords().message(Subscription(name="all"), [told], now)
    yield f"subject of the mail of {number}", sent.subject, words.title(condition)
    yield f"mail of {number}: {sent.text}", sent.text.startswith(f"{sentence}\n"), True
    yield f"HTML of the mail of {number}", text_of(sentence) in text_of(sent.html), True
    ticket = get(client, f"incidents/{number}", "")["ticket"].splitlines()
    began = [condition.since, condition.since_low, condition.since_high]
    measured = ticket[0]
    yield f"ticket of {number}", measured.startswith(words.state(condition)), True
    dates = {*re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", measured)}
    meant = {f"{each:%Y-%m-%d %H:%M}" for each in (began[:1] if len(dates) == 1 else began[1:])}
    yield f"times in the ticket of {number}: {measured}", dates, meant
    for part in words.evidence(condition):
        yield f"{part} in the ticket of {number}: {measured}", part in measured, True


def boards(lasting: dict[int, Condition], open_ones: set[int], asked: Asked) -> Iterator[Fact]:
    """What Alertmanager and Icinga show: open incidents, each with its condition."""
    subscribed = Subscribed(Subscription(name="all"), None)
    matters = IncidentWords().matters(subscribed, asked.now, asked.now)
    target = Target("", "all", "", "", "https://sonar.example.org", {"service": "sonar"})
    shown = [each for pk, each in lasting.items() if pk in open_ones]
    alerts = [alertmanager.alert(each, target, asked.now) for each in matters]
    said = Counter(
        (
            each["annotations"]["description"].partition("\n")[0],
            each["startsAt"],
            each["labels"]["scope"],
        )
        for each in alerts
        if each["endsAt"] > format_time(asked.now)
    )
    meant = Counter((words.sentence(x), format_time(x.since), str(x.scope)) for x in shown)
    yield "alerts that are not of an open condition", meant - said, Counter()
    # What has just ended stays for a while, with the same sentence in the past tense.
    over = [each for each in said if each not in meant]
    yield "alerts", all(" until " in sentence for sentence, *_ in over), True
    text = icinga.result(matters, target, asked.now)["plugin_output"]
    for each in shown:
        yield f"Icinga: {text}", words.sentence(each) in text, True
    yield f"doubtful in Icinga: {text}", "doubtful" in text, asked.doubtful is not None


def causes(client: Client, asked: Asked) -> Iterator[Fact]:
    """The page of causes, and that of a site's endpoint, list conditions with the same words."""
    context, text = page(client, "/causes/", asked.query)
    sure, unsure = (asked.listed(asked.size, confirmed=each) for each in (True, False))
    for name, conditions in (("changed", sure), ("unconfirmed", unsure)):
        lines = [(line.rest, line.url) for line in context[name]]
        meant = {words.details(x) for x in conditions}
        yield f"{name} on causes", len(lines), min(len(conditions), 8)
        yield f"{name} on causes", {rest for rest, _ in lines} - meant, set()
    yield "more on causes", context["more_changed"], max(len(sure) - 8, 0)
    count = re.match(r"(\d+) conditions? (?:is|are) open", context["changed_words"])
    yield f"heading of causes: {context['headline']}", int(count[1]) if count else 0, len(sure)
    said = re.search("Results (?:have been|were) doubtful", text)
    yield "doubtful on causes", said is not None, asked.doubtful is not None


def concerns(condition: Condition, name: str, end: str) -> bool:
    """Say whether a condition is of an endpoint at one end, not only of a link."""
    if condition.scope == SCOPES.SITE:
        return bool(condition.site and sites_of_ends()[name] == condition.site.name)
    own = getattr(condition, end)
    return condition.scope != SCOPES.LINK and own is not None and own.name == name


def report(client: Client, asked: Asked) -> Iterator[Fact]:
    """The report of a month is as of its end."""
    end = datetime(2026, 11, 1, tzinfo=UTC)
    whole = replace(asked, start=datetime(2026, 10, 1, tzinfo=UTC), end=end, links=every_link())
    sections = {each["name"]: each for each in get(client, "reports/2026-10", "")["sections"]}
    looks = {"failing": "failing", "slow": "slower"}
    said, meant = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in sections["worst"]["rows"]:
        if row["look"] in looks:
            said[looks[row["look"]], row["size"], row["source"], row["destination"]] += 1
    for size in world.SIZES:
        for link, kind in whole.kinds(size).items():
            meant[kind, size, *link] += kind in looks.values()
    listed = min(sum(meant.values()), 15)
    yield "worst links of the report", sum(said.values()) >= listed, True
    yield "other links of the report", said - meant, Counter()
    began = [
        each.condition.pk
        for each in asked.seen
        if each.condition.confirmed_at and whole.start < each.condition.since < end
    ]
    rows = len(sections["events"]["rows"])
    yield "events of the report", rows >= min(len({*began}), 15), True


READERS = (
    *(matrix, links, table, front, wall, preview, sites, site, link, events, strip, causes),
    *(now_only, report),
)


def store_history(rng: np.random.Generator, places: int) -> StoredHistory:
    """Store a history of several faults, with downtimes, a draft, and results of other origins.

    Of its own results the last tenth, drawn over all of its days, is left for later.
    """
    grid = histories.make_grid(rng, places, missing=float(rng.choice([0, 0.1, 0.3])))
    sizes = [*world.SIZES][-int(rng.integers(1, 4)) :]
    every = {size: int(rng.choice([2, 4, 8, 12])) * 3600 for size in sizes}
    days = int(rng.choice([6, 12, 20] if places < 12 else [6, 12]))
    noise = [Noise(), Noise(failed=0.05), Noise(scatter=0.15, scatter_sd=0, flaky_links=0)]
    history = histories.simulate(
        rng, grid, NOW - days * DAY, NOW, every, faults(rng, grid, sizes), noise[rng.integers(3)]
    )
    of_history = StoredHistory.of(history)
    place_sites()
    mesh = Mesh.objects.create(name="everything")
    ends = of_history.ends
    pairs = [(ends[at[0]], ends[at[1]]) for at in np.transpose([grid.source, grid.destination])]
    for size in sizes:
        world.schedule(mesh, *pairs, every=every[size], size=size)
    of_history.store(share=(0, 0.9))
    others(rng, pairs)
    now = moment(NOW)
    if rng.random() < 0.5:
        at = ends[int(rng.integers(places))]
        Downtime.objects.create(
            endpoint=at, starts_at=now - 5 * HOUR, ends_at=now + 5 * HOUR, reason="disks"
        )
    # What holds tests back is no sign of health.
    for place, chance in enumerate(rng.random(places)):
        if chance < 0.1:
            ends[place].pause(now - 3 * HOUR, "new disks", None, None)
            ends[place].save()
        elif chance < 0.2:
            hold_back(ends[place], now)
    draft = Site.objects.create(name="DRAFT", cloud="UK", tier=1)
    url = "https://e99.example.org/data"
    Endpoint.objects.create(name="E99", site=draft, base_url=url, enabled=False)
    return of_history


def hold_back(end: Endpoint, now: datetime) -> None:
    """Open the circuit breaker of an endpoint."""
    times = {"since": now - 2 * HOUR, "last_at": now - HOUR, "next_test_at": now + HOUR}
    Circuit.objects.create(endpoint=end, failures=20, error="connection refused", **times)


def faults(rng: np.random.Generator, grid: Grid, sizes: Sequence[str]) -> list[Fault]:
    drawn = []
    scopes = ["source", "destination", "endpoint", "link", "link", "site", "grid"]
    weights = np.array([3, 4, 4, 3, 3, 3, 1.0])
    for scope in rng.choice(scopes, size=int(rng.integers(1, 5)), p=weights / weights.sum()):
        link = int(rng.integers(len(grid.source)))
        place: Any = int(grid.source[link])
        if scope == "destination":
            place = int(grid.destination[link])
        if scope == "link":
            place = (int(grid.source[link]), int(grid.destination[link]))
        if scope == "site":
            place = int(grid.site[place])
        start = NOW - int(rng.uniform(0.05, 4) * DAY)
        end = start + int(rng.uniform(0.2, 0.9) * (NOW - start)) if rng.random() < 0.3 else None
        factor = (None, 0.5, 0.33, 0.2, 2.5)[rng.integers(5)]
        if scope == "grid":
            place, factor = None, 0.5
        fault = histories.place_fault(grid, str(scope), place, start, factor=factor, end=end)
        if len(sizes) > 1 and rng.random() < 0.3:
            fault = replace(fault, classes=(str(rng.choice(sizes)),))
        drawn.append(fault)
    return drawn


def others(rng: np.random.Generator, pairs: Sequence[tuple[Endpoint, Endpoint]]) -> None:
    """Import results of other origins, which count nowhere."""
    production = world.profile(mover="fts", origin="production")
    with world.transfers() as some:
        for source, destination in pairs[:40]:
            for _ in range(4):
                ago = world.NOW - moment(NOW) + timedelta(hours=float(rng.uniform(0, 40)))
                rate = None if rng.random() < 0.5 else 3000.0
                some.add(source, destination, rate, ago=ago, made=production)


# By how much before now a time range ends, and how long it is.
ENDS = (
    timedelta(),
    timedelta(seconds=1),
    MINUTE,
    3 * MINUTE,
    HOUR,
    timedelta(hours=7),
    timedelta(days=1),
    timedelta(days=2.5),
)
FILTERS = ("", "&cloud=UK", "&source_cloud=DE", "&site=S01", "&destination_tier=1", "&tier=1")


def place_sites() -> None:
    for number, each in enumerate(Site.objects.order_by("name")):
        each.cloud, each.tier = ("UK", "DE")[number % 2], number % 3
        each.save()


def passing(filters: str) -> frozenset[Link]:
    """Return the links that a filter of FILTERS chooses."""
    sites = {end.name: end.site for end in Endpoint.objects.select_related("site")}
    name, _, value = filters.removeprefix("&").partition("=")
    end, _, key = name.rpartition("_")
    ends = {"source": (0,), "destination": (1,), "": (0, 1)}[end]
    column = {"site": "name"}.get(key, key)
    return frozenset(
        link
        for link in every_link()
        if not filters or any(str(getattr(sites[link[at]], column)) == value for at in ends)
    )


def questions(
    rng: np.random.Generator, now: datetime, count: int, first: int = 0
) -> Iterator[Asked]:
    """Yield questions about time ranges: those of the first ends come first."""
    seen = stored()
    members = sorted({link for each in seen for link in each.links})
    for number in range(first, first + count):
        end = (now - ENDS[number % len(ENDS)]).replace(microsecond=0)
        length = (HOUR, 24 * HOUR, 7 * 24 * HOUR)[rng.integers(3)]
        filters = FILTERS[rng.integers(len(FILTERS)) if number else 0]
        some = [members[rng.integers(len(members))]] if members else []
        yield Asked(
            start=end - length,
            end=end,
            now=now,
            size=str(rng.choice([*world.SIZES], p=[0.2, 0.2, 0.6])),
            filters=filters,
            links=passing(filters),
            seen=seen,
            a_site=f"S{rng.integers(2):02}",
            some_links=(*some, ("E00", "E01")),
        )


def disagreements(client: Client, asked: Asked) -> list[str]:
    return [
        f"{reader.__name__}: {asked.query}: {what}: {said} and not {meant}"
        for reader in READERS
        for what, said, meant in reader(client, asked)
        if said != meant
    ]


REPLAYED = bool(environ.get("REPLAY"))
FIRST = int(environ.get("SEED", "1")) * 1000
HISTORIES, RANGES = (60, 12) if REPLAYED else (2, 4)
# Of so many endpoints: 10 to 400 links.
PLACES = (4, 5, 6, 9, 14, 20) if REPLAYED else (6, 4)


@pytest.mark.long
@pytest.mark.parametrize("number", range(HISTORIES))
def test_pages_and_calls_agree(
    number: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, now = np.random.default_rng(FIRST + number), moment(NOW)
    monkeypatch.setattr(timezone, "now", lambda: now)
    of_history = store_history(rng, PLACES[number % len(PLACES)])
    wrong = []
    for first in (0, RANGES // 2):
        if first:
            of_history.store(share=(0.9, 1))
        world.assessed(now)
        incidents.follow(now)
        asked = questions(rng, now, RANGES // 2, first)
        wrong += [found for each in asked for found in disagreements(client, each)]
    assert not wrong, "\n".join(wrong)


def test_pages_and_calls_agree_on_stored_conditions_of_all_kinds(
    client: Client, small_world: World, at_noon: None
) -> None:
    """Conditions that end apart in each size class, unconfirmed ones, and one of the whole grid."""
    place_sites()
    ral, glasgow, desy, scratch = small_world.endpoints
    for size in ("small", "medium"):  # what nothing tests any more has no condition
        world.schedule(small_world.mesh, *permutations(small_world.endpoints, 2), size=size)
    names = dict(zip((ral, glasgow, desy, scratch), ("E00", "E01", "E02", "E03"), strict=True))
    for end, name in names.items():
        Endpoint.objects.filter(pk=end.pk).update(name=name)
    for number, each in enumerate(Site.objects.order_by("name")):
        Site.objects.filter(pk=each.pk).update(name=f"S{number:02}")
    stored_condition(source=ral, destination=glasgow, since=30 * HOUR)
    stored_condition("slow", source=desy, since=9 * HOUR, sizes=("small", "large"))
    stored_condition("silent", destination=scratch, since=5 * HOUR, confirmed=False)
    stored_condition("fast", source=glasgow, destination=glasgow, since=50 * HOUR, ended=2 * HOUR)
    stored_condition("slow", site=desy.site, since=70 * HOUR, ended=8 * HOUR, sizes=("medium",))
    ended = ConditionPart.objects.filter(condition__source=desy, size_class__name="large")
    ended.update(ended_at=NOON - 4 * HOUR)
    Site.objects.filter(pk=ral.site_id).update(
        paused_since=NOON - 2 * HOUR, pause_reason="new disks"
    )
    hold_back(desy, NOON)
    assessed_at()
    incidents.follow(NOON)
    rng = np.random.default_rng(FIRST)
    wrong = [each for asked in questions(rng, NOON, 6) for each in disagreements(client, asked)]
    stored_condition("slow", since=3 * HOUR)
    figures.forget()
    incidents.follow(NOON)
    wrong += [each for asked in questions(rng, NOON, 2) for each in disagreements(client, asked)]
    assert not wrong, "\n".join(wrong)


# Each says since when something is wrong in words of its own.
PATHS = (
    *("/", "/?wall=1", "/table/", "/sites/RAL/", "/links/RAL_DATADISK/Glasgow_DATADISK/"),
    *("/links/RAL_DATADISK/Glasgow_DATADISK/card/", "/events/", "/api/v1/matrix/?fields=since"),
    *("/api/v1/links/", "/api/v1/sites/RAL/", "/api/v1/events/", "/causes/"),
    "/sites/RAL/endpoints/RAL_DATADISK/",
    "/api/v1/diagnosis/?source=RAL_DATADISK&destination=Glasgow_DATADISK",
)


@pytest.mark.parametrize("path", PATHS)
def test_no_page_mixes_two_assessments(
    path: str, client: Client, real_commits: None, at_noon: None
) -> None:
    """Before each statement of a page another assessment is committed, which moves a beginning."""
    made = world.make()
    ends = {"source": made.ral, "destination": made.glasgow}
    world.transfer(made.ral, made.glasgow, 20.0)
    condition = stored_condition(**ends, since=30 * HOUR)
    assessed_at()
    beginnings = [NOON - hours * HOUR for hours in (30, 20)]
    steps = count(1)

    def assess_again() -> None:
        began = beginnings[next(steps) % 2]
        figures_now = {"since": began, "since_low": began, "since_high": began}
        with transaction.atomic():
            Condition.objects.filter(pk=condition.pk).update(**figures_now)
            ConditionPart.objects.filter(condition=condition).update(**figures_now)

    with meanwhile() as apart, before_statements(lambda: apart.do(assess_again)):
        text = client.get(path, follow=True).content.decode()
    said = [
        began
        for began in beginnings
        if f"{began:%-d %b %H:%M}" in text or f"{began:%Y-%m-%dT%H:%M}" in text
    ]
    assert len(said) == 1, said
    assert next(steps) > 3
