"""The real mover on real sandbox nodes: many tests at once on endpoints that hold nothing yet."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from tests.sandbox.test_node import FAR, SLOW, grid

SIZE_BYTES = 100_000
TESTS = 24


def order(urls: list[str], number: int) -> Order:
    source, destination = urls[number % 2], urls[1 - number % 2]
    return Order(
        source=End(Where.SOURCE, f"{source}/sonar/source/{SIZE_BYTES}", source),
        destination=End(Where.DESTINATION, f"{destination}/sonar/incoming/{number}", destination),
        bytes=SIZE_BYTES,
        adler32=adler32(SIZE_BYTES),
    )


def test_tests_that_make_the_same_directories_at_once_all_succeed(tmp_path: Path):
    mover = HttpTpc()
    with grid(tmp_path) as base_urls, ThreadPoolExecutor(TESTS) as threads:
        urls = [base_urls[FAR], base_urls[SLOW]]
        orders = [order(urls, number) for number in range(TESTS)]
        outcomes = list(threads.map(lambda one: measure(mover, one, Watch()), orders))
    assert [str(outcome.error) for outcome in outcomes if outcome.error] == []
    assert not [path for path in tmp_path.rglob("incoming/*") if path.is_file()]
