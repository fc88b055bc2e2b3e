"""The check of an endpoint in the foreground, step by step."""

from typing import Any
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console

from sonar.credentials import rules
from sonar.management.base import QuickCommand
from sonar.management.commands.probe import named
from sonar.models import Credential, Endpoint
from sonar.models.registry import HOST_SENTENCE, has_host
from sonar.notation import addresses
from sonar.notation.check_steps import STEPS, CheckStep
from sonar.obstacles import worker_movers
from sonar.ordering import request_checks
from sonar.work import endpoint_checks

WIDTH = max(len(step.label) for step in STEPS.values())
WORD_WIDTH = len("not checked")
UNREGISTERED = "this storage"


class Command(QuickCommand):
    help = (
        "Check the host name, port, certificate, credential and clock of a storage endpoint. "
        "Sonar writes a 100 kB file to sonar/incoming/ below the base URL, reads it back and "
        "deletes it. It also checks whether the server supports third-party copy. Each step is "
        "printed with its result and, on failure, advice. NAME is a registered endpoint, whose "
        "page then shows the result. With --base-url, the storage does not have to be registered, "
        "and the result is not stored. Exit code 0: no problems; 1: at least one problem."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument(
            "name", nargs="?", metavar="NAME", help="name of a registered endpoint"
        )
        subject.add_argument("--base-url", metavar="URL", help="base URL of unregistered storage")
        parser.add_argument(
            "--credential",
            metavar="NAME",
            help="(with --base-url) registered credential to use",
        )
        parser.add_argument(
            "--data-host",
            action="append",
            default=[],
            metavar="HOST",
            help="(with --base-url) data host to which the server may redirect, like "
            "st-*.example.org:8443; repeatable",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        console = Console(highlight=False, soft_wrap=True)
        if options["name"]:
            if options["credential"] or options["data_host"]:
                raise CommandError("--credential and --data-host require --base-url.")
            steps = registered(named(Endpoint, options["name"]), console)
        else:
            steps = unregistered(options, console)
        wrong = [step for step in steps if step.is_wrong]
        if wrong:
            names = ", ".join(step.label.lower() for step in wrong)
            raise CommandError(f"Problems found: {names}.")
        console.print("No problems found.")


def registered(endpoint: Endpoint, console: Console) -> list[CheckStep]:
    """Check a registered endpoint in this process, and keep the result in its row."""
    if why := worker_movers.elsewhere([endpoint.vantage]):
        raise CommandError(f"Not checked: {why}")
    try:
        check = request_checks.begin(endpoint, None, timezone.now(), here=True)
    except request_checks.CheckRefusedError as error:
        raise CommandError(f"Not checked: {error}") from error
    return endpoint_checks.check_registered(endpoint, check.run, lambda step: show(step, console))


def unregistered(options: dict[str, Any], console: Console) -> list[CheckStep]:
    """Check what is in no row, as the options describe it; CommandError for what cannot be.

    Nothing is kept but what could not be deleted there.
    """
    name = options["credential"]
    endpoint = Endpoint(
        name=UNREGISTERED,
        base_url=options["base_url"],
        credential=named(Credential, name) if name else None,
        data_hosts=options["data_host"],
    )
    if wrong := problems(endpoint):
        raise CommandError("\n".join(f"{OPTIONS[field]}: {wrong[field]}" for field in wrong))
    run = uuid4()
    outcome = endpoint_checks.check(endpoint, run, lambda step: show(step, console))
    if not outcome.is_clean:
        left = endpoint_checks.files_of(run)[0]
        console.print(f"The test file could not be deleted; delete it manually: {left}")
    return outcome.steps


OPTIONS = {"base_url": "--base-url", "data_hosts": "--data-host", "credential": "--credential"}


def problems(endpoint: Endpoint) -> dict[str, str]:
    try:
        endpoint.clean_fields(exclude={field.name for field in Endpoint._meta.fields} - {*OPTIONS})
    except ValidationError as error:
        return {field: " ".join(texts) for field, texts in error.message_dict.items()}
    if not has_host(endpoint.base_url):
        return {"base_url": HOST_SENTENCE}
    if sentence := addresses.problem(endpoint.base_url):
        return {"base_url": sentence}
    return rules.problems(endpoint)


def show(step: CheckStep, console: Console) -> None:
    word = step.state.upper() if step.is_wrong else step.state
    console.print(f"{word:<{WORD_WIDTH}}  {step.label:<{WIDTH}}  {step.seen}", markup=False)
    if step.advice:
        console.print(f"{'':<{WORD_WIDTH}}  {'':<{WIDTH}}  -> {step.advice}", markup=False)
