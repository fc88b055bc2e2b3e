"""`manage.py probe`: one test in the foreground, told in one line."""

import os
import re
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from sonar import scheduler
from sonar.models import Downtime, Endpoint, Probe, SizeClass, Transfer
from sonar.movers import loading
from sonar.movers.base import MoverError, Order, Receipt, Where
from sonar.movers.fake import FakeMover
from sonar.movers.watch import Watch
from sonar.ordering import request_probes
from tests.sonar.world import NOW, three_endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMover:
    for end in three_endpoints():
        Endpoint.objects.filter(pk=end.pk).update(base_url=f"https://{end.site.name.lower()}/data")
    mover = FakeMover(failures={"ral": MoverError(Where.SOURCE, "no such file", permanent=True)})
    monkeypatch.setattr(loading, "load", lambda description: mover)
    return mover


LINK = ("GLASGOW_DATADISK", "LANCS_DATADISK", "small")


def probe(*arguments: str) -> None:
    call_command("probe", *(arguments or LINK), stdout=StringIO())


def refusal(*arguments: str, match: str) -> CommandError:
    with pytest.raises(CommandError, match=match) as caught:
        probe(*arguments)
    return caught.value


def test_a_measured_test_is_one_line_with_bytes_seconds_rate_and_how(fake, capsys):
    probe(*LINK, "--streams", "2")
    line = capsys.readouterr().out.strip().splitlines()[-1]
    assert re.fullmatch(
        r"GLASGOW_DATADISK to LANCS_DATADISK: 20 MB in [\d.]+ m?s: [\d.]+ MB/s "
        r"\(http-tpc pull, 2 streams, IPv6\)",
        line,
    )
    assert Transfer.objects.get().state == "done"
    assert not Probe.objects.exists()


def test_a_failed_test_says_where_and_why_and_is_recorded(fake):
    said = refusal("RAL_DATADISK", *LINK[1:], match="Failed at the source: no such file")
    assert "until the cause is fixed" in str(said)
    assert Transfer.objects.get().state == "failed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("GLASGOW LANCS_DATADISK small", "Did you mean GLASGOW_DATADISK"),
        ("GLASGOW_DATADISK X small", "There is no endpoint 'X'"),
        ("GLASGOW_DATADISK LANCS_DATADISK huge", "There is no size class 'huge'"),
        ("GLASGOW_DATADISK GLASGOW_DATADISK small", "two different endpoints"),
        ("GLASGOW_DATADISK LANCS_DATADISK small --streams 0", "--streams must be 1"),
        ("GLASGOW_DATADISK RAL_DATADISK small", r"not those of RAL_DATADISK \(root\)"),
    ],
)
def test_a_bad_wish_is_refused_in_a_sentence(fake, words: str, said: str):
    Endpoint.objects.filter(name="RAL_DATADISK").update(base_url="root://ral/data")
    refusal(*words.split(), match=said)
    assert not Probe.objects.exists()
    assert not Transfer.objects.exists()


def test_a_downtime_holds_for_a_test_by_hand_too(fake):
    times = {"starts_at": timezone.now(), "ends_at": timezone.now() + timedelta(hours=1)}
    glasgow = Endpoint.objects.get(name="GLASGOW_DATADISK")
    Downtime.objects.create(endpoint=glasgow, reason="power", **times)
    refusal(match="Not started: GLASGOW_DATADISK is in a declared")


class Interrupted(FakeMover):
    """Somebody presses Ctrl-C as soon as its transfer is under way."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        os.kill(os.getpid(), signal.SIGINT)
        return super().move(order, watch)


def test_ctrl_c_stops_it_cleans_up_and_records_nothing(fake, monkeypatch):
    slow = Interrupted(seconds=30)
    monkeypatch.setattr(loading, "load", lambda description: slow)
    assert refusal(match="Stopped; nothing was recorded").returncode == 130
    assert not Probe.objects.exists()
    assert not Transfer.objects.exists()
    assert not [url for url in slow.files.held if "/incoming/" in url]


def order(count: int) -> list[Probe]:
    glasgow, lancs, size = LINK
    ends = (Endpoint.objects.get(name=name) for name in (glasgow, lancs))
    wish = scheduler.ProbeRequest(*ends, SizeClass.objects.get(name=size))
    return scheduler.order_all([wish] * count, timezone.now()).probes


def after(calls: list[Callable[[], object]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make these calls, one each time that the command has looked whether it may go on."""
    look = scheduler.start_waiting

    def looked(now: datetime) -> list[UUID]:
        if calls:
            calls.pop(0)()
        return look(now)

    monkeypatch.setattr(scheduler, "start_waiting", looked)


def test_it_waits_while_another_test_of_the_link_runs_says_why_and_sends_no_worker(
    fake, monkeypatch, capsys
):
    sent: list[UUID] = []
    monkeypatch.setattr(request_probes, "send", sent.extend)
    first, second = order(2)
    others = {first.id, second.id}
    after([first.delete, lambda: None, second.delete], monkeypatch)
    probe()
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[:2] == [
        "Waiting (1 test ahead): Another test of this link is running.",
        "Waiting (next): Another test of this link is running.",
    ]
    assert "MB/s" in lines[-1]
    assert set(sent) <= others
    assert Transfer.objects.get().state == "done"
    assert not Probe.objects.exists()


def test_ctrl_c_drops_one_that_waits(fake, monkeypatch):
    monkeypatch.setattr(request_probes, "send", lambda ids: None)
    (first,) = order(1)
    after([lambda: os.kill(os.getpid(), signal.SIGINT)], monkeypatch)
    assert refusal(match="Stopped; nothing was recorded").returncode == 130
    assert Probe.objects.get() == first
    assert not Transfer.objects.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda: Endpoint.objects.filter(name="LANCS_DATADISK").update(retired_at=NOW),
            "Failed: LANCS_DATADISK was retired while the test waited",
        ),
        (lambda: Probe.objects.filter(state="waiting").delete(), "The test was cancelled"),
    ],
)
def test_one_that_goes_while_it_waits_says_what_became_of_it(fake, monkeypatch, change, said: str):
    monkeypatch.setattr(request_probes, "send", lambda ids: None)
    order(1)
    after([change], monkeypatch)
    refusal(match=said)
