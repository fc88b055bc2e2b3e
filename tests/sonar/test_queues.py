"""Queues in Redis: what a worker that waits asks it for."""

from queue import Empty

import pytest
from kombu import Consumer, Queue
from redis.connection import AbstractConnection

from sonar.celery import app


def test_who_waits_for_messages_names_each_queue_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each of four priorities: all that waits asks anew every second."""
    asked: list[tuple[object, ...]] = []
    send = AbstractConnection.send_command

    def noted(self: AbstractConnection, *words: object, **options: object) -> object:
        asked.append(words)
        return send(self, *words, **options)

    monkeypatch.setattr(AbstractConnection, "send_command", noted)
    queues = [Queue("queue-of-tests-a"), Queue("queue-of-tests-b")]
    with (
        app.connection_for_read() as connection,
        Consumer(connection, queues, no_ack=True),
        pytest.raises((Empty, TimeoutError)),
    ):
        connection.drain_events(timeout=0.1)
    (waited,) = {words for words in asked if words[0] == "BRPOP"}
    assert sorted(map(str, waited[1:-1])) == ["queue-of-tests-a", "queue-of-tests-b"]
