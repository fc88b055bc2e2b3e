"""The registry as a YAML file: read it, check it whole, and make the database say the same."""

from sonar.registry.file.loading import Changes, describe, load
from sonar.registry.file.reading import RegistryError, parse, read
from sonar.registry.file.sections import Section

__all__ = ["Changes", "RegistryError", "Section", "describe", "load", "parse", "read"]
