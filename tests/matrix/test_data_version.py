"""The version of an answer's data: a value, which only its ETag makes a text of."""

from __future__ import annotations

from datetime import timedelta

from matrix.store import data_version, registry
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.windows import Window
from tests.matrix import world
from tests.matrix.world import NOW, World

DAY = Window(NOW - timedelta(days=1), NOW)


def test_a_version_is_a_value_and_its_etag_names_each_part():
    version = DataVersion("41.7813", "41.7820", ("3.12.20", "7.9.33"))
    assert version == DataVersion("41.7813", "41.7820", ("3.12.20", "7.9.33"))
    assert len({version, version.asked("a"), version.asked("b"), version.shown("csv")}) == 4
    assert version.etag == '"41.7813-41.7820-3.12.20-7.9.33"'
    assert version.shown("csv").shown("42").text == f"{version.text}-csv-42"
    assert version.asked("a").text.startswith(f"{version.text}-")


def test_all_but_registry_and_schedule_is_left_out_of_a_plan(small_world: World):
    version = data_version.read("large", DAY).asked("a").shown("csv")
    assert version.plan == registry.read_versions() != version


def test_that_of_all_size_classes_changes_with_each_of_them(small_world: World):
    names = list(SizeClass.objects.values_list("name", flat=True))
    versions = {data_version.read(None, DAY)}
    for name in names:
        world.transfer(small_world.ral, small_world.glasgow, 5.0, size=name)
        versions.add(data_version.read(None, DAY))
    assert len(versions) == len(names) + 1
    assert data_version.read(None, DAY).plan == registry.read_versions()
