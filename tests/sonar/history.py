"""Histories of results: stored, repeated, edited, deleted, sealed and interrupted at will."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import uuid4

from django.db import transaction
from hypothesis import strategies as st

from sonar.models import Endpoint, SizeClass, Transfer
from sonar.results import sealing
from sonar.results import store as results
from sonar.results.store import Result

NOW = datetime(2026, 11, 3, 12, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 1, tzinfo=UTC)  # the change of a month too

# An hour, a few milliseconds around its ends, and days before and after the change of a month.
MOMENTS = st.builds(
    lambda hours, milliseconds: MIDNIGHT + hours * HOUR + timedelta(milliseconds=milliseconds),
    st.sampled_from([-25, -24, -2, -1, 0, 1, 23, 24, 47, 48, 58, 60]),
    st.sampled_from([0, 1, 999, 1000, 3_599_999, 1_800_000, -1]),
)
STATES = st.sampled_from(["done", "done", "done", "failed", "lost"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), MOMENTS, STATES, st.integers(0, 11)),
        st.tuples(st.just("edit"), MOMENTS, st.integers(0, 99)),
        st.tuples(st.just("delete"), st.integers(0, 99)),
        st.tuples(st.just("repeat"), st.integers(0, 99)),
        st.tuples(st.just("seal"), st.sampled_from([0, 1, 20, 49])),
        st.tuples(st.just("interrupted seal"), st.integers(1, 4)),
    ),
    min_size=1,
    max_size=25,
)


class Store:
    """Results of the links between some endpoints; every third is made in another way.

    With ``sweeps`` some of them are; none without.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, sweeps: bool = False) -> None:
        self.links = list(permutations(endpoints, 2))
        self.size_class = SizeClass.objects.get(name="large").id
        profiles = results.Profiles()
        self.profiles = [
            profiles.id_of(mover="http-tpc"),
            profiles.id_of(mover="http-tpc", streams=4),
            profiles.id_of(mover="xrootd", ip_version=6, origin="production"),
        ]
        self.sweep = None
        if sweeps:
            self.sweep = profiles.id_of(mover="http-tpc", streams=16, purpose="sweep")

    def result(self, moment: datetime, state: str = "done", link: int = 0) -> Result:
        source, destination = self.links[link % len(self.links)]
        number = moment.hour + link
        is_sweep = self.sweep is not None and number % 5 == 2
        return Result(
            id=uuid4(),
            source_id=source.id,
            destination_id=destination.id,
            size_class_id=self.size_class,
            profile_id=self.sweep if is_sweep else self.profiles[number % 3],
            state=state,
            started_at=moment,
            seconds=3.7 + number * number % 17 / 7,
            bytes=2_000_000_000 + 1_000_003 * (moment.microsecond // 1000),
            error="" if state == "done" else "no route to host",
            error_where="" if state == "done" else "transfer",
        )

    def add(self, moment: datetime, state: str = "done", link: int = 0) -> Result:
        made = self.result(moment, state, link)
        results.store([made])
        return made


@contextmanager
def undone() -> Iterator[None]:
    """Undo all that is stored within."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


class KilledError(Exception):
    pass


def interrupted_seal(after: int) -> None:
    """Seal, and die when so many segments' days have been written but not committed."""
    original, calls = sealing._write, 0

    def write(*arguments: object) -> int:
        nonlocal calls
        calls += 1
        written = original(*arguments)
        if calls == after:
            raise KilledError
        return written

    sealing._write = write
    try:
        with transaction.atomic():
            sealing.seal(NOW)
    except KilledError:
        pass
    finally:
        sealing._write = original


def carry_out(store: Store, step: tuple[Any, ...], stored: list[Result]) -> None:
    kind, *values = step
    if kind == "store":
        stored.append(store.add(*values))
    elif kind == "seal":
        sealing.seal(MIDNIGHT + values[0] * HOUR)
    elif kind == "interrupted seal":
        interrupted_seal(values[0])
    elif stored:
        one = stored[values[-1] % len(stored)]
        if kind == "edit":
            results.make_months([values[0]])
            Transfer.objects.filter(id=one.id).update(started_at=values[0], seconds=99)
        elif kind == "delete":
            Transfer.objects.filter(id=one.id).delete()
        elif Transfer.objects.filter(id=one.id).exists():
            assert results.store([one]) == (0, 1)
