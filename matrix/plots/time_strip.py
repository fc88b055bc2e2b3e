"""The strip of time as a figure: links that were failing or slower, by the hour or day."""

import numpy as np

from matrix.answers.matrix.time_strip import StripQuestion, TimeStrip
from matrix.plots import AXIS, MARGIN, ON_PAGE, Json
from matrix.statistics.arrays import Integers
from sonar.notation.units import format_count

# From below: a name, and the colour of its bars; slower has a pattern, as on the page.
FAILING, SLOWER = "failing", "slower than usual"
# Above the bars, thick and thin as on the page: links by what is declared of them, and how high.
DOWN, AT_RISK = "declared down", "declared at risk"
LANES = {DOWN: (0.98, 6), AT_RISK: (0.93, 2)}
# Up to so many there is a line for each.
FEW = 6


def figure(question: StripQuestion, strip: TimeStrip) -> Json:
    """Return stacked bars of counts of links; each says how many were tested in its time."""
    counts = strip.counts
    bars = {
        FAILING: (counts.failing_links, {"color": "var(--failing)"}),
        SLOWER: (counts.slower_links, {"color": "var(--slower)", "pattern": {"shape": "/"}}),
    }
    starts = np.rint(strip.starts * 1000).astype(np.int64)
    middles = (starts + question.width // 2).tolist()
    data = [
        {
            "type": "bar",
            "name": name,
            "x": middles,
            "width": question.width,
            "y": number.tolist(),
            "marker": looks,
            "hovertext": [
                f"{links_of(of)}: {name}<br>{links_of(tested)}: tested"
                for of, tested in zip(number.tolist(), counts.links.tolist(), strict=True)
            ],
            "hovertemplate": "%{hovertext}<br>"
            f"{question.cut.bucket} from %{{customdata|%a %-d %b %H:%M}} UTC<extra></extra>",
            "customdata": starts.tolist(),
        }
        for name, (number, looks) in bars.items()
    ]
    declared = {DOWN: strip.declared.down_links, AT_RISK: strip.declared.at_risk_links}
    data += [lane(question, strip, name, own) for name, own in declared.items() if own.any()]
    most = int((counts.failing_links + counts.slower_links).max(initial=0))
    layout = {
        "barmode": "stack",
        "bargap": 0.05,
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0},
        "margin": MARGIN,
        "xaxis": {"type": "date", "title": {"text": "UTC"}} | AXIS,
        # There are no halves of a link.
        "yaxis": {"title": {"text": "links"}, "rangemode": "tozero"}
        | ({"dtick": 1} if most <= FEW else {})
        | AXIS,
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        **ON_PAGE,
    }
    return {"data": data, "layout": layout}


def lane(question: StripQuestion, strip: TimeStrip, name: str, numbers: Integers) -> Json:
    """Return a line from the beginning to the end of each bucket with a number, else a gap."""
    height, wide = LANES[name]
    x: list[int | None] = []
    text: list[str] = []
    for start, number in zip(strip.starts.tolist(), numbers.tolist(), strict=True):
        if number:
            first = round(start * 1000)
            x += [first, first + question.width, None]
            text += [f"{links_of(number)}: {name}"] * 2 + [""]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": [None if moment is None else height for moment in x],
        "yaxis": "y2",
        "line": {"color": "var(--downtime)", "width": wide},
        "hovertext": text,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def links_of(number: int) -> str:
    return "1 link" if number == 1 else f"{format_count(number)} links"
