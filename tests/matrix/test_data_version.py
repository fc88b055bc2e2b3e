"""The version of an answer's data: a value, which only its ETag makes a text of."""

import random
from datetime import timedelta

import pytest

from matrix.store import data_version, registry, runs
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import Window
from sonar.results import sealing
from tests.matrix import world
from tests.matrix.world import NOW, World

DAY = Window(NOW - timedelta(days=1), NOW)


def test_a_version_is_a_value_and_its_etag_names_each_part():
    version = DataVersion("41.7813", "41.7820", ("3.12.20", "7.9.33"))
    assert version == DataVersion("41.7813", "41.7820", ("3.12.20", "7.9.33"))
    assert (
        len({version, version.of_question("a"), version.of_question("b"), version.shown("csv")})
        == 4
    )
    assert version.etag == '"41.7813-41.7820-3.12.20-7.9.33"'
    assert version.shown("csv").shown("42").text == f"{version.text}-csv-42"
    assert version.of_question("a").text.startswith(f"{version.text}-")


def test_all_but_registry_and_schedule_is_left_out_of_a_plan(small_world: World):
    version = data_version.read("large", DAY).of_question("a").shown("csv")
    assert version.plan == registry.read_versions().plan != version


def test_that_of_all_size_classes_changes_with_each_of_them(small_world: World):
    names = list(SizeClass.objects.values_list("name", flat=True))
    versions = {data_version.read(None, DAY)}
    for name in names:
        world.transfer(small_world.ral, small_world.glasgow, 5.0, size=name)
        versions.add(data_version.read(None, DAY))
    assert len(versions) == len(names) + 1
    assert data_version.read(None, DAY).plan == registry.read_versions().plan


@pytest.mark.parametrize("seed", range(4))
def test_results_of_one_version_are_the_same_whatever_is_stored_sealed_and_deleted(
    small_world: World, seed: int
):
    dice = random.Random(seed)
    asked = Window(NOW - timedelta(hours=50), NOW - timedelta(hours=2))
    clock = NOW - timedelta(hours=30)
    seen: dict[DataVersion, list[int]] = {}
    for _ in range(40):
        step = dice.choice(["store", "store", "delete", "seal", "seal", "wait"])
        if step == "store":
            ago = timedelta(hours=dice.randrange(60), minutes=5)
            world.transfer(small_world.ral, small_world.glasgow, dice.uniform(1, 9), ago=ago)
        elif step == "delete" and Transfer.objects.exists():
            dice.choice(list(Transfer.objects.order_by("id"))).delete()
        elif step == "seal":
            sealing.seal(clock)
        else:
            clock += timedelta(hours=dice.randrange(8))
        version = data_version.read("large", asked)
        # However hours and days cut them.
        keys = sorted(key for run in runs.read("large", asked, ()) for key in run.keys.tolist())
        assert seen.setdefault(version, keys) == keys
    assert len(seen) > 10
