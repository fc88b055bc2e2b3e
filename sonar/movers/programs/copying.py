"""A copy by a program between two ends: what is needed around it, whatever the program is."""

from collections.abc import Callable

from sonar.movers.base import BLAME_SECONDS, End, MoverError, Order, Stopped, Where
from sonar.movers.file_address import place_of, require_inside
from sonar.movers.programs import tool
from sonar.movers.programs.files_by_scheme import FilesWithDirectories
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.watch import Watch, within


def copy(
    files: FilesWithDirectories,
    command: Command,
    order: Order,
    watch: Watch,
    *,
    read: Callable[[str], int | None],
    failure: Callable[[Order, Ended], MoverError],
) -> Ended:
    """Run a program that copies a file to where there is none; raise MoverError.

    ``read`` is given each of its lines, ``failure`` says what it means that it ended badly. What
    need not last, or names no end, is looked at: an end may not answer, or lack the file.
    """
    require_inside(order.destination)
    # Refused before anything is made.
    tool.credential_variables(order, order.source, order.destination)
    files.make_directories(order.destination, order)
    if not order.overwrite:
        require_absent(files, order)
    try:
        ended = tool.move(command, order, watch, read)
        if ended.code:
            raise failure(order, ended)
    except Stopped:
        raise
    except MoverError as error:
        is_known = error.permanent and error.where != Where.TRANSFER
        if is_known or error.where == Where.CONTROL:
            raise
        raise blamed(files, order, watch, error) from error
    return ended


def require_absent(files: FilesWithDirectories, order: Order) -> None:
    """Raise MoverError if the destination has the file: some programs overwrite unasked."""
    if files.stat(order.destination, order) is not None:
        message = f"{place_of(order.destination)}: the file already exists"
        raise MoverError(Where.DESTINATION, message, permanent=True)


def blamed(
    files: FilesWithDirectories, order: Order, watch: Watch, error: MoverError
) -> MoverError:
    """Return an error as that of the end that is to blame, as far as a look can tell."""
    for end in (order.source, order.destination):
        if error.where in {end.where, Where.TRANSFER} and (
            cause := _look(files, end, order, watch)
        ):
            return MoverError(end.where, f"{error}; {cause}", permanent=cause.permanent)
    return error


def _look(files: FilesWithDirectories, end: End, order: Order, watch: Watch) -> MoverError | None:
    """Say what is wrong with an end; None if it answers, and has the file that it should have."""
    try:
        with within(watch, BLAME_SECONDS / 2):
            info = files.stat(end, order)
    except Stopped:
        raise
    except MoverError as error:
        return error
    if info is None and end is order.source:
        return MoverError(end.where, f"{place_of(end)}: the file does not exist", permanent=True)
    return None
