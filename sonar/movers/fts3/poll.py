"""All jobs of this process at one FTS3 server are asked after together, every few seconds."""

import threading
import time
from collections.abc import Sequence

from sonar.movers.base import MoverError, Order, Service, Where
from sonar.movers.fts3.jobs import BEGUN, Progress, progress_of
from sonar.movers.fts3.rest import Fts, Json, Refusal
from sonar.movers.watch import UnexpectedError, Watch, as_failures

POLL_SECONDS = 3.0
IDS_AT_ONCE = 200
"""In one request, whose first line must stay below 8 KB."""
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
            message = f"FTS knows no job {self.number} any more"
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
    """Asks one service after the jobs of this process: one thread, while there are any."""

    def __init__(self, fts: Fts) -> None:
        self.fts = fts
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wait(self, number: str, order: Order, watch: Watch, until: float) -> Progress:
        """Return how a job ended; raise MoverError if that is not known by then, or Stopped."""
        job = Job(number)
        self._add(job)
        try:
            with watch.on_stop(job.over.set):
                in_time = job.over.wait(max(until - time.monotonic(), 0.0))
            watch.check()
        finally:
            self._forget(job)
        if job.error:
            raise job.error
        if not in_time:
            raise overdue(job, order)
        return job.progress

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
            for start in range(0, len(jobs), IDS_AT_ONCE):
                self._ask_after(jobs[start : start + IDS_AT_ONCE])

    def _ask_after(self, jobs: Sequence[Job]) -> None:
        try:
            with as_failures("asking FTS after its jobs"):
                answers = self.fts.jobs([job.number for job in jobs])
        except MoverError as error:
            for job in jobs:
                job.miss(error)
            return
        for job in jobs:
            if job.number in answers:
                self._tell(job, answers[job.number])
            else:
                job.miss(MoverError(Where.CONTROL, "FTS, GET jobs: the answer leaves jobs out"))

    def _tell(self, job: Job, answer: Json | None) -> None:
        try:
            with as_failures(f"the answer for the job {job.number} of FTS"):
                job.learn(answer)
        except MoverError as error:
            job.miss(error)


def overdue(job: Job, order: Order) -> MoverError:
    """Say what it means that a job has not ended: nobody's fault before it has begun."""
    within = f"within {order.limits.total:g} s"
    if job.trouble:
        failure = MoverError(Where.CONTROL, f"not known to be finished {within}: {job.trouble}")
        failure.credential_trouble = job.trouble.credential_trouble
        return failure
    state = job.progress.state
    if state in BEGUN:
        return MoverError(Where.TRANSFER, f"FTS: not finished {within}")
    said = f"its state is {state[:40]}" if state else "it was not heard of"
    return MoverError(Where.CONTROL, f"FTS: the job did not begin {within}: {said}")


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
