"""The registry as a YAML file: read it, check it whole, and make the database say the same."""

from sonar.registry_file.loading import Changes, describe, load
from sonar.registry_file.reading import RegistryError, parse, read
from sonar.registry_file.sections import Section

__all__ = ["Changes", "RegistryError", "Section", "describe", "load", "parse", "read"]
