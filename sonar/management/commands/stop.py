"""`manage.py stop`: stop all tests or a single one, see whether they are, and start them again."""

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from sonar.management.base import QuickCommand
from sonar.models import AllTests, Probe
from sonar.notation.windows import parse_time
from sonar.ordering import request_probes

A_COMMAND = "an operator, with manage.py stop"


class Command(QuickCommand):
    help = "Stop all tests, cancel one test, show whether tests are stopped, or resume them."

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        show = steps.add_parser(
            "show", help="show whether all tests are stopped, and list running tests"
        )
        show.set_defaults(carry_out=self.show)
        stop = steps.add_parser(
            "all", help="prevent all tests from starting, including on-demand tests"
        )
        stop.add_argument("reason", help="reason, shown to everyone")
        stop.add_argument(
            "--until", metavar="TIME", help="end time in UTC, for example 2026-11-20T04:00:00Z"
        )
        stop.add_argument("--running", action="store_true", help="also cancel running tests")
        stop.set_defaults(carry_out=self.stop_all)
        resume = steps.add_parser("resume", help="allow tests to start again")
        resume.set_defaults(carry_out=self.resume)
        cancel = steps.add_parser("test", help="cancel one waiting or running test")
        cancel.add_argument("id", type=UUID, help="ID of the test, as printed by `show`")
        cancel.set_defaults(carry_out=self.cancel)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        options["carry_out"](options)

    def show(self, options: dict[str, Any]) -> None:
        stopped = AllTests.read().sentence(timezone.now())
        self.stdout.write(f"{stopped or 'Tests may start'}.")
        running = Probe.objects.filter(state=Probe.State.RUNNING).order_by("started_at", "id")
        for probe in running.select_related("source", "destination", "size_class"):
            self.stdout.write(f"{probe.id}  {probe}")

    def stop_all(self, options: dict[str, Any]) -> None:
        now, running = timezone.now(), options["running"]
        try:
            until = parse_time(options["until"]) if options["until"] else None
            count = request_probes.stop_all(options["reason"], until, None, now, running=running)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except ValueError as error:
            raise CommandError(f"--until {options['until']}: {error}") from error
        self.stdout.write(f"{AllTests.read().sentence(now)}.")
        if running:
            self.stdout.write(f"Running tests being cancelled: {count}.")

    def resume(self, options: dict[str, Any]) -> None:
        resumed = request_probes.resume_all(timezone.now())
        self.stdout.write("Tests can start again." if resumed else "Tests were not stopped.")

    def cancel(self, options: dict[str, Any]) -> None:
        try:
            ran = request_probes.cancel(options["id"], timezone.now(), A_COMMAND)
        except request_probes.NotCancelledError as error:
            raise CommandError(str(error)) from error
        ends = "is being cancelled" if ran else "was cancelled before it started"
        self.stdout.write(f"The test {options['id']} {ends}.")
