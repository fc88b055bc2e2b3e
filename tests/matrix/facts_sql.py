"""What is so of a link and a size class, by plain SQL on the table of transfers."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import nan
from typing import Any

from django.db import connection

from sonar.notation.windows import Window

DAY = timedelta(days=1)
OF_LINK = """
    source_id = (SELECT id FROM sonar_endpoint WHERE name = %(source)s)
    AND destination_id = (SELECT id FROM sonar_endpoint WHERE name = %(destination)s)
    AND size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
"""
RATE = "bytes / seconds / 1e6"
NOW = f"""
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY rate), count(*) FROM (
        SELECT {RATE} AS rate FROM sonar_transfer
        WHERE {OF_LINK} AND state = 'done' AND started_at >= %(recent)s AND started_at < %(end)s
        ORDER BY started_at DESC LIMIT 3) AS newest
"""
USUAL = f"""
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {RATE}), count(*) FROM sonar_transfer
    WHERE {OF_LINK} AND state = 'done' AND started_at >= %(first)s AND started_at < %(day)s
"""
STREAK = f"""
    SELECT count(*), min(started_at) FROM sonar_transfer
    WHERE {OF_LINK} AND state = 'failed' AND started_at < %(end)s AND started_at >= %(recent)s
      AND started_at > coalesce((
        SELECT max(started_at) FROM sonar_transfer
        WHERE {OF_LINK} AND state = 'done' AND started_at < %(end)s), '-infinity')
"""
COUNTS = f"""
    SELECT count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed'),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY {RATE}) FILTER (WHERE state = 'done'),
           avg({RATE}) FILTER (WHERE state = 'done'),
           stddev_samp({RATE}) FILTER (WHERE state = 'done'), max(started_at)
    FROM sonar_transfer
    WHERE {OF_LINK} AND state <> 'lost' AND started_at >= %(start)s AND started_at < %(end)s
"""
ERRORS = f"""
    SELECT error_where, error, count(*), max(started_at) FROM sonar_transfer
    WHERE {OF_LINK} AND state = 'failed' AND started_at >= %(since)s AND started_at < %(end)s
    GROUP BY 1, 2
"""
RATES = f"""
    SELECT started_at, {RATE} FROM sonar_transfer
    WHERE {OF_LINK} AND state = 'done' AND started_at < %(end)s ORDER BY started_at
"""
ELSEWHERE = """
    SELECT count(*) FILTER (WHERE state = 'failed'), count(*) FROM sonar_transfer
    WHERE size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
      AND (source_id = (SELECT id FROM sonar_endpoint WHERE name = %(source)s)) IS {of_source}
      AND (destination_id = (SELECT id FROM sonar_endpoint WHERE name = %(destination)s))
          IS {of_destination}
      AND state <> 'lost' AND started_at >= %(start)s AND started_at < %(end)s
"""


def rows(sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


@dataclass(frozen=True)
class LinkFacts:
    """Rates in MB/s, NaN for none; ``streak`` failures in a row since ``since``, if any.

    ``median``, ``mean`` and ``std`` are of the window, ``last`` its newest result.
    """

    now: float
    usual: float
    streak: int
    since: datetime | None
    ok: int
    failed: int
    median: float
    mean: float
    std: float
    last: datetime | None

    @property
    def tests(self) -> int:
        return self.ok + self.failed

    @property
    def ratio(self) -> float:
        return self.now / self.usual


@dataclass(frozen=True)
class Facts:
    """The answers of SQL on a window as of now; each question is one statement.

    What was asked of a link is remembered: meanwhile nobody may store a result.
    """

    window: Window
    now: datetime
    links: dict[tuple[str, str, str], LinkFacts] = field(default_factory=dict)

    def bounds(self) -> dict[str, datetime]:
        day = midnight(self.window.start)
        end = min(self.window.end, self.now.replace(second=0, microsecond=0) + timedelta(minutes=1))
        recent = midnight(end - timedelta(milliseconds=1)) - 28 * DAY
        return {
            "start": self.window.start,
            "end": end,
            "day": day,
            "first": day - 28 * DAY,
            "recent": recent,
        }

    def ask(self, sql: str, *link: str, **more: Any) -> list[tuple[Any, ...]]:
        names = dict(zip(("source", "destination", "size"), link, strict=True))
        return rows(sql, **names, **self.bounds(), **more)

    def of(self, source: str, destination: str, size: str) -> LinkFacts:
        link = source, destination, size
        if link not in self.links:
            self.links[link] = self._asked(link)
        return self.links[link]

    def _asked(self, link: tuple[str, str, str]) -> LinkFacts:
        ((now, count),) = self.ask(NOW, *link)
        ((usual, enough),) = self.ask(USUAL, *link)
        ((streak, since),) = self.ask(STREAK, *link)
        ((ok, failed, median, mean, std, last),) = self.ask(COUNTS, *link)
        numbers = [now if count == 3 else None, usual if enough >= 5 else None, median, mean, std]
        now, usual, median, mean, std = (nan if each is None else each for each in numbers)
        return LinkFacts(now, usual, streak, since, ok, failed, median, mean, std, last)

    def errors(self, *link: str, since: datetime) -> list[tuple[str, str, int, datetime]]:
        """Return where, text, number and newest of the errors since a moment."""
        return self.ask(ERRORS, *link, since=since)  # type: ignore[return-value]

    def rates(self, *link: str) -> list[tuple[datetime, float]]:
        return self.ask(RATES, *link)  # type: ignore[return-value]

    def elsewhere(self, end: str, *link: str) -> tuple[int, int]:
        """Return how many tests on the other links of an end of a link failed, and of how many."""
        is_source = end == "source"
        sql = ELSEWHERE.format(of_source=is_source, of_destination=not is_source)
        ((bad, tests),) = self.ask(sql, *link)
        return bad, tests


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
