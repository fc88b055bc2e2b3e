"""Load sites, endpoints and meshes from a YAML file."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from sonar.database import actor
from sonar.management.base import QuickCommand
from sonar.obstacles import catalogue as obstacles
from sonar.registry import file as registry_file
from sonar.registry import mesh_size
from sonar.results import reclass


class Command(QuickCommand):
    help = (
        "Add or update the sites, endpoints, meshes and other registry objects that a YAML "
        "file describes. The file is loaded completely or not at all. Objects that the file does "
        "not contain are not changed. docs/registry.md describes the file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="YAML file, or - for standard input")
        parser.add_argument(
            "--reset",
            action="store_true",
            help="also overwrite values that were changed on pages, even if the file has not "
            "changed",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        name: str = options["file"]
        try:
            if name == "-":
                text = registry_file.read(sys.stdin)
            else:
                with Path(name).open(encoding="utf-8") as file:
                    text = registry_file.read(file)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"Cannot read {name}: {error}") from error
        try:
            with actor.acting("file", f"manage.py load_registry {Path(name).name}"):
                changes = registry_file.load(text, reset=options["reset"])
        except registry_file.RegistryError as error:
            problems = "\n".join(f"  {problem}" for problem in error.problems)
            raise CommandError(
                f"{name} was not loaded; nothing was changed:\n{problems}"
            ) from error
        self.stdout.write(registry_file.describe(changes))
        for line in mesh_size.lines(changes.names("meshes")):
            self.stdout.write(line)
        if changes.bounds_moved and (notice := reclass.notice(reclass.outside())):
            self.stdout.write(notice)
        if notice := obstacles.notice(timezone.now()):
            self.stdout.write(notice)
