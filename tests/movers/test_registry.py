"""Movers by name."""

import pytest

from sonar import movers
from sonar.movers.base import MoverError
from sonar.movers.catalogue import describe, kept, names
from sonar.movers.fake import FakeMover
from sonar.movers.http.tpc import HttpTpc


@pytest.mark.parametrize(("name", "kind"), [("http-tpc", HttpTpc), ("fake", FakeMover)])
def test_a_mover_is_found_by_its_name(name: str, kind: type) -> None:
    assert isinstance(movers.load(kept(name)), kind)
    assert movers.load(kept(name)) is movers.load(kept(name))


def test_every_mover_bears_the_name_it_is_found_by() -> None:
    assert [describe(name).name for name in names()] == names()
    assert sorted(set(names())) == sorted(names())


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(MoverError, match=f"'ftp'; allowed: {', '.join(names())}"):
        movers.load(kept("ftp"))
