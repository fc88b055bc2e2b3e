"""While the broker is away, or takes nothing as it is full: beat and workers wait and say so.

Celery names these two classes by string in the settings. Without them the beat writes sixty lines
for each message that it cannot send, and a worker ends where Redis answers with an error: one that
is full refuses what a worker asks as it starts, a replica and one that cannot save refuse it at
any time.
"""

import logging
import time
from datetime import timedelta
from typing import Any

from amqp.exceptions import AccessRefused, ChannelError
from celery.beat import PersistentScheduler, ScheduleEntry, SchedulingError
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from kombu import Connection
from kombu.exceptions import OperationalError as QueueAway
from redis.exceptions import ResponseError

from sonar.database.retry import one_line
from sonar.processes import service_manager

log = logging.getLogger(__name__)

# How often the log says that still nothing is sent.
TOLD_EVERY_SECONDS = 60
# A clock that jumps back by less is waited for.
STEP = timedelta(seconds=1)
# What Redis and RabbitMQ say to a worker that they refuse.
REFUSED = (ResponseError, ChannelError, AccessRefused)
# A worker whose broker refuses it asks again after as long, at first and at most.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 10.0


class PatientScheduler(PersistentScheduler):
    """Sends the tasks of the beat; what the queue does not take is due again in its turn."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - Celery's own
        self._not_sent = 0
        self._told_at = 0.0
        super().__init__(*args, **named)

    def tick(self, *args: Any, **named: Any) -> float:  # noqa: ANN401 - Celery's own
        """Send what is due; whatever happens to it, this loop goes round."""
        service_manager.alive()
        self._put_right()
        seconds: float = super().tick(*args, **named)
        return seconds

    def _put_right(self) -> None:
        """Let what was sent later than now count as sent now: the clock was ahead, and went back.

        Each task comes after one interval then, not when the clock is where it was.
        """
        now = self.app.now()
        ahead = [
            entry
            for entry in self.schedule.values()
            if entry.last_run_at and entry.last_run_at > now + STEP
        ]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            log.warning(
                "The clock was ahead and was set back: %d tasks will be sent one interval "
                "from now.",
                len(ahead),
            )
            self._heap = None  # it is made again, as when a beat starts

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:  # noqa: ANN401
        """Send what is due, whatever happens: a beat that ends sends nothing ever again."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if why := refusal(error.__context__):
                self._tell(entry, why)
            else:
                log.exception("The task %s was not sent.", entry.name)
        except Exception:  # its own file may be on a full disk
            log.exception("The task %s may not have been sent.", entry.name)
        else:
            log.info("Sent the task %s.", entry.name)
            if self._not_sent:
                log.warning("The queue accepts tasks again; %d were not sent.", self._not_sent)
                self._not_sent = 0

    def _tell(self, entry: ScheduleEntry, why: str) -> None:
        """Say once a minute in one line that nothing can be sent."""
        self._not_sent += 1
        if self._not_sent == 1 or time.monotonic() - self._told_at > TOLD_EVERY_SECONDS:
            self._told_at = time.monotonic()
            log.error(
                "The queue does not accept the task %s (%d not sent so far): %s",
                entry.name,
                self._not_sent,
                why,
            )


def refusal(error: BaseException | None) -> str:
    """Return why the queue did not take a task, empty for an error that is not the queue's."""
    if isinstance(error, QueueAway):
        return one_line(error)
    # kombu 5.7.0 closes the channel of what was refused, and may send on it once more.
    if isinstance(error, AttributeError) and error.obj is None and error.name == "client":
        return "the message was refused, and the connection was closed"
    return ""


class PatientConsumer(Consumer):
    """A worker's way to the queue; where it is refused it comes again after a while."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[misc,valid-type]
        """Celery's steps without one for messages that come later: two dozen queues of RabbitMQ."""

        default_steps = tuple(
            step for step in Consumer.Blueprint.default_steps if "delayed_delivery" not in step
        )

    _pause = FIRST_PAUSE_SECONDS

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - Celery's own
        """Leave out what workers would tell each other, whatever the command line says.

        Nobody here asks for it, and as Redis goes away it ends in 125 lines of tracebacks.
        """
        super().__init__(*args, without_gossip=True, without_mingle=True, **named)

    def ensure_connected(self, conn: Connection) -> Connection:
        with service_manager.waiting("Waiting for the task queue."):
            return super().ensure_connected(conn)

    def on_ready(self) -> None:
        service_manager.ready("Taking tasks from the task queue.")
        self._pause = FIRST_PAUSE_SECONDS
        super().on_ready()

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        if isinstance(exc, REFUSED):
            log.error("The queue refuses this worker: %s", one_line(exc))
            rest(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


def rest(seconds: float) -> None:
    """Wait, unless this worker is told to stop: then Celery's own exception ends it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        maybe_shutdown()
        time.sleep(0.1)
