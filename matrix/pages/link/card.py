"""The part of a cell's card that is fetched for the link under the pointer."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Self

import numpy as np
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.link import report, samples, series
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import Question, of_links
from matrix.answers.link.verdict import ordered
from matrix.answers.matrix.standing import reach
from matrix.answers.ordering.probe_requests import ORDER
from matrix.answers.words.phrases import common_words, why_no_rate
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import QueryPage
from matrix.pages.parts.links import ends_among, registered
from matrix.pages.views import showing
from matrix.plots.sparkline import sparkline
from matrix.query.addresses import about_link, address, link_path
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.samples.quantiles import running_median
from matrix.store import data_version, notes
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import SizeClass, Transfer
from sonar.notation.units import format_factor, format_span
from sonar.notation.windows import Window
from sonar.people import roles
from sonar.people.roles import Anyone

# For so long a browser shows it again without asking.
SECONDS_FRESH = 60
# The week before the end of the window is drawn, if it has as many tests.
WEEK, BUCKET, FEWEST_DRAWN = timedelta(days=7), "1h", 5


@dataclass(frozen=True)
class CardPage(QueryPage):
    """A fragment of HTML, for static/js/matrix/facts.js."""

    template: ClassVar[str] = "card.html"

    source: EndpointInfo
    destination: EndpointInfo

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        ends = ends_among(registered(), path["source"], path["destination"])
        return cls(about_link(MatrixQuery.from_params(params)), *ends)

    def path(self) -> str:
        return address("link-card", self.source.name, self.destination.name)

    def version(self, now: datetime) -> DataVersion:
        window = self.query.window_at(now)
        shown = Window(min(window.start, window.end - WEEK), window.end)
        minute = now.replace(second=0, microsecond=0)
        question = self.query, self.source.id, self.destination.id, minute
        return data_version.read(None, shown).of_question(question)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Answer with a number of SQL queries that does not depend on the data."""
        query, question = self.query, Question(self.source, self.destination, self.query)
        window, ends = query.window_at(now), question.ends
        with snapshot():
            sizes = dict(SizeClass.objects.values_list("id", "name"))
            downtimes = report.read_downtimes(ends, window)
            planned = report.schedules(ends)
            judgement, _ = report.judgements(ends, window)
            counting = samples.read(ends, reach(window), query.filters)
            classes = report.classes_of(
                question,
                window,
                sizes,
                planned,
                now=now,
                moment=judgement.moment,
                downtimes=downtimes,
                counting=counting,
                tests=counting.during(window).of_link(*ends),
            )
            chosen = [part for part in classes if part.size == query.size]
            of_sizes = report.read_errors(question, judgement, window, chosen, sizes)
            errors, failure = of_sizes.get(query.size, []), None
            if not errors:
                size_class = next(key for key, name in sizes.items() if name == query.size)
                rows = question.of_lists(window, size_class).rows(ends)
                failures = rows.filter(state=Transfer.State.FAILED)
                failure = failures.order_by("-started_at", "-id").first()
            week, link = Window(window.end - WEEK, window.end), (ends[0].id, ends[1].id)
            points = series.build(link, query.size, week, BUCKET, query.filters).points
        line = None
        if points.started.size >= FEWEST_DRAWN:
            started = (1000 * points.started).astype(np.int64)
            median = running_median(started[points.ok], points.rate[points.ok])
            line = sparkline(median, started[~points.ok], chosen[0].there.usual, week)
        names = self.source.name, self.destination.name
        return {
            "query": query,
            "line": line,
            "classes": [class_words(part.there, judgement.moment) for part in classes],
            "conditions": [
                (
                    KIND_OF[each.type],
                    f"{words.title(each)} {words.since(each)}"
                    f"{'' if each.confirmed_at else ', unconfirmed'}.",
                )
                for each in ordered(of_links(judgement))
            ],
            "doubtful": words.doubtful(judgement.doubtful) if judgement.doubtful else "",
            "error": common_words(errors[0], sum(each.count for each in errors)) if errors else "",
            "failure": failure,
            "test_now": f"{link_path(*names)}#test-now"
            if roles.may(reader, ORDER, notes.sites_of(*names))
            else "",
        }


def class_words(direction: Direction, moment: datetime) -> tuple[Direction, str, str, str, str]:
    """Return a class, why it has no rate, its ratio, its colour, and how it is: `as usual`."""
    why = why_no_rate(direction.state, direction.since, moment)
    factor = direction.now / direction.usual
    ratio = "" if np.isnan(factor) else format_factor(factor)
    standing = direction.standing_words
    # A condition lasts where the window has no test of the link.
    is_shifted = direction.state != "down" and direction.level in ("silent", "slower", "faster")
    if direction.state != "failing" and not is_shifted:
        is_tested = direction.state != "not_applicable"
        return direction, why, ratio, "", standing if is_tested else "not tested"
    kind = direction.level if is_shifted else direction.state
    lasting = moment - datetime.fromtimestamp(direction.since, UTC)
    return direction, why, ratio, kind, f"{standing} for {format_span(lasting)}"


@for_whom(GET=readers)
def link_card(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    """Answer with the fragment, which its reader's browser keeps for a minute."""
    response = showing(CardPage)(request, source=source, destination=destination)
    if response.status_code in (200, 304):
        response["Cache-Control"] = f"private, max-age={SECONDS_FRESH}"
    return response
