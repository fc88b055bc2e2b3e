"""Goals 1 to 4: exact statistics of every link in a window, against raw rows and DuckDB.

Goals 1 and 2 speak of 39,800 links: at a larger scale their contests are only shown.
"""

from functools import partial

from sonar.notation.windows import Window
from tests.benchmarks import product, scale
from tests.benchmarks.answer import agree
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Goal, Spread, of_the_fastest, ratio
from tests.benchmarks.peers import postgres

SONAR, GRID, DUCKDB = "Sonar", "Sonar, whole grid.build", "DuckDB in memory"
POSTGRES = ("PostgreSQL, Python rows", "PostgreSQL, binary COPY drained")
DAYS = (1, 7, 30)
# Odd windows differ by little from aligned ones: more rounds tell that from noise, where somebody
# reads the figures.
ODD_ROUNDS = 3
# What takes milliseconds can be asked more often.
MORE_ROUNDS = {1: 3, 7: 2, 30: 1}


def goal_1(bench: Bench) -> list[Goal]:
    seconds = contest(bench, 1)
    if bench.scale.is_larger:
        return []
    text = "exact 24 h matrix"
    return [
        against(POSTGRES[0], 1, text, 30, seconds),
        against(POSTGRES[1], 1, text, 15, seconds),
        against(DUCKDB, 1, text, 4, seconds),
        against(
            DUCKDB, 1, f"{text}, all that a page needs,", 2.5, seconds | {SONAR: seconds[GRID]}
        ),
    ]


def goal_2(bench: Bench) -> list[Goal]:
    contest(bench, 7)
    seconds = contest(bench, 30)
    if bench.scale.is_larger:
        return []
    text = "exact 30 d matrix"
    return [against(POSTGRES[0], 2, text, 40, seconds), against(POSTGRES[1], 2, text, 45, seconds)]


def goal_3(bench: Bench) -> list[Goal]:
    text = "exact 30 d matrix of 999,000 links"
    if bench.scale.name != "large":
        return [Goal(3, text, 50, None, note="needs SCALE=large")]
    seconds = contest(bench, 30)
    return [
        against(POSTGRES[0], 3, text, 25, seconds),
        against(POSTGRES[1], 3, text, 50, seconds),
        against(DUCKDB, 3, text, 10, seconds),
    ]


def contest(bench: Bench, days: int) -> dict[str, list[float]]:
    """Let everybody answer for the last whole days; first see that all answer the same."""
    size, window = bench.size_class_id, scale.aligned(days)
    ours = product.answer(SIZE, window)
    agree("PostgreSQL", ours, postgres.answer(size, window))
    agree("DuckDB", ours, bench.duck.answer(size, window))
    title = f"{days} d: {ours.samples():,} results of {len(ours.link):,} links"
    return bench.contest(
        title,
        {
            SONAR: partial(product.exact, SIZE, window),
            GRID: partial(product.grid, SIZE, window, "median"),
            POSTGRES[0]: partial(postgres.rows, size, window),
            POSTGRES[1]: partial(postgres.drained, size, window),
            DUCKDB: partial(bench.duck.columns, size, window),
        },
        MORE_ROUNDS[days] * bench.scale.rounds,
    )


def against(
    peer: str, number: int, text: str, limit: float, seconds: dict[str, list[float]]
) -> Goal:
    spread = ratio(seconds[peer], seconds[SONAR])
    note = of_the_fastest(seconds[peer], seconds[SONAR])
    return Goal.from_spread(number, f"{text} against {peer}", limit, spread, note=note)


def goal_4(bench: Bench) -> list[Goal]:
    found = [one for days in DAYS for one in odd_ratios(bench, days)]
    worst, note = max(found, key=lambda one: one[0].median)
    text = "any odd window against the aligned window, time per result"
    note = f"{note}, the worst of {len(found)} odd windows"
    return [Goal.from_spread(4, text, 1.2, worst, at_least=False, note=note)]


def odd_ratios(bench: Bench, days: int) -> list[tuple[Spread, str]]:
    """Return for some odd windows their time per result over that of the aligned window."""
    windows = [scale.aligned(days), *scale.odd(days)]
    results = [checked(bench, window) for window in windows]
    seconds = bench.contest(
        f"{days} d, aligned and odd",
        {name(window): partial(product.exact, SIZE, window) for window in windows},
        bench.scale.times(ODD_ROUNDS) * bench.scale.rounds,
    )
    aligned, *odd = [
        [one / count for one in some] for some, count in zip(seconds.values(), results, strict=True)
    ]
    return [(ratio(one, aligned), f"{days} d: {of_the_fastest(one, aligned)}") for one in odd]


def checked(bench: Bench, window: Window) -> int:
    """See that Sonar and DuckDB answer the same; return the number of results."""
    ours = product.answer(SIZE, window)
    agree(name(window), ours, bench.duck.answer(bench.size_class_id, window))
    return ours.samples()


def name(window: Window) -> str:
    return f"{window.start:%d %b %H:%M:%S} to {window.end:%d %b %H:%M:%S}"
