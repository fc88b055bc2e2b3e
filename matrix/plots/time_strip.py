"""The strip of time as a figure: links that failed or were slower, by the hour or day."""

import numpy as np

from matrix.answers.matrix.time_strip import StripQuestion, TimeStrip
from matrix.plots import AXIS, MARGIN, ON_PAGE, Json
from matrix.statistics.arrays import Integers
from sonar.notation.units import format_count

# From below: a name, and the colour of its bars; slower has a pattern, as on the page.
ALL_FAILED, PARTLY, SLOWER = "all tests failed", "some tests failed", "slower than usual"
# Up to so many there is a line for each.
FEW = 6
OUTLINE = {"color": "var(--failing)", "width": 1}


def figure(question: StripQuestion, strip: TimeStrip) -> Json:
    """Return stacked bars of counts of links; each says how many were tested in its time."""
    counts = strip.counts
    bars = {
        ALL_FAILED: (counts.all_failed_links, {"color": "var(--failing)"}),
        PARTLY: (
            counts.failed_links - counts.all_failed_links,
            {"color": "var(--failing-soft)", "line": OUTLINE},
        ),
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
            "hovertext": texts(name, number, counts.links),
            "hovertemplate": "%{hovertext}<br>"
            f"{question.cut.bucket} from %{{customdata|%a %-d %b %H:%M}} UTC<extra></extra>",
            "customdata": starts.tolist(),
        }
        for name, (number, looks) in bars.items()
    ]
    most = int((counts.failed_links + counts.slower_links).max(initial=0))
    return {"data": data, "layout": layout(most)}


def texts(name: str, number: Integers, links: Integers) -> list[str]:
    pairs = zip(number.tolist(), links.tolist(), strict=True)
    return [f"{format_count(of)} of {format_count(all_of)} links: {name}" for of, all_of in pairs]


def layout(most: int) -> Json:
    """Return the layout for so many links in the highest bar, of which there are no halves."""
    whole = {"dtick": 1} if most <= FEW else {}
    return {
        "barmode": "stack",
        "bargap": 0.05,
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0},
        "margin": MARGIN,
        "xaxis": {"type": "date", "title": {"text": "UTC"}} | AXIS,
        "yaxis": {"title": {"text": "links"}, "rangemode": "tozero"} | whole | AXIS,
        **ON_PAGE,
    }
