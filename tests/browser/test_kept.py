"""A scene stays for tests that only read, and for none after one that writes."""

from sonar.models import Site


def make() -> Site:
    return Site.objects.create(name="RAL")


def make_another() -> Site:
    return Site.objects.create(name="DESY")


def test_a_scene_stays_as_long_as_nobody_writes(kept, standing):
    first = standing(make)
    kept.end_test()
    assert standing(make) is first
    assert list(Site.objects.all()) == [first]
    Site.objects.update(tier=2)
    second = standing(make)
    assert second.id != first.id
    assert list(Site.objects.all()) == [second]
    third = standing(make_another)
    assert list(Site.objects.all()) == [third]
    Site.objects.update(tier=2)
    kept.end_test()
    assert not Site.objects.exists()
    standing(make)
    kept.forget()
    assert not Site.objects.exists()
