"""What a worker may need to run a mover: Python packages, programs, settings."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from shutil import which
from typing import Protocol

from django.conf import settings


class Need(Protocol):
    """Something that a worker needs to run a mover."""

    @property
    def label(self) -> str:
        """Return what it is, as a table says it."""

    def missing(self) -> str:
        """Say in a few words what is not there; empty if it is."""


@dataclass(frozen=True)
class PythonPackage:
    """A package that Python can import, not one within another."""

    module: str

    @property
    def label(self) -> str:
        return f"the Python package {self.module}"

    def missing(self) -> str:
        return "" if find_spec(self.module) else f"{self.label} is not installed"


@dataclass(frozen=True)
class Program:
    """A program on the worker's search path, and what Debian calls the package that has it."""

    name: str
    debian: str

    @property
    def label(self) -> str:
        return f"the program {self.name} (Debian's {self.debian})"

    def missing(self) -> str:
        return "" if which(self.name) else f"{self.label} is not on its PATH"


@dataclass(frozen=True)
class Setting:
    """A setting that a worker has to have."""

    name: str

    @property
    def label(self) -> str:
        return f"the setting {self.name}"

    def missing(self) -> str:
        return "" if getattr(settings, self.name) else f"{self.label} is empty"
