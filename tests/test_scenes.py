"""A scene stands for all tests of a module, and what one of them changes is taken back."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from sonar.models import Site
from tests.scenes import standing


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Site]:
    with standing(django_db_blocker, lambda: Site.objects.create(name="Scene")) as site:
        yield site


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["First", "Second"])
def test_a_scene_stands_and_what_a_test_adds_to_it_goes(scene: Site, name: str) -> None:
    assert list(Site.objects.all()) == [scene]
    Site.objects.create(name=name)
    Site.objects.filter(id=scene.id).update(name="Changed")
