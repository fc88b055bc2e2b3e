"""The recipes of docs/extending.md, and their code as modules for the time of a test."""

import re
import sys
import textwrap
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")


def recipe(title: str) -> str:
    """Return what stands below a heading."""
    _, _, below = PAGE.partition(f"\n## {title}\n")
    assert below, f"docs/extending.md has no recipe “{title}”"
    return below.partition("\n## ")[0]


def block(title: str, path: str) -> str:
    """Return the code that a recipe puts into a file: the first block after it is named."""
    pattern = rf"`{re.escape(path)}`.*?```(?:python|html|yaml|json)\n(.*?)\n *```"
    found = re.search(pattern, recipe(title), re.DOTALL)
    assert found, f"the recipe “{title}” has no block for {path}"
    return textwrap.dedent(found[1]) + "\n"


class Tree:
    """New modules and templates, beside those of the project for as long as a test lasts."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory, self.patch = directory, patch

    def module(self, title: str, path: str) -> ModuleType:
        """Import a module of a recipe by the name that its path gives it."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block(title, path))
        name = path.removesuffix(".py").replace("/", ".")
        spec = util.spec_from_file_location(name, file)
        assert spec
        assert spec.loader
        module = util.module_from_spec(spec)
        self.patch.setitem(sys.modules, name, module)
        package, _, leaf = name.rpartition(".")
        self.patch.setattr(import_module(package), leaf, module, raising=False)
        spec.loader.exec_module(module)
        return module

    def template(self, title: str, path: str) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_text(block(title, path))

    def route(self, title: str, path: str, **names: object) -> list[object]:
        """Return the routes of a recipe's line for a file of routes."""
        urls = vars(import_module(path.removesuffix(".py").replace("/", ".")))
        return list(eval(f"[{block(title, path)}]", urls | names))
