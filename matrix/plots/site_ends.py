"""The pictures of a site at both ends of its links, on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matrix.answers.events.event import Event
from matrix.answers.site.comparison import EndComparison
from matrix.answers.site.history import EndHistory, RatioSeries, rates_over_time
from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import SiteNow
from matrix.plots import bands
from matrix.plots.bands import Declared, Noted
from matrix.plots.event_marks import marks_of
from matrix.plots.looks import other_look
from matrix.plots.site import Axes, OtherSeries, axes_of_rates, axes_of_ratios, figure
from sonar.notation.windows import Window

Json = dict[str, Any]


def end_figures(
    report: Report,
    site_is: SiteNow,
    downtimes: Sequence[Declared],
    notes: Sequence[Noted],
    events: Sequence[Event],
) -> dict[str, Json]:
    """Return a figure for each end: with downtimes, notes, and jumps of the links of this end."""
    window = report.window
    during = [downtime for downtime in downtimes if downtime.ends_at > window.start]
    spans = bands.spans_of(during, notes, window)
    histories = histories_drawn(site_is)
    axes = axes_drawn(site_is, histories)
    return {
        end: figure(
            history.series,
            history.window,
            [*spans, *marks_of(events, report.query.size, end)],
            axes,
            is_slower=any(link.level == "slower" for link in site_is.links[end]),
            other=other_drawn(site_is, end, window),
        )
        for end, history in histories.items()
    }


def is_of_rates(site_is: SiteNow) -> bool:
    """Say whether nothing is usual yet: rates are drawn then."""
    return not any(line.links.any() for line in ratios_of(site_is))


def ratios_of(site_is: SiteNow) -> list[RatioSeries]:
    own = [history.series for history in site_is.histories.values()]
    return [*own, *(comparison.series for comparison in site_is.comparisons.values())]


def histories_drawn(site_is: SiteNow) -> Mapping[str, EndHistory]:
    """Return the line of each end: of ratios to usual, or of rates."""
    return rates_over_time(site_is.histories) if is_of_rates(site_is) else site_is.histories


def axes_drawn(site_is: SiteNow, histories: Mapping[str, EndHistory]) -> Axes:
    if is_of_rates(site_is):
        return axes_of_rates([history.series for history in histories.values()])
    return axes_of_ratios(ratios_of(site_is))


def other_drawn(site_is: SiteNow, end: str, window: Window) -> OtherSeries | None:
    """Return the line of what an end is compared with; rates are drawn alone."""
    comparison = site_is.comparisons.get(end)
    return other_series(comparison, window) if comparison and not is_of_rates(site_is) else None


def other_series(comparison: EndComparison, window: Window) -> OtherSeries:
    """Return the line of what is compared with, to be drawn over that of a window."""
    look = other_look(comparison.words, has_own_times=comparison.window != window)
    return OtherSeries(comparison.series, comparison.window, look)
