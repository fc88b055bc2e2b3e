"""Goal 11: HTTP as `make run` serves it: answers a second, one long stream, and a cold page."""

from datetime import timedelta
from urllib.parse import urlencode

from sonar.notation.windows import Window
from tests.benchmarks import clients, loopback, scale
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.clients import Load, Seen
from tests.benchmarks.goals import streaming
from tests.benchmarks.loopback import Web
from tests.benchmarks.measured import Goal, Spread
from tests.benchmarks.registry import CLOUDS

DAYS = 30
CONNECTIONS = (1, 4, 16)
# With so many connections, on the machine of docs/storage.md.
LIMITS_AT = 4
MATRIX_304, MATRIX_GZIP = f"matrix/ {DAYS} d, 304", f"matrix/ {DAYS} d, gzip"
LINKS = f"links/ {DAYS} d of a cloud, best 100"
LEAST_PER_SECOND = {MATRIX_GZIP: 150, f"{LINKS}, four clouds in turn": 150}
MOST_MS = {MATRIX_304: 3}
ROUNDS = 5
COLD_PAGE_MS, COLD_PAGES, WARMING = 25, 30, 16
GZIP = {"Accept-Encoding": "gzip"}


def goal_11(bench: Bench) -> list[Goal]:
    with loopback.as_it_runs(bench) as web:
        return [*streaming.goals(bench, web), *answers(bench, web), cold_page(web)]


def cold_page(web: Web) -> Goal:
    """Ask for the page of windows of a day that nobody asked for, one after another.

    No answer is kept for them, neither here nor there, but what every page of that day needs is: it
    was asked for once by each process.
    """
    urls = [f"{web.url}/?{urlencode(scale.bounds(window))}" for window in second_by_second()]
    clients.seen(Load(urls[:WARMING], WARMING, 0, GZIP))
    found = clients.seen(Load(urls[WARMING:], 1, 0, GZIP))
    text = "page of 24 h that nobody asked for, request to last byte"
    return Goal(11, text, COLD_PAGE_MS, found.median, "ms", at_least=False, note=found.words())


def second_by_second() -> list[Window]:
    """Return windows of a day, up to now as pages ask for it, each a second shorter."""
    last = scale.aligned(1)
    shorter = [timedelta(seconds=number) for number in range(1, 1 + WARMING + COLD_PAGES)]
    return [Window(last.start + each, last.end) for each in shorter]


def answers(bench: Bench, web: Web) -> list[Goal]:
    """Ask for what is asked for most, on more and more connections."""
    goals = []
    for name, urls, known in calls(web.url):
        if not bench.scale.is_small:
            # Once for each process and question: what is in their caches counts.
            clients.seen(Load(urls, 16, seconds(bench) / 4, GZIP, known))
        for connections in CONNECTIONS[: 1 if bench.scale.is_small else None]:
            load = Load(urls, connections, seconds(bench), GZIP, known)
            is_judged = connections == LIMITS_AT or bench.scale.is_small
            with bench.at_work(f"{name}, {connections} connections"):
                rounds = bench.scale.times(ROUNDS) if is_judged else 1
                found = [clients.seen(load) for _ in range(rounds)]
            words = f"{name}; connections: {connections}"
            bench.fact(words, found[0].per_second, "answers/s", found[0].words())
            if is_judged:
                goals += goals_of(name, words, found)
    return goals


def goals_of(name: str, words: str, seen: list[Seen]) -> list[Goal]:
    """Judge the median of rounds with connections of their own, which processes share unevenly."""
    note = seen[0].words()
    if name in LEAST_PER_SECOND:
        spread = Spread.of([one.per_second for one in seen])
        limit = LEAST_PER_SECOND[name]
        return [Goal.from_spread(11, words, limit, spread, "answers/s", note=note)]
    if name in MOST_MS:
        spread, limit = Spread.of([one.median for one in seen]), MOST_MS[name]
        return [Goal.from_spread(11, words, limit, spread, "ms", at_least=False, note=note)]
    return []


def seconds(bench: Bench) -> float:
    return 0.0 if bench.scale.is_small else 2


def calls(url: str) -> list[tuple[str, list[str], bool]]:
    """Return the calls: a name, addresses to ask for in turn, whether clients remember them."""
    window = scale.bounds(scale.aligned(DAYS))
    matrix = f"{url}/api/v1/matrix/?{urlencode({'size': SIZE, **window})}"
    best = {"min_mb_s": "1", "ordering": f"-{SIZE}.mean_mb_s", "page_size": "100", **window}
    links = [
        f"{url}/api/v1/links/?{urlencode(best | {'source_cloud': cloud})}" for cloud in CLOUDS[:4]
    ]
    return [
        (MATRIX_304, [matrix], True),
        (MATRIX_GZIP, [matrix], False),
        (f"{LINKS}, 304", links[:1], True),
        (f"{LINKS}, the same again", links[:1], False),
        (f"{LINKS}, four clouds in turn", links, False),
    ]
