"""Compare the registry with CRIC, Rucio or a storage's own report, and bring it in line."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from sonar.database import actor
from sonar.management.base import QuickCommand
from sonar.models import Mesh
from sonar.registry.topology import catalogue, proposals
from sonar.registry.topology.applying import apply
from sonar.registry.topology.changes import Changes
from sonar.registry.topology.comparing import compare
from sonar.registry.topology.describing import described
from sonar.registry.topology.reading import TopologyError


class Command(QuickCommand):
    help = (
        "Compare the registry with the sites and endpoints of a source (diff). Apply all changes "
        "(apply), or propose them to operators on a page (propose). Nothing is deleted, and values "
        "set manually are kept. docs/topology.md describes the sources."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        sources = "; ".join(f"{source}: {words}" for source, words in catalogue.ANSWERS.items())
        parser.add_argument(
            "verb",
            choices=("diff", "apply", "propose"),
            help="show the changes, apply them, or propose them to operators",
        )
        parser.add_argument(
            "--from",
            dest="source",
            required=True,
            choices=list(catalogue.SOURCES),
            help=f"source type: {sources}",
        )
        parser.add_argument(
            "places",
            metavar="FILE-or-URL",
            nargs="+",
            help="files with the source's responses, or https:// URLs to fetch them from",
        )
        parser.add_argument(
            "--ca-file",
            default=settings.SONAR_CA_BUNDLE,
            help="CA certificates to trust, in PEM (default: SONAR_CA_BUNDLE)",
        )
        parser.add_argument(
            "--join",
            action="store_true",
            help="put new endpoints into use immediately; meshes that include all endpoints then "
            "test the new ones",
        )
        parser.add_argument(
            "--retire",
            action="store_true",
            help="also retire endpoints that are no longer in the source",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        places: list[str] = options["places"]
        try:
            topology = catalogue.read(options["source"], places, options["ca_file"])
        except TopologyError as error:
            problems = "\n".join(f"  {problem}" for problem in error.problems)
            raise CommandError(f"Nothing was changed:\n{problems}") from error
        if options["verb"] == "propose":
            proposals.keep(topology, places, timezone.now())
            self.stdout.write(f"{topology.source}: proposed on /operations/topology/")
            return
        work = apply if options["verb"] == "apply" else compare
        with actor.acting("refresh", f"manage.py topology apply --from {topology.source}"):
            changes = work(topology, joins=options["join"], retires=options["retire"])
        self.stdout.write(described(changes))
        if sentence := next_step(changes, is_applied=work is apply):
            self.stdout.write(f"\n{sentence}")


def next_step(changes: Changes, *, is_applied: bool) -> str:
    count = len(changes.idle)
    if changes and not is_applied:
        new = "; add --join to put new endpoints into use immediately" if count else ""
        return f"Nothing was changed. Run `topology apply` to apply the changes{new}."
    if count:
        idle = "1 endpoint is" if count == 1 else f"{count} endpoints are"
        return f"{idle} not in use and not tested. To change this, run `topology apply --join`."
    if not Mesh.objects.exists():
        return "No mesh is registered, so no tests run. docs/a-grid.md contains an example."
    return ""
