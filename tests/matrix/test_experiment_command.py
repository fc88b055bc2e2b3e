"""`manage.py experiment`: a sweep that workers carry out, followed and told in words."""

import os
import signal
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from matrix.answers.ordering import experiments as report
from matrix.answers.ordering.experiments import ExperimentReport
from matrix.management.commands import experiment as command
from sonar.models import Experiment, Probe
from sonar.ordering import request_probes
from sonar.results import store
from tests.matrix.world import MB, NOW

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("at_noon", "small_world"),
]
LINK = ("RAL_DATADISK", "DESY_DATADISK")


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_probes, "send", lambda ids: None)
    monkeypatch.setattr(command, "LOOK_AGAIN_SECONDS", 0.01)


def end_one() -> None:
    """End the oldest test as a worker would, if there is one."""
    probe = Probe.objects.order_by("requested_at", "id").first()
    if probe is None:
        return
    rate = 2.0 * probe.streams * (1 + 0.01 * (Probe.objects.count() % 2))
    profile = store.Profiles().id_of(mover=probe.mover, mode=probe.mode, streams=probe.streams)
    outcome = store.Result(
        id=probe.id,
        source_id=probe.source_id,
        destination_id=probe.destination_id,
        size_class_id=probe.size_class_id,
        profile_id=profile,
        state="done",
        started_at=NOW + timedelta(seconds=1),
        seconds=probe.bytes / rate / MB,
        bytes=probe.bytes,
    )
    store.store([outcome], ids_are_new=True)
    probe.delete()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """End one test before each look that the command takes."""
    look = report.reports

    def reports(experiments: Sequence[Experiment], now: datetime) -> list[ExperimentReport]:
        end_one()
        return look(experiments, now)

    monkeypatch.setattr(report, "reports", reports)


@pytest.mark.usefixtures("worker")
def test_a_sweep_is_followed_to_its_end_and_told(capsys):
    call_command("experiment", *LINK, "--values", "1,2,4", "--repeats", "2", "--size", "small")
    said = capsys.readouterr().out
    assert f"Ordered as experiment {Experiment.objects.get().id}." in said
    assert "1, 2 and 4 streams with small files, pull" in said
    assert "The rate grows in proportion to the number of streams: 4 give 4.0" in said
    assert "(n = 6)" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--values", "1,many"), "values “many” is not allowed for streams"),
        (("--repeats", "0"), "repeats must be a whole number from 1 to 10."),
        (("--size", "huge"), "“huge” is not a size class."),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(arguments: tuple[str, ...], sentence: str):
    with pytest.raises(CommandError, match="Not ordered: ") as refusal:
        call_command("experiment", *LINK, *arguments)
    assert sentence in str(refusal.value)
    assert not Probe.objects.exists()


def test_control_c_cancels_what_has_not_begun(small_world):
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(CommandError, match="Stopped: 4 tests were cancelled") as stopped:
        call_command("experiment", *LINK, "--values", "1,2", "--repeats", "2", "--size", "small")
    timer.join()
    assert stopped.value.returncode == 130
    assert not Probe.objects.exists()
