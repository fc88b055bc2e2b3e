"""What a mesh costs, or an endpoint in it, as pages say it before anything is tested."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from matrix.answers.cost import CostAnswer
from sonar.notation.units import (
    DASH,
    exact_duration,
    format_bytes,
    format_count,
    format_share,
    format_span,
    three_digits,
)
from sonar.registry.cost.demand import ASSUMED_BYTES_PER_SECOND
from sonar.registry.cost.words import at_most, in_its_meshes, summary


class Bar(NamedTuple):
    """What is used of a limit; ``value`` from 0 to 1."""

    label: str
    words: str
    value: float
    before: float = 0.0


@dataclass(frozen=True)
class CostInAll:
    """What a mesh costs; or an endpoint in the mesh that was chosen, and in all that test it."""

    chosen: CostAnswer
    others: Sequence[CostAnswer] = ()

    @property
    def all(self) -> list[CostAnswer]:
        return [self.chosen, *self.others]

    @property
    def words(self) -> str:
        """Say it in one line for each mesh: `38 links, 912 tests and 42.7 GB a day in mesh uk`."""
        return in_its_meshes([each.cost for each in self.all])

    @property
    def summary(self) -> str:
        """Say it of the mesh that was chosen: `38 links, 912 tests and 42.7 GB a day`."""
        return summary(self.chosen.cost)

    @property
    def tests(self) -> str:
        return format_count(round(sum(each.cost.tests_per_day for each in self.all)))

    @property
    def volume(self) -> str:
        return format_bytes(sum(each.cost.bytes_per_day for each in self.all))

    @property
    def hourly(self) -> str:
        """Say what that is an hour: `38 tests and 1.8 GB an hour`."""
        tests = sum(each.cost.tests_per_hour for each in self.all)
        volume = format_bytes(sum(each.cost.bytes_per_hour for each in self.all))
        return f"{three_digits(tests)} tests and {volume} an hour"

    @property
    def peak(self) -> str:
        """Say what may happen at once: `at most 6 tests at once with 12 GB of files …`."""
        peaks = [each.cost.peak for each in self.all]
        tests = max(peak.tests for peak in peaks)
        volume = format_bytes(max(peak.bytes for peak in peaks))
        rate = format_bytes(tests * ASSUMED_BYTES_PER_SECOND)
        each = format_bytes(ASSUMED_BYTES_PER_SECOND)
        return (
            f"{at_most(tests)} with {volume} of files in total; total rate {rate}/s if each test "
            f"runs at {each}/s"
        )

    @property
    def joins(self) -> str:
        cost = self.chosen.cost
        links = f"{format_count(cost.links)} link{'s' * (cost.links != 1)}"
        return f"Adds {links}: {cost.links_in} inbound, {cost.links_out} outbound."

    def rows(self) -> Iterator[dict[str, str]]:
        for size, noticed in zip(self.chosen.cost.classes, self.chosen.noticed, strict=True):
            yield {
                "name": size.name,
                "file": format_bytes(size.test_bytes),
                "every": exact_duration(size.every_seconds),
                "tests": format_count(round(size.tests_per_day)),
                "volume": format_bytes(size.bytes_per_day),
                "noticed": span(noticed.slowdown_seconds),
            }

    def bars(self) -> Iterator[Bar]:
        """Yield what is used of limits: its own, that of all of Sonar, and its network."""
        cost, grid = self.chosen.cost, self.chosen.cost.grid
        for budget in filter(None, (cost.budget, None if cost.endpoint else cost.nearest_budget)):
            words = f"{format_share(budget.share)} of {format_bytes(budget.limit)}"
            yield Bar(f"Daily limit of {budget.whose}", words, min(budget.share, 1))
        if grid.limit:
            today = f" ({format_share(grid.today / grid.limit)} today)"
            share = grid.afterwards / grid.limit
            words = f"{format_share(share)}{today} of {format_bytes(grid.limit)}"
            yield Bar("Hourly limit for all tests", words, min(share, 1), grid.today / grid.limit)
        caps = ((cost.cap_out, "from the endpoint"), (cost.cap_in, "to the endpoint"))
        if not cost.endpoint and cost.nearest_cap:
            caps = ((cost.nearest_cap, f"at {cost.nearest_cap.whose}"), (None, ""))
        for cap, where in caps:
            if cap:
                words = f"{format_share(cap.share)} of {cap.limit:g}"
                yield Bar(f"Average number of concurrent tests {where}", words, min(cap.share, 1))
        if cost.wan:
            share = cost.wan.share
            yield Bar(
                f"Average load of the {cost.wan.whose} WAN", format_share(share), min(share, 1)
            )

    def sentences(self) -> Iterator[str]:
        """Yield what does not fit, what was left out, and who comes nearest to a limit."""
        nearest = self.chosen.cost.nearest_budget
        if nearest and nearest.share <= 1:
            words = f"{format_share(nearest.share)} of {format_bytes(nearest.limit)} a day"
            who = "partner" if self.chosen.cost.endpoint else "endpoint"
            yield (
                f"No {who} exceeds its daily limit. "
                f"{nearest.whose} is closest to its limit: {words}."
            )
        if self.chosen.cost.round_seconds:
            least = span(self.chosen.cost.round_seconds)
            yield f"Testing every link and size class once takes at least {least}."
        yield from dict.fromkeys(each for answer in self.all for each in answer.cost.remarks)
        if self.others:
            names = ", ".join(each.cost.mesh for each in self.others)
            yield f"Other meshes also test this endpoint: {names}."

    def noticed(self) -> Iterator[tuple[str, str]]:
        """Yield what tests let people notice, and within what time, by size class."""
        kinds = (
            ("One failing link", "failing_seconds"),
            ("One link at half its usual rate", "slowdown_seconds"),
            ("First baselines", "usual_seconds"),
        )
        for label, name in kinds:
            spans = [(each.size, getattr(each, name)) for each in self.chosen.noticed]
            listed = [f"{span(seconds)} ({size})" for size, seconds in spans if seconds]
            if listed:
                before = "in about" if name == "usual_seconds" else "within"
                yield label, f"{before} {', '.join(listed)}"


def span(seconds: float | None) -> str:
    return DASH if seconds is None else format_span(timedelta(seconds=seconds))
