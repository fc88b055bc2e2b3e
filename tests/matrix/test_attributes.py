"""Each attribute stands in one place alone, and one more is an entry there."""

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import QueryDict
from drf_spectacular.settings import spectacular_settings
from rest_framework.settings import api_settings

from matrix.query.attributes import OF_PROFILES
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from sonar.notation import endpoint_attributes
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from tests.imports import PROJECT, modules, within_any
from tests.matrix.world import NOW, World, transfers
from tests.recipes import block

REGISTRY = "sonar.notation.endpoint_attributes"
# What is made of the attributes as it is imported.
OF_ATTRIBUTES = (
    "matrix",
    REGISTRY,
    "sonar.notation.endpoint_filters",
    "sonar.registry.mesh_filters",
    "sonar.registry.mesh_members",
)
# Two of them may be compared, or be examples; three are a list.
FEW = 2
# Fields of what is registered, ordered or recorded, whichever of them links are chosen by: a site,
# a mesh, an order, a transfer, a test of the network, and the table of ways in which a link was
# measured.
FIELDS_OF_THEIR_OWN = {
    "matrix.api.registry.sites",
    "matrix.api.registry.meshes",
    "matrix.pages.meshes.mesh_form",
    "matrix.answers.ordering.probe_requests",
    "matrix.api.probes",
    "matrix.api.transfers.views",
    "matrix.answers.link.link_profiles",
    "matrix.api.network",
    "matrix.api.sweeps",
    "matrix.management.commands.sweep",
    "matrix.pages.transfer",
}


def names_in(node: ast.AST) -> list[str]:
    """The texts that a literal collection spells, or the fields of a class."""
    parts: list[Any] = []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = node.keys
    elif isinstance(node, ast.ClassDef):
        return [
            field.target.id
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        ]
    return [part.value for part in parts if isinstance(part, ast.Constant)]


def spelt(source: str) -> list[set[str]]:
    """Every place in a module that lists more than a few attributes of one kind."""
    if all(sum(name in source for name in kind) <= FEW for kind in (OF_ENDPOINTS, OF_PROFILES)):
        return []  # to parse all modules takes seconds
    return [
        names
        for node in ast.walk(ast.parse(source))
        for kind in (OF_ENDPOINTS, OF_PROFILES)
        if len(names := kind.keys() & set(names_in(node))) > FEW
    ]


def test_no_other_module_lists_the_attributes():
    lists = {name: spelt(path.read_text()) for name, path in modules("matrix")}
    assert {name for name, found in lists.items() if found} == FIELDS_OF_THEIR_OWN


def test_no_template_and_no_script_lists_them():
    found = {}
    for folder in ("templates", "static/js"):
        for path in (PROJECT / folder).rglob("*.*"):
            for line in path.read_text().splitlines():
                words = OF_ENDPOINTS.keys() & set(re.findall(r"[\"'](\w+)[\"']", line))
                if len(words) > FEW:
                    found[path.name] = line
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        'KEYS = ("cloud", "tier", "country")',
        'KEYS = {"cloud": 1, "tier": 2, "label": 3}',
        "class Place:\n    site: str\n    cloud: str\n    tier: int",
        'APART = ["mover", "mode", "streams"]',
    ],
)
def test_a_list_of_attributes_is_seen(source):
    assert len(spelt(source)) == 1


# The entry of the recipe, of a column that there is already.
TOY = f"    {block('A filter', 'sonar/notation/endpoint_attributes.py').strip()},\n"
LAST = '    EndpointAttribute(\n        name="endpoint",'


@pytest.fixture
def with_software(tmp_path) -> Iterator[None]:
    """All of matrix/ as if the registry had an attribute more, read anew from its files.

    And what meshes by filter are made of.
    """
    source = Path(endpoint_attributes.__file__).read_text()
    assert LAST in source
    path = tmp_path / "attributes.py"
    path.write_text(source.replace(LAST, TOY + LAST))
    spec = importlib.util.spec_from_file_location(REGISTRY, path)
    assert spec
    assert spec.loader
    # What is looked up once by its name, as who handles exceptions, is to be that of the project.
    importlib.import_module(settings.ROOT_URLCONF)
    for lazy in (api_settings, spectacular_settings):
        for name in lazy.defaults:
            getattr(lazy, name)
    real = {
        name: sys.modules.pop(name) for name in list(sys.modules) if within_any(name, OF_ATTRIBUTES)
    }
    try:
        sys.modules[REGISTRY] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[REGISTRY])
        yield
    finally:
        for name in [name for name in sys.modules if within_any(name, OF_ATTRIBUTES)]:
            del sys.modules[name]
        sys.modules.update(real)


def part(name: str) -> Any:
    return importlib.import_module(f"matrix.{name}")


@pytest.fixture
def in_dcache(small_world) -> World:
    small_world.ral.software = "dCache 9"
    small_world.ral.save()
    with transfers() as some:
        for source, destination in permutations(small_world.endpoints, 2):
            some.add(source, destination, 5.0)
    return small_world


@pytest.mark.django_db
@pytest.mark.usefixtures("with_software", "in_dcache")
class TestOneEntryMore:
    """The recipe of docs/extending.md: an entry is all that an attribute needs."""

    def asked(self, text: str) -> Any:
        return part("query.matrix_query").MatrixQuery.from_params(QueryDict(text))

    def test_filters_of_either_end_choose_links_and_say_so(self):
        query = self.asked("source_software=dCache 9")
        assert query.describe().endswith("only from software dCache 9")
        grid = part("answers.matrix.grid").build(query, NOW)
        assert [group.name for group in grid.sources] == ["RAL_DATADISK"]
        grid = part("answers.matrix.grid").build(self.asked("software=!dCache 9"), NOW)
        assert "RAL_DATADISK" not in [group.name for group in grid.sources]

    def test_meshes_are_filtered_by_it(self):
        filters = importlib.import_module("sonar.registry.mesh_filters")
        members = importlib.import_module("sonar.registry.mesh_members")
        chosen = filters.read_filter({"software": "dCache 9"})
        (end,) = members.fitting(chosen, members.read_endpoints())
        assert end.texts["endpoint"] == ("RAL_DATADISK",)

    def test_the_form_offers_it(self):
        form = part("query.forms")
        fields = QueryDict("filter_on=software&filter_end=source&filter_value=x")
        assert form.with_filter_form(fields) == {"source_software": ["x"]}

    def test_transfers_are_chosen_by_it(self):
        registry, transfers = part("store.registry"), part("store.transfers")
        query = self.asked("destination_software=dCache 9&window=24h")
        wanted = transfers.TransferSelection(query.window_at(NOW), filters=query.filters)
        rows = wanted.rows(registry.read_places(registry.read_versions()))
        assert {one.destination.name for one in rows} == {"RAL_DATADISK"}

    def test_the_link_table_has_its_columns_and_looks_into_them(self):
        table = part("answers.table.link_table").build(self.asked(""), NOW)
        assert "dCache 9" in table.column("source.software")
        assert table.searched("dcache").sum() == 6
        _, listing = part("answers.table.table_query").read(
            QueryDict("source.software.has=dcache"), ["large"]
        )
        assert len(listing.rows(table, NOW)) == 3
        assert "source.software" in part("api.links").csv_columns(table)
        assert part("api.links").records(table)

    def test_the_search_finds_by_it(self):
        (found,) = part("answers.search").find("dcache").matches
        assert (found.kind, found.name) == ("endpoint", "RAL_DATADISK")

    def test_the_schema_of_the_api_has_it(self):
        names = [one.name for one in part("api.schema.parameters").QUERY]
        assert {"software", "source_software", "destination_software"} <= set(names)
        assert "software" in part("api.links").End.model_fields


@pytest.mark.django_db
def test_afterwards_it_is_gone(small_world):
    with pytest.raises(BadQueryError, match="no parameter “software”"):
        MatrixQuery.from_params(QueryDict("software=x"))
