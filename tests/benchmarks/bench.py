"""One run of the benchmarks: what it works on, and what it has found so far."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rich.console import Console

from sonar.models import SizeClass
from tests.benchmarks.copy_rows import Ids
from tests.benchmarks.kept import Kept
from tests.benchmarks.measured import Contestant, Goal, Spread, timed
from tests.benchmarks.peers.duck import Duck
from tests.benchmarks.scale import Scale

console = Console(stderr=True)
SIZE = "large"


@dataclass(frozen=True)
class Contest:
    """Contestants that answered the same question in turn, in milliseconds."""

    title: str
    milliseconds: dict[str, Spread]


@dataclass(frozen=True)
class Fact:
    """A figure beside the goals."""

    name: str
    value: float
    unit: str
    note: str = ""


@dataclass
class Bench:
    """``url`` is of the database with the data of the scale, below ``home``."""

    scale: Scale
    home: Path
    url: str
    ids: Ids
    kept: Kept
    goals: list[Goal] = field(default_factory=list)
    contests: list[Contest] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    @cached_property
    def duck(self) -> Duck:
        duck = Duck()
        with self.at_work("Copying the rows into DuckDB"):
            duck.fill()
        return duck

    @cached_property
    def size_class_id(self) -> int:
        return SizeClass.objects.get(name=SIZE).id

    def contest(
        self, title: str, contestants: Mapping[str, Contestant], rounds: int = 0
    ) -> dict[str, list[float]]:
        """Time contestants in turn and note it; return the seconds of each by round."""
        with self.at_work(title):
            for contestant in contestants.values():
                contestant()
            seconds = timed(rounds or self.scale.rounds, contestants)
        spreads = {name: Spread.of([1000 * one for one in some]) for name, some in seconds.items()}
        self.contests.append(Contest(title, spreads))
        return seconds

    def fact(self, name: str, value: float, unit: str, note: str = "") -> None:
        self.facts.append(Fact(name, value, unit, note))

    @contextmanager
    def at_work(self, what: str) -> Iterator[None]:
        with console.status(what):
            yield


Step = Callable[[Bench], list[Goal]]
