"""What is told of a RabbitMQ that carries the messages: there, full, away; and its settings."""

import time
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from kombu import Connection, Exchange, Queue
from pytest_django import Settings

from matrix.answers.status import health, rabbitmq
from sonar.celery import app
from sonar.models import SignOfLife
from sonar.settings import queues
from tests.engines.rabbitmq import Broker
from tests.matrix.test_metrics import samples
from tests.matrix.world import NOW
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.django_db]
FULL = "RabbitMQ responds but accepts no messages"
AWAY = "RabbitMQ is not responding: no tasks are being sent to workers."


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("rabbitmq"))
    made.start()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _on_rabbitmq(broker: Broker, settings: Settings) -> None:
    settings.CELERY_BROKER_URL, settings.BROKER_NAME = broker.url, "RabbitMQ"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq, "LONGEST_SECONDS", 60)
    monkeypatch.setattr(rabbitmq, "QUICK", {"confirm_publish": True})


def send(url: str, name: str, messages: int) -> None:
    """Send messages to a queue as Celery makes it."""
    made = app.amqp.Queues({}, create_missing_queue_type="quorum", autoexchange=Exchange)
    queue: Queue = made.new_missing(name)
    with Connection(url, transport_options={"confirm_publish": True}) as connection:
        for _ in range(messages):
            connection.Producer().publish(
                {}, exchange=queue.exchange, routing_key=name, declare=[queue]
            )


@pytest.mark.usefixtures("patient")
def test_it_answers_and_its_queues_are_counted(broker: Broker, client: Client) -> None:
    send(broker.url, "transfers.http-tpc", 3)
    send(broker.url, "control", 1)
    send(broker.url, "transfers.http-tpc@cern", 2)
    taken = ["transfers@cern", "transfers.http-tpc@cern"]
    SignOfLife.objects.create(name="w", kind="worker", seen_at=NOW, every_seconds=10, queues=taken)
    assert health.look(NOW)["broker"] == health.Part(
        True, "RabbitMQ responds and accepts messages."
    )
    found = samples(client)
    assert found["sonar_up", "broker"] == found["sonar_up", "redis"] == 1
    assert found["sonar_queue_messages", "transfers"] == 3
    assert found["sonar_queue_messages", "transfers@cern"] == 2
    assert found["sonar_queue_messages", "control"] == 1
    assert found["sonar_queue_messages", "cleanup"] == 0


@pytest.mark.usefixtures("patient")
def test_a_redis_that_is_away_is_missed_for_what_it_still_does(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    parts = health.look(NOW)
    assert parts["redis"].detail == f"Redis is not responding: {health.FOR_ITSELF}"
    assert parts["broker"].ok


def test_one_that_hangs_or_is_gone_is_said_to_be_away_within_seconds(
    broker: Broker, client: Client
) -> None:
    with broker.hanging():
        began = time.monotonic()
        assert health.look_at_broker() == health.Part(False, AWAY)
        assert time.monotonic() - began < 60
    broker.stop()
    assert health.look(NOW)["broker"] == health.Part(False, AWAY)
    found = samples(client)
    assert (found["sonar_up", "broker"], found["sonar_up", "redis"]) == (0, 1)
    assert not [name for name, _ in found if name == "sonar_queue_messages"]
    assert AWAY in client.get("/operations/").content.decode()
    # What it needs to run is too much for it: it looks every other second.
    (broker.place / "rabbitmq.conf").write_text("vm_memory_high_watermark.absolute = 1\n")
    broker.start()
    assert wait_for(lambda: health.look_at_broker().detail.startswith(FULL), 120)
    assert samples(client)["sonar_up", "broker"] == 0


@pytest.mark.parametrize(
    "url", ["http://a", "amqp://a;redis://b", "sqs://", "amqp://a;", "redis://a;redis://b"]
)
def test_a_broker_of_another_kind_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"BROKER_URL must begin with redis://.*amqps"):
        queues.celery_broker(url)
