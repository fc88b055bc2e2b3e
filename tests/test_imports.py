"""The house has one wall and imports go one way: this reads the imports and holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent

# A module may import from its own layer and from those before it.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "sonar.units",
            "sonar.sizes",
            "sonar.windows",
            "sonar.log",
            "sonar.disguises",
            "sonar.web_worker",
            "sonar.encodings",
            "sonar.addresses",
            "sonar.csv_text",
        }
    ),
    frozenset({"sonar.movers", "sonar.redaction"}),
    frozenset({"sonar.models", "sonar.binary", "sonar.credentials"}),
    frozenset(
        {
            "sonar.partitions",
            "sonar.segments",
            "sonar.error_texts",
            "sonar.company",
            "sonar.circuits",
            "sonar.queueing",
        }
    ),
    frozenset({"sonar.results", "sonar.sealing", "sonar.roles", "sonar.patience"}),
    frozenset(
        {
            "sonar.signs",
            "sonar.broker",
            "sonar.compatibility",
            "sonar.reclassing",
            "sonar.storage_hosts",
        }
    ),
    frozenset({"sonar.tokens"}),
    frozenset({"sonar.scheduler", "sonar.registry_file", "sonar.records", "sonar.orders"}),
    frozenset({"sonar.leftovers", "sonar.probes", "sonar.sweeping", "sonar.stopping"}),
    frozenset(
        {
            "sonar.celery",
            "sonar.tasks",
            "sonar.ordering",
            "sonar.admin",
            "sonar.management",
            "sonar.sandbox",
        }
    ),
)
# The project package itself: settings and routes name things by string and import little.
PROJECT_FILES = {
    "sonar.settings",
    "sonar.urls",
    "sonar.wsgi",
    "sonar.gunicorn_conf",
    "sonar.apps",
    "sonar",
}
PURE = ("django", "rest_framework", "sonar.models", "sonar.settings")


def modules(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((PROJECT / package).rglob("*.py")):
        name = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
        if "migrations" not in name:
            yield name, path


def imported(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def layer(name: str) -> int | None:
    places = [
        place
        for place, packages in enumerate(LAYERS)
        if any(within(name, package) for package in packages)
    ]
    return places[0] if places else None


SONAR = dict(modules("sonar"))
MATRIX = dict(modules("matrix"))


@pytest.mark.parametrize("name", SONAR)
def test_sonar_never_imports_matrix(name: str):
    assert not [one for one in imported(SONAR[name]) if within(one, "matrix")]


@pytest.mark.parametrize("name", [name for name in SONAR if name not in PROJECT_FILES])
def test_imports_of_sonar_go_one_way(name: str):
    own = layer(name)
    assert own is not None, f"{name} has no layer: give it one in LAYERS"
    later = [one for one in imported(SONAR[name]) if (layer(one) or 0) > own]
    assert later == []


@pytest.mark.parametrize("name", [name for name in SONAR if within(name, "sonar.movers")])
def test_movers_import_neither_the_orm_nor_settings(name: str):
    assert not [one for one in imported(SONAR[name]) if any(within(one, pure) for pure in PURE)]


@pytest.mark.parametrize("name", MATRIX)
def test_matrix_reads_and_never_sends(name: str):
    sending = ["sonar.movers", "sonar.scheduler", "sonar.orders", "sonar.leftovers", "sonar.probes"]
    sending += ["sonar.sweeping", "sonar.stopping", "sonar.tasks", "sonar.celery"]
    assert not [one for one in imported(MATRIX[name]) if any(within(one, it) for it in sending)]


def test_matrix_has_no_models():
    assert not [name for name in MATRIX if within(name, "matrix.models")]


@pytest.mark.parametrize("name", [*SONAR, *MATRIX])
def test_only_the_settings_read_the_environment(name: str):
    """The launcher may set variables for its children; what it wants to know, settings knows."""
    if name == "sonar.settings":
        return
    tree = ast.parse(({**SONAR, **MATRIX})[name].read_text())
    reads = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Call) and ast.unparse(node.func) in {"os.environ.get", "os.getenv"}
        )
        or (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and ast.unparse(node.value) == "os.environ"
        )
    ]
    assert reads == []


def test_no_room_is_called_after_nothing():
    names = {name.rpartition(".")[2] for name in [*SONAR, *MATRIX]}
    assert not names & {"utils", "helpers", "services", "common", "manager"}
