"""YAML as text -> its nodes and its values, within bounds, and each error with its line.

A registry is a few lists of small mappings. Without bounds, lists in lists end the process, and
a few lines in which each repeats the one before tenfold take all the memory that there is.
"""

import re
from typing import Any

import yaml

DEEPEST = 20
# Twice what the 65535 endpoints that there can be take, with all their fields.
MOST_VALUES = 4_000_000
# PostgreSQL has no NUL in text, and UTF-8 no half of a surrogate pair.
NOT_KEPT = re.compile("[\0\ud800-\udfff]")
# What the constructors of PyYAML raise for a scalar that is none of its kind, besides their own.
NO_SCALAR = (ValueError, ArithmeticError, LookupError, AttributeError)
SHOWN_CHARACTERS = 40


class YamlError(Exception):
    """A text that is not the YAML that a registry can be; its sentence begins with the line."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(f"line {line}: {sentence}")


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
            raise YamlError(line, f"values are nested more than {DEEPEST} deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and is_alias:
            self._repeat(node, f"*{event.anchor}", line)
        elif node is not None and event.anchor is not None:
            self._sizes[id(node)] = self._values - before
        return node

    def _repeat(self, node: yaml.Node, name: str, line: int) -> None:
        if id(node) not in self._sizes:
            raise YamlError(line, f"{name} is inside what it stands for")
        self._values += self._sizes[id(node)]
        if self._values > MOST_VALUES:
            sentence = f"{name} repeats so much that the file has more than {MOST_VALUES:,} values"
            raise YamlError(line, sentence)

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if NOT_KEPT.search(node.value):
            line = node.start_mark.line + 1
            raise YamlError(
                line, "a text has a character that cannot be stored: NUL, or half a pair"
            )
        return node

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        for name, _ in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise YamlError(name.start_mark.line + 1, "a name cannot be a list or a mapping")
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, deep=deep)
        except NO_SCALAR as error:
            scalar = repr(node.value[:SHOWN_CHARACTERS])
            sentence = f"{scalar} cannot be read: if it is text, put it in quotes"
            raise YamlError(node.start_mark.line + 1, sentence) from error


def compose(text: str) -> yaml.Node | None:
    """Return the root of a document; raise YamlError."""
    try:
        return Loader(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        sentence = f"not YAML: it has the character {error.character!r}"
        raise YamlError(line, sentence) from error
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from error


def construct(root: yaml.Node) -> Any:  # noqa: ANN401 - whatever the file says
    """Return what a document stands for, merged mappings put into the nodes; raise YamlError."""
    try:
        return Loader("").construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from error


def _not_yaml(error: yaml.MarkedYAMLError) -> YamlError:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    return YamlError(line, f"not YAML: {error.problem}")
