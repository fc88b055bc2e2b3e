"""A mover that breaks ends its test at once: a sentence for readers, a traceback in the log."""

import logging
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from sonar.credentials import sources
from sonar.credentials.sources.base import Purpose
from sonar.models import (
    Circuit,
    CredentialState,
    Endpoint,
    Leftover,
    NetworkResult,
    Probe,
    Transfer,
)
from sonar.movers import loading, measure
from sonar.movers.base import End, MoverError, Order, Receipt, Where
from sonar.movers.fake import FakeMover
from sonar.movers.programs.gridftp import Ftp
from sonar.movers.watch import Watch
from sonar.obstacles import credential_states
from sonar.obstacles.credential_states import CredentialProblem, CredentialUse
from sonar.processes.log import UtcFormatter
from sonar.work import cleanup, credential_checks, probes, transfer_request
from sonar.work.running import running
from tests.credentials import bind
from tests.movers.orders import ORDER
from tests.sonar import world
from tests.sonar.world import NOW, endpoint, three_endpoints

pytestmark = pytest.mark.django_db

SECRET = "Vb7nQ2xK9mW4pL6s"
FOREIGN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzb25hciJ9.c2ln"
SENTENCE = "internal error in Sonar ({}): see the worker log for details"


def endless(depth: int = 0) -> None:
    endless(depth + 1)


def decode() -> None:
    b"\xff".decode()


def quoted() -> None:
    """Raise what http.client does of a token that has a line break."""
    raise ValueError(f"Invalid header value b'Bearer {FOREIGN}' of {SECRET} at host.example")


def opened() -> None:
    Path("/nowhere").read_text()


FAULTS: dict[str, Callable[[], object]] = {
    "ValueError": quoted,
    "KeyError": lambda: {}["x"],
    "FileNotFoundError": opened,
    "UnicodeDecodeError": decode,
    "RecursionError": endless,
}


class Broken(FakeMover):
    """Breaks at one step, with one fault."""

    def __init__(self, step: str, fault: Callable[[], object]) -> None:
        super().__init__()
        self.step, self.fault = step, fault
        whole = self if step == "move" else self.files
        before = getattr(whole, step)

        def breaks(*given: object) -> object:
            before(*given)
            return self.fault()

        setattr(whole, step, breaks)


@pytest.fixture(autouse=True)
def _no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "LOOK_AGAIN_SECONDS", ())


@pytest.fixture
def secrets(settings, tmp_path: Path) -> Path:
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "glasgow").write_text(SECRET)
    return tmp_path


def uses(monkeypatch: pytest.MonkeyPatch, mover: object) -> None:
    monkeypatch.setattr(loading, "load", lambda description: mover)


def ordered(source: Endpoint, destination: Endpoint, mover: str = "fake") -> Probe:
    return world.ordered(source, destination, mover, "push")


def written(caplog: pytest.LogCaptureFixture) -> str:
    """Return the errors as the log of a worker has them."""
    formatter = UtcFormatter("%(levelname)s %(name)s: %(message)s")
    return "\n".join(
        formatter.format(record) for record in caplog.records if record.levelno >= logging.ERROR
    )


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        *(("stat", "ValueError"), ("put", "FileNotFoundError"), ("checksum", "KeyError")),
        *(("delete", "UnicodeDecodeError"), *(("move", fault) for fault in FAULTS)),
    ],
)
def test_whatever_a_mover_raises_its_test_ends_and_its_link_is_free(
    monkeypatch, caplog, secrets, step: str, fault: str
):
    glasgow, lancs, _ = three_endpoints()
    probe = ordered(glasgow, lancs)
    uses(monkeypatch, Broken(step, FAULTS[fault]))
    probes.run(probe.id)
    result = Transfer.objects.get(id=probe.id)
    if step == "delete":  # it was measured: only its file is left
        assert (result.state, result.error) == ("done", "")
    else:
        assert (result.state, result.error_where) == ("failed", "control")
        assert result.error == SENTENCE.format(fault)
    assert not Circuit.objects.exists()
    assert not Probe.objects.exists()
    assert Probe.objects.filter(id=ordered(glasgow, lancs).id, state="queued").exists()
    left = {row.path.partition("/source")[0]: row.endpoint for row in Leftover.objects.all()}
    if step in ("stat", "put"):
        assert left == {"sonar": glasgow}
    else:
        assert left == {f"sonar/incoming/{probe.id}": lancs}
    log = written(caplog)
    assert log.count("Traceback (most recent call last)") >= 1
    assert fault in log
    assert f"/sonar/incoming/{probe.id}" in log


def test_neither_page_nor_log_tell_a_secret_that_an_error_quotes(monkeypatch, caplog, secrets):
    glasgow, lancs, _ = three_endpoints()
    uses(monkeypatch, Broken("stat", quoted))
    probes.run(ordered(glasgow, lancs).id)
    log = written(caplog)
    assert 'raise ValueError(f"Invalid header value' in log
    assert "ValueError: Invalid header value b'Bearer ***" in log
    assert SECRET not in log
    assert FOREIGN not in log
    assert "host.example" not in Transfer.objects.get().error


def test_the_traceback_of_an_endless_recursion_or_word_is_short(secrets):
    for fault in (endless, lambda: {}["a" * 1_000_000]):
        try:
            fault()
        except (RecursionError, KeyError):
            record = logging.LogRecord("x", 40, __file__, 1, "broke", (), sys.exc_info())
        text = UtcFormatter("%(message)s").format(record)
        assert text.startswith("broke\nTraceback (most recent call last)")
        assert len(text.splitlines()) < 130


def test_what_breaks_after_a_stop_goes_back_to_the_queue(monkeypatch, caplog):
    glasgow, lancs, _ = three_endpoints()
    probe = ordered(glasgow, lancs)

    def stopped() -> None:
        running.stop_all()
        raise ValueError("I/O operation on closed file")

    uses(monkeypatch, Broken("move", stopped))
    try:
        probes.run(probe.id)
    finally:
        running.stopping = False
    probe.refresh_from_db()
    assert (probe.state, Transfer.objects.count()) == ("queued", 0)
    assert written(caplog) == ""


def test_a_test_of_the_network_ends_so_too(monkeypatch, settings, caplog):
    here = endpoint("GLASGOW", base_url="iperf3://glasgow.example.org")
    there = endpoint("RAL", base_url="iperf3://ral.example.org")
    settings.SONAR_NETWORK_ENDPOINT = here.name
    probe, mover = ordered(here, there, "iperf3"), FakeMover()
    Probe.objects.update(state="queued", queued_at=NOW)
    monkeypatch.setattr(mover, "move", lambda order, watch: FAULTS["KeyError"]())
    uses(monkeypatch, mover)
    probes.run(probe.id)
    result = NetworkResult.objects.get()
    assert (result.state, result.error) == ("failed", SENTENCE.format("KeyError"))
    assert not Probe.objects.exists()
    assert not Leftover.objects.exists()
    assert "KeyError: 'x'" in written(caplog)


def test_what_breaks_before_a_mover_is_asked_ends_a_test_too(monkeypatch, secrets, caplog):
    def no_source(kind: str) -> object:
        raise KeyError(kind)

    glasgow, lancs, _ = three_endpoints()
    probe = ordered(bind(glasgow, "glasgow", lend=True), lancs)
    monkeypatch.setattr(sources, "get", no_source)
    probes.run(probe.id)
    assert Transfer.objects.get().error == SENTENCE.format("KeyError")
    assert f"test {probe.id}: " in written(caplog)
    assert not Leftover.objects.exists()


class Boastful(FakeMover):
    """Says that more has moved than a column holds."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        receipt = super().move(order, watch)
        watch.seen.queue_seconds = 10**400  # type: ignore[assignment]
        return receipt


def test_a_result_that_cannot_be_stored_ends_as_a_failure(monkeypatch, caplog):
    glasgow, lancs, _ = three_endpoints()
    probe = ordered(glasgow, lancs)
    uses(monkeypatch, Boastful())
    probes.run(probe.id)
    result = Transfer.objects.get(id=probe.id)
    assert result.state == "failed"
    assert result.error.startswith("internal error in Sonar (")
    assert not Probe.objects.exists()
    assert "Traceback" in written(caplog)


def test_the_command_says_it_in_a_sentence(monkeypatch):
    for end in three_endpoints():
        Endpoint.objects.filter(pk=end.pk).update(base_url=f"https://{end.site.name.lower()}/data")
    uses(monkeypatch, Broken("move", FAULTS["KeyError"]))
    with pytest.raises(CommandError, match=r"Failed at the control: internal error in Sonar"):
        call_command("probe", "GLASGOW_DATADISK", "LANCS_DATADISK", "small", stdout=StringIO())
    assert Transfer.objects.get().state == "failed"


def test_one_credential_that_breaks_does_not_keep_the_others_from_being_looked_at(
    monkeypatch, secrets, caplog
):
    glasgow, lancs, _ = three_endpoints()
    for end in (glasgow, lancs):
        bind(end, end.site.name.lower())
        credential_states.record_failure(
            CredentialUse(end.credential_id, end.pk, "own"), CredentialProblem("x", holds=True), NOW
        )
    (secrets / "lancs").write_text("sesame-of-lancs")
    real = credential_checks.look

    def look(purpose: Purpose, needed: float) -> object:
        return FAULTS["KeyError"]() if purpose.name == "glasgow" else real(purpose, needed)

    monkeypatch.setattr(credential_checks, "look", look)
    credential_checks.check(timezone.now(), seconds=10)
    assert CredentialState.objects.get().credential == glasgow.credential
    assert "checking credential glasgow (own) of GLASGOW_DATADISK" in written(caplog)


def test_a_name_that_the_dns_cannot_have_is_a_fault_of_its_end():
    url = f"ftp://{'x' * 64}.example/data"
    with pytest.raises(MoverError, match="label empty or too long") as caught:
        Ftp().stat(End(Where.SOURCE, f"{url}/sonar/1", url), ORDER)
    assert caught.value.where == "source"


# Base URLs of before such characters were refused


@pytest.mark.parametrize("url", ["ftp://h/%0d%0aDELE%20x", "root://h//%00", "https://h/%2500"])
@pytest.mark.parametrize("where", ["source", "destination"])
def test_a_test_at_a_base_url_with_control_characters_ends_at_once_and_says_why(
    monkeypatch, where: str, url: str
):
    glasgow, lancs, _ = three_endpoints()
    probe, mover = ordered(glasgow, lancs), FakeMover()
    uses(monkeypatch, mover)
    odd = glasgow if where == "source" else lancs
    Endpoint.objects.filter(pk=odd.pk).update(base_url=url)
    probes.run(probe.id)
    result = Transfer.objects.get()
    assert (result.state, result.error_where) == ("failed", where)
    assert result.error_is_permanent
    sentence = "the base URL of the endpoint contains unprintable characters: change it"
    assert result.error == sentence
    assert [(row.endpoint, row.error) for row in Circuit.objects.all()] == [(odd, sentence)]
    assert mover.files.held == {}
    assert not Leftover.objects.exists()


def test_so_does_a_test_of_the_network(settings):
    here, there = endpoint("A", base_url="iperf3://a"), endpoint("B", base_url="iperf3://b%0a")
    settings.SONAR_NETWORK_ENDPOINT = here.name
    with pytest.raises(MoverError, match="unprintable characters") as caught:
        transfer_request.order_for(
            Probe(source=here, destination=there, mode="push", mover="iperf3")
        )
    assert (caught.value.where, caught.value.permanent) == ("destination", True)


def test_a_file_left_at_such_a_base_url_is_kept_with_the_reason(monkeypatch):
    glasgow = endpoint("GLASGOW", base_url="ftp://h/%0d%0aDELE%20x")
    uses(monkeypatch, FakeMover())
    why = cleanup.delete(Leftover(endpoint=glasgow, path="sonar/incoming/a", mover="fake"))
    assert "unprintable characters" in str(why)
