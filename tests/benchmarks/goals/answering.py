"""Goal 5: the matrix answer as bytes, against a DRF serializer over one object for each link."""

import gzip
from functools import partial

from tests.benchmarks import product, scale
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Goal, Spread, of_the_fastest, ratio
from tests.benchmarks.peers import serializer

SONAR, SERIALIZER = "Sonar", "DRF serializer"
DAYS = 30
GZIP_LEVEL = 6


def goal_5(bench: Bench) -> list[Goal]:
    grid = product.grid(SIZE, scale.aligned(DAYS), "mean")
    links = serializer.links_of(grid)
    seconds = bench.contest(
        f"the answer for {len(links):,} links as bytes",
        {
            SONAR: partial(product.as_bytes, grid),
            SERIALIZER: partial(serializer.answer, links),
        },
    )
    text = "matrix answer as bytes against a DRF serializer"
    spread = ratio(seconds[SERIALIZER], seconds[SONAR])
    fastest = of_the_fastest(seconds[SERIALIZER], seconds[SONAR])
    note = f"{fastest}; the serializer's objects are made before"
    return [
        Goal.from_spread(5, text, 100, spread, note=note),
        size_goal(
            product.as_bytes(grid),
            serializer.answer(links),
            serializer.answer(serializer.links_of(grid, rounded=True)),
        ),
    ]


def size_goal(ours: bytes, theirs: bytes, theirs_rounded: bytes) -> Goal:
    sizes = [len(gzip.compress(body, GZIP_LEVEL)) for body in (ours, theirs, theirs_rounded)]
    value = sizes[1] / sizes[0]
    note = (
        f"{sizes[0] / 1e6:.3f} against {sizes[1] / 1e6:.3f} MB; "
        f"{sizes[2] / sizes[0]:.1f}x against a serializer that rounds as Sonar does"
    )
    spread = Spread(value, value, value, 1)
    return Goal.from_spread(5, "the same, gzip -6 size", 7, spread, note=note)
