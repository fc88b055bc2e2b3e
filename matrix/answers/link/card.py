"""What the card of a cell says of its link beyond the matrix: its week, size classes and errors."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from matrix.answers.link import report, samples, series
from matrix.answers.link.directions import Direction, StateInputs
from matrix.answers.link.report import Question
from matrix.answers.link.series import TimeSeries
from matrix.answers.matrix.standing import reach
from matrix.store.data_version import snapshot
from matrix.store.transfers import CommonError
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import Window

WEEK = timedelta(days=7)
BUCKET = "1h"


@dataclass(frozen=True)
class LinkCard:
    """One direction. ``classes`` begin with the smallest; ``week`` is that of the size asked for.

    ``error`` is the most common one since that size fails; where it does not, ``failure`` is its
    newest failed test in the window.
    """

    question: Question
    moment: datetime
    classes: list[Direction]
    week: TimeSeries
    week_window: Window
    error: CommonError | None
    failure: Transfer | None

    @property
    def chosen(self) -> Direction:
        """Return the class of the size that was asked for."""
        size = self.question.query.size
        return next(direction for direction in self.classes if direction.size == size)


def answer(question: Question, now: datetime) -> LinkCard:
    """Answer with a number of SQL queries that does not depend on the data."""
    window = question.query.window_at(now)
    moment = min(now, window.end)
    link, size = (question.source.id, question.destination.id), question.query.size
    with snapshot():
        sizes = dict(SizeClass.objects.values_list("id", "name"))
        downtimes = report.read_downtimes(question.ends, window)
        planned = report.schedules(question.ends)
        inputs = StateInputs.at(moment, downtimes, question.ends)
        counting = samples.read(question.ends, reach(window), question.query.filters)
        tests = counting.during(window).of_link(*question.ends)
        classes = report.classes_of(
            question,
            window,
            sizes,
            planned,
            now=now,
            moment=inputs,
            counting=counting,
            tests=tests,
        )
        failing = [part for part in classes if part.size == size and part.there.state == "failing"]
        errors = report.read_errors(question, window, failing, sizes)
        error = errors[size][0] if size in errors else None
        failure = None
        if error is None:
            size_class = next(key for key, name in sizes.items() if name == size)
            rows = question.of_lists(window, size_class).rows(question.ends)
            failures = rows.filter(state=Transfer.State.FAILED)
            failure = failures.order_by("-started_at", "-id").first()
        week = Window(window.end - WEEK, window.end)
        return LinkCard(
            question,
            moment,
            [of_class.there for of_class in classes],
            series.build(link, size, week, BUCKET, question.query.filters),
            week,
            error,
            failure,
        )
