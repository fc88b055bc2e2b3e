"""All jobs of this process at one FTS3 server are polled together, every few seconds, and cancelled
together.

Its answer for each job: how far it is, how long it took, whose fault it was.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sonar.movers.base import MoverError, Order, Service, Where
from sonar.movers.failures import Phase, judge
from sonar.movers.fts3.rest import Fts, JobAnswer, NotAsked, Refusal, UnreadableError
from sonar.movers.messages import one_line
from sonar.movers.watch import Seen, Span, UnexpectedError, Watch, as_failures, within
from sonar.notation import scitags
from sonar.notation.units import LONGEST_SECONDS

DONE = "FINISHED"
CANCELLED = "CANCELED"
FINAL = {DONE, "FAILED", CANCELLED}
FINAL_FOR_JOBS = {"FAILED", CANCELLED, "FINISHEDDIRTY"}
BEGUN = {"ACTIVE", "READY"}
"""Whoever is not there, or in a state that we do not know, has not begun."""
OF_TRANSFER = re.compile(r"\s*(?:SOURCE|DESTINATION|TRANSFER)\b(?:[^\[]{0,60}\[([0-9]{1,4})\])?")
"""How FTS begins the reason of a transfer that it has tried; all else is about FTS itself."""
STREAMS = re.compile(r"\bnostreams:([0-9]{1,10})\b")
LOG_PORT = 8449
"""Of its web server, where its logs are."""
HOST = re.compile(r"[A-Za-z0-9.-]{1,200}")
LOG_FILE = re.compile(r"/[A-Za-z0-9._~/@%+,;=:-]{1,270}")


@dataclass(frozen=True)
class Progress:
    """How far a job with one file is."""

    state: str
    """As FTS calls it: there may be unknown states."""
    reason: str = ""
    queue_seconds: float | None = None
    seconds: float | None = None
    """To move the bytes, by its own clock."""
    streams: int | None = None
    log_url: str = ""
    scitag: int | None = None
    may_write: bool = True
    """Whether its file may still be written, also if the job is cancelled: FTS copies files later
    that were in the states TOKEN_PREP or ON_HOLD then, and ends running copies some seconds later.
    """

    def note(self, seen: Seen) -> None:
        """Set the columns of a result that FTS reports."""
        seen.queue_seconds = self.queue_seconds
        seen.streams_used = self.streams
        seen.log_url = self.log_url
        seen.scitag = self.scitag or seen.scitag

    @property
    def is_final(self) -> bool:
        return self.state in FINAL or self.state in FINAL_FOR_JOBS


def progress_of(job: Mapping[str, object]) -> Progress:
    """Read a job as it answers a poll with ``files``.

    Every field may be missing, null or of another type: what cannot be read is not known.
    """
    file = _only_file(job.get("files"))
    state, of_job = _text(file, "file_state"), _text(job, "job_state")
    may_write = state not in FINAL or _moment(file, "finish_time") is None
    if state not in FINAL and of_job in FINAL_FOR_JOBS:
        state = of_job
    streams = STREAMS.search(_text(file, "internal_file_params"))
    return Progress(
        state=state or of_job,
        reason=_text(file, "reason") or _text(job, "reason"),
        queue_seconds=_between(_moment(job, "submit_time"), _moment(file, "start_time")),
        seconds=_seconds(file.get("tx_duration")),
        streams=_whole(streams and streams[1], 32_767),
        log_url=_log_url(_text(file, "transfer_host"), _text(file, "log_file")),
        scitag=_whole(file.get("scitag"), scitags.MOST),
        may_write=may_write,
    )


def failure_of(progress: Progress, *secrets: str) -> MoverError:
    """Return whose fault it was that a job did not succeed, and whether it will last."""
    words = one_line(progress.reason, *secrets) or "no reason is given"
    tried = OF_TRANSFER.match(progress.reason)
    said = judge(progress.reason, errno=int(tried[1] or 0) if tried else 0)
    if progress.state == CANCELLED:  # by somebody, or by FTS for having waited too long
        words = f"the job was cancelled: {words}"
        said = replace(said, where=Where.CONTROL, phase=Phase.SERVICE, lasts=False)
    elif not tried:
        said = replace(said, where=Where.CONTROL, phase=Phase.SERVICE)
    return said.error(one_line(f"FTS: {words}"))


def _only_file(files: object) -> Mapping[str, object]:
    only = files[0] if isinstance(files, list) and len(files) == 1 else None
    return only if isinstance(only, dict) else {}


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _moment(fields: Mapping[str, object], name: str) -> datetime | None:
    """Read a time; without a zone, as FTS writes it, it is of UTC."""
    try:
        moment = datetime.fromisoformat(_text(fields, name))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _between(before: datetime | None, after: datetime | None) -> float | None:
    """Return the seconds between; two clocks of whole seconds may be one apart."""
    if before is None or after is None:
        return None
    seconds = max((after - before).total_seconds(), 0.0)
    return seconds if seconds <= LONGEST_SECONDS else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= LONGEST_SECONDS else None


def _whole(value: object, most: int) -> int | None:
    """Read a whole number above zero, of JSON or of a text of some digits."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= most else None


def _log_url(host: str, log: str) -> str:
    if not (HOST.fullmatch(host) and LOG_FILE.fullmatch(log)):
        return ""
    return f"https://{host}:{LOG_PORT}{log}"


POLL_SECONDS = 3.0
CANCEL_SECONDS = 15.0
"""For one request that cancels: FTS was seen to take up to 8 s for 100 jobs."""
CANCELS_AT_ONCE = 4
"""Requests: FTS goes on with one that it has got, also if a worker ends before the answer."""
IDS_AT_ONCE = 100
"""In one request."""
LONGEST_PATH = 3900
"""Bytes of a request's path: mod_wsgi maps it below its script, and Linux takes paths of 4,096."""
OF_LENGTH = {404, 413, 414, 431}
"""How web servers refuse a request for several jobs that is too long for them."""
SUBMISSIONS_AT_ONCE = 8
TURN_SLICE_SECONDS = 0.2
SURE = 2
"""So many polls in a row must say that a job is unknown, or that we may not ask."""


class Job:
    """One job, until somebody knows how it ended."""

    def __init__(self, number: str) -> None:
        self.number = number
        self.progress = Progress("")
        self.error: MoverError | None = None
        self.trouble: MoverError | None = None
        """Why it could not be asked after, the last time."""
        self.over = threading.Event()
        self._strikes = 0

    def learn(self, job: dict[str, object] | None) -> None:
        """Take what the service says of it; None if it knows no such job."""
        self.trouble = None
        if job is None:
            message = f"FTS no longer knows the job {self.number}"
            self._strike(MoverError(Where.CONTROL, message))
            return
        self._strikes = 0
        self.progress = progress_of(job)
        if self.progress.is_final:
            self.over.set()

    def miss(self, error: MoverError) -> None:
        """Note that it could not be asked after; that passes, unless we are refused for good."""
        self.trouble = error
        if isinstance(error, UnexpectedError):
            self.fail(error)
        elif isinstance(error, Refusal) and error.permanent:
            self._strike(error)

    def _strike(self, error: MoverError) -> None:
        self._strikes += 1
        if self._strikes >= SURE:
            self.fail(error)

    def fail(self, error: MoverError) -> None:
        self.error = error
        self.over.set()


class Poller:
    """Asks one service after the jobs of this process: one thread, while there are any.

    Others cancel those that were given up.
    """

    def __init__(self, fts: Fts) -> None:
        self.fts = fts
        self._jobs: dict[str, Job] = {}
        self._given_up: list[Job] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._cancellers: set[threading.Thread] = set()
        self._submissions = threading.Semaphore(SUBMISSIONS_AT_ONCE)

    @contextmanager
    def submission(self, watch: Watch, until: float) -> Iterator[None]:
        """Wait for this thread's turn to submit a job; raise NotAsked if it does not come by then.

        Of 300 jobs at once, FTS answered some with 503, and some not within 30 s.
        """
        while not self._submissions.acquire(timeout=TURN_SLICE_SECONDS):
            watch.check()
            if time.monotonic() >= until:
                message = (
                    "FTS, POST jobs: not submitted in time, as other tests were being submitted"
                )
                raise NotAsked(Where.CONTROL, message)
        try:
            yield
        finally:
            self._submissions.release()

    def wait(self, number: str, order: Order, watch: Watch, until: float) -> Progress:
        """Return how a job ended; raise MoverError if that is not known by then, or Stopped.

        ``watch`` gets the last that FTS said of it, in any case.
        """
        job = Job(number)
        self._add(job)
        try:
            with watch.on_stop(job.over.set):
                in_time = job.over.wait(max(until - time.monotonic(), 0.0))
            watch.check()
        finally:
            self._forget(job)
            job.progress.note(watch.seen)
        if job.error:
            raise job.error
        if not in_time:
            raise overdue(job, order)
        return job.progress

    def cancel(self, number: str, step: Span) -> None:
        """Cancel a job, in one request with those that other threads give up meanwhile.

        Returns at the end of the step even if FTS has not answered. Raises Stopped.
        """
        job = Job(number)
        with self._lock:
            self._given_up.append(job)
            if len(self._cancellers) < CANCELS_AT_ONCE:
                # This process does not end before it, unless it is made to.
                thread = threading.Thread(target=self._cancel_all, name="fts3 cancel", daemon=False)
                self._cancellers.add(thread)
                thread.start()
        with step.watch.on_stop(job.over.set):
            job.over.wait(step.left)
        step.watch.check()

    def _cancel_all(self) -> None:
        while True:
            with self._lock:
                if not self._given_up:
                    self._cancellers.remove(threading.current_thread())
                    return
                jobs = groups(self._given_up, self.fts.service.url)[0]
                del self._given_up[: len(jobs)]
            with within(Watch(), CANCEL_SECONDS):
                self._cancel(jobs)
            for job in jobs:
                job.over.set()

    def _cancel(self, jobs: Sequence[Job]) -> None:
        """Cancel these jobs in one request, or in halves if that says nothing of any of them.

        What else fails is tried again when the files of these jobs are deleted once more.
        """
        try:
            with as_failures("cancelling FTS jobs"):
                self.fts.cancel([job.number for job in jobs])
        except MoverError as error:
            for half in halves(jobs, error):
                self._cancel(half)

    def _add(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.number] = job
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="fts3 poll", daemon=True)
                self._thread.start()

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.number, None)

    def _run(self) -> None:
        while True:
            time.sleep(POLL_SECONDS)
            with self._lock:
                jobs = [job for job in self._jobs.values() if not job.over.is_set()]
                if not self._jobs:
                    self._thread = None
                    return
            for group in groups(jobs, self.fts.service.url):
                self._ask_after(group)

    def _ask_after(self, jobs: Sequence[Job]) -> None:
        """Poll these jobs in one request, or in halves if that says nothing of any of them."""
        try:
            with as_failures("polling FTS jobs"):
                answers = self.fts.jobs([job.number for job in jobs])
        except MoverError as error:
            divided = halves(jobs, error)
            for half in divided:
                self._ask_after(half)
            if divided:
                return
            if error.status in OF_LENGTH:
                error.permanent = False  # jobs that FTS does not know are answered otherwise
            for job in jobs:
                job.miss(error)
            return
        for job in jobs:
            if job.number in answers:
                self._tell(job, answers[job.number])
            else:
                job.miss(
                    MoverError(
                        Where.CONTROL, "FTS, GET jobs: some jobs are missing from the answer"
                    )
                )

    def _tell(self, job: Job, answer: JobAnswer) -> None:
        if isinstance(answer, Refusal):
            job.miss(answer)
            return
        try:
            with as_failures(f"reading the response from FTS for job {job.number}"):
                job.learn(answer)
        except MoverError as error:
            job.miss(error)


def groups(jobs: Sequence[Job], url: str) -> list[list[Job]]:
    """Divide jobs by number and by length: what one request to a service may ask for."""
    room = LONGEST_PATH - len(f"{urlsplit(url).path.rstrip('/')}/jobs/".encode())
    divided: list[list[Job]] = []
    left = 0
    for job in jobs:
        left -= len(job.number) + 1
        if left < 0 or len(divided[-1]) == IDS_AT_ONCE:
            divided.append([])
            left = room - len(job.number)
        divided[-1].append(job)
    return divided


def halves(jobs: Sequence[Job], error: MoverError) -> list[Sequence[Job]]:
    """Return the jobs of two smaller requests if one for all of them may have been too long.

    Such an error says nothing of any job. The list is empty for every other error.
    """
    if len(jobs) < 2 or not (isinstance(error, UnreadableError) or error.status in OF_LENGTH):
        return []
    middle = len(jobs) // 2
    return [jobs[:middle], jobs[middle:]]


def overdue(job: Job, order: Order) -> MoverError:
    """Say what it means that a job has not ended: nobody's fault before it has begun."""
    within = f"within {order.limits.total:g} s"
    if job.trouble:
        failure = MoverError(
            Where.CONTROL, f"the state of the job was unknown {within}: {job.trouble}"
        )
        failure.credential_trouble = job.trouble.credential_trouble
        return failure
    state = job.progress.state
    if state in BEGUN:
        return MoverError(Where.TRANSFER, f"FTS: not finished {within}")
    said = f"the state of the job is {state[:40]}" if state else "FTS reported no state"
    return MoverError(Where.CONTROL, f"FTS: the job did not start {within}: {said}")


class Pollers:
    """One for each service and account of it."""

    def __init__(self) -> None:
        self._pollers: dict[tuple[str, str, str], Poller] = {}
        self._lock = threading.Lock()

    def of(self, service: Service, ca_bundle: str) -> Poller:
        """Return that of a service, which is asked from now on as this one says."""
        key, fts = (service.url, service.credential, ca_bundle), Fts(service, ca_bundle)
        with self._lock:
            poller = self._pollers.setdefault(key, Poller(fts))
            poller.fts = fts  # where its token comes from may have been changed in the registry
            return poller


POLLERS = Pollers()
"""Of this process: threads that begin at once may each make a mover of their own."""
