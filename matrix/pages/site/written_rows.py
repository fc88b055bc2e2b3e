"""The long tables of a site: hundreds of rows, for which a template takes ten times as long."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from django.utils.safestring import SafeString

from matrix.answers.site.reports import Partner, PartnerDirection
from matrix.templatetags.figures import NUMBERS_OR_DASHES, ago, count, dash, spread
from matrix.templatetags.long_parts import joined

rate, times, size = (NUMBERS_OR_DASHES[name] for name in ("rate", "times", "size"))
NO_SUCCESS = "no successful test"
NO_USUAL = "fewer than 5 successful tests in the 28 days before the time range"
NO_RATIO = "no rate now or no baseline"
ONE_WAY = "not measured in both directions"
UNTESTED = '<span class="muted" title="not tested, no results">–</span>'


def link_rows(rows: Iterable[Mapping[str, Any]], *, is_of_rates: bool) -> SafeString:
    """Write the lines of sides.partner_rows(); those of rates alone have nothing that is usual."""
    return joined(link_row(row, is_of_rates=is_of_rates) for row in rows)


def link_row(row: Mapping[str, Any], *, is_of_rates: bool) -> str:
    link, why_no_rate = row["link"], row["why_no_rate"]
    ends = f"from {link.source} to {link.destination}"
    usual = ""
    if not is_of_rates:
        ratio = dash(why_no_rate) if why_no_rate else times(link.ratio, NO_RATIO)
        usual = (
            f'<td class="number">{rate(link.usual, NO_USUAL)}</td>'
            f'<td class="number factor">{ratio}</td>'
        )
    size_std = f" ± {size(row['size_std'])}" if row["size_std"] else ""
    return (
        f'<tr class="{row["kind"]}{"" if row["first"] else " rest"}"><th scope="row">'
        f'<a href="{escape(row["url"])}" title="{escape(ends)}">{escape(row["name"])}</a></th>'
        f'<td class="number">{rate_now(row)}</td><td class="gauged">{gauge(row)}</td>{usual}'
        f'<td class="printed number">{rate(link.mean)}{spread(link.std)}</td>'
        f'<td class="printed number">{size(row["size_mean"])}{size_std}</td>'
        f'<td class="status">{escape(row["status"])}</td>'
        f'<td class="number tests">{count(link.tests)}</td></tr>\n'
    )


def rate_now(row: Mapping[str, Any]) -> str:
    why_no_rate: str = row["why_no_rate"]
    return dash(why_no_rate) if why_no_rate else rate(row["link"].rate, NO_SUCCESS)


def gauge(row: Mapping[str, Any]) -> str:
    """Draw the rate now as a bar, and the usual one as a line across it."""
    now = f'<rect class="now" y="2" width="{row["now"]}" height="6" />' if row["now"] else ""
    usual = f'<path class="usual" d="M{row["usual"]} 0v10" />' if row["usual"] else ""
    return (
        '<svg class="gauge" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{now}{usual}</svg>"
    )


def strip_rows(rows: Iterable[tuple[str, Sequence[Mapping[str, Any] | None]]]) -> SafeString:
    """Write the row and the column of a site in the matrix, each below the same partners."""
    return joined(
        f'<tr><th scope="row">{words}</th>{"".join(map(strip_cell, cells))}</tr>\n'
        for words, cells in rows
    )


def strip_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return f"<td>{UNTESTED}</td>"
    words = escape(cell["words"])
    return (
        f'<td class="{cell["kind"]}"><a href="{escape(cell["url"])}" title="{words}">'
        f'<span class="visually-hidden">{words}, </span> {rate_now(cell)}</a></td>'
    )


def both_directions(
    partners: Iterable[Partner], now: datetime, site: str, names: Mapping[str, str]
) -> SafeString:
    """Write both directions with each partner; ``site`` and ``names`` are their names here."""
    labels = f"from {escape(site)}", f"to {escape(site)}"
    return joined(
        f'<tr><th scope="row" title="{escape(partner.name)}">'
        f"{escape(names.get(partner.name, partner.name))}</th>"
        + "".join(
            direction_cells(direction, label, now)
            for direction, label in zip((partner.sent, partner.received), labels, strict=True)
        )
        + f'<td data-label="ratio">{rate(partner.ratio, ONE_WAY)}</td></tr>\n'
        for partner in partners
    )


def direction_cells(direction: PartnerDirection | None, label: str, now: datetime) -> str:
    if direction is None:
        look = f'colspan="4" class="word muted" data-label="{label}"'
        return f"<td {look}>not tested, no results</td>"
    cell, url = direction[0], escape(direction[1])
    ends = escape(f"from {cell.source} to {cell.destination}")
    beside = spread(cell.std) if cell.ok else f' <span class="visually-hidden">{ends}</span>'
    return (
        f'<td data-label="{label}"><a href="{url}" title="{ends}">'
        f"{rate(cell.mean)}{beside}</a></td>"
        f'<td data-label="ok, failed">{count(cell.ok)}, {count(cell.failed)}</td>'
        f'<td data-label="last">{ago(cell.last, now)}</td>'
        f'<td class="word"><span class="state"><span class="swatch {cell.state}" '
        f'aria-hidden="true"></span>{cell.state}</span></td>'
    )
