"""The figures of what tests cost."""

from __future__ import annotations

from dataclasses import dataclass

from sonar.registry.cost.rates import DAY, HOUR


@dataclass(frozen=True)
class ClassCost:
    """Tests of one size class a day: out of an endpoint, or between all of a mesh, and into it.

    What is asked is what the interval asks for; caps, budgets and limits let through what is
    allowed.
    """

    name: str
    test_bytes: int
    every_seconds: int
    links_out: int = 0
    links_in: int = 0
    asked_out: float = 0.0
    asked_in: float = 0.0
    allowed_out: float = 0.0
    allowed_in: float = 0.0

    @property
    def links(self) -> int:
        return self.links_out + self.links_in

    @property
    def asked_tests(self) -> float:
        return self.asked_out + self.asked_in

    @property
    def tests_per_day(self) -> float:
        return self.allowed_out + self.allowed_in

    @property
    def bytes_per_day(self) -> float:
        return self.tests_per_day * self.test_bytes

    @property
    def seconds_between_tests(self) -> float | None:
        """Return how often a link is tested in fact, on average; None for never."""
        return DAY * self.links / self.tests_per_day if self.tests_per_day else None


@dataclass(frozen=True)
class Share:
    """What would be used of a limit of somebody: both as bytes a day, or as tests at once."""

    whose: str
    used: float
    limit: float

    @property
    def share(self) -> float:
        return self.used / self.limit


@dataclass(frozen=True)
class Peak:
    """The most that may happen at one moment: tests as caps and links allow, and their bytes."""

    tests: int
    bytes: int


@dataclass(frozen=True)
class GridBytes:
    """What all of Sonar is asked for in an hour, before and after; ``limit`` 0 for none."""

    today: float
    afterwards: float
    limit: int


@dataclass(frozen=True)
class Cost:
    """What tests cost a day. ``endpoint`` is empty if it is of a whole mesh.

    ``budget``, ``cap_out``, ``cap_in`` and ``wan`` are of the endpoint, of what it is asked for in
    all meshes; None without a limit. Of a mesh ``wan`` is that which comes nearest to its limit.
    ``nearest_budget`` is that of its partner, or of the mesh's endpoint, that comes nearest to its
    limit, ``nearest_cap`` likewise. ``round_seconds`` is how long one test of each link and size
    class takes at least, ``peak`` the most that runs at once. ``remarks`` are sentences on what was
    left out, and on what does not fit.
    """

    endpoint: str
    mesh: str
    classes: tuple[ClassCost, ...]
    grid: GridBytes
    budget: Share | None
    cap_out: Share | None
    cap_in: Share | None
    wan: Share | None
    nearest_budget: Share | None
    nearest_cap: Share | None
    round_seconds: float
    peak: Peak
    remarks: tuple[str, ...] = ()

    @property
    def links(self) -> int:
        return max((each.links for each in self.classes), default=0)

    @property
    def links_out(self) -> int:
        return max((each.links_out for each in self.classes), default=0)

    @property
    def links_in(self) -> int:
        return max((each.links_in for each in self.classes), default=0)

    @property
    def asked_per_day(self) -> float:
        """Return the tests that the intervals ask for."""
        return sum(each.asked_tests for each in self.classes)

    @property
    def asked_bytes_per_day(self) -> float:
        return sum(each.asked_tests * each.test_bytes for each in self.classes)

    @property
    def tests_per_day(self) -> float:
        """Return the tests that there is room for."""
        return sum(each.tests_per_day for each in self.classes)

    @property
    def tests_per_hour(self) -> float:
        return self.tests_per_day * HOUR / DAY

    @property
    def bytes_per_day(self) -> float:
        return sum(each.bytes_per_day for each in self.classes)

    @property
    def bytes_per_hour(self) -> float:
        return self.bytes_per_day * HOUR / DAY
