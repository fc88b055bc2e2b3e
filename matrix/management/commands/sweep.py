"""`manage.py sweep`: orders a sweep on a link, follows it, and says what it shows."""

import signal
import threading
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from matrix.answers.ordering import probe_requests
from matrix.answers.ordering import sweeps as report
from matrix.answers.ordering.sweeps import SweepReport, conclusion, title
from matrix.query.forms import BadQueryError
from sonar.management.base import QuickCommand
from sonar.models import Sweep
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.notation.units import three_digits
from sonar.ordering import request_probes

LOOK_AGAIN_SECONDS = 1.0


class Command(QuickCommand):
    help = (
        "Run a parameter sweep: tests from SOURCE to DESTINATION that differ in one setting. Show "
        "the rates and the effect of the setting. Workers run the tests one after the other, "
        "within all limits of both endpoints. Ctrl-C cancels the tests that have not started. "
        "Exit code 0: a rate was measured; 1: no rate was measured, or the sweep was refused; "
        "130: you stopped it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", metavar="SOURCE", help="name of the endpoint to send from")
        parser.add_argument(
            "destination", metavar="DESTINATION", help="name of the endpoint to send to"
        )
        parser.add_argument(
            "--vary",
            choices=Sweep.Variable.values,
            default=Sweep.Variable.STREAMS.value,
            help="setting that differs between the tests (default: %(default)s)",
        )
        parser.add_argument(
            "--values",
            default="",
            metavar="A,B,...",
            help="values to test (default: 1,2,4,8,16 streams; all size classes; or pull and push)",
        )
        parser.add_argument(
            "--repeats",
            type=int,
            default=probe_requests.USUAL_REPEATS,
            metavar="N",
            help="number of tests per value (default: %(default)s)",
        )
        parser.add_argument(
            "--size", metavar="CLASS", help="size class of the files (default: large)"
        )
        parser.add_argument(
            "--streams", type=int, metavar="N", help="number of streams (default: 1)"
        )
        parser.add_argument(
            "--mode",
            choices=Mode.values,
            help="pull (default): the destination fetches the files; push: the source sends the "
            "files",
        )
        parser.add_argument(
            "--mover", choices=catalogue.names(), help="transfer tool (default: http-tpc)"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        console = Console(highlight=False, soft_wrap=True)
        sweep = ordered(options)
        console.print(f"The sweep {sweep.id} was requested.")
        ended = follow(sweep, console)
        show(ended, console)
        if not ended.done:
            raise CommandError("No rate was measured.")


def ordered(options: dict[str, Any]) -> Sweep:
    """Order what the options ask for; raise CommandError with all that is wrong."""
    body = {
        name: options[name]
        for name in ("source", "destination", "repeats", "size", "streams", "mode", "mover")
        if options[name] is not None
    }
    body["variable"] = options["vary"]
    if values := probe_requests.form_values(options["values"], options["vary"]):
        body["values"] = values
    try:
        return request_probes.order_sweep(probe_requests.read_sweep(body), None, timezone.now())
    except (BadQueryError, request_probes.RefusedError, request_probes.PlannerBusyError) as error:
        raise CommandError(f"The sweep was refused: {error}") from error


def follow(sweep: Sweep, console: Console) -> SweepReport:
    """Show the progress of all tests until they have ended; Ctrl-C cancels what has not begun."""
    stopped, name = threading.Event(), f"{sweep.source} to {sweep.destination}"
    before = signal.signal(signal.SIGINT, lambda number, frame: stopped.set())
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}")
    try:
        with Progress(*columns, console=console, transient=True) as bars:
            bar = bars.add_task(name, total=1.0, state="")
            while True:
                (current,) = report.reports([sweep], timezone.now())
                # How many have ended, and what the next one waits for.
                probes = [step.probe.probe for step in current.steps if step.probe]
                reasons = [probe.waits_because for probe in probes if probe.waits_because]
                is_running = any(probe.state == "running" for probe in probes)
                waits = "" if is_running or not reasons else f": {reasons[0]}"
                ended = len(current.steps) - current.open
                state = f"{ended} of {len(current.steps)} tests{waits}"
                bars.update(bar, completed=current.share, state=state)
                if current.ended:
                    return current
                if stopped.wait(LOOK_AGAIN_SECONDS):
                    count = request_probes.cancel_sweep(sweep, timezone.now())
                    (current,) = report.reports([sweep], timezone.now())
                    show(current, console)
                    message = f"Stopped: {count} tests were cancelled."
                    raise CommandError(message, returncode=130)
    finally:
        signal.signal(signal.SIGINT, before)


def show(ended: SweepReport, console: Console) -> None:
    table = Table(title=title(ended), title_justify="left")
    for head in (ended.sweep.get_variable_display(), "median MB/s", "n", "failed"):
        table.add_column(head, justify="left" if head != "median MB/s" else "right")
    for value in ended.values:
        median = three_digits(value.median) if value.rates.size else "-"
        table.add_row(value.value, median, str(value.rates.size), str(value.failed))
    console.print(table)
    console.print(conclusion(ended).words)
