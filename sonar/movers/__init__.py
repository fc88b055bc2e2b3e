"""The movers, each loaded when it is used first; `sonar.movers.catalogue` says which there are."""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name

from sonar.movers.base import MoverError, Where
from sonar.movers.catalogue import describe
from sonar.movers.mover import Mover


@cache
def get(name: str) -> Mover:
    """Return the process's one mover of this name.

    MoverError names those there are, or says what this machine lacks to run it.
    """
    try:
        description = describe(name)
    except ValueError as error:
        raise MoverError(Where.CONTROL, str(error), permanent=True) from error
    if missing := description.missing():
        why = f"the mover {name} cannot run on this worker: {', '.join(missing)}"
        raise MoverError(Where.CONTROL, why, permanent=True)
    mover: Mover = resolve_name(description.path)()
    return mover
