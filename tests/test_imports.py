"""The house has one wall and imports go one way: this reads the imports and holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.imports import (
    ARCHITECTURE,
    drawn_into,
    floor,
    imported,
    imports,
    knots,
    modules,
    nodes,
    out_of_place,
    within,
    within_any,
)

# A module may import from its own layer and from those before it.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "sonar.units",
            "sonar.sizes",
            "sonar.windows",
            "sonar.redaction",
            "sonar.web_worker",
            "sonar.encodings",
            "sonar.tables",
            "sonar.addresses",
            "sonar.hosts",
            "sonar.database",
            "sonar.mover_catalogue",
            "sonar.mover_needs",
            "sonar.csv_text",
            "sonar.remote_names",
            "sonar.scitags",
            "sonar.role_rules",
            "sonar.whole_files",
        }
    ),
    frozenset({"sonar.movers", "sonar.redaction.servers", "sonar.credential_kinds"}),
    frozenset({"sonar.token_sources", "sonar.issuer_web", "sonar.issuer"}),
    frozenset({"sonar.token_cache"}),
    frozenset(
        {
            "sonar.models",
            "sonar.log",
            "sonar.redaction.tokens",
            "sonar.pg_copy",
            "sonar.credentials",
            "sonar.registry_cache",
            "sonar.service_rules",
        }
    ),
    frozenset(
        {
            "sonar.partitions",
            "sonar.segments",
            "sonar.redaction.texts",
            "sonar.company",
            "sonar.circuits",
            "sonar.credential_states",
            "sonar.queueing",
            "sonar.purposes",
            "sonar.made_up",
        }
    ),
    frozenset({"sonar.network_results"}),
    frozenset({"sonar.results", "sonar.sealing", "sonar.roles", "sonar.db_retry"}),
    frozenset({"sonar.endings"}),
    frozenset(
        {
            "sonar.heartbeats",
            "sonar.broker",
            "sonar.compatibility",
            "sonar.reclassing",
            "sonar.storage_hosts",
            "sonar.fireflies",
            "sonar.mesh_services",
            "sonar.mesh_proxies",
        }
    ),
    frozenset(
        {
            "sonar.tokens",
            "sonar.accounts",
            "sonar.saved_views",
            "sonar.searches",
            "sonar.outages",
            "sonar.changes",
            "sonar.offers",
        }
    ),
    frozenset(
        {
            "sonar.scheduler",
            "sonar.registry_file",
            "sonar.records",
            "sonar.transfer_request",
            "sonar.network_request",
        }
    ),
    frozenset(
        {
            "sonar.cleanup",
            "sonar.credential_checks",
            "sonar.probes",
            "sonar.sweep",
            "sonar.stopping",
        }
    ),
    frozenset(
        {
            "sonar.celery",
            "sonar.sending",
            "sonar.tasks",
            "sonar.request_probes",
            "sonar.experiments",
            "sonar.admin",
            "sonar.administration",
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
    "sonar.static_finders",
    "sonar.static_names",
    "sonar.dates",
    "sonar.dates.en",
    "sonar.dates.en.formats",
    "sonar",
}
PURE = ("django", "rest_framework", "sonar.models", "sonar.settings")


def layer(name: str) -> int | None:
    """Return the place in LAYERS of what names a module most closely."""
    places = [
        (len(package), place)
        for place, packages in enumerate(LAYERS)
        for package in packages
        if within(name, package)
    ]
    return max(places)[1] if places else None


SONAR = dict(modules("sonar"))
MATRIX = dict(modules("matrix"))
ALL = SONAR | MATRIX
SETTINGS = "sonar.settings"


def importing(names: Mapping[str, Path], others: Iterable[str]) -> list[str]:
    """Say which of these modules import any of the others, or what is in them."""
    return [
        f"{name} imports {one}"
        for name, path in names.items()
        for one in imported(path)
        if within_any(one, others)
    ]


def test_sonar_never_imports_matrix():
    assert importing(SONAR, ["matrix"]) == []


def test_imports_of_sonar_go_one_way():
    layers = {name: layer(name) for name in SONAR if name not in PROJECT_FILES}
    assert [name for name, own in layers.items() if own is None] == [], "give each one in LAYERS"
    later = [
        f"{name} imports {one}"
        for name, own in layers.items()
        for one in imported(SONAR[name])
        if own is not None and (layer(one) or 0) > own
    ]
    assert later == []


def test_movers_import_neither_the_orm_nor_settings():
    movers = {name: path for name, path in SONAR.items() if within(name, "sonar.movers")}
    assert importing(movers, PURE) == []


# What sends; matrix orders tests by the door sonar.request_probes.
SENDING = (
    "sonar.movers",
    "sonar.scheduler",
    "sonar.transfer_request",
    "sonar.cleanup",
    "sonar.probes",
    "sonar.sweep",
    "sonar.stopping",
    "sonar.tasks",
    "sonar.celery",
)


def test_matrix_reads_and_never_sends():
    assert importing(MATRIX, SENDING) == []


def test_imports_of_matrix_go_down_its_rooms():
    assert [name for name in MATRIX if floor(name) is None and name != "matrix"] == []
    assert out_of_place(imports("matrix")) == []


def test_no_modules_of_matrix_know_each_other():
    assert knots(imports("matrix")) == []


FORBIDDEN = (
    ("matrix.query.filters", "matrix.statistics.axes"),
    ("matrix.statistics.cells", "matrix.store.runs"),
    ("matrix.statistics.cells", "django.db.models"),
    ("matrix.store.runs", "matrix.answers.grid"),
    ("matrix.answers.grid", "matrix.plots.matrix"),
    ("matrix.answers.grid", "rest_framework.views"),
    ("matrix.plots.matrix", "matrix.http.negotiation"),
    ("matrix.http.negotiation", "matrix.plots.matrix"),
    ("matrix.http.exceptions", "matrix.api.base"),
    ("matrix.api.base", "matrix.pages.base"),
    ("matrix.pages.base", "matrix.api.base"),
    ("matrix.pages.base", "matrix.urls"),
    ("matrix.store.runs", "matrix.newcomer"),
)


def test_each_kind_of_forbidden_import_is_found():
    found = imports("matrix")
    for name, other in FORBIDDEN:
        found[name].add(other)
    assert sorted(out_of_place(found)) == sorted(
        f"{one} imports {other}" for one, other in FORBIDDEN
    )


def test_no_modules_of_sonar_know_each_other_not_even_for_their_types():
    assert knots(imports("sonar")) == []


def test_modules_that_know_each_other_for_their_types_alone_are_found(tmp_path):
    (tmp_path / "sonar").mkdir()
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sonar.{} import Thing\n"
    for name, other in (("rules", "rows"), ("rows", "rules")):
        (tmp_path / "sonar" / f"{name}.py").write_text(lines.format(other))
    found = {name: imported(path) for name, path in modules("sonar", tmp_path)}
    assert set(knots(found)) == {"sonar.rules", "sonar.rows"}


def test_two_modules_of_one_room_that_know_each_other_are_found():
    found = imports("matrix")
    found["matrix.query.filters"].add("matrix.query.forms")
    assert {"matrix.query.filters", "matrix.query.forms"} <= set(knots(found))


def test_the_picture_of_the_rooms_is_that_of_the_imports():
    text = ARCHITECTURE.read_text()
    assert drawn_into(text, imports("matrix")) == text, "run make picture"


def test_matrix_has_no_models():
    assert not [name for name in MATRIX if within(name, "matrix.models")]


def test_only_the_settings_read_the_environment():
    """The launcher may set variables for its children; what it wants to know, settings knows."""
    reads = [
        f"{name}: {ast.unparse(node)}"
        for name, path in ALL.items()
        if name != SETTINGS
        for node in nodes(path)
        if is_reading(node)
    ]
    assert reads == []


def is_reading(node: ast.AST) -> bool:
    """Say whether this reads a variable of the environment."""
    match node:
        case ast.Call(func=ast.Attribute(attr="get" | "getenv") as function):
            return ast.unparse(function) in {"os.environ.get", "os.getenv"}
        case ast.Subscript(ctx=ast.Load(), value=value):
            return ast.unparse(value) == "os.environ"
    return False


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ('os.environ["A"]', True),
        ('os.environ.get("A", "")', True),
        ('os.getenv("A")', True),
        ('os.environ["A"] = "1"', False),
        ('row.get("A")', False),
    ],
)
def test_each_reading_of_the_environment_is_seen(code: str, is_one: bool):
    assert any(map(is_reading, ast.walk(ast.parse(code)))) == is_one


def test_no_room_is_called_after_nothing():
    names = {name.rpartition(".")[2] for name in ALL}
    assert not names & {"utils", "helpers", "services", "common", "manager"}


# What modules were called once, in words that said too little or two things.
FORMER_NAMES = """
    openings standouts held_back under_way attempts wishes order_posting posting troubles ways
    methods payloads buckets places listing conditions both_ways between upcoming ends standings
    planned access throttles paging bodies view formats asked one_result kind order described
    shapes refusals patience http_patience orders signs leftovers sweeping room spent following
    error_texts binary
"""


def test_no_module_has_a_former_name():
    # Django looks for a module that is called so.
    own = {*ALL} - {"sonar.dates.en.formats"}
    assert not {name.rpartition(".")[2] for name in own} & set(FORMER_NAMES.split())


# What classes, functions, parameters and variables were called in such words. Not here is what
# means one thing where it stands: an order of rows, the kind of a highlight, a record of a file.
FORMER_IDENTIFIERS = """
    Links Finder Asked Known Made Told Spent Also Standout standouts held_back both_ways
    order_posting posting upcoming leftovers orders sweeping throttles error_texts spent one_result
    Wish wishes wished Wanted Between Measured Slowed UnderWay under_way Room openings Attempt
    attempt attempts troubles made way ways asked wanted told
"""
# Pronouns and participles, which say of no value what it is; in capitals and private ones too.
PRONOUNS = """
    one some found known given asked wanted made told which what
"""


def identifiers(tree: Iterable[ast.AST]) -> set[str]:
    """Return the names that a module gives to classes, functions, parameters and variables.

    And to attributes, exceptions that it catches, what it imports as something else and what a
    pattern captures.
    """
    names = set()
    for node in tree:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
    return names


def pronouns(tree: Iterable[ast.AST]) -> set[str]:
    """Return the identifiers of a module that are pronouns or participles."""
    words = set(PRONOUNS.split())
    return {name for name in identifiers(tree) if name.strip("_").lower() in words}


def test_nothing_is_named_by_a_former_word():
    words = set(FORMER_IDENTIFIERS.split())
    named = {
        f"{name}: {word}" for name, path in ALL.items() for word in identifiers(nodes(path)) & words
    }
    assert sorted(named) == []


def test_nothing_is_named_by_a_pronoun():
    named = {
        f"{name}: {word}"
        for name, path in ALL.items()
        if name != SETTINGS  # which keeps the names that it has
        for word in pronouns(nodes(path))
    }
    assert sorted(named) == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("lambda one: one.start", "one"),
        ("class Found: pass", "Found"),
        ("self._known = {}", "_known"),
        ("WHAT = 1", "WHAT"),
        ("async def f(*given, **told): pass", "given"),
        ("async def f(*given, **told): pass", "told"),
    ],
)
def test_each_writing_of_a_pronoun_is_seen(code: str, name: str):
    assert name in pronouns(ast.walk(ast.parse(code)))


def test_names_that_have_a_pronoun_in_them_are_no_pronouns():
    code = "from shutil import which\nis_known = known_version = not_found = what(asked=1).found"
    assert pronouns(ast.walk(ast.parse(code))) == set()


@pytest.mark.parametrize(
    "code",
    [
        "class Finder: pass",
        "def f(x, *, Finder=1): pass",
        "async def Finder(): pass",
        "[Finder for Finder in x]",
        "class A:\n    Finder: int",
        "def f():\n    with x as Finder: pass",
        "self.Finder = 1",
        "for x.Finder in y: pass",
        "f(Finder := 1)",
        "lambda *Finder: 1",
        "import x as Finder",
        "from x import y as Finder",
        "try: x()\nexcept E as Finder: pass",
        "match x:\n    case Finder: pass",
        "match x:\n    case A(y=Finder): pass",
        "match x:\n    case [*Finder]: pass",
        "match x:\n    case {**Finder}: pass",
    ],
)
def test_each_way_to_name_something_is_seen(code: str):
    assert "Finder" in identifiers(ast.walk(ast.parse(code)))


def test_no_two_classes_of_matrix_have_one_name():
    names = [
        node.name
        for name, path in MATRIX.items()
        # Django knows the class of a command by its name alone.
        if not within(name, "matrix.management.commands")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(names) == sorted(set(names))
