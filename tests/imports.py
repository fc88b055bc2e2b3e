"""What imports what in sonar/ and matrix/, read from the files; `python -m tests.imports` draws it.

The picture goes into docs/architecture.md, between two marks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ARCHITECTURE = PROJECT / "docs" / "architecture.md"
BEGIN, END = "<!-- the picture: make picture -->", "<!-- end of the picture -->"

# Modules by what they import. What is imported from a package is named below it.
Imports = Mapping[str, set[str]]

# The rooms of matrix/, lowest first: a room may know those before it. Those in one line are
# neighbours that do not know each other.
ROOMS = (
    ("query",),
    ("statistics",),
    ("store",),
    ("answers",),
    ("plots", "http"),
    ("templatetags",),
    ("api", "pages", "tasks", "management"),
    ("urls",),
)
# What a room has no business with, beside the rooms above it.
FOREIGN = {
    "statistics": ("django", "rest_framework", "sonar.models", "sonar.settings", "matrix.store"),
    "store": ("rest_framework", "plotly"),
    "answers": ("rest_framework", "plotly"),
    "plots": ("rest_framework", "sonar.models"),
    "query": ("rest_framework", "plotly"),
}


def modules(package: str, project: Path = PROJECT) -> Iterator[tuple[str, Path]]:
    for path in sorted((project / package).rglob("*.py")):
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


def room(name: str) -> str:
    """Return the room of a module of matrix/."""
    return name.split(".")[1] if "." in name else ""


def floor(name: str) -> int | None:
    """Return how high the room of a module stands; None if it is in no room."""
    return next((floor for floor, rooms in enumerate(ROOMS) if room(name) in rooms), None)


def out_of_place(found: Imports) -> list[str]:
    """Say which imports of matrix/ go up, to a neighbour, or to what a room knows nothing of."""
    return [
        f"{name} imports {other}"
        for name, others in found.items()
        for other in sorted(others)
        if goes_up(name, other) or within_any(other, FOREIGN.get(room(name), ()))
    ]


def goes_up(name: str, other: str) -> bool:
    if not within(other, "matrix") or room(other) in ("", room(name)):
        return False
    own, its = floor(name), floor(other)
    return own is not None and (its is None or its >= own)


def knots(found: Imports) -> list[str]:
    """Name a circle of modules that know each other, if there is one."""
    known = {name: {one for one in others if one in found} for name, others in found.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return [str(one) for one in error.args[1]]
    return []


def arrows(found: Imports) -> set[tuple[str, str]]:
    """Return which rooms know which, without what follows from other arrows."""
    pairs = {
        (room(name), room(other))
        for name, others in found.items()
        for other in others
        if within(other, "matrix") and room(name) and room(other) not in ("", room(name))
    }
    return {
        (upper, lower)
        for upper, lower in pairs
        if not any(
            (upper, between) in pairs and leads(pairs, between, lower) for between in order()
        )
    }


def order() -> list[str]:
    return [one for rooms in ROOMS for one in rooms]


def leads(pairs: set[tuple[str, str]], upper: str, lower: str) -> bool:
    if upper == lower:
        return False
    return (upper, lower) in pairs or any(
        leads(pairs, between, lower) for one, between in pairs if one == upper
    )


def picture(found: Imports) -> str:
    """Draw the rooms as a Mermaid graph; the number of modules stands in each."""
    counts = {name: sum(room(one) == name for one in found) for name in order()}
    boxes = [f'    {name}["{name} ({count})"]' for name, count in counts.items() if count]
    lines = [f"    {upper} --> {lower}" for upper, lower in sorted(arrows(found))]
    graph = "\n".join(["```mermaid", "graph TD", *boxes, *lines, "```"])
    return f"{BEGIN}\n{graph}\n{END}"


def drawn_into(text: str, found: Imports) -> str:
    """Return the text with the picture between its marks."""
    before, _, rest = text.partition(BEGIN)
    return before + picture(found) + rest.partition(END)[2]


if __name__ == "__main__":
    ARCHITECTURE.write_text(drawn_into(ARCHITECTURE.read_text(), imports("matrix")))
