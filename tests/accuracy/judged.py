"""Measure the judge of the grid on simulated histories whose faults are known.

With the seed and the trials of the table, write it into docs/assessment.md. A judge is a function
of a history that returns conditions. Each row of the table has a figure and,
where there is one, its aim. A condition counts only once it is confirmed, and only for the fault
with its scope, endpoints and type at that time; every other confirmed one was not there.
"""

import argparse
import importlib
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tests.accuracy import histories, report
from tests.accuracy.histories import MINUTE, Fault, History, Noise
from tests.accuracy.scores import (
    Found,
    Judge,
    Row,
    confirmed,
    is_right,
    later,
    match,
    row,
    score,
    time_error,
)

PAGE = report.DOCS / "assessment.md"
JUDGED = "<!-- judged: make accuracy -->", "<!-- end of judged -->"
PRODUCT, TRIALS, SEED = "tests.accuracy.product:judge", 20, 1
# Of these scenarios, so many times as many trials.
MORE_TRIALS = {6: 3}
# A scenario, its seconds and its rows.
Measured = tuple[int, float, list[Row]]
SILENT = 59 / 60
QUIET_DAYS = 14
# About, noise, and how many conditions may be confirmed in a month.
QUIET_MONTHS = (
    ("calm", Noise(), 1),
    ("machine wanders by 30 %", Noise(wander_sd=0.3), 1),
    ("endpoints wander by 10 %", Noise(endpoint_wander_sd=0.1), None),
)
# About, and hours of the drift.
DRIFTS = (("nothing happens", None), ("drift to 0.6 in 6 h", 6), ("step to 0.6", 0))
# About, factor and hours.
ENDED = (
    ("ended, /2 for two days", 1 / 2, 48),
    ("ended, dead for a day", None, 24),
    ("ended, dead for 2 h", None, 2),
)


def generators(trials: int, *key: int) -> Iterator[np.random.Generator]:
    """Yield a generator per trial, the same whatever else is measured."""
    for trial in range(trials):
        yield np.random.default_rng([*key, trial])


def since_rows(about: str, pairs: Sequence[tuple[History, Found | None]]) -> list[Row]:
    """Compare stated beginnings with the true ones; a fault that was not found errs infinitely."""
    errors, held = [], []
    for history, found in pairs:
        start = history.faults[0].start
        stated = (found.since_low + found.since_high) / 2 if found else None
        errors.append(time_error(stated, start, history))
        if found:
            held.append(found.since_low <= start <= found.since_high)
    return [
        row(f"{about}: error of since, median, test intervals", errors, high=1, median=True),
        row(f"{about}: since intervals that hold the truth", held, low=0.95),
    ]


def measure_lasting(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for part in (2, 4):
        about, pairs, others, ratios, held, widths = f"endpoint /{part}", [], [], [], [], []
        for rng in generators(trials, seed, 1, part):
            history = histories.lasting(rng, 1 / part)
            (found,), false = score(judge, history)
            pairs.append((history, found))
            others.append(len(later(false, history)))
            if found and found.factor and found.factor_low and found.factor_high:
                ratios.append(math.log(found.factor * part))
                held.append(found.factor_low <= 1 / part <= found.factor_high)
                widths.append(found.factor_high / found.factor_low)
        rows += [
            row(f"{about}: found, right scope", [bool(found) for _, found in pairs], low=0.95),
            *since_rows(about, pairs),
            row(f"{about}: bias of the factor, mean of log ratios", ratios, -0.03, 0.03),
            row(f"{about}: factor intervals that hold the truth", held, 0.93, 0.97),
            row(f"{about}: factor interval, high / low", widths, median=True),
            row(f"{about}: other conditions confirmed since", others, high=0.1),
        ]
    return rows


def measure_dead_destination(judge: Judge, trials: int, seed: int) -> list[Row]:
    named, at_end, others, quiet = [], [], [], []
    for rng in generators(trials, seed, 2, 1):
        history = histories.dead_destination(rng)
        eighth = int(failures(history, history.faults[0])[7])
        early = history.until(-(-eighth // MINUTE) * MINUTE)
        (found,), false = score(judge, early)
        named.append(bool(found))
        others.append(len(false))
        (found,), false = score(judge, history)
        at_end.append(bool(found) and not false)
    for rng in generators(trials, seed, 2, 2):
        history = histories.quiet(rng, 41, QUIET_DAYS, 1.2)
        quiet.append(len(confirmed(judge, history)) * 1000 / QUIET_DAYS)
    return [
        row("dead destination: named after 8 failures", named, low=0.98),
        row("dead destination: other conditions confirmed then", others, high=0),
        row("dead destination: the only condition after a day", at_end, low=0.98),
        row("quiet grids: conditions per 1,000 grid-days", quiet, high=0),
    ]


def failures(history: History, fault: Fault) -> np.ndarray:
    """Return when tests began that failed on the links of a fault since its start, sorted."""
    started = [
        each.started[
            np.isnan(each.log_rate)
            & np.isin(each.link, fault.links)
            & (each.started >= fault.start)
        ]
        for each in history.tests.values()
    ]
    return np.sort(np.concatenate(started))


def measure_new_mesh(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for endpoints in (2, 3, 5):
        about, minutes, counts, only = f"new mesh of {endpoints}", [], [], []
        for rng in generators(trials, seed, 3, endpoints):
            history = histories.new_mesh(rng, endpoints)
            (fault,) = history.faults
            first = int(failures(history, fault)[0])
            needed = math.inf
            for now in range(-(-first // MINUTE) * MINUTE, history.now + 1, MINUTE):
                conditions = confirmed(judge, history.until(now))
                still = [condition for condition in conditions if condition.ended_at is None]
                if len(still) == 1 and is_right(still[0], fault):
                    needed = (now - first) / MINUTE
                    break
            minutes.append(needed)
            (found,), false = score(judge, history)
            counts.append(bool(found) + len(false))
            only.append(bool(found) and not false)
        rows += [
            row(f"{about}: dead server named within 5 min", [m <= 5 for m in minutes], low=0.95),
            row(f"{about}: minutes from first failure, median", minutes, high=5, median=True),
            row(f"{about}: exactly one condition at the end", only, low=0.95),
            row(f"{about}: conditions at the end, mean", counts),
        ]
    return rows


def measure_slow_links(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for about, low, high in (("confirmed or not", 0.95, 0.04), ("confirmed", None, None)):
        found, wrong = [], []
        for rng in generators(trials, seed, 4):
            history = histories.slow_links(rng)
            conditions = judge(history) if low else confirmed(judge, history)
            pairs, false = match(conditions, history.faults)
            found += [bool(pair) for pair in pairs]
            wrong += [False] * sum(found[-len(pairs) :]) + [True] * len(false)
        rows += [
            row(f"links at a third, 6 + 6 tests: found, {about}", found, low=low),
            row(f"links at a third, 6 + 6 tests: false, {about}", wrong, high=high),
        ]
    return rows


def measure_quiet_month(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for variant, (about, noise, high) in enumerate(QUIET_MONTHS):
        own, grid = [], []
        for rng in generators(trials, seed, 5, variant):
            scopes = [each.scope for each in confirmed(judge, histories.quiet(rng, noise=noise))]
            grid.append(scopes.count("grid"))
            own.append(len(scopes) - grid[-1])
        rows += [
            row(f"342 links, {about}: conditions a month", own, high=high),
            row(f"342 links, {about}: grid conditions a month", grid),
        ]
    return rows


def measure_drift(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for variant, (about, hours) in enumerate(DRIFTS):
        silent, grid = [], []
        for rng in generators(trials, seed, 6, variant):
            scopes = {each.scope for each in confirmed(judge, histories.drift(rng, hours))}
            silent.append(scopes <= {"grid"})
            grid.append("grid" in scopes)
        rows += [
            row(f"10 to 400 links, {about}: silent but for the grid", silent, low=SILENT),
            row(f"10 to 400 links, {about}: grid condition", grid),
        ]
    return rows


def measure_several(judge: Judge, trials: int, seed: int) -> list[Row]:
    by_scope: dict[str, list[bool]] = {"endpoint": [], "link": [], "site": []}
    others, whole = [], []
    for rng in generators(trials, seed, 7):
        history = histories.several(rng)
        pairs, false = score(judge, history)
        for fault, found in zip(history.faults, pairs, strict=True):
            scope = fault.scope if fault.scope in by_scope else "endpoint"
            by_scope[scope].append(bool(found))
        false = later(false, history)
        others.append(len(false))
        whole.append(all(pairs) and not false)
    return [
        *(
            row(f"four faults at once: {scope} found, right scope", flags, low=0.95)
            for scope, flags in by_scope.items()
        ),
        row("four faults at once: other conditions confirmed", others, high=0.1),
        row("four faults at once: all found and nothing else", whole, low=0.9),
    ]


def measure_remainder(judge: Judge, trials: int, seed: int) -> list[Row]:
    source, link, others, factors = [], [], [], []
    for rng in generators(trials, seed, 8):
        history = histories.slow_link_of_slow_source(rng)
        pairs, false = score(judge, history)
        source.append(bool(pairs[0]))
        link.append(bool(pairs[1]))
        place = history.faults[0].source
        listed = [each for each in later(false, history) if each.scope == "link"]
        others.append(all(each.source != place for each in listed))
        if pairs[1] and pairs[1].factor:
            factors.append(pairs[1].factor)
    return [
        row("link /3 of a source /2: source found", source, low=0.95),
        row("link /3 of a source /2: link found", link, low=0.95),
        row("link /3 of a source /2: no other link listed", others, low=0.98),
        row("link /3 of a source /2: factor of the link, median", factors, median=True),
    ]


def measure_ended(judge: Judge, trials: int, seed: int) -> list[Row]:
    rows = []
    for variant, (about, factor, hours) in enumerate(ENDED):
        pairs, ends, others = [], [], []
        for rng in generators(trials, seed, 9, variant):
            history = histories.ended(rng, factor, hours)
            (found,), false = score(judge, history)
            if found and found.ended_at is None:
                found = None
            pairs.append((history, found))
            ends.append(
                time_error(found.ended_at if found else None, history.faults[0].end, history)
            )
            others.append(len(later(false, history)))
        rows += [
            row(f"{about}: found and ended", [bool(found) for _, found in pairs], low=0.95),
            *since_rows(about, pairs),
            row(f"{about}: error of the end, median, intervals", ends, high=1, median=True),
            row(f"{about}: other conditions confirmed", others, high=0.1),
        ]
    return rows


SCENARIOS = {
    1: measure_lasting,
    2: measure_dead_destination,
    3: measure_new_mesh,
    4: measure_slow_links,
    5: measure_quiet_month,
    6: measure_drift,
    7: measure_several,
    8: measure_remainder,
    9: measure_ended,
}


def table(
    judge: Judge,
    trials: int = TRIALS,
    seed: int = SEED,
    only: Iterable[int] = tuple(SCENARIOS),
    measured: Callable[..., Iterable[Measured]] = map,
) -> list[Row]:
    """Measure these scenarios with this many trials each, print their rows and return them."""
    rows = {}
    tasks = [(judge, number, trials, seed) for number in only]
    for number, seconds, of_scenario in measured(measure, tasks):
        rows[number] = of_scenario
        print(f"\n{number}. {seconds:.0f} s")
        print(*map(line, of_scenario), sep="\n", flush=True)
    return [row for number in sorted(rows) for row in rows[number]]


def measure(task: tuple[Judge, int, int, int]) -> Measured:
    judge, number, trials, seed = task
    began = time.perf_counter()
    rows = SCENARIOS[number](judge, trials * MORE_TRIALS.get(number, 1), seed)
    return number, time.perf_counter() - began, rows


def line(row: Row) -> str:
    return f"{row.what:<62} {row.figure:>8.3f}  {row.aim:<15} {row.verdict:<17} n={row.count}"


def written(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| | measured | aim | met | of |", "| --- | ---: | --- | --- | ---: |"]
    lines += [
        f"| {each.what} | {each.figure:.3f} | {each.aim} | {each.verdict} | {each.count} |"
        for each in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.judged", description=__doc__)
    parser.add_argument("--judge", default=PRODUCT, metavar="MODULE:FUNCTION")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"per row ({TRIALS})")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--only",
        type=lambda text: [int(each) for each in text.split(",")],
        default=list(SCENARIOS),
        metavar="1,4",
        help="scenarios: "
        + ", ".join(
            f"{number} {measure.__name__.removeprefix('measure_').replace('_', ' ')}"
            for number, measure in SCENARIOS.items()
        ),
    )
    args = parser.parse_args(arguments)
    if unknown := set(args.only) - set(SCENARIOS):
        parser.error(f"--only: {min(unknown)} is not a scenario; they are 1 to {max(SCENARIOS)}")
    module, _, function = args.judge.partition(":")
    judge = getattr(importlib.import_module(module), function)
    with multiprocessing.Pool(min(len(args.only), os.cpu_count() or 1)) as pool:
        rows = table(judge, args.trials, args.seed, args.only, pool.imap_unordered)
    if (args.judge, args.trials, args.seed, args.only) == (PRODUCT, TRIALS, SEED, list(SCENARIOS)):
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(report.between(JUDGED, page, written(rows)), encoding="utf-8")
    missed = [row for row in rows if row.met is False]
    print(f"\n{len(missed)} of {sum(row.met is not None for row in rows)} aims not met")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
