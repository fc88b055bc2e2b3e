"""What the beat takes for a queue that takes nothing, and what for an error of its own."""

import pytest
from kombu.exceptions import OperationalError

from sonar.processes.broker import refusal


def error_of(code: str) -> AttributeError:
    with pytest.raises(AttributeError) as raised:
        eval(code)
    return raised.value


def test_a_refusal_is_said_in_its_own_words() -> None:
    assert refusal(OperationalError("read only\nreplica")) == "read only replica"


def test_a_channel_that_kombu_closed_under_its_own_message_is_one_too() -> None:
    assert refusal(error_of("None.client")) == "it was refused, and its connection closed"


@pytest.mark.parametrize("code", ["None.clients", "object().client"])
def test_another_error_is_none(code: str) -> None:
    assert refusal(error_of(code)) == ""
    assert refusal(None) == ""
