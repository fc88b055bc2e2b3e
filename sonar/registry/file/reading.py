"""A registry file as text -> its sections, and the line on which each value stands."""

from collections.abc import Iterator
from typing import IO

import yaml
from pydantic import ValidationError

from sonar.registry.file.sections import RegistryFile
from sonar.registry.file.yaml_file import YamlError, compose, construct

# Twice what the 65535 endpoints that there can be take, with all their fields.
MOST_CHARACTERS = 50_000_000
Place = tuple[str | int, ...]


class RegistryError(Exception):
    """A registry file that cannot be loaded: one sentence for each place that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Lines:
    """Where in the file each value stands."""

    def __init__(self, root: yaml.Node | None) -> None:
        self._root = root
        self.repeated = list(_repeated_keys(root)) if root else []

    def name(self, place: Place) -> str:
        """Write a place as `endpoints[2].base_url (line 14)`; the nearest line that exists."""
        node, line = self._root, 1
        for step in place:
            node = _child(node, step)
            if node is None:
                break
            line = node.start_mark.line + 1
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        return f"{path.lstrip('.') or 'the file'} (line {line})"


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child: yaml.Node = node.value[step]
        return child
    return None


def _repeated_keys(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield f"{key.value!r} appears twice in one mapping (line {key.start_mark.line + 1})"
            seen.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(value)


def read(file: IO[str]) -> str:
    """Return the text of a file, or of one that is too long a little more than it may have."""
    return file.read(MOST_CHARACTERS + 1)


def parse(text: str) -> tuple[RegistryFile, Lines]:
    """Read a registry file; raise RegistryError naming every place that has a wrong shape."""
    if len(text) > MOST_CHARACTERS:
        raise RegistryError([f"the file has more than {MOST_CHARACTERS:,} characters"])
    try:
        root = compose(text)
        lines = Lines(root)
        if lines.repeated:
            raise RegistryError(lines.repeated)
        document = construct(root) if root else None
    except YamlError as error:
        raise RegistryError([str(error)]) from error
    if document is None:
        raise RegistryError(["the file is empty: it needs sites, endpoints or meshes"])
    try:
        return RegistryFile.model_validate(document), lines
    except ValidationError as error:
        raise RegistryError(
            [
                f"{lines.name(tuple(wrong['loc']))}: {wrong['msg'].removeprefix('Value error, ')}"
                for wrong in error.errors()
            ]
        ) from error
