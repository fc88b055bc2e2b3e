"""The strip of time on a page: where its numbers are, and which windows it leads to."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from matrix.pages.base import QueryPage
from matrix.pages.parts.controls import Choice
from matrix.query.addresses import address
from matrix.query.comparison import OF_AROUND
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.notation.windows import EARLIEST, Window, format_time

# For readers without a script, who have the form of from and to as well.
DAYS_LINKED = 14
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class StripSpan(NamedTuple):
    """How long a strip is, and its buckets are: the latter by the name the API has for it, too."""

    length: timedelta
    width: timedelta
    bucket: str


SPANS = {"7d": StripSpan(7 * DAY, HOUR, "1h"), "30d": StripSpan(30 * DAY, DAY, "1d")}
# Stand in an address for the bounds of a window; nobody measured anything then.
FROM, TO = datetime(1971, 1, 1, tzinfo=UTC), datetime(1972, 1, 1, tzinfo=UTC)


def strip_for(
    page: QueryPage,
    window: Window,
    now: datetime,
    of_links: Iterable[Filter] = (),
    *,
    single: bool = False,
) -> dict[str, Any]:
    """Return what the template shows of the strip of a page with this window, and its script reads.

    ``of_links`` choose the links of a page beside its own filters, ``single`` if that is one.
    `size` is the size class whose tests it counts. `urls` are calls of the API by the names of
    SPANS, and `span` names the one to begin with. `start` and `end` bound the window of the page,
    and `words` say it. In `window_url` stand `from_text` and `to_text` for the bounds of another;
    `around_url` compares before and after a moment, for which `from_text` stands. `preset` is the
    page with the last 7 days, empty if its window is a preset. `days` are windows for readers
    without a script.
    """
    query = page.query
    spans, days = {}, []
    for name, span in SPANS.items():
        # The last 7 or 30 days; of a window before these, the days up to its end.
        end = window.end if window.end <= now - SPANS["30d"].length else now
        # The full hour or day behind it.
        end += (FROM - end) % span.width
        spans[name] = Window(max(end - span.length, EARLIEST), end)
    for number in range(1, DAYS_LINKED + 1):
        day = max(spans["30d"].end - number * DAY, EARLIEST)
        url = in_window(page, Window(day, day + DAY))
        days.append(Choice(f"{day:%a} {day.day} {day:%b}", url, url == page.url()))
    usual = page.asking(query.replace(window=MatrixQuery.window, compare=None)).url()
    question = MatrixQuery(query.size, "", filters=(*of_links, *query.filters))
    return {
        "size": query.size,
        "urls": {
            name: question.replace(start=span.start, end=span.end).url(
                address("api-strip"), bucket=SPANS[name].bucket
            )
            for name, span in spans.items()
        },
        # The preset of 7 days begins up to an hour before them.
        "span": "7d" if window.start > spans["7d"].start - HOUR else "30d",
        "start": format_time(window.start),
        "end": format_time(window.end),
        "words": query.window_words(),
        "window_url": in_window(page, Window(FROM, TO)),
        "around_url": f"{usual}{'&' if '?' in usual else '?'}{OF_AROUND}={format_time(FROM)}",
        "preset": ""
        if query.window
        else page.asking(query.replace(window=MatrixQuery.window)).url(),
        "days": days,
        "single": single,
        "from_text": format_time(FROM),
        "to_text": format_time(TO),
    }


def in_window(page: QueryPage, window: Window) -> str:
    return page.asking(page.query.replace(window="", start=window.start, end=window.end)).url()
