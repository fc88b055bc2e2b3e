"""Movers, each loaded when it is used first; `sonar.movers.catalogue` says which there are."""

from functools import cache
from pkgutil import resolve_name

from sonar.movers.base import MoverError, Where
from sonar.movers.catalogue import MoverDescription, no_such_mover
from sonar.movers.mover import Mover


def load(description: MoverDescription) -> Mover:
    """Return the process's one mover of this description.

    MoverError lists the movers that exist, or what this machine lacks.
    """
    if not description.path:
        raise MoverError(Where.CONTROL, no_such_mover(description.name), permanent=True)
    if missing := description.missing():
        lacks = ", ".join(missing)
        why = f"the transfer tool {description.name} cannot run on this worker: {lacks}"
        raise MoverError(Where.CONTROL, why, permanent=True)
    return loaded_from(description.path)


@cache
def loaded_from(path: str) -> Mover:
    mover: Mover = resolve_name(path)()
    return mover
