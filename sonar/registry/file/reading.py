"""A registry file as text -> its sections, and the line on which each value stands.

A registry is a few lists of small mappings. Without bounds, lists in lists end the process, and
a few lines in which each repeats the one before tenfold take all the memory that there is.
"""

import re
from collections.abc import Iterator
from typing import IO, Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sonar.notation.renamed import NAMES
from sonar.registry.file.sections import RegistryFile

DEEPEST = 20
# Twice what the 65535 endpoints that there can be take, with all their fields.
MOST_VALUES = 4_000_000
# PostgreSQL has no NUL in text, and UTF-8 no half of a surrogate pair.
NOT_KEPT = re.compile("[\0\ud800-\udfff]")
# What the constructors of PyYAML raise for a scalar that is none of its kind, besides their own.
NO_SCALAR = (ValueError, ArithmeticError, LookupError, AttributeError)
SHOWN_CHARACTERS = 40


# Twice what the 65535 endpoints that there can be take, with all their fields.
MOST_CHARACTERS = 50_000_000
Place = tuple[str | int, ...]


class RegistryError(Exception):
    """A registry file that cannot be loaded: one sentence for each place that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def at_line(line: int, sentence: str) -> RegistryError:
    return RegistryError([f"line {line}: {sentence}"])


class Loader(yaml.SafeLoader):
    """PyYAML's safe one, which counts how deep it is, and what aliases repeat."""

    def __init__(self, text: str) -> None:
        self._depth = self._values = 0
        # How many values each node with an anchor stands for; 0 while it is not whole.
        self._sizes: dict[int, int] = {}
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line, before = event.start_mark.line + 1, self._values
        is_alias = isinstance(event, yaml.AliasEvent)
        self._values += 1
        self._depth += 1
        if self._depth > DEEPEST:
            raise at_line(line, f"values are nested more than {DEEPEST} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and is_alias:
            self._repeat(node, f"*{event.anchor}", line)
        elif node is not None and event.anchor is not None:
            self._sizes[id(node)] = self._values - before
        return node

    def _repeat(self, node: yaml.Node, name: str, line: int) -> None:
        if id(node) not in self._sizes:
            raise at_line(line, f"the alias {name} refers to a value that contains it")
        self._values += self._sizes[id(node)]
        if self._values > MOST_VALUES:
            sentence = (
                f"with the alias {name} expanded, the file has more than {MOST_VALUES:,} values"
            )
            raise at_line(line, sentence)

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if NOT_KEPT.search(node.value):
            line = node.start_mark.line + 1
            raise at_line(
                line, "a string contains NUL or half a surrogate pair, which cannot be stored"
            )
        return node

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        for name, _ in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise at_line(name.start_mark.line + 1, "a key cannot be a list or a mapping")
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, deep=deep)
        except NO_SCALAR as error:
            scalar = repr(node.value[:SHOWN_CHARACTERS])
            sentence = f"{scalar} cannot be read: if it is text, put it in quotes"
            raise at_line(node.start_mark.line + 1, sentence) from error


class Lines:
    """Where in the file each value stands."""

    def __init__(self, root: yaml.Node | None) -> None:
        self._root = root
        # The children of each mapping that was looked into, by their names.
        self._children: dict[int, dict[str, yaml.Node]] = {}
        self.repeated = list(_repeated_keys(root)) if root else []

    def name(self, place: Place) -> str:
        """Write a place as `endpoints[2].base_url (line 14)`; the nearest line that exists."""
        node, line = self._root, 1
        for step in place:
            node = self._child(node, step)
            if node is None:
                break
            line = node.start_mark.line + 1
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        return f"{path.lstrip('.') or 'the file'} (line {line})"

    def _child(self, node: yaml.Node | None, step: str | int) -> yaml.Node | None:
        if isinstance(node, yaml.MappingNode):
            if id(node) not in self._children:
                self._children[id(node)] = {key.value: value for key, value in node.value[::-1]}
            return self._children[id(node)].get(str(step))
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


def composed(text: str) -> tuple[object, Lines]:
    """Return what a document stands for, merged mappings put into the nodes, and its lines."""
    try:
        root = Loader(text).get_single_node()
        lines = Lines(root)
        if lines.repeated:
            raise RegistryError(lines.repeated)
        return Loader("").construct_document(root) if root else None, lines
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise at_line(
            line, f"not valid YAML: the character {error.character!r} is not allowed"
        ) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        # `cloud: !UK` is a tag of YAML.
        is_tag = isinstance(error, yaml.constructor.ConstructorError)
        advice = ": put text that begins with ! in quotes" if is_tag else ""
        raise at_line(line, f"not valid YAML: {error.problem}{advice}") from error


def _sentence(wrong: ErrorDetails) -> str:
    if wrong["type"] == "extra_forbidden" and (now := NAMES.get(str(wrong["loc"][-1]))):
        return f"this key is now called {now}"
    return wrong["msg"].removeprefix("Value error, ")


def parse(text: str) -> tuple[RegistryFile, Lines]:
    """Read a registry file; raise RegistryError naming every place that has a wrong shape."""
    if len(text) > MOST_CHARACTERS:
        raise RegistryError([f"the file has more than {MOST_CHARACTERS:,} characters"])
    document, lines = composed(text)
    if document is None:
        raise RegistryError(["the file is empty: it needs sites, endpoints or meshes"])
    try:
        return RegistryFile.model_validate(document), lines
    except ValidationError as error:
        raise RegistryError(
            [f"{lines.name(tuple(wrong['loc']))}: {_sentence(wrong)}" for wrong in error.errors()]
        ) from error
