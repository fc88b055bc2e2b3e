"""Arrays: their types, parts of different lengths, rounded numbers, and threads."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int32]
# Half as wide as others: of a million links some code needs many of them.
Places = NDArray[np.int32]
Numbers = Floats | Integers | np.float64 | np.int64
# By the size of a float: integers of the same bits.
_BITS = {4: np.int32, 8: np.int64}
# Numbers below 2**n are written in 1 / SCALES[n]: seven digits at most, and rates to the byte per
# second. More is noise that costs bytes.
SCALES = np.array([10.0 ** np.clip(7 - len(str(2**n - 1)), 0, 6) for n in range(25)])
# The same of how much values scatter: five digits at most, and to the byte per second.
SPREAD_SCALES = np.array([SCALES[0], *np.maximum(SCALES[1:] / 100, 1)])
Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = min(4, os.cpu_count() or 1)

# glibc hands every large array back to the kernel when it is freed and asks for it again page
# by page, which takes longer than to compute with it. It stops doing so, up to twice the size,
# once it has seen an array of up to 32 MB freed. (Not touched, this one costs nothing.)
np.empty(31 << 20, dtype=np.uint8)


def nan_unless(flags: Flags, values: NDArray[Any]) -> NDArray[Any]:
    """Return floats where they are flagged, and NaN elsewhere.

    By their bits, as numpy.where takes six times as long for flags that no processor can guess.
    """
    bits = _BITS[values.itemsize]
    return np.asarray((values.view(bits) | (flags.astype(bits) - bits(1))).view(values.dtype))


def zero_unless(flags: Flags, values: NDArray[Any]) -> NDArray[Any]:
    """Return floats where they are flagged, and 0 elsewhere, as nan_unless() does."""
    bits = _BITS[values.itemsize]
    return np.asarray((values.view(bits) & -flags.astype(bits)).view(values.dtype))


class ArrayFields:
    """A dataclass whose fields are arrays, and what is done to all of them at once."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        """Return how much memory they take."""
        return sum(getattr(values, "nbytes", 0) for values in self.arrays().values())

    def taken(self, places: Any) -> Self:  # noqa: ANN401 - whatever numpy indexes by
        """Return some of their values, as numpy indexes arrays."""
        return type(self)(**{name: values[places] for name, values in self.arrays().items()})

    def put(self, places: Any, part: Self) -> Self:  # noqa: ANN401 - as above
        """Fill in those at some places."""
        for name, values in self.arrays().items():
            values[places] = getattr(part, name)
        return self

    @classmethod
    def joined(cls, parts: Sequence[Self], by: Callable[..., Any] = np.concatenate) -> Self:
        """Put parts together, one behind the other, or as numpy does ``by`` another function."""
        columns = zip(*(part.arrays().values() for part in parts), strict=True)
        return cls(*map(by, columns))


class Stretches(NamedTuple):
    """Parts of one array: where each starts in it, and how many values it has."""

    starts: Integers
    counts: Integers

    def places(self) -> Integers:
        """Return the places of all of them, one stretch behind another."""
        return ranks(self.counts) + np.repeat(self.starts, self.counts)

    def numbers(self) -> Integers:
        """Return for each of the places which stretch it is of."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def taken(self, choice: Flags | Integers) -> Self:
        return type(self)(self.starts[choice], self.counts[choice])


def ranks(counts: Integers) -> Integers:
    """Number the members of each group from 0, one group behind another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def places_in(keys: Integers, values: NDArray[np.integer[Any]]) -> Integers:
    """Return the place of each value among sorted keys, -1 of one that is not there."""
    if not len(keys):
        return np.full(len(values), -1)
    place = np.minimum(keys.searchsorted(values), len(keys) - 1)
    return np.where(keys[place] == values, place, -1)


def rounded(values: Floats) -> Floats:
    """Round to within a millionth of each, but not finer than six decimals."""
    _, power = np.frexp(values)
    scale = SCALES.take(power, mode="clip")
    result: Floats = np.rint(values * scale) / scale
    return result


def rounded_deviations(values: Floats) -> NDArray[np.float32]:
    """Round standard deviations to within 1 in 16,000 of each, but not finer than six decimals.

    Only a hundred million tests would know one better than that. float32 holds these digits, and
    is written a third faster.
    """
    _, power = np.frexp(values)
    scale = SPREAD_SCALES.take(power, mode="clip")
    result: NDArray[np.float32] = (np.rint(values * scale) / scale).astype(np.float32)
    return result


def significant(values: Floats, digits: int = 4) -> Floats:
    """Round to so many digits, however small a number is: a p of 1e-9 is not 0."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of 0 and NaN
        power = digits - 1 - np.floor(np.log10(np.abs(values)))
        scale = np.power(10.0, np.clip(power, -300, 300))
        result: Floats = np.where(values == 0, 0.0, np.rint(values * scale) / scale)
    return result


def each(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return what the work makes of each item, in their order; the caller's thread works, too."""
    todo = enumerate(items)
    done: dict[int, Result] = {}

    def drain() -> None:
        for index, item in todo:
            done[index] = work(item)

    others = min(THREADS, len(items)) - 1
    futures = [_pool(os.getpid()).submit(drain) for _ in range(others)]
    drain()
    for future in futures:
        # One that has not begun has nothing left to do.
        if not future.cancel():
            future.result()
    return [done[index] for index in range(len(items))]


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    # By process, as threads do not survive a fork.
    return ThreadPoolExecutor(max(THREADS - 1, 1), thread_name_prefix="matrix")
