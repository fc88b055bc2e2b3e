"""The house has one wall and imports go one way: this reads the imports and holds it."""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.imports import (
    ARCHITECTURE,
    HOUSES,
    STATISTICS,
    House,
    deepest,
    drawn,
    imported,
    imports,
    knots,
    modules,
    nodes,
    within,
    within_any,
)
from tests.imports import MATRIX as MATRIX_HOUSE

SONAR = dict(modules("sonar"))
MATRIX = dict(modules("matrix"))
ALL = SONAR | MATRIX
SETTINGS = "sonar.settings"
# What asks whether a worker has a setting that a mover needs is in the room of movers.
NEEDS = "sonar.movers.catalogue"
MOST_ENTRIES = {"sonar": 27, "matrix": 13}
DEEPEST = 21

each_house = pytest.mark.parametrize("house", HOUSES, ids=lambda house: house.package)


def importing(names: Mapping[str, Path], others: Iterable[str]) -> list[str]:
    """Say which of these modules import any of the others, or what is in them."""
    return [
        f"{name} imports {one}"
        for name, path in names.items()
        for one in imported(path)
        if within_any(one, others)
    ]


def test_sonar_never_imports_matrix_which_has_no_models():
    assert importing(SONAR, ["matrix"]) == []
    assert not [name for name in MATRIX if within(name, "matrix.models")]


def test_movers_import_neither_the_orm_nor_settings():
    movers = {name: path for name, path in SONAR.items() if within(name, "sonar.movers")}
    del movers[NEEDS]
    assert importing(movers, ("django", "rest_framework", "sonar.models", SETTINGS)) == []


# What sends; matrix orders tests by the door sonar.ordering.request_probes.
# The catalogue says which movers there are, and loads none.
DESCRIBING = re.compile(r" sonar\.movers(\.catalogue(\.\w+)?)?$")
SENDING = ("sonar.movers", "sonar.scheduler", "sonar.work", "sonar.tasks", "sonar.celery")


def test_matrix_reads_and_never_sends():
    lines = importing(MATRIX, SENDING)
    assert [line for line in lines if not DESCRIBING.search(line)] == []


@pytest.mark.parametrize("house", [*HOUSES, STATISTICS], ids=lambda house: house.package)
def test_imports_go_down_the_rooms(house: House):
    found = imports(house.package)
    assert [name for name in found if house.floor(name) is None] == [house.package]
    assert house.out_of_place(found) == []


@each_house
def test_no_modules_know_each_other_not_even_for_their_types(house: House):
    assert knots(imports(house.package)) == []


@each_house
def test_the_top_floor_of_a_house_is_seen_at_once(house: House):
    entries = {name.split(".")[1] for name in imports(house.package) if "." in name}
    assert len(entries) <= MOST_ENTRIES[house.package]


def test_from_the_routes_to_the_ground_it_is_not_far():
    way = deepest(imports("sonar") | imports("matrix"))
    assert len(way) <= DEEPEST, way


def test_the_deepest_chain_is_found():
    chain = {"a": {"b", "c"}, "b": {"d"}, "c": set(), "d": {"c", "elsewhere"}}
    assert deepest(chain) == ["a", "b", "d", "c"]


FORBIDDEN = (
    ("matrix.query.filters", "matrix.statistics.cells.axes"),
    ("matrix.statistics.cells.cells", "matrix.store.runs"),
    ("matrix.statistics.cells.cells", "django.db.models"),
    ("matrix.store.runs", "matrix.answers.matrix.grid"),
    ("matrix.answers.matrix.grid", "matrix.plots.matrix"),
    ("matrix.answers.matrix.grid", "rest_framework.views"),
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
    assert sorted(MATRIX_HOUSE.out_of_place(found)) == sorted(
        f"{one} imports {other}" for one, other in FORBIDDEN
    )


def test_modules_of_one_room_that_know_each_other_be_it_for_their_types_alone_are_found(tmp_path):
    (tmp_path / "sonar").mkdir()
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sonar.{} import Thing\n"
    for name, other in (("rules", "rows"), ("rows", "rules")):
        (tmp_path / "sonar" / f"{name}.py").write_text(lines.format(other))
    found = {name: imported(path) for name, path in modules("sonar", tmp_path)}
    assert set(knots(found)) == {"sonar.rules", "sonar.rows"}
    found = imports("matrix")
    found["matrix.query.filters"].add("matrix.query.forms")
    assert {"matrix.query.filters", "matrix.query.forms"} <= set(knots(found))


def test_the_pictures_of_the_rooms_are_those_of_the_imports():
    text = ARCHITECTURE.read_text()
    assert drawn(text) == text, "run make picture"


def test_only_the_settings_read_the_environment():
    """The launcher may set variables for its children; what it wants to know, settings knows."""
    reads = [
        f"{name}: {ast.unparse(node)}"
        for name, path in ALL.items()
        if not within(name, SETTINGS)
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


def test_each_reading_of_the_environment_is_seen():
    reads = ('os.environ["A"]', 'os.environ.get("A", "")', 'os.getenv("A")')
    for code in (*reads, 'os.environ["A"] = "1"', 'row.get("A")'):
        assert any(map(is_reading, ast.walk(ast.parse(code)))) == (code in reads), code


# What modules were called once, in words that said too little or two things.
FORMER_NAMES = """
    openings standouts held_back under_way attempts wishes order_posting posting troubles ways
    methods payloads buckets places listing both_ways between upcoming ends standings
    planned access throttles paging bodies view formats asked one_result kind order described
    shapes refusals patience http_patience orders signs leftovers sweeping room spent following
    error_texts binary
"""


def test_no_module_has_a_former_name_and_no_room_is_called_after_nothing():
    # Django looks for a module that is called so.
    own = {name.rpartition(".")[2] for name in {*ALL} - {"sonar.notation.dates.en.formats"}}
    assert not own & set(FORMER_NAMES.split())
    assert not own & {"utils", "helpers", "services", "common", "manager"}


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
        if not within(name, SETTINGS)  # which keeps the names that it has
        for word in pronouns(nodes(path))
    }
    assert sorted(named) == []


def test_each_writing_of_a_pronoun_is_seen_and_names_that_have_one_in_them_are_none():
    for code, names in (
        ("lambda one: one.start", {"one"}),
        ("class Found: pass", {"Found"}),
        ("self._known = {}", {"_known"}),
        ("WHAT = 1", {"WHAT"}),
        ("async def f(*given, **told): pass", {"given", "told"}),
        ("from shutil import which\nis_known = known_version = not_found = what(asked=1).x", set()),
    ):
        assert pronouns(ast.walk(ast.parse(code))) == names, code


WAYS = """
    class Finder: pass
    def f(x, *, Finder=1): pass
    async def Finder(): pass
    [Finder for Finder in x]
    class A: Finder: int
    with x as Finder: pass
    self.Finder = 1
    for x.Finder in y: pass
    f(Finder := 1)
    lambda *Finder: 1
    import x as Finder
    from x import y as Finder
    try: x()|except E as Finder: pass
    match x:|    case Finder: pass
    match x:|    case A(y=Finder): pass
    match x:|    case [*Finder]: pass
    match x:|    case {**Finder}: pass
"""


@pytest.mark.parametrize("code", textwrap.dedent(WAYS).strip().splitlines())
def test_each_way_to_name_something_is_seen(code: str):
    assert "Finder" in identifiers(ast.walk(ast.parse(code.replace("|", "\n"))))


HOUSEHOLD = re.compile(r"(sonar|matrix|tests)(\.|$)")


def programs(path: Path) -> Iterator[ast.Module]:
    """Yield the texts of a module that are Python themselves, as other processes are given it."""
    for node in nodes(path):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "import" in node.value
        ):
            with suppress(SyntaxError, ValueError):  # a text, or one with a null in it
                yield ast.parse(textwrap.dedent(node.value))


def named(program: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what a program imports of ours: modules, and names in them."""
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names if HOUSEHOLD.match(one.name))
        elif isinstance(node, ast.ImportFrom) and HOUSEHOLD.match(node.module or ""):
            yield from ((str(node.module), one.name) for one in node.names)


def lacking(program: ast.Module, paths: Mapping[str, Path]) -> list[str]:
    """Say which modules a program imports, or names from them, there are not."""
    return [
        f"{module} {name}".strip()
        for module, name in named(program)
        if module not in paths
        or (name and f"{module}.{name}" not in paths and name not in names_in(paths[module]))
    ]


def names_in(path: Path) -> set[str]:
    """Return all names of a module, among them those that can be imported from it."""
    return identifiers(nodes(path)) | {
        one.asname or one.name
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in node.names
    }


def test_programs_in_texts_of_tests_import_what_there_is():
    tests = dict(modules("tests"))
    found = {
        f"{name}: {one}"
        for name, path in tests.items()
        if name != __name__  # which has one that imports in vain, below
        for program in programs(path)
        for one in lacking(program, ALL | tests)
    }
    assert found == set()


def test_what_a_program_imports_in_vain_is_found():
    program = """
import sonar.nothing
from sonar.movers import tool, base
from sonar.movers.base import End, Fin
"""
    assert lacking(ast.parse(program), ALL) == [
        "sonar.nothing",
        "sonar.movers tool",
        "sonar.movers.base Fin",
    ]


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
