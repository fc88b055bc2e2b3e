"""Log lines: one line each, and what repeats each second once a minute; what a queue refuses."""

import inspect
import logging

import pytest
from celery.worker import loops
from kombu import Message
from kombu.exceptions import OperationalError

from sonar.processes.broker import refusal
from sonar.processes.log import BrokerGoneInOneLine, NowAndThen, UtcFormatter


def record(
    message: str, level: int = logging.WARNING, *, failed: bool = False
) -> logging.LogRecord:
    info = (ValueError, ValueError("it is full"), None) if failed else None
    return logging.LogRecord("kombu", level, __file__, 1, message, ("x",), info)


def test_a_message_with_line_breaks_is_one_line_and_a_crash_keeps_its_traceback():
    formatter = UtcFormatter("%(levelname)s %(message)s")
    written = formatter.format(record("cannot connect to %s.\n\n  Trying\n"))
    assert written == "WARNING cannot connect to x. Trying"
    written = formatter.format(record("%s broke", failed=True))
    assert written == "WARNING x broke\nValueError: it is full"


def test_a_warning_comes_now_and_then_with_its_error_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
):
    now = 1_000.0
    monkeypatch.setattr("sonar.processes.log.time.monotonic", lambda: now)
    rarely = NowAndThen(60)
    first = record("%s fails", failed=True)
    assert rarely.filter(first)
    assert UtcFormatter("%(message)s").format(first) == "x fails: it is full"
    assert not rarely.filter(record("%s fails", failed=True))
    assert rarely.filter(record("%s is something else"))
    now += 61
    assert rarely.filter(record("%s fails", failed=True))


def test_what_is_worse_than_a_warning_always_comes_as_it_is():
    rarely = NowAndThen(60)
    for _ in range(2):
        worse = record("%s fails", logging.ERROR, failed=True)
        assert rarely.filter(worse)
        assert UtcFormatter("%(message)s").format(worse) == "x fails\nValueError: it is full"


CLEANING_UP = "Error cleaning up after event loop: %r"  # Celery's own words


def test_a_broker_that_goes_away_is_one_line(capsys):
    class Gone(Message):
        def ack(self, multiple: bool = False) -> None:
            raise ConnectionResetError("connection\nis closed")

    logger, handler = logging.getLogger("of this test"), logging.StreamHandler()
    handler.addFilter(BrokerGoneInOneLine())
    handler.setFormatter(UtcFormatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    Gone().ack_log_error(logger, (ConnectionResetError,))
    gone = BrokenPipeError(32, "Broken pipe")
    logger.error(CLEANING_UP, gone, exc_info=gone)
    logger.error("else", exc_info=ValueError("it is full"))
    assert capsys.readouterr().err == (
        "WARNING a message was not acknowledged and will be delivered again: connection is closed\n"
        "WARNING the connection to the broker was lost, so Celery is restarting its loop: "
        "[Errno 32] Broken pipe\n"
        "ERROR else\nValueError: it is full\n"
    )
    assert CLEANING_UP in inspect.getsource(loops)


def test_headers_of_storage_servers_are_not_quoted():
    """urllib3 warns of those that it cannot read, with all that stands there."""
    assert not logging.getLogger("urllib3.connection").isEnabledFor(logging.WARNING)


def error_of(code: str) -> AttributeError:
    with pytest.raises(AttributeError) as raised:
        eval(code)
    return raised.value


def test_a_refusal_of_a_queue_is_said_in_its_own_words_and_another_error_is_none() -> None:
    assert refusal(OperationalError("read only\nreplica")) == "read only replica"
    # Of a channel that kombu closed under its own message.
    assert (
        refusal(error_of("None.client")) == "the message was refused, and the connection was closed"
    )
    for error in (error_of("None.clients"), error_of("object().client"), None):
        assert refusal(error) == ""
