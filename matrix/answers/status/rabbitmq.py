"""A RabbitMQ that carries messages: whether it takes them, and how many wait in its queues."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from amqp import Channel, Message
from amqp.exceptions import AMQPError, NotFound
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError as QueueAway

from sonar.database.tables import LONGEST_SECONDS

AWAY = (QueueAway, AMQPError, OSError)
# Of no queue: it is confirmed and gone.
TRIAL = "sonar.trial"
QUICK = {"confirm_publish": True} | dict.fromkeys(
    ("read_timeout", "write_timeout"), LONGEST_SECONDS
)


@contextmanager
def connected() -> Iterator[Connection]:
    """Give a connection that gives up soon, to any of the nodes; raises one of AWAY."""
    with Connection(
        settings.CELERY_BROKER_URL,
        connect_timeout=LONGEST_SECONDS,
        transport_options=QUICK,
        ssl=getattr(settings, "CELERY_BROKER_USE_SSL", False),
    ) as connection:
        connection.ensure_connection(
            max_retries=2, interval_start=0, interval_step=0, timeout=LONGEST_SECONDS
        )
        yield connection


def try_a_message() -> None:
    """Send a message that goes nowhere; raises one of AWAY where none is taken.

    One that is full still takes the first message of a connection, and then reads no more of it.
    """
    with connected() as connection:
        channel = opened(connection)
        for _ in range(2):
            channel.basic_publish(Message(""), routing_key=TRIAL, confirm_timeout=LONGEST_SECONDS)


def lengths(names: Iterable[str]) -> dict[str, int]:
    """Count the messages of each queue; those that nobody has made yet have none."""
    with connected() as connection:
        counts = dict.fromkeys(names, 0)
        for name in counts:
            with suppress(NotFound):  # which closes the channel
                declared: Any = opened(connection).queue_declare(name, passive=True)
                counts[name] = int(declared.message_count)
        return counts


def opened(connection: Connection) -> Channel:
    return cast("Channel", connection.channel())
