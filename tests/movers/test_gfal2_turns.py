"""Few copies by gfal-copy run in a process at once: the others wait, and can be stopped."""

import threading
from dataclasses import replace

import pytest

from sonar.movers.base import Limits, MoverError, Stopped, Where
from sonar.movers.programs import gfal2
from sonar.movers.watch import Watch
from tests.movers.test_tool import ORDER


@pytest.fixture(autouse=True)
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gfal2, "TURNS", threading.BoundedSemaphore(1))


def test_the_next_one_begins_when_one_has_ended():
    began = threading.Event()

    def follow() -> None:
        with gfal2.turn(ORDER, Watch()):
            began.set()

    with gfal2.turn(ORDER, Watch()):
        thread = threading.Thread(target=follow)
        thread.start()
        assert not began.wait(0.5)
    assert began.wait(10)
    thread.join(10)


def test_who_waits_is_stopped_at_once():
    watch = Watch()
    with gfal2.turn(ORDER, Watch()):
        threading.Timer(0.3, watch.stop).start()
        with pytest.raises(Stopped), gfal2.turn(ORDER, watch):
            pass


def test_who_has_waited_as_long_as_a_copy_may_take_is_told():
    brief = replace(ORDER, limits=Limits(total=0.1))
    with gfal2.turn(ORDER, Watch()):
        with pytest.raises(MoverError, match="20 copies by gfal-copy ran") as late:
            gfal2.turn(brief, Watch()).__enter__()
        assert late.value.where == Where.CONTROL


def test_a_turn_is_given_back_by_who_failed():
    with pytest.raises(ZeroDivisionError), gfal2.turn(ORDER, Watch()):
        raise ZeroDivisionError
    with gfal2.turn(replace(ORDER, limits=Limits(total=0.1)), Watch()):
        pass
