"""FTS3: copies that are asked of a service, between real XRootD servers."""

import json
import math
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from sonar.movers.base import End, MoverError, Order, Service, Stopped, Where
from sonar.movers.fts3 import poll, rest
from sonar.movers.fts3.mover import Fts3, job_for
from sonar.movers.measure import Outcome, measure, remove
from sonar.movers.watch import Watch, within
from tests.movers.orders import order_between
from tests.ports import free_port
from tests.storage.conftest import LIMITS, Pair, end
from tests.storage.fts import JOB, Answer, FtsServer, Job, Trick, fts_server, moment
from tests.storage.test_transfers import Road, fails
from tests.storage.throttle import Throttle
from tests.waiting import SOON, wait_for

pytestmark = pytest.mark.usefixtures("_brief_looks", "_brief_polls")

BIG = 12_000_000
"""Three seconds on a slow road, long enough for a rate; and to be caught midway on a slower one."""
SLOWER = 5e5
OWN = "fts-knows-us-by-this"


@pytest.fixture
def _brief_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "POLL_SECONDS", 0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[FtsServer]:
    with fts_server(certificate=True) as made:
        yield made


@pytest.fixture
def fts(server: FtsServer) -> FtsServer:
    """Return a server that behaves well and knows of nothing."""
    server.forget()
    server.queue_seconds = 0.0
    return server


def order_at(fts: FtsServer, pair: Pair, **wishes: object) -> Order:
    return pair.order(**({"service": Service(fts.url)} | wishes))


def only_job(fts: FtsServer) -> Job:
    (job,) = fts.jobs.values()
    return job


def answers(status: int, text: str = "", method: str = "POST", times: int = 1000) -> Trick:
    """Return what answers so to a method, so many times."""
    numbers = count()

    def trick(asked: str, _path: str, _body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        if asked == method and next(numbers) < times:
            return status, {}, text.encode()
        return None

    return trick


class Running:
    """One measurement in a thread."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.watch, self.outcomes = Watch(), list[Outcome]()
        self._thread = threading.Thread(
            target=lambda: self.outcomes.append(measure(Fts3(), order, self.watch))
        )
        self._thread.start()

    def ended(self) -> Outcome:
        self._thread.join()
        return self.outcomes[0]


def in_queue(fts: FtsServer, pair: Pair) -> Running:
    """Begin a measurement whose job is in the queue for long."""
    fts.queue_seconds = 600
    running = Running(order_at(fts, pair))
    assert wait_for(lambda: fts.jobs, SOON, 0.02)
    return running


def along(road: Throttle, order: Order) -> Order:
    """Put the source file, and return the order by this road to it."""
    Fts3().files.put(replace(order, limits=LIMITS), Watch())
    return replace(order, source=end(Where.SOURCE, road.url, f"source/{order.bytes}"))


def deleted_later(pair: Pair, order: Order) -> None:
    """Do what `clean` does with a file that may be written again: once its server has let go."""
    name = order.destination.url.rpartition("/base")[2]
    process = pair.destination.process
    files = Path(f"/proc/{process.pid}/fd")
    assert wait_for(lambda: not any(target(file).endswith(name) for file in files.iterdir()), SOON)
    assert remove(Fts3().files, order) is None
    assert pair.left_behind() == []


def target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # closed meanwhile
        return ""


def is_(fts: FtsServer, state: str) -> bool:
    return any(job.state == state for job in list(fts.jobs.values()))


def has_file_that_is(fts: FtsServer, state: str) -> bool:
    return any(job.file_state == state for job in list(fts.jobs.values()))


def test_a_flow_label_goes_along(fts, plain):
    outcome = measure(Fts3(), order_at(fts, plain, scitag=139), Watch())
    assert outcome.error is None
    assert only_job(fts).file["scitag"] == 139
    assert outcome.seen.scitag == 139


def test_a_copy_is_asked_of_the_service_and_its_queue_is_no_part_of_the_rate(fts, plain):
    fts.queue_seconds = 1.2
    outcome = measure(Fts3(), order_at(fts, plain, streams=3, tcp_buffer_bytes=65536), Watch())
    assert outcome.error is None
    job, seen = only_job(fts), outcome.seen
    assert outcome.receipt.seconds == job.seconds
    # FTS tells whole seconds.
    assert 1 <= seen.queue_seconds < outcome.elapsed_seconds + 1
    assert outcome.elapsed_seconds > 1.2 + job.seconds
    # FTS repeats a wish for a buffer, and passes it on to nobody.
    assert (seen.streams_used, seen.tcp_buffer_used_bytes) == (3, None)
    assert "buffer_size" not in job.params
    assert seen.remote_id == job.number
    day = f"https://fts-here:8449/var/log/fts3/transfers/{moment(job.started)[:10]}/"
    assert seen.log_url.startswith(day)
    assert seen.log_url.endswith(f"__{job.number}")
    assert outcome.verified
    assert plain.left_behind() == []
    assert job.params["retry"] == -1
    assert job.params["max_time_in_queue"] == f"{LIMITS.total:g}s"
    assert "source_tokens" not in job.file
    assert "unmanaged_tokens" not in job.params


def test_a_rate_is_that_of_the_services_own_clock(fts, plain, slow_road: Road):
    order = along(slow_road(plain.source), order_at(fts, plain, bytes=BIG))
    outcome = measure(Fts3(), order, Watch())
    assert outcome.receipt
    assert (outcome.receipt.bytes, outcome.receipt.seconds) == (BIG, only_job(fts).seconds)
    assert 2 < outcome.receipt.seconds < outcome.elapsed_seconds


def test_all_jobs_are_asked_after_together(fts, plain, monkeypatch):
    monkeypatch.setattr(poll, "IDS_AT_ONCE", 8)
    monkeypatch.setattr(poll, "POLL_SECONDS", 0.5)
    fts.queue_seconds = 1.0
    with ThreadPoolExecutor(20) as threads:
        orders = [order_at(fts, plain) for _ in range(20)]
        outcomes = list(threads.map(lambda order: measure(Fts3(), order, Watch()), orders))
    assert [outcome.error for outcome in outcomes] == [None] * 20
    polls = [path for method, path, _ in fts.heard if method == "GET"]
    assert max(path.count(",") for path in polls) < 8 + len(rest.FILE_FIELDS)
    longest = max(outcome.elapsed_seconds for outcome in outcomes)
    assert len(polls) <= 3 * (longest / 0.5 + 2)  # three pieces of each round
    assert wait_for(lambda: "fts3 poll" not in [one.name for one in threading.enumerate()], SOON)


def test_a_few_jobs_are_submitted_at_a_time(fts, plain):
    """Of 300 at once, a real one refused some with 503, and did not answer others in time."""
    under_way, most = list[str](), list[int]()

    def slowly(method: str, path: str, _: bytes) -> None:
        if method == "POST":
            under_way.append(path)
            most.append(len(under_way))
            time.sleep(0.1)
            under_way.pop()

    fts.trick = slowly
    with ThreadPoolExecutor(24) as threads:
        orders = [order_at(fts, plain) for _ in range(24)]
        outcomes = list(threads.map(lambda order: measure(Fts3(), order, Watch()), orders))
    assert [outcome.error for outcome in outcomes] == [None] * 24
    assert 1 < max(most) <= poll.SUBMISSIONS_AT_ONCE


def test_a_test_whose_turn_to_submit_does_not_come_leaves_nothing_in_doubt(fts, plain):
    Fts3().files.put(order_at(fts, plain), Watch())
    order = order_at(fts, plain, limits=replace(LIMITS, total=5))
    poller = poll.POLLERS.of(order.service, order.ca_bundle)
    with ExitStack() as turns:
        for _ in range(poll.SUBMISSIONS_AT_ONCE):
            turns.enter_context(poller.submission(Watch(), math.inf))
        outcome = measure(Fts3(), order, Watch())
        stopped = Running(order_at(fts, plain, scitag=139))
        assert wait_for(lambda: stopped.watch.seen.scitag == 139, SOON, 0.02)
        stopped.watch.stop()
        assert isinstance(stopped.ended().error, Stopped)
    assert "POST jobs: not submitted in time" in str(outcome.error)
    assert (outcome.error.where, outcome.leftover) == (Where.CONTROL, None)
    assert fts.heard == []  # hundreds may wait for their turn, and FTS knows none of their jobs


def poll_jobs(fts: FtsServer, number: int) -> list[poll.Job]:
    """Poll so many jobs that wait in the queue until each is known, or given up."""
    fts.queue_seconds = 600
    numbers = [fts.submit(job_of("http://127.0.0.1:9/f")).number for _ in range(number)]
    jobs = [poll.Job(one) for one in numbers]
    poller = poll.Poller(rest.Fts(Service(fts.url)))
    for _ in range(poll.SURE):
        for group in poll.groups(jobs, fts.url):
            poller._ask_after(group)
    return jobs


def job_of(url: str, label: str = "1") -> dict[str, object]:
    files = [{"sources": [url], "destinations": [url], "filesize": 1}]
    return {"files": files, "params": {"retry": -1, "job_metadata": {"sonar": label}}}


@pytest.mark.parametrize("prefix", ["", "/" + "path" * 100, "/" + "path" * 900])
def test_many_jobs_are_polled_in_requests_that_the_web_server_takes(prefix: str):
    """From 110 ids on, Apache with mod_wsgi answered 404, and every test of a worker failed."""
    with fts_server(certificate=True, prefix=prefix) as fts:
        jobs = poll_jobs(fts, 240)
        assert {job.progress.state for job in jobs} == {"SUBMITTED"}
        assert not any(job.over.is_set() for job in jobs)
        paths = [path for method, path, _ in fts.heard if method == "GET"]
        assert max(len(path.partition("?")[0]) for path in paths) <= 3900
        assert len(paths) == poll.SURE * len(poll.groups(jobs, fts.url))


TOO_LONG = [
    (404, "<p>The requested URL was not found on this server.</p>"),
    (414, "<p>The requested URL's length exceeds the capacity limit.<br />"),
    (431, ""),
    (200, "<html>Welcome</html>"),
    (200, "x" * (9 * 2**20)),
]


def refuses_many(status: int, text: str) -> Trick:
    """Return what answers so to a request for more than 20 jobs."""

    def refuse(_: str, path: str, __: bytes) -> Answer | None:
        too_many = path.partition("?")[0].count(",") >= 20
        return (status, {"Content-Type": "text/html"}, text.encode()) if too_many else None

    return refuse


@pytest.mark.parametrize(("status", "text"), TOO_LONG)
def test_a_refusal_of_several_jobs_is_no_verdict_on_any(fts, status: int, text: str):
    fts.trick = refuses_many(status, text)
    jobs = poll_jobs(fts, 90)
    assert {job.progress.state for job in jobs} == {"SUBMITTED"}
    assert not any(job.over.is_set() for job in jobs)


def test_a_page_that_is_not_found_says_of_no_job_that_it_is_unknown(fts):
    fts.trick = answers(404, "<p>The requested URL was not found on this server.</p>", "GET")
    (job,) = poll_jobs(fts, 1)
    assert not job.over.is_set()
    assert "404 Not Found: The requested URL" in str(job.trouble)


@pytest.mark.parametrize("ids", [109, 110, 220])
def test_the_server_of_these_tests_has_the_limits_of_a_web_server(fts, ids: int):
    numbers = ["8d578836-e4b6-11f1-aaf6-02fc00000001"] * ids
    if ids < 110:
        assert rest.Fts(Service(fts.url)).jobs(numbers) == {numbers[0]: None}
        return
    with pytest.raises(rest.Refusal, match="URL") as caught:
        rest.Fts(Service(fts.url)).jobs(numbers)
    assert (caught.value.status, caught.value.is_json) == (404 if ids < 220 else 414, False)


# What the service, or a storage server by its mouth, refuses.


@pytest.mark.parametrize(
    ("status", "words", "permanent"),
    [
        (400, "Invalid value within the request: Missing scheme (x)", True),
        (401, "Invalid token", True),
        (403, "Not enough permissions", True),
        (419, "X.509", True),
        (404, "no such page", True),
        (424, "has failed", False),
        (429, "slow down", False),
        (503, "try later", False),
    ],
)
def test_who_is_refused_by_the_service_blames_no_link(fts, plain, status, words, permanent):
    fts.trick = answers(status, json.dumps({"status": str(status), "message": words}))
    outcome = measure(Fts3(), order_at(fts, plain), Watch())
    error = outcome.error
    assert (error.where, error.permanent) == (Where.CONTROL, permanent)
    assert words in str(error)
    assert str(status) in str(error)
    assert error.credential_trouble == (str(error) if status == 401 else "")
    assert fts.jobs == {}
    assert fts.counted("POST") == 1


def test_a_service_that_is_not_there_is_nobodys_link(plain):
    order = plain.order(service=Service(f"http://127.0.0.1:{free_port()}"))
    fails(measure(Fts3(), order, Watch()), Where.CONTROL, "connection refused", permanent=False)


def test_who_is_nobody_may_do_nothing(plain):
    with fts_server() as strict:
        error = measure(Fts3(), order_at(strict, plain), Watch()).error
    assert error.where == Where.CONTROL
    assert "403 Forbidden: Not enough permissions" in str(error)


def test_the_administrators_address_of_a_server_without_its_database_is_in_no_error(fts, plain):
    fts.away = True
    limits = replace(LIMITS, total=5)
    outcome = measure(Fts3(), order_at(fts, plain, limits=limits), Watch())
    assert "500 Internal Server Error: The server encountered" in str(outcome.error)
    assert "root@" not in str(outcome.error)
    assert "administrator" not in str(outcome.error)


def test_a_database_that_is_away_for_a_while_is_waited_for(fts, plain):
    running = in_queue(fts, plain)
    fts.away = True
    asked = fts.counted("GET")
    assert wait_for(lambda: fts.counted("GET") > asked + 3, SOON, 0.02)
    fts.away = False
    only_job(fts).woken.set()
    assert running.ended().error is None


def test_a_source_that_is_missing_is_the_sources_fault(fts, plain):
    order = order_at(fts, plain)
    missing = replace(order, source=end(Where.SOURCE, plain.source.url, "source/missing"))
    move_fails(missing, Where.SOURCE, "404")


def test_a_source_that_does_not_listen_is_the_sources_fault(fts, plain):
    source = end(Where.SOURCE, f"http://127.0.0.1:{free_port()}", "source/1")
    move_fails(order_at(fts, plain, source=source), Where.SOURCE, "not connect", permanent=False)


def test_a_file_that_is_there_is_not_written_over(fts, plain):
    order = order_at(fts, plain)
    assert measure(Fts3(), order, Watch()).error is None
    there = replace(order, destination=replace(order.source, where=Where.DESTINATION))
    move_fails(there, Where.DESTINATION, "exists")


def test_a_missing_base_is_not_made(fts, plain):
    nowhere = End(Where.DESTINATION, f"{plain.destination.url}/no/f", f"{plain.destination.url}/no")
    move_fails(order_at(fts, plain, destination=nowhere), Where.DESTINATION, "base directory")
    assert fts.jobs == {}


def test_a_server_that_dies_midway_fails_the_transfer(fts, mortal, slow_road: Road):
    road = slow_road(mortal.source, SLOWER)
    running = Running(along(road, order_at(fts, mortal, bytes=BIG)))
    assert wait_for(lambda: road.moved.total() > BIG / 12, SOON, 0.02)
    road.close()
    outcome = running.ended()
    assert outcome.error.where == Where.TRANSFER
    assert mortal.left_behind() == []


def move_fails(order: Order, where: str, words: str, *, permanent: bool = True) -> None:
    with pytest.raises(MoverError, match=words) as caught:
        Fts3().move(order, Watch())
    assert (caught.value.where, caught.value.permanent) == (where, permanent)


# What goes wrong once a job was asked for.


@pytest.mark.parametrize(
    ("status", "text"),
    [(503, "try later"), (200, "not JSON"), (200, "[]"), (200, "x" * (9 * 2**20)), (500, "")],
)
def test_polls_that_fail_for_a_while_are_made_again(fts, plain, status, text):
    fts.trick = answers(status, text, "GET", times=3)
    assert measure(Fts3(), order_at(fts, plain), Watch()).error is None
    assert fts.counted("GET") > 3


def test_a_service_that_stays_away_is_waited_for_until_the_limit(plain):
    with fts_server(queue_seconds=600, certificate=True) as fts:
        running = Running(order_at(fts, plain, limits=replace(LIMITS, total=5)))
        assert wait_for(lambda: fts.jobs, SOON, 0.02)
    outcome = running.ended()
    fails_in_doubt(outcome, Where.CONTROL, "connection refused")


def fails_in_doubt(outcome: Outcome, where: Where, words: str) -> None:
    """Hold that it failed, and that its file is looked for again later."""
    assert words in str(outcome.error)
    assert outcome.error.where == where
    assert "deleted, but the transfer may still write the file" in str(outcome.leftover)


def test_who_may_not_ask_any_more_gives_up_soon(fts, plain):
    fts.queue_seconds = 600
    fts.trick = answers(403, '{"message": "expired"}', "GET")
    outcome = measure(Fts3(), order_at(fts, plain), Watch())
    fails_in_doubt(outcome, Where.CONTROL, "403 Forbidden: expired")
    assert outcome.elapsed_seconds < LIMITS.total / 2
    assert only_job(fts).state == "CANCELED"


def test_a_job_that_the_service_has_lost_is_not_waited_for(fts, plain):
    running = in_queue(fts, plain)
    lost = only_job(fts)
    fts.jobs.clear()
    outcome = running.ended()
    fts.cancel(lost)  # it would begin in a test to come
    fails_in_doubt(outcome, Where.CONTROL, "no longer knows the job")
    assert outcome.elapsed_seconds < LIMITS.total / 2


def test_one_lost_job_of_several_leaves_the_others_alone(fts, plain):
    fts.queue_seconds = 600
    mover = Fts3()
    with ThreadPoolExecutor(3) as threads:
        orders = [order_at(fts, plain) for _ in range(3)]
        several = [threads.submit(measure, mover, order, Watch()) for order in orders]
        assert wait_for(lambda: len(fts.jobs) == 3, SOON, 0.02)
        lost = next(iter(fts.jobs))
        fts.cancel(fts.jobs.pop(lost))
        for job in fts.jobs.values():
            job.woken.set()
        errors = [str(one.result().error) for one in several]
    assert sorted(errors) == [f"FTS no longer knows the job {lost}", "None", "None"]


def test_a_job_that_somebody_cancels_fails_and_blames_nobody(fts, plain):
    running = in_queue(fts, plain)
    fts.cancel(only_job(fts))
    fails(running.ended(), Where.CONTROL, "cancelled: job canceled by the user", permanent=False)


@pytest.mark.parametrize("state", ["TOKEN_PREP", "ON_HOLD"])
def test_a_cancelled_job_is_not_over_before_its_file_is(secure, guarded, state):
    """FTS cancels no file in these states: it was copied later, and lay there for ever."""
    secure.unmanaged, secure.token_seconds = state != "TOKEN_PREP", 600
    if state == "ON_HOLD":
        secure.released.clear()
    order = lending(secure, guarded)
    running = Running(order)
    assert wait_for(lambda: has_file_that_is(secure, state), SOON, 0.02)
    running.watch.stop()
    outcome = running.ended()
    job = only_job(secure)
    assert (job.state, job.file_state) == ("CANCELED", state)
    assert outcome.leftover
    assert outcome.seen.remote_id == job.number

    # It is not found by the name of its file any more, but by its id, as often as it is asked.
    assert Fts3().withdraw(order) == ""
    assert [Fts3().withdraw(order, job.number) for _ in range(2)] == [job.number] * 2
    secure.released.set()
    job.woken.set()
    assert wait_for(lambda: job.file_state == "FINISHED", SOON, 0.02)
    assert job.state == "CANCELED"
    assert Fts3().withdraw(order, job.number) == ""
    deleted_later(guarded, order)


def test_a_copy_that_is_cancelled_is_over_once_url_copy_is(fts, plain, slow_road: Road):
    order = along(slow_road(plain.source, SLOWER), order_at(fts, plain, bytes=BIG))
    job = fts.submit(job_for(order, has_token=False))
    assert wait_for(lambda: job.file_state == "ACTIVE", SOON, 0.02)
    fts.cancel_seconds = 600
    assert Fts3().withdraw(order) == job.number
    assert (job.state, job.file_state, job.file_finished) == ("CANCELED", "CANCELED", None)
    fts._end_copy(job)
    fts.cancel_seconds = 0.2
    assert Fts3().withdraw(order, job.number) == ""
    deleted_later(plain, order)


def test_a_job_that_somebody_cancels_before_it_is_ready_may_write_its_file_later(secure, guarded):
    secure.unmanaged, secure.token_seconds = False, 600
    running = Running(lending(secure, guarded))
    assert wait_for(lambda: has_file_that_is(secure, "TOKEN_PREP"), SOON)
    secure.cancel(only_job(secure))
    fails_in_doubt(running.ended(), Where.CONTROL, "cancelled")


def test_a_job_of_an_unknown_id_is_over(fts, plain):
    assert Fts3().withdraw(order_at(fts, plain), "8d578836-e4b6-11f1-aaf6-02fc00000001") == ""


def test_what_is_known_of_a_job_is_kept_when_it_takes_too_long_or_is_stopped(
    fts, plain, slow_road: Road
):
    road = slow_road(plain.source, SLOWER)
    for stop in (False, True):
        fts.forget()
        limits = LIMITS if stop else replace(LIMITS, total=8)
        running = Running(along(road, order_at(fts, plain, bytes=BIG, limits=limits)))
        if stop:
            assert wait_for(lambda: is_(fts, "ACTIVE"), SOON, 0.02)
            asked = fts.counted("GET")
            assert wait_for(lambda seen=asked: fts.counted("GET") > seen + 1, SOON, 0.02)
            running.watch.stop()
        outcome = running.ended()
        assert outcome.receipt is None
        log = f"https://fts-here:8449/var/log/fts3/transfers/{only_job(fts).number}"
        assert (outcome.seen.queue_seconds is None, outcome.seen.log_url) == (False, log)
        deleted_later(plain, running.order)


def test_a_job_that_does_not_begin_in_time_is_cancelled_and_blames_no_link(fts, plain):
    fts.queue_seconds = 600
    order = order_at(fts, plain, limits=replace(LIMITS, total=5))
    fails_in_doubt(
        measure(Fts3(), order, Watch()), Where.CONTROL, "the state of the job is SUBMITTED"
    )
    assert only_job(fts).state == "CANCELED"


def test_a_copy_that_takes_too_long_is_cancelled(fts, plain, slow_road: Road):
    limits = replace(LIMITS, total=8)
    order = along(slow_road(plain.source, SLOWER), order_at(fts, plain, bytes=BIG, limits=limits))
    fails_in_doubt(measure(Fts3(), order, Watch()), Where.TRANSFER, "not finished within 8 s")
    assert only_job(fts).state == "CANCELED"
    deleted_later(plain, order)


@pytest.mark.parametrize("state", ["SUBMITTED", "ACTIVE"])
def test_a_stop_cancels_the_job(fts, plain, slow_road: Road, state):
    fts.queue_seconds = 600 if state == "SUBMITTED" else 0
    order = along(slow_road(plain.source, SLOWER), order_at(fts, plain, bytes=BIG))
    running = Running(order)
    assert wait_for(lambda: is_(fts, state), SOON, 0.02)
    if state == "ACTIVE":  # what is only asked for may be opened after all is deleted
        assert wait_for(plain.left_behind, SOON, 0.02)
    running.watch.stop()
    outcome = running.ended()
    assert isinstance(outcome.error, Stopped)
    assert outcome.leftover
    assert only_job(fts).state == "CANCELED"
    deleted_later(plain, order)


class NoFiles:
    """Storage that need not be asked before a job is submitted."""

    def make_directories(self, end: End, order: Order) -> None: ...


def test_a_stop_cancels_hundreds_of_jobs_in_a_few_requests(fts, monkeypatch):
    """With a request for each, 369 of 381 jobs at a real one stayed in its queue."""
    monkeypatch.setattr(poll, "CANCEL_SECONDS", SOON)
    fts.queue_seconds = 600
    mover, watches = Fts3(), [Watch() for _ in range(250)]
    mover.files = NoFiles()  # type: ignore[assignment]
    order = order_between("http://127.0.0.1:9", "http://127.0.0.1:9")
    order = replace(order, service=Service(fts.url))
    poller, cancelled = poll.POLLERS.of(order.service, ""), list[str]()
    all_given_up = threading.Event()

    def count(method: str, path: str, _: bytes) -> None:
        if method == "DELETE":
            cancelled.extend(path.removeprefix("/jobs/").split(","))
            all_given_up.wait(SOON)

    fts.trick = count
    with ThreadPoolExecutor(len(watches)) as threads:
        runs = [threads.submit(mover.move, order, watch) for watch in watches]
        assert wait_for(lambda: len(poller._jobs) == len(watches), SOON, 0.02)
        for watch in watches:
            watch.stop()
        # Threads may be slow to notice the stop; a request to a real one takes longer than that.
        assert wait_for(lambda: len(cancelled) + len(poller._given_up) == len(watches), SOON, 0.02)
        all_given_up.set()
        ends = {type(run.exception()) for run in runs}
    assert ends == {Stopped}
    assert {job.state for job in fts.jobs.values()} == {"CANCELED"}
    assert sorted(cancelled) == sorted(fts.jobs)
    assert fts.counted("DELETE") <= poll.CANCELS_AT_ONCE + 3


def given_up(fts: FtsServer, number: int) -> poll.Poller:
    """Give up so many jobs that wait in the queue, one after the other, and wait for no answer."""
    fts.queue_seconds = 600
    poller, seconds = poll.Poller(rest.Fts(Service(fts.url))), 0.0
    for _ in range(number):
        job = fts.submit(job_of("http://127.0.0.1:9/f"))
        with within(Watch(), seconds) as step:
            poller.cancel(job.number, step)
    return poller


@pytest.mark.parametrize(("status", "text"), TOO_LONG)
def test_a_refusal_to_cancel_several_jobs_is_no_verdict_on_any(fts, status: int, text: str):
    begun = threading.Event()

    def refuse(method: str, path: str, body: bytes) -> Answer | None:
        begun.wait(SOON)
        return refuses_many(status, text)(method, path, body)

    fts.trick = refuse
    given_up(fts, 90)
    begun.set()
    assert wait_for(lambda: {job.state for job in fts.jobs.values()} == {"CANCELED"}, SOON)


def test_what_was_given_up_is_cancelled_before_the_process_ends(fts, plain):
    answer = threading.Event()
    fts.trick = lambda *_: answer.wait(SOON) and None
    poller = given_up(fts, 20)
    assert [thread.is_alive() and not thread.daemon for thread in poller._cancellers] == [True] * 4
    stopped = Watch()
    stopped.stop()
    with pytest.raises(Stopped), within(stopped, SOON) as step:
        poller.cancel(next(iter(fts.jobs)), step)
    answer.set()
    assert wait_for(lambda: not poller._cancellers, SOON)
    assert {job.state for job in fts.jobs.values()} == {"CANCELED"}
    assert fts.counted("DELETE") == poll.CANCELS_AT_ONCE + 1


def test_a_job_whose_submission_got_no_answer_is_found_and_cancelled(fts, plain):
    fts.queue_seconds = 600

    def lose_answer(
        method: str, _path: str, body: bytes
    ) -> tuple[int, dict[str, str], bytes] | None:
        if method != "POST":
            return None
        fts.submit(json.loads(body))
        return 502, {}, b"Bad Gateway"

    fts.trick = lose_answer
    fails_in_doubt(measure(Fts3(), order_at(fts, plain), Watch()), Where.CONTROL, "Bad Gateway")
    assert only_job(fts).state == "CANCELED"


def test_a_lost_job_is_looked_for_among_our_own(secure, guarded):
    """The list has everybody's jobs without `dlg_id`: 13 MB at a large site, and none was found."""
    secure.queue_seconds = 600
    order = lending(secure, guarded)
    job = secure.submit(job_for(order, has_token=True))
    metadata = {"issuer": "rucio", "scope": "x" * 250}
    facts = {"job_metadata": metadata, "source_se": "https://a.example"}
    row = job.row() | facts
    secure.foreign = [row | {"job_id": f"{number:036}"} for number in range(40_000)]
    with pytest.raises(MoverError, match="longer than"):
        rest.Fts(order.service, order.ca_bundle)._ask("GET", "jobs?fields=job_id,job_metadata")
    assert Fts3().withdraw(order) == ""
    assert job.state == "CANCELED"
    asked = next(path for method, path, _ in secure.heard if "dlg_id" in path)
    assert f"dlg_id={JOB['cred_id']}" in asked
    assert "source_se=https%3A%2F%2Flocalhost" in asked


def test_what_was_asked_for_one_file_is_withdrawn_and_nothing_else(fts, plain):
    fts.queue_seconds = 600
    orders = [order_at(fts, plain) for _ in range(2)]
    running = [Running(order) for order in orders]
    assert wait_for(lambda: len(fts.jobs) == 2, SOON, 0.02)
    destination = orders[0].destination
    Fts3().withdraw(replace(orders[0], source=destination))
    states = {job.destination: job.state for job in fts.jobs.values()}
    assert states == {destination.url: "CANCELED", orders[1].destination.url: "SUBMITTED"}
    for one in running:
        one.watch.stop()
        one.ended()


# Who is given which token.


@pytest.fixture
def secure(tls_server: FtsServer) -> FtsServer:
    """Return a server that speaks TLS, knows us by a token and behaves well."""
    tls_server.forget()
    tls_server.queue_seconds = 0.0
    return tls_server


@pytest.fixture(scope="module")
def tls_server(guarded: Pair) -> Iterator[FtsServer]:
    authority = guarded.source.authority
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.ca.issue_cert("localhost").configure_cert(context)
    with fts_server(tls=context, token=OWN, bundle=str(authority.bundle)) as made:
        yield made


def lending(fts: FtsServer, pair: Pair, **lent: str) -> Order:
    """Return an order whose ends lend what is not their own."""
    order = pair.order(service=Service(fts.url, "fts", lambda: OWN))
    given = {
        "source": pair.source.macaroon("DOWNLOAD,LIST"),
        "destination": pair.destination.macaroon("UPLOAD,DOWNLOAD,LIST,MANAGE"),
    } | lent
    return replace(
        order,
        source=replace(order.source, lent=given["source"]),
        destination=replace(order.destination, lent=given["destination"]),
    )


def test_the_service_is_given_what_the_ends_lend_and_nothing_else(secure, guarded):
    order = lending(secure, guarded)
    assert measure(Fts3(), order, Watch()).error is None
    job = only_job(secure)
    assert job.file["source_tokens"] == [order.source.lent]
    assert job.file["destination_tokens"] == [order.destination.lent]
    assert job.params["unmanaged_tokens"] is True
    said = "\n".join(words for _, _, words in secure.heard)
    for end_ in (order.source, order.destination):
        assert end_.token not in said
        assert said.count(end_.lent) == 1
    assert said.count(OWN) == len(secure.heard) > 1
    assert OWN not in repr(order)


def test_a_server_that_manages_all_tokens_is_asked_once_more(secure, guarded):
    secure.unmanaged = False
    assert measure(Fts3(), lending(secure, guarded), Watch()).error is None
    assert secure.counted("POST") == 2
    assert "unmanaged_tokens" not in only_job(secure).params


def test_an_end_that_refuses_what_it_lends_is_to_blame(secure, guarded):
    for name, where in (("source", Where.SOURCE), ("destination", Where.DESTINATION)):
        secure.forget()
        order = lending(secure, guarded, **{name: "a-token-of-nobody"})
        outcome = measure(Fts3(), order, Watch())
        fails(outcome, where, "http 403 : permission refused", permanent=True)


def test_each_end_is_looked_at_with_the_token_that_it_lends(secure, guarded, monkeypatch):
    asked = list[tuple[str, str, str]]()
    connect = FtsServer._connect

    def noting(server: FtsServer, url: str) -> object:
        connection = connect(server, url)
        request = connection.request

        def noted(method: str, path: str, headers: dict[str, str]) -> None:
            asked.append((method, path, headers["Authorization"].removeprefix("Bearer ")))
            request(method, path, headers=headers)

        connection.request = noted
        return connection

    monkeypatch.setattr(FtsServer, "_connect", noting)
    order = lending(secure, guarded)
    assert measure(Fts3(), order, Watch()).error is None
    source, there = order.source, order.destination
    path = there.url.removeprefix(guarded.destination.url)
    assert asked == [
        ("PROPFIND", source.url.removeprefix(guarded.source.url), source.lent),
        *(
            (method, name, there.lent)
            for method, name in (
                ("PROPFIND", path),
                ("HEAD", path),
                ("PROPFIND", path.rpartition("/")[0]),
                ("COPY", path),
                ("PROPFIND", path),
            )
        ),
    ]


@pytest.mark.parametrize("missing", ["source", "destination"])
def test_what_the_service_would_send_to_the_wrong_end_it_is_not_asked(secure, guarded, missing):
    order = lending(secure, guarded, **{missing: ""})
    move_fails(order, Where.CONTROL, missing)
    assert secure.heard == []


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_no_redirect_of_a_service_is_followed(secure, guarded, method):
    with fts_server(certificate=True) as stranger:
        secure.trick = lambda asked, path, _body: (
            (307, {"Location": f"{stranger.url}{path}"}, b"") if asked == method else None
        )
        secure.queue_seconds = 600 if method == "DELETE" else 0
        limits = replace(LIMITS, total=5) if method == "DELETE" else LIMITS
        outcome = measure(Fts3(), replace(lending(secure, guarded), limits=limits), Watch())
        for job in list(secure.jobs.values()):
            secure.cancel(job)  # it would begin in a test to come
        assert outcome.error.where == Where.CONTROL
        assert stranger.heard == []
        if method != "DELETE":
            assert "a redirect, which Sonar does not follow" in str(outcome.error)
            assert stranger.url not in str(outcome.error)


def test_what_a_service_repeats_of_its_tokens_is_in_no_error(secure, guarded):
    order = lending(secure, guarded, source="a-lends-this", destination="b-lends-that")
    text = f"no: {OWN} {order.source.lent} {order.destination.lent}"
    secure.trick = lambda *_: (403, {}, json.dumps({"message": text}).encode())
    error = measure(Fts3(), order, Watch()).error
    assert error
    assert "whoami" in error.credential_trouble
    words = f"{error} {error.credential_trouble}"
    for secret in (OWN, order.source.lent, order.destination.lent):
        assert secret not in words
