"""What imports what in sonar/ and matrix/, read from the files; `python -m tests.imports` draws it.

The pictures go into docs/architecture.md, each between two marks.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ARCHITECTURE = PROJECT / "docs" / "architecture.md"

# Modules by what they import. What is imported from a package is named below it.
Imports = Mapping[str, set[str]]


def modules(package: str, project: Path = PROJECT) -> Iterator[tuple[str, Path]]:
    for path in sorted((project / package.replace(".", "/")).rglob("*.py")):
        name = ".".join(path.relative_to(project).with_suffix("").parts).removesuffix(".__init__")
        if "migrations" not in name:
            yield name, path


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all that a file says, in no order. Each file is read once: half of this takes that."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports, at its top or inside a function."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def imports(package: str) -> dict[str, set[str]]:
    return {name: set(imported(path)) for name, path in modules(package)}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def within_any(name: str, packages: Iterable[str]) -> bool:
    return any(within(name, package) for package in packages)


def knots(found: Imports) -> list[str]:
    """Name a circle of modules that know each other, if there is one."""
    known = {name: {one for one in others if one in found} for name, others in found.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return [str(one) for one in error.args[1]]
    return []


def deepest(found: Imports) -> list[str]:
    """Return the longest way down from module to module, by what each imports; no knots."""
    below: dict[str, list[str]] = {}
    for name in TopologicalSorter(
        {name: others & found.keys() for name, others in found.items()}
    ).static_order():
        ways = [below[one] for one in found[name] if one in below]
        below[name] = [name, *max(ways, key=len, default=[])]
    return max(below.values(), key=len)


@dataclass(frozen=True)
class House:
    """A package and its rooms, lowest first: a room may know those before it.

    Those in one line are neighbours that do not know each other. ``foreign`` is what a room has no
    business with, beside the rooms above it.
    """

    package: str
    rooms: tuple[tuple[str, ...], ...]
    foreign: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def room(self, name: str) -> str:
        """Return the room of a module: its file or folder below the package."""
        return name.removeprefix(self.package).lstrip(".").split(".")[0]

    def floor(self, name: str) -> int | None:
        """Return how high the room of a module stands; None if it is in no room."""
        own = self.room(name)
        return next((floor for floor, rooms in enumerate(self.rooms) if own in rooms), None)

    def out_of_place(self, found: Imports) -> list[str]:
        """Say which imports go up, to a neighbour, or to what a room knows nothing of."""
        return [
            f"{name} imports {other}"
            for name, others in found.items()
            for other in sorted(others)
            if self.goes_up(name, other) or within_any(other, self.foreign.get(self.room(name), ()))
        ]

    def goes_up(self, name: str, other: str) -> bool:
        if not within(other, self.package) or self.room(other) in ("", self.room(name)):
            return False
        own, its = self.floor(name), self.floor(other)
        return own is not None and (its is None or its >= own)

    def arrows(self, found: Imports) -> set[tuple[str, str]]:
        """Return which rooms know which, without what follows from other arrows."""
        pairs = {
            (self.room(name), self.room(other))
            for name, others in found.items()
            for other in others
            if within(other, self.package)
        }
        pairs = {pair for pair in pairs if "" not in pair and pair[0] != pair[1]}
        return {pair for pair in pairs if not leads(pairs - {pair}, *pair)}

    def picture(self, found: Imports) -> str:
        """Draw the rooms as a Mermaid graph; the number of modules stands in each."""
        names = [name for rooms in self.rooms for name in rooms]
        counts = {name: sum(self.room(module) == name for module in found) for name in names}
        boxes = [f'    {name}["{name} ({count})"]' for name, count in counts.items() if count]
        lines = [f"    {upper} --> {lower}" for upper, lower in sorted(self.arrows(found))]
        graph = "\n".join(["```mermaid", "graph TD", *boxes, *lines, "```"])
        return f"{self.begin}\n{graph}\n{self.end}"

    @property
    def begin(self) -> str:
        return f"<!-- the picture of {self.package}/: make picture -->"

    @property
    def end(self) -> str:
        return f"<!-- end of the picture of {self.package}/ -->"

    def drawn_into(self, text: str, found: Imports) -> str:
        """Return the text with the picture between its marks."""
        before, _, rest = text.partition(self.begin)
        return before + self.picture(found) + rest.partition(self.end)[2]


SONAR = House(
    "sonar",
    (
        ("notation",),
        ("redaction",),
        ("movers",),
        ("credentials", "database"),
        ("models",),
        ("registry", "people", "celery"),
        ("results",),
        ("processes",),
        ("records", "alerting", "obstacles"),
        ("scheduler",),
        ("work", "ordering"),
        ("tasks", "admin", "management", "apps"),
        # They name things by string and import little.
        ("settings", "urls", "wsgi", "gunicorn_conf", "__main__"),
        ("sandbox",),
    ),
    {"redaction": ("django", "rest_framework"), "movers": ("django.db", "rest_framework")},
)
MATRIX = House(
    "matrix",
    (
        ("query",),
        ("statistics",),
        ("store",),
        ("assessment",),
        ("answers",),
        ("plots", "http"),
        ("templatetags",),
        ("api", "pages", "tasks", "management"),
        ("urls",),
    ),
    {
        "statistics": (
            "django",
            "rest_framework",
            "sonar.models",
            "sonar.settings",
            "matrix.store",
        ),
        "store": ("rest_framework", "plotly"),
        "assessment": ("rest_framework", "plotly"),
        "answers": ("rest_framework", "plotly"),
        "plots": ("rest_framework", "sonar.models"),
        "query": ("rest_framework", "plotly"),
    },
)
# A room that has rooms of its own.
STATISTICS = House(
    "matrix.statistics",
    (
        ("arrays",),
        ("samples",),
        ("estimates",),
        ("compare",),
        ("cells",),
        ("levels", "causes", "transfers"),
        ("assessment",),
    ),
)
HOUSES = (SONAR, MATRIX)


def leads(pairs: set[tuple[str, str]], upper: str, lower: str) -> bool:
    """Say whether one room knows another, itself or by those that it knows."""
    return any(
        between == lower or leads(pairs, between, lower) for room, between in pairs if room == upper
    )


def drawn(text: str) -> str:
    """Return the text with the picture of each house."""
    for house in HOUSES:
        text = house.drawn_into(text, imports(house.package))
    return text


if __name__ == "__main__":
    ARCHITECTURE.write_text(drawn(ARCHITECTURE.read_text()))
