"""The pictures of a site at both ends of its links, on the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matrix.answers.events.event import Event
from matrix.answers.site.comparison import EndComparison
from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import SiteNow
from matrix.plots import bands
from matrix.plots.bands import Declared, Noted
from matrix.plots.event_marks import marks_of
from matrix.plots.looks import other_look
from matrix.plots.site import OtherSeries, axes_of, figure
from sonar.windows import Window

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
    histories, comparisons = site_is.histories, site_is.comparisons
    here = [history.series for history in histories.values()]
    axes = axes_of([*here, *(comparison.series for comparison in comparisons.values())])
    return {
        end: figure(
            history.series,
            window,
            [*spans, *marks_of(events, report.query.size, end)],
            axes,
            is_slower=any(link.level == "slower" for link in site_is.links[end]),
            other=other_series(comparisons[end], window) if end in comparisons else None,
        )
        for end, history in histories.items()
    }


def other_series(comparison: EndComparison, window: Window) -> OtherSeries:
    """Return the line of what is compared with, to be drawn over that of a window."""
    look = other_look(comparison.words, has_own_times=comparison.window != window)
    return OtherSeries(comparison.series, comparison.window, look)
