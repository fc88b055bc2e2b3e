"""How a site does in the size classes that its page does not show, each in a few words."""

from __future__ import annotations

from collections.abc import Mapping

from matrix.answers.site.reports import Report, at_end
from matrix.answers.site.verdict import KINDS, ClassNews
from matrix.statistics.cells.states import DOWN, NOT_APPLICABLE
from sonar.notation.units import format_count

SHIFTS = {"failing": "failing", "slower": "slower than usual", "faster": "faster than usual"}


def other_classes(report: Report) -> tuple[ClassNews, ...]:
    """Return what is so with those that are tested, the worst first; classes alike are one."""
    alike: dict[tuple[str, str], list[str]] = {}
    for size in report.sites:
        if size != report.query.size and (news := news_of(report, size)):
            alike.setdefault(news, []).append(size)
    groups = [ClassNews(*news, tuple(sizes)) for news, sizes in alike.items()]
    return tuple(sorted(groups, key=lambda classes: KINDS.index(classes.kind)))


def news_of(report: Report, size: str) -> tuple[str, str] | None:
    """Return one of KINDS and the words for it; None where nothing is tested.

    A link within the site counts once.
    """
    matrix, name = report.sites[size], report.name
    cells = matrix.cells
    at_either_end = at_end(matrix, "source", name) | at_end(matrix, "destination", name)
    own = at_either_end & (cells.state != NOT_APPLICABLE)
    if not own.any():
        return None
    if (cells.state[own] == DOWN).all():
        return "down", "all links are in a declared downtime"
    counts = {kind: int(getattr(cells, f"{kind}_links")[own].sum()) for kind in SHIFTS}
    if any(counts.values()):
        return shifted(counts)
    if cells.judged_links[own].any():
        return "usual", "as usual"
    if not (cells.ok[own].any() or cells.failed[own].any()):
        return "untested", "no test in this window"
    return "unknown", "no usual rates to compare with yet"


def shifted(counts: Mapping[str, int]) -> tuple[str, str]:
    """Count the links that are not as usual: `2 links failing, 1 slower than usual`."""
    (worst, count), *more = ((kind, count) for kind, count in counts.items() if count)
    links = f"{format_count(count)} link{'s' * (count != 1)} {SHIFTS[worst]}"
    return worst, ", ".join([links, *(f"{format_count(n)} {SHIFTS[kind]}" for kind, n in more)])
