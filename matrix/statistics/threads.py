"""A few threads for the whole process: numpy lets go of the interpreter while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = min(4, os.cpu_count() or 1)

# glibc hands every large array back to the kernel when it is freed and asks for it again page
# by page, which takes longer than to compute with it. It stops doing so, up to twice the size,
# once it has seen an array of up to 32 MB freed. (Not touched, this one costs nothing.)
np.empty(31 << 20, dtype=np.uint8)


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
