"""Every page and call says the same of what is wrong: which conditions, since when, and how many.

Random histories are assessed. Then each reader is held against the stored conditions, which are
read here row by row, for many time ranges and filters.

The suite takes a few histories. `REPLAY=1 pytest tests/matrix/test_agreement.py` takes 60 with 12
time ranges each, in about an hour; SEED chooses others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import permutations
from os import environ
from typing import Any

import numpy as np
import pytest
from django.db.models import Sum
from django.test import Client
from django.utils import timezone

from matrix.answers.conditions import words
from matrix.answers.status import figures
from matrix.pages import previews
from matrix.plots.preview import Preview
from sonar.alerting import incidents
from sonar.models import (
    Condition,
    ConditionLink,
    ConditionPart,
    Downtime,
    Endpoint,
    Mesh,
    Site,
)
from sonar.notation.windows import format_time
from tests.accuracy import histories
from tests.accuracy.histories import DAY, Fault, Grid, Noise
from tests.matrix import world
from tests.matrix.responses import answer
from tests.matrix.responses import words as text_of
from tests.matrix.written import written
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
    yield from (
        lists([kind for kind, _ in context["lists"] if kind.kind in LOOKS], asked)
        if (len(context["lists"]) > len(LOOKS))
        else ()
    )
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
    every = asked.among(EVERY())
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
    own = asked.among(frozenset(link for link in EVERY() if name in map(SITE_OF().get, link)))
    params = f"{asked.times}&size={asked.size}"
    said = get(client, f"sites/{name}", params)

    def is_own(each: Condition) -> bool:
        ends = [end.site.name for end in (each.source, each.destination) if end]
        return name in [*ends, each.site and each.site.name]

    both = own.listed(asked.size, confirmed=None)
    mine = [each for each in both if is_own(each)]
    yield f"findings of {name}", sorted(each["condition"] for each in said["findings"]), ids(mine)
    since = {each.pk: format_time(each.since.replace(microsecond=0)) for each in mine}
    for each in said["findings"]:
        yield f"since of a finding of {name}", each["since"], since.get(each["condition"])
    kinds = own.kinds(asked.size)
    for end in ("as_source", "as_destination"):
        for row in said[end]["links"]:
            link = row["source"], row["destination"]
            level = row["level"] if row["level"] in LOOKS.values() else ""
            kind = "failing" if row["state"] == "failing" else level
            if row["state"] != "down":
                yield f"{link} on the site", kind, kinds.get(link, "")
    context, text = page(client, f"/sites/{name}/", params)
    text = text_of(text)
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
    del text


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
        context, _ = page(client, path, params)
        verdict = context["verdict"]
        text = " ".join(
            [verdict["headline"], *(said for said, _ in verdict["also"] + verdict["unconfirmed"])]
        )
        for each in listed:
            yield f"since on {path}: {text}", words.since(each) in text, True
        beginnings = len(re.findall(r"\b(?:since|from) (?:between )?\d+ \w{3} \d", text))
        yield f"conditions on {path}: {text}", beginnings, len(listed) + bool(grid)
        yield f"doubtful on {path}: {text}", "oubtful" in text, grid is not None


def events(client: Client, asked: Asked) -> Iterator[Fact]:
    params = f"{asked.times}{asked.filters}&certain=any&page_size=1000"
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
            figures_of = {
                "factor": condition.factor,
                "sizes": condition.size_classes,
                "links": condition.links,
                "of_links": condition.of_links,
                "certain": condition.confirmed_at is not None,
            }
            since = datetime.fromisoformat(each["since"])
            yield f"since of event {condition}", since, condition.since
            yield f"event {condition}", {name: each[name] for name in figures_of}, figures_of
    grid = [each.condition for each in asked.parts(asked.size) if each.condition.scope == "grid"]
    doubtful = asked.doubtful
    since = doubtful.since if doubtful else until + HOUR
    lasting = get(client, "events", f"{params}&now=yes&size={asked.size}")["events"]
    found = {each["condition"] for each in lasting}
    here = {*ids(asked.listed(asked.size, confirmed=None)), *ids(grid)}
    later = {pk for pk, each in inside.items() if each.since >= since}
    yield "events that last", found - later, here - later
    context, _ = page(client, "/events/", f"{asked.times}{asked.filters}&certain=any")
    rows = [row for _, rows in context["days"] for row in rows]
    yield "rows of events", len(rows), min(len(inside), 50)
    count = sum(int(choice.label.split()[-1].replace(",", "")) for choice in context["kinds"][1:])
    yield "numbers of events by kind", count, len(inside)


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
    of_type = {
        type_: set().union(
            *(each.links & asked.links for each in in_last if each.condition.type == type_)
        )
        for type_ in (TYPES.FAILING, TYPES.SLOW)
    }
    yield "failing in the strip", buckets["failing_links"][-1], len(of_type[TYPES.FAILING])
    slower = of_type[TYPES.SLOW] - of_type[TYPES.FAILING]
    yield "slower in the strip", buckets["slower_links"][-1], len(slower)


def now_only(client: Client, asked: Asked) -> Iterator[Fact]:
    """What has no time range: metrics, status, states of endpoints, incidents and causes."""
    figures.forget()
    every = replace(asked, end=asked.now, links=EVERY(), filters="")
    lasting = {each.condition.pk: each.condition for each in every.parts()}
    doubtful = every.doubtful
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
    yield "status", since, format_time(doubtful.since) if doubtful else None


READERS = (matrix, links, table, front, wall, preview, sites, site, link, events, strip, now_only)


def EVERY() -> frozenset[Link]:
    names = Endpoint.objects.filter(is_draft=False).values_list("name", flat=True)
    return frozenset(permutations(names, 2))


def SITE_OF() -> dict[str, str]:
    return dict(Endpoint.objects.values_list("name", "site__name"))


@dataclass(frozen=True)
class Made:
    """A history with its mesh; its endpoints are in these clouds and tiers."""

    history: StoredHistory
    sizes: tuple[str, ...]


def made(rng: np.random.Generator, places: int) -> Made:
    """Store a history of several faults, with downtimes, a draft, and results of other origins."""
    grid = histories.make_grid(rng, places, missing=float(rng.choice([0, 0.1, 0.3])))
    sizes = [("large",), ("small", "large"), ("small", "medium", "large")][rng.integers(3)]
    every = {size: int(rng.choice([2, 4, 8, 12])) * 3600 for size in sizes}
    days = int(rng.choice([6, 12, 20] if places < 12 else [6, 12]))
    noise = [Noise(), Noise(failed=0.05), Noise(scatter=0.15, scatter_sd=0, flaky_links=0)]
    history = histories.simulate(
        rng, grid, NOW - days * DAY, NOW, every, faults(rng, grid, sizes), noise[rng.integers(3)]
    )
    stored_history = StoredHistory.of(history)
    for number, each in enumerate(Site.objects.order_by("name")):
        each.cloud, each.tier = ("UK", "DE")[number % 2], number % 3
        each.save()
    mesh = Mesh.objects.create(name="everything")
    ends = stored_history.ends
    pairs = [(ends[a], ends[b]) for a, b in zip(grid.source.tolist(), grid.destination.tolist())]
    for size in sizes:
        world.schedule(mesh, *pairs, every=every[size], size=size)
    stored_history.store()
    others(rng, pairs)
    now = moment(NOW)
    if rng.random() < 0.5:
        at = ends[int(rng.integers(places))]
        Downtime.objects.create(
            endpoint=at, starts_at=now - 5 * HOUR, ends_at=now + 5 * HOUR, reason="disks"
        )
    draft = Site.objects.create(name="DRAFT", cloud="UK", tier=1)
    Endpoint.objects.filter(pk=world.endpoint("E99", draft).pk).update(is_draft=True)
    return Made(stored_history, sizes)


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
        factor = [None, 0.5, 0.33, 0.2, 2.5][rng.integers(5)]
        fault = histories.place_fault(
            grid,
            str(scope),
            None if scope == "grid" else place,
            start,
            factor=0.5 if scope == "grid" else factor,
            end=end,
        )
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
FILTERS = {
    "": lambda place: True,
    "&cloud=UK": lambda site: site.cloud == "UK",
    "&source_cloud=DE": None,
    "&site=S01": lambda site: site.name == "S01",
    "&tier=1": lambda site: site.tier == 1,
}


def disagreements(client: Client, asked: Asked, readers: Any = READERS) -> list[str]:
    wrong = []
    for reader in readers:
        for what, said, meant_ in reader(client, asked):
            if said != meant_:
                wrong.append(f"{reader.__name__}({asked.query}) {what}: {said} and not {meant_}")
    return wrong


def passing(filters: str) -> frozenset[Link]:
    sites = {end.name: end.site for end in Endpoint.objects.select_related("site")}
    of = {"cloud": "cloud", "site": "name", "tier": "tier"}
    links = EVERY()
    if not filters:
        return links
    name, _, value = filters[1:].partition("=")
    end, _, key = name.rpartition("_")
    at = {"source": (0,), "destination": (1,), "": (0, 1)}[end]
    return frozenset(
        link
        for link in links
        if any(str(getattr(sites[link[each]], of[key])) == value for each in at)
    )


def questions(rng: np.random.Generator, now: datetime, count: int) -> Iterator[Asked]:
    seen = stored()
    sizes = [*world.SIZES]
    for number in range(count):
        end = now - ENDS[number % len(ENDS)]
        length = [HOUR, 24 * HOUR, timedelta(days=7)][rng.integers(3)]
        filters = [*FILTERS][int(rng.integers(len(FILTERS))) if number else 0]
        links_ = passing(filters)
        yield Asked(
            (end - length).replace(microsecond=0),
            end.replace(microsecond=0),
            now,
            str(rng.choice(sizes, p=[0.2, 0.2, 0.6])),
            filters,
            links_,
            seen,
            f"S{int(rng.integers(2)):02}",
            tuple(some_links(rng, seen)),
        )


def some_links(rng: np.random.Generator, seen: Sequence[Seen]) -> Iterator[Link]:
    members = sorted(set().union(*(each.links for each in seen)))
    if members:
        for number in rng.integers(len(members), size=1):
            yield members[number]
    yield ("E00", "E01")


@pytest.mark.parametrize("seed", eval(environ.get("HIST", "[1, 3]")))
def test_it(client, monkeypatch, seed):
    import time

    t0 = time.time()
    rng = np.random.default_rng(1000 + seed)
    now = moment(NOW)
    monkeypatch.setattr(timezone, "now", lambda: now)
    made(rng, int(rng.choice([4, 6, 9])))
    t1 = time.time()
    world.assessed(now)
    incidents.follow(now)
    t2 = time.time()
    wrong = []
    times = Counter()
    for asked in questions(rng, now, int(environ.get("QS", "5"))):
        for reader in READERS:
            t = time.time()
            wrong += disagreements(client, asked, [reader])
            times[reader.__name__] += time.time() - t
    print(
        f"made {t1 - t0:.1f} assessed {t2 - t1:.1f} asked {time.time() - t2:.1f}",
        {k: round(v, 1) for k, v in times.items()},
    )
    print([str(c) for c in Condition.objects.all()])
    for w in wrong:
        print("WRONG", w[:300])
    assert not wrong
