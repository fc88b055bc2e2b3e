"""One test transfer in the foreground."""

import difflib
import signal
import socket
import threading
from typing import Any, NoReturn, TypeVar

from django.core.management.base import CommandError, CommandParser
from django.db.models import Model
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from sonar import scheduler
from sonar.management.base import QuickCommand
from sonar.models import Endpoint, Probe, SizeClass, Transfer
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.movers.base import Receipt, Stopped
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen, Watch
from sonar.notation.units import format_bytes, format_counted, format_rate, format_seconds
from sonar.obstacles import worker_movers
from sonar.ordering import queue_positions, request_probes
from sonar.work import probes
from sonar.work.running import running
from sonar.work.transfer_request import awaited

Named = TypeVar("Named", bound=Model)
LOOK_AGAIN_SECONDS = 0.5


class Command(QuickCommand):
    help = (
        "Send one test file from SOURCE to DESTINATION now, show its progress and record the "
        "result. Budgets and downtimes of both endpoints apply. While another test of "
        "the link runs or an endpoint is at its cap, the command waits and prints why. Exit code "
        "0: the rate was measured; 1: the test failed or was refused; 130: you stopped it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", metavar="SOURCE", help="name of the endpoint to send from")
        parser.add_argument(
            "destination", metavar="DESTINATION", help="name of the endpoint to send to"
        )
        parser.add_argument("size", metavar="SIZE", help="name of a size class, such as small")
        parser.add_argument(
            "--mover",
            choices=catalogue.names(),
            default=catalogue.DEFAULT,
            help="transfer tool (default: %(default)s)",
        )
        parser.add_argument(
            "--mode",
            choices=Mode.values,
            default=Mode.PULL.value,
            help="pull (default): the destination fetches the file; push: the source sends the "
            "file",
        )
        parser.add_argument(
            "--streams", type=int, default=1, metavar="N", help="number of streams (default: 1)"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        if options["streams"] < 1:
            raise CommandError("--streams must be 1 or more.")
        probe_request = scheduler.ProbeRequest(
            source=named(Endpoint, options["source"]),
            destination=named(Endpoint, options["destination"]),
            size_class=named(SizeClass, options["size"]),
            mover=options["mover"],
            mode=options["mode"],
            streams=options["streams"],
        )
        console = Console(highlight=False, soft_wrap=True)
        ends = probe_request.source, probe_request.destination
        if why := worker_movers.elsewhere(end.vantage for end in ends):
            raise CommandError(f"Not started: {why}")
        try:
            # For this process, which takes it when it has room.
            ordered = scheduler.order_all([probe_request], timezone.now(), socket.gethostname())
        except (scheduler.RefusedError, scheduler.PlannerBusyError) as error:
            raise CommandError(f"Not started: {error}") from error
        (probe,) = ordered.probes
        request_probes.send(ordered.started)
        wait(probe, console)
        claimed = probes.claim(probe.id, timezone.now())
        if claimed is None:
            raise CommandError(
                f"A worker has already started this test. See the result {probe.id}."
            )
        outcome = show(claimed, console)
        record(claimed, outcome, console)


def wait(probe: Probe, console: Console) -> None:
    """Wait until a test is queued and say what for; Ctrl-C drops it."""
    stopped, said = threading.Event(), ""
    before = signal.signal(signal.SIGINT, lambda number, frame: stopped.set())
    try:
        while probe.state == Probe.State.WAITING and not stopped.wait(LOOK_AGAIN_SECONDS):
            place = queue_positions.places().get(probe.id, 1)
            before_it = f"{format_counted(place - 1, 'test')} ahead" if place > 1 else "next"
            sentence = f"Waiting ({before_it}): {probe.waits_because}"
            if sentence != said:
                console.print(sentence)
                said = sentence
            request_probes.send(scheduler.start_waiting(timezone.now()))
            probe = Probe.objects.filter(id=probe.id).first() or gone(probe)
    finally:
        signal.signal(signal.SIGINT, before)
    if stopped.is_set():
        try:
            request_probes.cancel(probe.id, timezone.now())
        except request_probes.NotCancelledError as error:
            raise CommandError(str(error)) from error
        raise CommandError("Stopped; nothing was recorded.", returncode=130)


def gone(probe: Probe) -> NoReturn:
    """Say what became of a test that has been waiting and is not there any more."""
    ended = Transfer.objects.filter(id=probe.id).first()
    raise CommandError(f"Failed: {ended.error}." if ended else "The test was cancelled.")


def named(model: type[Named], name: str) -> Named:
    """Find a registered row by name; CommandError names those that look like it."""
    rows = {row.name: row for row in model._default_manager.all()}  # type: ignore[attr-defined]
    if name in rows:
        return rows[name]
    close = difflib.get_close_matches(name, rows, n=3, cutoff=0.4) or sorted(rows)[:5]
    kind = model._meta.verbose_name
    hint = f"Did you mean {', '.join(close)}?" if close else f"No {kind} is registered."
    raise CommandError(f"There is no {kind} {name!r}. {hint}")


def show(probe: Probe, console: Console) -> Outcome:
    """Carry out a probe under a progress bar; Ctrl-C stops it and cleans up."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(f"{probe.source} to {probe.destination}", total=probe.bytes)
        watch = Watch(lambda moved: bars.update(bar, completed=moved))
        before = signal.signal(signal.SIGINT, lambda number, frame: watch.stop())
        try:
            with running.added(watch, probe):
                probes.Cancellations().start()
                return probes.carry_out(probe, watch)
        finally:
            signal.signal(signal.SIGINT, before)


def record(probe: Probe, outcome: Outcome, console: Console) -> None:
    """Keep the result and say it in one line; raise CommandError unless it was measured."""
    if isinstance(outcome.error, Stopped):
        probes.finish(probe, outcome)
        if Transfer.objects.filter(id=probe.id).exists():
            gone(probe)  # it was cancelled elsewhere
        probes.drop(probe)
        left = f" Sonar will delete {outcome.leftover} later." if outcome.leftover else ""
        raise CommandError(f"Stopped; nothing was recorded.{left}", returncode=130)
    probes.finish(probe, outcome)
    if wait := awaited(probe, outcome.error):
        probes.drop(probe)
        raise CommandError(f"Not started: {wait} Nothing was recorded.")
    if outcome.receipt is None:
        if (error := outcome.error) is None:
            raise CommandError("Failed.")
        again = (
            "will keep failing until the cause is fixed" if error.permanent else "may be temporary"
        )
        raise CommandError(f"Failed at the {error.where}: {error} ({again}).")
    console.print(success(probe, outcome.receipt, outcome.seen))


def success(probe: Probe, receipt: Receipt, seen: Seen) -> str:
    """Say what was measured: `20 MB in 4.10 s: 4.88 MB/s (http-tpc pull, 1 stream, IPv4)`."""
    streams = f"{probe.streams} stream" + ("s" if probe.streams > 1 else "")
    how = [f"{probe.mover} {probe.mover_description.known_mode(probe.mode)}".rstrip(), streams]
    how += [f"IPv{seen.ip_version}"] if seen.ip_version else []
    simulated = any(
        part.simulated for part in (probe.source, probe.destination, probe.mover_description)
    )
    how += ["simulated link"] if simulated else []
    return (
        f"{probe.source} to {probe.destination}: {format_bytes(receipt.bytes)} in "
        f"{format_seconds(receipt.seconds)}: {format_rate(receipt.bytes / receipt.seconds)} "
        f"({', '.join(how)})"
    )
