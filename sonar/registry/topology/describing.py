"""Changes in words: a line each, for terminals and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sonar.notation.units import format_bytes, format_count
from sonar.registry.topology.changes import Change, Changes, Kept, MeshCost

MOST_NAMED = 10
WORDS = {
    "base_url": "base URL",
    "wan_gbit_s": "WAN capacity (Gbit/s)",
}


class Section(NamedTuple):
    """What there is to say of one kind; bare names are few words, which texts have side by side."""

    title: str
    lines: list[str]
    are_names: bool = False


def described(changes: Changes) -> str:
    """Return everything as text: what is added (+), changed (~), kept (=) or left out (-)."""
    return "\n".join(_sections(changes))


def _sections(changes: Changes) -> Iterator[str]:
    yield summary(changes)
    for title, lines, are_names in sections(changes):
        yield f"\n{title}:"
        yield from (f"  {line}" for line in ([_side_by_side(lines)] if are_names else lines))


def sections(changes: Changes) -> list[Section]:
    """Return what there is to say, a line for each thing; sections without lines are left out."""
    waiting = sorted(row.name for row in changes.waiting)
    all_sections = [
        Section("sites", [_line(change) for change in changes.sites]),
        Section("endpoints", [_line(change) for change in changes.endpoints]),
        Section(
            "aliases",
            [f"+ {row.get_kind_display()} {row.name}: {row.target}" for row in changes.aliases]
            + [
                f"- {row.get_kind_display()} {row.name}: now refers to something else in the source"
                for row in changes.dropped_aliases
            ],
        ),
        Section("kept", [kept_line(kept) for kept in changes.kept]),
        Section("registered but not yet in use", waiting, are_names=True),
        Section("no longer in the source", sorted(changes.gone), are_names=True),
        Section("unregistered sites in the source", changes.unknown_sites, are_names=True),
        Section("remarks", changes.remarks),
        Section("skipped", [f"- {sentence}" for sentence in changes.left_out]),
        Section(_cost_title(changes), [cost_line(cost) for cost in changes.costs]),
    ]
    return [section for section in all_sections if section.lines]


def _side_by_side(names: list[str]) -> str:
    """Return names on one line, the first of many."""
    more = len(names) - MOST_NAMED
    rest = f" and {format_count(more)} more" if more > 0 else ""
    return ", ".join(names[:MOST_NAMED]) + rest


def summary(changes: Changes) -> str:
    """Say in a line what would become of the registry."""
    if not changes:
        return f"{changes.source}: no changes"
    counts = (
        (sum(change.is_new for change in changes.sites), "new site"),
        (sum(not change.is_new for change in changes.sites), "changed site"),
        (sum(change.is_new for change in changes.endpoints), "new endpoint"),
        (sum(not change.is_new for change in changes.endpoints), "changed endpoint"),
        (len(changes.aliases) + len(changes.dropped_aliases), "alias"),
    )
    parts = [_counted(count, word) for count, word in counts if count]
    return f"{changes.source}: {', '.join(parts)}"


def _counted(count: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{format_count(count)} {word if count == 1 else plural}"


def _line(change: Change) -> str:
    if change.is_new:
        values = ", ".join(_said(name, value) for name, value in change.values.items())
        return f"+ {change.row.name}: {values}" if values else f"+ {change.row.name}"
    again = " again" if change.returns else ""
    moves = [
        f"{_in_use(value)}{again}"
        if name == "retired"
        else f"{_word(name)} {_written(change.before[name])} -> {_written(value)}"
        for name, value in change.values.items()
    ]
    return f"~ {change.row.name}: {', '.join(moves)}"


def _said(name: str, value: object) -> str:
    if name == "retired":
        return _in_use(value)
    return f"{_word(name)} {_written(value)}"


def _in_use(retired: object) -> str:
    return "not in use" if retired else "in use"


def kept_line(kept: Kept) -> str:
    """Say which value stays, and who set it."""
    owner = "set manually" if kept.owner == "hand" else f"set by {kept.owner}"
    word = f" {_word(kept.field)}" if kept.field else ""
    return f"= {kept.name}:{word} {_written(kept.here)} ({owner}), not {_written(kept.there)}"


def cost_line(cost: MeshCost) -> str:
    """Say what a mesh gains."""
    tests, volume = format_count(round(cost.tests_a_day)), format_bytes(cost.bytes_a_day)
    links = _counted(cost.links, "more link")
    return f"mesh {cost.mesh}: {links}, about {tests} tests and {volume} a day"


def _cost_title(changes: Changes) -> str:
    if changes.joins:
        return "additional tests"
    return "additional tests once the endpoints are in use"


def _word(name: str) -> str:
    return WORDS.get(name, name)


def _written(value: Any) -> str:  # noqa: ANN401 - of any column
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
