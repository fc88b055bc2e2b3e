"""Targets in a registry file: as they are by REST, all or nothing, with clear errors."""

import pytest

from sonar.models import HistoryEntry, Mesh, Site, SizeClass, Target
from sonar.notation.units import exact_rate, parse_rate
from sonar.registry import file
from sonar.registry.file import RegistryError

pytestmark = pytest.mark.django_db
WHOLE = """
targets:
  - name: uk
    size_class: large
    mesh: uk
    site: RAL
    sources: {cloud: UK, tag: "!tape"}
    floor: 20 MB/s
    below: 0.5
    above: 0.9
    failures: 4
  - {name: usual}
"""


@pytest.fixture(autouse=True)
def registry(db: None) -> None:
    Site.objects.create(name="RAL", cloud="UK")
    Mesh.objects.create(name="uk")


def test_a_file_makes_them_and_changes_only_what_is_new() -> None:
    assert file.load(WHOLE).added == {"targets": ["uk", "usual"]}
    row = Target.objects.get(name="uk")
    assert (row.size_class, row.mesh, row.site) == (
        SizeClass.objects.get(name="large"), Mesh.objects.get(), Site.objects.get(),
    )  # fmt: skip
    assert row.sources_filter == {"cloud": ["UK"], "tag": ["!tape"]}
    said = row.floor_mb_s, row.below, row.above, row.failures, row.silent_after
    assert said == (20.0, 0.5, 0.9, 4, 3.0)
    before = HistoryEntry.objects.count()
    assert file.load(WHOLE).left == {"targets": ["uk", "usual"]}
    assert HistoryEntry.objects.count() == before
    assert file.load(WHOLE.replace("20 MB/s", "30000000")).changed == {
        "targets": {"uk": ["floor 20 MB/s -> 30 MB/s"]}
    }
    assert Target.objects.get(name="uk").floor_mb_s == 30
    changes = file.load(WHOLE.replace("large", "small"))
    assert changes.changed["targets"]["uk"][-1] == "size_class large -> small"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("20 MB/s", "20 MB", "targets[0].floor (line 8): '20 MB' is not a rate: write a"),
        ("20 MB/s", "0", "targets[0].floor (line 8): 0 is not a rate from 1 kB/s to"),
        ("below: 0.5", "below: 1.5", "targets[0].below (line 9): Ensure this value is less"),
        ("above: 0.9", "above: 0.4", "targets[0].above (line 10): “above” (0.4) must not be less"),
        ("above: 0.9", "bad: 2", "targets[0].bad (line 10): Extra inputs are not permitted"),
        ("above: 0.9", "of: 3", "targets[0].of (line 10): Extra inputs are not permitted"),
        ("cloud: UK", "cluod: UK", "targets[0].sources.cluod (line 7): “cluod” is not an"),
        ('{cloud: UK, tag: "!tape"}', "[A]", 'targets[0].sources (line 7): write "all", or'),
        ("mesh: uk", "mesh: none", "targets[0].mesh (line 5): mesh 'none' is not registered"),
        ("large", "vast", "targets[0].size_class (line 4): size class 'vast' is not registered"),
        ("failures", "failing", "targets[0].failing (line 11): Extra inputs are not"),
        ("usual", "uk", "targets[1].name (line 12): uk appears twice in this file"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_kept(
    old: str, new: str, said: str
) -> None:
    with pytest.raises(RegistryError) as refusal:
        file.load(WHOLE.replace(old, new))
    assert said in str(refusal.value)
    assert not Target.objects.exists()


@pytest.mark.parametrize("rate", [1.0, 999.0, 15.5e6, 20e6, 1.25e9, 1e12, 1234567.875])
def test_a_rate_is_read_as_it_was_written(rate: float) -> None:
    assert parse_rate(exact_rate(rate)) == rate
